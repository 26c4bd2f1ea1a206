# SPDX-License-Identifier: BSD-3-Clause
"""What can be said of a network before anything is sent: how far, how narrow, at what price.

A bisection puts half of the hosts (of an odd number, one fewer) on one side, and each switch on
the side that is cheaper. Its capacity is that of the links between the sides, one way, at layer 1.

The picture (SVG) has hosts in a row below, switches above them by level, links by rate; hosts
without any switch stand on a circle.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from xml.sax.saxutils import escape

import networkx
import numpy as np
import numpy.typing as npt

from .fabric import Fabric, FabricError, Routes


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


@dataclass(frozen=True)
class Prices:
    """What parts cost, in any one currency."""

    nic: float
    cable: float
    switches: Mapping[int, float]
    """By the number of ports that a switch has."""


@dataclass(frozen=True)
class Cost:
    """What the parts of a network cost together."""

    nics: float
    cables: float
    switches: float
    bought: Mapping[int, int]
    """Switches by their number of ports."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.nics + self.cables + self.switches


def cost(fabric: Fabric, prices: Prices) -> Cost:
    """Return the price with the cheapest switches that have ports enough.

    FabricError if none has.
    """
    ports: Counter[str] = Counter()
    for link in fabric.links:
        ports.update({link.a: link.cables, link.b: link.cables})
    bought: Counter[int] = Counter()
    for switch in fabric.switches:
        fitting = {n: price for n, price in prices.switches.items() if n >= ports[switch]}
        if not fitting:
            largest = max(prices.switches, default=0)
            raise FabricError(
                [
                    f"{fabric.name}: {switch} needs {ports[switch]} ports, and the price table's "
                    f"largest switch has {largest}"
                ]
            )
        bought[min(fitting, key=lambda n: (fitting[n], n))] += 1
    return Cost(
        nics=prices.nic * sum(ports[host] for host in fabric.hosts),
        cables=prices.cable * sum(link.cables for link in fabric.links),
        switches=sum(prices.switches[n] * count for n, count in bought.items()),
        bought=dict(bought),
    )


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
        one, other = ([0.0, np.inf], [np.inf, 0.0]) if place in hosts else ([0.0], [0.0])
        sides = np.array(one), np.array(other)
        for child in graph.neighbors(place):
            if child in best:
                below, rate_bps = best.pop(child), graph.edges[place, child]["rate_bps"]
                across = [np.minimum(below[side], below[1 - side] + rate_bps) for side in (0, 1)]
                sides = _least_sums(sides[0], across[0]), _least_sums(sides[1], across[1])
        best[place] = sides
    half = len(fabric.hosts) // 2
    return float(min(costs[half] for costs in best[root]))


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
    # Hosts with the same neighbours at the same rates, which no cut can tell apart.
    groups: dict[frozenset[tuple[str, int]], list[str]] = {}
    for host in fabric.hosts:
        edges = fabric.graph.edges(host, data=True)
        groups.setdefault(frozenset((n, d["rate_bps"]) for _, n, d in edges), []).append(host)
    alike = list(groups.values())
    if math.prod(len(hosts) + 1 for hosts in alike) > _CUTS:
        return None
    half = len(fabric.hosts) // 2
    return (
        frozenset(host for hosts, n in zip(alike, taken, strict=True) for host in hosts[:n])
        for taken in product(*(range(len(hosts) + 1) for hosts in alike))
        if sum(taken) == half
    )


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
    starts = []
    for host in fabric.hosts[:: max(1, half // 4)]:
        away = networkx.single_source_shortest_path_length(fabric.graph, host)
        starts.append(sorted(fabric.hosts, key=away.__getitem__)[:half])
    # One side by Kernighan and Lin's exchange, filled up to half of the hosts.
    one, _ = networkx.algorithms.community.kernighan_lin_bisection(
        fabric.graph, weight="rate_bps", seed=1
    )
    starts.append(sorted(fabric.hosts, key=lambda host: host not in one)[:half])
    return min(_cut_bps(fabric, start) for start in starts)


_STEP = 26  # between two hosts, in units of the drawing
_RISE = 120  # between two levels
_EDGE = 60
_LABELLED = 48  # so many hosts at the most have room for their names

_STYLE = """
text { font: 11px sans-serif; fill: #222; text-anchor: middle }
.link { stroke: #56606b; fill: none }
.across { stroke-dasharray: 5 4 }
.host { fill: #0072b2 }
.switch { fill: #e69f00; stroke: #222 }
text.name { fill: #111 }
@media (prefers-color-scheme: dark) {
  text { fill: #eee } text.name { fill: #111 } .link { stroke: #9aa5b1 }
}
"""


Places = Mapping[str, tuple[float, float]]


def draw(fabric: Fabric) -> str:
    """Return the whole picture as one SVG document, of any number of hosts."""
    found = networkx.multi_source_dijkstra_path_length(fabric.graph, set(fabric.hosts), weight=None)
    level = {name: int(away) for name, away in found.items()}
    places = _rows(fabric, level) if fabric.switches else _circle(fabric.hosts)
    across = [link for link in fabric.links if fabric.switches and level[link.a] == level[link.b]]
    bends = {
        (link.a, link.b): abs(places[link.a][0] - places[link.b][0]) / 4 + 12 for link in across
    }
    width = max(x + max(_EDGE, _width(name) / 2) for name, (x, _) in places.items())
    height = max(y for _, y in places.values()) + _EDGE + max(bends.values(), default=0.0) / 2
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img"><title>{escape(fabric.name)}</title><style>{_STYLE}</style>',
        *_links_svg(fabric, places, bends),
        *(_switch_svg(name, *places[name]) for name in fabric.switches),
        *(_host_svg(name, *places[name], len(fabric.hosts) <= _LABELLED) for name in fabric.hosts),
        "</svg>",
        "",
    ])  # fmt: skip


