# SPDX-License-Identifier: BSD-3-Clause
"""Times from the nodes' histograms (doc/reference/latency.md).

Put together, read with what they can say.

A figure that there are too few samples for, or that is smaller than what the clocks may differ by,
is None, and the reason stands beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..base.model import IPDV, LATENCY_FIGURES, LATENCY_KINDS, ONE_WAY, PERCENTILES
from .record_forms import Record
from .schema import Row
from .summary_form import Entry, filled

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


_MIDDLE = [least + width // 2 for least, width in map(bucket_bounds, range(BUCKETS))]
MIDDLES = np.array(_MIDDLE, dtype=np.float64)  # of the buckets, ns


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
    overflow: int = 0
    lost: int | None = None  # never came back; None: nothing was to
    bound_ns: int | None = None  # one way: what the two clocks may differ by
    no_clock: bool = False  # one way: of some it is not known what they may differ by
    moved: dict[int, int] = field(default_factory=dict)  # by ns: put right since they were counted
    cut_ns: int | None = None  # what delays that the clocks made negative are read as; None: none

    @classmethod
    def of(cls, row: Row, buckets: dict[int, int]) -> Histogram:
        """Return the times of a record or a row, whose buckets are these."""
        return cls(
            buckets=buckets,
            count=row["count"],
            sum_ns=row["sum_ns"],
            min_ns=row.get("min_ns"),
            max_ns=row.get("max_ns"),
            overflow=row.get("overflow") or 0,
            lost=row.get("lost"),
            bound_ns=row.get("bound_ns"),
            no_clock=row.get("kind") == ONE_WAY and row.get("bound_ns") is None,
        )

    @classmethod
    def of_row(cls, row: Row) -> Histogram:
        """Return the times of a row of `histograms`."""
        numbers = (row[name].tolist() for name in ("bucket", "bucket_count"))
        return cls.of(row, dict(zip(*numbers, strict=True)))

    def add_record(self, record: Record) -> None:
        """Add the times of a `histogram` record."""
        words = (word.partition(":") for word in str(record.get("buckets") or "").split())
        buckets: Counter[int] = Counter()
        for bucket, _, number in words:
            buckets[int(bucket)] += int(number)
        self.merge(Histogram.of(record, buckets))

    def row(self) -> Row:
        """Return the columns of a row of `histograms` that say these times."""
        ordered = sorted(self.buckets)
        names = ("count", "sum_ns", "min_ns", "max_ns", "overflow", "lost", "bound_ns")
        return {
            **{name: getattr(self, name) for name in names},
            "bucket": ordered,
            "bucket_count": [self.buckets[index] for index in ordered],
        }

    def moved_by(self, shift_ns: int, bound_ns: int) -> Histogram:
        """Return the same one-way delays with the clocks put right; exact where the middles are."""
        return replace(
            self,
            buckets=dict(self.buckets) if shift_ns == 0 else {},
            sum_ns=self.sum_ns + shift_ns * self.count,
            min_ns=None if self.min_ns is None else self.min_ns + shift_ns,
            max_ns=None if self.max_ns is None else self.max_ns + shift_ns,
            bound_ns=bound_ns,
            no_clock=False,
            moved={} if shift_ns == 0 else {mid + shift_ns: n for mid, n in self._middles()},
            cut_ns=shift_ns if self.buckets.get(0) and (shift_ns, bound_ns) != (0, 0) else None,
        )

    def _middles(self) -> Iterator[tuple[int, int]]:
        """Yield all times with their numbers, in order."""
        if not self.moved:  # then buckets are in order as they are
            yield from ((_MIDDLE[index], self.buckets[index]) for index in sorted(self.buckets))
            return
        middles = dict(self.moved)
        for index, number in self.buckets.items():
            middle = _MIDDLE[index]
            middles[middle] = middles.get(middle, 0) + number
        yield from sorted(middles.items())

    def merge(self, other: Histogram) -> None:
        """Add another's times; nothing is lost by it."""
        for index, number in other.buckets.items():
            self.buckets[index] = self.buckets.get(index, 0) + number
        for middle, number in other.moved.items():
            self.moved[middle] = self.moved.get(middle, 0) + number
        self.count += other.count
        self.sum_ns += other.sum_ns
        self.overflow += other.overflow
        self.min_ns = _known(min, self.min_ns, other.min_ns)
        self.max_ns = _known(max, self.max_ns, other.max_ns)
        self.bound_ns = _known(max, self.bound_ns, other.bound_ns)
        self.no_clock = self.no_clock or other.no_clock
        self.cut_ns = _known(max, self.cut_ns, other.cut_ns)
        if other.lost is not None:
            self.lost = (self.lost or 0) + other.lost

    def quantile_ns(self, share: float) -> float | None:
        """Return the time that at least `share` of all do not exceed; None: too few to say."""
        if self.count < needed(share) or not self.whole:
            return None
        wanted, passed = math.ceil(share * self.count), 0
        times = dict(self._middles()) if self.moved else self.buckets
        for key in sorted(times):
            passed += times[key]
            if passed >= wanted:
                value = key if self.moved else _MIDDLE[key]
                least = value if self.min_ns is None else self.min_ns
                return max(least, value if self.max_ns is None else min(self.max_ns, value))
        return self.max_ns

    @property
    def mean_ns(self) -> float | None:
        """Exact: sums are."""
        return self.sum_ns / self.count if self.count else None

    @property
    def whole(self) -> bool:
        """Whether each time is in a bucket."""
        return sum(self.buckets.values()) + sum(self.moved.values()) == self.count


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


