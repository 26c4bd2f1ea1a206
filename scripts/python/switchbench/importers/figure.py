# SPDX-License-Identifier: BSD-3-Clause
"""One figure of another program, and what it is in our terms."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..base.errors import ConfigurationError
from .measures import COMMON

MEGA = 1e6


@dataclass(frozen=True)
class ComparableFigure:
    """The same by a definition that several programs share (measures.py), in its unit."""

    measure: str
    ranks: int
    size: int | None  # bytes of a message; None where it has none, or it does not matter
    value: float
    conversion: str  # the conversion, for a person

    def entry(self) -> dict[str, Any]:
        """As the summary has it."""
        return asdict(self) | {"unit": COMMON[self.measure].unit}


@dataclass(frozen=True)
class ImportedFigure:
    """As the program printed it; `ours` is None where we have nothing of that definition."""

    tool: str
    version: str | None
    benchmark: str
    ranks: int | None  # None: its output does not say
    size: int | None
    name: str
    value: float
    unit: str
    definition: str
    comparable: ComparableFigure | None = None

    def entry(self) -> dict[str, Any]:
        """As the summary has it."""
        return asdict(self) | {"comparable": self.comparable and self.comparable.entry()}


@dataclass(frozen=True)
class Source:
    """A file to be read."""

    name: str
    text: str
    ranks: int | None = None  # as the user says, for programs that do not

    def refuse(self, reason: str) -> ConfigurationError:
        """The error of one that can't be read."""
        return ConfigurationError(f"{self.name}: {reason}")


@dataclass(frozen=True)
class Read:
    """What is in a file; `warnings`: what its program says is wrong with it."""

    figures: list[ImportedFigure]
    warnings: list[str]


@dataclass(frozen=True)
class Kind:
    """One program; `knows`: whether it wrote this text."""

    tool: str
    title: str  # what the file is, as its users call it
    knows: Callable[[str], bool]
    read: Callable[[Source], Read]


def of_version(source: Source, tool: str, found: str, newest: tuple[int, ...]) -> None:
    """Refuses a version whose output this one does not know."""
    numbers = tuple(int(part) for part in found.split(".") if part.isdecimal())
    if numbers[: len(newest)] > newest:
        known = ".".join(map(str, newest))
        raise source.refuse(
            f"{tool} {found} wrote it, which is newer than what this version reads "
            f"(up to {known}): take a newer Switchbench"
        )


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Its lines, from 1."""
    return enumerate(text.splitlines(), start=1)


def number(word: str) -> float | None:
    """None where the word is no number, or one that nothing measures (nan, inf)."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def count(word: str) -> int | None:
    """None where the word is no whole number from 0."""
    return int(word) if re.fullmatch(r"[0-9]{1,18}", word) else None
