# SPDX-License-Identifier: BSD-3-Clause
"""A lab that stands: its names, its nodes, and what runs in them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from switchbench.labs import namespaces
from switchbench.labs.routing import Routing
from switchbench.topology import lab_addresses
from switchbench.topology.file_form import ROUTED, AttachedHost, Topology, Trunk
from switchbench.topology.topology import UNSHAPED


@dataclass(frozen=True)
class Lab:
    """A lab that is up."""

    name: str
    topology: Topology

    @cached_property
    def nodes(self) -> tuple[lab_addresses.LabNode, ...]:
        """Names and addresses of its nodes, in the topology's order."""
        return tuple(lab_addresses.lab_node(self.name, node) for node in self.topology.nodes)

    def node(self, name: str) -> lab_addresses.LabNode:
        """Return the node of that name; `TopologyError` names those there are."""
        return self.nodes[self.topology.node(name).index - 1]

    def popen(self, node: str, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a process on a node, or on the `switch`; `options` as for `subprocess.Popen`."""
        name = lab_addresses.namespace_name(self.name, node)
        if node != "switch":
            self.topology.node(node)
        return namespaces.popen(lab_addresses.NAMESPACES / name, command, **options)

    @property
    def longest_queue_s(self) -> float:
        """How long the last byte may still wait in the queues after the senders fell silent.

        A frame crosses its sender's shaper, the trunks on its way, and its receiver's shaper.
        """
        if self.topology.kind == ROUTED:
            return Routing(self.topology).longest_queue_s
        access_s = max(_queue_s(node) for node in self.topology.nodes)
        return 2 * access_s + max(_farthest_s(self.topology, m) for m in self.topology.modules)


def _farthest_s(topology: Topology, module: str, before: str = "") -> float:
    """Return the trunks' queues on the slowest way from a module, not back to the one before it."""
    ways = [0.0]
    for trunk in topology.trunks:
        if module in (trunk.a, trunk.b):
            beyond = trunk.b if module == trunk.a else trunk.a
            if beyond != before:
                ways.append(_queue_s(trunk) + _farthest_s(topology, beyond, module))
    return max(ways)


def _queue_s(link: AttachedHost | Trunk) -> float:
    return link.queue_bytes * 8 / link.rate_bps if link.rate_bps != UNSHAPED else 0.0
