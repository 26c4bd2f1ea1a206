# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the tables as columns of numpy, and of one phase: its flows, its ports, its times.

A run of 1,024 ranks has millions of rows. Figures and counts are floats, NaN where they are null;
counts are exact below 2^53. Text and flags are in arrays of objects, None where they are null. A
column that is null throughout takes no room. Times are histograms of nodes, put together and read
with what they can say (doc/reference/latency.md): a figure that there are too few samples for, or
that is smaller than what the clocks may differ by, is None, and the reason stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..base.model import IPDV, LATENCY_FIGURES, LATENCY_KINDS, ONE_WAY, PERCENTILES
from .record_forms import Record
from .schema import MOMENT, Row, record_batch
from .summary_form import Entry, filled

# --- times ----------------------------------------------------------------------------------------

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
_NUMBER = {middle: number for number, middle in enumerate(_MIDDLE)}
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

    times: dict[int, int] = field(default_factory=dict)  # how many, by ns: middles of buckets
    count: int = 0
    sum_ns: int = 0
    min_ns: int | None = None
    max_ns: int | None = None
    overflow: int = 0
    lost: int | None = None  # never came back; None: nothing was to
    bound_ns: int | None = None  # one way: what the two clocks may differ by
    no_clock: bool = False  # one way: of some it is not known what they may differ by
    zeros: int = 0  # of the least bucket, which has what the clocks made negative, too
    cut_ns: int | None = None  # what delays that the clocks made negative are read as; None: none

    @classmethod
    def of(cls, row: Row, buckets: Iterable[tuple[int, int]]) -> Histogram:
        """Return the times of a record or a row, whose buckets are these."""
        times: dict[int, int] = {}
        for bucket, number in buckets:
            times[_MIDDLE[bucket]] = times.get(_MIDDLE[bucket], 0) + number
        return cls(
            times=times,
            count=row["count"],
            sum_ns=row["sum_ns"],
            min_ns=row.get("min_ns"),
            max_ns=row.get("max_ns"),
            overflow=row.get("overflow") or 0,
            lost=row.get("lost"),
            bound_ns=row.get("bound_ns"),
            no_clock=row.get("kind") == ONE_WAY and row.get("bound_ns") is None,
            zeros=times.get(0, 0),
        )

    @classmethod
    def of_row(cls, row: Row) -> Histogram:
        """Return the times of a row of `histograms`."""
        numbers = (row[name].tolist() for name in ("bucket", "bucket_count"))
        return cls.of(row, zip(*numbers, strict=True))

    def add_record(self, record: Record) -> None:
        """Add the times of a `histogram` record."""
        words = (word.partition(":") for word in str(record.get("buckets") or "").split())
        self.merge(Histogram.of(record, ((int(bucket), int(n)) for bucket, _, n in words)))

    def row(self) -> Row:
        """Return the columns of a row of `histograms` that say these times."""
        ordered = sorted(self.times)
        names = ("count", "sum_ns", "min_ns", "max_ns", "overflow", "lost", "bound_ns")
        return {
            **{name: getattr(self, name) for name in names},
            "bucket": [_NUMBER[ns] for ns in ordered],
            "bucket_count": [self.times[ns] for ns in ordered],
        }

    def moved_by(self, shift_ns: int, bound_ns: int) -> Histogram:
        """Return the same one-way delays with the clocks put right; exact where the middles are."""
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

    def merge(self, other: Histogram) -> None:
        """Add another's times; nothing is lost by it."""
        for ns, number in other.times.items():
            self.times[ns] = self.times.get(ns, 0) + number
        self.no_clock |= other.no_clock
        for name, together in _TOGETHER.items():
            known = [n for n in (getattr(self, name), getattr(other, name)) if n is not None]
            setattr(self, name, together(known) if known else None)

    def quantile_ns(self, share: float) -> float | None:
        """Return the time that at least `share` of all do not exceed; None: too few to say."""
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
        """Exact: sums are."""
        return self.sum_ns / self.count if self.count else None

    @property
    def whole(self) -> bool:
        """Whether each time is in a bucket."""
        return sum(self.times.values()) == self.count


# What the numbers of two histograms amount to, where they are known.
_TOGETHER: dict[str, Callable[[list[int]], int]] = {
    **dict.fromkeys(("count", "sum_ns", "overflow", "zeros", "lost"), sum),
    **dict.fromkeys(("max_ns", "bound_ns", "cut_ns"), max),
    "min_ns": min,
}


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
        are = "is" if times.count == 1 else "are"
        samples = f"{needed(PERCENTILES[name]):,} samples, there {are} {times.count:,}"
        few = f"{name.replace('_', '.')} needs {samples}"
        gap = few if times.whole else "some of the histogram is missing"
        return value, gap if value is None else None
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
    return times.cut_ns is not None or (times.bound_ns != 0 and times.zeros > 0)


