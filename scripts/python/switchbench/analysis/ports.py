# SPDX-License-Identifier: BSD-3-Clause
"""Ports over all phases: a bad cable shows in its port, not in a phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..base import transports
from ..base.model import SCHEDULE, Site
from ..records.document.ports import Direction, PortEntry, RdmaPort, SlowPhase
from ..records.flows import PhaseFlows, Places
from ..records.record_forms import Record
from ..records.rows import Bools, Floats, Numbers, Rows
from .bottleneck import group_of_port
from .measures import (
    PhaseResult,
    as_int,
    delivered_line_bps,
    intended_line_bps,
    lines_of,
    lost_frames,
    median,
)
from .tester import SOME_RANK

# A port is pointed out when what it typically gets is so far below the median of the ports that
# were busy with it (doc/reference/measures.md).
BELOW_MEDIAN = 0.97
ALIKE = 0.97  # loads that differ by less are one


Numbered = tuple[Numbers, Floats]  # numbers of ports, and a value of each


class _Direction:
    """All ports with one transport as sources, or as destinations, by their numbers."""

    def __init__(self, ports: int) -> None:
        self.phases = np.zeros(ports, dtype=np.int64)
        self.lost = np.zeros(ports)  # NaN: not known of some flow
        self.percents: list[Numbered] = []  # of flows that no host limited
        self.relative: list[Numbered] = []  # to the phase's median port
        # By setting: ports that kept up in some phase of it, and ports that fell behind where what
        # is between the groups does not explain it.
        self._sound: dict[str, Bools] = {}
        self._own: dict[str, Bools] = {}

    def note(self, setting: str, relative: Numbered, shared: Bools) -> None:
        """Takes a phase: `shared`, what is between the groups may have held their flows back."""
        self.relative.append(relative)
        numbers, values = relative
        low = values < BELOW_MEDIAN
        for kept, which in ((self._sound, ~low), (self._own, low & ~shared)):
            if setting not in kept:
                kept[setting] = np.zeros(len(self.phases), dtype=bool)
            kept[setting][numbers[which]] = True

    def slow(self, relative: Floats) -> Bools:
        """Whether each port itself is, and not a path that it shares with others: it falls behind
        with whatever partner. `relative`: medians of `self.relative`."""
        falls = np.zeros(len(relative), dtype=bool)
        for setting, own in self._own.items():
            falls |= own & ~self._sound[setting]
        return falls & (relative < BELOW_MEDIAN)


def _medians(parts: Sequence[Numbered], ports: int) -> tuple[Floats, Floats]:
    """By port the median and the minimum of what is known; NaN where nothing is."""
    numbers = np.concatenate([part[0] for part in parts] or [np.zeros(0, dtype=np.int64)])
    values = np.concatenate([part[1] for part in parts] or [np.zeros(0)])
    known = ~np.isnan(values)
    order = np.argsort(values[known])
    small = numbers[known][order].astype(np.min_scalar_type(ports))  # sorted by digits
    ordered = np.append(values[known][order][np.argsort(small, kind="stable")], np.nan)
    count = np.bincount(numbers[known], minlength=ports)
    first = np.cumsum(count) - count
    middle = (ordered[first + np.maximum(count - 1, 0) // 2] + ordered[first + count // 2]) / 2
    none = np.where(count > 0, 0.0, np.nan)
    return middle + none, ordered[first] + none


@dataclass
class _Lines:
    """All ports with one transport."""

    ends: dict[str, _Direction]
    slowest: dict[str, list[SlowPhase]] = field(default_factory=dict)  # phases by port


class PortTable:
    """Gathers, phase by phase, what the summary's `ports` says."""

    def __init__(self, site: Site) -> None:
        """Takes the site's ports, whose order is the table's, and its groups of them."""
        ports = site.ports
        self._one_host = site.lab is not None  # each port's load is all ports'
        self._ports = {port.name: port for port in ports}
        self._number = {name: number for number, name in enumerate(self._ports)}
        wired = {port.name: port.switch for port in ports if port.switch}
        found: Mapping[str, str] = group_of_port(site.groups) or wired
        names = Places.of([found.get(port, "") for port in self._ports])
        self._group = names.place
        self._lines: dict[str, _Lines] = {}  # by transport
        self._opened: dict[tuple[str, str], Record] = {}
        self._variants: dict[tuple[str, str], list[str]] = {}
        self._downs: Counter[str] = Counter()

    def add(self, result: PhaseResult, transport: str) -> None:
        """Takes one measured phase. Where ranks go by steps, ports have different things to do; a
        rate that the tester limited says nothing of a port."""
        alike = result.entry["traffic"] != SCHEDULE
        limited = self._limited(result)
        size = len(self._ports)
        lines = self._lines.get(transport)
        if lines is None:
            ends = {"source": _Direction(size), "destination": _Direction(size)}
            lines = self._lines[transport] = _Lines(ends)
        shared = self._shared(result) if alike else np.zeros(size, dtype=bool)
        setting = str([result.entry[name] for name in ("intended_load", "size", "network")])
        lost = lost_frames(result.flows)
        for end, name, shares in (
            ("source", "src", result.shares.source),
            ("destination", "dst", result.shares.destination),
        ):
            direction = lines.ends[end]
            numbers = np.array([self._number[port] for port in shares], dtype=np.int64)
            direction.phases[numbers] += 1
            ports = result.flows.ends(name)
            direction.lost[self._numbers(ports)] += np.bincount(ports.place, lost, len(ports.names))
            free = np.array([port not in limited for port in shares], dtype=bool)
            percents = np.array(list(shares.values()), dtype=np.float64)
            direction.percents.append((numbers[free], percents[free]))
            parts = percents / _intended(result, name, shares)
            middle = median(parts)
            free &= ~np.isnan(parts)
            if alike and middle and free.any():
                busy = numbers[free]
                direction.note(setting, (busy, parts[free] / middle), shared[busy])
        slowest = result.entry["slowest"]
        if alike and slowest and slowest["src"] not in limited:
            place: SlowPhase = {"trial": result.key.trial, "phase": result.key.phase}
            for port in {slowest["src"], slowest["dst"]}:
                lines.slowest.setdefault(port, []).append(place)

    def _limited(self, result: PhaseResult) -> set[str]:
        """Ports of whose flows some begin or end at a host that was the limit."""
        hosts = {limit["port"] for limit in result.entry["tester_limited"]}
        every = self._one_host or SOME_RANK in hosts
        if not hosts:
            return hosts
        return hosts.union(
            *(ends for ends in result.flows.pairs if every or not hosts.isdisjoint(ends))
        )

    def _numbers(self, ports: Places[str]) -> Numbers:
        return np.array([*map(self._number.__getitem__, ports.names)], dtype=np.int64)

    def _shared(self, result: PhaseResult) -> Bools:
        """Ports of the phase whose flows all go between groups, where most flows between the same
        two fall behind: what is between them holds these back, for all that is known."""
        flows = result.flows
        if flows.window_off.any():
            flows = flows.taken(~flows.window_off)
        parts = delivered_line_bps(flows) / _expected_bps(result, flows)
        behind = np.nan_to_num(parts) < BELOW_MEDIAN * (median(parts) or 0.0)
        src, dst = (self._numbers(flows.ends(end))[flows.ends(end).place] for end in ("src", "dst"))
        one, other = self._group[src], self._group[dst]
        path = one * (len(self._ports) + 1) + other
        counts = np.bincount(path, minlength=1), np.bincount(path, behind, minlength=1)
        held = (one != other) & (2 * counts[1] > counts[0])[path]
        touched, freely = (np.zeros(len(self._ports), dtype=bool) for _ in range(2))
        for end in (src, dst):
            touched[end] = True
            freely[end[~held]] = True
        found: Bools = touched & ~freely
        return found

    def open(self, record: Record) -> None:
        """Takes what a node said of a port when it opened it."""
        self._opened[record["port"], record["transport"]] = record

    def lose_link(self, port: str) -> None:
        """Takes an event: the port's link went down."""
        self._downs[port] += 1

    def use(self, rows: Rows, transport: str) -> None:
        """Takes `port` records: how frames of each port were sent and received."""
        for port, variant in zip(rows.texts("port"), rows.texts("variant"), strict=True):
            seen = self._variants.setdefault((port, transport), [])
            if variant and variant not in seen:
                seen.append(variant)

    def summary(self) -> list[PortEntry]:
        """One entry for each port and transport, in the site's order."""
        return [entry for transport in sorted(self._lines) for entry in self._entries(transport)]

    def _rdma(self, name: str, transport: str) -> RdmaPort | None:
        opened = self._opened.get((name, transport), {})
        if not transports.of(transport).rdma:
            return None
        return {
            "rdma": opened.get("rdma"),
            "link_layer": opened.get("link_layer"),
            "gid": opened.get("gid"),
            "gid_index": opened.get("gid_index"),
            "mtu": opened.get("mtu"),
        }

    def _entries(self, transport: str) -> Iterator[PortEntry]:
        """One for each port that had flows."""
        lines, size = self._lines[transport], len(self._ports)
        percents, relatives, slow = {}, {}, np.zeros(size, dtype=bool)
        for end, direction in lines.ends.items():
            percents[end] = _medians(direction.percents, size)
            relatives[end], _ = _medians(direction.relative, size)
            slow |= direction.slow(relatives[end])
        for number, (name, port) in enumerate(self._ports.items()):
            ends: dict[str, Direction] = {
                end: {
                    "phases": int(direction.phases[number]),
                    "median_percent_of_line": _known(percents[end][0][number]),
                    "min_percent_of_line": _known(percents[end][1][number]),
                    "relative_to_median": _known(relatives[end][number]),
                    "lost_frames": as_int(direction.lost[number])
                    if direction.phases[number]
                    else None,
                }
                for end, direction in lines.ends.items()
            }
            if not any(end["phases"] for end in ends.values()):
                continue
            compared = any(end["relative_to_median"] is not None for end in ends.values())
            opened = self._opened.get((name, transport), {})
            yield {
                "port": name,
                "transport": transport,
                "network": port.network,
                "switch": port.switch,
                "switch_port": port.switch_port,
                "driver": opened.get("driver"),
                "numa": opened.get("numa"),
                "queues": opened.get("queues"),
                "cores": opened.get("cores"),
                "offloads": opened.get("offloads"),
                "rdma": self._rdma(name, transport),
                "link_downs": self._downs[name],
                "variants": self._variants.get((name, transport), []),
                "as_source": ends["source"],
                "as_destination": ends["destination"],
                "below_median": bool(slow[number]) if compared else None,
                "slowest_phases": lines.slowest.get(name, []),
            }


