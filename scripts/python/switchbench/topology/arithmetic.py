# SPDX-License-Identifier: BSD-3-Clause
"""Static figures of a network: distances between hosts, capacity per level, bisection bandwidth.

A bisection puts half of the hosts (of an odd number, one fewer) on one side, and each switch on
the side that is cheaper. Its capacity is that of the links between the sides, one way, at layer 1.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import networkx
import numpy as np

from .fabric import Fabric, Routes


@dataclass(frozen=True)
class Level:
    """Summary of all switches at one distance from the hosts."""

    level: int
    """Links to the nearest host: 1 for switches with hosts attached."""
    switches: int
    down_bps: float
    """Sum of the switches' layer-1 rates on links towards the hosts."""
    up_bps: float
    """Sum of the switches' layer-1 rates on links away from the hosts; 0 at the top."""
    across_bps: float
    """Sum of the switches' layer-1 rates on links to switches of the same level."""
    worst: float | None
    """Largest oversubscription of one switch, down / (up + across); None without both sides."""


@dataclass(frozen=True)
class Arithmetic:
    """Static figures of a network: size, distances, capacity per level and bisection."""

    hosts: int
    switches: int
    cables: int
    diameter: int
    """Largest number of links on the route between two hosts."""
    mean_distance: float
    """Mean number of links on the route between two hosts, over all pairs."""
    access_bps: int
    """Access rate of the slowest host."""
    bisection: Bisection
    levels: tuple[Level, ...]

    @property
    def full_bps(self) -> float:
        """Return the full bisection bandwidth: half of the hosts send at the access rate."""
        return (self.hosts // 2) * float(self.access_bps)


def arithmetic(fabric: Fabric) -> Arithmetic:
    """Return the static figures of a fabric: distances, levels and bisection bandwidth."""
    routes, count = Routes(fabric), len(fabric.hosts)
    ranks, diameter, total = np.arange(count), 0, 0
    for rank in range(1, count):
        hops = routes.hops(ranks, (ranks + rank) % count)
        diameter = max(diameter, int(hops.max()))
        total += int(hops.sum())
    return Arithmetic(
        hosts=count,
        switches=len(fabric.switches),
        cables=sum(link.cables for link in fabric.links),
        diameter=diameter,
        mean_distance=total / (count * (count - 1)),
        access_bps=min(fabric.access_bps(host) for host in fabric.hosts),
        bisection=bisection(fabric),
        levels=_levels(fabric),
    )


def _levels(fabric: Fabric) -> tuple[Level, ...]:
    """Return the switches grouped by distance from the hosts, with each group's capacities."""
    if not fabric.switches:
        return ()
    nearest = networkx.multi_source_dijkstra_path_length(
        fabric.graph, set(fabric.hosts), weight=None
    )
    found = []
    for level in sorted({int(nearest[switch]) for switch in fabric.switches}):
        alike = [switch for switch in fabric.switches if nearest[switch] == level]
        sides = []  # per switch: rates down, up and across, to switches of its level
        for switch in alike:
            rates = [0, 0, 0]
            for _, neighbour, data in fabric.graph.edges(switch, data=True):
                rise = nearest[neighbour] - level
                rates[0 if rise < 0 else 1 if rise > 0 else 2] += data["rate_bps"]
            sides.append(rates)
        worst = max((s[0] / (s[1] + s[2]) for s in sides if s[1] + s[2]), default=None)
        down, up, across = (float(sum(side)) for side in zip(*sides, strict=True))
        found.append(Level(level, len(alike), down, up, across, worst))
    return tuple(found)


_NODES = 2000  # node limit of the integer program for a bisection; below, its time limit
_LIMIT_S = 20.0


@dataclass(frozen=True)
class Bisection:
    """Lower and upper bound of a bisection bandwidth; both are equal where it is exact."""

    min_bps: float
    max_bps: float
    method: str

    @property
    def exact(self) -> bool:
        """Return true where the lower and the upper bound are equal."""
        return math.isclose(self.min_bps, self.max_bps, rel_tol=1e-9)


def bisection(fabric: Fabric) -> Bisection:
    """Return the one-way bisection bandwidth, found by an integer program that assigns sides.

    Hosts with equal cables to the same switches share one variable: the number of them on side 1.
    """
    from scipy import optimize, sparse  # half a second, and most commands cut nothing

    alike: dict[object, list[str]] = defaultdict(list)
    for host in fabric.hosts:
        cables = {(end, data["rate_bps"]) for _, end, data in fabric.graph.edges(host, data=True)}
        switched = all(end in fabric.switches for end, _ in cables)
        alike[frozenset(cables) if switched else host].append(host)
    groups = list(alike.values())
    sizes = [*map(len, groups), *(1 for _ in fabric.switches)]
    column = {name: i for i, name in enumerate([*(one[0] for one in groups), *fabric.switches])}
    edges = [
        (column[link.a], column[link.b], link.rate_bps)
        for link in fabric.links
        if link.a in column and link.b in column
    ]
    places, half = len(column), len(fabric.hosts) // 2
    # For each edge: the cut has as many of its cables as the variables of its two ends differ by.
    rows = sparse.lil_array((2 * len(edges) + 1, places + len(edges)))
    for number, (a, b, _) in enumerate(edges):
        for row, sign in ((2 * number, 1), (2 * number + 1, -1)):
            rows[row, a], rows[row, b] = sign * sizes[b], -sign * sizes[a]
            rows[row, places + number] = -1
    rows[-1, : len(groups)] = 1  # half of the hosts
    rates = np.array([rate_bps for _, _, rate_bps in edges], dtype=float)
    none, some = np.zeros(2 * len(edges)), np.full(2 * len(edges), -np.inf)
    found = optimize.milp(
        np.append(np.zeros(places), rates / rates.max()),
        integrality=np.append(np.ones(places), np.zeros(len(edges))),
        bounds=optimize.Bounds(0, np.append(sizes, np.full(len(edges), np.inf))),
        constraints=optimize.LinearConstraint(
            rows.tocsc(), np.append(some, half), np.append(none, half)
        ),
        options={"node_limit": _NODES, "time_limit": _LIMIT_S},
    )
    # All switches start on one side.
    best = float(sum(sorted(map(fabric.access_bps, fabric.hosts))[:half]))
    if found.x is not None:
        side = [round(x) for x in found.x[:places]]
        cut = sum(bps * abs(side[a] * sizes[b] - side[b] * sizes[a]) for a, b, bps in edges)
        best = min(best, float(cut))
    if found.status == 0:
        return Bisection(best, best, "exact: integer program")
    return Bisection(_lower_bps(fabric), best, "bounds: uniform traffic, and the best cut found")


def _lower_bps(fabric: Fabric) -> float:
    """Return a lower bound of the bisection bandwidth, from uniform all-pairs traffic.

    If every pair of hosts can send f at the same time, two halves can exchange f per pair.
    """
    hosts = fabric.hosts
    load = networkx.edge_betweenness_centrality_subset(fabric.graph, hosts, hosts)
    rates = networkx.get_edge_attributes(fabric.graph, "rate_bps")
    # Centrality counts a pair in both directions and halves the sum, which gives one direction's
    # load.
    share = min(rates[edge] / pairs for edge, pairs in load.items() if pairs > 0)
    half = len(hosts) // 2
    return float(share * half * (len(hosts) - half))
