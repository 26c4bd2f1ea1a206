# SPDX-License-Identifier: BSD-3-Clause
"""Records as columns of numbers: a run of 1,024 ranks has millions of them, so each kind is read in
bulk and only what figures need is kept.

Keys are those of doc/reference/node-protocol.md, formulas those of doc/reference/measures.md.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.model import LATENCY_KINDS, Port, Process, Site
from ..records.record_forms import DamagedRecord, Record, parse
from . import measures
from .clocks import ClockTable
from .tables import (
    Floats,
    Ints,
    PlanKey,
    arrow,
    as_mappings,
    as_written,
    buckets,
    equal_to,
    is_sound,
    joined,
    numbers,
    owners,
    plans,
    summed,
    with_mappings,
)

_BATCH = 1 << 26  # bytes of lines in memory at a time
_BEGIN = b'{"type":"'
_KIND = len(_BEGIN) + 4  # bytes of a line that tell which type it is of
_SHARED = "shared"


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


_FLOW = {
    "trial": "int32", "repeat": "int32", "network": "string", "phase": "int32",
    "side": "string", "src": "string", "dst": "string", "frames": "int64", "corrupted": "int64",
    "window_payload_bytes": "int64", "window_ns": "int64",
}  # fmt: skip
_HISTOGRAM = {
    "trial": "int32", "repeat": "int32", "network": "string", "phase": "int32",
    "src": "string", "dst": "string", "kind": "string", "buckets": "string",
}  # fmt: skip
_INTERIM = {
    "trial": "int32", "repeat": "int32", "network": "string", "phase": "int32", "dst": "string",
    "from_ms": "float64", "at_ms": ["float64"], "flows": [{"src": "string", "counts": ["int64"]}],
}  # fmt: skip


@dataclass
class _Chunks:
    """Arrays of one plan as they come, a tuple of columns each."""

    parts: list[tuple[NDArray[Any], ...]] = field(default_factory=list)

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
        self._clocks: list[list[bytes]] = []  # lines, until it is known whether they matter
        self._waiting: list[bytes] = []  # histograms, until all clocks are known
        self._bad = 0

    def read(self, path: Path) -> None:
        """Takes the whole file; what can't be read is said in `damage`."""
        takers: dict[bytes, Callable[[list[bytes]], None]] = {
            b"flow": self._take_flows,
            b"hist": lambda lines: self._waiting.append(b"".join(lines)),
            b"inte": self._take_spans,
            b"port": self._take_ports,
            b"read": lambda lines: self._ready.extend(self._each(lines)),
            b"cloc": self._clocks.append,
        }
        try:
            with path.open("rb") as file:
                for kind, lines in self._batches(file):
                    taker = takers.get(kind.removeprefix(_BEGIN))
                    if taker is not None:
                        taker(lines)
        except OSError as error:
            self.damage.append(f"{path.name} can't be read: {error.strerror}")
        self._take_histograms()
        if self._bad:
            lines_are = "1 line is" if self._bad == 1 else f"{self._bad:,} lines are"
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
        lost = measures.missing(offered, frames, np.nan_to_num(corrupted))
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

    # --- lines -----------------------------------------------------------------------------

    def _batches(self, file: io.BufferedReader) -> Iterator[tuple[bytes, list[bytes]]]:
        """Lines by what they begin with, up to the first letters of their type; many at a time."""
        while lines := file.readlines(_BATCH):
            if not lines[-1].endswith(b"\n"):
                lines.pop()  # the disk was full, or the machine died
                self.cut = True
            self.lines += len(lines)
            kinds: defaultdict[bytes, list[bytes]] = defaultdict(list)
            for line in lines:
                kinds[line[:_KIND]].append(line)
            for kind in [kind for kind in kinds if not kind.startswith(_BEGIN)]:
                for line in map(as_written, self._each(kinds.pop(kind))):
                    kinds[line[:_KIND]].append(line)
            yield from kinds.items()

    def _each(self, lines: Sequence[bytes]) -> Iterator[Record]:
        """The records of lines; those that are none are counted and left out."""
        for line in lines:
            try:
                yield parse(line)
            except DamagedRecord:
                self._bad += 1

    def _table(self, lines: Sequence[bytes], columns: Mapping[str, Any]) -> Any:
        """The named keys of lines as an Arrow table; damaged lines are counted and left out. Arrow
        reads a batch at once where all of it is as it has to be; else it is read line by line."""
        import pyarrow as pa
        from pyarrow import json as arrow_json

        schema = pa.schema([(name, arrow(kind)) for name, kind in columns.items()])
        options = arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore"
        )
        text = b"".join(lines)
        try:
            table = arrow_json.read_json(
                io.BytesIO(as_mappings(text) if columns is _INTERIM else text),
                parse_options=options,
            )
        except pa.ArrowInvalid:
            table = None
        if table is not None and is_sound(table):
            return table
        rows = [with_mappings(record) for record in self._each(lines)]
        return pa.Table.from_pylist(rows, schema=schema)

    # --- flows -----------------------------------------------------------------------------

    def _take_flows(self, lines: list[bytes]) -> None:
        table = self._table(lines, _FLOW)
        window_ns, payload = numbers(table, "window_ns"), numbers(table, "window_payload_bytes")
        with np.errstate(divide="ignore", invalid="ignore"):
            mbps = np.where(window_ns > 0, 8e3 * payload / window_ns, np.nan)
        columns = [
            numbers(table, "phase").astype(np.int32),
            self._ends(table, "src"),
            self._ends(table, "dst"),
            mbps,
            numbers(table, "frames"),
            numbers(table, "corrupted"),
        ]
        for plan, chosen in plans(table):
            for side in ("source", "destination"):
                mine = (
                    chosen & equal_to(table, "side", side) & (columns[1] >= 0) & (columns[2] >= 0)
                )
                if mine.any():
                    part = tuple(column[mine] for column in columns)
                    self._sides.setdefault((plan, side), _Chunks()).parts.append(part)

    def _ends(self, table: Any, name: str) -> Ints:
        """Places of ports; -1 for one that is not in the list."""
        return self._places_of(table[name].combine_chunks())

    def _places_of(self, names: Any) -> Ints:
        coded = names.dictionary_encode()
        places = [self._places.get(port, -1) for port in coded.dictionary.to_pylist()]
        codes = coded.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
        found: Ints = np.array([*places, -1], dtype=np.int32)[codes]
        return found

    # --- interval results -------------------------------------------------------------------

    def _take_spans(self, lines: list[bytes]) -> None:
        table = self._table(lines, _INTERIM)
        flows = table["flows"].combine_chunks()
        counts = flows.flatten().field("counts")
        record = owners(flows)  # of each flow
        flow = owners(counts)  # of each span
        place = np.arange(len(flow)) - counts.offsets.to_numpy()[flow]  # of a span in its flow
        marks = table["at_ms"].combine_chunks()
        first, end = (marks.offsets.to_numpy()[record[flow] + more] for more in (0, 1))
        marked = first + place < end  # what has no time is left out
        at_ms = np.append(marks.flatten().to_numpy(zero_copy_only=False), np.nan)
        begin = numbers(table, "from_ms")[record[flow]]
        mark = np.where(marked, first + place, len(at_ms) - 1)
        from_ms = np.where(place > 0, at_ms[np.maximum(mark - 1, 0)], begin)
        columns = [
            numbers(table, "phase").astype(np.int32)[record[flow]],
            self._places_of(flows.flatten().field("src"))[flow],
            self._ends(table, "dst")[record[flow]],
            from_ms,
            at_ms[mark],
            counts.flatten().to_numpy(zero_copy_only=False).astype(np.float64),
        ]
        right = (columns[1] >= 0) & (columns[2] >= 0) & (columns[4] > columns[3])
        for plan, chosen in plans(table):
            mine = right & chosen[record[flow]]
            if mine.any():
                part = tuple(column[mine] for column in columns)
                self._spans.setdefault(plan, _Chunks()).parts.append(part)

    # --- times -----------------------------------------------------------------------------

    def _take_ports(self, lines: list[bytes]) -> None:
        opened = [line for line in lines if line.startswith(b'port-open"', len(_BEGIN))]
        for record in self._each(opened):
            self._opened[record["port"]] = record["node"]

    def _take_histograms(self) -> None:
        clocks = self._clock_table()
        for text in self._waiting:
            table = self._table(text.splitlines(keepends=True), _HISTOGRAM)
            for plan, chosen in plans(table):
                for kind in LATENCY_KINDS:
                    mine = table.filter(chosen & equal_to(table, "kind", kind))
                    if mine.num_rows:
                        shifts = self._shifts(clocks, mine) if kind == "one_way" else None
                        part = buckets(mine["buckets"].to_pylist(), shifts)
                        self._times.setdefault((plan, kind), _Chunks()).parts.append(part)
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
        for lines in self._clocks:
            for record in self._each(lines):
                table.take(record)
        return table

    def _shifts(self, clocks: ClockTable | None, table: Any) -> NDArray[np.float64] | None:
        if clocks is None:
            return None
        names = ("trial", "repeat", "phase", "src", "dst")
        keys = zip(*(table[name].to_pylist() for name in names), strict=True)
        return np.array(
            [
                clocks.shift_ns((trial, repeat or 0, phase), (src, dst))
                for trial, repeat, phase, src, dst in keys
            ]
        )
