# SPDX-License-Identifier: BSD-3-Clause
"""Tables declared once: columns with unit, format and meaning, and the source of their rows.

Four writers print a table: the terminal (`show`), the report (`Table.data`, for page/table.js), CSV
(`Table.lines`) and JSON (`Table.json`). Terminal and page omit columns without values and name them
below the table, state values that all rows share above it, and show rates in the unit that fits
them. CSV and JSON have all columns, in the declared units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ..base import format
from ..base.measures import COUNT, MEASURES, PERCENT
from ..records.summary_form import Entry, SummaryDocument, at, definition
from .first_screen import named

RATE = "Mbit/s"  # unit of rates, shown in the unit that fits the table's largest value
TOTAL = "Mbit/s of all"  # unit of total rates, scaled apart from other rates
BOTH, TERMINAL, PAGE = "both", "terminal", "page"  # outputs that a column is in

# Functions that print a column's values, by kind; page/table.js has equal ones.
SHOWN: dict[str, Callable[[Any], str]] = {
    "text": str,
    "mark": str,
    "verdict": str,
    "number": format.digits,
    "signed": format.signed,
    "scientific": format.scientific,
    "percent": format.percent,
    "count": format.count,
    "bytes": format.size_words,
}
WORDS = ("text", "mark", "verdict")


@dataclass(frozen=True)
class Column:
    """Column of a table; `key` is the path of its value in an entry, such as `throughput.min`."""

    title: str
    key: str
    kind: str = "number"  # key of SHOWN
    unit: str = ""
    fold: bool = False  # a value that all rows share is stated once, above the table
    seldom: bool = False  # most runs have no values: a column without any is left out silently
    defined: str = ""  # key of the column's definition, if it is not `key`
    about: str = ""  # definition of the column, if no key has one
    note: str = ""  # sentence added to the definition
    # function that computes the value from an entry; None: the value at `key`
    value: Callable[[Any], Any] | None = None
    output: str = BOTH
    drop: int = 0  # order in which columns are omitted on a narrow terminal; 0: never
    silent: bool = False  # a shared value is omitted without a sentence

    def of(self, entry: Any) -> Any:
        """Return the column's value of an entry; text for a value that is no number."""
        if self.value:
            value = self.value(entry)
        else:  # an entry is a summary's mapping or an object
            held = isinstance(entry, Mapping)
            value = at(entry, self.key) if held else getattr(entry, self.key)
        if self.kind not in WORDS:
            return value if isinstance(value, int | float) else None
        if self.kind == "mark":  # the column's title marks the entries with a true value
            return self.title if value else None
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, Mapping) and "src" in value:
            return format.flow(value)
        if isinstance(value, list):
            return "; ".join(map(str, value)) or None
        return None if value is None else str(value)

    def show(self, value: Any) -> str:
        """Return a value of the column as printed text."""
        if value is None:
            return "" if self.kind == "mark" else format.UNKNOWN
        return SHOWN[self.kind](value)

    @property
    def heading(self) -> str:
        """Return title and unit on one line."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def definition(self) -> str:
        """Return the definition of the column's values."""
        said = self.about or definition(self.defined or self.key)
        return f"{said}. {self.note}" if self.note else said


def text(title: str, key: str, **options: Any) -> Column:
    """Return a column of words."""
    return Column(title, key, "text", **options)


def count(title: str, key: str, **options: Any) -> Column:
    """Return a column of counts."""
    return Column(title, key, "count", **options)


def measured(key: str, **options: Any) -> Column:
    """Return the column of a measure of base.measures; `options` are fields of Column."""
    measure = MEASURES[key]
    kind = measure.format if measure.format in (PERCENT, COUNT) else "number"
    unit = "" if kind == COUNT else measure.unit.replace("us", "µs")
    return Column(measure.title, measure.entry, kind, **{"unit": unit} | options)


@dataclass(frozen=True)
class Table:
    """Table with the values of its columns.

    `shared` and `unseen` are sentences about omitted columns.
    """

    name: str  # anchor in the page, and name of the saved file
    title: str
    about: str
    columns: tuple[Column, ...]
    values: list[list[Any]] = field(repr=False)  # one list for each column
    shared: str = ""
    unseen: str = ""

    @property
    def rows(self) -> int:
        """Return the number of rows of the table."""
        return len(self.values[0]) if self.values else 0

    @property
    def drawn(self) -> bool:
        """Return whether a page draws the table; if not, `shared` has all values of its rows."""
        return len(self.columns) > 1

    def data(self) -> Entry:
        """Return the table as the JSON that page/table.js reads."""
        named = [
            {"title": c.title, "kind": c.kind, "unit": c.unit, "definition": c.definition}
            for c in self.columns
        ]
        return {"columns": named, "values": self.values}

    def shown(self) -> Iterator[list[tuple[Column, str]]]:
        """Yield each row as pairs of column and printed value."""
        for row in zip(*self.values, strict=True):
            yield [(c, c.show(value)) for c, value in zip(self.columns, row, strict=True)]

    def lines(self) -> Iterator[list[Any]]:
        """Yield the lines of a CSV file: headings, then rows.

        A value that was not observed is None.
        """
        yield [column.heading for column in self.columns]
        yield from (list(row) for row in zip(*self.values, strict=True))

    def json(self) -> Entry:
        """Return the table for programs: its columns, and each row as a mapping by column keys.

        A value that was not observed is null.
        """
        keys = [column.key for column in self.columns]
        return {
            "title": self.title,
            "columns": [
                {"key": c.key, "title": c.title, "unit": c.unit, "definition": c.definition}
                for c in self.columns
            ],
            "rows": [dict(zip(keys, row, strict=True)) for row in zip(*self.values, strict=True)],
        }


