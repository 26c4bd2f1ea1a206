# SPDX-License-Identifier: BSD-3-Clause
"""Shared parts of the readers of other programs' files: figures, measures, sources, tables.

A program declares the titles and columns of its tables (`Form`). A column that no declaration names
is an error that shows its name; no column is guessed from its position.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ..base.errors import ConfigurationError
from ..base.source import count, number
from ..records.summary_form import Entry

MEGA = 1e6

# --- measures that several programs share ---------------------------------------------------------


class Common(NamedTuple):
    """Measure that several programs share; `better` is +1 if more is better, -1 if less is."""

    title: str
    unit: str
    better: int


PROGRAMS = tomllib.loads(Path(__file__).with_name("programs.toml").read_text("utf-8"))
_COLLECTIVES: list[str] = PROGRAMS["collectives"]["names"]
COMMON: dict[str, Common] = {
    **{name: Common(*words) for name, words in PROGRAMS["common"].items()},
    **{f"{name}_time": Common(f"{name}, mean over ranks", "us", -1) for name in _COLLECTIVES},
}


def comparable(measure: str, ranks: int, size: int | None, value: float) -> Entry:
    """Return a figure as an entry of its shared measure; `value` is in the measure's unit.

    `size`: bytes of a message; None if there is none, or if it has no effect.
    """
    return {
        "measure": measure, "ranks": ranks, "size": size, "value": value,
        "unit": COMMON[measure].unit,
    }  # fmt: skip


# Shared measure of a column, by its name, and the factor to the measure's unit.
Shared = dict[str, tuple[str, float]]


def collective(name: str, column: str) -> Shared:
    """Return the shared measure of the column with a collective's mean times; {} if unknown."""
    return {column: (f"{name}_time", 1.0)} if name in _COLLECTIVES else {}


# --- files and figures ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ImportedFigure:
    """Figure as its program printed it: an entry of the summary without the file's name."""

    tool: str
    version: str | None
    benchmark: str
    ranks: int | None  # None: the output does not have the number
    size: int | None = None
    name: str = ""
    value: float = 0.0
    unit: str = ""
    comparable: Entry | None = None  # None: no shared measure fits


@dataclass(frozen=True)
class Source:
    """File to import: its path, its text, and the number of ranks that the user set."""

    path: Path
    text: str
    ranks: int | None = None  # set by the user, for programs that do not print it
    warnings: list[str] = field(default_factory=list)  # warnings on the file or its figures

    def warn(self, sentence: str) -> None:
        """Add a warning that begins with the file's path."""
        self.warnings.append(f"{self.path}: {sentence}")

    @property
    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield the lines of the text with their numbers, from 1."""
        return enumerate(self.text.splitlines(), start=1)

    def refuse(self, reason: str, line: int | None = None) -> ConfigurationError:
        """Return a ConfigurationError with the file's path, the line number and the reason."""
        where = "" if line is None else f"line {line}: "
        return ConfigurationError(f"{self.path}: {where}{reason}")

    def refuse_newer(self, tool: str, found: str, newest: tuple[int, ...]) -> None:
        """Raise ConfigurationError if the program's version is newer than `newest`."""
        numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", found))
        if numbers[: len(newest)] > newest:
            raise self.refuse(
                f"{tool} {found} wrote it, which is newer than what this version reads "
                f"(up to {'.'.join(map(str, newest))}): take a newer Switchbench"
            )


# --- printed tables -------------------------------------------------------------------------------

# Content of a column: a figure, the bytes of a message, a data check, or other text.
FIGURE, SIZE, CHECK, OTHER = "figure", "size", "check", "other"
_RIGHT, _WRONG = {"pass", "passed", "ok", "n/a", "-"}, {"fail", "failed"}


class PrintedColumn(NamedTuple):
    """Column of a printed table; its name is a regular expression for the header."""

    name: str
    unit: str = ""
    role: str = FIGURE


class Form:
    """Declaration of a program's table layout, by the regular expressions in programs.toml.

    `end` matches the line below the rows, `part` a line before further rows of the same columns.
    """

    def __init__(self, name: str) -> None:
        """Read the declaration of one table layout from programs.toml, by its name."""
        form: Entry = PROGRAMS["forms"][name]
        self.tool: str = form["tool"]
        self.title, self.header = re.compile(form["title"]), re.compile(form["header"])
        self.row = re.compile(form.get("row", r"\s*\d"))
        self.end, self.part = (
            re.compile(form[key]) if key in form else None for key in ("end", "part")
        )
        self.columns = [PrintedColumn(**column) for column in form["columns"]]


