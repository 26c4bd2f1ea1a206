# SPDX-License-Identifier: BSD-3-Clause
"""The printed table of other programs' figures, and what they are in our terms."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from ...base import format

_MOST = 3  # sizes of one benchmark that are all shown
_TITLES = ("program", "benchmark", "ranks", "size", "figure", "value", "unit", "as ours")


def show(summary: Mapping[str, Any], console: Console, everything: bool = False) -> None:
    """Prints those that stand beside others' by definition, of many sizes the largest;
    `everything`: all of them."""
    entries = summary.get("imported") or []
    if not entries:
        return
    rows = [
        _cells(entry)
        for _, group in groupby(entries, key=_benchmark)
        for entry in _shown(list(group), everything)
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for title, column in zip(_TITLES, zip(_TITLES, *rows, strict=True), strict=True):
        side: JustifyMethod = "right" if title in ("ranks", "size", "value") else "left"
        table.add_column(title, justify=side, no_wrap=True, min_width=max(map(len, column)))
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table, soft_wrap=True)  # no name is cut on a narrow terminal
    joined = sum(1 for entry in entries if entry["comparable"])
    rest = "" if everything else "; --all shows all"
    console.print(
        f"{format.of(len(entries), 'figure')}, {joined} by a definition that others share{rest}",
        highlight=False,
    )


def _benchmark(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return entry["file"], entry["benchmark"], entry["ranks"]


def _shown(rows: list[Any], everything: bool) -> list[Any]:
    return rows if everything else _foremost(rows)


def _foremost(rows: list[Any]) -> list[Any]:
    rows = [row for row in rows if row["comparable"]]
    sizes = {row["size"] for row in rows}
    if len(sizes) <= _MOST:
        return rows
    largest = max(size for size in sizes if size is not None)
    return [row for row in rows if row["size"] == largest]


def _cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    ours, size = entry["comparable"], entry["size"]
    converted = ""
    if ours:
        value = format.scientific(ours["value"])
        converted = f"{value} {ours['unit']} ({ours['measure']})".replace(" us ", " µs ")
    version = f" {entry['version']}" if entry["version"] else ""
    return (
        f"{entry['tool']}{version}",
        entry["benchmark"],
        format.UNKNOWN if entry["ranks"] is None else str(entry["ranks"]),
        format.UNKNOWN if size is None else format.binary(size) if size else "0 B",
        entry["name"],
        format.scientific(entry["value"]),
        entry["unit"].replace("us", "µs"),
        converted,
    )
