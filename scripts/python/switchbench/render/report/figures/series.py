# SPDX-License-Identifier: BSD-3-Clause
"""How the entries of a summary become series.

What they have in common is said once, in the title, and what tells them apart is each one's name in
the legend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ....analysis import measures as m
from ....base import format
from ..chart import Columns
from ..figure import gaps

Entry = Mapping[str, Any]  # of trials or plans
E = TypeVar("E", bound=Mapping[str, Any])
T = TypeVar("T")


def load_words(entry: Entry) -> str:
    """Return what was asked for; nothing of messages there and back, which have no load."""
    load = entry["intended_load"]
    return "" if load is None or entry["traffic"] == "pingpong" else f"{load:g} % of line"


def _together(entry: Entry) -> str:
    networks = entry.get("concurrent_networks")
    return f"network {entry['network']}" + (" with others" if networks else "")


_TRAFFIC = {
    "stream": "",
    "transfer": "transfer",
    "burst": "bursts",
    "pingpong": "ping-pong",
    "schedule": "by steps",
}
_FACETS: dict[str, Callable[[Entry], str]] = {
    "pattern": format.pattern,
    "ranks": lambda entry: format.of(entry["ranks"], "node"),
    "transport": lambda entry: str(entry["transport"]),
    "size": format.size,
    "load": load_words,
    "traffic": lambda entry: _TRAFFIC[entry["traffic"]],
    "network": _together,
}


@dataclass(frozen=True)
class Series(Generic[E]):
    """Entries that differ in what a figure has on its axes alone."""

    label: str  # what tells it apart from the others of the figure
    entries: list[E]


@dataclass(frozen=True)
class Group(Generic[E]):
    """The series of one figure."""

    common: str  # what all of them have in common
    series: list[Series[E]]


def group(entries: Iterable[E], *axes: str) -> Group[E]:
    """Put entries of trials or plans into series.

    `axes` are the facets that the figure shows itself; entries that are equal in all others are of
    one series, repeats among them.
    """
    names = [name for name in _FACETS if name not in axes]
    found: dict[tuple[str, ...], list[E]] = {}
    for entry in entries:
        found.setdefault(tuple(_FACETS[name](entry) for name in names), []).append(entry)
    varies = [len({key[i] for key in found}) > 1 for i in range(len(names))]
    network = names.index("network") if "network" in names else -1
    same = next(iter(found), ())
    # The only network needs no name.
    common = [word for i, word in enumerate(same) if word and not varies[i] and i != network]
    return Group(
        ", ".join(common),
        [
            Series(", ".join(key[i] for i in range(len(names)) if varies[i] and key[i]), some)
            for key, some in found.items()
        ],
    )


def by(entries: Iterable[E], key: str | Callable[[E], Any]) -> dict[Any, list[E]]:
    """Entries by one of their keys, or by what is made of them, in order of appearance."""
    found: dict[Any, list[E]] = {}
    for entry in entries:
        place = entry[key] if isinstance(key, str) else key(entry)
        found.setdefault(place, []).append(entry)
    return found


def in_parts(every: Sequence[T], most: int) -> Iterator[tuple[str, Sequence[T]]]:
    """So many at a time, for a figure each: the end of its name, and what is in it."""
    for first in range(0, len(every), most):
        yield f"-{1 + first // most}" if len(every) > most else "", every[first : first + most]


def rates(entries: Sequence[Entry]) -> dict[str, float | None]:
    """Return throughput over repeats: the mean of means and totals, the least of minima.

    The greatest of maxima.
    """
    some = [entry["throughput"] for entry in entries]
    return {
        "min": m.least(one["min"] for one in some),
        "mean": m.mean(one["mean"] for one in some),
        "max": m.greatest(one["max"] for one in some),
        "total": m.mean(one["total"] for one in some),
        "percent_of_line": m.mean(one["percent_of_line"] for one in some),
        "min_percent_of_line": m.least(one["min_percent_of_line"] for one in some),
    }


def columns(entries: Iterable[Sequence[Entry]], scale: float) -> Columns:
    """Return the rates of points, each over its repeats, as columns of a figure."""
    found = [rates(some) for some in entries]
    names = ("min", "mean", "max", "total")
    shares = gaps([one["percent_of_line"] for one in found])
    return {n: gaps([one[n] for one in found]) * scale for n in names} | {"share": shares}
