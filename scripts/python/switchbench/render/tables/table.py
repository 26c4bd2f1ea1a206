# SPDX-License-Identifier: BSD-3-Clause
"""A table of the report as a value: columns with their meaning, and rows taken from the summary.

What no row has is left out and said below the table, as what all rows share is said above it: a
page is as wide as what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...base.format import Unit, flow, unit_for
from ..report.definitions import definition

Entry = Mapping[str, Any]

RATE = "Mbit/s"  # shown in the unit that fits a column's largest value


@dataclass(frozen=True)
class Column:
    """One column; `key` is where an entry has its value, such as `throughput.min`."""

    title: str
    key: str
    kind: str = "number"  # text, verdict, number (4 digits), percent (2 places), count
    unit: str = ""
    fold: bool = False  # said once where it is the same in all rows
    seldom: bool = False  # does not apply to most runs: nothing is said where no row has it
    defined: str = ""  # the definition's key, where that is not `key`
    about: str = ""  # its definition, where no key has it
    value: Callable[[Entry], Any] | None = None  # made of the entry, where it does not hold it

    def of(self, entry: Entry) -> Any:
        """This column's value of an entry."""
        return self.value(entry) if self.value else at(entry, self.key)

    @property
    def definition(self) -> str:
        """What its numbers are."""
        return self.about or definition(self.defined or self.key)


@dataclass(frozen=True)
class Table:
    """Columns and their values, ready for the page; `shared` and `unseen` are sentences."""

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
        """What page/table.js reads."""
        named = [
            {"title": c.title, "kind": c.kind, "unit": c.unit, "definition": c.definition}
            for c in self.columns
        ]
        return {"columns": named, "values": self.values}


def at(entry: Any, key: str) -> Any:
    """The value below a path of keys; None where there is none: older results have fewer."""
    for name in key.split("."):
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(name)
    return entry


def make(
    name: str, title: str, about: str, columns: Sequence[Column], entries: Iterable[Entry]
) -> Table | None:
    """A table of these entries; None where there are none."""
    rows = list(entries)
    if not rows:
        return None
    kept: list[tuple[Column, list[Any]]] = []
    shared, unseen = [], []
    for column in columns:
        values = [_plain(column, column.of(entry)) for entry in rows]
        if all(value is None for value in values):
            unseen += [] if column.seldom else [column.title]
        elif column.fold and len(rows) > 1 and len(set(values)) == 1:
            shared.append(f"{column.title} {_said(column, values[0])}")
        else:
            kept.append(_scaled(column, values))
    return Table(
        name,
        title,
        about,
        tuple(column for column, _ in kept),
        [values for _, values in kept],
        shared=f"In all rows: {', '.join(shared)}." if shared else "",
        unseen=f"Not observed in any row: {'; '.join(unseen)}." if unseen else "",
    )


def _plain(column: Column, value: Any) -> Any:
    """As the page compares it: words for what is no number."""
    if column.kind in ("text", "verdict"):
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, Mapping) and "src" in value:
            return flow(value)
        if isinstance(value, list):
            return "; ".join(map(str, value)) or None
        return None if value is None else str(value)
    return value if isinstance(value, int | float) else None


def _said(column: Column, value: Any) -> str:
    return f"{value:g} {column.unit}".rstrip() if isinstance(value, float) else str(value)


def _scaled(column: Column, values: list[Any]) -> tuple[Column, list[Any]]:
    """Rates in the unit that fits the largest; all others as they are."""
    if column.unit != RATE:
        return column, values
    unit: Unit = unit_for(values)
    scaled = [None if value is None else value * unit.scale for value in values]
    return replace(column, unit=unit.name), scaled
