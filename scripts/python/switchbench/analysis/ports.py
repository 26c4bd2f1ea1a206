# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of ports over all phases: a bad cable shows in its port, not in a phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ..base import transports
from ..base.model import SCHEDULE, Device, Site, Trial
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
    observed,
)
from .tester import SOME_RANK

ALIKE = 0.97  # loads with a greater ratio count as equal

Numbered = tuple[Numbers, Floats]  # numbers of ports, and a value for each


class _Direction:
    """Sums of all ports with one transport as sources, or as destinations, by port number."""

    def __init__(self, ports: int) -> None:
        self.phases = np.zeros(ports, dtype=np.int64)
        self.lost = np.zeros(ports)  # NaN: unknown for some flow
        self.percents: list[Numbered] = []  # percent of line, for flows that no host limited
        self.relative: list[Numbered] = []  # relative to the phase's median port

    def entries(self) -> Iterator[Entry]:
        """Yield the summary's statistics of each port as this end."""
        size = len(self.phases)
        columns = (*_medians(self.percents, size), _medians(self.relative, size)[0])
        known = zip(*map(observed, columns), strict=True)
        for (median_percent, least_percent, relative), phases, lost in zip(
            known, self.phases.tolist(), self.lost, strict=True
        ):
            yield filled(
                "Direction",
                phases=phases,
                median_percent_of_line=median_percent,
                min_percent_of_line=least_percent,
                relative_to_median=relative,
                lost_frames=as_int(lost) if phases else None,
            )


