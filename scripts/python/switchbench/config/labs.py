# SPDX-License-Identifier: BSD-3-Clause
"""A site of `lab: NAME`: ports and processes from the lab's topology."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ..base.errors import ConfigurationError
from ..base.model import Port, Process, Site
from ..base.transports import NAMES, of
from ..labs import switches
from ..topology import topology as topologies
from ..topology.fabric import wiring
from ..topology.form import ROUTED, SITE, UNSHAPED, File, Shaper, Topology, TopologyError
from ..topology.lab_addresses import IPV4_PREFIX, IPV6_PREFIX, LabNode, lab_node
from .names import Names, SitePlace, make_groups, make_networks, milliseconds
from .schema import LabControl, LabSite

NETWORK = "lab"
TOPOLOGY_KEYS = tuple(key for key in LabSite.model_fields if key in File.model_fields)

# Two cores run all of a lab's nodes: a heartbeat may be late without anybody being dead, the later
# the more nodes want each core.
HEARTBEAT_TIMEOUT_NS = 2_000_000_000
HEARTBEAT_TIMEOUT_PER_NODE_NS = 100_000_000  # for each node more than this machine has cores
HEARTBEAT_TIMEOUT_MOST_NS = 5_000_000_000

NOT_ROUTED = "nodes of a routed lab forward what kernels send by IP, and no other frames"

_FRAME_OVERHEAD = 18  # Ethernet header 14 and FCS 4: what a frame has beyond the MTU


def build(model: LabSite, place: SitePlace, seed: int) -> Site:
    """Return the lab as a site."""
    overrides = {key: getattr(model, key) for key in TOPOLOGY_KEYS}
    overrides = {key: value for key, value in overrides.items() if value is not None}
    # A topology file beside the configuration by its whole path; a name stays a name.
    beside = place.document.folder / model.lab
    lab = str(beside.resolve()) if beside.is_file() else model.lab
    try:
        topology = topologies.load(lab, overrides)
    except TopologyError as error:
        raise _problem(error.messages[0], lab, overrides, place) from None
    routed, modelled = topology.kind == ROUTED, topology.model
    for key in ("driver", "queues") if routed else ():
        if getattr(model, key) is not None:
            raise place.problem((key,), f"is for dpdk: {NOT_ROUTED}")
    if topology.kind == SITE:
        raise place.problem(
            ("lab",),
            f"{topology.name} describes a real network (kind: site), of which no lab is made: name "
            "its hosts in a site file, and give this one to `predict --topology`",
        )
    waiting = max(0, len(topology.nodes) - (os.cpu_count() or 1))
    patience_ns = HEARTBEAT_TIMEOUT_NS + waiting * HEARTBEAT_TIMEOUT_PER_NODE_NS
    patience_ns = min(patience_ns, HEARTBEAT_TIMEOUT_MOST_NS)
    control = (model.control or LabControl()).with_defaults(heartbeat_timeout=patience_ns)
    if modelled is not None and (model.queues or 1) > 1:
        raise place.problem(("queues",), "a modelled switch's ports have one queue each")
    ports = tuple(_port(lab_node(topology.name, node), topology, model) for node in topology.nodes)
    lookup = Names(ports)
    changes: dict[str, object] = {"lab": lab, "control": control}
    if not routed and modelled is None:  # else none, or memif
        changes["driver"] = model.driver or "af_packet"
    shaped = [cable for cable in topology.cables if cable.rate_bps != UNSHAPED]
    queues = [cable.queue_bytes for cable in topology.cables]
    buffer = modelled.input_buffer if modelled else None
    bursts = [
        Shaper(cable.rate_bps, cable.queue_bytes, topology.mtu, topology.burst_bytes).burst_bytes
        for cable in shaped
        if modelled is None  # which lets none pass
    ]
    return Site(
        launch="lab",
        processes=_processes(topology, ports, model.pack, control.udp_port),
        networks=make_networks(model, ports, lookup, place, seed),
        groups=make_groups(model, lookup, place) or _modules(topology, ports),
        lab=lab,
        lab_overrides=overrides,
        heartbeat_timeout_ms=milliseconds(control.heartbeat_timeout),
        barrier_timeout_ms=milliseconds(control.barrier_timeout),
        cores=model.cores or (),
        queue_bytes=max(queues),
        smallest_queue_bytes=min([*queues, buffer] if buffer else queues),
        burst_bytes=max(bursts, default=None),
        queueing_s=max((8 * cable.queue_bytes / cable.rate_bps for cable in shaped), default=0),
        wiring=wiring(topology),
        device=topology.device,
        effective=model.model_copy(update=changes).written(),
    )


def _problem(
    message: str, lab: str, overrides: Mapping[str, object], place: SitePlace
) -> ConfigurationError:
    """Return a topology's mistake, at the key of the site that made it when it is one of those."""
    try:
        text = message.removeprefix(f"{topologies.find(lab)}: ")
    except TopologyError:
        return place.problem(("lab",), message)
    key, _, rest = text.partition(": ")
    if key.partition(".")[0] in overrides:
        return place.problem(tuple(key.split(".")), rest)
    return place.problem(("lab",), message)


