# SPDX-License-Identifier: BSD-3-Clause
"""Rows of tables as numpy columns, and the data of one phase: flows, ports and times.

A run of 1,024 ranks has millions of rows. Figures and counts are floats, NaN for null; counts are
exact below 2^53. Text and flags are in arrays of objects, None for null. A column of nulls takes no
memory. Times are merged histograms of nodes. A figure with too few samples, or below the possible
difference of the clocks, is None, with a reason (doc/reference/latency.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..base.model import LATENCY_FIGURES, LATENCY_KINDS, ONE_WAY, PERCENTILES
from .schema import MOMENT, PhaseData, Row, record_batch
from .summary_form import Entry, filled

# --- times ----------------------------------------------------------------------------------------

NS_PER_US = 1000.0

_CUT = "the clocks differ by more than the min delay, so that some delays are negative"

# Layout of the buckets in engine/measure/histogram.h.
_LINEAR = 1 << 6
BUCKETS = 2240


def bucket_bounds(index: int) -> tuple[int, int]:
    """Return the lowest value and the width of a bucket, in ns."""
    shift = 0 if index < 2 * _LINEAR else index // _LINEAR - 1
    return (index - shift * _LINEAR) << shift, 1 << shift


_MIDDLE = [least + width // 2 for least, width in map(bucket_bounds, range(BUCKETS))]
MIDDLES = np.array(_MIDDLE)  # middle of each bucket, ns


def needed(share: float) -> int:
    """Return the min number of samples for a percentile: 1 / (1 - share)."""
    return round(1 / (1 - share))


@dataclass(slots=True)
class Histogram:
    """Histogram of times of one kind, of a flow or of many flows, phases and repeats.

    `merge` adds another histogram; results are `count`, `lost`, `mean_ns`, `min_ns`, `max_ns` and
    `quantile_ns`.
    """

    # counts by time in ns, the middle of a bucket
    times: dict[int, int] = field(default_factory=dict)
    count: int = 0
    sum_ns: int = 0
    min_ns: int | None = None
    max_ns: int | None = None
    lost: int | None = None  # messages that never returned; None: a one-way kind
    bound_ns: int | None = None  # one way: max difference of the two clocks
    no_clock: bool = False  # one way: true if some times have an unknown bound
    zeros: int = 0  # times in the first bucket, which includes delays that the clocks made negative
    # upper bound of negative delays, counted as 0; None: there are none
    cut_ns: int | None = None

    @classmethod
    def of_row(cls, row: Row) -> Histogram:
        """Create the histogram that a row of the table `histograms` contains."""
        times: dict[int, int] = {}
        numbers = (np.asarray(row[name]).tolist() for name in ("bucket", "bucket_count"))
        for bucket, number in zip(*numbers, strict=True):
            times[_MIDDLE[bucket]] = times.get(_MIDDLE[bucket], 0) + number
        own: Row = {name: row.get(name) for name in _OF_ROW}
        no_clock = row.get("kind") == ONE_WAY and row.get("bound_ns") is None
        return cls(times=times, no_clock=no_clock, zeros=times.get(0, 0), **own)

    def moved_by(self, shift_ns: int, bound_ns: int) -> Histogram:
        """Return the one-way delays after a correction of the clocks, with the new error bound."""
        return replace(
            self,
            times={ns + shift_ns: number for ns, number in self.times.items()},
            sum_ns=self.sum_ns + shift_ns * self.count,
            min_ns=None if self.min_ns is None else self.min_ns + shift_ns,
            max_ns=None if self.max_ns is None else self.max_ns + shift_ns,
            bound_ns=bound_ns,
            no_clock=False,
            zeros=0 if shift_ns else self.zeros,
            cut_ns=shift_ns if self.zeros and (shift_ns, bound_ns) != (0, 0) else None,
        )

    def merge(self, *others: Histogram) -> None:
        """Add the times of other histograms, without loss of precision."""
        times = self.times
        for other in others:
            for ns, number in other.times.items():
                times[ns] = times.get(ns, 0) + number
            self.no_clock |= other.no_clock
        for name, together in _TOGETHER.items():
            known = [n for one in (self, *others) if (n := getattr(one, name)) is not None]
            setattr(self, name, together(known) if known else None)

    def quantile_ns(self, share: float) -> float | None:
        """Return the time that a `share` of all times do not exceed; None for too few times."""
        if self.count < needed(share) or not self.whole:
            return None
        wanted, passed = math.ceil(share * self.count), 0
        for ns in sorted(self.times):
            passed += self.times[ns]
            if passed >= wanted:
                least = ns if self.min_ns is None else self.min_ns
                return max(least, ns if self.max_ns is None else min(self.max_ns, ns))
        return self.max_ns

    @property
    def mean_ns(self) -> float | None:
        """Return the exact mean of the times in ns; None without times."""
        return self.sum_ns / self.count if self.count else None

    @property
    def whole(self) -> bool:
        """Return whether the histogram's buckets contain every measured time."""
        return sum(self.times.values()) == self.count


