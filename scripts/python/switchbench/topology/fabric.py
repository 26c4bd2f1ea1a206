# SPDX-License-Identifier: BSD-3-Clause
"""Network as a graph of hosts, switches and links, and the routes of its flows.

A flow takes a shortest path; equal paths are distributed by destination. If hosts forward, a
path passes as few hosts as possible, and then as few switches as possible.

A direction of a link is a resource with a number; a path is a row of resources. Frames to one host
take one path from any place, as in a forwarding table by destination. Among several equal paths the
d-mod-k rule of InfiniBand's fat trees chooses: the destination's rank modulo the number of paths.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.model import CableBundle, Port, Site, Wiring
from .form import ROUTED, UNSHAPED, Topology, TopologyError

if TYPE_CHECKING:
    import networkx

Graph: TypeAlias = "networkx.Graph[str]"


@dataclass(frozen=True)
class Fabric:
    """Network graph: hosts, switches and the links between them.

    Frames pass through switches. They pass through a host only if it is one of `routers`, as in a
    network whose nodes forward IP (Salmon et al. 1998, section 2.1).

    Attributes
    ----------
    hosts : tuple[str, ...]
        Host names in rank order.
    """

    name: str
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    links: tuple[CableBundle, ...]
    routers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raise TopologyError if the hosts, switches and links do not form a network."""
        names = Counter([*self.hosts, *self.switches])
        mistakes = [f"name {name} is used {n} times" for name, n in names.items() if n > 1]
        if len(self.hosts) < 2:
            mistakes.append(f"has {len(self.hosts)} hosts; a network has at least two")
        for link in self.links:
            ends = f"the link between {link.a} and {link.b}"
            mistakes += [f"{ends}: there is no {x}" for x in (link.a, link.b) if x not in names]
            if link.a == link.b:
                mistakes.append(f"{ends} connects a device to itself")
        for both, n in Counter(frozenset((link.a, link.b)) for link in self.links).items():
            if n > 1:
                words = f"{' and '.join(sorted(both))} have {n} links between them"
                mistakes.append(f"{words}: write parallel cables as one link")
        if not mistakes:
            reached, waiting = {self.hosts[0]}, [self.hosts[0]]
            while waiting:
                new = set(self.graph.neighbors(waiting.pop())) - reached
                reached |= new
                waiting += new & self.transit
            lost = [host for host in self.hosts if host not in reached]
            lost = lost or [f"switch {one}" for one in self.switches if one not in reached]
            if lost:
                words = f"is not connected: there is no path from {self.hosts[0]} to {lost[0]}"
                mistakes.append(words + f" and {len(lost) - 1} more" * (len(lost) > 1))
        if mistakes:
            raise TopologyError(f"{self.name}: {mistakes[0]}")

    @cached_property
    def graph(self) -> Graph:
        """Return the network as a networkx graph with `rate_bps` and `cables` on its edges."""
        import networkx  # takes a sixth of a second, and few commands need it

        graph: Graph = networkx.Graph()
        graph.add_nodes_from(self.hosts)
        graph.add_nodes_from(self.switches)
        for link in self.links:
            graph.add_edge(link.a, link.b, rate_bps=link.rate_bps, cables=link.links)
        return graph

    @cached_property
    def transit(self) -> frozenset[str]:
        """Return the names of switches and hosts through which frames may pass."""
        return frozenset(self.switches) | self.routers


Ranks = npt.NDArray[np.int64]
# One row per flow: numbers of resources in path order, padded with `Routes.nothing`.
Paths = npt.NDArray[np.int32]
Rates = npt.NDArray[np.float64]


