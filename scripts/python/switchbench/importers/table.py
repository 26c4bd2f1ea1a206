# SPDX-License-Identifier: BSD-3-Clause
"""Tables that programs print: a title, a line of columns by their names, a row a size.

Each program declares its titles and columns (`Form`). What a declaration does not know is refused
in a sentence that names it; nothing is guessed from a position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from ..base.source import count, number
from .figure import HOST, ComparableFigure, ImportedFigure, Source, numbered


class Role(Enum):
    """What a column has."""

    FIGURE = "a number that was measured"
    SIZE = "bytes of a message"
    CHECK = "whether the data were right"
    OTHER = "what is not kept"


_RIGHT = {"pass", "passed", "ok", "n/a", "-"}
_WRONG = {"fail", "failed"}


@dataclass(frozen=True)
class PrintedColumn:
    """A column by the name in the header, a regular expression."""

    name: str
    unit: str = ""
    role: Role = Role.FIGURE


@dataclass(frozen=True)
class Form:
    """How a program's tables look."""

    tool: str
    title: re.Pattern[str]  # a line that begins a table
    header: re.Pattern[str]  # the line with its columns
    columns: Sequence[PrintedColumn]
    row: re.Pattern[str] = re.compile(r"\s*\d")
    end: re.Pattern[str] | None = None  # the line below its rows; None: there is none
    part: re.Pattern[str] | None = None  # a line before further rows of the same columns
    groups: tuple[str, ...] = ()  # names before those of columns that come once a group


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    size: int
    part: str
    values: dict[str, float]
    wrong: bool  # the program found that its data were not right


@dataclass
class PrintedTable:
    """One table, with all lines that are neither header nor row."""

    title: re.Match[str]
    before: list[str]
    notes: list[str] = field(default_factory=list)
    columns: dict[str, PrintedColumn] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    part: str = ""
    ended: re.Match[str] | None = None


def tables(source: Source, form: Form) -> list[PrintedTable]:
    """Return the tables of a text; refused where one is cut."""
    found: list[PrintedTable] = []
    before: list[str] = []
    for line, text in numbered(source.text):
        table = found[-1] if found else None
        if title := form.title.search(text):
            found.append(PrintedTable(title, before))
            before = []
        elif table is None:
            before.append(text)
        elif form.part and (part := form.part.search(text)):
            table.part, table.ended = f", {part[1]}", None
        elif form.end and (end := form.end.search(text)):
            if any(row.part == table.part for row in table.rows):
                table.ended = end
        elif form.header.search(text):
            table.columns = _columns(source, form, line, text)
        elif table.columns and table.ended is None and form.row.match(text):
            table.rows.append(_row(source, form, table, line, text.split()))
        else:
            (before if table.ended else table.notes).append(text)
    for table in found if form.end else ():
        if table.rows and table.ended is None:
            raise source.refuse("it is cut: the line below a table's rows is missing")
    return found


def figures(
    rows: Iterable[Row],
    columns: Mapping[str, PrintedColumn],
    like: ImportedFigure,
    ours: Callable[[Row, str, float], ComparableFigure | None],
) -> Iterator[ImportedFigure]:
    """Yield a figure of each value, with tool, version and so on as of `like`.

    What is of a wrong row has nothing that is comparable.
    """
    for row in rows:
        for name, value in row.values.items():
            yield replace(
                like, benchmark=like.benchmark + row.part, size=row.size, name=name, value=value,
                unit=columns[name].unit,
                comparable=None if row.wrong else ours(row, name, value),
            )  # fmt: skip


def warnings(source: Source, found: Sequence[PrintedTable]) -> Iterator[str]:
    """Yield a sentence where rows are of wrong data."""
    wrong = sorted({row.size for table in found for row in table.rows if row.wrong})
    if wrong:
        sizes = ", ".join(f"{size:,}" for size in wrong[:8])
        yield (
            f"{source.path}: the program found its data wrong, at a size of {sizes} bytes: its "
            "figures there stand beside nothing"
        )


def gpu_warning(source: Source, figures: Sequence[ImportedFigure]) -> Iterator[str]:
    """Yield a sentence where buffers were in GPU memory."""
    if any(one.memory != HOST for one in figures):
        yield (
            f"{source.path}: buffers in GPU memory, by another way than host memory's: `compare` "
            "shows them under a name of their own"
        )


def _columns(source: Source, form: Form, line: int, text: str) -> dict[str, PrintedColumn]:
    found: list[tuple[str, PrintedColumn]] = []
    rest = re.sub(r"\A\s*#\s+", "", text).strip()
    while rest:
        for column in form.columns:
            if fits := re.match(rf"({column.name})(?:\s+|\Z)", rest):
                break
        else:
            unknown = re.split(r"\s{2,}|\t", rest)[0]
            raise source.refuse(
                f"{form.tool} has a column that is not known here: {unknown[:40]!r}", line
            )
        found.append((fits[1], column))
        rest = rest[fits.end() :]
    names = [name for name, _ in found]
    for place, (name, column) in enumerate(found):
        times, before = names.count(name), names[:place].count(name)
        if times > 1 and times == len(form.groups):
            found[place] = (f"{form.groups[before]} {name}", column)
        elif times > 1:
            raise source.refuse(f"{form.tool} has the column {name!r} twice", line)
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
        value = number(word)
        if column.role is Role.SIZE:
            found = count(word)
            if found is None:
                raise source.refuse(f"{name} is {word[:40]!r}, which is no whole number", line)
            size = found
        elif column.role is Role.CHECK:
            if value is None and word.lower() not in _RIGHT | _WRONG:
                raise source.refuse(f"{name} is {word[:40]!r}: Pass or Fail is known", line)
            wrong |= bool(value) or word.lower() in _WRONG
        elif column.role is Role.FIGURE:
            if value is None:
                raise source.refuse(f"{name} is {word[:40]!r}, which is no number", line)
            values[name] = value
    return Row(size, table.part, values, wrong)
