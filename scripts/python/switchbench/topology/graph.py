# SPDX-License-Identifier: BSD-3-Clause
"""A topology as the graph that arithmetic, routes and models work on (the package `fabric`)."""

from __future__ import annotations

from ..base.model import CableBundle, Wiring
from .fabric import Fabric, FabricError, Link
from .file_form import ROUTED, Topology
from .topology import UNSHAPED


def from_topology(topology: Topology, unlimited_bps: int | None = None) -> Fabric:
    """The fabric of a topology file.

    A link without a limit counts as `unlimited_bps`; FabricError where there is none, for nothing
    can be computed then.
    """
    switched = [node for node in topology.nodes if node.module]
    if unlimited_bps is None:
        unknown = [cable.name for cable in topology.cables if cable.rate_bps == UNSHAPED]
        if unknown:
            raise FabricError(
                [
                    f"{topology.name}: the rate of {unknown[0]} is not limited: nothing can be "
                    "computed"
                ]
            )
    other = unlimited_bps or 0
    access = (Link(node.name, node.module, node.rate_bps or other) for node in switched)
    trunks = (Link(t.a, t.b, t.rate_bps or other, t.links) for t in topology.trunks)
    cables = (Link(link.a, link.b, link.rate_bps or other) for link in topology.links)
    hosts = tuple(node.name for node in topology.nodes)
    return Fabric(
        topology.name,
        hosts,
        topology.modules,
        (*access, *trunks, *cables),
        routers=frozenset(hosts) if topology.kind == ROUTED else frozenset(),
    )


def wiring(topology: Topology) -> Wiring:
    """Return the network between a topology's switches, without its nodes' own cables."""
    trunks = [
        CableBundle(trunk.a, trunk.b, trunk.rate_bps, trunk.links) for trunk in topology.trunks
    ]
    links = [CableBundle(link.a, link.b, link.rate_bps) for link in topology.links]
    routed = topology.kind == ROUTED
    return Wiring(f"topology file {topology.name}", (*trunks, *links), routed)
