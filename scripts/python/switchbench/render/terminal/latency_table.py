# SPDX-License-Identifier: BSD-3-Clause
"""Times in the printed result: every kind and figure, the floor above them, what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from ...base import format
from ...base.model import LATENCY_FIGURES, LATENCY_KINDS, PERCENTILES
from ...records.latency import needed

Entry = Mapping[str, Any]

_WORDS = {
    "one_way": "one way",
    "ipdv": "variation",
    "round_trip": "round trip",
    "pingpong": "ping-pong",
}
_TITLES = {"p99_9": "p99.9", "p99_99": "p99.99", "pdv": "PDV"}
_DROPPED = ("worst flow", "p90", "mean", "p99.99", "PDV", "p99.9")  # in this order, when narrow
_GAP = 2


@dataclass(frozen=True)
class Block:
    """Times that belong together: a phase's by kind, or a floor's."""

    title: str
    times: Mapping[str, Entry]  # by kind


def floor_words(summary: Entry) -> str | None:
    """What a loopback in the same software takes, in a sentence; None: not measured."""
    floors: list[Entry] = summary.get("loopback_baselines", [])
    words = [
        f"{_WORDS[floor['kind']]} {format.digits(floor['p50'])}"
        for floor in floors
        if floor["node"] == floors[0]["node"] and floor["kind"] in ("one_way", "round_trip")
    ]
    if not words:
        return None
    return f"the software's own path on a loopback: {', '.join(words)} µs (p50)"


def floor_blocks(floors: Sequence[Entry]) -> list[Block]:
    """One for each node that measured it."""
    nodes: dict[str, dict[str, Entry]] = {}
    for floor in floors:
        nodes.setdefault(floor["node"], {})[floor["kind"]] = floor
    return [
        Block(f"the software's own path, by a loopback in {node}", by) for node, by in nodes.items()
    ]


def show(blocks: Sequence[Block], console: Console) -> Iterator[str]:
    """Prints all times, and yields a note for every reason why one is not known."""
    kinds = [(block, kind) for block in blocks for kind in LATENCY_KINDS if block.times.get(kind)]
    if not kinds:
        yield "no times were measured"
        return
    columns = _fitting([_cells(kind, block.times[kind]) for block, kind in kinds], console.width)
    console.print(_line({title: title for title in columns}, columns), soft_wrap=True)
    before = None
    for block, kind in kinds:
        if block is not before:
            console.print(escape(block.title), style="bold", highlight=False, soft_wrap=True)
        before = block
        console.print(_line(_cells(kind, block.times[kind]), columns), soft_wrap=True)
    yield from _notes([(kind, block.times[kind]) for block, kind in kinds])


def _cells(kind: str, times: Entry) -> dict[str, str]:
    return {
        "": f"  {_WORDS[kind]}",
        "times": format.count(times["count"]),
        "lost": format.count(times["lost"]),
        **{_TITLES.get(name, name): format.digits(times[name]) for name in LATENCY_FIGURES},
        "worst flow": format.flow(times["worst"]) if times.get("worst") else "",
    }


def _fitting(rows: Sequence[Mapping[str, str]], width: int) -> dict[str, int]:
    """The columns and their widths, less those that a narrow terminal has no room for."""
    columns = {title: max(len(title), *(len(row[title]) for row in rows)) for title in rows[0]}
    for title in _DROPPED:
        if sum(columns.values()) + _GAP * (len(columns) - 1) > width:
            del columns[title]
    return columns


def _line(cells: Mapping[str, str], columns: Mapping[str, int]) -> Text:
    left = ("", "worst flow")
    words = [
        cells[title].ljust(width) if title in left else cells[title].rjust(width)
        for title, width in columns.items()
    ]
    return Text((" " * _GAP).join(words).rstrip())


def _notes(kinds: Iterable[tuple[str, Entry]]) -> Iterator[str]:
    """What may be wrong, and why a figure is missing; too few times are said once for all."""
    notes: dict[str, None] = {}
    few = set()
    for kind, times in kinds:
        if times["bound"]:
            bound = format.digits(times["bound"])
            notes[f"{_WORDS[kind]}: ± {bound} µs, which the clocks may differ by"] = None
        for name, reason in times["reasons"].items():
            if name in PERCENTILES and 0 < times["count"] < needed(PERCENTILES[name]):
                few.add(name)
            elif not (name == "pdv" and times["p99_9"] is None):
                notes[f"{_WORDS[kind]}: {reason}"] = None
    yield from notes
    if few:
        words = (
            f"{_TITLES.get(name, name)} needs {needed(share):,}"
            for name, share in PERCENTILES.items()
            if name in few
        )
        yield f"-: too few times: {', '.join(words)}"
