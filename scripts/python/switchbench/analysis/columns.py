# SPDX-License-Identifier: BSD-3-Clause
"""What figures need of the records, as columns by plan: a run of 1,024 ranks has millions of them.

Keys are those of doc/reference/node-protocol.md, formulas those of doc/reference/measures.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConfigurationError
from ..base.model import ONE_WAY, Port, Process, Site
from ..records.latency import bucket_bounds
from ..records.reader import RecordReader
from ..records.record_forms import DamagedRecord, Record
from ..records.rows import Floats, PhaseKey, Rows
from . import measures
from .clocks import ClockTable

Ints = NDArray[np.int32]

_FLOW = ("trial", "repeat", "network", "phase", "src", "dst")
# What figures need of the records, by type.
_WANTED: dict[str, tuple[str, ...]] = {
    "flow": (*_FLOW, "side", "frames", "corrupted", "window_ns", "window_payload_bytes"),
    "interval": (*_FLOW, "from_ms", "to_ms", "payload_bytes"),
    "histogram": (*_FLOW, "kind", "buckets"),
    **dict.fromkeys(("port-open", "ready", "clock"), ()),
}
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
        """Of a transfer: without each flow's last span in which something came, and the empty ones
        behind it (doc/reference/measures.md, "Interval results")."""
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
        """The time that at least this share of all do not exceed."""
        passed = np.cumsum(self.counts)
        return float(self.values_ns[np.searchsorted(passed, np.ceil(share * passed[-1]))])

    @classmethod
    def merged(cls, parts: Sequence[PlanTimes]) -> PlanTimes:
        """Those of several plans together."""
        values = np.concatenate([part.values_ns for part in parts])
        return cls(*summed(values, np.concatenate([part.counts for part in parts])))


@dataclass
class _Chunks:
    """Arrays of one plan as they come, a tuple of columns each."""

    parts: list[tuple[NDArray[Any], ...]] = field(default_factory=list)

    def add(self, phase: int, columns: Sequence[NDArray[Any]]) -> None:
        """Takes columns of one phase, which becomes one of them."""
        phases = np.full(len(columns[0]), phase, dtype=np.int32)
        self.parts.append((phases, *columns))

    def columns(self) -> list[NDArray[Any]]:
        return [np.concatenate(column) for column in zip(*self.parts, strict=True)]


class Columns:
    """Reads a records file in one pass; asked for a plan afterwards."""

    def __init__(
        self, ports: Sequence[str], unsettled: Mapping[PlanKey, Collection[int]] | None = None
    ) -> None:
        """`ports`: their places are what flows' ends are numbered by. `unsettled`: the phases of
        plans that were stopped, of which it is not known what they lost."""
        self.damage: list[str] = []
        self.lines = 0  # whole ones
        self.cut = False  # the last one is no whole line
        self._unsettled = unsettled or {}
        self._places = {name: place for place, name in enumerate(ports)}
        self._sides: dict[tuple[PlanKey, str], _Chunks] = {}
        self._flows: dict[PlanKey, FlowColumns | None] = {}  # those that were asked for
        self._spans: dict[PlanKey, _Chunks] = {}
        self._times: dict[tuple[PlanKey, str], _Chunks] = {}
        self._opened: dict[str, str] = {}  # node by port
        self._ready: list[Record] = []
        self._clocks: list[Record] = []
        self._waiting: list[tuple[PhaseKey, Rows]] = []  # histograms, until all clocks are known

    def read(self, path: Path) -> None:
        """Takes the whole file; what can't be read is said in `damage`."""
        bad: list[DamagedRecord] = []
        takers = {"flow": self._take_flows, "interval": self._take_spans}
        reader = RecordReader(path, _WANTED, bad.append)
        try:
            for batch in reader.batches():
                for kind, rows in batch.rows.items():
                    for key, mine in rows.by_phase():
                        if key.phase < 0:
                            continue  # a probe
                        if kind in takers:
                            takers[kind](key, mine)
                        else:
                            self._waiting.append((key, mine))
                for _, record in batch.records:
                    self._take_record(record)
        except ConfigurationError as error:
            self.damage.append(str(error).removeprefix(f"{path.parent}/"))
        self.lines, self.cut = reader.lines, reader.cut
        self._take_histograms()
        if bad:
            lines_are = "1 line is" if len(bad) == 1 else f"{len(bad):,} lines are"
            self.damage.append(f"{path.name}: {lines_are} damaged and left out")

    def flows(self, plan: PlanKey) -> FlowColumns | None:
        """The plan's flows, as their destinations saw them; None: there is no record."""
        if plan not in self._flows:
            self._flows[plan] = self._joined_sides(plan)
        return self._flows[plan]

    def _joined_sides(self, plan: PlanKey) -> FlowColumns | None:
        came = self._sides.get((plan, "destination"))
        if came is None:
            return None
        phase, src, dst, mbps, frames, corrupted = came.columns()
        sent = self._sides.get((plan, "source"))
        offered = np.full(len(phase), np.nan)
        if sent is not None:
            s_phase, s_src, s_dst, _, s_frames, _ = sent.columns()
            offered = joined((phase, src, dst), (s_phase, s_src, s_dst), s_frames)
        lost = measures.missing(offered, frames, measures.or_zero(corrupted))
        lost[np.isin(phase, list(self._unsettled.get(plan, ())))] = np.nan
        return FlowColumns(phase, src, dst, mbps, offered, lost)

    def spans(self, plan: PlanKey) -> Spans | None:
        """The plan's interval results; None: there are none."""
        found = self._spans.get(plan)
        return None if found is None else Spans(*found.columns())

    def times(self, plan: PlanKey, kind: str) -> PlanTimes | None:
        """The plan's times of one kind of model.LATENCY_KINDS; None: none were measured."""
        found = self._times.get((plan, kind))
        if found is None:
            return None
        values, counts = found.columns()
        return PlanTimes(*summed(values, counts)) if counts.any() else None

    # --- records ---------------------------------------------------------------------------

    def _take_record(self, record: Record) -> None:
        if record["type"] == "port-open":
            self._opened[record["port"]] = record["node"]
        elif record["type"] == "ready":
            self._ready.append(record)
        else:
            self._clocks.append(record)

    def _take_flows(self, key: PhaseKey, rows: Rows) -> None:
        window_ns, payload = rows.floats("window_ns"), rows.floats("window_payload_bytes")
        with np.errstate(divide="ignore", invalid="ignore"):
            mbps = np.where(window_ns > 0, 8e3 * payload / window_ns, np.nan)
        src, dst = self._ends(rows)
        columns = (src, dst, mbps, rows.floats("frames"), rows.floats("corrupted"))
        for side in ("source", "destination"):
            mine = (rows.columns["side"] == side) & (src >= 0) & (dst >= 0)
            if mine.any():
                chunks = self._sides.setdefault((PlanKey(*key[:3]), side), _Chunks())
                chunks.add(key.phase, [column[mine] for column in columns])

    def _ends(self, rows: Rows) -> tuple[Ints, Ints]:
        """Places of ports; -1 for one that is not in the list."""
        src, dst = (
            np.array([self._places.get(port, -1) for port in rows.texts(end)], dtype=np.int32)
            for end in ("src", "dst")
        )
        return src, dst

    def _take_spans(self, key: PhaseKey, rows: Rows) -> None:
        src, dst = self._ends(rows)
        mine = (src >= 0) & (dst >= 0)
        names = ("from_ms", "to_ms", "payload_bytes")
        columns: list[NDArray[Any]] = [src, dst, *(rows.floats(name) for name in names)]
        if mine.any():
            chunks = self._spans.setdefault(PlanKey(*key[:3]), _Chunks())
            chunks.add(key.phase, [column[mine] for column in columns])

    # --- times -----------------------------------------------------------------------------

    def _take_histograms(self) -> None:
        clocks = self._clock_table()
        for key, rows in self._waiting:
            for kind in dict.fromkeys(rows.texts("kind")):
                mine = rows.taken(np.flatnonzero(rows.columns["kind"] == kind))
                shifts = None
                if clocks is not None and kind == ONE_WAY:
                    moment = (key.trial, key.repeat, key.phase)
                    shifts = np.array([clocks.shift_ns(moment, pair) for pair in mine.pairs()])
                part = buckets(mine.texts("buckets"), shifts)
                self._times.setdefault((PlanKey(*key[:3]), kind), _Chunks()).parts.append(part)
        self._waiting.clear()

    def _clock_table(self) -> ClockTable | None:
        """None: all nodes share one clock, so that nothing is to be put right."""
        if all(record.get("clock") == _SHARED for record in self._ready):
            return None
        ports: dict[str, list[Port]] = {}
        for port, node in self._opened.items():
            ports.setdefault(node, []).append(Port(port, node, "", (), {}))
        nodes = tuple(Process(node, tuple(some), {}) for node, some in ports.items())
        table = ClockTable(Site("", nodes))
        for record in self._ready:
            table.take_ready(record)
        for record in self._clocks:
            table.take(record)
        return table


