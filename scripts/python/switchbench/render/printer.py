# SPDX-License-Identifier: BSD-3-Clause
"""A table declared once: its columns with unit, format and meaning, and where its rows come from.

Four writers print it: the terminal (`show`), the report (`Table.data`, for
page/table.js), CSV (`Table.lines`) and JSON (`Table.json`). On a terminal and a page what no row
has is left out and named below the table, what all rows share stands above it, and rates have the
unit that fits them. CSV and JSON have all columns, in the units that are declared.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ..base import format
from ..base.errors import RunError
from ..base.measures import COUNT, MEASURES, PERCENT
from ..records.summary_form import at, definition
from .first_screen import named

Entry = Mapping[str, Any]
Summary = Mapping[str, Any]

RATE = "Mbit/s"  # shown in the unit that fits the table's largest value
TOTAL = "Mbit/s of all"  # the same, in a unit of its own
BOTH, TERMINAL, PAGE = "both", "terminal", "page"  # outputs of a column

# How a column's values are printed; page/table.js has the same.
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
    """One column; `key` is where an entry has its value, such as `throughput.min`."""

    title: str
    key: str
    kind: str = "number"  # of SHOWN
    unit: str = ""
    fold: bool = False  # said once where it is the same in all rows
    seldom: bool = False  # does not apply to most runs: nothing is said where no row has it
    defined: str = ""  # the definition's key, where that is not `key`
    about: str = ""  # its definition, where no key has it
    note: str = ""  # one more sentence behind it
    value: Callable[[Any], Any] | None = None  # made of the entry, where it does not hold it
    output: str = BOTH
    drop: int = 0  # how soon it goes when the terminal is narrow; 0: never
    silent: bool = False  # folds without a word

    def of(self, entry: Any) -> Any:
        """Return the column's value of an entry; words for what is no number."""
        if self.value:
            value = self.value(entry)
        else:  # a summary's, or an object of ours
            held = isinstance(entry, Mapping)
            value = at(entry, self.key) if held else getattr(entry, self.key)
        if self.kind not in WORDS:
            return value if isinstance(value, int | float) else None
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, Mapping) and "src" in value:
            return format.flow(value)
        if isinstance(value, list):
            return "; ".join(map(str, value)) or None
        return None if value is None else str(value)

    def show(self, value: Any) -> str:
        """Return a value for people."""
        if value is None:
            return "" if self.kind == "mark" else format.UNKNOWN
        return SHOWN[self.kind](value)

    @property
    def heading(self) -> str:
        """Title and unit on one line."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def meant(self) -> str:
        """The key of its definition."""
        return self.defined or self.key

    @property
    def definition(self) -> str:
        """What its numbers are."""
        said = self.about or definition(self.meant)
        return f"{said}. {self.note}" if self.note else said


def text(title: str, key: str, **options: Any) -> Column:
    """Return a column of words."""
    return Column(title, key, "text", **options)


def count(title: str, key: str, **options: Any) -> Column:
    """Return a column of counts."""
    return Column(title, key, "count", **options)


def measured(key: str, **options: Any) -> Column:
    """Return the column of a measure of base.measures; `options` as of any other column."""
    measure = MEASURES[key]
    kind = measure.format if measure.format in (PERCENT, COUNT) else "number"
    unit = "" if kind == COUNT else measure.unit.replace("us", "µs")
    return Column(measure.title, measure.entry, kind, **{"unit": unit} | options)


@dataclass(frozen=True)
class Table:
    """Columns and their values; `shared` and `unseen` are sentences."""

    name: str  # its place in the page, and its file's name when saved
    title: str
    about: str
    columns: tuple[Column, ...]
    values: list[list[Any]] = field(repr=False)  # one list for each column
    shared: str = ""
    unseen: str = ""

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.values[0]) if self.values else 0

    @property
    def drawn(self) -> bool:
        """Whether a page draws it; else all rows are alike, and what they share is said."""
        return len(self.columns) > 1

    def data(self) -> dict[str, Any]:
        """Return what page/table.js reads."""
        named = [
            {"title": c.title, "kind": c.kind, "unit": c.unit, "definition": c.definition}
            for c in self.columns
        ]
        return {"columns": named, "values": self.values}

    def shown(self) -> Iterator[list[tuple[Column, str]]]:
        """Yield the rows as people read them, each value with its column."""
        for row in zip(*self.values, strict=True):
            yield [(c, c.show(value)) for c, value in zip(self.columns, row, strict=True)]

    def lines(self) -> Iterator[list[Any]]:
        """Yield the lines of CSV: the headings, then each row; empty where nothing was observed."""
        yield [column.heading for column in self.columns]
        yield from (list(row) for row in zip(*self.values, strict=True))

    def json(self) -> dict[str, Any]:
        """Return the table for programs: its columns, and a mapping by their keys for each row.

        Null where nothing was observed.
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
    """A table that is declared: called with a summary it is made, None where it has no rows.

    `rows`: where the summary has its entries, what makes them, or they themselves; `defined`: below
    which key the definitions of its columns are.
    """

    name: str
    title: str
    about: str
    columns: tuple[Column, ...]
    rows: str | Callable[[Any], Iterable[Any]] | Sequence[Any]
    defined: str = ""

    def __post_init__(self) -> None:
        """Put the columns' definitions below the table's key."""
        if self.defined:
            below = (replace(c, defined=f"{self.defined}.{c.meant}") for c in self.columns)
            object.__setattr__(self, "columns", tuple(below))

    def entries(self, summary: Summary) -> Iterable[Any]:
        """Return what its rows are of."""
        if isinstance(self.rows, str):
            return at(summary, self.rows) or ()
        return self.rows(summary) if callable(self.rows) else self.rows

    def __call__(self, summary: Summary) -> Table | None:
        """As in the report."""
        return self._made(self.entries(summary), PAGE, "all")

    def on_terminal(self, entries: Iterable[Any]) -> Table | None:
        """Of entries that were chosen from its own; only counters that are 0 are folded."""
        return self._made(entries, TERMINAL, "zeros")

    def listed(self, entries: Iterable[Any], without: Sequence[str] = ()) -> Table | None:
        """Return the table of these entries with all columns, but for those of some keys."""
        columns = [column for column in self.columns if column.key not in without]
        return make(self.name, self.title, self.about, columns, entries, "none")

    def whole(self, summary: Summary) -> Table | None:
        """Return it with all columns of the report, for CSV and JSON."""
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
    fold: str = "all",  # zeros: only counters that are 0; none: nothing, all columns stay
) -> Table | None:
    """Return a table of these entries; None where there are none."""
    rows = list(entries)
    if not rows:
        return None
    kept: list[tuple[Column, list[Any]]] = []
    shared, unseen = [], []
    for column in columns:
        values = [column.of(entry) for entry in rows]
        if fold != "none" and all(value is None for value in values):
            unseen += [] if column.seldom else [column.title]
        elif column.fold and _folds(column, values, fold):
            known = next(value for value in values if value is not None)
            said = f"{column.title} {column.show(known)} {column.unit}".rstrip()
            shared += [] if column.silent else [said]
        else:
            kept.append((column, values))
    scaled = list(_declared(kept) if fold == "none" else _scaled(kept))
    return Table(
        name,
        title,
        about,
        tuple(column for column, _ in scaled),
        [values for _, values in scaled],
        shared=f"In all rows: {', '.join(shared)}." if shared else "",
        unseen=f"Not observed in any row: {'; '.join(unseen)}." if unseen else "",
    )


