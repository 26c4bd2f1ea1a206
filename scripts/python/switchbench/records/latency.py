# SPDX-License-Identifier: BSD-3-Clause
"""Times from the nodes' histograms (doc/reference/latency.md).

Put together, read with what they can say.

A figure that there are too few samples for, or that is smaller than what the clocks may differ by,
is None, and the reason stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base.model import IPDV, LATENCY_FIGURES, ONE_WAY, PERCENTILES, PINGPONG, ROUND_TRIP
from .document.trials import Figures, Latency, TimesEntry, WorstFlow
from .record_forms import Record

NS_PER_US = 1000.0

_CUT = "the clocks differ by more than the min delay: it is not known how much was cut off"

# The layout of engine/measure/histogram.h.
_LINEAR_BITS = 6
_LINEAR = 1 << _LINEAR_BITS
BUCKETS = 2240


def bucket_bounds(index: int) -> tuple[int, int]:
    """Return the least value of a bucket, and its width, in ns."""
    if not 0 <= index < BUCKETS:
        raise ValueError(f"bucket {index}: a histogram has {BUCKETS}")
    shift = 0 if index < 2 * _LINEAR else index // _LINEAR - 1
    return (index - shift * _LINEAR) << shift, 1 << shift


def _middle(index: int) -> int:
    least, width = bucket_bounds(index)
    return least + width // 2


def needed(share: float) -> int:
    """Return how many samples a percentile needs so that one lies beyond it.

    One of 1 / (1 - share).
    """
    return round(1 / (1 - share))


@dataclass(slots=True)
class Histogram:
    """Some times of one kind: a flow's, or those of many flows, phases and repeats.

    `add_record` takes a `histogram` record, `merge` another histogram; read are
    `count`, `lost`, `mean_ns`, `min_ns`, `max_ns` and `quantile_ns`.
    """

    buckets: dict[int, int] = field(default_factory=dict)
    count: int = 0
    sum_ns: int = 0
    min_ns: int | None = None
    max_ns: int | None = None
    beyond: int = 0
    lost: int | None = None  # never came back; None: nothing was to
    bound_ns: int | None = None  # one way: what the two clocks may differ by
    no_clock: bool = False  # one way: of some it is not known what they may differ by
    moved: dict[int, int] = field(default_factory=dict)  # by ns: put right since they were counted
    cut_ns: int | None = None  # what delays that the clocks made negative are read as; None: none

    def add_record(self, record: Record) -> None:
        """Add the times of a `histogram` record."""
        for word in str(record.get("buckets") or "").split():
            bucket, _, number = word.partition(":")
            index = int(bucket)
            self.buckets[index] = self.buckets.get(index, 0) + int(number)
        self._add_totals(
            Histogram(
                count=record["count"],
                sum_ns=record["sum_ns"],
                min_ns=record.get("min_ns"),
                max_ns=record.get("max_ns"),
                beyond=record.get("overflow") or 0,
                lost=record.get("lost"),
                bound_ns=record.get("bound_ns"),
                no_clock=record.get("kind") == ONE_WAY and record.get("bound_ns") is None,
            )
        )

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Histogram:
        """Return the times of a row of `histograms`."""
        numbers = (row[name].tolist() for name in ("bucket", "bucket_count"))
        return cls(
            buckets=dict(zip(*numbers, strict=True)),
            count=row["count"],
            sum_ns=row["sum_ns"],
            min_ns=row.get("min_ns"),
            max_ns=row.get("max_ns"),
            beyond=row.get("overflow", 0),
            lost=row.get("lost"),
            bound_ns=row.get("bound_ns"),
            no_clock=row["kind"] == ONE_WAY and "bound_ns" not in row,
        )

    def row(self) -> dict[str, Any]:
        """Return the columns of a row of `histograms` that say these times."""
        ordered = sorted(self.buckets)
        return {
            "count": self.count,
            "sum_ns": self.sum_ns,
            "min_ns": self.min_ns,
            "max_ns": self.max_ns,
            "overflow": self.beyond,
            "lost": self.lost,
            "bound_ns": self.bound_ns,
            "bucket": ordered,
            "bucket_count": [self.buckets[index] for index in ordered],
        }

    def moved_by(self, shift_ns: int, bound_ns: int) -> Histogram:
        """Return the same one-way delays with the clocks put right; exact where the middles are."""
        return Histogram(
            buckets=dict(self.buckets) if shift_ns == 0 else {},
            count=self.count,
            sum_ns=self.sum_ns + shift_ns * self.count,
            min_ns=None if self.min_ns is None else self.min_ns + shift_ns,
            max_ns=None if self.max_ns is None else self.max_ns + shift_ns,
            beyond=self.beyond,
            lost=self.lost,
            bound_ns=bound_ns,
            moved={} if shift_ns == 0 else {mid + shift_ns: n for mid, n in self._middles()},
            cut_ns=shift_ns if self.buckets.get(0) and (shift_ns, bound_ns) != (0, 0) else None,
        )

    def _middles(self) -> Iterator[tuple[int, int]]:
        """Yield all times with their numbers, in order."""
        if not self.moved:  # then buckets are in order as they are
            yield from ((_middle(index), self.buckets[index]) for index in sorted(self.buckets))
            return
        middles = dict(self.moved)
        for index, number in self.buckets.items():
            middle = _middle(index)
            middles[middle] = middles.get(middle, 0) + number
        yield from sorted(middles.items())

    def merge(self, other: Histogram) -> None:
        """Add another's times; nothing is lost by it."""
        for index, number in other.buckets.items():
            self.buckets[index] = self.buckets.get(index, 0) + number
        for middle, number in other.moved.items():
            self.moved[middle] = self.moved.get(middle, 0) + number
        self._add_totals(other)

    def quantile_ns(self, share: float) -> float | None:
        """Return the time that at least `share` of all do not exceed; None: too few to say."""
        if self.count < needed(share) or not self.whole:
            return None
        wanted, passed = math.ceil(share * self.count), 0
        times = dict(self._middles()) if self.moved else self.buckets
        for key in sorted(times):
            passed += times[key]
            if passed >= wanted:
                return self._within(key if self.moved else _middle(key))
        return self.max_ns

    @property
    def mean_ns(self) -> float | None:
        """Exact: sums are."""
        return self.sum_ns / self.count if self.count else None

    @property
    def whole(self) -> bool:
        """Whether each time is in a bucket."""
        return sum(self.buckets.values()) + sum(self.moved.values()) == self.count

    def _within(self, value: int) -> int:
        least = value if self.min_ns is None else self.min_ns
        greatest = value if self.max_ns is None else self.max_ns
        return max(least, min(greatest, value))

    def _add_totals(self, other: Histogram) -> None:
        self.count += other.count
        self.sum_ns += other.sum_ns
        self.beyond += other.beyond
        self.min_ns = _known(min, self.min_ns, other.min_ns)
        self.max_ns = _known(max, self.max_ns, other.max_ns)
        self.bound_ns = _known(max, self.bound_ns, other.bound_ns)
        self.no_clock = self.no_clock or other.no_clock
        self.cut_ns = _known(max, self.cut_ns, other.cut_ns)
        if other.lost is not None:
            self.lost = (self.lost or 0) + other.lost