_OF_ROW = ("count", "sum_ns", "min_ns", "max_ns", "lost", "bound_ns")
# By attribute: the function that combines the known values of several histograms.
_TOGETHER: dict[str, Callable[[list[int]], int]] = {
    **dict.fromkeys(("count", "sum_ns", "zeros", "lost"), sum),
    **dict.fromkeys(("max_ns", "bound_ns", "cut_ns"), max),
    "min_ns": min,
}


def merged(parts: Iterable[Histogram]) -> Histogram:
    """Merge several histograms into a new one."""
    total = Histogram()
    total.merge(*parts)
    return total


def figures(kind: str, times: Histogram | None) -> Entry:
    """Return the statistics of one kind of times in microseconds, with reasons for nulls."""
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
    """Return one statistic of times (LATENCY_FIGURES) in microseconds; None if it is unknown."""
    return None if times is None else _figure(kind, name, times)[0]


def _figure(kind: str, name: str, times: Histogram) -> tuple[float | None, str | None]:
    """Return one statistic in microseconds and the reason for a None; both None without times."""
    if times.count == 0:
        return None, None
    value, why = _value_ns(kind, name, times)
    if value is not None and name != "pdv":
        why = _refusal(name, value, times)
    return (None, why) if value is None or why else (round(value / NS_PER_US, 3), None)


def _value_ns(kind: str, name: str, times: Histogram) -> tuple[float | None, str | None]:
    if name in PERCENTILES:
        value = times.quantile_ns(PERCENTILES[name])
        are = "is" if times.count == 1 else "are"
        samples = f"{needed(PERCENTILES[name]):,} samples, there {are} {times.count:,}"
        few = f"{name.replace('_', '.')} needs {samples}"
        gap = few if times.whole else "buckets of the histogram are missing"
        return value, gap if value is None else None
    if name != "pdv":
        return {"min": times.min_ns, "mean": times.mean_ns, "max": times.max_ns}[name], None
    # RFC 5481 4.2: D(99.9 %) - D(min). The difference of the clocks cancels out, except in negative
    # delays.
    high, why = _value_ns(kind, "p99_9", times)
    if high is None or times.min_ns is None or (kind == ONE_WAY and _is_cut(times)):
        return None, why or _CUT
    return high - times.min_ns, None


def _refusal(name: str, value: float, times: Histogram) -> str | None:
    """Return the reason why a one-way delay is too uncertain to report; else None."""
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
    """Return whether some delays were negative due to the clocks and were counted as 0."""
    return times.cut_ns is not None or (times.bound_ns != 0 and times.zeros > 0)


def phase_latency(flows: Mapping[Pair, Times]) -> Entry:
    """Return a phase's latency for the summary: by kind, over all flows, and the worst flow."""
    entry = {}
    for kind in LATENCY_KINDS:
        found = {ends: times[kind] for ends, times in flows.items() if kind in times}
        values = ((figure(kind, "p99", times), *ends) for ends, times in found.items())
        worst = max((one for one in values if one[0] is not None), default=None)
        if found:
            entry[kind] = figures(kind, merged(found.values())) | {
                "worst": worst and filled("WorstFlow", p99=worst[0], src=worst[1], dst=worst[2])
            }
    return filled("Latency", entry)


Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Pair = tuple[str, str]  # source, destination
TrialKey = tuple[int, int]  # numbers of a trial and of its repeat
Moment = tuple[int, int, int]  # trial, repeat, phase
Times = dict[str, Histogram]  # a flow's times by kind


# --- rows of a table ------------------------------------------------------------------------------

EXECUTION = "execution"  # kind of times of a rank's repetitions


def or_zero(values: Floats) -> Floats:
    """Return values with 0 in place of NaN."""
    return np.where(np.isnan(values), 0.0, values)


class PhaseKey(NamedTuple):
    """Key of a phase: numbers of trial, repeat and phase, and the network."""

    trial: int
    repeat: int
    network: str
    phase: int