def _folds(column: Column, values: Sequence[Any], fold: str) -> bool:
    if fold == "zeros":
        return column.kind in (COUNT, "number") and not any(values)
    zero = column.kind == COUNT and values[0] == 0
    return fold == "all" and (len(values) > 1 or zero) and len(set(values)) == 1


def _scaled(kept: Sequence[tuple[Column, list[Any]]]) -> Iterator[tuple[Column, list[Any]]]:
    """Rates in the unit that fits the largest of them; all others as they are."""
    for column, values in kept:
        if column.unit not in (RATE, TOTAL):
            yield column, values
            continue
        alike = (some for other, some in kept if other.unit == column.unit)
        unit = format.unit_for(value for some in alike for value in some)
        scaled = [None if value is None else value * unit.scale for value in values]
        yield replace(column, unit=unit.name), scaled


def _declared(kept: Sequence[tuple[Column, list[Any]]]) -> Iterator[tuple[Column, list[Any]]]:
    """Yield rates as they are measured."""
    for column, values in kept:
        yield replace(column, unit=RATE) if column.unit == TOTAL else column, values


def whole_tables(specs: Iterable[Spec], summary: Summary) -> Iterator[Table]:
    """Yield the tables that a run has, with all their columns."""
    shown = named(summary)
    yield from filter(None, (spec.whole(shown) for spec in specs))