def _medians(parts: Sequence[Numbered], ports: int) -> tuple[Floats, Floats]:
    """Return the median and the minimum of the known values by port; NaN without any."""
    numbers = np.concatenate([np.zeros(0, dtype=np.int64), *(part[0] for part in parts)])
    values = np.concatenate([np.zeros(0), *(part[1] for part in parts)])
    known = ~np.isnan(values)
    order = np.argsort(values[known])
    small = numbers[known][order].astype(np.min_scalar_type(ports))  # small integers sort faster
    ordered = np.append(values[known][order][np.argsort(small, kind="stable")], np.nan)
    count = np.bincount(numbers[known], minlength=ports)
    first = np.cumsum(count) - count
    middle = (ordered[first + np.maximum(count - 1, 0) // 2] + ordered[first + count // 2]) / 2
    none = np.where(count > 0, 0.0, np.nan)
    return middle + none, ordered[first] + none


class _Lines:
    """Statistics of all ports with one transport."""

    def __init__(self, ports: int) -> None:
        self.ends = {"source": _Direction(ports), "destination": _Direction(ports)}
        self.slowest: dict[str, list[Entry]] = {}  # phases by port


class PortTable:
    """Collector of the summary's `ports`, phase by phase."""

    def __init__(self, site: Site) -> None:
        """Set up the table in the order of the site's ports, or of a device's front."""
        front = site.device.ports if site.device else ()
        order = {name: place for place, name in enumerate(front)}
        ports = sorted(site.ports, key=lambda port: order.get(port.switch_port or "", 0))
        self._one_host = site.lab is not None  # the load of one port is a load of all
        self._ports = {port.name: port for port in ports}
        self._number = {name: number for number, name in enumerate(self._ports)}
        self._lines: dict[str, _Lines] = {}  # by transport
        self._opened: dict[tuple[str, str], Record] = {}
        self._variants: dict[tuple[str, str], dict[str, None]] = {}
        self._downs: Counter[str] = Counter()

    def add(self, result: PhaseResult, transport: str) -> None:
        """Add one measured phase.

        Ranks in dependent steps have different loads, so their ports can't be compared; a rate that
        the tester limited does not count.
        """
        alike = result.entry["traffic"] != SCHEDULE
        limited = self._limited(result)
        lines = self._lines.setdefault(transport, _Lines(len(self._ports)))
        lost = lost_frames(result.flows)
        for end, name, shares in (
            ("source", "src", result.shares.source),
            ("destination", "dst", result.shares.destination),
        ):
            direction, ports = lines.ends[end], result.flows.ends(name)
            numbers = np.array([self._number[port] for port in shares], dtype=np.int64)
            direction.phases[numbers] += 1
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
        """Return the ports with a flow that begins or ends at a limiting host."""
        hosts = {limit["port"] for limit in result.entry["tester_limited"]}
        every = self._one_host or SOME_RANK in hosts
        if not hosts:
            return hosts
        return hosts.union(
            *(ends for ends in result.flows.pairs if every or not hosts.isdisjoint(ends))
        )

    def open(self, record: Record) -> None:
        """Record a node's description of a port that it opened."""
        self._opened[record["port"], record["transport"]] = record

    def lose_link(self, port: str) -> None:
        """Record that the port's link went down."""
        self._downs[port] += 1

    def use(self, rows: Rows, transport: str) -> None:
        """Record how frames of each port were sent and received, from rows of `ports`."""
        for port, variant in zip(rows.texts("port"), rows.texts("variant"), strict=True):
            if variant:
                self._variants.setdefault((port, transport), {})[variant] = None

    def summary(self, suspects: Mapping[str, str]) -> list[Entry]:
        """Return an entry for each port and transport with flows, in the site's order.

        `suspects`: suspected fault by port.
        """
        found = []
        for transport, lines in sorted(self._lines.items()):
            ends = (direction.entries() for direction in lines.ends.values())
            for (name, port), source, destination in zip(self._ports.items(), *ends, strict=True):
                opened = self._opened.get((name, transport), {})
                if source["phases"] or destination["phases"]:
                    found.append(filled(
                        "PortEntry",
                        opened,
                        as_source=source,
                        as_destination=destination,
                        port=name,
                        transport=transport,
                        network=port.network,
                        switch=port.switch,
                        switch_port=port.switch_port,
                        rdma=filled("RdmaPort", opened) if transports.of(transport).rdma else None,
                        link_downs=self._downs[name],
                        variants=list(self._variants.get((name, transport), ())),
                        suspect=suspects.get(name),
                        slowest_phases=lines.slowest.get(name, []),
                        **({"rounds": list(port.rounds)} if port.rounds else {}),
                    ))  # fmt: skip
        return found


def chain_entries(
    device: Device, trials: Mapping[tuple[int, int], Trial], phases: Iterable[Entry]
) -> Iterator[Entry]:
    """Yield the loss and delay of each phase through a chain of the device's ports, by passes."""
    for phase in phases:
        (part,) = trials[phase["trial"], phase["repeat"]].parts
        places = sorted(device.ports.index(str(port.switch_port)) for port in part.ranks)
        passes = (places[-1] - places[0] + 1) // 2
        lost, offered = phase["lost_frames"], phase["offered_frames"]
        kept = None if lost is None or not offered else 1 - min(lost, offered) / offered
        trip = (phase["latency"]["round_trip"] or {}).get("p50")
        yield filled(
            "ChainEntry",
            phase,
            entry=device.ports[places[0]],
            exit=device.ports[places[-1]],
            passes=passes,
            lost_ppm_per_pass=None if kept is None else 1e6 * (1 - kept ** (1 / passes)),
            round_trip_us=trip,
            us_per_pass=None if trip is None else trip / (2 * passes),
        )


def _intended(result: PhaseResult, end: str, ports: Iterable[str]) -> Floats:
    """Return the intended load of each port as a share of its line rate, at most 1.

    1 if all ports had equal loads, or if the load is unknown.
    """
    flows, places = result.flows, result.flows.ends(end)
    rates = np.bincount(places.place, intended_line_bps(flows), len(places.names))
    shares = np.minimum(rates / lines_of(places, result.lines), 1.0)
    # TCP intends only what the network lets it send.
    said = transports.of(result.entry["transport"]).frames and (flows["intended"] > 0).all()
    alike = shares.min(initial=1.0) >= ALIKE * shares.max(initial=0.0)
    if not said or alike or np.isnan(shares).any():
        return np.ones(1)
    by_name = dict(zip(places.names, shares.tolist(), strict=True))
    return np.array([by_name[port] for port in ports])
