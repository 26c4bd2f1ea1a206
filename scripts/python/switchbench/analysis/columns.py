# SPDX-License-Identifier: BSD-3-Clause
"""What figures need of the tables, as columns by plan: a run of 1,024 ranks has a million flows.

Formulas are those of doc/reference/measures.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConfigurationError
from ..base.model import ONE_WAY, Port, Process, Site
from ..records.latency import BUCKETS, bucket_bounds
from ..records.rows import Floats, Rows
from ..records.schema import MOMENT
from ..records.store import Tables
from . import measures
from .clocks import ClockTable

Ints = NDArray[np.int32]

_FLOW = ("trial", "repeat", "network", "phase", "src", "dst")
# What figures need of the tables.
_WANTED: dict[str, tuple[str, ...]] = {
    "flows": (*_FLOW, "destination_reported", "sent_frames", "received_frames", "corrupted",
              "received_window_ns", "received_window_payload_bytes"),
    "intervals": (*_FLOW, "from_ms", "to_ms", "payload_bytes"),
    "histograms": (*_FLOW, "kind", "bucket", "bucket_count"),
}  # fmt: skip
_SHARED = "shared"


class PlanKey(NamedTuple):
    """One plan in one network, as the summary's plans say it."""

    trial: int
    repeat: int
    network: str


@dataclass(frozen=True)
class FlowColumns:
    """What came of a plan's flows: one element for each flow and phase, in all arrays."""

    phase: Ints
    src: Ints  # place of the port in the list that the reader was given
    dst: Ints
    mbps: Floats  # payload verified in the window; NaN: not observed
    offered: Floats  # frames that the source sent; NaN: not observed, or no frames are seen
    lost: Floats  # offered and not arrived; NaN as well


@dataclass(frozen=True)
class Spans:
    """A plan's interval results: what came of a flow from one mark to the next."""

    phase: Ints
    src: Ints
    dst: Ints
    from_ms: Floats  # after the opening of the phase's window
    to_ms: Floats
    payload_bytes: Floats

    @property
    def mbps(self) -> Floats:
        """Payload of each span in Mbit/s."""
        return 8e-3 * self.payload_bytes / (self.to_ms - self.from_ms)

    def until_done(self) -> Spans:
        """Of a transfer: without each flow's last span in which something came.

        And the empty ones behind it (doc/reference/measures.md, "Interval results").
        """
        most = 1 + max(int(self.src.max()), int(self.dst.max()))
        flow = (self.phase.astype(np.int64) * most + self.src) * most + self.dst
        _, flow = np.unique(flow, return_inverse=True)
        last = np.zeros(int(flow.max()) + 1)
        np.maximum.at(last, flow, np.where(self.payload_bytes > 0, self.to_ms, 0.0))
        kept = self.to_ms < last[flow]
        return Spans(**{name: column[kept] for name, column in vars(self).items()})


@dataclass(frozen=True)
class PlanTimes:
    """A plan's times of one kind, all flows together: how many there were of each, ascending."""

    values_ns: Floats  # middles of the nodes' buckets, clocks put right
    counts: NDArray[np.int64]

    def quantile_ns(self, share: float) -> float:
        """Return the time that at least this share of all do not exceed."""
        passed = np.cumsum(self.counts)
        return float(self.values_ns[np.searchsorted(passed, np.ceil(share * passed[-1]))])

    @classmethod
    def merged(cls, parts: Sequence[PlanTimes]) -> PlanTimes:
        """Return those of several plans together."""
        values = np.concatenate([part.values_ns for part in parts])
        return cls(*summed(values, np.concatenate([part.counts for part in parts])))