def write_csv(specs: Iterable[Spec], summary: Summary, folder: Path) -> list[Path]:
    """Write FOLDER/NAME.csv of each table that the run has; return their paths."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in whole_tables(specs, summary):
            written.append(folder / f"{table.name}.csv")
            with written[-1].open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(table.lines())
    except OSError as error:
        raise RunError(f"can't write into {folder}: {error.strerror or error}") from error
    return written


# --- the terminal ---------------------------------------------------------------------------------


_GAP = "  "
_NARROWEST = 16  # of words that are folded


def say(console: Console, text: str, style: str = "", hang: int = 0) -> None:
    """Print a line of words, in which nothing is markup; a newline before it is an empty line.

    `hang`: it is folded to the terminal's width, and goes on so far from the margin.
    """
    lines = [text]
    if hang and console.width > 2 * hang:
        words = text.removeprefix("\n")
        lines = [""] * (len(text) - len(words))
        lines += wrap(words, console.width, subsequent_indent=" " * hang, break_on_hyphens=False)
    for line in lines:
        console.print(Text(line, style), highlight=False, soft_wrap=True)


def heading(console: Console, text: str) -> None:
    """Above a table or a list."""
    say(console, f"\n{text}", "bold", hang=2)


def listed(
    console: Console, title: str, sentences: Sequence[str], style: str, most: int | None = None
) -> None:
    """Sentences below a heading, at most so many; nothing where there are none."""
    if not sentences:
        return
    heading(console, title)
    shown = sentences[:most]
    for sentence in shown:
        say(console, f"  {sentence}", style)
    if len(shown) < len(sentences):
        say(console, f"  and {len(sentences) - len(shown)} more (--all)", style)


def note_lines(console: Console, *notes: str) -> None:
    """Below a table, folded; empty ones are none."""
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
    """Print a table below its title, and below it what was left out.

    On a narrow terminal columns go, of which the declaration says so, then the widest words are
    folded; no figure is cut.

    `styles`: of the rows; `groups`: what stands above each row that has another than the one
    before.
    """
    if table is None:
        return
    if title:
        heading(console, title)
    laid = _fitting(
        [_Laid(c, v) for c, v in zip(table.columns, table.values, strict=True)], console
    )
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
    """A column as it is printed."""

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
        """Its lines."""
        return wrap(self.heading, self.width)

    def folded(self, row: int) -> list[str]:
        """Return the lines of a cell."""
        cell = self.cells[row]
        if cell_len(cell) <= self.width:
            return [cell]
        return wrap(cell, self.width, subsequent_indent="  ", break_on_hyphens=False)

    def pad(self, text: str) -> str:
        """To the column's width."""
        space = " " * (self.width - cell_len(text))
        return text + space if self.left else space + text


def _line(laid: Sequence[_Laid], parts: Sequence[str]) -> str:
    return _GAP.join(one.pad(part) for one, part in zip(laid, parts, strict=True)).rstrip()


def _width(laid: Sequence[_Laid]) -> int:
    return sum(one.width + len(_GAP) for one in laid) - len(_GAP)


def _fitting(laid: list[_Laid], console: Console) -> list[_Laid]:
    """Return those that there is room for; those of one order go together.

    Then the widest words.
    """
    while (excess := _width(laid) - console.width) > 0:
        soonest = min((one.drop for one in laid if one.drop), default=0)
        if not soonest:
            widest = max((one for one in laid if one.left), key=lambda one: one.width, default=None)
            if widest is not None:
                widest.width = min(widest.width, max(widest.width - excess, _NARROWEST))
            break
        laid = [one for one in laid if one.drop != soonest]
    return laid


FILE_WIDTH = 160  # a file or a pipe gets long lines instead of folded ones


def make_console() -> Console:
    """Return standard output: its own width on a terminal, else long lines of text alone."""
    terminal = Console(highlight=False)
    if terminal.is_terminal:
        return terminal
    return Console(width=FILE_WIDTH, no_color=True, highlight=False)
