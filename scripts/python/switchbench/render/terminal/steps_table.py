# SPDX-License-Identifier: BSD-3-Clause
"""The tables of what goes by steps: IMB's columns beside ours, and HPCC's measures by its names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...base import format
from ...base.format import Unit, unit_for

Entry = Mapping[str, Any]

IMB_WORDS = (
    "IMB's columns: times over ranks of the mean repetition (PingPong: half of it), MB of 10^6 "
    "bytes, Sendrecv counts twice, Exchange four times what a rank sends. Ours: what reached a "
    "port, and times of single repetitions"
)
HPCC_WORDS = (
    "as bench_lat_bw of HPCC computes them: of each ring the slowest process by the better method, "
    "best of five (8 bytes) and two (2,000,000), geometric mean over random rings; GB of 10^9 bytes"
)


def show(steps: Entry, console: Console) -> None:
    """Prints what there is of the summary's `steps`."""
    functions, suites = steps.get("functions", []), steps.get("hpcc", [])
    for entry in functions:
        _function(entry, console)
    if functions:
        _say(IMB_WORDS, console)
    if suites:
        _suites(suites, console)
    _kernels(steps.get("kernels", []), steps.get("rankings", []), console)


def _path(entry: Entry) -> str:
    return (
        f"{format.pattern(entry)}, {format.of(entry['ranks'], 'rank')}, {entry['transport']} in "
        f"{entry['network']}"
    )


def _function(entry: Entry, console: Console) -> None:
    points = entry["points"]
    unit = unit_for(point["port_mbps"] for point in points)
    columns = [column for column in _columns(unit) if any(column.has(point) for point in points)]
    _heading(_path(entry), console)
    table = _table(*(escape(column.title) for column in columns))
    for point in points:
        table.add_row(*(column.show(point) for column in columns))
    console.print(table)


@dataclass(frozen=True)
class _Column:
    """A column of a function's table; one of which no point has anything is left out."""

    title: str
    value: Callable[[Entry], Any]
    words: Callable[[Any], str] = format.digits
    zero: bool = True  # whether 0 is worth a column

    def has(self, point: Entry) -> bool:
        """Whether there is something to show."""
        value = self.value(point)
        return value is not None and (self.zero or value != 0)

    def show(self, point: Entry) -> str:
        """The cell."""
        value = self.value(point)
        return format.UNKNOWN if value is None else self.words(value)


def _columns(unit: Unit) -> tuple[_Column, ...]:
    """IMB's, then ours."""
    return (
        _Column("#bytes", lambda point: point["size"], str),
        _Column("#repetitions", lambda point: point["repetitions"], str),
        _Column("t_min\n[usec]", lambda point: point["imb"]["t_min_us"]),
        _Column("t_max\n[usec]", lambda point: point["imb"]["t_max_us"]),
        _Column("t_avg\n[usec]", lambda point: point["imb"]["t_avg_us"]),
        _Column("Mbytes\n/sec", lambda point: point["imb"]["mbytes_s"]),
        _Column(f"port\n{unit.name}", lambda point: point["port_mbps"], unit.show),
        _Column("p50\nµs", lambda point: point["repetition_us"]["p50"]),
        _Column("p99\nµs", lambda point: point["repetition_us"]["p99"]),
        _Column("95 % interval\nµs", lambda point: point["ci_us"], _interval),
        _Column("verified", lambda point: point["verified"], format.count),
        _Column("lost\nmsgs", lambda point: point["lost_messages"], format.count, zero=False),
        _Column("given\nup", lambda point: point["timeouts"], format.count, zero=False),
    )


def _interval(ends: Entry) -> str:
    return f"{format.digits(ends['low'])} to {format.digits(ends['high'])}"


def _suites(suites: Sequence[Entry], console: Console) -> None:
    """A row for each of HPCC's names, a column for each run of the suite."""
    _heading("HPCC's network measures", console)
    titles = [
        f"{suite['transport']} in {suite['network']}\n{format.of(suite['ranks'], 'rank')}"
        for suite in suites
    ]
    table = _table("", *titles)
    for name in suites[0]["outputs"]:
        table.add_row(name, *(format.digits(suite["outputs"][name]) for suite in suites))
    console.print(table)
    for suite, title in zip(suites, titles, strict=True):
        better = Counter(ring["better"] for ring in suite["rings"] if ring["better"])
        words = ", ".join(f"{method} on {count}" for method, count in better.most_common())
        pairs = len({(pair["src"], pair["dst"]) for pair in suite["pairs"]})
        _say(
            f"{title.replace(chr(10), ', ')}: the better method was {words or 'not seen'} of the "
            f"rings; {format.of(pairs, 'pair')} one at a time",
            console,
        )
    _say(HPCC_WORDS, console)


def _kernels(kernels: Sequence[Entry], rankings: Sequence[Entry], console: Console) -> None:
    """The time of each whole benchmark, and which path is the fastest."""
    if not kernels:
        return
    unit = unit_for(kernel["port_mbps"] for kernel in kernels)
    _heading("Application kernels: time of the whole benchmark (doc/kernels.md)", console)
    table = _table("", "ranks", "iterations", "timed", "one\nms", "whole\ns", "95 % interval\ns")
    table.add_column(f"port\n{unit.name}", justify="right")
    for kernel in kernels:
        one_us, ends = kernel["iteration_us"], kernel["ci_s"]
        table.add_row(
            f"{format.pattern(kernel)}, {kernel['transport']} in {kernel['network']}",
            str(kernel["ranks"]),
            format.count(kernel["iterations"]),
            format.count(kernel["repetitions"]),
            format.digits(None if one_us is None else one_us / 1e3),
            format.digits(kernel["total_s"]),
            format.UNKNOWN if ends is None else _interval(ends),
            unit.show(kernel["port_mbps"]),
        )
    console.print(table)
    if rankings:
        _rankings(rankings, console)


def _rankings(rankings: Sequence[Entry], console: Console) -> None:
    _heading("Which network is the fastest for each kernel", console)
    table = _table("", "ranks", "place", "", "whole\ns", "times the\nfastest")
    for ranking in rankings:
        for place, path in enumerate(ranking["paths"], start=1):
            table.add_row(
                format.pattern(ranking) if place == 1 else "",
                str(ranking["ranks"]) if place == 1 else "",
                str(place),
                escape(path["path"]),
                format.digits(path["total_s"]),
                format.digits(path["ratio_to_fastest"]),
            )
    console.print(table)


def _heading(text: str, console: Console) -> None:
    console.print(f"\n{escape(text)}", style="bold", highlight=False)


def _say(text: str, console: Console) -> None:
    console.print(f"  {escape(text)}", style="dim", highlight=False)


def _table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for number, title in enumerate(titles):
        table.add_column(title, justify="left" if number == 0 and not title else "right")
    return table
