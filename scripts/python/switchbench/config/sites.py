# SPDX-License-Identifier: BSD-3-Clause
"""Sites: ports and processes of a lab's topology, or of hosts, and how hosts are reached.

A site of hosts may exclude some of them (`without`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ..base import transports
from ..base.errors import ConfigurationError, listed, meant, shown
from ..base.model import LAUNCHERS, Port, Process, Site
from ..base.node_names import refuse_strange
from ..base.source import read_text
from ..labs import switches
from ..topology import topology as topologies
from ..topology.fabric import wired, wiring
from ..topology.form import (
    ROUTED,
    SITE,
    UNSHAPED,
    Shaper,
    Topology,
    TopologyError,
    check_places,
    default_port,
    device_of,
)
from ..topology.lab_addresses import IPV4_PREFIX, IPV6_PREFIX, LabNode, lab_node
from .fields import first_double, written_order
from .names import Names, SitePlace, make_groups, make_networks
from .rules import ETHERNET_HEADER_FCS
from .schema import TOPOLOGY_KEYS, HostSite, LabControl, LabKeys, PortKeys, SiteControl, Slurm, Ssh


def _site(model: LabKeys | HostSite, place: SitePlace, ports: Sequence[Port], **own: Any) -> Site:
    """Return a site with its networks, groups and timeouts; `own` has the site's other fields."""
    lookup, control = Names(ports), own.pop("control")
    heartbeat_ms, barrier_ms = (
        max(1, (time_ns or 0) // 1_000_000)
        for time_ns in (control.heartbeat_timeout, control.barrier_timeout)
    )
    changes = own.pop("changes") | {"control": control}
    own["groups"] = make_groups(model, lookup, place) or own.get("groups", {})
    return Site(
        networks=make_networks(model, ports, lookup, place),
        heartbeat_timeout_ms=heartbeat_ms,
        barrier_timeout_ms=barrier_ms,
        effective=model.model_copy(update=changes).written(),
        **own,
    )


# --- labs -----------------------------------------------------------------------------------------


NETWORK = "lab"

# Few cores may run all of a lab's nodes. A heartbeat may then be late without a failure, and the
# delay grows with the number of nodes per core.
LAB_HEARTBEAT_TIMEOUT_NS = 2_000_000_000
# additional timeout for each node beyond the number of this machine's cores
LAB_HEARTBEAT_TIMEOUT_PER_NODE_NS = 100_000_000
LAB_HEARTBEAT_TIMEOUT_MOST_NS = 5_000_000_000

NOT_ROUTED = "nodes of a routed lab forward what kernels send by IP, and no other frames"


def build_lab(model: LabKeys, place: SitePlace) -> Site:
    """Return the site that describes a lab, without creating the lab."""
    overrides = {key: getattr(model, key) for key in TOPOLOGY_KEYS}
    overrides = {key: value for key, value in overrides.items() if value is not None}
    # A topology file beside the configuration gets its full path; a name stays a name.
    beside = place.document.folder / model.lab
    lab = str(beside.resolve()) if beside.is_file() else model.lab
    try:
        topology = topologies.load(lab, overrides)
    except TopologyError as error:
        raise _problem(str(error), lab, overrides, place) from None
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
    if modelled is not None and (model.queues or 1) > 1:
        raise place.problem(("queues",), "a modelled switch's ports have one queue each")
    waiting = max(0, len(topology.nodes) - (os.cpu_count() or 1))
    patience_ns = LAB_HEARTBEAT_TIMEOUT_NS + waiting * LAB_HEARTBEAT_TIMEOUT_PER_NODE_NS
    control = (model.control or LabControl()).with_defaults(
        heartbeat_timeout=min(patience_ns, LAB_HEARTBEAT_TIMEOUT_MOST_NS)
    )
    ports = [_lab_port(lab_node(topology.name, node), topology, model) for node in topology.nodes]
    modules: dict[str, tuple[str, ...]] = {}
    for port in ports:
        if port.switch:
            modules[port.switch] = (*modules.get(port.switch, ()), port.name)
    changes: dict[str, object] = {"lab": lab}
    if not routed and modelled is None:  # other labs have no device, or memif
        changes["driver"] = model.driver or "af_packet"
    shaped = [cable for cable in topology.cables if cable.rate_bps != UNSHAPED]
    queues = [cable.queue_bytes for cable in topology.cables]
    buffer = modelled.input_buffer if modelled else None
    bursts = [
        Shaper(cable.rate_bps, cable.queue_bytes, topology.mtu, topology.burst_bytes).burst_bytes
        for cable in shaped
        if modelled is None  # a modelled switch passes no burst
    ]
    processes = []  # of `pack` nodes each; each listens at its first node's address
    for first in range(0, len(ports), model.pack):
        members = tuple(ports[first : first + model.pack])
        node = lab_node(topology.name, topology.nodes[first])
        address = f"{node.control_ipv4}:{control.udp_port}"
        hosts = NodeSet.fromlist([port.host for port in members], resolver=RESOLVER_NOGROUP)
        where = {"address": address, "netns": str(node.namespace)}
        processes.append(Process(str(hosts), members, where))
    return _site(
        model,
        place,
        ports,
        launch="lab",
        processes=tuple(processes),
        control=control,
        changes=changes,
        groups=modules,  # used where the lab names no groups
        lab=lab,
        lab_overrides=overrides,
        cores=model.cores or (),
        queue_bytes=max(queues),
        smallest_queue_bytes=min([*queues, buffer] if buffer else queues),
        burst_bytes=max(bursts, default=None),
        queueing_s=max((8 * cable.queue_bytes / cable.rate_bps for cable in shaped), default=0),
        wiring=wiring(topology),
        device=topology.device,
    )


def _problem(
    message: str, lab: str, overrides: Mapping[str, object], place: SitePlace
) -> ConfigurationError:
    """Return a topology's error as a ConfigurationError at the site's key that caused it."""
    try:
        text = message.removeprefix(f"{topologies.find(lab)}: ")
    except TopologyError:
        return place.problem(("lab",), message)
    key, _, rest = text.partition(": ")
    if key.partition(".")[0] in overrides:
        return place.problem(tuple(key.split(".")), rest)
    return place.problem(("lab",), message)


def _lab_port(node: LabNode, topology: Topology, model: LabKeys) -> Port:
    own, routed = topology.nodes[node.index - 1], topology.kind == ROUTED
    line_rate_bps = model.line_rate or node.line_rate_bps
    engine: dict[str, object] = {"netns": str(node.namespace), "tcp_address": node.ipv4}
    if routed:  # line rate of the node: the sum of the rates of all its links
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
            each.name
            for each in map(transports.of, transports.NAMES)
            if (each.kernel if routed else not each.rdma)
        ),
        engine=engine,
        line_rate_bps=line_rate_bps,
        frame_max=topology.mtu + ETHERNET_HEADER_FCS,
        switch=node.module or None,
        switch_port=node.port or None,
        why_these=NOT_ROUTED if routed else "",
    )


