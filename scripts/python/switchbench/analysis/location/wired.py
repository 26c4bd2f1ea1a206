# SPDX-License-Identifier: BSD-3-Clause
"""Paths of a site: the directed elements that frames pass, as far as the topology is known.

A port on a known switch has its host, cable and switch port on each of its paths. Between switches
paths follow the topology (`fabric.Routes`). If a switch can choose among equal paths, a frame's
path is unknown: the switches to choose from count as one. Without a topology, ports of different
switches or groups have the pair of groups on their path.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import nan

import numpy as np
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ...base.model import CableBundle, Device, Port, Site, Wiring
from ...records.rows import NameIndex
from ...topology.fabric import Fabric, Routes
from ...topology.form import TopologyError
from .facts import Element, Ints, Paths, RouteFunction

MOST_PROBLEMS = 8


def group_of_port(groups: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the group of each port that is in exactly one group."""
    times = Counter(port for ports in groups.values() for port in ports)
    return {port: name for name, ports in groups.items() for port in ports if times[port] == 1}


def paths_of(site: Site, lines: Mapping[str, int] | None = None) -> Paths:
    """Return the elements of a site and the path of each pair of its ports.

    `lines`: layer-1 rates of ports as nodes reported them; other ports have the site's rates.
    """
    parts = _Parts(site, lines or {})
    if site.device is not None and site.device.chain:
        return _chained(site, site.device, parts)
    fabrics = list(_fabrics(site, parts))
    wired = {port.name: port.switch for port in site.ports if port.switch}
    groups = wired or group_of_port(site.groups)
    numbers = {port.name: number for number, port in enumerate(site.ports)}
    networks = [np.array([numbers[port.name] for port in some]) for some in site.networks.values()]
    all_routed = all(
        len(some) < 2 or any((fabric.ranks[some] >= 0).all() for fabric in fabrics)
        for some in networks
    )
    route = _router(parts, fabrics, {} if all_routed else groups)
    return Paths(
        parts.elements(),
        [port.name for port in site.ports],
        route,
        site.wiring.source if site.wiring else "none",
        tuple(parts.problems[:MOST_PROBLEMS]),
        [port.network for port in site.ports],
    )


