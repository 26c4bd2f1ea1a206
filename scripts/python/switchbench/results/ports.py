# SPDX-License-Identifier: BSD-3-Clause
"""Ports over all phases: a bad cable shows in its port, not in a phase."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..model import SCHEDULE, Port
from .measures import PhaseResult, least, lost_frames, median, total_int
from .records import Record

# A port is pointed out when what it typically gets is so far below the median of the ports that
# were busy with it (doc/measures.md).
BELOW_MEDIAN = 0.97


# What a node says of a port that it opens, and the summary repeats.
_OPENED = ("driver", "numa", "queues", "cores", "offloads")
_RDMA = ("rdma", "link_layer", "gid", "gid_index", "mtu")  # of an RDMA device's port


@dataclass
class _Direction:
    """One port as source, or as destination."""

    percents: list[float | None] = field(default_factory=list)
    relative: list[float] = field(default_factory=list)  # to the phase's median port
    lost: list[int | None] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        return {
            "phases": len(self.percents),
            "median_percent_of_line": median(self.percents),
            "least_percent_of_line": least(self.percents),
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

    def __init__(self, ports: tuple[Port, ...]) -> None:
        """Takes the site's ports: their order is the table's."""
        self._ports = {port.name: port for port in ports}
        self._lines: dict[tuple[str, str], _Line] = {}
        self._opened: dict[tuple[str, str], Record] = {}
        self._variants: dict[tuple[str, str], list[str]] = {}
        self._downs: Counter[str] = Counter()

    def add(self, result: PhaseResult, transport: str) -> None:
        """Takes one measured phase; where ranks go by steps, ports have different things to do."""
        alike = result.entry["traffic"] != SCHEDULE
        ends = {"source": result.shares.source, "destination": result.shares.destination}
        for end, shares in ends.items():
            middle = median(shares.values())
            for port, percent in shares.items():
                direction = self._line(port, transport).ends[end]
                direction.percents.append(percent)
                if alike and percent is not None and middle:
                    direction.relative.append(percent / middle)
        for flow in result.flows:
            lost = lost_frames(flow)
            self._line(flow.src, transport).ends["source"].lost.append(lost)
            self._line(flow.dst, transport).ends["destination"].lost.append(lost)
        slowest = result.entry["slowest"]
        if alike and slowest:
            place = {"trial": result.key.trial, "phase": result.key.phase}
            for port in {slowest["src"], slowest["dst"]}:
                self._line(port, transport).slowest.append(place)

    def open(self, record: Record) -> None:
        """Takes what a node said of a port when it opened it."""
        self._opened[record["port"], record["transport"]] = record

    def lose_link(self, port: str) -> None:
        """Takes an event: the port's link went down."""
        self._downs[port] += 1

    def use(self, record: Record, transport: str) -> None:
        """Takes a `port` record: how its frames were sent and received."""
        variant = record.get("variant")
        seen = self._variants.setdefault((record["port"], transport), [])
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
        return {key: opened.get(key) for key in _RDMA} if transport == "verbs" else None

    def _line(self, port: str, transport: str) -> _Line:
        return self._lines.setdefault((port, transport), _Line())

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
            "below_median": None if relative is None else relative < BELOW_MEDIAN,
            "slowest_phases": line.slowest,
        }