class Routes:
    """Numbered link directions (resources) of a network, and the paths of flows over them.

    A host on one cable is stored as this cable and the place at its other end. Only places, which
    are switches and hosts of several cables, have a routing table, so that thousands of hosts fit
    in memory.

    Attributes
    ----------
    resources : list[tuple[str, str]]
        Ends (from, to) of each direction of each link, by resource number.
    capacity_bps : Rates
        Layer-1 rate of each resource.
    nothing : int
        Number of a resource without a limit, which pads paths that are shorter than others.
    limit_bps : Rates
        The capacities, followed by the capacity of `nothing`.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        ends = [(link.a, link.b) for link in fabric.links]
        self.resources: list[tuple[str, str]] = [*ends, *((b, a) for a, b in ends)]
        self.capacity_bps: Rates = np.array(
            [link.rate_bps for link in fabric.links] * 2, dtype=np.float64
        )
        self.nothing = len(self.resources)
        self.limit_bps: Rates = np.append(self.capacity_bps, np.inf)
        self._number = {ends: number for number, ends in enumerate(self.resources)}
        near = {name: sorted(fabric.graph.neighbors(name)) for name in fabric.graph}
        leaves = {host for host in fabric.hosts if len(near[host]) == 1}
        leaves = {host for host in leaves if near[host][0] in fabric.switches}
        self._places = [*fabric.switches, *(host for host in fabric.hosts if host not in leaves)]
        self._place = {name: number for number, name in enumerate(self._places)}
        self._adjacent = [
            np.array([self._place[end] for end in near[name] if end in self._place], dtype=np.int32)
            for name in self._places
        ]
        # For each rank: the place where its frames enter, and the cable to this place and back. A
        # host that is a place itself has no such cable.
        count = len(fabric.hosts)
        self._gate = np.zeros(count, dtype=np.int32)
        self._up, self._down = (np.full(count, self.nothing, dtype=np.int32) for _ in range(2))
        for rank, host in enumerate(fabric.hosts):
            if host in leaves:
                (switch,) = near[host]
                self._up[rank], self._down[rank] = (
                    self._number[ends] for ends in ((host, switch), (switch, host))
                )
            self._gate[rank] = self._place[switch if host in leaves else host]
        self._ways = self._walked(self._next_places())

    def paths(self, sources: Ranks, destinations: Ranks) -> Paths:
        """Return the path of each flow; flows are given by ranks."""
        way = self._gate[sources].astype(np.intp) * len(self._gate) + destinations
        # Stored by columns, because models read one column after the other.
        found = np.empty((len(self._ways) + 2, len(sources)), dtype=np.int32)
        found[0] = self._up[sources]
        for column, resources in zip(found[1:-1], self._ways, strict=True):
            resources.take(way, out=column)
        found[-1] = self._down[destinations]
        return found.T

    def steps(self, source: int, destination: int) -> list[tuple[str, str]]:
        """Return the links on one flow's path, in order, as (from, to) names."""
        (path,) = self.paths(np.array([source]), np.array([destination]))
        return [self.resources[resource] for resource in path if resource != self.nothing]

    def opposite(self, paths: Paths) -> Paths:
        """Return paths in which each link direction is replaced by the opposite direction."""
        half = len(self.fabric.links)
        turned: Paths = np.where(paths < half, paths + half, paths - half).astype(np.int32)
        turned[paths == self.nothing] = self.nothing
        return turned

    def _next_places(self) -> Paths:
        """Return the next place on the path from each place to each destination.

        At the destination, the next place is the place itself.
        """
        from scipy.sparse import coo_array, csgraph  # takes a fifth of a second

        count = len(self._places)
        passes = np.array([name in self.fabric.transit for name in self._places])
        # Cost of a step to a place: a host that forwards costs more than any number of switches.
        routers = [name in self.fabric.routers for name in self._places]
        cost = np.where(routers, float(count), 1.0)
        # Distances are computed backwards from each goal. A place through which no frame passes has
        # a second number as a goal, so that no path to another goal leads through it.
        begins = np.arange(count) + count * ~passes
        near = list(map(len, self._adjacent))
        edges = np.repeat(begins, near), np.concatenate(self._adjacent)
        back = coo_array((np.repeat(cost, near), edges), shape=(2 * count, 2 * count))
        goals, goal_of = np.unique(self._gate, return_inverse=True)
        distance = csgraph.dijkstra(back.tocsr(), indices=begins[goals])[:, :count]
        distance[np.arange(len(goals)), goals] = 0
        own = np.arange(count, dtype=np.int32)
        following: Paths = np.repeat(own[:, None], len(self._gate), axis=1)
        for place, ends in enumerate(self._adjacent):
            if not len(ends):
                continue
            open_to = passes[ends] | (goals[:, None] == ends)
            costs = np.where(open_to, distance[:, ends] + cost[ends], np.inf)
            best = (costs == costs.min(axis=1, keepdims=True)) & np.isfinite(costs)
            best[goals == place] = False
            ways = best.sum(axis=1)[goal_of]
            bound = np.flatnonzero(ways)
            dealt = best.cumsum(axis=1)[goal_of[bound]] > (bound % ways[bound])[:, None]
            following[place, bound] = ends[dealt.argmax(axis=1)]
        return following

    def _walked(self, following: Paths) -> list[Paths]:
        """Return the link directions on the path from each place to each destination.

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
        stranded = at != self._gate  # places without a path to the destination
        if stranded[np.unique(self._gate)].any():
            source, destination = np.argwhere(stranded[self._gate])[0]
            ends = f"{self.fabric.hosts[source]} to {self.fabric.hosts[destination]}"
            raise TopologyError(f"{self.fabric.name}: there is no path from {ends}")
        return steps


def from_topology(topology: Topology, unlimited_bps: int | None = None) -> Fabric:
    """Return the network graph (fabric) of a topology.

    A link without a rate limit gets the rate `unlimited_bps`. Raise TopologyError if
    `unlimited_bps` is None, because no rate can be predicted then.
    """
    switched = [node for node in topology.nodes if node.module]
    if unlimited_bps is None:
        unknown = [cable.name for cable in topology.cables if cable.rate_bps == UNSHAPED]
        if unknown:
            words = f"the rate of {unknown[0]} is not limited, so no rate can be predicted"
            raise TopologyError(f"{topology.name}: {words}")
    other = unlimited_bps or 0
    access = (CableBundle(node.name, node.module, node.rate_bps or other) for node in switched)
    bundles = (*topology.trunks, *topology.links)
    cables = (CableBundle(one.a, one.b, one.rate_bps or other, one.links) for one in bundles)
    hosts = tuple(node.name for node in topology.nodes)
    return Fabric(
        topology.name,
        hosts,
        topology.modules,
        (*access, *cables),
        routers=frozenset(hosts) if topology.kind == ROUTED else frozenset(),
    )


def wiring(topology: Topology) -> Wiring:
    """Return the cables between a topology's switches, without the cables of its nodes."""
    cables = tuple(
        CableBundle(one.a, one.b, one.rate_bps, one.links)
        for one in (*topology.trunks, *topology.links)
    )
    return Wiring(f"topology file {topology.name}", cables, topology.kind == ROUTED)


def wired(site: Site, topology: Topology) -> Site:
    """Return a site in which a port without a switch has the switch that a topology names.

    If the site names another switch than the topology, the site's switch is used, and a sentence
    reports the difference. A host on several switches needs the wiring of the site: the topology
    file does not contain which port is on which switch.
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
                f"{found.source} has {node.name} on several switches: the site's `wiring` "
                f"must name the switch of {port.name}"
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
                f"{found.source} has {port.name} at {node.module}, the site's wiring has it at "
                f"{there}: the site's wiring is used; `switchbench doctor` shows LLDP's"
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