def phase_latency(
    flows: Mapping[tuple[str, str], Mapping[str, Histogram]],
) -> Entry:
    """Return a phase's, by kind: of all its flows together, and the flow with the greatest p99."""
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
Times = dict[str, Histogram]  # of a flow, by kind


# --- rows of a table ------------------------------------------------------------------------------

EXECUTION = "execution"  # the kind of times of a rank's repetitions


def or_zero(values: Floats) -> Floats:
    """Return the values, 0 where nothing was observed."""
    return np.where(np.isnan(values), 0.0, values)


class PhaseKey(NamedTuple):
    """One phase of one trial in one network."""

    trial: int
    repeat: int
    network: str
    phase: int


@dataclass(frozen=True)
class Rows:
    """Rows of one table."""

    size: int
    columns: Mapping[str, NDArray[Any]]  # those that are not null throughout

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.size

    @classmethod
    def of(cls, table: str, rows: Sequence[Row]) -> Rows:
        """Return mappings as rows of a table; a key that is missing is null."""
        return cls.from_arrow(record_batch(table, rows))

    @classmethod
    def from_arrow(cls, data: Any) -> Rows:
        """Return the rows of an Arrow table or record batch."""
        columns = {
            name: _of_arrow(column)
            for name, column in zip(data.schema.names, data.columns, strict=True)
            if column.null_count < len(column)
        }
        return cls(data.num_rows, columns)

    def floats(self, name: str) -> Floats:
        """Return a column of figures or counts."""
        found: Floats | None = self.columns.get(name)
        return np.full(self.size, np.nan) if found is None else found

    def objects(self, name: str) -> NDArray[Any]:
        """Return a column of text or flags."""
        found = self.columns.get(name)
        return np.full(self.size, None, dtype=object) if found is None else found

    def texts(self, name: str) -> list[Any]:
        """Return a column of text or flags as a list."""
        found: list[Any] = self.objects(name).tolist()
        return found

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Return source and destination of each row."""
        return zip(self.texts("src"), self.texts("dst"), strict=True)

    def select(self, which: NDArray[Any] | slice) -> Rows:
        """Return some of the rows."""
        size = len(np.empty(self.size, np.bool_)[which])
        return Rows(size, {name: column[which] for name, column in self.columns.items()})

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of several parts of one table, one after another."""
        if len(parts) == 1:
            return parts[0]
        columns = {}
        for name, column in {n: c for part in parts for n, c in part.columns.items()}.items():
            read = Rows.objects if column.dtype == object else Rows.floats
            columns[name] = np.concatenate([read(part, name) for part in parts])
        return cls(sum(map(len, parts)), columns)

    def by_network(self) -> Iterator[tuple[str, Rows]]:
        """Return the rows of each network, in the order in which networks come."""
        networks = self.objects("network")
        names = dict.fromkeys(networks.tolist())
        for name in names:
            yield name, self if len(names) == 1 else self.select(np.flatnonzero(networks == name))

    def records(self) -> Iterator[Row]:
        """Return each row as a mapping of what is not null, whole figures as `int`."""
        lists = {name: _listed(column) for name, column in self.columns.items()}
        for row in range(self.size):
            yield {name: one[row] for name, one in lists.items() if one[row] is not None}


NOTHING = Rows(0, {})


def _of_arrow(column: Any) -> NDArray[Any]:
    """Return a column of Arrow in numpy; equal texts are one object, a list is an array."""
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


