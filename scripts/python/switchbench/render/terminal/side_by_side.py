# SPDX-License-Identifier: BSD-3-Clause
"""The table of transports side by side, made of the summary's `comparisons` alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from ...base import format
from ...base.format import Unit, unit_for

Entry = dict[str, Any]

UNEQUAL = "*"  # frames whose payload is not the message's
POLLS = "p"


@dataclass(frozen=True)
class _Column:
    """A column; those with the highest `drop` go first when the terminal is narrow, 0 never."""

    title: str
    cells: list[str]
    drop: int = 0
    right: bool = True


def show(comparisons: Sequence[Entry], console: Console) -> Iterator[str]:
    """Prints one table for each group of comparisons with the same columns; yields the notes that
    stand below each, after it was printed."""
    for group in _groups(comparisons):
        unit = unit_for(one["throughput"]["mean"] for entry in group for one in entry["transports"])
        base = group[0]["baseline"]
        console.print(
            f"\nTransports side by side, payload in {unit.name}, one way; ÷ is by {base}'s",
            style="bold",
            highlight=False,
        )
        console.print(_fitting(_columns(group, unit), console))
        yield from _notes(group)


def _groups(comparisons: Sequence[Entry]) -> list[list[Entry]]:
    """Comparisons of the same transports at the same settings, so that they share columns."""
    found: dict[str, list[Entry]] = {}
    for entry in comparisons:
        key = repr((entry["baseline"], [_name(one) for one in entry["transports"]]))
        found.setdefault(key, []).append(entry)
    return list(found.values())


def _name(one: Entry) -> str:
    """`tcp`; `verbs depth 16` where the sweep chose."""
    words = [one["transport"]]
    for key, value in one["options"].items():
        words.append(f"{key.partition('.')[2].replace('_', ' ')} {value}")
    return "\n".join(words)


def _columns(group: list[Entry], unit: Unit) -> list[_Column]:
    names = [_name(one) for one in group[0]["transports"]]
    numbers = range(len(names))
    base = group[0]["baseline"]
    columns = [
        _Column("pattern", [format.pattern(entry) for entry in group], right=False),
        _Column("ranks", [str(entry["ranks"]) for entry in group], drop=3),
        _Column("message", [format.binary(entry["message_bytes"]) for entry in group]),
    ]
    columns += [_Column(names[i], [_rate(e, i, unit) for e in group]) for i in numbers]
    others = [i for i in numbers if not _is_base(group[0]["transports"][i], base, names)]
    columns += [
        _Column(f"{names[i]}\n÷ {base}", [_ratio(e, i, "throughput") for e in group])
        for i in others
    ]
    columns += [
        _Column(f"CPU s/GB\n{names[i]}", [_cpu(e, i) for e in group], drop=1) for i in numbers
    ]
    columns += [
        _Column(f"CPU {names[i]}\n÷ {base}", [_ratio(e, i, "cpu_s_per_gb") for e in group], drop=2)
        for i in others
    ]
    return columns


def _is_base(one: Entry, base: str, names: list[str]) -> bool:
    """The baseline needs no ratio to itself, unless it ran at several settings."""
    return bool(one["transport"] == base and names.count(base) == 1)


def _rate(entry: Entry, i: int, unit: Unit) -> str:
    one = entry["transports"][i]
    return unit.show(one["throughput"]["mean"]) + ("" if one["equal_size"] else UNEQUAL)


def _ratio(entry: Entry, i: int, name: str) -> str:
    value = entry["transports"][i]["ratio"][name]
    return format.UNKNOWN if value is None else f"{value:.2f}"


def _cpu(entry: Entry, i: int) -> str:
    one = entry["transports"][i]
    return format.digits(one["cpu_s_per_gb"]) + (POLLS if one["polling"] else "")


def _fitting(columns: list[_Column], console: Console) -> Table:
    left = list(columns)
    while _width(left, console) > console.width and any(column.drop for column in left):
        most = max(column.drop for column in left)
        left = [column for column in left if column.drop != most]
    return _table(left)


def _width(columns: list[_Column], console: Console) -> int:
    options = console.options.update(max_width=10_000)
    return Measurement.get(console, options, _table(columns)).maximum


def _table(columns: list[_Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=True)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(escape, row))
    return table


# --- below the table -----------------------------------------------------------------------------


def _notes(group: list[Entry]) -> Iterator[str]:
    base = group[0]["baseline"]
    yield (
        f"÷ {base}: payload above 1.00 is faster than {base}, CPU above 1.00 costs more; CPU is "
        "that of the whole machines, kernel and softirq included"
    )
    every = [one for entry in group for one in entry["transports"]]
    if any(one["polling"] for one in every):
        yield f"{POLLS}: polling: a core burns for each worker, whatever comes"
    sizes = sorted({one["message_bytes"] for one in every if not one["equal_size"]} - {None})
    if sizes:
        payloads = ", ".join(str(size) for size in sizes)
        yield f"{UNEQUAL} not of the message's size: frames with {payloads} B of payload"
    yield from _turns(group)


def _turns(group: list[Entry]) -> Iterator[str]:
    """Whether the transports met the same hour, and how far single turns were apart."""
    if any(entry["alternated"] is None for entry in group):
        yield "one repetition of each, one after the other"
    yield from dict.fromkeys(str(e["reason"]) for e in group if e["alternated"] is False)
    in_turns = [entry for entry in group if entry["alternated"]]
    if not in_turns:
        return
    repeats = sorted({one["repeats"] for entry in in_turns for one in entry["transports"]})
    words = [f"{' to '.join(map(str, dict.fromkeys((repeats[0], repeats[-1]))))} times in turns"]
    base = in_turns[0]["baseline"]
    for i, name in enumerate(_name(one) for one in in_turns[0]["transports"]):
        ratios = [entry["transports"][i]["ratio"] for entry in in_turns]
        bounds = [ratio[end] for ratio in ratios for end in ("throughput_min", "throughput_max")]
        if in_turns[0]["transports"][i]["transport"] != base and None not in bounds:
            flat = name.replace("\n", " ")
            words.append(f"{flat} ÷ {base} in a single turn {min(bounds):.2f} to {max(bounds):.2f}")
    yield "; ".join(words)