def _known(choose: Any, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    found: int = choose(left, right)
    return found


def merged(parts: Iterable[Histogram]) -> Histogram:
    """Return all of them together."""
    total = Histogram()
    for part in parts:
        total.merge(part)
    return total


def figures(kind: str, times: Histogram | None) -> Figures:
    """Return what the summary says of one kind: microseconds, and why what is None is so."""
    times = times or Histogram()
    values, reasons = _values(kind, times)
    for name, value in values.items():
        reason = _refusal(name, value, times)
        if reason is not None:
            values[name], reasons[name] = None, reason
    shown = {
        name: None if value is None else round(value / NS_PER_US, 3)
        for name, value in values.items()
    }
    return {
        "unit": "us",
        "count": times.count,
        "lost": times.lost,
        "bound": None if times.bound_ns is None else times.bound_ns / NS_PER_US,
        "min": shown["min"],
        "mean": shown["mean"],
        "p50": shown["p50"],
        "p90": shown["p90"],
        "p99": shown["p99"],
        "p99_9": shown["p99_9"],
        "p99_99": shown["p99_99"],
        "max": shown["max"],
        "pdv": shown["pdv"],
        "reasons": reasons,
    }


def figure(kind: str, name: str, times: Histogram | None) -> float | None:
    """Return one of them, in microseconds."""
    value = _value(kind, name, times) if times is not None else None
    if value is None or times is None or _refusal(name, value, times) is not None:
        return None
    return round(value / NS_PER_US, 3)


def _value(kind: str, name: str, times: Histogram) -> float | None:
    """Return a figure in ns; None: nothing, or too little, to make it of."""
    if times.count == 0:
        return None
    if name in PERCENTILES:
        return times.quantile_ns(PERCENTILES[name])
    if name == "pdv":
        return _pdv_ns(kind, times)
    return {
        "min": times.min_ns,
        "mean": times.mean_ns,
        "max": times.max_ns,
    }[name]


def _values(kind: str, times: Histogram) -> tuple[dict[str, float | None], dict[str, str]]:
    values = {name: _value(kind, name, times) for name in LATENCY_FIGURES}
    if times.count == 0:
        return values, {"all": "nothing was measured"}
    reasons = {
        name: _too_few(name, share, times)
        for name, share in PERCENTILES.items()
        if values[name] is None
    }
    if values["pdv"] is None and kind != IPDV:
        reasons["pdv"] = reasons.get("p99_9") or _CUT
    return values, reasons


def _pdv_ns(kind: str, times: Histogram) -> float | None:
    """RFC 5481 4.2: D(99.9 %) - D(min).

    What the clocks differ by cancels out, but for delays that it made negative.
    """
    high = times.quantile_ns(PERCENTILES["p99_9"])
    if kind == IPDV or high is None or times.min_ns is None:
        return None
    if kind == ONE_WAY and _is_cut(times):
        return None
    return high - times.min_ns


def _too_few(name: str, share: float, times: Histogram) -> str:
    if not times.whole:
        return "some of the histogram is missing"
    shown = name.replace("_", ".")
    are = "is" if times.count == 1 else "are"
    return f"{shown} needs {needed(share):,} samples, there {are} {times.count:,}"


def _refusal(name: str, value: float | None, times: Histogram) -> str | None:
    """Return why a figure of one-way delay says nothing: the clocks differ by as much."""
    if value is None or name == "pdv":
        return None
    if times.no_clock:
        return "unknown: the ends have no common clock"
    if times.cut_ns is not None and value <= times.cut_ns:
        return _CUT
    if name in ("min", "mean") and times.bound_ns is not None and _is_cut(times):
        return _CUT
    if not times.bound_ns or value >= times.bound_ns:
        return None
    return (
        f"unknown: the clocks may differ by {times.bound_ns / NS_PER_US:g} us, more than the "
        f"{value / NS_PER_US:g} us measured"
    )


def _is_cut(times: Histogram) -> bool:
    """Return whether some were below 0 by the clocks."""
    return times.cut_ns is not None or (times.bound_ns != 0 and times.buckets.get(0, 0) > 0)


def phase_latency(
    flows: Mapping[tuple[str, str], Mapping[str, Histogram]],
) -> Latency:
    """Return a phase's, by kind: of all its flows together, and the flow with the greatest p99."""

    def of(kind: str) -> TimesEntry | None:
        found = {ends: times[kind] for ends, times in flows.items() if kind in times}
        if not found:
            return None
        return {**figures(kind, merged(found.values())), "worst": _worst(kind, found)}

    return {
        "one_way": of(ONE_WAY),
        "ipdv": of(IPDV),
        "round_trip": of(ROUND_TRIP),
        "pingpong": of(PINGPONG),
    }


def _worst(kind: str, found: Mapping[tuple[str, str], Histogram]) -> WorstFlow | None:
    known = [
        (value, ends)
        for ends, times in found.items()
        if (value := figure(kind, "p99", times)) is not None
    ]
    if not known:
        return None
    value, (src, dst) = max(known)
    return {"src": src, "dst": dst, "p99": value}
