# SPDX-License-Identifier: BSD-3-Clause
"""Ports over all phases: a bad cable shows in its port, not in a phase."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base import transports
from ..base.model import SCHEDULE, Site
from ..records.record_forms import Record
from ..records.rows import Rows
from .bottleneck import group_of_port
from .measures import (
    PhaseResult,
    delivered_line_bps,
    least,
    lost_frames,
    median,
    observed,
    sum_by_port,
    total_int,
)
from .tester import SOME_RANK

# A port is pointed out when what it typically gets is so far below the median of the ports that
# were busy with it (doc/reference/measures.md).
BELOW_MEDIAN = 0.97


# What a node says of a port that it opens, and the summary repeats.
_OPENED = ("driver", "numa", "queues", "cores", "offloads")
_RDMA = ("rdma", "link_layer", "gid", "gid_index", "mtu")  # of an RDMA device's port


@dataclass
class _Direction:
    """One port as source, or as destination."""

    phases: int = 0
    percents: list[float | None] = field(default_factory=list)  # of flows that no host limited
    relative: list[float] = field(default_factory=list)  # to the phase's median port
    sound: dict[str, bool] = field(default_factory=dict)  # by setting: kept up in some phase of it
    own: dict[str, bool] = field(default_factory=dict)  # ... fell behind where no path explains it
    lost: list[float | None] = field(default_factory=list)

    def note(self, setting: str, relative: float, shared: bool) -> None:
        """Takes a phase: `shared`, what is between the groups may have held its flows back."""
        self.relative.append(relative)
        low = relative < BELOW_MEDIAN
        self.sound[setting] = self.sound.get(setting, False) or not low
        self.own[setting] = self.own.get(setting, False) or (low and not shared)

    @property
    def is_slow(self) -> bool:
        """Whether the port itself is, and not a path that it shares with others: it falls behind
        with whatever partner."""
        relative = median(self.relative)
        if relative is None or relative >= BELOW_MEDIAN:
            return False
        return any(self.own[setting] and not self.sound[setting] for setting in self.own)

    def summary(self) -> dict[str, Any]:
        return {
            "phases": self.phases,
            "median_percent_of_line": median(self.percents),
            "min_percent_of_line": least(self.percents),
            "relative_to_median": median(self.relative),
            "lost_frames": total_int(self.lost),
        }


@dataclass
class _Line:
    """One line of `ports`: one port with one transport."""

    ends: dict[str, _Direction] = field(
        default_factory=lambda: {"source": _Direction(), "destination": _Direction()}
    )
    slowest: list[dict[str, int]] = field(default_factory=list)


class PortTable:
    """Gathers, phase by phase, what the summary's `ports` says."""

    def __init__(self, site: Site) -> None:
        """Takes the site's ports, whose order is the table's, and its groups of them."""
        ports = site.ports
        self._one_host = site.lab is not None  # each port's load is all ports'
        self._ports = {port.name: port for port in ports}
        wired = {port.name: port.switch for port in ports if port.switch}
        self._groups: Mapping[str, str] = group_of_port(site.groups) or wired
        self._lines: dict[tuple[str, str], _Line] = {}
        self._opened: dict[tuple[str, str], Record] = {}
        self._variants: dict[tuple[str, str], list[str]] = {}
        self._downs: Counter[str] = Counter()

    def add(self, result: PhaseResult, transport: str) -> None:
        """Takes one measured phase. Where ranks go by steps, ports have different things to do; a
        rate that the tester limited says nothing of a port."""
        alike = result.entry["traffic"] != SCHEDULE
        limited = self._limited(result)
        ends = {"source": result.shares.source, "destination": result.shares.destination}
        shared = self._shared(result) if alike else set()
        setting = str([result.entry[name] for name in ("intended_load", "size", "network")])
        for end, shares in ends.items():
            middle = median(shares.values())
            for port, percent in shares.items():
                direction = self._line(port, transport).ends[end]
                direction.phases += 1
                if port in limited:
                    continue
                direction.percents.append(percent)
                if alike and percent is not None and middle:
                    direction.note(setting, percent / middle, port in shared)
        lost = lost_frames(result.flows)
        for end, name in (("source", "src"), ("destination", "dst")):
            for port, count in sum_by_port(result.flows.ends(name), lost).items():
                self._line(port, transport).ends[end].lost.append(count)
        slowest = result.entry["slowest"]
        if alike and slowest and slowest["src"] not in limited:
            place = {"trial": result.key.trial, "phase": result.key.phase}
            for port in {slowest["src"], slowest["dst"]}:
                self._line(port, transport).slowest.append(place)

    def _limited(self, result: PhaseResult) -> set[str]:
        """Ports of whose flows some begin or end at a host that was the limit."""
        hosts = {limit["port"] for limit in result.entry["tester_limited"]}
        every = self._one_host or SOME_RANK in hosts
        if not hosts:
            return hosts
        return hosts.union(
            *(ends for ends in result.flows.pairs if every or not hosts.isdisjoint(ends))
        )

    def _shared(self, result: PhaseResult) -> set[str]:
        """Ports of the phase whose flows all go between groups, where most flows between the same
        two fall behind: what is between them holds these back, for all that is known."""
        flows = result.flows.taken(~result.flows.window_off)
        every = observed(delivered_line_bps(flows))
        rates = dict(zip(flows.pairs, every, strict=True))
        middle = median(every) or 0.0
        flows_of: Counter[tuple[str, str]] = Counter()
        behind: Counter[tuple[str, str]] = Counter()
        paths: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        group_of = self._groups.get
        for (src, dst), rate in rates.items():
            groups = (group_of(src, ""), group_of(dst, ""))
            flows_of[groups] += 1
            behind[groups] += (rate or 0.0) < BELOW_MEDIAN * middle
            paths[src].add(groups)
            paths[dst].add(groups)
        held = {
            (one, other)
            for (one, other), low in behind.items()
            if one != other and 2 * low > flows_of[one, other]
        }
        return {port for port, some in paths.items() if some <= held}

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

    def summary(self) -> list[dict[str, Any]]:
        """One entry for each port and transport, in the site's order."""
        return [
            self._entry(name, transport, self._lines[name, transport])
            for transport in sorted({transport for _, transport in self._lines})
            for name in self._ports
            if (name, transport) in self._lines
        ]

    def _rdma(self, name: str, transport: str) -> dict[str, Any] | None:
        opened = self._opened.get((name, transport), {})
        return {key: opened.get(key) for key in _RDMA} if transports.of(transport).rdma else None

    def _line(self, port: str, transport: str) -> _Line:
        line = self._lines.get((port, transport))
        if line is None:
            line = self._lines[port, transport] = _Line()
        return line

    def _entry(self, name: str, transport: str, line: _Line) -> dict[str, Any]:
        port = self._ports[name]
        ends = {end: direction.summary() for end, direction in line.ends.items()}
        relative = least(end["relative_to_median"] for end in ends.values())
        return {
            "port": name,
            "transport": transport,
            "network": port.network,
            "switch": port.switch,
            "switch_port": port.switch_port,
            **{key: self._opened.get((name, transport), {}).get(key) for key in _OPENED},
            "rdma": self._rdma(name, transport),
            "link_downs": self._downs[name],
            "variants": self._variants.get((name, transport), []),
            "as_source": ends["source"],
            "as_destination": ends["destination"],
            "below_median": None
            if relative is None
            else any(direction.is_slow for direction in line.ends.values()),
            "slowest_phases": line.slowest,
        }
