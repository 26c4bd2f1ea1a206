# SPDX-License-Identifier: BSD-3-Clause
"""A topology as the graph that arithmetic, routes and models work on (the package `fabric`)."""

from __future__ import annotations

from dataclasses import replace

from ..base.model import CableBundle, Port, Site, Wiring
from .fabric import Fabric, FabricError, Link
from .file_form import ROUTED, Topology
from .topology import UNSHAPED


def from_topology(topology: Topology, unlimited_bps: int | None = None) -> Fabric:
    """Return the fabric of a topology file.

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


def wired(site: Site, topology: Topology) -> Site:
    """Return a site whose ports are where its topology file has their hosts.

    Where the site's own wiring (or LLDP, by which it was made) differs, the wiring counts and a
    sentence says so. A host that is on several switches needs the wiring: the file does not say
    which of its ports is where.
    """
    found, problems = wiring(topology), []
    nodes = {node.name: node for node in topology.nodes}
    several = {link.a for link in topology.links if link.b in topology.modules}
    ports: dict[str, Port] = {}
    for port in site.ports:
        node = nodes.get(port.host)
        if node is None:
            problems.append(f"{found.source} has no host {port.host}: its paths are not known")
        elif port.switch is None and node.name in several:
            problems.append(
                f"{found.source} has {node.name} on several switches: the site's `wiring` is "
                f"needed to say where {port.name} is"
            )
        elif port.switch is None and node.module:
            port = replace(port, switch=node.module, switch_port=_own_port(node.port, node.index))
        elif port.switch not in (None, node.module) and node.name not in several:
            there = f"{port.switch} {port.switch_port or ''}".rstrip()
            problems.append(
                f"{found.source} has {port.name} at {node.module}, the site's wiring at {there}: "
                "the wiring is taken; `switchbench doctor` says what LLDP sees"
            )
        ports[port.name] = port
    return replace(
        site,
        processes=tuple(
            replace(process, ports=tuple(ports[port.name] for port in process.ports))
            for process in site.processes
        ),
        networks={
            name: tuple(ports[port.name] for port in some) for name, some in site.networks.items()
        },
        wiring=replace(found, problems=tuple(problems)),
    )


def _own_port(name: str, index: int) -> str | None:
    """Return the switch port's name that a file gives; None for one that only counts nodes."""
    return None if name == f"p{index}" else name
