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
from ..topology.form import ROUTED, SITE, UNSHAPED, Shaper, Topology, TopologyError
from ..topology.lab_addresses import IPV4_PREFIX, IPV6_PREFIX, LabNode, lab_node
from .names import Names, SitePlace, make_groups, make_networks
from .schema import LabControl, LabSite

NETWORK = "lab"
TOPOLOGY_KEYS = (
    *("kind", "nodes", "rate", "queue", "burst", "mtu", "modules", "trunks", "links", "overrides"),
    "model",
)

# Two cores run all of a lab's nodes: a heartbeat may be late without anybody being dead, the later
# the more nodes want each core.
HEARTBEAT_TIMEOUT_NS = 2_000_000_000
HEARTBEAT_TIMEOUT_PER_NODE_NS = 100_000_000  # for each node more than this machine has cores
HEARTBEAT_TIMEOUT_MOST_NS = 5_000_000_000
BARRIER_TIMEOUT_NS = 5_000_000_000

NOT_ROUTED = "nodes of a routed lab forward what kernels send by IP, and no other frames"

_FRAME_OVERHEAD = 18  # Ethernet header 14 and FCS 4: what a frame has beyond the MTU


def build(model: LabSite, place: SitePlace, seed: int) -> Site:
    """Return the lab as a site."""
    overrides = {key: getattr(model, key) for key in TOPOLOGY_KEYS}
    overrides = {key: value for key, value in overrides.items() if value is not None}
    lab = _resolve(model.lab, place)
    try:
        topology = topologies.load(lab, overrides)
    except TopologyError as error:
        raise _problem(error.messages[0], lab, overrides, place) from None
    if topology.kind == ROUTED:
        for key in ("driver", "queues"):
            if getattr(model, key) is not None:
                raise place.problem((key,), f"is for dpdk: {NOT_ROUTED}")
    if topology.kind == SITE:
        raise place.problem(
            ("lab",),
            f"{topology.name} describes a real network (kind: site), of which no lab is made: name "
            "its hosts in a site file, and give this one to `predict --topology`",
        )
    control = _control(model.control or LabControl(), topology)
    if topology.model is not None and (model.queues or 1) > 1:
        raise place.problem(("queues",), "a modelled switch's ports have one queue each")
    ports = tuple(_port(lab_node(topology.name, node), topology, model) for node in topology.nodes)
    lookup = Names(ports)
    changes: dict[str, object] = {"lab": lab, "control": control}
    if topology.kind != ROUTED and topology.model is None:  # else none, or memif
        changes["driver"] = model.driver or "af_packet"
    return Site(
        launch="lab",
        processes=_processes(topology, ports, model.pack, control.udp_port or 0),
        networks=make_networks(model, ports, lookup, place, seed),
        groups=make_groups(model, lookup, place) or _modules(topology, ports),
        lab=lab,
        lab_overrides=overrides,
        heartbeat_timeout_ms=_ms(control.heartbeat_timeout),
        barrier_timeout_ms=_ms(control.barrier_timeout),
        cores=model.cores or (),
        queue_bytes=max(cable.queue_bytes for cable in topology.cables),
        smallest_queue_bytes=_smallest_queue_bytes(topology),
        burst_bytes=_burst_bytes(topology),
        queueing_s=_queueing_s(topology),
        wiring=wiring(topology),
        effective=model.model_copy(update=changes).written(),
    )


