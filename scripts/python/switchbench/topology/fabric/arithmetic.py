# SPDX-License-Identifier: BSD-3-Clause
"""What can be said of a network before anything is sent: how far, how narrow, at what price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import networkx
import numpy as np

from .bisection import Bisection, bisection
from .graph import Fabric, FabricError
from .routes import Routes


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