@dataclass(frozen=True)
class Spec:
    """Declaration of a table; a call with a summary makes the Table, or None without rows.

    `rows` is the path of entries in the summary, a function that makes entries of a summary, or the
    entries.
    """

    name: str
    title: str
    about: str
    columns: tuple[Column, ...]
    rows: str | Callable[[Any], Iterable[Any]] | Sequence[Any]

    def entries(self, summary: SummaryDocument) -> Iterable[Any]:
        """Return the entries of a summary that the table's rows show."""
        if isinstance(self.rows, str):
            return at(summary, self.rows) or ()
        return self.rows(summary) if callable(self.rows) else self.rows

    def __call__(self, summary: SummaryDocument) -> Table | None:
        """Return the table as the report shows it."""
        return self._made(self.entries(summary), PAGE, "all")

    def on_terminal(self, entries: Iterable[Any]) -> Table | None:
        """Return the terminal's table of chosen entries, without columns of counters all at 0."""
        return self._made(entries, TERMINAL, "zeros")

    def listed(self, entries: Iterable[Any], without: Sequence[str] = ()) -> Table | None:
        """Return the table of the given entries with all columns except the keys in `without`."""
        columns = [column for column in self.columns if column.key not in without]
        return make(self.name, self.title, self.about, columns, entries, "none")

    def whole(self, summary: SummaryDocument) -> Table | None:
        """Return the table with all columns of the report, for CSV and JSON."""
        return self._made(self.entries(summary), PAGE, "none")

    def _made(self, entries: Iterable[Any], output: str, fold: str) -> Table | None:
        columns = [column for column in self.columns if column.output in (output, BOTH)]
        return make(self.name, self.title, self.about, columns, entries, fold)


def make(
    name: str,
    title: str,
    about: str,
    columns: Sequence[Column],
    entries: Iterable[Any],
    fold: str = "all",  # zeros: fold only counters that are 0; none: keep all columns
) -> Table | None:
    """Return the table of the given entries; None without entries."""
    rows = list(entries)
    if not rows:
        return None
    kept: list[tuple[Column, list[Any]]] = []
    shared, unseen = [], []
    for column in columns:
        values = [column.of(entry) for entry in rows]
        zeros = column.kind in (COUNT, "number") and not any(values)
        alike = len(set(values)) == 1 and (len(values) > 1 or (column.kind == COUNT and zeros))
        if fold != "none" and all(value is None for value in values):
            unseen += [] if column.seldom else [column.title]
        elif column.fold and {"zeros": zeros, "all": alike, "none": False}[fold]:
            known = next(value for value in values if value is not None)
            said = f"{column.title} {column.show(known)} {column.unit}".rstrip()
            shared += [] if column.silent else [said]
        else:
            kept.append((column, values))
    scaled = []
    for column, values in kept:
        if fold == "none" and column.unit == TOTAL:
            column = replace(column, unit=RATE)
        elif fold != "none" and column.unit in (RATE, TOTAL):  # in the unit that fits the largest
            rates = (some for other, some in kept if other.unit == column.unit)
            unit = format.unit_for(value for some in rates for value in some)
            column = replace(column, unit=unit.name)
            values = [None if value is None else value * unit.scale for value in values]
        scaled.append((column, values))
    return Table(
        name,
        title,
        about,
        tuple(column for column, _ in scaled),
        [values for _, values in scaled],
        shared=f"In all rows: {', '.join(shared)}." if shared else "",
        unseen=f"Not observed in any row: {'; '.join(unseen)}." if unseen else "",
    )


def whole_tables(specs: Iterable[Spec], summary: SummaryDocument) -> Iterator[Table]:
    """Yield the tables of a run that have rows, with all their columns."""
    shown = named(summary)
    yield from filter(None, (spec.whole(shown) for spec in specs))


# --- the terminal ---------------------------------------------------------------------------------


_GAP = "  "
_NARROWEST = 16  # min width in columns to which words are folded