def _expected_bps(result: PhaseResult, flows: PhaseFlows) -> Floats:
    """Of these flows of the phase: what was intended for each, as far as its receiver's line goes;
    1 where that is not known."""
    rates, places = intended_line_bps(flows), flows.ends("dst")
    asked = np.bincount(places.place, rates, len(places.names))
    fitting = np.minimum(lines_of(places, result.lines) / asked, 1.0)
    expected: Floats = rates * fitting[places.place]
    known = _says_intentions(result) and not np.isnan(expected).any()
    return expected if known else np.ones(1)


def _intended(result: PhaseResult, end: str, ports: Iterable[str]) -> Floats:
    """What was intended for each port, as a share of its line and of 1 at most; 1 where all ports
    had the same, or where it is not known."""
    flows, places = result.flows, result.flows.ends(end)
    rates = np.bincount(places.place, intended_line_bps(flows), len(places.names))
    shares = np.minimum(rates / lines_of(places, result.lines), 1.0)
    if not _says_intentions(result) or np.isnan(shares).any():
        return np.ones(1)
    if shares.min(initial=1.0) >= ALIKE * shares.max(initial=0.0):
        return np.ones(1)
    by_name = dict(zip(places.names, shares.tolist(), strict=True))
    return np.array([by_name[port] for port in ports])


def _says_intentions(result: PhaseResult) -> bool:
    """Whether all sources say what they were to send; what TCP intends is what the network lets
    it."""
    intended = result.flows.source.floats("intended")
    return transports.of(result.entry["transport"]).frames and bool((intended > 0).all())


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
