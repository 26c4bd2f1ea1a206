# SPDX-License-Identifier: BSD-3-Clause
"""Network as a graph of hosts, switches and links, and the routes of its flows.

A flow takes a shortest path; equal paths are distributed by destination. Where hosts forward, a
path passes as few of them as possible, and then as few switches.

A direction of a link is a resource with a number; a path is a row of resources. Frames to one host
take one path from any place, as in a forwarding table by destination. Among several equal paths the
d-mod-k rule of InfiniBand's fat trees chooses: the destination's rank modulo their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.errors import ConfigurationError
from ..base.model import CableBundle, Port, Site, Wiring
from .form import ROUTED, UNSHAPED, Topology

if TYPE_CHECKING:
    import networkx

Graph: TypeAlias = "networkx.Graph[str]"


class FabricError(ConfigurationError):
    """Error of a graph that cannot be a network; `messages` has one sentence per mistake."""

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages = list(messages)
        super().__init__("\n".join(self.messages))


@dataclass(frozen=True)
class Link:
    """All parallel cables between two ends, full duplex."""

    a: str
    b: str
    rate_bps: int
    """Layer-1 rate of all its cables together, per direction."""
    cables: int = 1


@dataclass(frozen=True)
class Fabric:
    """Network graph: hosts, switches and the links between them.

    Frames pass through switches. They pass through hosts only where these are `routers`, as in a
    network whose nodes forward IP (Salmon et al. 1998, section 2.1).
    """

    name: str
    hosts: tuple[str, ...]
    """Host names in rank order."""
    switches: tuple[str, ...]
    links: tuple[Link, ...]
    routers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raise FabricError where the hosts, switches and links cannot be a network."""
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
        """Return the errors for unreachable hosts and for switches that carry no frames."""
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
        """Return the network as a networkx graph with `rate_bps` and `cables` on its edges."""
        import networkx  # a sixth of a second, and most commands draw and cut nothing

        graph: Graph = networkx.Graph()
        graph.add_nodes_from(self.hosts)
        graph.add_nodes_from(self.switches)
        for link in self.links:
            graph.add_edge(link.a, link.b, rate_bps=link.rate_bps, cables=link.cables)
        return graph

    @cached_property
    def transit(self) -> frozenset[str]:
        """Return the names of switches and hosts through which frames may pass."""
        return frozenset(self.switches) | self.routers

    def access_bps(self, host: str) -> int:
        """Return the summed rate of all links of a host."""
        return sum(data["rate_bps"] for _, _, data in self.graph.edges(host, data=True))


def reachable(graph: Graph, start: str, transit: frozenset[str]) -> set[str]:
    """Return all places that frames from `start` can reach through `transit`."""
    seen = {start}
    waiting = [start]
    while waiting:
        for neighbour in graph.neighbors(waiting.pop()):
            if neighbour not in seen:
                seen.add(neighbour)
                if neighbour in transit:
                    waiting.append(neighbour)
    return seen


Ranks = npt.NDArray[np.int64]
Paths = npt.NDArray[np.int32]
"""One row per flow: numbers of resources in path order, padded with `Routes.nothing`."""
Rates = npt.NDArray[np.float64]