def say(console: Console, text: str, style: str = "", hang: int = 0) -> None:
    """Print a line of text without markup; a newline at its beginning prints an empty line first.

    With `hang` the line is folded to the terminal's width, and its further lines are indented by
    `hang` columns.
    """
    lines = [text]
    if hang and console.width > 2 * hang:
        words = text.removeprefix("\n")
        lines = [""] * (len(text) - len(words))
        lines += wrap(words, console.width, subsequent_indent=" " * hang, break_on_hyphens=False)
    for line in lines:
        console.print(Text(line, style), highlight=False, soft_wrap=True)


def heading(console: Console, text: str) -> None:
    """Print the heading of a table or a list."""
    say(console, f"\n{text}", "bold", hang=2)


def listed(
    console: Console, title: str, sentences: Sequence[str], style: str, most: int | None = None
) -> None:
    """Print a heading and the first `most` sentences of a list; nothing if the list is empty."""
    if not sentences:
        return
    heading(console, title)
    shown = sentences[:most]
    for sentence in shown:
        say(console, f"  {sentence}", style)
    if len(shown) < len(sentences):
        say(console, f"  and {len(sentences) - len(shown)} more (--all)", style)


def note_lines(console: Console, *notes: str) -> None:
    """Print folded notes below a table; empty notes print nothing."""
    for line in (line for note in notes for line in wrap(note, console.width - 2)):
        say(console, f"  {line}", "dim")


def show(
    table: Table | None,
    console: Console,
    title: str = "",
    styles: Sequence[str] = (),
    groups: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> None:
    """Print a table below its title, and below the table notes and the names of omitted columns.

    On a narrow terminal columns with a `drop` order are omitted first, then the widest words are
    folded; numbers are never cut.

    `styles` and `groups` have an element for each row. A group's name is printed above the first of
    its rows.
    """
    if table is None:
        return
    if title:
        heading(console, title)
    laid = [_Laid(c, v) for c, v in zip(table.columns, table.values, strict=True)]
    while (excess := _width(laid) - console.width) > 0:
        soonest = min((one.drop for one in laid if one.drop), default=0)
        if not soonest:
            widest = max((one for one in laid if one.left), key=lambda one: one.width, default=None)
            if widest is not None:
                widest.width = min(widest.width, max(widest.width - excess, _NARROWEST))
            break
        laid = [one for one in laid if one.drop != soonest]
    height = max(len(one.title) for one in laid)
    for line in range(height):
        parts = [one.title[line] if line < len(one.title) else "" for one in laid]
        say(console, _line(laid, parts), "bold")
    if any(one.unit for one in laid):
        say(console, _line(laid, [one.unit for one in laid]))
    say(console, ("-" if console.options.ascii_only else "─") * _width(laid), "dim")
    for row in range(table.rows):
        if groups and (row == 0 or groups[row] != groups[row - 1]):
            say(console, groups[row], "bold")
        cells = [one.folded(row) for one in laid]
        for folded in zip_longest(*cells, fillvalue=""):
            say(console, _line(laid, folded), styles[row] if styles else "")
    note_lines(console, table.shared, table.unseen, *notes)


class _Laid:
    """Column of a table as a terminal prints it."""

    def __init__(self, column: Column, values: Sequence[object]) -> None:
        self.drop = column.drop
        self.left = column.kind in WORDS
        self.cells = [column.show(value) for value in values]
        self.heading = column.title
        words = [*column.title.split(), column.unit]
        self.width = max(map(cell_len, (*self.cells, *words)))
        self.unit = column.unit

    @property
    def title(self) -> list[str]:
        """Return the lines of the column's heading."""
        return wrap(self.heading, self.width)

    def folded(self, row: int) -> list[str]:
        """Return the lines of a row's cell."""
        cell = self.cells[row]
        if cell_len(cell) <= self.width:
            return [cell]
        return wrap(cell, self.width, subsequent_indent="  ", break_on_hyphens=False)

    def pad(self, text: str) -> str:
        """Return a text padded to the column's width."""
        space = " " * (self.width - cell_len(text))
        return text + space if self.left else space + text


def _line(laid: Sequence[_Laid], parts: Sequence[str]) -> str:
    return _GAP.join(one.pad(part) for one, part in zip(laid, parts, strict=True)).rstrip()


def _width(laid: Sequence[_Laid]) -> int:
    return sum(one.width + len(_GAP) for one in laid) - len(_GAP)


FILE_WIDTH = 160  # columns of a file or a pipe, which get long lines instead of folded ones


def make_console() -> Console:
    """Return a console on standard output; if that is no terminal, wide and without colour."""
    terminal = Console(highlight=False)
    if terminal.is_terminal:
        return terminal
    return Console(width=FILE_WIDTH, no_color=True, highlight=False)
