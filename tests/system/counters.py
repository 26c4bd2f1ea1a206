# SPDX-License-Identifier: BSD-3-Clause
"""The truth: what the switch's kernel counted, for the benchmark to be compared with.

Counters of interfaces and shapers, read in the switch's namespace only, so that reading them
touches no node. Bytes are those of frames without FCS and without VLAN tag.

    frames_from_node -> [queue: dropped_from_node] -> bridge -> [queue: dropped_to_node]
        -> frames_to_node

What a queue still holds is in neither of its ends; read after the drain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from pyroute2 import IPRoute

from switchbench.labs import namespaces
from switchbench.labs.devices import MERGED_BYTES
from switchbench.labs.lab import Lab
from switchbench.topology import lab_addresses

_ETHERNET_HEADER = 14


class _Difference:
    """Counters that can be subtracted from later ones."""

    def __sub__(self, earlier: Self) -> Self:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return type(self)(**{name: getattr(self, name) - getattr(earlier, name) for name in names})


@dataclass(frozen=True)
class NodeTruth(_Difference):
    """The switch port of one node."""

    frames_from_node: int
    bytes_from_node: int
    dropped_from_node: int
    """Lost to the queue behind the port, of `frames_from_node`."""
    frames_to_node: int
    bytes_to_node: int
    dropped_to_node: int
    """Lost to the queue before the port; not in `frames_to_node`."""
    host_dropped: int
    """Lost because this machine was too slow, both ways: no switch would have done that."""


@dataclass(frozen=True)
class TrunkTruth(_Difference):
    """One direction of a trunk."""

    frames: int
    bytes: int
    dropped: int
    """Lost to the trunk's queue; not in `frames`."""


@dataclass(frozen=True)
class Truth:
    """All counters of a lab at one time, or between two times."""

    nodes: dict[str, NodeTruth]
    trunks: dict[tuple[str, str], TrunkTruth]
    """By (from module, to module): two entries a trunk."""

    def __sub__(self, earlier: Truth) -> Truth:
        return Truth(
            {name: truth - earlier.nodes[name] for name, truth in self.nodes.items()},
            {ends: truth - earlier.trunks[ends] for ends, truth in self.trunks.items()},
        )


@dataclass(frozen=True)
class _Interface:
    """One interface of the switch's namespace and its shaper."""

    stats: Mapping[str, int]
    shaper_drops: int


def read(lab: Lab) -> Truth:
    """Return every counter of the lab now."""
    path = lab_addresses.NAMESPACES / lab_addresses.switch_name(lab.name)
    interfaces = namespaces.inside(path, _interfaces)
    nodes = {
        node.name: _node_truth(
            interfaces[lab_addresses.switch_port(node)],
            interfaces.get(lab_addresses.inbound_shaper(node)),
        )
        for node in lab.topology.nodes
        if node.module
    }
    trunks = {}
    for i, trunk in enumerate(lab.topology.trunks):
        a, b = lab_addresses.trunk_ends(i)
        trunks[trunk.a, trunk.b] = _trunk_truth(interfaces[a])
        trunks[trunk.b, trunk.a] = _trunk_truth(interfaces[b])
    return Truth(nodes, trunks)


def _interfaces() -> dict[str, _Interface]:
    with IPRoute() as netlink:
        drops: dict[int, int] = {}
        for qdisc in netlink.get_qdiscs():
            if qdisc.get("kind") == "tbf":
                queue = qdisc.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")
                drops[qdisc["index"]] = int(queue["drops"])
        return {
            link.get("ifname"): _Interface(_stats(link), drops.get(link["index"], 0))
            for link in netlink.get_links()
        }


def _stats(link: Any) -> Mapping[str, int]:
    """A veth device with a ring of its own (build.py) counts bytes behind the Ethernet header."""
    stats: dict[str, int] = dict(link.get("stats64"))
    if link.get("gro_max_size") == MERGED_BYTES:
        for way in ("rx", "tx"):
            stats[f"{way}_bytes"] += _ETHERNET_HEADER * stats[f"{way}_packets"]
    return stats


def _node_truth(port: _Interface, inbound: _Interface | None) -> NodeTruth:
    return NodeTruth(
        frames_from_node=port.stats["rx_packets"],
        bytes_from_node=port.stats["rx_bytes"],
        dropped_from_node=inbound.shaper_drops if inbound else 0,
        frames_to_node=port.stats["tx_packets"],
        bytes_to_node=port.stats["tx_bytes"],
        dropped_to_node=port.shaper_drops,
        host_dropped=port.stats["rx_dropped"]
        + port.stats["tx_dropped"]
        + (inbound.stats["rx_dropped"] + inbound.stats["tx_dropped"] if inbound else 0),
    )


def _trunk_truth(end: _Interface) -> TrunkTruth:
    return TrunkTruth(end.stats["tx_packets"], end.stats["tx_bytes"], end.shaper_drops)