def figures(kind: str, times: Histogram | None) -> Entry:
    """Return what the summary says of one kind: microseconds, and why what is None is so."""
    times = times or Histogram()
    values = {name: _figure(kind, name, times) for name in LATENCY_FIGURES}
    reasons = {name: why for name, (_, why) in values.items() if why}
    return filled(
        "Figures",
        {name: value for name, (value, _) in values.items()},
        times,
        unit="us",
        bound=None if times.bound_ns is None else times.bound_ns / NS_PER_US,
        reasons=reasons if times.count else {"all": "nothing was measured"},
    )


def figure(kind: str, name: str, times: Histogram | None) -> float | None:
    """Return one of them, in microseconds."""
    return None if times is None else _figure(kind, name, times)[0]


def _figure(kind: str, name: str, times: Histogram) -> tuple[float | None, str | None]:
    """Return a figure in microseconds, and why it is None; nothing is said of none at all."""
    if times.count == 0:
        return None, None
    value, why = _value_ns(kind, name, times)
    if value is not None and name != "pdv":
        why = _refusal(name, value, times)
    return (None, why) if value is None or why else (round(value / NS_PER_US, 3), None)


def _value_ns(kind: str, name: str, times: Histogram) -> tuple[float | None, str | None]:
    if name in PERCENTILES:
        value = times.quantile_ns(PERCENTILES[name])
        return value, None if value is not None else _too_few(name, PERCENTILES[name], times)
    if name != "pdv":
        return {"min": times.min_ns, "mean": times.mean_ns, "max": times.max_ns}[name], None
    # RFC 5481 4.2: D(99.9 %) - D(min). What the clocks differ by cancels out, but for delays that
    # it made negative.
    if kind == IPDV:
        return None, None
    high, why = _value_ns(kind, "p99_9", times)
    if high is None or times.min_ns is None or (kind == ONE_WAY and _is_cut(times)):
        return None, why or _CUT
    return high - times.min_ns, None


def _too_few(name: str, share: float, times: Histogram) -> str:
    if not times.whole:
        return "some of the histogram is missing"
    shown = name.replace("_", ".")
    are = "is" if times.count == 1 else "are"
    return f"{shown} needs {needed(share):,} samples, there {are} {times.count:,}"


def _refusal(name: str, value: float, times: Histogram) -> str | None:
    """Return why a figure of one-way delay says nothing: the clocks differ by as much."""
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
) -> Entry:
    """Return a phase's, by kind: of all its flows together, and the flow with the greatest p99."""

    def of(kind: str) -> Entry | None:
        found = {ends: times[kind] for ends, times in flows.items() if kind in times}
        if not found:
            return None
        return {**figures(kind, merged(found.values())), "worst": _worst(kind, found)}

    return filled("Latency", {kind: of(kind) for kind in LATENCY_KINDS})


def _worst(kind: str, found: Mapping[tuple[str, str], Histogram]) -> Entry | None:
    values = ((figure(kind, "p99", times), ends) for ends, times in found.items())
    known = [(value, ends) for value, ends in values if value is not None]
    if not known:
        return None
    value, (src, dst) = max(known)
    return {"src": src, "dst": dst, "p99": value}
