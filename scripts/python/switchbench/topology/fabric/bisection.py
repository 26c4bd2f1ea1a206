# SPDX-License-Identifier: BSD-3-Clause
"""The least capacity between two halves of the hosts: exact where it can be, else two bounds.

A bisection puts half of the hosts (of an odd number, one fewer) on one side, and each switch on
the side that is cheaper. Its capacity is that of the links between the sides, one way, at layer 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import networkx
import numpy as np
import numpy.typing as npt

from .graph import Fabric

_CUTS = 3000  # divisions that are tried one by one; each is a maximum flow
_SWITCHES = 20  # whose divisions are all tried: a million, a second's work; each more doubles them
_AT_ONCE = 1 << 16

_Costs = npt.NDArray[np.float64]


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
    """Return the bisection bandwidth, one way."""
    if fabric.is_tree:
        bps = _of_tree(fabric)
        return Bisection(bps, bps, "exact: every division of the tree")
    bps_of_switches = _of_switches(fabric)
    if bps_of_switches is not None:
        method = "exact: every division of the switches"
        return Bisection(bps_of_switches, bps_of_switches, method)
    divisions = _divisions(fabric)
    if divisions is not None:
        bps = min(_cut_bps(fabric, side) for side in divisions)
        return Bisection(bps, bps, "exact: the smallest cut of all divisions of the hosts")
    return Bisection(
        _lower_bps(fabric), _upper_bps(fabric), "bounds: uniform traffic, and the best cut found"
    )


def _of_tree(fabric: Fabric) -> float:
    """Dynamic programming: for each subtree, its own side and hosts on side 1, the least cut."""
    graph = fabric.graph
    root = fabric.switches[0] if fabric.switches else fabric.hosts[0]
    hosts = frozenset(fabric.hosts)
    best: dict[str, tuple[_Costs, _Costs]] = {}
    for place in networkx.dfs_postorder_nodes(graph, root):
        sides = _alone(place in hosts)
        for child in graph.neighbors(place):
            if child in best:
                sides = _joined(sides, best.pop(child), graph.edges[place, child]["rate_bps"])
        best[place] = sides
    half = len(fabric.hosts) // 2
    return float(min(costs[half] for costs in best[root]))


def _alone(is_host: bool) -> tuple[_Costs, _Costs]:
    """By side of a place without children: the cut, by hosts on side 1."""
    if not is_host:
        return np.zeros(1), np.zeros(1)
    return np.array([0.0, np.inf]), np.array([np.inf, 0.0])


def _joined(
    sides: tuple[_Costs, _Costs], child: tuple[_Costs, _Costs], rate_bps: float
) -> tuple[_Costs, _Costs]:
    """Return a place with one more child below it."""

    def with_child(side: int) -> _Costs:
        across = np.minimum(child[side], child[1 - side] + rate_bps)
        return _least_sums(sides[side], across)

    return with_child(0), with_child(1)


def _least_sums(a: _Costs, b: _Costs) -> _Costs:
    """Min-plus convolution: for each sum of two indices the least sum of values."""
    long, short = (a, b) if a.size >= b.size else (b, a)
    sums = np.full(a.size + b.size - 1, np.inf)
    for i, cost in enumerate(short):
        part = sums[i : i + long.size]
        np.minimum(part, long + cost, out=part)
    return sums


def _of_switches(fabric: Fabric) -> float | None:
    """Return the least cut of all divisions of the switches; None if they are too many.

    Each host stays on its switch's side, but for as many as one side has above half of them: each
    of those costs its cable. All cables are alike here, so that it does not matter which.
    """
    place = {name: number for number, name in enumerate(fabric.switches)}
    below = np.zeros(len(place))
    cables: set[int] = set()
    for host in fabric.hosts:
        gates = [place.get(name) for name in fabric.graph.neighbors(host)]
        if len(gates) != 1 or gates[0] is None:
            return None
        below[gates[0]] += 1
        cables.update(data["rate_bps"] for _, _, data in fabric.graph.edges(host, data=True))
    if len(place) > _SWITCHES or len(cables) != 1:
        return None
    (cable_bps,) = cables
    trunks = [
        (place[a], place[b], data["rate_bps"])
        for a, b, data in fabric.graph.edges(data=True)
        if a in place and b in place
    ]
    least = np.inf
    for first in range(0, 1 << len(place), _AT_ONCE):
        division = np.arange(first, min(first + _AT_ONCE, 1 << len(place)))
        side = [division >> number & 1 for number in range(len(place))]
        moved = sum(count * one for count, one in zip(below, side, strict=True))
        cut = cable_bps * np.abs(moved - len(fabric.hosts) // 2)
        for a, b, rate_bps in trunks:
            cut = cut + rate_bps * (side[a] ^ side[b])
        least = min(least, cut.min())
    return float(least)


def _divisions(fabric: Fabric) -> Iterator[frozenset[str]] | None:
    """Yield all ways to choose half of the hosts, alike ones once; None if they are too many."""
    alike = _alike(fabric)
    if math.prod(len(hosts) + 1 for hosts in alike) > _CUTS:
        return None
    half = len(fabric.hosts) // 2
    return (
        frozenset(host for hosts, n in zip(alike, taken, strict=True) for host in hosts[:n])
        for taken in product(*(range(len(hosts) + 1) for hosts in alike))
        if sum(taken) == half
    )


def _alike(fabric: Fabric) -> list[list[str]]:
    """Hosts with the same neighbours at the same rates, which no cut can tell apart."""
    groups: dict[frozenset[tuple[str, int]], list[str]] = {}
    for host in fabric.hosts:
        edges = fabric.graph.edges(host, data=True)
        groups.setdefault(frozenset((n, d["rate_bps"]) for _, n, d in edges), []).append(host)
    return list(groups.values())


def _cut_bps(fabric: Fabric, side: Iterable[str]) -> float:
    """Return the least capacity between these hosts and the others.

    The switches where they are best.
    """
    flow: networkx.DiGraph[str] = networkx.DiGraph()
    for a, b, data in fabric.graph.edges(data=True):
        flow.add_edge(a, b, capacity=data["rate_bps"])
        flow.add_edge(b, a, capacity=data["rate_bps"])
    chosen = frozenset(side)
    for host in fabric.hosts:  # without a capacity: without a limit
        flow.add_edge(*(("one", host) if host in chosen else (host, "other")))
    return float(networkx.maximum_flow_value(flow, "one", "other"))


def _lower_bps(fabric: Fabric) -> float:
    """Return what uniform traffic shows.

    If all pairs can have f at once, any two halves have f a pair.
    """
    hosts = fabric.hosts
    load = networkx.edge_betweenness_centrality_subset(fabric.graph, hosts, hosts)
    rates = networkx.get_edge_attributes(fabric.graph, "rate_bps")
    # Each pair is counted in both directions and then halved: as often as it uses one direction.
    share = min(rates[edge] / pairs for edge, pairs in load.items() if pairs > 0)
    half = len(hosts) // 2
    return float(share * half * (len(hosts) - half))


def _upper_bps(fabric: Fabric) -> float:
    """Return the best of some good cuts.

    Hosts in the order of nearness, and what swaps make of it.
    """
    half = len(fabric.hosts) // 2
    starts = [_nearest(fabric, host)[:half] for host in fabric.hosts[:: max(1, half // 4)]]
    starts.append(_swapped(fabric))
    return min(_cut_bps(fabric, start) for start in starts)


def _nearest(fabric: Fabric, host: str) -> list[str]:
    """Return all hosts, those first to which the way is short, and of these in rank order."""
    away = networkx.single_source_shortest_path_length(fabric.graph, host)
    return sorted(fabric.hosts, key=lambda other: int(away[other]))


def _swapped(fabric: Fabric) -> list[str]:
    """Return one side by Kernighan and Lin's exchange, filled up to half of the hosts."""
    sides = networkx.algorithms.community.kernighan_lin_bisection(
        fabric.graph, weight="rate_bps", seed=1
    )
    one = [host for host in fabric.hosts if host in sides[0]]
    other = [host for host in fabric.hosts if host not in sides[0]]
    return [*one, *other][: len(fabric.hosts) // 2]