# --- how hosts are reached ------------------------------------------------------------------------


# Options by which ssh runs a program, loads a library or reads another file, in lower case.
EXECUTING = {
    "proxycommand", "knownhostscommand", "pkcs11provider", "smartcarddevice",
    "securitykeyprovider", "xauthlocation", "include", "match",
}  # fmt: skip
_KEYWORD = re.compile(r"[A-Za-z0-9]+")


def reached(model: HostSite, place: SitePlace) -> dict[str, object]:
    """Return `ssh`, `slurm` and `command` of a site: the launcher's with defaults, others None."""
    found: dict[str, object] = dict.fromkeys(("ssh", "slurm", "command"))
    for key in found:
        if getattr(model, key) is not None and model.launch != key:
            raise place.problem((key,), f"has no effect with launch: {model.launch}")
    if model.launch == "ssh":
        found["ssh"] = _ssh(model.ssh or Ssh(), place)
    elif model.launch == "slurm":
        found["slurm"] = model.slurm or Slurm()
    elif model.launch == "command":
        found["command"] = model.command
        if model.command is None:
            example = 'command: {start: [mpirun, --host, "{host}", -np, "1"]}'
            raise place.problem(("command",), f"is missing: such as `{example}`")
        if not any("{host}" in word for word in model.command.start[1:]):
            raise place.problem(("command", "start"), "names no {host}: it is run once per host")
    return found


def _ssh(keys: Ssh, place: SitePlace) -> Ssh:
    if keys.config is None:
        return keys
    path = place.file(("ssh", "config"), keys.config)
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        text = line.strip().replace('"', "")
        keyword = _KEYWORD.match(text)
        if not text or text.startswith("#") or (keyword and keyword[0].casefold() not in EXECUTING):
            continue
        raise place.problem(  # the file may come from another person, with the configuration
            ("ssh", "config"),
            f"{path.name}:{number}: {shown(text.split()[0])} could run a program here, which is "
            "not allowed in a configuration: put it into your own ~/.ssh/config",
        )
    return keys.model_copy(update={"config": str(path)})


# --- sites of hosts -------------------------------------------------------------------------------


HEARTBEAT_TIMEOUT_NS = 500_000_000
# longer, because a shared port carries other traffic beside the heartbeats
HEARTBEAT_TIMEOUT_SHARED_NS = 5_000_000_000