class Routes:
    """Numbered resources of a fabric and the paths of flows over them.

    A host on one cable is stored as this cable and the place at its other end. Only places, which
    are switches and hosts of several cables, have a routing table, so that thousands of hosts fit
    in memory.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        ends = [(link.a, link.b) for link in fabric.links]
        self.resources: list[tuple[str, str]] = [*ends, *((b, a) for a, b in ends)]
        """Ends (from, to) of each direction of each link, by resource number."""
        self.capacity_bps: Rates = np.array(
            [link.rate_bps for link in fabric.links] * 2, dtype=np.float64
        )
        """Layer-1 rate of each resource."""
        self.nothing = len(self.resources)
        """Number of a resource without a limit, which pads paths that are shorter than others."""
        self.limit_bps: Rates = np.append(self.capacity_bps, np.inf)
        """The capacities, followed by the capacity of `nothing`."""
        self._number = {ends: number for number, ends in enumerate(self.resources)}
        self._places = [*fabric.switches, *(h for h in fabric.hosts if not self._is_leaf(h))]
        self._place = {name: number for number, name in enumerate(self._places)}
        self._adjacent = [
            [
                self._place[near]
                for near in sorted(fabric.graph.neighbors(name))
                if near in self._place
            ]
            for name in self._places
        ]
        self._gate, self._up, self._down = self._attached()
        self._ways = self._walked(self._next_places())

    def paths(self, sources: Ranks, destinations: Ranks) -> Paths:
        """Return the path of each flow, given by ranks; FabricError for a flow to itself."""
        if np.any(sources == destinations):
            rank = int(sources[sources == destinations][0])
            raise FabricError(
                [f"{self.fabric.name}: a flow from rank {rank} to itself has no path"]
            )
        way = self._gate[sources].astype(np.intp) * len(self._gate) + destinations
        # Stored by columns, because models read one column after the other.
        found = np.empty((len(self._ways) + 2, len(sources)), dtype=np.int32)
        found[0] = self._up[sources]
        for column, resources in zip(found[1:-1], self._ways, strict=True):
            resources.take(way, out=column)
        found[-1] = self._down[destinations]
        return found.T

    def hops(self, sources: Ranks, destinations: Ranks) -> npt.NDArray[np.int64]:
        """Return the number of links on each flow's path."""
        counts: npt.NDArray[np.int64] = np.sum(
            self.paths(sources, destinations) != self.nothing, axis=1
        )
        return counts

    def host_hops(self, sources: Ranks, destinations: Ranks) -> npt.NDArray[np.int64]:
        """Return the host-to-host hops of each flow: the hosts that forward it, plus 1."""
        hosts = frozenset(self.fabric.hosts)
        arrives = np.array([end in hosts for _, end in self.resources] + [False])
        counts: npt.NDArray[np.int64] = arrives[self.paths(sources, destinations)].sum(axis=1)
        return counts

    def steps(self, source: int, destination: int) -> list[tuple[str, str]]:
        """Return the links on one flow's path, in order, as (from, to) names."""
        (path,) = self.paths(np.array([source]), np.array([destination]))
        return [self.resources[resource] for resource in path if resource != self.nothing]

    def opposite(self, paths: Paths) -> Paths:
        """Return paths with each resource replaced by the opposite direction of its link."""
        half = len(self.fabric.links)
        turned: Paths = np.where(paths < half, paths + half, paths - half).astype(np.int32)
        turned[paths == self.nothing] = self.nothing
        return turned

    def _is_leaf(self, host: str) -> bool:
        """Return true for a host with one cable, to a switch."""
        neighbours = list(self.fabric.graph.neighbors(host))
        return len(neighbours) == 1 and neighbours[0] in self.fabric.switches

    def _attached(self) -> tuple[Paths, Paths, Paths]:
        """Return, by rank, the place where frames enter and the cables to and from this place."""
        count = len(self.fabric.hosts)
        gate = np.zeros(count, dtype=np.int32)
        up, down = (np.full(count, self.nothing, dtype=np.int32) for _ in range(2))
        for rank, host in enumerate(self.fabric.hosts):
            if host in self._place:
                gate[rank] = self._place[host]
                continue
            switch = next(iter(self.fabric.graph.neighbors(host)))
            gate[rank] = self._place[switch]
            up[rank] = self._number[host, switch]
            down[rank] = self._number[switch, host]
        return gate, up, down

    def _next_places(self) -> Paths:
        """Return the next place for each place and destination.

        The place itself at the destination.
        """
        own = np.arange(len(self._places), dtype=np.int32)
        following: Paths = np.repeat(own[:, None], len(self._gate), axis=1)
        for goal in (int(place) for place in np.unique(self._gate)):
            bound = np.flatnonzero(self._gate == goal)
            distance = self._distances(goal)
            only = own.copy()  # most places have one next place
            several: dict[int, list[int]] = {}
            for place in distance:
                nearer = self._nearer(place, goal, distance)
                if len(nearer) == 1:
                    only[place] = nearer[0]
                elif nearer:
                    several[place] = nearer
            following[:, bound] = only[:, None]
            for place, nearer in several.items():
                following[place, bound] = np.array(nearer)[bound % len(nearer)]
        return following

    def _nearer(self, place: int, goal: int, distance: dict[int, int]) -> list[int]:
        """Return the usable next places on the shortest paths from a place to the goal."""
        return [
            near
            for near in self._adjacent[place]
            if place != goal
            and near in distance
            and distance[near] + self._cost(near) == distance[place]
            and (near == goal or self._places[near] in self.fabric.transit)
        ]

    def _cost(self, place: int) -> int:
        """Return a place's cost in a path: a router host outweighs any number of switches."""
        return len(self._places) if self._places[place] in self.fabric.routers else 1

    def _walked(self, following: Paths) -> list[Paths]:
        """Return the resources on the path from each place to each destination's place.

        One array per step, for all destinations of the first place, then of the next place.
        """
        shape = following.shape
        at = np.repeat(np.arange(shape[0], dtype=np.int32)[:, None], shape[1], axis=1)
        link = np.full((shape[0], shape[0]), self.nothing, dtype=np.int32)
        for (a, b), number in self._number.items():
            if a in self._place and b in self._place:
                link[self._place[a], self._place[b]] = number
        ranks = np.arange(shape[1])
        steps = []
        while True:
            then = following[at, ranks]
            if np.array_equal(then, at):
                break
            steps.append(link[at, then].ravel())
            at = then
        self._refuse_stranded(at != self._gate)
        return steps

    def _refuse_stranded(self, stranded: npt.NDArray[np.bool_]) -> None:
        """Raise FabricError where a host has no path to another host."""
        if not stranded[np.unique(self._gate)].any():
            return
        for source, destination in np.argwhere(stranded[self._gate])[:1]:
            ends = f"{self.fabric.hosts[source]} to {self.fabric.hosts[destination]}"
            raise FabricError([f"{self.fabric.name}: there is no way from {ends}"])

    def _distances(self, goal: int) -> dict[int, int]:
        """Return the cost of the cheapest path to `goal` from each place that can reach it."""
        distance: dict[int, int] = {}
        waiting = [(0, goal)]
        while waiting:
            cost, place = heappop(waiting)
            if place in distance:
                continue
            distance[place] = cost
            if place != goal and self._places[place] not in self.fabric.transit:
                continue
            for neighbour in self._adjacent[place]:
                if neighbour not in distance:
                    heappush(waiting, (cost + self._cost(place), neighbour))
        return distance


