# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the tables as columns of numpy, and of one phase: its flows, its ports, its times.

A run of 1,024 ranks has millions of rows. Figures and counts are floats, NaN where they are null;
counts are exact below 2^53. Text and flags are in arrays of objects, None where they are null. A
column that is null throughout takes no room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .latency import Histogram
from .record_forms import Record
from .schema import ResultColumn, Row, columns_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Pair = tuple[str, str]  # source, destination
Times = dict[str, Histogram]  # of a flow, by kind


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
        known = columns_of(table)
        return cls(
            len(rows),
            {
                name: _column([row.get(name) for row in rows], known[name])
                for name in dict.fromkeys(key for row in rows for key in row if key in known)
            },
        )

    @classmethod
    def from_arrow(cls, data: Any, table: str) -> Rows:
        """Return an Arrow table or record batch as rows of `table`."""
        known = columns_of(table)
        columns = {}
        for name, column in zip(data.schema.names, data.columns, strict=True):
            if column.null_count < len(column) and name in known:
                chunk = column.combine_chunks() if hasattr(column, "combine_chunks") else column
                if hasattr(chunk, "chunks"):
                    chunk = chunk.chunk(0)
                columns[name] = _of_arrow(chunk, known[name].kind)
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
        if isinstance(which, slice):
            size = len(range(*which.indices(self.size)))
        else:
            size = int(which.sum()) if which.dtype == bool else len(which)
        return Rows(size, {name: column[which] for name, column in self.columns.items()})

    @classmethod
    def joined(cls, parts: Sequence[Rows], table: str) -> Rows:
        """Return the rows of several parts of one table, one after another."""
        if len(parts) == 1:
            return parts[0]
        known = columns_of(table)
        columns = {
            name: np.concatenate(
                [
                    part.floats(name) if known[name].is_number else part.objects(name)
                    for part in parts
                ]
            )
            for name in dict.fromkeys(name for part in parts for name in part.columns)
        }
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


def _column(values: Sequence[Any], column: ResultColumn) -> NDArray[Any]:
    if column.is_number:
        return np.array(values, dtype=np.float64)
    made = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        made[row] = np.array(value, dtype=np.int64) if column.kind == "counts" else value
    return made


def _of_arrow(column: Any, kind: str) -> NDArray[Any]:
    """Return an Arrow array in numpy; equal texts are one object, a list is an array."""
    import pyarrow as pa

    found: NDArray[Any]
    if kind == "counts":
        found = np.empty(len(column), dtype=object)
        flat, offsets = column.flatten().to_numpy(), np.cumsum(column.value_lengths().to_numpy())
        found[:] = np.split(flat, offsets[:-1])
    elif kind in ("text", "flag"):
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


@dataclass(frozen=True)
class PhaseRows:
    """All that nodes told of one phase: rows by table."""

    moment: tuple[int, int, int]  # trial, repeat, phase
    tables: Mapping[str, Rows]

    def rows(self, table: str) -> Rows:
        """Return the rows of one table; none where it has none."""
        return self.tables.get(table, NOTHING)


_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True)
class NameIndex(Generic[_Name]):
    """Names by number, and the number of each element."""

    names: list[_Name]
    place: Numbers

    @classmethod
    def of(cls, names: Iterable[_Name]) -> NameIndex[_Name]:
        """Return names numbered as they come."""
        numbers: dict[_Name, int] = {}
        place = [numbers.setdefault(name, len(numbers)) for name in names]
        return cls(list(numbers), np.array(place, dtype=np.int64))

    def select(self, which: Bools) -> NameIndex[_Name]:
        """Return the index of some of the elements."""
        if which.all():
            return self
        return NameIndex.of(self.names[place] for place in self.place[which].tolist())


@dataclass(frozen=True)
class Packets:
    """Layer-1 bytes that each flow's RDMA messages take on the line beside their payload."""

    path_mtu_bytes: Floats
    packet_bytes: Floats  # headers of each packet
    message_bytes: Floats  # further headers, once a message


@dataclass(frozen=True)
class PhaseFlows:
    """The flows of a phase in one network: a row of `flows` each, both ends together."""

    rows: Rows
    times: Mapping[Pair, Times]  # of those that have some
    window_off: Bools  # its tester's window was not as agreed: it enters no mean
    settled: bool = True  # false: stopped in the middle, with frames still in flight
    packets: Packets | None = None  # of verbs; None: frames are seen, or it is TCP

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
            packets=packets and Packets(*(column[which] for column in vars(packets).values())),
        )


@dataclass(frozen=True)
class PhaseRecords:
    """All that was told of one phase in one network."""

    flow_rows: Rows = NOTHING
    ports: Rows = NOTHING
    spans: Rows = NOTHING
    times: dict[Pair, Times] = field(default_factory=dict)
    executions: Sequence[Row] = ()  # rows of `histograms`, each of a rank
    misdelivered: Counter[tuple[str | None, str | None, str]] = field(default_factory=Counter)
    """Frames of a flow at a port that is not its destination: by src, dst (None: whose is not
    known) and that port."""

    @property
    def has_flows(self) -> bool:
        """Return whether anything was told of a flow of the phase."""
        return bool(len(self.flow_rows) or self.times)

    def flows(self) -> PhaseFlows:
        """Return all flows, those too of which there are times alone."""
        rows, known = self.flow_rows, set(self.flow_rows.pairs())
        timed = [{"src": src, "dst": dst} for src, dst in self.times if (src, dst) not in known]
        if timed:
            rows = Rows.joined([rows, Rows.of("flows", timed)], "flows")
        return PhaseFlows(rows, self.times, np.zeros(len(rows), dtype=bool))


def by_network(phase: PhaseRows, beside: Iterable[Record] = ()) -> dict[str, PhaseRecords]:
    """Return a phase's rows by network; `beside`: its events."""
    parts: dict[str, Row] = {}
    for table, name in (("flows", "flow_rows"), ("ports", "ports"), ("intervals", "spans")):
        for network, rows in phase.rows(table).by_network():
            parts.setdefault(network, {})[name] = rows
    for network, rows in phase.rows("histograms").by_network():
        here = parts.setdefault(network, {})
        for row in rows.records():
            if row["kind"] == EXECUTION:
                here.setdefault("executions", []).append(row)
            else:
                times = here.setdefault("times", {}).setdefault((row["src"], row["dst"]), {})
                times[row["kind"]] = Histogram.of_row(row)
    for record in beside:
        if record["type"] == "misdelivered-flow":
            here = parts.setdefault(record["network"], {})
            misdelivered = here.setdefault("misdelivered", Counter())
            misdelivered[record.get("src"), record.get("dst"), record["port"]] += record["frames"]
    return {network: PhaseRecords(**found) for network, found in parts.items()}