# Addresses for raw frames, for which no kernel answers: ranges of RFC 2544 and RFC 5180.
_GUEST_IPV4 = IPv4Address("198.19.0.0")
_GUEST_IPV6 = IPv6Address("2001:2:0:2::")
_ADDRESSES = 65_534

_DEVICES = ("iface", "pci", "rdma", "vdev")
_ENGINE_KEYS = (
    "iface", "pci", "vdev", "rdma", "driver", "tcp_address", "queue_frames", "queues", "shared",
)  # fmt: skip

Wires = Mapping[str, tuple[str, str]]
"""Mapping of a host port's name to the names of its switch and switch port."""


def build_hosts(model: HostSite, place: SitePlace) -> Site:
    """Return the site that the keys of a site file describe."""
    if LAUNCHERS[model.launch].in_lab:
        raise place.problem(("launch",), "lab is started by `site: {lab: NAME}`, without hosts")
    with place.at("hosts"):
        hosts = [host for text in model.hosts for host in written_order(text)]
        refuse_strange(hosts)
        if (twice := first_double(hosts)) is not None:
            raise ValueError(f"duplicate host {twice}")
    keys = _port_keys(model, hosts, place)
    wires, known = model.wiring or {}, {f"{host}:{name}" for host, name in keys}
    for name in wires:
        if name not in known:
            raise place.problem(("wiring", name), f"there is no such port{meant(name, known)}")
    if len(keys) > _ADDRESSES:
        raise place.problem(("hosts",), f"makes {len(keys)} ports; {_ADDRESSES} is the most")
    ports = tuple(
        _port(host, name, i, port, wires)
        for i, ((host, name), port) in enumerate(keys.items(), start=1)
    )
    device = None
    if model.device is not None:
        with place.at("device"):
            device = device_of(model.device, "DUT")
            if len({port.network for port in ports}) > 1:
                raise ValueError("a device has one network, but the site's ports are in several")
            strange = [port for port in ports if port.switch not in (None, device.name)]
            if strange:
                at = f"{strange[0].name} is wired to switch {strange[0].switch}"
                raise ValueError(f"{at}, but the device under test is {device.name}")
            ends = [port.switch_port or default_port(device, i) for i, port in enumerate(ports)]
            ports = tuple(
                replace(port, switch=device.name, switch_port=end)
                for port, end in zip(ports, ends, strict=True)
            )
            check_places(device, {port.name: str(port.switch_port) for port in ports})
    shared = any(port.shared for port in keys.values())
    patience_ns = HEARTBEAT_TIMEOUT_SHARED_NS if shared else HEARTBEAT_TIMEOUT_NS
    control = (model.control or SiteControl()).with_defaults(heartbeat_timeout=patience_ns)
    # The effective site contains the values of groups and files, so that it stays valid when they
    # change.
    named = {name: list(ends) for name, ends in wires.items()} or None
    changes: dict[str, object] = {"hosts": hosts, "wiring": named, "without": None}
    fabric = None if model.fabric is None else place.file(("fabric",), model.fabric)
    if fabric is not None:
        changes["fabric"] = str(fabric)
    site = _site(
        model,
        place,
        ports,
        launch=model.launch,
        processes=_processes(model, hosts, ports, control, place),
        control=control,
        changes=changes | reached(model, place),
        device=device,
    )
    if fabric is not None:  # the network between its switches
        try:
            site = wired(site, topologies.load(fabric))
        except TopologyError as error:
            raise place.problem(("fabric",), str(error)) from None
    without = [host for text in model.without or () for host in place.hosts(text, hosts, "without")]
    if not set(hosts) - set(without):
        raise place.problem(("without",), f"leaves none of the hosts {listed(hosts)}")
    return leave_out(site, without)


def leave_out(site: Site, hosts: Collection[str]) -> Site:
    """Return a site without the given hosts.

    The remaining hosts keep their addresses, and ranks are renumbered.
    """
    if not hosts:
        return site
    before = [host for host in site.effective.get("without", []) if host not in hosts]
    gone = {port.name for port in site.ports if port.host in hosts}
    networks = {
        name: tuple(port for port in ports if port.name not in gone)
        for name, ports in site.networks.items()
    }
    groups = {
        name: tuple(port for port in ports if port not in gone)
        for name, ports in site.groups.items()
    }
    return replace(
        site,
        processes=tuple(process for process in site.processes if process.name not in hosts),
        networks={name: ports for name, ports in networks.items() if ports},
        groups={name: ports for name, ports in groups.items() if ports},
        effective=site.effective | {"without": [*before, *hosts]},
    )


Keys = dict[tuple[str, str], PortKeys]