class Row(NamedTuple):
    """Row of a printed table; `wrong` is true if the program found corrupted data."""

    size: int
    part: str
    values: dict[str, float]
    wrong: bool = False


@dataclass
class PrintedTable:
    """Printed table: its title, columns, rows, and all other lines of the output."""

    title: re.Match[str]
    notes: list[str] = field(default_factory=list)
    columns: dict[str, PrintedColumn] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    part: str = ""
    ended: bool = False


def tables(source: Source, form: Form) -> list[PrintedTable]:
    """Read the tables in a text; raise ConfigurationError if a table is truncated."""
    found: list[PrintedTable] = []
    for line, text in source.numbered:
        table = found[-1] if found else None
        if title := form.title.search(text):
            found.append(PrintedTable(title))
        elif table is None:
            continue
        elif form.part and (part := form.part.search(text)):
            table.part, table.ended = f", {part[1]}", False
        elif form.end and form.end.search(text):
            table.ended |= any(row.part == table.part for row in table.rows)
        elif form.header.search(text):
            table.columns = _columns(source, form, line, text)
        elif table.columns and not table.ended and form.row.match(text):
            table.rows.append(_row(source, form, table, line, text.split()))
        elif not table.ended:
            table.notes.append(text)
    if form.end and any(table.rows and not table.ended for table in found):
        raise source.refuse("it is truncated: the line below a table's rows is missing")
    if wrong := sorted({row.size for table in found for row in table.rows if row.wrong}):
        sizes = ", ".join(f"{size:,}" for size in wrong[:8])
        source.warn(
            f"the program found its data wrong, at a size of {sizes} bytes: its figures there "
            "stand beside nothing"
        )
    return found


def figures(
    rows: Iterable[Row], columns: Mapping[str, PrintedColumn], like: ImportedFigure, shared: Shared
) -> Iterator[ImportedFigure]:
    """Yield one figure for each value of the rows, with all other fields copied from `like`.

    `shared`: the shared measures of columns. Figures from rows with wrong data, and from rows of
    one end alone, are never comparable.
    """
    for row in rows:
        for name, value in row.values.items():
            same = None
            if name in shared and like.ranks and value and not (row.wrong or row.part):
                measure, factor = shared[name]
                same = comparable(measure, like.ranks, row.size, factor * value)
            yield replace(
                like, benchmark=like.benchmark + row.part, size=row.size, name=name, value=value,
                unit=columns[name].unit, comparable=same,
            )  # fmt: skip


def _columns(source: Source, form: Form, line: int, text: str) -> dict[str, PrintedColumn]:
    found: list[tuple[str, PrintedColumn]] = []
    rest = re.sub(r"\A\s*#\s+", "", text).strip()
    while rest:
        fits = ((re.match(rf"({one.name})(?:\s+|\Z)", rest), one) for one in form.columns)
        name, column = next(((fit, one) for fit, one in fits if fit), (None, None))
        if name is None or column is None:
            unknown = re.split(r"\s{2,}|\t", rest)[0]
            raise source.refuse(
                f"{form.tool} has a column that is unknown here: {unknown[:40]!r}", line
            )
        found.append((name[1], column))
        rest = rest[name.end() :]
    names = [name for name, _ in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise source.refuse(f"{form.tool} has the column {twice[0]!r} twice", line)
    return dict(found)


def _row(source: Source, form: Form, table: PrintedTable, line: int, words: Sequence[str]) -> Row:
    if len(words) != len(table.columns):
        raise source.refuse(
            f"{len(words)} values below {len(table.columns)} columns of {form.tool}: it is cut or "
            "damaged",
            line,
        )
    size, values, wrong = 0, {}, False
    for (name, column), word in zip(table.columns.items(), words, strict=True):
        value, fault = number(word), ""
        if column.role == SIZE:
            whole = count(word)
            size, fault = whole or 0, "which is no whole number" if whole is None else ""
        elif column.role == CHECK:
            wrong |= bool(value) or word.lower() in _WRONG
            if value is None and word.lower() not in _RIGHT | _WRONG:
                raise source.refuse(f"{name} is {word[:40]!r}: Pass or Fail is known", line)
        elif column.role == FIGURE:
            values[name], fault = value or 0.0, "which is no number" if value is None else ""
        if fault:
            raise source.refuse(f"{name} is {word[:40]!r}, {fault}", line)
    return Row(size, table.part, values, wrong)
