# SPDX-License-Identifier: BSD-3-Clause
"""One figure of another program, and what it is in our terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..base.errors import ConfigurationError
from ..records.document.summary import ComparableEntry, ImportedEntry
from .measures import COMMON

MEGA = 1e6
HOST, GPU = "host", "gpu"


@dataclass(frozen=True)
class ComparableFigure:
    """The same by a definition that several programs share (measures.py), in its unit."""

    measure: str
    ranks: int
    size: int | None  # bytes of a message; None where it has none, or it does not matter
    value: float

    @property
    def entry(self) -> ComparableEntry:
        """As the summary has it."""
        unit = COMMON[self.measure].unit
        return {
            "measure": self.measure, "ranks": self.ranks, "size": self.size, "value": self.value,
            "unit": unit,
        }  # fmt: skip


@dataclass(frozen=True)
class ImportedFigure:
    """As the program printed it; `comparable` is None where we have nothing of that definition."""

    tool: str
    version: str | None
    benchmark: str
    ranks: int | None  # None: its output does not say
    size: int | None = None
    name: str = ""
    value: float = 0.0
    unit: str = ""
    comparable: ComparableFigure | None = None
    memory: str = HOST  # of the buffers

    def entry(self, file: str) -> ImportedEntry:
        """As the summary has it; `file`: where it stood, in the results directory."""
        return {
            "tool": self.tool, "version": self.version, "benchmark": self.benchmark,
            "ranks": self.ranks, "size": self.size, "name": self.name, "value": self.value,
            "unit": self.unit, "memory": self.memory,
            "comparable": self.comparable.entry if self.comparable else None, "file": file,
        }  # fmt: skip


# Before each line: mpirun --tag-output, --timestamp-output or srun -l.
_MARK = re.compile(
    r"(?:\w{3} \w{3} [ \d]\d [\d:]{8} \d{4})?(?:\[[^\]\s]{1,100}\])?<std(?:out|err|diag)>: ?"
    r"|\s{0,8}\d{1,8}: ?"
)


@dataclass(frozen=True)
class Source:
    """A file to be read."""

    path: Path
    content: str
    ranks: int | None = None  # as the user says, for programs that do not

    @cached_property
    def text(self) -> str:
        """Its text, without the marks of ranks that launchers put before most lines."""
        lines = self.content.splitlines(keepends=True)
        marks = [_MARK.match(line) for line in lines]
        if 2 * sum(mark is not None for mark in marks) <= len(lines):
            return self.content
        return "".join(
            line[mark.end() :] if mark else line
            for line, mark in zip(lines, marks, strict=True)
            if not (mark and mark[0].rstrip().endswith("<stderr>:"))
        )

    def refuse(self, reason: str, line: int | None = None) -> ConfigurationError:
        """Return the error of a file that can't be read, at a line."""
        where = "" if line is None else f"line {line}: "
        return ConfigurationError(f"{self.path}: {where}{reason}")


@dataclass(frozen=True)
class Read:
    """What is in a file; `warnings`: what is wrong with it, or has to be known about it."""

    figures: list[ImportedFigure]
    warnings: list[str]


@dataclass(frozen=True)
class Kind:
    """One program; `knows`: whether it wrote this text."""

    tool: str
    title: str  # what the file is, as its users call it
    knows: Callable[[str], bool]
    read: Callable[[Source], Read]


def refuse_newer(source: Source, tool: str, found: str, newest: tuple[int, ...]) -> None:
    """Refuse a version whose output this one does not know."""
    numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", found))
    if numbers[: len(newest)] > newest:
        known = ".".join(map(str, newest))
        raise source.refuse(
            f"{tool} {found} wrote it, which is newer than what this version reads "
            f"(up to {known}): take a newer Switchbench"
        )


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text, from 1."""
    return enumerate(text.splitlines(), start=1)
