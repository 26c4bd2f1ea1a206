# SPDX-License-Identifier: BSD-3-Clause
"""Addresses and routes of a routed lab: a pure function of its topology.

Each node has one address, on its loopback interface, that others send to
(topology/lab_addresses.py: 198.18.i.i).
Each link has a network of its own below 198.19.0.0/16, which only next hops are named by:

| what | network | why |
| --- | --- | --- |
| the nodes on one switch, or on several that trunks join | 198.19.s.0/24, s from 0 to 127 | |
| a link between two nodes | 198.19.128.0/17 in pairs | RFC 3021: 31 bits |

Each node has a route to each other one, by the paths that models use (`fabric.Routes`): shortest,
and equal ones dealt out by destination.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address

import numpy as np

from ..topology import lab_addresses
from ..topology.fabric import Fabric, Routes
from ..topology.file_form import Topology
from ..topology.graph import from_topology
from ..topology.topology import UNSHAPED

_SEGMENTS = IPv4Address("198.19.0.0")
_SEGMENT_PREFIX = 24
_LINKS = IPv4Address("198.19.128.0")
_LINK_PREFIX = 31


@dataclass(frozen=True)
class Interface:
    """One of a node's interfaces under test."""

    name: str
    """`eth0` to its switch; `eth1`, `eth2`, ... over its links, in the topology's order."""
    address: str
    prefix: int


@dataclass(frozen=True)
class Route:
    """Where a node sends what is for another one."""

    destination: str
    """The other node's one address."""
    gateway: str
    interface: str


class Routing:
    """All of a topology's."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._fabric: Fabric = from_topology(topology, unlimited_bps=1)
        self._routes = Routes(self._fabric)

    def interfaces(self, node: str) -> list[Interface]:
        """Return a node's interfaces, `eth0` first where it is on a switch."""
        return list(self._interfaces[node].values())

    def ends(self, position: int) -> tuple[str, str]:
        """Return the two interfaces of the link at that position of the topology."""
        link = self._topology.links[position]
        return (self._interfaces[link.a][link.b].name, self._interfaces[link.b][link.a].name)

    def routes(self, node: str) -> list[Route]:
        """To each other node."""
        source = self._fabric.hosts.index(node)
        return [
            self._route(source, destination)
            for destination in range(len(self._fabric.hosts))
            if destination != source
        ]

    @property
    def longest_queue_s(self) -> float:
        """All queues of the path on which they hold a last byte longest."""
        queues = [
            8 * cable.queue_bytes / cable.rate_bps if cable.rate_bps != UNSHAPED else 0.0
            for cable in self._topology.cables  # in the order of the fabric's links
        ]
        by_resource = np.array([*queues, *queues, 0.0])
        ranks = np.arange(len(self._topology.nodes))
        turns = (np.roll(ranks, turn) for turn in range(1, len(ranks)))
        return max(
            float(by_resource[self._routes.paths(ranks, turned)].sum(axis=1).max())
            for turned in turns
        )

    def _route(self, source: int, destination: int) -> Route:
        node = self._fabric.hosts[source]
        steps = self._routes.steps(source, destination)
        first = steps[0][1]
        following = next(end for _, end in steps if end in self._interfaces)
        back = self._switch_of(following) if first != following else node
        return Route(
            destination=lab_addresses.kernel_ipv4(destination + 1),
            gateway=self._interfaces[following][back].address,
            interface=self._interfaces[node][first].name,
        )

    def _switch_of(self, node: str) -> str:
        return self._topology.node(node).module

    @cached_property
    def _interfaces(self) -> dict[str, dict[str, Interface]]:
        """By node, then by what is at the cable's other end."""
        found: dict[str, dict[str, Interface]] = {node.name: {} for node in self._topology.nodes}
        taken = [0] * len(self._segments)
        for node in self._topology.nodes:
            if node.module:
                segment = self._segments[node.module]
                taken[segment] += 1
                address = _SEGMENTS + (segment << 8) + taken[segment]
                found[node.name][node.module] = Interface("eth0", str(address), _SEGMENT_PREFIX)
        for position, link in enumerate(self._topology.links):
            ends = ((link.a, link.b), (link.b, link.a))
            for side, (near, far) in enumerate(ends):
                has_switch = bool(self._topology.node(near).module)
                number = len(found[near]) + (not has_switch)
                address = _LINKS + 2 * position + side
                found[near][far] = Interface(f"eth{number}", str(address), _LINK_PREFIX)
        return found

    @cached_property
    def _segments(self) -> dict[str, int]:
        """By module: the number of the network that it is part of."""
        number = {module: i for i, module in enumerate(self._topology.modules)}
        for trunk in self._topology.trunks:
            one, other = number[trunk.a], number[trunk.b]
            number = {
                module: min(one, other) if of in (one, other) else of
                for module, of in number.items()
            }
        return number
