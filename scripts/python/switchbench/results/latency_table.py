# SPDX-License-Identifier: BSD-3-Clause
"""Times in the printed result: every kind and figure, the floor beside them, what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import figures
from .latency import FIGURES, KINDS

Entry = Mapping[str, Any]

_WORDS = {
    "one_way": "one way",
    "ipdv": "variation",
    "round_trip": "round trip",
    "pingpong": "ping-pong",
}
_TITLES = {"p99_9": "p99.9", "p99_99": "p99.99", "pdv": "PDV"}


def floor_words(summary: Entry) -> str | None:
    """What a loopback in the same software takes, in a sentence; None: not measured."""
    floors: list[Entry] = summary.get("floors", [])
    words = [
        f"{_WORDS[floor['kind']]} {figures.digits(floor['p50'])}"
        for floor in floors
        if floor["node"] == floors[0]["node"] and floor["kind"] in ("one_way", "round_trip")
    ]
    if not words:
        return None
    return f"the software's own path on a loopback: {', '.join(words)} µs (p50)"


def show(trials: Sequence[Entry], floors: Sequence[Entry], console: Console) -> list[str]:
    """Prints all times of all phases; returns a note for every reason why one is not known."""
    rows = [row for entry in trials for row in _rows(entry)]
    if not rows:
        return ["no times were measured"]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for title in ("of", "kind"):
        table.add_column(title, no_wrap=True)
    for title in ("times", "lost", "± µs", *(_TITLES.get(name, name) for name in FIGURES)):
        table.add_column(title, justify="right", no_wrap=True)
    for floor in floors:
        table.add_row(f"loopback in {escape(floor['node'])}", *_cells(floor["kind"], floor))
    for label, kind, times in rows:
        table.add_row(escape(label), *_cells(kind, times))
    console.print(table)
    return list(dict.fromkeys(_notes(rows)))


def _rows(entry: Entry) -> Iterator[tuple[str, str, Entry]]:
    kinds: Mapping[str, Any] = entry.get("latency") or {}
    for kind in KINDS:
        if kinds.get(kind) is not None:
            name = entry.get("phase_name") or entry["phase"]
            label = f"{figures.pattern(entry)}, {name}, {figures.size(entry)}"
            yield f"trial {entry['trial']} {label}", kind, kinds[kind]


def _cells(kind: str, times: Entry) -> list[str]:
    bound = times["bound"]
    return [
        _WORDS[kind],
        figures.count(times["count"]),
        figures.count(times["lost"]),
        figures.digits(bound),
        *(figures.digits(times[name]) for name in FIGURES),
    ]


def _notes(rows: Iterable[tuple[str, str, Entry]]) -> Iterator[str]:
    for _label, kind, times in rows:
        for reason in dict.fromkeys(times["reasons"].values()):
            yield f"{_WORDS[kind]}: {reason}"