class Columns:
    """Reads the tables of a results directory; asked for a plan afterwards."""

    def __init__(
        self, ports: Sequence[str], unsettled: Mapping[PlanKey, Collection[int]] | None = None
    ) -> None:
        """`ports`: their places are what flows' ends are numbered by.

        `unsettled`: the phases of plans that were stopped, of which it is not known what they lost.
        """
        self.damage: list[str] = []
        self.cut = False  # a stream ends in half a batch
        self._unsettled = unsettled or {}
        self._places = {name: place for place, name in enumerate(ports)}
        self._parts: dict[str, dict[PlanKey, list[tuple[int, Rows]]]] = {}  # by table
        self._flows: dict[PlanKey, FlowColumns | None] = {}  # those that were asked for
        self._clocks: ClockTable | None = None  # None: nothing is to be put right

    def read(self, directory: Path) -> None:
        """Take all tables; what can't be read is said in `damage`."""
        for name, columns in _WANTED.items():
            try:
                tables = Tables(directory, (name,), {name: columns})
                parts = self._parts.setdefault(name, {})
                for phase in tables.phases():
                    number, repeat, own = phase.moment
                    for network, rows in phase.rows(name).by_network():
                        key = PlanKey(number, repeat, network)
                        parts.setdefault(key, []).append((own, rows))
                self.cut |= bool(tables.cut)
            except ConfigurationError as error:
                self.damage.append(str(error).removeprefix(f"{directory}/"))
        try:
            self._clocks = _clock_table(directory)
        except ConfigurationError as error:
            self.damage.append(str(error).removeprefix(f"{directory}/"))

    def flows(self, plan: PlanKey) -> FlowColumns | None:
        """Return the plan's flows, as their destinations saw them.

        None: no destination told of one.
        """
        if plan not in self._flows:
            self._flows[plan] = self._made_flows(plan)
        return self._flows[plan]

    def _made_flows(self, plan: PlanKey) -> FlowColumns | None:
        parts = self._parts.get("flows", {}).get(plan, [])
        src, dst = self._ends(parts)
        phase = _phases(parts)
        reported = np.concatenate(
            [np.zeros(0), *(r.objects("destination_reported") for _, r in parts)]
        )
        mine = (reported == True) & (src >= 0) & (dst >= 0)  # noqa: E712
        if not mine.any():
            return None
        names = ("received_window_ns", "received_window_payload_bytes", "sent_frames",
                 "received_frames", "corrupted")  # fmt: skip
        window_ns, payload, sent, came, corrupted = (_floats(parts, name)[mine] for name in names)
        lost = measures.missing(sent, came, measures.or_zero(corrupted))
        lost[np.isin(phase[mine], list(self._unsettled.get(plan, ())))] = np.nan
        mbps = measures.per_second(8e-6 * payload, window_ns)
        return FlowColumns(phase[mine], src[mine], dst[mine], mbps, sent, lost)

    def spans(self, plan: PlanKey) -> Spans | None:
        """Return the plan's interval results; None: there are none."""
        parts = self._parts.get("intervals", {}).get(plan, [])
        src, dst = self._ends(parts)
        mine = (src >= 0) & (dst >= 0)
        if not mine.any():
            return None
        figures = (_floats(parts, name)[mine] for name in ("from_ms", "to_ms", "payload_bytes"))
        return Spans(_phases(parts)[mine], src[mine], dst[mine], *figures)

    def times(self, plan: PlanKey, kind: str) -> PlanTimes | None:
        """Return the plan's times of one kind of model.LATENCY_KINDS; None: none were measured."""
        values, counts = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
        for phase, rows in self._parts.get("histograms", {}).get(plan, []):
            moment = (plan.trial, plan.repeat, phase)
            for place in np.flatnonzero(rows.objects("kind") == kind).tolist():
                found = _middles()[rows.objects("bucket")[place]]
                if self._clocks is not None and kind == ONE_WAY:
                    ends = (rows.objects("src")[place], rows.objects("dst")[place])
                    found = found + self._clocks.shift_ns(moment, ends)
                values.append(found)
                counts.append(rows.objects("bucket_count")[place])
        every = np.concatenate(counts)
        return PlanTimes(*summed(np.concatenate(values), every)) if every.any() else None

    def _ends(self, parts: Sequence[tuple[int, Rows]]) -> tuple[Ints, Ints]:
        """Places of ports; -1 for one that is not in the list."""
        src, dst = (
            np.array(
                [self._places.get(port, -1) for _, rows in parts for port in rows.texts(end)],
                dtype=np.int32,
            )
            for end in ("src", "dst")
        )
        return src, dst


def _phases(parts: Sequence[tuple[int, Rows]]) -> Ints:
    found = [np.full(len(rows), phase, dtype=np.int32) for phase, rows in parts]
    return np.concatenate([np.zeros(0, dtype=np.int32), *found])


def _floats(parts: Sequence[tuple[int, Rows]], name: str) -> Floats:
    return np.concatenate([np.zeros(0), *(rows.floats(name) for _, rows in parts)])


def _clock_table(directory: Path) -> ClockTable | None:
    """None: all nodes share one clock, so that nothing is to be put right."""
    columns = ("node", "clock_offset_ns", "clock_shift_ns", "clock_bound_ns")
    tables = Tables(directory, ("phases",), {"phases": (*MOMENT, *columns)})
    events = [event for event in tables.events() if event["type"] in ("ready", "port-open")]
    ready = [event for event in events if event["type"] == "ready"]
    if all(event.get("clock") == _SHARED for event in ready):
        return None
    ports: dict[str, list[Port]] = {}
    for event in events:
        if event["type"] == "port-open":
            ports.setdefault(event["node"], []).append(
                Port(event["port"], event["node"], "", (), {})
            )
    nodes = tuple(Process(node, tuple(some), {}) for node, some in ports.items())
    table = ClockTable(Site("", nodes))
    for event in ready:
        table.take_ready(event)
    for phase in tables.phases():
        table.take(phase.moment, phase.rows("phases"))
    return table


def summed(values: Floats, counts: NDArray[Any]) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distinct values and the sum of counts of each."""
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.bincount(place, weights=counts, minlength=len(distinct)).astype(np.int64)


@cache
def _middles() -> Floats:
    bounds = [bucket_bounds(index) for index in range(BUCKETS)]
    return np.array([least + width // 2 for least, width in bounds], dtype=np.float64)