def _chained(site: Site, device: Device, parts: _Parts) -> Paths:
    """Return the paths of a chain: all ports between the entry and the exit of each pair."""
    numbers = {name: number for number, name in enumerate(device.ports)}
    places = [numbers.get(str(port.switch_port), -1) for port in site.ports]
    names = [port.name for port in site.ports]
    fronts = [f"{device.name}:{port}" for port in device.ports]
    known: dict[tuple[int, int], int] = {}
    for (i, a), (j, b) in permutations(enumerate(places), 2):
        if min(a, b) < 0 or a % 2 == b % 2 or (a < b) != (a % 2 == 0):
            continue  # not the two ends of a part of the chain
        ends = parts.host(names[i], "send"), parts.host(names[j], "receive")
        cables = parts.access(names[i], True)[0], parts.access(names[j], False)[-1]
        hops: list[Element] = []  # ports and loop cables from one place to the other
        step, line_bps = 1 if a < b else -1, parts.line_bps(names[i])
        for at in range(a, b, 2 * step):
            if at != a:
                before, here = fronts[at - step], fronts[at]
                cable = " - ".join([before, here][::step])
                hops.append(Element(cable, "cable", f"from {before} to {here}", "", line_bps))
            hops.append(Element(fronts[at], "port", "in", "", line_bps))
            hops.append(Element(fronts[at + step], "port", "out", "", line_bps))
        known[i, j] = parts.part(ends[0], cables[0], *hops, cables[1], ends[1])

    def route(src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        pairs = zip(src.tolist(), dst.tolist(), strict=True)
        return parts.joined([np.array([known.get(pair, 0) for pair in pairs], np.int64)])

    networks = [port.network for port in site.ports]
    return Paths(parts.elements(), names, route, "the device's chain", (), networks)


class _Parts:
    """Registry of elements and of `parts`: numbered lists of elements that make up paths."""

    def __init__(self, site: Site, lines: Mapping[str, int]) -> None:
        self.pooled = site.lab is not None  # a lab's trunk is one shaper in each direction
        self.problems = list(site.wiring.problems) if site.wiring else []
        self._numbers: dict[Element, int] = {}
        self._parts: dict[tuple[int, ...], int] = {(): 0}
        self.ports = {port.name: port for port in site.ports}
        self._lines = {port.name: lines.get(port.name) or port.line_rate_bps for port in site.ports}

    def part(self, *elements: Element) -> int:
        """Return the number of a list of elements; a new list gets the next number."""
        numbers = (self._numbers.setdefault(one, len(self._numbers)) for one in elements)
        return self._parts.setdefault(tuple(numbers), len(self._parts))

    def elements(self) -> list[Element]:
        """Return the elements of all parts by number."""
        return list(self._numbers)

    def host(self, name: str, direction: str) -> Element:
        """Return the element of a port's host as sender or as receiver."""
        port = self.ports[name]
        return Element(
            port.tester or name, "host", direction, port.switch or "", self.line_bps(name)
        )

    def line_bps(self, name: str) -> float:
        """Return a port's line rate; NaN if unknown."""
        return float(self._lines[name]) or nan

    def access(self, name: str, towards_switch: bool) -> tuple[Element, ...]:
        """Return the elements of a port's cable and switch port, in the order that frames pass."""
        port, line_bps = self.ports[name], self.line_bps(name)
        if not port.switch:
            return ()
        where = f"{port.switch}:{port.switch_port}" if port.switch_port else f"{port.switch}:?"
        end = port.tester or name
        way = f"from {end} to {port.switch}" if towards_switch else f"from {port.switch} to {end}"
        # A campaign moves a host port with its cable: both keep their names.
        other = port.switch if port.tester else where
        cable = Element(f"{end} - {other}", "cable", way, "", line_bps)
        peer = "" if port.tester else name
        switch_port = Element(where, "port", "in" if towards_switch else "out", peer, line_bps)
        return (cable, switch_port) if towards_switch else (switch_port, cable)

    def joined(self, columns: Sequence[Ints]) -> tuple[Ints, Ints]:
        """Return the elements of paths in the form of `Paths.route`: each path's parts in order."""
        sizes = np.array([len(part) for part in self._parts])
        begins = np.cumsum(sizes) - sizes
        members = np.array([number for part in self._parts for number in part], np.int32)
        chosen = np.stack(columns, axis=1)
        length = sizes[chosen]
        pair = np.repeat(np.arange(len(chosen), dtype=np.int32), length.sum(axis=1))
        chosen, length = chosen.ravel(), length.ravel()
        first = begins[chosen] - (np.cumsum(length) - length)
        return pair, members[np.repeat(first, length) + np.arange(len(pair))]


@dataclass(frozen=True)
class _Routed:
    """Connected part of a network: its routes, and the elements of each link on the routes."""

    ranks: Ints  # rank by port number; -1: not in this part
    routes: Routes
    parts: Ints  # number of the part of each resource; the empty part comes last


def _router(parts: _Parts, fabrics: Sequence[_Routed], groups: Mapping[str, str]) -> RouteFunction:
    """Return the function that gives the elements on the path of each pair of ports.

    `groups`: the group of each port, for pairs of ports without a known route.
    """
    names = list(parts.ports)
    distinct = NameIndex.of(groups.get(name, "") for name in names)

    def ends(of: Callable[[str], Sequence[Element]]) -> Ints:
        """Return for each port the number of the list of elements that `of` gives."""
        return np.array([parts.part(*of(name)) for name in names], np.int64)

    def module(name: str) -> list[Element]:
        switch = parts.ports[name].switch
        return [Element(switch, "module")] if switch else []

    def of_groups(a: str, b: str) -> int:
        """Return the number of the list of elements between two groups, or within one group.

        "" stands for no group.
        """
        if not a or not b:
            return 0
        if a == b:
            return parts.part(Element(a, "group"))
        pair = Element(f"{a} - {b}", "group", f"from {a} to {b}")
        if len(distinct.names) == 2:
            return parts.part(pair)
        return parts.part(
            Element(a, "group", "to other groups"), pair, Element(b, "group", "from other groups")
        )

    senders = ends(lambda name: [parts.host(name, "send")])
    receivers = ends(lambda name: [parts.host(name, "receive")])
    ups = ends(lambda name: [*parts.access(name, True), *module(name)])
    downs = ends(lambda name: [*module(name), *parts.access(name, False)])
    between = np.array([[of_groups(a, b) for b in distinct.names] for a in distinct.names])
    group = distinct.place

    def route(src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        middle = np.zeros((len(src), 0), np.int64)
        routed = np.zeros(len(src), bool)
        for fabric in fabrics:
            mine = (fabric.ranks[src] >= 0) & (fabric.ranks[dst] >= 0) & (src != dst)
            if mine.any():
                steps = fabric.routes.paths(fabric.ranks[src[mine]], fabric.ranks[dst[mine]])
                more = np.zeros((len(src), max(steps.shape[1] - middle.shape[1], 0)), np.int64)
                middle = np.concatenate([middle, more], axis=1)
                middle[mine, : steps.shape[1]] = fabric.parts[steps]
                routed |= mine
        others = np.where(routed, 0, between[group[src], group[dst]])
        up, down = (np.where(routed, 0, end) for end in (ups[src], downs[dst]))
        return parts.joined([senders[src], up, *middle.T, others, down, receivers[dst]])

    return route


# --- topologies ----------------------------------------------------------------------------------


def _fabrics(site: Site, parts: _Parts) -> Iterator[_Routed]:
    """Yield the connected parts of a site's networks."""
    import networkx  # its import takes a sixth of a second

    wiring = site.wiring or Wiring("")
    number = {port.name: place for place, port in enumerate(site.ports)}
    for network, ports in site.networks.items():
        # Cable ends that are hosts are replaced by the network's ports.
        port_of = {port.host: port.name for port in ports} if wiring.routed else {}
        cables = [
            CableBundle(port_of.get(c.a, c.a), port_of.get(c.b, c.b), c.rate_bps, c.links)
            for c in wiring.cables
        ]
        access = [
            CableBundle(port.name, port.switch, int(np.nan_to_num(parts.line_bps(port.name))) or 1)
            for port in ports
            if port.switch
        ]
        ends = [(c.a, c.b) for c in cables] + [(link.a, link.b) for link in access]
        graph = networkx.Graph(ends)
        islands = networkx.connected_components(graph)
        island_of = {name: island for island, names in enumerate(islands) for name in names}
        connected: defaultdict[int, list[Port]] = defaultdict(list)
        for port in ports:
            if port.name in island_of:
                connected[island_of[port.name]].append(port)
        if site.wiring is not None and len(connected) > 1:
            one, other = (members[0] for members in list(connected.values())[:2])
            parts.problems.append(
                f"{wiring.source} has no path between {one.name} ({one.switch}) and {other.name} "
                f"({other.switch}): what lies between their switches counts as one"
            )
        for island, members in connected.items():
            if len(members) < 2:
                continue
            some = [cable for cable in cables if island_of[cable.a] == island]
            merged = some if site.launcher.in_lab else _one_way(members, some)
            # Unknown rates are 1, since routes do not use them.
            links = [link for link in access if island_of[link.a] == island]
            links += [CableBundle(c.a, c.b, c.rate_bps or 1, c.links) for c in merged]
            hosts = dict.fromkeys(port.name for port in members)
            places = dict.fromkeys(end for link in links for end in (link.a, link.b))
            switches = tuple(place for place in places if place not in hosts)
            routers = frozenset(hosts if wiring.routed else ())
            try:
                routes = Routes(Fabric(network, tuple(hosts), switches, tuple(links), routers))
            except TopologyError as error:
                parts.problems.append(f"{wiring.source}: {error}")
                continue
            ranks = np.full(len(number), -1, np.int64)
            ranks[[number[name] for name in hosts]] = np.arange(len(hosts))
            yield _Routed(ranks, routes, _resources(routes, merged, parts))


def _resources(routes: Routes, cables: Sequence[CableBundle], parts: _Parts) -> Ints:
    """Return the number of the list of elements for each link of routes, the empty list last."""
    by_ends = {ends: c for c in cables for ends in ((c.a, c.b), (c.b, c.a))}
    hosts = frozenset(routes.fabric.hosts)

    def part(a: str, b: str) -> int:
        if (a, b) not in by_ends:
            if a in hosts:
                return parts.part(*parts.access(a, True), Element(b, "module"))
            return parts.part(*parts.access(b, False))
        cable = by_ends[a, b]
        link = Element(
            f"{cable.a} - {cable.b}",
            "cable" if {a, b} <= hosts else "trunk",
            f"from {a} to {b}",
            "",
            float(cable.rate_bps) or nan,
            cable.links,
            parts.pooled,
        )
        return parts.part(link) if b in hosts else parts.part(link, Element(b, "module"))

    return np.array([*(part(a, b) for a, b in routes.resources), 0], np.int64)


# --- equal paths ---------------------------------------------------------------------------------


def _one_way(ports: Sequence[Port], cables: Sequence[CableBundle]) -> list[CableBundle]:
    """Return the cables of the network in which switches on equal paths are joined to one.

    A hash of a frame's addresses decides its path, so that the switch on the path is unknown.
    Switches with ports of the site are not joined.
    """
    leaves = {port.switch for port in ports if port.switch}
    members = {end: {end} for cable in cables for end in (cable.a, cable.b)}
    some = list(cables)
    while True:
        chosen = _choices(leaves, some)
        if not chosen:
            return some
        for alike in chosen:
            present = [name for name in alike if name in members]
            if len(present) < 2:
                continue
            every = set().union(*(members.pop(name) for name in present))
            name = str(NodeSet.fromlist(sorted(every), resolver=RESOLVER_NOGROUP))
            members[name] = every
            some = _renamed(some, dict.fromkeys(present, name))


def _choices(leaves: set[str], cables: Sequence[CableBundle]) -> list[list[str]]:
    """Return the sets of switches without ports through which equal paths lead to a leaf switch."""
    import networkx

    graph = networkx.Graph([(cable.a, cable.b) for cable in cables])
    found: list[list[str]] = []
    taken: set[str] = set()
    for goal in sorted(leaves.intersection(graph)):
        distance = networkx.single_source_shortest_path_length(graph, goal)
        for place in graph:
            equal = [n for n in graph[place] if distance.get(n, 0) < distance.get(place, 0)]
            if len(equal) > 1 and leaves.isdisjoint(equal) and taken.isdisjoint(equal):
                found.append(sorted(equal))
                taken.update(equal)
    return found


def _renamed(cables: Sequence[CableBundle], names: Mapping[str, str]) -> list[CableBundle]:
    """Return cables with renamed ends; cables between equal ends become one."""
    joined: dict[tuple[str, str], CableBundle] = {}
    for cable in cables:
        a, b = sorted(names.get(end, end) for end in (cable.a, cable.b))
        if a == b:
            continue
        old = joined.get((a, b))
        known = cable.rate_bps and (old is None or old.rate_bps)
        rate_bps = (cable.rate_bps + (old.rate_bps if old else 0)) if known else 0
        joined[a, b] = CableBundle(a, b, rate_bps, cable.links + (old.links if old else 0))
    return list(joined.values())
