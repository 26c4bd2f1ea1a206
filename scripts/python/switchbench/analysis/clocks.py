# SPDX-License-Identifier: BSD-3-Clause
"""Synchronisation of the nodes' clocks, and the correction of one-way delays.

A phase runs with the clock offsets known at its start. The `clock` records have later estimates:
each node's error in the phase, and its bound (doc/reference/latency.md, "Clocks").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from ..base.model import ONE_WAY
from ..records.record_forms import Record
from ..records.rows import NS_PER_US, Pair, Rows, Times
from ..records.summary_form import Entry, filled
from .measures import observed

Moment = tuple[int, int, int]  # trial, repeat, phase

ASKED = "asked for"


@dataclass(frozen=True)
class NodeClock:
    """A node's clock in one phase: run time = local + offset, while the phase used `used_ns`."""

    offset_ns: int
    used_ns: int
    bound_ns: int


class ClockTable:
    """Clocks of all nodes from `ready` and `clock` records, for correcting one-way delays."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        """Set up the table; `nodes` maps each port to its node."""
        self._nodes = nodes
        self._ready: dict[str, Record] = {}
        self._wall_offset_ns: int | None = None  # UTC - run time
        self._phases: dict[Moment, dict[str, NodeClock]] = {}
        self._bounds: dict[str, float | None] = {}  # greatest bound of all phases by node

    def take_ready(self, record: Record) -> None:
        """Record how a node knows run time."""
        self._ready[record["node"]] = record
        wall_ns, offset_ns = record.get("wall_clock_offset_ns"), record.get("clock_offset_ns")
        if self._wall_offset_ns is None and wall_ns is not None and offset_ns is not None:
            self._wall_offset_ns = wall_ns - offset_ns

    def utc(self, run_ns: int | None) -> str | None:
        """Return run time as UTC to the millisecond, by the first node with a wall clock."""
        if run_ns is None or self._wall_offset_ns is None:
            return None
        since_1970_ms = (run_ns + self._wall_offset_ns) // 1_000_000
        try:
            moment = datetime.fromtimestamp(since_1970_ms / 1e3, UTC)
        except (OverflowError, ValueError, OSError):  # beyond the calendar's range
            return None
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def take(self, moment: Moment, nodes: Rows) -> None:
        """Record each node's clock in a phase, from rows of `phases`."""
        names = ("clock_bound_ns", "clock_offset_ns", "clock_shift_ns")
        columns = (observed(nodes.floats(name)) for name in names)
        for node, bound_ns, offset_ns, shift_ns in zip(nodes.texts("node"), *columns, strict=True):
            worst_us = self._bounds.get(node, 0.0)
            if bound_ns is None or worst_us is None:
                self._bounds[node] = None
            else:
                self._bounds[node] = max(worst_us, bound_ns / NS_PER_US)
            if bound_ns is not None and offset_ns is not None and shift_ns is not None:
                clock = NodeClock(int(offset_ns), int(offset_ns - shift_ns), int(bound_ns))
                self._phases.setdefault(moment, {})[node] = clock

    def correct(self, moment: Moment, flows: Mapping[Pair, Times]) -> None:
        """Correct the one-way delays of each flow."""
        for pair, times in flows.items():
            shift = self._shift(moment, pair) if ONE_WAY in times else None
            if shift is not None:
                times[ONE_WAY] = times[ONE_WAY].moved_by(*shift)

    def forget(self, moment: Moment) -> None:
        """Forget a phase."""
        self._phases.pop(moment, None)

    def shift_ns(self, moment: Moment, ends: Pair) -> int:
        """Return the correction of a flow's one-way delays, in ns."""
        shift = self._shift(moment, ends)
        return 0 if shift is None else shift[0]

    def _shift(self, moment: Moment, ends: Pair) -> tuple[int, int] | None:
        """Return a flow's correction in ns and its bound; None if the clocks are unknown."""
        src, dst = (self._nodes.get(end, "") for end in ends)
        if src == dst:
            return 0, 0
        clocks = self._phases.get(moment, {})
        source, destination = clocks.get(src), clocks.get(dst)
        if source is None or destination is None:
            return None
        ready = [self._ready.get(node, {}) for node in (src, dst)]
        ids = {record.get("clock_id") for record in ready}
        asked = any(record.get("clock_reason") == ASKED for record in ready)
        if len(ids) == 1 and None not in ids and not asked:
            # The ends share an unmeasured clock: its error cancels out.
            return source.used_ns - destination.used_ns, 0
        shift_ns = (destination.offset_ns - destination.used_ns) - (
            source.offset_ns - source.used_ns
        )
        return shift_ns, source.bound_ns + destination.bound_ns

    def summary(self) -> list[Entry]:
        """Return the summary's `clocks`, an entry for each node."""
        return [
            filled(
                "ClockEntry",
                record,
                reason=record.get("clock_reason"),
                bound_us=self._bounds.get(node),
            )
            for node, record in self._ready.items()
        ]


def sentence(clocks: Iterable[Entry]) -> str | None:
    """Return a sentence on the nodes' clocks; None if none is known."""
    nodes = [entry for entry in clocks if entry["clock"] is not None]
    if not nodes:
        return None
    ways = {(entry["clock"], entry["reason"]): 0 for entry in nodes}
    for entry in nodes:
        ways[entry["clock"], entry["reason"]] += 1
    words = [
        f"{clock} ({why})" + (f" in {count} of {len(nodes)} nodes" if len(ways) > 1 else "")
        for (clock, why), count in ways.items()
    ]
    bounds = [bound for entry in nodes if (bound := entry["bound_us"]) is not None]
    if len(bounds) < len(nodes):
        words.append("not known in some phase")
    elif max(bounds) > 0:
        words.append(f"each within {max(bounds):.3g} µs")
    return "clocks: " + "; ".join(words)