def _listed(column: NDArray[Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    if column.dtype == object:
        return values
    return [
        None if value != value else int(value) if value.is_integer() else value for value in values
    ]


# --- one phase -----------------------------------------------------------------------------------


_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True)
class NameIndex(Generic[_Name]):
    """Names by number, and the number of each element."""

    names: list[_Name]
    place: Numbers

    @classmethod
    def of(cls, names: Iterable[_Name]) -> NameIndex[_Name]:
        """Return names numbered as they come."""
        every = list(names)
        numbers = {name: number for number, name in enumerate(dict.fromkeys(every))}
        place = np.fromiter(map(numbers.__getitem__, every), np.int64, len(every))
        return cls(list(numbers), place)

    def select(self, which: Bools) -> NameIndex[_Name]:
        """Return the index of some of the elements."""
        if which.all():
            return self
        return NameIndex.of(self.names[place] for place in self.place[which].tolist())


class Packets(NamedTuple):
    """Layer-1 bytes that the RDMA messages of a flow, or of each, take beside their payload."""

    path_mtu_bytes: Any  # int, or Floats
    packet_bytes: Any  # headers of each packet
    message_bytes: Any  # further headers, once a message


@dataclass(frozen=True)
class PhaseFlows:
    """The flows of a phase in one network: a row of `flows` each, both ends together."""

    rows: Rows
    times: Mapping[Pair, Times]  # of those that have some
    window_off: Bools  # its tester's window was not as agreed: it enters no mean
    settled: bool = True  # false: stopped in the middle, with frames still in flight
    packets: Packets | None = None  # of verbs; None: frames are seen, or it is TCP

    @classmethod
    def of(cls, rows: Rows, times: Mapping[Pair, Times] | None = None) -> PhaseFlows:
        """Return rows of `flows` as flows whose windows were as agreed."""
        return cls(rows, times or {}, np.zeros(len(rows), dtype=bool))

    def __len__(self) -> int:
        """Return the number of flows."""
        return len(self.rows)

    def __getitem__(self, name: str) -> Floats:
        """Return a column of counts or figures; NaN where it was not reported."""
        return self.rows.floats(name)

    @cached_property
    def pairs(self) -> list[Pair]:
        """Source and destination of each flow."""
        return list(self.rows.pairs())

    def reported(self, end: str) -> Bools:
        """Return whether the node of this end (source or destination) told of the flow."""
        found: Bools = np.array(self.rows.objects(f"{end}_reported") == True, dtype=bool)  # noqa: E712
        return found

    def has_role(self, role: str) -> Bools:
        """Return whether the source is known to have a role.

        `generate`; `forward`: it sends what it has received; `copy`: its frames are those of
        another flow of its port, for they go to all ports.
        """
        found: Bools = np.array(self.rows.objects("role") == role, dtype=bool)
        return found

    @property
    def generates(self) -> Bools:
        """Whether the source is known to send of its own accord, and not what it has received."""
        return self.reported("source") & ~self.has_role("forward") & ~self.has_role("copy")

    @property
    def whole(self) -> Bools:
        """Whether both ends left a record."""
        return self.reported("source") & self.reported("destination")

    @property
    def idle(self) -> Bools:
        """Whether the ends counted messages and saw none: of steps, only barriers used the flow."""
        source, destination = self.reported("source"), self.reported("destination")
        sent, received = self["sent_messages"], self["received_messages"]
        none: Bools = (~source | (sent == 0)) & (~destination | (received == 0))
        return (source | destination) & none

    @cached_property
    def _ends(self) -> dict[str, NameIndex[str]]:
        return {end: NameIndex.of(self.rows.texts(end)) for end in ("src", "dst")}

    def ends(self, end: str) -> NameIndex[str]:
        """Return the port of each flow at one end: `src` or `dst`."""
        return self._ends[end]

    def select(self, which: Bools) -> PhaseFlows:
        """Return some of the flows."""
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
    """All that nodes told of one phase, in all networks or in one: rows by table."""

    moment: tuple[int, int, int] = (0, 0, 0)  # trial, repeat, phase
    tables: Mapping[str, Rows] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> PhaseRows:
        """Return a phase of record batches by table, as the collector gives one that has ended."""
        first = next(iter(tables.values()))
        trial, repeat, phase = (first[name][0].as_py() for name in MOMENT)
        rows = {name: Rows.from_arrow(batch) for name, batch in tables.items()}
        return cls((trial, repeat, phase), rows)

    def rows(self, table: str) -> Rows:
        """Return the rows of one table; none where it has none."""
        return self.tables.get(table, NOTHING)

    def by_network(self) -> dict[str, PhaseRows]:
        """Return the rows of each network; nodes are in all of them."""
        parts: dict[str, dict[str, Rows]] = {}
        for table in ("flows", "ports", "intervals", "histograms"):
            for network, rows in self.rows(table).by_network():
                parts.setdefault(network, {})[table] = rows
        nodes = {"phases": self.rows("phases")}
        return {network: PhaseRows(self.moment, nodes | own) for network, own in parts.items()}

    @cached_property
    def executions(self) -> list[Row]:
        """Rows of `histograms` of ranks' repetitions."""
        return [row for row in self.rows("histograms").records() if row["kind"] == EXECUTION]

    @cached_property
    def times(self) -> dict[Pair, Times]:
        """The times of flows, by kind."""
        found: dict[Pair, Times] = {}
        for row in self.rows("histograms").records():
            if row["kind"] != EXECUTION:
                found.setdefault((row["src"], row["dst"]), {})[row["kind"]] = Histogram.of_row(row)
        return found

    def flows(self) -> PhaseFlows:
        """Return all flows, those too of which there are times alone."""
        rows = self.rows("flows")
        known = set(rows.pairs()) if self.times else set()
        timed = [{"src": src, "dst": dst} for src, dst in self.times if (src, dst) not in known]
        if timed:
            rows = Rows.joined([rows, Rows.of("flows", timed)])
        return PhaseFlows.of(rows, self.times)
