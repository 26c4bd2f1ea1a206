# SPDX-License-Identifier: BSD-3-Clause
"""Interval results: how low each flow fell while its phase ran, and when.

One pass over the records and a few numbers a flow: a run of an hour fits in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..records.records import PhaseRecords, Record
from . import measures as m

LOWEST_SHOWN = 5  # flows of a phase that fell the furthest below their own mean


class Span(NamedTuple):
    """What came of a flow between two marks, milliseconds after the window's opening."""

    from_ms: float
    to_ms: float
    payload_bytes: int

    @property
    def mbps(self) -> float:
        """Payload in Mbit/s."""
        return 8.0 * self.payload_bytes / (self.to_ms - self.from_ms) / 1e3


@dataclass(slots=True)
class FlowIntervals:
    """One flow in one phase, as far as it has come."""

    payload_bytes: int = 0
    span_ms: float = 0.0
    count: int = 0
    lowest: Span | None = None
    pending: list[Span] = field(default_factory=list)  # since something last came

    def add(self, span: Span) -> None:
        """Takes the next span."""
        if span.payload_bytes > 0:
            self._confirm()
        self.pending.append(span)

    def close(self, whole: bool) -> None:
        """No more will come. A transfer that is done (not `whole`) has nothing more to deliver:
        its last span and the empty ones behind it say nothing."""
        if whole:
            self._confirm()
        self.pending.clear()

    def _confirm(self) -> None:
        for span in self.pending:
            self.payload_bytes += span.payload_bytes
            self.span_ms += span.to_ms - span.from_ms
            self.count += 1
            if self.lowest is None or span.mbps < self.lowest.mbps:
                self.lowest = span
        self.pending.clear()


def add_interval(phase: PhaseRecords, record: Record) -> None:
    """Takes an `interval` record: several flows to one port, several spans each."""
    ends = [float(at) for at in record["at_ms"]]
    begins = [float(record["from_ms"]), *ends]
    for src, counts in record["flows"]:
        course = phase.courses.setdefault((src, record["dst"]), FlowIntervals())
        for begin, end, count in zip(begins, ends, counts, strict=False):
            if end > begin:
                course.add(Span(begin, end, count))


def interval_entry(
    courses: Mapping[tuple[str, str], FlowIntervals], traffic: str
) -> dict[str, Any]:
    """The `interval` of a phase's entry in the summary."""
    for course in courses.values():
        course.close(whole=traffic == "stream")
    lows = [low for ends, course in courses.items() if (low := _low(ends, course)) is not None]
    least = min(lows, key=lambda low: low["mbps"], default=None)
    spans = max((course.count for course in courses.values()), default=0)
    return {
        "count": spans,
        "length_s": _step_s(courses.values()),
        "min": None if least is None else least["mbps"],
        "slowest": least,
        "lowest": sorted(lows, key=lambda low: low["percent_of_mean"])[:LOWEST_SHOWN],
    }


def _low(ends: tuple[str, str], course: FlowIntervals) -> dict[str, Any] | None:
    if course.lowest is None or not course.span_ms:
        return None
    mean = 8.0 * course.payload_bytes / course.span_ms / 1e3
    return {
        "src": ends[0],
        "dst": ends[1],
        "mbps": course.lowest.mbps,
        "percent_of_mean": 100.0 * course.lowest.mbps / mean if mean else 100.0,
        "from_s": course.lowest.from_ms / 1e3,
        "to_s": course.lowest.to_ms / 1e3,
    }


def _step_s(courses: Iterable[FlowIntervals]) -> float | None:
    return m.median(course.span_ms / course.count / 1e3 for course in courses if course.count)
