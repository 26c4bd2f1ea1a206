# SPDX-License-Identifier: BSD-3-Clause
"""The flows of a phase: what the records of both their ends say, a column for each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .collector import EXECUTION, PhaseRows
from .latency import Histogram
from .record_forms import Record
from .rows import NOTHING, Bools, Floats, Rows
from .schema import flow_side

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
        """Return a column of counts or figures; NaN where it was not reported."""
        column: Floats | None = self.columns.get(key)
        return np.full(len(self.seen), np.nan) if column is None else column

    @property
    def generates(self) -> Bools:
        """Whether it is known to send of its own accord, and not what it has received."""
        return self.seen & ~self.forwards & ~self.copies

    @cached_property
    def copies(self) -> Bools:
        """Whether its frames are those of another flow of its port: they go to all ports."""
        return self._has_role("copy")

    @cached_property
    def forwards(self) -> Bools:
        """Whether it sends what it has received."""
        return self._has_role("forward")

    def _has_role(self, role: str) -> Bools:
        found = self.columns.get("role")
        return np.zeros(len(self.seen), dtype=bool) if found is None else found == role

    def taken(self, which: Bools) -> Ends:
        """Of some flows."""
        return Ends(self.seen[which], {key: some[which] for key, some in self.columns.items()})


@dataclass(frozen=True)
class Packets:
    """Layer-1 bytes that each flow's RDMA messages take on the line beside their payload."""

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
        """Return the number of flows."""
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
        """Return the port of each flow at one end: `src` or `dst`."""
        return self._sources if end == "src" else self._destinations

    @cached_property
    def _sources(self) -> Places[str]:
        return Places.of([src for src, _ in self.pairs])

    @cached_property
    def _destinations(self) -> Places[str]:
        return Places.of([dst for _, dst in self.pairs])

    def taken(self, which: Bools) -> PhaseFlows:
        """Return some of them."""
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


@dataclass(frozen=True)
class PhaseRecords:
    """All that was told of one phase in one network."""

    flow_rows: Rows = NOTHING
    ports: Rows = NOTHING
    spans: Rows = NOTHING
    times: dict[Pair, Times] = field(default_factory=dict)
    executions: Sequence[Mapping[str, Any]] = ()  # rows of `histograms`, each of a rank
    misdelivered: Counter[tuple[str | None, str | None, str]] = field(default_factory=Counter)
    """Frames of a flow at a port that is not its destination: by src, dst (None: whose is not
    known) and that port."""

    @property
    def has_flows(self) -> bool:
        """Return whether anything was told of a flow of the phase."""
        return bool(len(self.flow_rows) or self.times)

    def flows(self) -> PhaseFlows:
        """Return both ends of each flow."""
        rows = self.flow_rows
        pairs = list(dict.fromkeys([*rows.pairs(), *self.times]))
        source, destination = (_ends(rows, side, len(pairs)) for side in ("source", "destination"))
        off = np.zeros(len(pairs), dtype=bool)
        return PhaseFlows(pairs, source, destination, self.times, off)


def _ends(rows: Rows, side: str, size: int) -> Ends:
    """Return one end of so many flows, of which the first have a row each."""

    def column(values: NDArray[Any], nothing: Any) -> NDArray[Any]:
        return np.concatenate([values, np.full(size - len(rows), nothing, dtype=values.dtype)])

    seen = np.array(rows.objects(f"{side}_reported") == True, dtype=bool)  # noqa: E712
    columns = {
        key: column(rows.columns[name], None if rows.columns[name].dtype == object else np.nan)
        for key, name in flow_side(side).items()
        if name in rows.columns
    }
    return Ends(column(seen, False), columns)


def by_network(phase: PhaseRows, beside: Iterable[Record] = ()) -> dict[str, PhaseRecords]:
    """Return a phase's rows by network; `beside`: its events."""
    parts: dict[str, dict[str, Any]] = {}
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
            misdelivered = parts.setdefault(record["network"], {}).setdefault(
                "misdelivered", Counter()
            )
            misdelivered[record.get("src"), record.get("dst"), record["port"]] += record["frames"]
    return {network: PhaseRecords(**found) for network, found in parts.items()}
