# SPDX-License-Identifier: BSD-3-Clause
"""Records as columns of numbers: a run of 1,024 ranks has millions of them, so each kind is read in
bulk and only what figures need is kept.

Keys are those of doc/node-protocol.md, formulas those of doc/measures.md.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.model import LATENCY_KINDS, Port, Process, Site
from ..records.latency import bucket_bounds
from ..records.record_forms import BUCKETS, REPEATS, DamagedRecord, Record, parse
from . import measures
from .clocks import ClockTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

_BATCH = 1 << 26  # bytes of lines in memory at a time
_BEGIN = b'{"type":"'
_KIND = len(_BEGIN) + 4  # bytes of a line that tell which type it is of
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
        behind it (doc/measures.md, "Interval results")."""
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
        return cls(*_summed(values, np.concatenate([part.counts for part in parts])))


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
            offered = _joined((phase, src, dst), (s_phase, s_src, s_dst), s_frames)
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
        return PlanTimes(*_summed(values, counts)) if counts.any() else None

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
                for line in map(_as_written, self._each(kinds.pop(kind))):
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

        schema = pa.schema([(name, _arrow(kind)) for name, kind in columns.items()])
        options = arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore"
        )
        text = b"".join(lines)
        try:
            table = arrow_json.read_json(
                io.BytesIO(_as_mappings(text) if columns is _INTERIM else text),
                parse_options=options,
            )
        except pa.ArrowInvalid:
            table = None
        if table is not None and _is_sound(table):
            return table
        rows = [_with_mappings(record) for record in self._each(lines)]
        return pa.Table.from_pylist(rows, schema=schema)

    # --- flows -----------------------------------------------------------------------------

    def _take_flows(self, lines: list[bytes]) -> None:
        table = self._table(lines, _FLOW)
        window_ns, payload = _numbers(table, "window_ns"), _numbers(table, "window_payload_bytes")
        with np.errstate(divide="ignore", invalid="ignore"):
            mbps = np.where(window_ns > 0, 8e3 * payload / window_ns, np.nan)
        columns = [
            _numbers(table, "phase").astype(np.int32),
            self._ends(table, "src"),
            self._ends(table, "dst"),
            mbps,
            _numbers(table, "frames"),
            _numbers(table, "corrupted"),
        ]
        for plan, chosen in _plans(table):
            for side in ("source", "destination"):
                mine = chosen & _is(table, "side", side) & (columns[1] >= 0) & (columns[2] >= 0)
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
        record = _owners(flows)  # of each flow
        flow = _owners(counts)  # of each span
        place = np.arange(len(flow)) - counts.offsets.to_numpy()[flow]  # of a span in its flow
        marks = table["at_ms"].combine_chunks()
        first, end = (marks.offsets.to_numpy()[record[flow] + more] for more in (0, 1))
        marked = first + place < end  # what has no time is left out
        at_ms = np.append(marks.flatten().to_numpy(zero_copy_only=False), np.nan)
        begin = _numbers(table, "from_ms")[record[flow]]
        mark = np.where(marked, first + place, len(at_ms) - 1)
        from_ms = np.where(place > 0, at_ms[np.maximum(mark - 1, 0)], begin)
        columns = [
            _numbers(table, "phase").astype(np.int32)[record[flow]],
            self._places_of(flows.flatten().field("src"))[flow],
            self._ends(table, "dst")[record[flow]],
            from_ms,
            at_ms[mark],
            counts.flatten().to_numpy(zero_copy_only=False).astype(np.float64),
        ]
        right = (columns[1] >= 0) & (columns[2] >= 0) & (columns[4] > columns[3])
        for plan, chosen in _plans(table):
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
            for plan, chosen in _plans(table):
                for kind in LATENCY_KINDS:
                    mine = table.filter(chosen & _is(table, "kind", kind))
                    if mine.num_rows:
                        shifts = self._shifts(clocks, mine) if kind == "one_way" else None
                        part = _buckets(mine["buckets"].to_pylist(), shifts)
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


def _numbers(table: Any, name: str) -> NDArray[np.float64]:
    """A column, NaN where nothing was observed."""
    column: NDArray[np.float64] = table[name].cast("float64", safe=False).to_numpy()
    return column