def _port(node: LabNode, topology: Topology, model: LabSite) -> Port:
    own, routed = topology.nodes[node.index - 1], topology.kind == ROUTED
    line_rate_bps = model.line_rate or node.line_rate_bps
    engine: dict[str, Any] = {"netns": str(node.namespace), "tcp_address": node.ipv4}
    if routed:  # the line rate of all its links together: more it can't send
        rates = [own.rate_bps] if own.module else []
        rates += [link.rate_bps for link in topology.links if node.name in (link.a, link.b)]
        line_rate_bps = model.line_rate or (0 if UNSHAPED in rates else sum(rates))
    else:
        engine |= {
            "iface": node.iface,
            "driver": model.driver or "af_packet",
            "mac": node.guest_mac,
            "ipv4": f"{node.guest_ipv4}/{IPV4_PREFIX}",
            "ipv6": f"{node.guest_ipv6}/{IPV6_PREFIX}",
        }
        if topology.model is not None and model.driver is None:
            engine["vdev"] = switches.node_device(topology.name, topology, own)
        if model.queues:
            engine["queues"] = model.queues
    if line_rate_bps:
        engine["line_rate_bps"] = line_rate_bps
    return Port(
        name=f"{node.name}:e0",
        host=node.name,
        network=NETWORK,
        transports=tuple(
            name for name in NAMES if (of(name).kernel if routed else not of(name).rdma)
        ),
        engine=engine,
        line_rate_bps=line_rate_bps,
        frame_max=topology.mtu + _FRAME_OVERHEAD,
        switch=node.module or None,
        switch_port=node.port or None,
        why_these=NOT_ROUTED if routed else "",
    )


def _processes(
    topology: Topology, ports: Sequence[Port], pack: int, udp_port: int
) -> tuple[Process, ...]:
    """Return one process a node, or `pack` nodes in each.

    Which listens at its first node's address.
    """
    processes = []
    for first in range(0, len(ports), pack):
        members = ports[first : first + pack]
        node = lab_node(topology.name, topology.nodes[first])
        address = f"{node.control_ipv4}:{udp_port}"
        control = {"address": address, "netns": str(node.namespace)}
        hosts = NodeSet.fromlist([port.host for port in members], resolver=RESOLVER_NOGROUP)
        processes.append(Process(str(hosts), tuple(members), control))
    return tuple(processes)


def _modules(topology: Topology, ports: Sequence[Port]) -> dict[str, tuple[str, ...]]:
    """Return the groups of a lab that names none: its modules that have nodes."""
    groups: dict[str, tuple[str, ...]] = {}
    for node, port in zip(topology.nodes, ports, strict=True):
        if not node.module:
            continue
        groups[node.module] = (*groups.get(node.module, ()), port.name)
    return groups


def names() -> list[str]:
    """Return the labs that come with the project."""
    return sorted(file.stem for file in topologies.PROJECT_LABS.glob("*.yaml"))


def is_name(text: str) -> bool:
    """Return whether the text names a lab: a topology, not a path."""
    return Path(text).name == text and text in names()
