# SPDX-License-Identifier: BSD-3-Clause
"""Interval results: how low each flow fell while its phase ran, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from ..records.document.parts import IntervalsEntry, Lowest
from ..records.flows import Pair, Places
from ..records.rows import Bools, Floats, Numbers, Rows
from . import measures as m

LOWEST_SHOWN = 5  # flows of a phase that fell the furthest below their own mean


@dataclass(frozen=True)
class Intervals:
    """The spans of a phase's flows, from one mark to the next."""

    pairs: Sequence[Pair]  # flows, in the order in which they were first heard of
    flow: Numbers  # of each span: its place in `pairs`
    spans: Rows
    mbps: Floats  # of each span

    @classmethod
    def of(cls, spans: Rows, off: Set[Pair], is_stream: bool) -> Intervals:
        """Without the last span in which something came, and the empty ones behind it, of a flow
        that is done: a transfer's, or one whose window was off (`off`)."""
        places = Places.of([*spans.pairs()])
        pairs, flow = places.names, places.place
        done = np.array([not is_stream or pair in off for pair in pairs], dtype=bool)
        kept = ~done[flow] | _before_last(flow, spans.floats("payload_bytes") > 0, len(pairs))
        flow, spans = flow[kept], spans.taken(kept)
        length_ms = spans.floats("to_ms") - spans.floats("from_ms")
        mbps = 8.0 * spans.floats("payload_bytes") / length_ms / 1e3
        return cls(pairs, flow, spans, mbps)

    @property
    def lowest(self) -> dict[Pair, int]:
        """By flow: the span in which least came, of several the first."""
        order = np.lexsort((np.arange(len(self.flow)), self.mbps, self.flow))
        flows, first = np.unique(self.flow[order], return_index=True)
        spans = order[first].tolist()
        return {self.pairs[flow]: span for flow, span in zip(flows.tolist(), spans, strict=True)}

    def when(self, spans: list[int]) -> Iterator[tuple[float, float]]:
        """When some spans were: seconds after the window's opening."""
        ends = (self.spans.floats(name)[spans] / 1e3 for name in ("from_ms", "to_ms"))
        return zip(*(end.tolist() for end in ends), strict=True)


def _before_last(flow: Numbers, something: Bools, flows: int) -> Bools:
    """The spans before the last one of their flow in which something came."""
    last = np.full(flows, -1)
    last[flow[something]] = np.flatnonzero(something)
    found: Bools = np.arange(len(flow)) < last[flow]
    return found


def interval_entry(
    intervals: Intervals, lowest: Mapping[Pair, int], off: Set[Pair]
) -> IntervalsEntry:
    """The `intervals` of a phase's entry in the summary, without flows whose window was off."""
    size = len(intervals.pairs)
    length_ms = intervals.spans.floats("to_ms") - intervals.spans.floats("from_ms")
    count = np.bincount(intervals.flow, minlength=size)
    payload = np.bincount(intervals.flow, intervals.spans.floats("payload_bytes"), size)
    span_ms = np.bincount(intervals.flow, length_ms, size)
    in_it = np.array([pair not in off for pair in intervals.pairs], dtype=bool) & (count > 0)
    mean = 8.0 * payload / np.where(span_ms > 0, span_ms, np.nan) / 1e3
    low = np.full(size, np.nan)
    for place, pair in enumerate(intervals.pairs):
        if pair in lowest:
            low[place] = intervals.mbps[lowest[pair]]
    percent = np.where(mean > 0, 100.0 * low / np.where(mean > 0, mean, 1.0), 100.0)

    def entry(place: int) -> Lowest:
        src, dst = intervals.pairs[place]
        ((from_s, to_s),) = intervals.when([lowest[src, dst]])
        return {
            "src": src,
            "dst": dst,
            "mbps": float(low[place]),
            "percent_of_mean": float(percent[place]),
            "from_s": from_s,
            "to_s": to_s,
        }

    known = np.flatnonzero(in_it)
    slowest = entry(int(known[low[known].argmin()])) if len(known) else None
    furthest = known[np.argsort(percent[known], kind="stable")][:LOWEST_SHOWN]
    return {
        "count": int(count[known].max()) if len(known) else 0,
        "length_s": m.median(span_ms[known] / count[known] / 1e3),
        "min": None if slowest is None else slowest["mbps"],
        "slowest": slowest,
        "lowest": [entry(place) for place in furthest.tolist()],
    }