@dataclass(frozen=True)
class Rows:
    """Rows of one table, as numpy columns."""

    size: int
    columns: Mapping[str, NDArray[Any]]  # columns that have a value other than null

    def __len__(self) -> int:
        """Return the number of rows of the table."""
        return self.size

    @classmethod
    def of(cls, table: str, rows: Sequence[Row]) -> Rows:
        """Create rows of a table from mappings; a missing key is null."""
        return cls.from_arrow(record_batch(table, rows))

    @classmethod
    def from_arrow(cls, data: Any) -> Rows:
        """Create rows from an Arrow table or record batch."""
        columns = {
            name: _of_arrow(column)
            for name, column in zip(data.schema.names, data.columns, strict=True)
            if column.null_count < len(column)
        }
        return cls(data.num_rows, columns)

    def floats(self, name: str) -> Floats:
        """Return a column of figures or counts as floats; NaN for null."""
        found: Floats | None = self.columns.get(name)
        return np.full(self.size, np.nan) if found is None else found

    def objects(self, name: str) -> NDArray[Any]:
        """Return a column of text or flags as objects; None for null."""
        found = self.columns.get(name)
        return np.full(self.size, None, dtype=object) if found is None else found

    def texts(self, name: str) -> list[Any]:
        """Return a column of text or flags as a list; None for null."""
        found: list[Any] = self.objects(name).tolist()
        return found

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Return the source and destination of each row."""
        return zip(self.texts("src"), self.texts("dst"), strict=True)

    def select(self, which: NDArray[Any] | slice) -> Rows:
        """Return the rows with the given indices, or where a mask is true."""
        size = len(np.empty(self.size, np.bool_)[which])
        return Rows(size, {name: column[which] for name, column in self.columns.items()})

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Concatenate several parts of one table."""
        if len(parts) == 1:
            return parts[0]
        columns = {}
        for name, column in {n: c for part in parts for n, c in part.columns.items()}.items():
            read = Rows.objects if column.dtype == object else Rows.floats
            columns[name] = np.concatenate([read(part, name) for part in parts])
        return cls(sum(map(len, parts)), columns)

    def by_network(self) -> Iterator[tuple[str, Rows]]:
        """Return the rows by network, in order of first appearance."""
        networks = self.objects("network")
        names = dict.fromkeys(networks.tolist())
        for name in names:
            yield name, self if len(names) == 1 else self.select(np.flatnonzero(networks == name))

    def records(self) -> Iterator[Row]:
        """Return each row as a mapping without nulls; whole numbers are `int`."""
        lists: dict[str, list[Any]] = {
            name: column.tolist()
            if column.dtype == object
            else [None if x != x else int(x) if x.is_integer() else x for x in column.tolist()]
            for name, column in self.columns.items()
        }
        for row in range(self.size):
            yield {name: one[row] for name, one in lists.items() if one[row] is not None}


NOTHING = Rows(0, {})


def _of_arrow(column: Any) -> NDArray[Any]:
    """Convert an Arrow column to numpy; equal texts share one object, a list becomes an array."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    found: NDArray[Any]
    if pa.types.is_list(column.type):
        found = np.empty(len(column), dtype=object)
        flat, offsets = column.flatten().to_numpy(), np.cumsum(column.value_lengths().to_numpy())
        found[:] = np.split(flat, offsets[:-1])
    elif pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
        coded = column.dictionary_encode()
        distinct = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
        codes = coded.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
        found = distinct[codes]
    else:
        found = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


# --- one phase -----------------------------------------------------------------------------------


_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True)
class NameIndex(Generic[_Name]):
    """Index of a list of names: the distinct names, and for each element its name's number."""

    names: list[_Name]
    place: Numbers

    @classmethod
    def of(cls, names: Iterable[_Name]) -> NameIndex[_Name]:
        """Create the index of the given names, numbered by first appearance."""
        every = list(names)
        numbers = {name: number for number, name in enumerate(dict.fromkeys(every))}
        place = np.fromiter(map(numbers.__getitem__, every), np.int64, len(every))
        return cls(list(numbers), place)

    def select(self, which: Bools) -> NameIndex[_Name]:
        """Return the name index of the elements for which `which` is true."""
        if which.all():
            return self
        return NameIndex.of(self.names[place] for place in self.place[which].tolist())


class Packets(NamedTuple):
    """Packet sizes of RDMA messages in bytes, for one flow or as arrays over several."""

    path_mtu_bytes: Any  # int, or Floats
    packet_bytes: Any  # headers of each packet
    message_bytes: Any  # further headers of each message