def _is(table: Any, name: str, value: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    found: NDArray[np.bool_] = pc.fill_null(pc.equal(table[name], value), False).to_numpy()
    return found


def _plans(table: Any) -> Iterator[tuple[PlanKey, NDArray[np.bool_]]]:
    """The plans that the lines are of, and which lines; probes (phase -1) are of none."""
    trial, repeat, phase = (np.nan_to_num(_numbers(table, n)) for n in ("trial", "repeat", "phase"))
    coded = table["network"].combine_chunks().dictionary_encode()
    network = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    names = coded.dictionary.to_pylist()
    codes = (trial.astype(np.int64) << 32) + (repeat.astype(np.int64) << 16) + network
    same = len(codes) > 0 and codes.min() == codes.max()  # as in most batches
    for code in codes[:1].tolist() if same else np.unique(codes).tolist():
        chosen = (codes == code) & (phase >= 0)
        if chosen.any():
            yield PlanKey(code >> 32, code >> 16 & 0xFFFF, names[code & 0xFFFF]), chosen


def _arrow(kind: Any) -> Any:
    """An Arrow type: by its name, a list of one, a mapping of several."""
    import pyarrow as pa

    if isinstance(kind, list):
        return pa.list_(_arrow(kind[0]))
    if isinstance(kind, dict):
        return pa.struct([(name, _arrow(part)) for name, part in kind.items()])
    return getattr(pa, kind)()


def _as_written(record: Record) -> bytes:
    """The line of a record as nodes write them: its type comes first, and there are no blanks."""
    line = json.dumps({"type": record["type"]} | record, separators=(",", ":"))
    return line.encode() + b"\n"


_NEEDED = ("trial", "phase", "network", "side", "src", "dst", "kind")
_EXACT = 1 << 53  # whole numbers below it are exact as figures


def _is_sound(table: Any) -> bool:
    """Whether Arrow read what a record can hold (results.record_forms): no more is looked at."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in table.column_names:
        column = table[name]
        if name in _NEEDED and column.null_count:
            return False
        if name == "buckets":
            fits = pc.match_substring_regex(pc.fill_null(column, ""), BUCKETS)
            if not pc.all(fits, min_count=0).as_py():
                return False
        while pa.types.is_list(column.type) or pa.types.is_struct(column.type):
            column = pc.list_flatten(column) if pa.types.is_list(column.type) else _counts(column)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            found = pc.min_max(column)
            least, greatest = found["min"].as_py() or 0, found["max"].as_py() or 0
            most = REPEATS if name == "repeat" else _EXACT
            low = -_EXACT if pa.types.is_floating(column.type) else -(name == "phase")
            if not (low <= least and greatest < most):
                return False
    return True


def _counts(column: Any) -> Any:
    """Of the flows of interval results."""
    import pyarrow.compute as pc

    return pc.struct_field(column, "counts")


def _with_mappings(record: Record) -> Record:
    """As _as_mappings does it, for one record."""
    if record["type"] != "interval":
        return record
    return record | {"flows": [{"src": src, "counts": counts} for src, counts in record["flows"]]}


def _as_mappings(text: bytes) -> bytes:
    """Lines of `interval` records with `["node1:e0", [1, 2]]` as a mapping: Arrow's lists are of
    one type."""
    for old, new in ((b'["', b'{"src":"'), (b'",[', b'","counts":['), (b"]]", b"]}")):
        text = text.replace(old, new)
    return text


def _owners(lists: Any) -> NDArray[np.int64]:
    """For each element of an Arrow array of lists: which list it is in."""
    lengths = np.diff(lists.offsets.to_numpy())
    return np.repeat(np.arange(len(lists)), lengths)


def _joined(
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


def _buckets(texts: Sequence[str | None], shifts: Floats | None) -> tuple[NDArray[Any], ...]:
    """All times of some histograms: middles of their buckets in ns, and how many each."""
    known = [text or "" for text in texts]
    numbers = np.array(" ".join(known).replace(":", " ").split(), dtype=np.int64)
    index, counts = numbers[0::2], numbers[1::2]
    values = _middles()[index]
    if shifts is not None:
        values = values + np.repeat(shifts, [text.count(":") for text in known])
    return _summed(values, counts)


def _summed(values: Floats, counts: NDArray[Any]) -> tuple[Floats, NDArray[np.int64]]:
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.bincount(place, weights=counts, minlength=len(distinct)).astype(np.int64)


def _middles() -> Floats:
    bounds = [bucket_bounds(index) for index in range(2240)]
    return np.array([least + width // 2 for least, width in bounds], dtype=np.float64)
