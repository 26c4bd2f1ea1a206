# SPDX-License-Identifier: BSD-3-Clause
"""What can be said of a network before anything is sent: how far, how narrow.

A bisection puts half of the hosts (of an odd number, one fewer) on one side, and each switch on
the side that is cheaper. Its capacity is that of the links between the sides, one way, at layer 1.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import networkx
import numpy as np

from .fabric import Fabric, Routes


@dataclass(frozen=True)
class Level:
    """The switches that are as far from the hosts as each other."""

    level: int
    """Links to the nearest host: 1 for those that hosts are on."""
    switches: int
    down_bps: float
    """What all of them could get from below, at layer 1."""
    up_bps: float
    """What all of them could pass up; 0 at the top."""
    across_bps: float
    """What all of them could pass to others of the same level."""
    worst: float | None
    """The greatest down / (up + across) of one switch: its oversubscription; None without both."""


@dataclass(frozen=True)
class Arithmetic:
    """A network's figures."""

    hosts: int
    switches: int
    cables: int
    diameter: int
    """The most links between two hosts."""
    mean_distance: float
    """Links between two hosts, over all pairs."""
    access_bps: int
    """Of the host that has least."""
    bisection: Bisection
    levels: tuple[Level, ...]

    @property
    def full_bps(self) -> float:
        """The bisection of a network that holds no host back: half of them send at their rate."""
        return (self.hosts // 2) * float(self.access_bps)


def arithmetic(fabric: Fabric) -> Arithmetic:
    """Return all of it."""
    diameter, mean = _distances(fabric)
    return Arithmetic(
        hosts=len(fabric.hosts),
        switches=len(fabric.switches),
        cables=sum(link.cables for link in fabric.links),
        diameter=diameter,
        mean_distance=mean,
        access_bps=min(fabric.access_bps(host) for host in fabric.hosts),
        bisection=bisection(fabric),
        levels=_levels(fabric),
    )


def _distances(fabric: Fabric) -> tuple[int, float]:
    """Return the greatest and the mean number of links between two hosts."""
    routes = Routes(fabric)
    count = len(fabric.hosts)
    ranks = np.arange(count)
    greatest, total = 0, 0
    for rank in range(1, count):
        hops = routes.hops(ranks, (ranks + rank) % count)
        greatest = max(greatest, int(hops.max()))
        total += int(hops.sum())
    return greatest, total / (count * (count - 1))


def _levels(fabric: Fabric) -> tuple[Level, ...]:
    """Return the switches by their distance from hosts.

    And how much narrower each level is above.
    """
    if not fabric.switches:
        return ()
    nearest = networkx.multi_source_dijkstra_path_length(
        fabric.graph, set(fabric.hosts), weight=None
    )
    found = []
    for level in sorted({int(nearest[switch]) for switch in fabric.switches}):
        alike = [switch for switch in fabric.switches if nearest[switch] == level]
        sides = [_sides(fabric, switch, nearest) for switch in alike]
        worst = max((s[0] / (s[1] + s[2]) for s in sides if s[1] + s[2]), default=None)
        down, up, across = (float(sum(side)) for side in zip(*sides, strict=True))
        found.append(Level(level, len(alike), down, up, across, worst))
    return tuple(found)


def _sides(fabric: Fabric, switch: str, nearest: Mapping[str, float]) -> tuple[int, int, int]:
    """Return a switch's rates towards the hosts, away from them.

    And to switches as near as itself.
    """
    down = up = across = 0
    for _, neighbour, data in fabric.graph.edges(switch, data=True):
        rise = nearest[neighbour] - nearest[switch]
        down += data["rate_bps"] * (rise < 0)
        up += data["rate_bps"] * (rise > 0)
        across += data["rate_bps"] * (rise == 0)
    return down, up, across


_NODES = 2000  # of the search for a bisection, and its time
_LIMIT_S = 20.0


@dataclass(frozen=True)
class Bisection:
    """Bounds of the capacity, which are one number where it is exact."""

    min_bps: float
    max_bps: float
    method: str

    @property
    def exact(self) -> bool:
        """Whether the two bounds have met."""
        return math.isclose(self.min_bps, self.max_bps, rel_tol=1e-9)


def bisection(fabric: Fabric) -> Bisection:
    """Return the bisection bandwidth, one way, by an integer program over the places' sides.

    Hosts with equal cables to the same switches share a variable: how many of them are on side 1.
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
    # Of each edge: it is cut by as many cables as its two ends differ by.
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
    # All switches are on one side.
    best = float(sum(sorted(map(fabric.access_bps, fabric.hosts))[:half]))
    if found.x is not None:
        side = [round(x) for x in found.x[:places]]
        cut = sum(bps * abs(side[a] * sizes[b] - side[b] * sizes[a]) for a, b, bps in edges)
        best = min(best, float(cut))
    if found.status == 0:
        return Bisection(best, best, "exact: integer program")
    return Bisection(_lower_bps(fabric), best, "bounds: uniform traffic, and the best cut found")


def _lower_bps(fabric: Fabric) -> float:
    """Return what uniform traffic shows: if all pairs have f at once, two halves have f a pair."""
    hosts = fabric.hosts
    load = networkx.edge_betweenness_centrality_subset(fabric.graph, hosts, hosts)
    rates = networkx.get_edge_attributes(fabric.graph, "rate_bps")
    # Each pair is counted in both directions and then halved: as often as it uses one direction.
    share = min(rates[edge] / pairs for edge, pairs in load.items() if pairs > 0)
    half = len(hosts) // 2
    return float(share * half * (len(hosts) - half))