def joined(
    wanted: Sequence[Ints], known: Sequence[Ints], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The values of the known flows (phase, source, destination) for each that is wanted."""
    most = 1 + max(int(column.max()) for column in (*wanted, *known) if len(column))

    def code(columns: Sequence[Ints]) -> NDArray[np.int64]:
        phase, src, dst = (column.astype(np.int64) for column in columns)
        return (phase * most + src) * most + dst

    codes = code(known)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    asked = code(wanted)
    place = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
    found: NDArray[np.float64] = np.where(codes[place] == asked, values[order][place], np.nan)
    return found


def buckets(texts: Sequence[str | None], shifts: Floats | None) -> tuple[NDArray[Any], ...]:
    """All times of some histograms: middles of their buckets in ns, and how many each."""
    known = [text or "" for text in texts]
    numbers = np.array(" ".join(known).replace(":", " ").split(), dtype=np.int64)
    index, counts = numbers[0::2], numbers[1::2]
    values = _middles()[index]
    if shifts is not None:
        values = values + np.repeat(shifts, [text.count(":") for text in known])
    return summed(values, counts)


def summed(values: Floats, counts: NDArray[Any]) -> tuple[Floats, NDArray[np.int64]]:
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.bincount(place, weights=counts, minlength=len(distinct)).astype(np.int64)


def _middles() -> Floats:
    bounds = [bucket_bounds(index) for index in range(2240)]
    return np.array([least + width // 2 for least, width in bounds], dtype=np.float64)
