# SPDX-License-Identifier: BSD-3-Clause
"""The flows of a phase: what the records of both their ends say, a column for each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .latency import Histogram
from .record_forms import DamagedRecord, Record
from .rows import Bools, Floats, Numbers, Rows, columns_of

Pair = tuple[str, str]  # source, destination
Times = dict[str, Histogram]  # of a flow, by kind


_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True)
class Places(Generic[_Name]):
    """Names by number, and the number of each element."""

    names: list[_Name]
    place: NDArray[np.int64]

    @classmethod
    def of(cls, names: Sequence[_Name]) -> Places[_Name]:
        """Numbered as they come."""
        numbers: dict[_Name, int] = {}
        place = [numbers.setdefault(name, len(numbers)) for name in names]
        return cls(list(numbers), np.array(place, dtype=np.int64))

    def taken(self, which: Bools) -> Places[_Name]:
        """Of some of the elements."""
        if which.all():
            return self
        return Places.of([self.names[place] for place in self.place[which].tolist()])


@dataclass(frozen=True)
class Ends:
    """One end of each flow. NaN, None: its record does not say, or there is none."""

    seen: Bools  # whether there is a record
    columns: Mapping[str, NDArray[Any]]

    def floats(self, key: str) -> Floats:
        """A column of counts or figures of `flow` records."""
        column: Floats = self.columns[key]
        return column

    @property
    def generates(self) -> Bools:
        """Whether it is known to send of its own accord, and not what it has received."""
        return self.seen & ~self.forwards & ~self.copies

    @cached_property
    def copies(self) -> Bools:
        """Whether its frames are those of another flow of its port: they go to all ports."""
        found: Bools = self.columns["role"] == "copy"
        return found

    @cached_property
    def forwards(self) -> Bools:
        """Whether it sends what it has received."""
        found: Bools = self.columns["role"] == "forward"
        return found

    def taken(self, which: Bools) -> Ends:
        """Of some flows."""
        return Ends(self.seen[which], {key: some[which] for key, some in self.columns.items()})


@dataclass(frozen=True)
class Packets:
    """What RDMA messages of each flow take on the line beside their payload, in layer-1 bytes."""

    path_mtu_bytes: Floats
    packet_bytes: Floats  # headers of each packet
    message_bytes: Floats  # further headers, once a message

    def taken(self, which: Bools) -> Packets:
        """Of some flows."""
        return Packets(
            self.path_mtu_bytes[which], self.packet_bytes[which], self.message_bytes[which]
        )


@dataclass(frozen=True)
class PhaseFlows:
    """The flows of a phase in one network, in the order in which they were first heard of."""

    pairs: Sequence[Pair]
    source: Ends
    destination: Ends
    times: Mapping[Pair, Times]  # of those that have some
    window_off: Bools  # its tester's window was not as agreed: it enters no mean
    settled: bool = True  # false: stopped in the middle, with frames still in flight
    packets: Packets | None = None  # of verbs; None: frames are seen, or it is TCP

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def whole(self) -> Bools:
        """Whether both ends left a record."""
        return self.source.seen & self.destination.seen

    @property
    def idle(self) -> Bools:
        """Whether the ends counted messages and saw none: of steps, only barriers used the flow."""
        ends = (self.source, self.destination)
        none = [~end.seen | (end.floats("messages") == 0) for end in ends]
        found: Bools = (self.source.seen | self.destination.seen) & none[0] & none[1]
        return found

    def ends(self, end: str) -> Places[str]:
        """The port of each flow at one end: `src` or `dst`."""
        return self._sources if end == "src" else self._destinations

    @cached_property
    def _sources(self) -> Places[str]:
        return Places.of([src for src, _ in self.pairs])

    @cached_property
    def _destinations(self) -> Places[str]:
        return Places.of([dst for _, dst in self.pairs])

    def taken(self, which: Bools) -> PhaseFlows:
        """Some of them."""
        pairs = [pair for pair, taken in zip(self.pairs, which.tolist(), strict=True) if taken]
        return replace(
            self,
            pairs=pairs,
            source=self.source.taken(which),
            destination=self.destination.taken(which),
            times={pair: self.times[pair] for pair in pairs if pair in self.times},
            window_off=self.window_off[which],
            packets=None if self.packets is None else self.packets.taken(which),
        )


@dataclass
class PhaseRecords:
    """All that was said of one phase in one network, and on which lines of the file."""

    disorders: dict[Pair, Record] = field(default_factory=dict)  # `reorder` records
    strays: Counter[tuple[str | None, str | None, str]] = field(default_factory=Counter)
    """Frames of a flow at a port that is not its destination: by src, dst (None: whose is not
    known) and that port."""
    times: dict[Pair, Times] = field(default_factory=dict)
    first_line: int = 0
    last_line: int = 0
    _rows: dict[str, list[Rows]] = field(default_factory=dict)
    _single: dict[str, list[tuple[int, Record]]] = field(default_factory=dict)
    _sides: set[tuple[str, str, str]] = field(default_factory=set)

    @property
    def has_flows(self) -> bool:
        """Whether anything was said of a flow of the phase."""
        return bool(self._sides or self.times)

    def add(self, kind: str, rows: Rows) -> None:
        """Takes records of a type of `rows.KINDS`."""
        self.add_lines(int(rows.lines.min()), int(rows.lines.max()))
        if kind == "histogram":
            for record in rows.records(kind):
                self._add_times(record)
            return
        if kind == "flow":
            sides = list(zip(*map(rows.texts, ("src", "dst", "side")), strict=True))
            fresh = set(sides)
            if len(fresh) == len(sides) and self._sides.isdisjoint(fresh):
                self._sides |= fresh
            else:
                for line, (src, dst, side) in zip(rows.lines.tolist(), sides, strict=True):
                    self._add_side(src, dst, side, line)
        self._rows.setdefault(kind, []).append(rows)

    def add_record(self, line: int, record: Record) -> None:
        """Takes one such record."""
        self.add_lines(line, line)
        kind = record["type"]
        if kind == "histogram":
            self._add_times(record)
            return
        if kind == "flow":
            self._add_side(record["src"], record["dst"], record["side"], None)
        self._single.setdefault(kind, []).append((line, record))

    def add_lines(self, first: int, last: int) -> None:
        """Notes that these lines of the file belong to the phase."""
        self.first_line = min(self.first_line or first, first)
        self.last_line = max(self.last_line, last)

    def add_stray(self, record: Record) -> None:
        """Takes a `misdelivered-flow` record: frames of one flow that came to another port."""
        self.strays[record["src"], record["dst"], record["port"]] += record["frames"]

    def rows(self, kind: str) -> Rows:
        """All records of a type so far."""
        if kind in self._single:
            self._rows.setdefault(kind, []).append(Rows.of(kind, self._single.pop(kind)))
        if kind not in self._rows:
            return Rows.of(kind, [])
        self._rows[kind] = [Rows.joined(self._rows[kind])]
        return self._rows[kind][0]

    def last_rows(self, kind: str, key: str) -> Rows:
        """Of the records of a type that are equal in a key the last: one a port, or a node."""
        rows = self.rows(kind)
        last = {name: row for row, name in enumerate(rows.texts(key))}
        return rows if len(last) == len(rows) else rows.taken(np.array(list(last.values())))

    def flows(self) -> PhaseFlows:
        """Both ends of each flow."""
        rows = self.rows("flow")
        places = Places.of([*rows.pairs(), *self.times])
        pairs, place = places.names, places.place[: len(rows)]
        is_source = rows.columns["side"] == "source"
        source, destination = (
            _ends(rows, np.flatnonzero(mine), place, len(pairs)) for mine in (is_source, ~is_source)
        )
        off = np.zeros(len(pairs), dtype=bool)
        return PhaseFlows(pairs, source, destination, self.times, off)

    def _add_times(self, record: Record) -> None:
        """Joins one part of a flow's times to its flow."""
        times = self.times.setdefault((record["src"], record["dst"]), {})
        times.setdefault(record["kind"], Histogram()).add_record(record)

    def _add_side(self, src: str, dst: str, side: str, line: int | None) -> None:
        if (src, dst, side) in self._sides:
            raise DamagedRecord(
                f"a second record of the {side} of {src} -> {dst} in one phase", line
            )
        self._sides.add((src, dst, side))


def _ends(rows: Rows, mine: Numbers, place: Numbers, count: int) -> Ends:
    """Of so many flows. `mine`: the rows of this end; `place`: of the flow that each row is of."""
    flows = place[mine]
    seen = np.zeros(count, dtype=bool)
    seen[flows] = True
    columns: dict[str, NDArray[Any]] = {}
    for key, what in columns_of("flow").items():
        column = np.full(count, np.nan) if what == "number" else np.full(count, None, dtype=object)
        column[flows] = rows.columns[key][mine]
        columns[key] = column
    return Ends(seen, columns)