def _port_keys(model: HostSite, hosts: list[str], place: SitePlace) -> Keys:
    """Return the keys of every port, by host and name, with overrides applied."""
    if not model.ports:
        raise place.problem(("ports",), "names no port")
    keys = {(host, name): port for host in hosts for name, port in model.ports.items()}
    for text, ports in (model.overrides or {}).items():
        for host in place.hosts(text, hosts, "overrides", text):
            for name, own in ports.items():
                keys[host, name] = keys.get((host, name), PortKeys()).model_copy(update=own.given())
    for (host, name), port in keys.items():
        possible, key, text = _possible(port), "", ""
        lacking = [name for name in port.transports or () if name not in possible]
        if port.network is None:
            text = "has no `network`: the ports that can reach each other"
        elif not any(getattr(port, device) for device in _DEVICES):
            text = "has no device: one of iface, pci, rdma or vdev is needed"
        elif port.address == "keep" and port.mac:
            key, text = "mac", "has no effect with address: keep"
        elif port.driver and not port.iface:
            key, text = "driver", "has no effect without `iface`"
        elif port.queues and not any(map(_is_raw, port.transports or possible)):
            key, text = "queues", "has no effect without transport dpdk"
        elif port.shared and (not possible or any(map(_is_raw, lacking))):
            key = "shared"
            text = "has no dpdk, which takes all frames of a port: leave one of them out"
        elif lacking:
            key, text = "transports", f"this kind of port has no {lacking[0]}"
        if text:
            where = ("ports", name) if name in model.ports else ("overrides", host, name)
            raise place.problem((*where, key) if key else where, text)
    place_of = {host: i for i, host in enumerate(hosts)}
    return dict(sorted(keys.items(), key=lambda item: place_of[item[0][0]]))


def _possible(port: PortKeys) -> tuple[str, ...]:
    """Return the transports that a port's keys allow; the node later checks the port's devices."""
    return tuple(
        each.name
        for each in map(transports.of, transports.NAMES)
        if any(getattr(port, device) for device in each.devices) and not (each.raw and port.shared)
    )


def _is_raw(transport: str) -> bool:
    return transports.of(transport).raw


def _port(host: str, name: str, index: int, port: PortKeys, wires: Wires) -> Port:
    possible = tuple(port.transports or _possible(port))
    switch, switch_port = wires.get(f"{host}:{name}", (None, None))
    engine = {key: getattr(port, key) for key in _ENGINE_KEYS if getattr(port, key) is not None}
    if any(map(_is_raw, possible)):
        own_mac = f"02:53:42:00:{index >> 8:02x}:{index & 0xFF:02x}"
        engine["mac"] = "keep" if port.address == "keep" else (port.mac or own_mac)
        engine["ipv4"] = port.ipv4 or f"{_GUEST_IPV4 + index}/16"
        engine["ipv6"] = port.ipv6 or f"{_GUEST_IPV6 + index}/64"
        if port.gateway:
            engine["gateway"] = port.gateway
    if port.line_rate:
        engine["line_rate_bps"] = port.line_rate
    return Port(
        name=f"{host}:{name}",
        host=host,
        network=port.network or "",
        transports=possible,
        engine=engine,
        line_rate_bps=port.line_rate or 0,
        frame_max=port.mtu + ETHERNET_HEADER_FCS if port.mtu else 0,
        switch=switch,
        switch_port=switch_port,
    )


def _processes(
    model: HostSite, hosts: list[str], ports: Sequence[Port], control: SiteControl, place: SitePlace
) -> tuple[Process, ...]:
    """Return one node process per host, with its ports, control address and cores."""
    own, rule = control.addresses or {}, control.address
    for host in own:
        if host not in hosts:
            raise place.problem(
                ("control", "addresses", host), f"there is no such host{meant(host, hosts)}"
            )
    if "{host}" not in rule and len(hosts) > len(own):
        raise place.problem(
            ("control", "address"), f"{shown(rule)} is the same for all hosts: it needs {{host}}"
        )
    cores: dict[str, tuple[int, ...]] = dict.fromkeys(hosts, model.cores or ())
    for text, named in (model.host_cores or {}).items():
        cores |= dict.fromkeys(place.hosts(text, hosts, "host_cores", text), named)
    by_host: dict[str, list[Port]] = {host: [] for host in hosts}
    for port in ports:
        by_host[port.host].append(port)
    processes = []
    for host, members in by_host.items():
        address = own.get(host, rule).replace("{host}", host)
        if address.count(":") != 1 and "]:" not in address:  # the address has no port
            bare = f"[{address}]" if ":" in address and not address.startswith("[") else address
            address = f"{bare}:{control.udp_port}"
        processes.append(Process(host, tuple(members), {"address": address}, cores[host]))
    return tuple(processes)
