# SPDX-License-Identifier: BSD-3-Clause
"""Ports over all phases: a bad cable shows in its port, not in a phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..base import transports
from ..base.model import SCHEDULE, Site
from ..records.record_forms import Record
from ..records.rows import Floats, Numbers, Rows
from ..records.summary_form import Entry, filled
from .measures import (
    PhaseResult,
    as_int,
    intended_line_bps,
    lines_of,
    lost_frames,
    median,
)
from .tester import SOME_RANK

ALIKE = 0.97  # loads that differ by less are one


Numbered = tuple[Numbers, Floats]  # numbers of ports, and a value of each


class _Direction:
    """Sums of all ports with one transport as sources, or as destinations, by port number."""

    def __init__(self, ports: int) -> None:
        self.phases = np.zeros(ports, dtype=np.int64)
        self.lost = np.zeros(ports)  # NaN: not known of some flow
        self.percents: list[Numbered] = []  # of flows that no host limited
        self.relative: list[Numbered] = []  # to the phase's median port


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
    slowest: dict[str, list[Entry]] = field(default_factory=dict)  # phases by port


class PortTable:
    """Gathers, phase by phase, what the summary's `ports` says."""

    def __init__(self, site: Site) -> None:
        """Take the site's ports, whose order is the table's."""
        ports = site.ports
        self._one_host = site.lab is not None  # each port's load is all ports'
        self._ports = {port.name: port for port in ports}
        self._number = {name: number for number, name in enumerate(self._ports)}
        self._lines: dict[str, _Lines] = {}  # by transport
        self._opened: dict[tuple[str, str], Record] = {}
        self._variants: dict[tuple[str, str], list[str]] = {}
        self._downs: Counter[str] = Counter()

    def add(self, result: PhaseResult, transport: str) -> None:
        """Take one measured phase.

        Where ranks go by steps, ports have different things to do; a rate that the tester limited
        says nothing of a port.
        """
        alike = result.entry["traffic"] != SCHEDULE
        limited = self._limited(result)
        size = len(self._ports)
        lines = self._lines.get(transport)
        if lines is None:
            ends = {"source": _Direction(size), "destination": _Direction(size)}
            lines = self._lines[transport] = _Lines(ends)
        lost = lost_frames(result.flows)
        for end, name, shares in (
            ("source", "src", result.shares.source),
            ("destination", "dst", result.shares.destination),
        ):
            direction = lines.ends[end]
            numbers = np.array([self._number[port] for port in shares], dtype=np.int64)
            direction.phases[numbers] += 1
            ports = result.flows.ends(name)
            places = np.array([self._number[port] for port in ports.names], dtype=np.int64)
            direction.lost[places] += np.bincount(ports.place, lost, len(ports.names))
            free = np.array([port not in limited for port in shares], dtype=bool)
            percents = np.array(list(shares.values()), dtype=np.float64)
            direction.percents.append((numbers[free], percents[free]))
            parts = percents / _intended(result, name, shares)
            middle = median(parts)
            free &= ~np.isnan(parts)
            if alike and middle and free.any():
                direction.relative.append((numbers[free], parts[free] / middle))
        slowest = result.entry["slowest"]
        if alike and slowest and slowest["src"] not in limited:
            place: Entry = {"trial": result.key.trial, "phase": result.key.phase}
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

    def open(self, record: Record) -> None:
        """Take what a node said of a port when it opened it."""
        self._opened[record["port"], record["transport"]] = record

    def lose_link(self, port: str) -> None:
        """Take an event: the port's link went down."""
        self._downs[port] += 1

    def use(self, rows: Rows, transport: str) -> None:
        """Take `port` records: how frames of each port were sent and received."""
        for port, variant in zip(rows.texts("port"), rows.texts("variant"), strict=True):
            seen = self._variants.setdefault((port, transport), [])
            if variant and variant not in seen:
                seen.append(variant)

    def summary(self, suspects: Mapping[str, str]) -> list[Entry]:
        """Return one entry for each port and transport, in the site's order.

        `suspects`: by port, what it is suspected of.
        """
        return [
            {**entry, "suspect": suspects.get(entry["port"])}
            for transport in sorted(self._lines)
            for entry in self._entries(transport)
        ]

    def _entries(self, transport: str) -> Iterator[Entry]:
        """Yield one for each port that had flows."""
        lines, size = self._lines[transport], len(self._ports)
        percents, relatives = {}, {}
        for end, direction in lines.ends.items():
            percents[end] = _medians(direction.percents, size)
            relatives[end], _ = _medians(direction.relative, size)
        for number, (name, port) in enumerate(self._ports.items()):
            ends = {
                f"as_{end}": filled(
                    "Direction",
                    phases=int(direction.phases[number]),
                    median_percent_of_line=_known(percents[end][0][number]),
                    min_percent_of_line=_known(percents[end][1][number]),
                    relative_to_median=_known(relatives[end][number]),
                    lost_frames=as_int(direction.lost[number])
                    if direction.phases[number]
                    else None,
                )
                for end, direction in lines.ends.items()
            }
            if not any(end["phases"] for end in ends.values()):
                continue
            opened = self._opened.get((name, transport), {})
            yield filled(
                "PortEntry",
                ends,
                opened,
                port=name,
                transport=transport,
                network=port.network,
                switch=port.switch,
                switch_port=port.switch_port,
                rdma=filled("RdmaPort", opened) if transports.of(transport).rdma else None,
                link_downs=self._downs[name],
                variants=self._variants.get((name, transport), []),
                suspect=None,
                slowest_phases=lines.slowest.get(name, []),
            )


def _intended(result: PhaseResult, end: str, ports: Iterable[str]) -> Floats:
    """Return what was intended for each port, as a share of its line and of 1 at most.

    1 where all ports had the same, or where it is not known.
    """
    flows, places = result.flows, result.flows.ends(end)
    rates = np.bincount(places.place, intended_line_bps(flows), len(places.names))
    shares = np.minimum(rates / lines_of(places, result.lines), 1.0)
    # What TCP intends is what the network lets it.
    said = transports.of(result.entry["transport"]).frames and (flows["intended"] > 0).all()
    if not said or np.isnan(shares).any():
        return np.ones(1)
    if shares.min(initial=1.0) >= ALIKE * shares.max(initial=0.0):
        return np.ones(1)
    by_name = dict(zip(places.names, shares.tolist(), strict=True))
    return np.array([by_name[port] for port in ports])


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
