# SPDX-License-Identifier: BSD-3-Clause
"""The graph itself: a value, whatever it was made of (a topology file, LLDP, ibnetdiscover)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from ...base.errors import ConfigurationError

if TYPE_CHECKING:
    import networkx

Graph: TypeAlias = "networkx.Graph[str]"


class FabricError(ConfigurationError):
    """A graph that can't be a network: one sentence for each mistake."""

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages = list(messages)
        super().__init__("\n".join(self.messages))


@dataclass(frozen=True)
class Link:
    """All the parallel cables between two ends, full duplex."""

    a: str
    b: str
    rate_bps: int
    """Of all of them together, each way, at layer 1."""
    cables: int = 1


@dataclass(frozen=True)
class Fabric:
    """Hosts and switches, and the links between them.

    Frames pass through switches; through hosts only if these are `routers`, as in a network whose
    nodes forward IP (Salmon et al. 1998, section 2.1).
    """

    name: str
    hosts: tuple[str, ...]
    """In rank order."""
    switches: tuple[str, ...]
    links: tuple[Link, ...]
    routers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse what can be no network."""
        mistakes = self._mistakes()
        if mistakes:
            raise FabricError(f"{self.name}: {mistake}" for mistake in mistakes)

    def _mistakes(self) -> list[str]:
        names = Counter([*self.hosts, *self.switches])
        mistakes = [f"{name} stands {n} times" for name, n in names.items() if n > 1]
        if len(self.hosts) < 2:
            mistakes.append(f"has {len(self.hosts)} hosts; a network has at least two")
        for link in self.links:
            ends = f"the link between {link.a} and {link.b}"
            mistakes += [f"{ends}: there is no {x}" for x in (link.a, link.b) if x not in names]
            if link.a == link.b:
                mistakes.append(f"{ends} joins it to itself")
            if link.rate_bps <= 0:
                mistakes.append(f"{ends} has a rate of {link.rate_bps} bit/s; it must be positive")
            if link.cables < 1:
                mistakes.append(f"{ends} has {link.cables} cables")
        between = Counter(frozenset((link.a, link.b)) for link in self.links)
        mistakes += [
            f"{' and '.join(sorted(ends))} are joined by {n} links; parallel cables are one link"
            for ends, n in between.items()
            if n > 1
        ]
        return mistakes or self._apart()

    def _apart(self) -> list[str]:
        """Return why some hosts can't reach others, or frames a switch."""
        graph = self.graph
        for host in self.hosts:
            if graph.degree(host) == 0:
                return [f"{host} is not connected to anything"]
        reached = reachable(graph, self.hosts[0], self.transit)
        lost = [host for host in self.hosts if host not in reached] or [
            f"switch {switch}" for switch in self.switches if switch not in reached
        ]
        if not lost:
            return []
        others = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        return [f"is in parts: there is no way from {self.hosts[0]} to {lost[0]}{others}"]

    @cached_property
    def graph(self) -> Graph:
        """As networkx has it: `rate_bps` and `cables` on the edges."""
        import networkx  # a sixth of a second, and most commands draw and cut nothing

        graph: Graph = networkx.Graph()
        graph.add_nodes_from(self.hosts)
        graph.add_nodes_from(self.switches)
        for link in self.links:
            graph.add_edge(link.a, link.b, rate_bps=link.rate_bps, cables=link.cables)
        return graph

    @cached_property
    def transit(self) -> frozenset[str]:
        """What frames may pass through."""
        return frozenset(self.switches) | self.routers

    @property
    def is_tree(self) -> bool:
        """Whether there is only one way between any two."""
        return len(self.links) == len(self.hosts) + len(self.switches) - 1

    def access_bps(self, host: str) -> int:
        """Return what a host may send, over all its links."""
        return sum(data["rate_bps"] for _, _, data in self.graph.edges(host, data=True))


def reachable(graph: Graph, start: str, transit: frozenset[str]) -> set[str]:
    """Return all that frames from `start` can come to."""
    seen = {start}
    waiting = [start]
    while waiting:
        for neighbour in graph.neighbors(waiting.pop()):
            if neighbour not in seen:
                seen.add(neighbour)
                if neighbour in transit:
                    waiting.append(neighbour)
    return seen