def _problem(
    message: str, lab: str, overrides: Mapping[str, Any], place: SitePlace
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


def _resolve(lab: str, place: SitePlace) -> str:
    """Return a topology file beside the configuration by its whole path; a name stays a name."""
    beside = place.document.folder / lab
    return str(beside.resolve()) if beside.is_file() else lab


def _control(given: LabControl, topology: Topology) -> LabControl:
    """Return the control network's settings with every default filled in."""
    defaults = {
        "udp_port": 0,
        "heartbeat_timeout": _heartbeat_timeout_ns(len(topology.nodes)),
        "barrier_timeout": BARRIER_TIMEOUT_NS,
    }
    missing = {key: value for key, value in defaults.items() if getattr(given, key) is None}
    return given.model_copy(update=missing)


def _heartbeat_timeout_ns(nodes: int) -> int:
    waiting = max(0, nodes - (os.cpu_count() or 1))
    return min(
        HEARTBEAT_TIMEOUT_NS + waiting * HEARTBEAT_TIMEOUT_PER_NODE_NS, HEARTBEAT_TIMEOUT_MOST_NS
    )


def _ms(ns: int | None) -> int:
    return max(1, (ns or 0) // 1_000_000)


def _port(node: LabNode, topology: Topology, model: LabSite) -> Port:
    if topology.kind == ROUTED:
        return _routed_port(node, topology, model)
    line_rate_bps = model.line_rate or node.line_rate_bps
    engine: dict[str, Any] = {
        "netns": str(node.namespace),
        "iface": node.iface,
        "driver": model.driver or "af_packet",
        "mac": node.guest_mac,
        "ipv4": f"{node.guest_ipv4}/{IPV4_PREFIX}",
        "ipv6": f"{node.guest_ipv6}/{IPV6_PREFIX}",
        "tcp_address": node.ipv4,
    }
    if topology.model is not None and model.driver is None:
        own = topology.nodes[node.index - 1]
        engine["vdev"] = switches.node_device(topology.name, topology, own)
    if line_rate_bps:
        engine["line_rate_bps"] = line_rate_bps
    if model.queues:
        engine["queues"] = model.queues
    return Port(
        name=f"{node.name}:e0",
        host=node.name,
        network=NETWORK,
        transports=tuple(name for name in NAMES if not of(name).rdma),
        engine=engine,
        line_rate_bps=line_rate_bps,
        frame_max=topology.mtu + _FRAME_OVERHEAD,
        switch=node.module,
        switch_port=node.port,
    )


def _routed_port(node: LabNode, topology: Topology, model: LabSite) -> Port:
    """Return a port at the line rate of all its links together: more it can't send."""
    own = topology.nodes[node.index - 1]
    rates = [own.rate_bps] if own.module else []
    rates += [link.rate_bps for link in topology.links if node.name in (link.a, link.b)]
    line_rate_bps = model.line_rate or (0 if UNSHAPED in rates else sum(rates))
    engine: dict[str, Any] = {"netns": str(node.namespace), "tcp_address": node.ipv4}
    if line_rate_bps:
        engine["line_rate_bps"] = line_rate_bps
    return Port(
        name=f"{node.name}:e0",
        host=node.name,
        network=NETWORK,
        transports=tuple(name for name in NAMES if of(name).kernel),
        engine=engine,
        line_rate_bps=line_rate_bps,
        frame_max=topology.mtu + _FRAME_OVERHEAD,
        switch=node.module or None,
        switch_port=node.port or None,
        why_these=NOT_ROUTED,
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


def _burst_bytes(topology: Topology) -> int | None:
    """None where no shaper of ours stands: a modelled switch lets none pass."""
    if topology.model is not None:
        return None
    shaped = [cable for cable in topology.cables if cable.rate_bps != UNSHAPED]
    bursts = [
        Shaper(cable.rate_bps, cable.queue_bytes, topology.mtu, topology.burst_bytes).burst_bytes
        for cable in shaped
    ]
    return max(bursts, default=None)


def _queueing_s(topology: Topology) -> float:
    """Return the longest that a full queue takes to empty: its bytes at its own rate."""
    shaped = [cable for cable in topology.cables if cable.rate_bps]
    return max((8 * cable.queue_bytes / cable.rate_bps for cable in shaped), default=0)


def _smallest_queue_bytes(topology: Topology) -> int:
    queues = [cable.queue_bytes for cable in topology.cables]
    buffer = topology.model.input_buffer if topology.model else None
    return min(queues + ([buffer] if buffer else []))


def names() -> list[str]:
    """Return the labs that come with the project."""
    return sorted(file.stem for file in topologies.PROJECT_LABS.glob("*.yaml"))


def is_name(text: str) -> bool:
    """Return whether the text names a lab: a topology, not a path."""
    return Path(text).name == text and text in names()
