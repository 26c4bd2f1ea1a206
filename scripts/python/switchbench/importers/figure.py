# SPDX-License-Identifier: BSD-3-Clause
"""One figure of another program, and what it is in our terms."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..base.errors import ConfigurationError
from ..records.document.summary import ComparableEntry, ImportedEntry
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

    @property
    def entry(self) -> ComparableEntry:
        """As the summary has it."""
        unit = COMMON[self.measure].unit
        return {
            "measure": self.measure, "ranks": self.ranks, "size": self.size, "value": self.value,
            "conversion": self.conversion, "unit": unit,
        }  # fmt: skip


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

    def entry(self, file: str) -> ImportedEntry:
        """As the summary has it; `file`: where it stood, in the results directory."""
        return {
            "tool": self.tool, "version": self.version, "benchmark": self.benchmark,
            "ranks": self.ranks, "size": self.size, "name": self.name, "value": self.value,
            "unit": self.unit, "definition": self.definition,
            "comparable": self.comparable.entry if self.comparable else None, "file": file,
        }  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A file to be read."""

    name: str
    text: str
    ranks: int | None = None  # as the user says, for programs that do not

    def refuse(self, reason: str) -> ConfigurationError:
        """The error of one that can't be read."""
        return ConfigurationError(f"{self.name}: {reason}")


@dataclass
class PrintedTable:
    """The table of a text that is being read."""

    benchmark: str
    version: str | None = None
    ranks: int | None = None
    columns: list[str] = field(default_factory=list)
    rows: int = 0
    ended: bool = False

    def misfit(self, line: int, words: Sequence[str]) -> str:
        """The reason to refuse a row of other values than the columns want."""
        return (
            f"line {line}: {len(words)} values below {len(self.columns)} columns of "
            f"{self.benchmark}: it is cut or damaged"
        )


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