@dataclass(frozen=True)
class PhaseFlows:
    """Flows of a phase in one network: one row of `flows` for each flow, with both ends."""

    rows: Rows
    times: Mapping[Pair, Times]  # histograms by flow and kind
    window_off: Bools  # true: the flow's window was not as agreed; it counts in no mean
    settled: bool = True  # false: the phase was stopped with frames in flight
    # packet sizes of verbs; None for other transports
    packets: Packets | None = None

    @classmethod
    def of(cls, rows: Rows, times: Mapping[Pair, Times] | None = None) -> PhaseFlows:
        """Create a phase's flows from rows of the table `flows`; all windows count as correct."""
        return cls(rows, times or {}, np.zeros(len(rows), dtype=bool))

    def __len__(self) -> int:
        """Return the number of flows."""
        return len(self.rows)

    def __getitem__(self, name: str) -> Floats:
        """Return a column of counts or figures; NaN for a value that was not reported."""
        return self.rows.floats(name)

    @cached_property
    def pairs(self) -> list[Pair]:
        """Return the source and destination name of each flow."""
        return list(self.rows.pairs())

    def reported(self, end: str) -> Bools:
        """Return for each flow whether the node at one end reported it.

        `end`: `source` or `destination`.
        """
        return np.array(self.rows.objects(f"{end}_reported") == True, dtype=bool)  # noqa: E712

    def has_role(self, role: str) -> Bools:
        """Return for each flow whether its source reported the given role.

        `generate`: it sends its own frames; `forward`: it sends received frames; `copy`: its frames
        are also those of another flow of the port, since they go to all ports.
        """
        return np.array(self.rows.objects("role") == role, dtype=bool)

    @property
    def generates(self) -> Bools:
        """Return for each flow whether its source generates the frames itself."""
        return self.reported("source") & ~self.has_role("forward") & ~self.has_role("copy")

    @property
    def whole(self) -> Bools:
        """Return for each flow whether both ends reported it."""
        return self.reported("source") & self.reported("destination")

    @property
    def idle(self) -> Bools:
        """Return for each flow whether it had no message, only barriers of a schedule."""
        source, destination = self.reported("source"), self.reported("destination")
        sent, received = self["sent_messages"], self["received_messages"]
        none: Bools = (~source | (sent == 0)) & (~destination | (received == 0))
        return (source | destination) & none

    @cached_property
    def _ends(self) -> dict[str, NameIndex[str]]:
        return {end: NameIndex.of(self.rows.texts(end)) for end in ("src", "dst")}

    def ends(self, end: str) -> NameIndex[str]:
        """Return each flow's port at one end, `src` or `dst`, as an index of names."""
        return self._ends[end]

    def select(self, which: Bools) -> PhaseFlows:
        """Return the flows with the given indices, or where a mask is true."""
        rows = self.rows.select(which)
        packets = self.packets
        return replace(
            self,
            rows=rows,
            times={pair: self.times[pair] for pair in rows.pairs() if pair in self.times},
            window_off=self.window_off[which],
            packets=packets and Packets(*(column[which] for column in packets)),
        )


@dataclass(frozen=True)
class PhaseRows:
    """Rows of one phase in each table, for one network or for all networks."""

    moment: Moment = (0, 0, 0)
    tables: Mapping[str, Rows] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: PhaseData) -> PhaseRows:
        """Create a phase's rows from record batches by table, as the collector returns them."""
        first = next(iter(tables.values()))
        trial, repeat, phase = (first[name][0].as_py() for name in MOMENT)
        rows = {name: Rows.from_arrow(batch) for name, batch in tables.items()}
        return cls((trial, repeat, phase), rows)

    def rows(self, table: str) -> Rows:
        """Return the phase's rows of one table; no rows if it has none."""
        return self.tables.get(table, NOTHING)

    def by_network(self) -> dict[str, PhaseRows]:
        """Return the phase's rows by network; each network has the rows of all nodes."""
        parts: dict[str, dict[str, Rows]] = {}
        for table in ("flows", "ports", "intervals", "histograms"):
            for network, rows in self.rows(table).by_network():
                parts.setdefault(network, {})[table] = rows
        nodes = {"phases": self.rows("phases")}
        return {network: PhaseRows(self.moment, nodes | own) for network, own in parts.items()}

    @cached_property
    def executions(self) -> list[Row]:
        """Return the rows of `histograms` that contain ranks' repetition times."""
        return [row for row in self.rows("histograms").records() if row["kind"] == EXECUTION]

    @cached_property
    def times(self) -> dict[Pair, Times]:
        """Return the histograms of each flow by kind."""
        found: dict[Pair, Times] = {}
        for row in self.rows("histograms").records():
            if row["kind"] != EXECUTION:
                found.setdefault((row["src"], row["dst"]), {})[row["kind"]] = Histogram.of_row(row)
        return found

    def flows(self) -> PhaseFlows:
        """Return all flows of the phase, including flows with reported times alone."""
        rows = self.rows("flows")
        known = set(rows.pairs()) if self.times else set()
        timed = [{"src": src, "dst": dst} for src, dst in self.times if (src, dst) not in known]
        if timed:
            rows = Rows.joined([rows, Rows.of("flows", timed)])
        return PhaseFlows.of(rows, self.times)
