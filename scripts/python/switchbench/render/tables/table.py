# SPDX-License-Identifier: BSD-3-Clause
"""A table declared once: its columns with unit, format and meaning, and where its rows come from.

Four writers print it: the terminal (terminal/grid.py), the report (`Table.data`, for
page/table.js), CSV (`Table.lines`) and JSON (`Table.json`). On a terminal and a page what no row
has is left out and named below the table, what all rows share stands above it, and rates have the
unit that fits them. CSV and JSON have all columns, in the units that are declared.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...base import format
from ...base.errors import RunError
from ...base.measures import COUNT, MEASURES, PERCENT
from ...records.document.schema import at, definition
from ..first_screen import named

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

    def data(self) -> dict[str, Any]:
        """Return what page/table.js reads."""
        named = [
            {"title": c.title, "kind": c.kind, "unit": c.unit, "definition": c.definition}
            for c in self.columns
        ]
        return {"columns": named, "values": self.values}

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