def from_topology(topology: Topology, unlimited_bps: int | None = None) -> Fabric:
    """Return the fabric of a topology.

    A link without a rate limit counts as `unlimited_bps`. Raise FabricError where this is None,
    because nothing can be computed then.
    """
    switched = [node for node in topology.nodes if node.module]
    if unlimited_bps is None:
        unknown = [cable.name for cable in topology.cables if cable.rate_bps == UNSHAPED]
        if unknown:
            raise FabricError(
                [
                    f"{topology.name}: the rate of {unknown[0]} is not limited: nothing can be "
                    "computed"
                ]
            )
    other = unlimited_bps or 0
    access = (Link(node.name, node.module, node.rate_bps or other) for node in switched)
    trunks = (Link(t.a, t.b, t.rate_bps or other, t.links) for t in topology.trunks)
    cables = (Link(link.a, link.b, link.rate_bps or other) for link in topology.links)
    hosts = tuple(node.name for node in topology.nodes)
    return Fabric(
        topology.name,
        hosts,
        topology.modules,
        (*access, *trunks, *cables),
        routers=frozenset(hosts) if topology.kind == ROUTED else frozenset(),
    )


def wiring(topology: Topology) -> Wiring:
    """Return the cables between a topology's switches, without the cables of its nodes."""
    trunks = [
        CableBundle(trunk.a, trunk.b, trunk.rate_bps, trunk.links) for trunk in topology.trunks
    ]
    links = [CableBundle(link.a, link.b, link.rate_bps) for link in topology.links]
    routed = topology.kind == ROUTED
    return Wiring(f"topology file {topology.name}", (*trunks, *links), routed)


def wired(site: Site, topology: Topology) -> Site:
    """Return a site with its ports moved to the switches that a topology's wiring names.

    Where the site names another switch (or LLDP did, from which it was made), the wiring counts and
    a sentence reports the difference. A host on several switches needs the wiring of the site: the
    topology file does not contain which port is on which switch.
    """
    found, problems = wiring(topology), []
    nodes = {node.name: node for node in topology.nodes}
    several = {link.a for link in topology.links if link.b in topology.modules}
    ports: dict[str, Port] = {}
    for port in site.ports:
        node = nodes.get(port.host)
        if node is None:
            problems.append(f"{found.source} has no host {port.host}: its paths are not known")
        elif port.switch is None and node.name in several:
            problems.append(
                f"{found.source} has {node.name} on several switches: the site's `wiring` is "
                f"needed to say where {port.name} is"
            )
        elif port.switch is None and node.module:
            port = replace(
                port,
                switch=node.module,
                switch_port=None if node.port == f"p{node.index}" else node.port,
            )
        elif port.switch not in (None, node.module) and node.name not in several:
            there = f"{port.switch} {port.switch_port or ''}".rstrip()
            problems.append(
                f"{found.source} has {port.name} at {node.module}, the site's wiring at {there}: "
                "the wiring is taken; `switchbench doctor` says what LLDP sees"
            )
        ports[port.name] = port
    return replace(
        site,
        processes=tuple(
            replace(process, ports=tuple(ports[port.name] for port in process.ports))
            for process in site.processes
        ),
        networks={
            name: tuple(ports[port.name] for port in some) for name, some in site.networks.items()
        },
        wiring=replace(found, problems=tuple(problems)),
    )