def _rows(fabric: Fabric, level: Mapping[str, int]) -> Places:
    """Return hosts side by side by their switch, and above them each level's switches.

    In the order of the middles of what hangs on them.
    """
    order = {name: i for i, name in enumerate(fabric.switches)}

    def below(host: str) -> int:
        return min((order[n] for n in fabric.graph.neighbors(host) if n in order), default=0)

    bottom = _EDGE + max(level.values()) * _RISE
    hosts = sorted(fabric.hosts, key=below)
    places = {host: (float(_EDGE + i * _STEP), float(bottom)) for i, host in enumerate(hosts)}
    by_level = defaultdict(list)
    for switch in fabric.switches:
        by_level[level[switch]].append(switch)
    for height, switches in sorted(by_level.items()):
        middles = {}
        for switch in switches:
            xs = [places[n][0] for n in fabric.graph.neighbors(switch) if n in places]
            middles[switch] = sum(xs) / len(xs) if xs else 0.0
        step = max(
            64.0, *(_width(name) + 8.0 for name in switches), len(hosts) * _STEP / len(switches)
        )
        for i, switch in enumerate(sorted(switches, key=middles.__getitem__)):
            places[switch] = (_EDGE + (i + 0.5) * step, float(bottom - height * _RISE))
    return places


def _circle(hosts: tuple[str, ...]) -> Places:
    """Return places of hosts that are joined by nothing but cables."""
    radius = max(60.0, len(hosts) * _STEP / math.tau)
    turns = (math.tau * i / len(hosts) for i in range(len(hosts)))
    middle = _EDGE + radius
    return {
        host: (middle + radius * math.sin(turn), middle - radius * math.cos(turn))
        for host, turn in zip(hosts, turns, strict=True)
    }


def _links_svg(
    fabric: Fabric, places: Places, bends: Mapping[tuple[str, str], float]
) -> Iterator[str]:
    """Yield lines as wide as their rate is large, by its logarithm.

    Those within a level are bent and dashed.
    """
    least = min(link.rate_bps for link in fabric.links)
    for link in fabric.links:
        (ax, ay), (bx, by) = places[link.a], places[link.b]
        bend = bends.get((link.a, link.b))
        label = f"{link.a} to {link.b}: {link.rate_bps / 1e6:,.0f} Mbit/s each way"
        yield (
            f'<path class="link{"" if bend is None else " across"}" '
            f'stroke-width="{1 + 1.5 * math.log2(link.rate_bps / least):.1f}" '
            f'd="M{ax:.0f} {ay:.0f}Q{(ax + bx) / 2:.0f} {(ay + by) / 2 + (bend or 0):.0f} '
            f'{bx:.0f} {by:.0f}"><title>{escape(label)}</title></path>'
        )


def _width(name: str) -> int:
    """Return the width of a switch's box."""
    return 16 + 7 * len(name)


def _switch_svg(name: str, x: float, y: float) -> str:
    width = _width(name)
    return (
        f'<rect class="switch" x="{x - width / 2:.0f}" y="{y - 11:.0f}" rx="3" '
        f'width="{width}" height="22"/><text class="name" x="{x:.0f}" '
        f'y="{y + 4:.0f}">{escape(name)}</text>'
    )


def _host_svg(name: str, x: float, y: float, named: bool) -> str:
    label = (
        f'<text x="{x:.0f}" y="{y + 12:.0f}" style="text-anchor:start" '
        f'transform="rotate(60 {x:.0f} {y + 12:.0f})">{escape(name)}</text>'
    )
    dot = f'<circle class="host" cx="{x:.0f}" cy="{y:.0f}" r="5">'
    return f"{dot}<title>{escape(name)}</title></circle>{label if named else ''}"
