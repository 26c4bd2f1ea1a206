# SPDX-License-Identifier: BSD-3-Clause
"""Creation of a lab's bridges, ports, trunks, nodes and routers in their namespaces.

Nodes of a routed lab forward IP:

sb-<lab>-<node>                                     sb-<lab>-<another node>
  lo    198.18.i.i/32, the address to which other nodes send
  eth0  to the node's switch, as in a lab of bridges
  eth1 [TBF] ====================================== [TBF] eth1

Each end of a cable has a shaper (TBF) as its transmit queue. A node's own frames wait in this
queue; forwarded frames are dropped when the queue is full. Each link has its own network below
198.19.0.0/16, whose addresses are used only as next hops:

| what | network | why |
| --- | --- | --- |
| the nodes on one switch, or on several that trunks join | 198.19.s.0/24, s from 0 to 127 | |
| a link between two nodes | 198.19.128.0/17 in pairs | RFC 3021: 31 bits |

Each node has a route to each other node, along a shortest path. Equally short paths are distributed
over the destinations, as in the models of `switchbench predict` (`fabric.Routes`).
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address
from pathlib import Path

from pyroute2 import IPRoute, protocols
from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import RTM_NEWQDISC, TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from ..topology import lab_addresses
from ..topology.fabric import Fabric, Routes, from_topology
from ..topology.form import (
    ETHERNET_HEADER_AND_TAG,
    LAYER1_OVERHEAD,
    OVS,
    UNSHAPED,
    Cable,
    Shaper,
    Topology,
)
from ..topology.lab_addresses import LabNode, control_mac
from ..topology.topology import Parts
from . import namespaces, switches
from .state import LabFailedError

_SEGMENTS = IPv4Address("198.19.0.0")
_SEGMENT_PREFIX = 24
_LINKS = IPv4Address("198.19.128.0")
_LINK_PREFIX = 31


@dataclass(frozen=True)
class Interface:
    """Interface under test of a node in a routed lab: its name and address."""

    # `eth0` to the node's switch; `eth1`, `eth2`, ... over its links, in the topology's order.
    name: str
    address: str
    prefix: int


@dataclass(frozen=True)
class Route:
    """Route from a node to another node of a routed lab: next hop and outgoing interface."""

    destination: str  # the destination node's only address
    gateway: str
    interface: str


class Routing:
    """Interfaces and routes of all nodes of a routed topology."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._fabric: Fabric = from_topology(topology, unlimited_bps=1)
        self._routes = Routes(self._fabric)

    def interfaces(self, node: str) -> list[Interface]:
        """Return a node's interfaces, `eth0` first where it is on a switch."""
        return list(self._interfaces[node].values())

    def ends(self, position: int) -> tuple[str, str]:
        """Return the names of both interfaces of the link at index `position` of the topology."""
        link = self._topology.links[position]
        return (self._interfaces[link.a][link.b].name, self._interfaces[link.b][link.a].name)

    def routes(self, node: str) -> list[Route]:
        """Return a node's routes to each other node."""
        source, found = self._fabric.hosts.index(node), []
        for place, destination in enumerate(self._topology.nodes):
            if place != source:
                steps = self._routes.steps(source, place)
                first = steps[0][1]
                following = next(end for _, end in steps if end in self._interfaces)
                back = self._topology.node(following).module if first != following else node
                gateway = self._interfaces[following][back].address
                interface = self._interfaces[node][first].name
                own = lab_addresses.kernel_ipv4(destination.index)
                found.append(Route(own, gateway, interface))
        return found

    @cached_property
    def _interfaces(self) -> dict[str, dict[str, Interface]]:
        """Return all interfaces, by node and by the node or switch at the cable's other end."""
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
                number = len(found[near]) + (not self._topology.node(near).module)
                address = _LINKS + 2 * position + side
                found[near][far] = Interface(f"eth{number}", str(address), _LINK_PREFIX)
        return found

    @cached_property
    def _segments(self) -> dict[str, int]:
        """Return the number of each module's IP network; modules joined by trunks share one."""
        modules, parts = self._topology.modules, Parts()
        for trunk in self._topology.trunks:
            parts.join(trunk.a, trunk.b)
        return {module: modules.index(parts.root(module)) for module in modules}


SHAPER_HANDLE = 0x10000

_LAYER1_LEAST_BYTES = 84  # frame of 64 bytes with preamble, start delimiter and gap
_LINKLAYER_ETHERNET = 1
_CLSACT_INGRESS = 0xFFFFFFF2
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
_STAB_BASE, _STAB_DATA = 1, 2


class _ShaperMessage(tcmsg):  # type: ignore[misc]
    nla_map = (
        *(("TCA_UNSPEC", "none"), ("TCA_KIND", "asciiz"), ("TCA_OPTIONS", "cdata")),
        *((name, "hex") for name in ("TCA_STATS", "TCA_XSTATS", "TCA_RATE", "TCA_FCNT")),
        *(("TCA_STATS2", "hex"), ("TCA_STAB", "cdata")),
    )


def _attributes(*values: tuple[int, bytes]) -> bytes:
    """Return netlink attributes with the given numbers and values, each padded to four bytes."""
    return b"".join(
        struct.pack("HH", 4 + len(value), number) + value + bytes(-len(value) % 4)
        for number, value in values
    )


def add_shaper(netlink: IPRoute, ifindex: int, shaper: Shaper) -> None:
    """Limit the rate of the frames that leave by an interface, by a token bucket filter (TBF).

    Rates are at layer 1: a size table ("stab") charges max(n + 24, 84) bytes for a frame that has n
    bytes in Linux, which does not count the FCS. Linux removes VLAN tags before it counts, so a
    tagged frame is charged 4 bytes too little. The table has an entry for each length; tc(8) would
    write one entry per 4 bytes and round up. pyroute2's own TBF supports neither stab nor an exact
    burst. Layouts: linux/pkt_sched.h (struct tc_tbf_qopt, tc_sizespec).
    """
    rate = shaper.rate_bps // 8
    entries = shaper.mtu + ETHERNET_HEADER_AND_TAG + LAYER1_OVERHEAD + 1
    sizes = array.array("H", (max(length, _LAYER1_LEAST_BYTES) for length in range(entries)))
    rates = struct.pack("BBHhHI", 0, _LINKLAYER_ETHERNET, 0, 0, 0, min(rate, 0xFFFFFFFF))
    limits = struct.pack("12sIII", bytes(12), shaper.queue_bytes, 0, 0)
    options = _attributes(
        (_TBF_PARMS, rates + limits),
        (_TBF_RATE64, struct.pack("Q", rate)),
        (_TBF_BURST, struct.pack("I", shaper.burst_bytes)),
    )
    base = (LAYER1_OVERHEAD, _LINKLAYER_ETHERNET, _LAYER1_LEAST_BYTES, entries, entries)
    stab = _attributes(
        (_STAB_BASE, struct.pack("BBhiIIII", 0, 0, 0, *base)), (_STAB_DATA, sizes.tobytes())
    )
    message = _ShaperMessage()
    message["index"] = ifindex
    message["handle"] = SHAPER_HANDLE
    message["parent"] = TC_H_ROOT
    message["attrs"] = [("TCA_KIND", "tbf"), ("TCA_OPTIONS", options), ("TCA_STAB", stab)]
    message["header"]["type"] = RTM_NEWQDISC
    message["header"]["flags"] = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
    netlink.nlm_request_batch([message])


def redirect_to_ifb(netlink: IPRoute, ifindex: int, ifb_index: int) -> None:
    """Send all frames that arrive at an interface through an IFB interface first."""
    netlink.tc("add", "clsact", ifindex)
    netlink.tc(
        "add-filter",
        "u32",
        ifindex,
        parent=_CLSACT_INGRESS,
        prio=1,
        protocol=protocols.ETH_P_ALL,
        target=0x10000,
        keys=["0x0/0x0+0"],
        action={
            "kind": "mirred",
            "direction": "egress",
            "action": "redirect",
            "ifindex": ifb_index,
        },
    )


MANY = 16  # node count above which each node gets a permanent neighbour entry for all others


def add_neighbours(node: LabNode, nodes: Iterable[LabNode], on_one_link: bool) -> None:
    """Add permanent neighbour entries for all other nodes, in the node's own namespace.

    With `on_one_link`, entries are also added for the addresses under test. Behind routers, only
    the control addresses are neighbours.
    """
    lines = []
    for other in (other for other in nodes if other is not node):
        ends = [(other.control_ipv4, control_mac(other.index), node.control_iface)]
        ends += [(other.ipv4, other.mac, node.iface)] if on_one_link else []
        lines += [
            f"neigh replace {ip} lladdr {mac} dev {dev} nud permanent" for ip, mac, dev in ends
        ]
    done = subprocess.run(
        ["ip", "-batch", "-"], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LabFailedError(f"the kernel rejected a neighbour entry: {done.stderr.strip()[:200]}")


# The order matters: setting ip_forward resets other values to router defaults (ip-sysctl).
ROUTER_SYSCTLS = {
    "ipv4/ip_forward": 1,
    "ipv4/conf/all/rp_filter": 0,  # Return paths may differ from forward paths.
    "ipv4/conf/default/rp_filter": 0,
    "ipv4/conf/all/send_redirects": 0,
    "ipv4/conf/default/send_redirects": 0,
    "ipv4/conf/all/accept_redirects": 0,
    "ipv4/conf/default/accept_redirects": 0,
    "ipv4/conf/all/arp_announce": 2,  # ARP requests without the loopback's address.
    "ipv4/conf/all/arp_ignore": 1,
    "ipv6/conf/all/disable_ipv6": 1,
    "ipv6/conf/default/disable_ipv6": 1,
}

_STATIC = 4  # linux/rtnetlink.h: RTPROT_STATIC

BRIDGE_PORTS = 1023  # net/bridge/br_private.h: BR_PORT_BITS

_FORWARDING = 3  # linux/if_bridge.h: BR_STATE_FORWARDING
_FORWARDING_TIMEOUT_S = 10.0
_SILENCE_S = 0.05
_SILENCE_TIMEOUT_S = 2.0

# Interface numbers in the switch's namespace, fixed so that no lookup is needed.
_BRIDGE_INDEX = 10
_CONTROL_BRIDGE_INDEX = 9
_TRUNK_INDEX = 10_000
_PORT_INDEX = 100_000
_CONTROL_PORT_INDEX = 200_000
_IFB_INDEX = 300_000

# The kernel may send only address resolution on a link under test. Multicast listener reports
# (RFC 3810) cannot be switched off; each is sent twice, within a few timer ticks, while the lab is
# made.
NODE_SYSCTLS = {
    "ipv6/conf/default/accept_ra": 0,
    "ipv6/conf/default/autoconf": 0,
    "ipv6/conf/default/router_solicitations": 0,
    "ipv6/conf/default/accept_dad": 0,
    "ipv6/conf/default/dad_transmits": 0,
    "ipv6/conf/default/addr_gen_mode": 1,  # No link-local address.
    "ipv6/conf/default/mldv1_unsolicited_report_interval": 1,  # ms
    "ipv6/conf/default/mldv2_unsolicited_report_interval": 1,  # ms
}

SWITCH_SYSCTLS = {
    "ipv6/conf/all/disable_ipv6": 1,
    "ipv6/conf/default/disable_ipv6": 1,
}

# linux/ethtool.h. Offloads leave segmentation and checksums to a NIC, which a veth does not have:
# the size table would charge 64 KB as one frame, and captures would show wrong checksums. GRO stays
# on, because it keeps the order: all frames from the veth peer wait in one ring. Without GRO,
# frames wait on the CPU that sent them, so frames of a sender that moves to another CPU overtake
# its earlier frames. The limit MERGED_BYTES keeps GRO from merging frames.
_SIOCETHTOOL = 0x8946

# Commands and values: receive and transmit checksums, TSO, GSO; GRO.
_OFFLOADS = ((0x15, 0), (0x17, 0), (0x1F, 0), (0x24, 0), (0x2C, 1))

MERGED_BYTES = 1


def set_sysctls(values: dict[str, int]) -> None:
    """Set network parameters (sysctls) in the calling thread's network namespace."""
    for key, value in values.items():
        namespaces.write_sysctl(key, value)


def build_switch(netlink: IPRoute, topology: Topology, nodes: Sequence[int]) -> None:
    """Make the switch's bridges, ports, shapers and trunks in the switch's namespace.

    `nodes` are open descriptors of the nodes' namespaces. The ports of a modelled switch have no
    bridge: the switch process opens them (switches.py).
    """
    _add_bridge(netlink, _CONTROL_BRIDGE_INDEX, "ctl", "control")
    masters: dict[str, int] = {}  # per interface of the switch: the interface number of its bridge
    if topology.kind == OVS:
        masters = switches.add_wires(netlink, topology)
    elif topology.model is None:
        for number, module in enumerate(topology.modules):
            index = _BRIDGE_INDEX + number
            _add_bridge(netlink, index, f"b{number}", module)
            masters |= dict.fromkeys(lab_addresses.module_ports(topology, module), index)
    for node, fd in zip(topology.nodes, nodes, strict=True):
        if node.module:
            name = lab_addresses.switch_port(node)
            own = {"mtu": topology.mtu, **({"master": masters[name]} if masters else {})}
            peer = {"address": lab_addresses.mac(node.index), "mtu": topology.mtu}
            port = _PORT_INDEX + node.index
            ends = (name, lab_addresses.IFACE)
            _add_veth(netlink, ends, node.name, {**peer, "net_ns_fd": fd}, index=port, **own)
            if masters and node.rate_bps != UNSHAPED:
                # Outgoing frames are shaped at the port, incoming ones by an IFB interface.
                ifb = _IFB_INDEX + node.index
                netlink.link(
                    "add", index=ifb, ifname=lab_addresses.inbound_shaper(node), kind="ifb",
                    ifalias=node.name, mtu=topology.mtu, state="up",
                )  # fmt: skip
                _shape(netlink, topology, node, port)
                _shape(netlink, topology, node, ifb)
                redirect_to_ifb(netlink, port, ifb)
        _add_veth(
            netlink,
            (lab_addresses.control_port(node), lab_addresses.CONTROL_IFACE),
            node.name,
            {"address": lab_addresses.control_mac(node.index), "net_ns_fd": fd},
            index=_CONTROL_PORT_INDEX + node.index,
            master=_CONTROL_BRIDGE_INDEX,
        )
    for position, trunk in enumerate(topology.trunks if masters else ()):
        a, b = lab_addresses.trunk_ends(position)
        near = _TRUNK_INDEX + 2 * position
        _add_veth(netlink, (a, b), trunk.name, {"mtu": topology.mtu}, index=near, mtu=topology.mtu)
        set_offloads(netlink, [a, b])
        for end, bridge in ((near, masters[a]), (socket.if_nametoindex(b), masters[b])):
            netlink.link("set", index=end, master=bridge, state="up")
            _shape(netlink, topology, trunk, end)


def _add_bridge(netlink: IPRoute, index: int, name: str, alias: str) -> None:
    netlink.link(
        "add", index=index, ifname=name, kind="bridge", ifalias=alias, state="up",
        br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0,
    )  # fmt: skip


def _add_veth(
    netlink: IPRoute, ends: tuple[str, str], alias: str, peer: dict[str, object], **own: object
) -> None:
    """Add a veth pair whose second end has the attributes `peer`."""
    netlink.link(
        "add", ifname=ends[0], kind="veth", ifalias=alias, state="up",
        peer={"ifname": ends[1], **peer}, **own,
    )  # fmt: skip


def _shape(netlink: IPRoute, topology: Topology, cable: Cable, index: int) -> None:
    """Shape the frames that leave one end of a cable, unless the cable has no rate limit."""
    if cable.rate_bps != UNSHAPED:
        shape = Shaper(cable.rate_bps, cable.queue_bytes, topology.mtu, topology.burst_bytes)
        add_shaper(netlink, index, shape)


def _bring_up(netlink: IPRoute, interface: str, *addresses: tuple[str, int]) -> int:
    """Bring an interface up with the given addresses and prefix lengths; return its index."""
    index = socket.if_nametoindex(interface)
    netlink.link("set", index=index, state="up")
    for address, prefix in addresses:
        netlink.addr("add", index=index, address=address, prefixlen=prefix)
    return index


def build_node(node: LabNode) -> None:
    """Set up a node's interfaces and addresses; the calling thread is in the node's namespace."""
    namespaces.write_sysctl(f"ipv6/conf/{node.control_iface}/disable_ipv6", 1)
    ipv4, ipv6 = lab_addresses.IPV4_PREFIX, lab_addresses.IPV6_PREFIX
    with IPRoute() as netlink:
        set_offloads(netlink, [node.iface, node.control_iface])
        _bring_up(netlink, "lo")
        _bring_up(netlink, node.iface, (node.ipv4, ipv4), (node.ipv6, ipv6))
        _bring_up(netlink, node.control_iface, (node.control_ipv4, ipv4))


def build_routed_nodes(
    topology: Topology, lab_nodes: Sequence[LabNode], nodes: Sequence[int]
) -> None:
    """Join the nodes of a routed lab by links, and set up addresses, shapers and routes.

    `nodes` are open descriptors of their namespaces; the calling thread ends in one of these.
    """
    routing = Routing(topology)
    by_name = dict(zip((node.name for node in lab_nodes), nodes, strict=True))
    macs = {node.name: node.index for node in lab_nodes}
    for position, link in enumerate(topology.links):
        ends = routing.ends(position)
        near, far = (
            {"mtu": topology.mtu, "address": lab_addresses.further_mac(macs[of], int(end[3:]))}
            for of, end in zip((link.a, link.b), ends, strict=True)
        )
        namespaces.setns(by_name[link.a], namespaces.CLONE_NEWNET)
        with IPRoute() as netlink:
            _add_veth(netlink, ends, link.name, {**far, "net_ns_fd": by_name[link.b]}, **near)
    for node in lab_nodes:
        namespaces.setns(by_name[node.name], namespaces.CLONE_NEWNET)
        with IPRoute() as netlink:
            interfaces = routing.interfaces(node.name)
            set_offloads(netlink, [*(one.name for one in interfaces), node.control_iface])
            _bring_up(netlink, "lo", (node.ipv4, 32))
            _bring_up(netlink, node.control_iface, (node.control_ipv4, lab_addresses.IPV4_PREFIX))
            index = {one.name: _bring_up(netlink, one.name, (one.address, one.prefix))
                     for one in interfaces}  # fmt: skip
            for position, link in enumerate(topology.links):
                joined = dict(zip((link.a, link.b), routing.ends(position), strict=True))
                if node.name in joined:
                    _shape(netlink, topology, link, index[joined[node.name]])
            for route in routing.routes(node.name):
                netlink.route(
                    "add", dst=f"{route.destination}/32", gateway=route.gateway,
                    oif=index[route.interface], prefsrc=node.ipv4, proto=_STATIC,
                )  # fmt: skip


def set_offloads(netlink: IPRoute, interfaces: Sequence[str]) -> None:
    """Turn off offloads on interfaces, so that frames are not merged and keep their order."""
    indices = [socket.if_nametoindex(name) for name in interfaces]
    for index in indices:
        netlink.link("set", index=index, gro_max_size=MERGED_BYTES)
    # Linux before 5.19 ignores the limit for all interfaces; GRO is then turned off, too.
    links = netlink.get_links(indices[0]) if indices else []
    merges = any(link.get("gro_max_size") != MERGED_BYTES for link in links)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name in interfaces:
            for command, value in _OFFLOADS:
                setting = struct.pack("II", command, 0 if merges else value)
                buffer = ctypes.create_string_buffer(setting, len(setting))
                request = struct.pack("16sP8x", name.encode(), ctypes.addressof(buffer))
                fcntl.ioctl(sock, _SIOCETHTOOL, request)


def wait_forwarding(netlink: IPRoute) -> None:
    """Wait until every bridge port forwards; the kernel's link watch may delay this."""
    deadline = time.monotonic() + _FORWARDING_TIMEOUT_S
    while True:
        ports = [link for link in netlink.get_links() if link.get("master")]
        late = [
            link.get("ifname")
            for link in ports
            if link.get(("linkinfo", "slave_data", "state")) != _FORWARDING
        ]
        if not late:
            return
        if time.monotonic() > deadline:
            raise LabFailedError(f"ports of the lab's switch do not come up: {', '.join(late)}")
        time.sleep(0.01)


def wait_silence(netlink: IPRoute) -> None:
    """Wait until the nodes' kernels send no more start-up frames on the new links."""
    deadline = time.monotonic() + _SILENCE_TIMEOUT_S
    last: list[int] = []
    while time.monotonic() < deadline:
        heard = [link.get("stats64")["rx_packets"] for link in netlink.get_links()]
        if heard == last:
            return
        last = heard
        time.sleep(_SILENCE_S)


# --- check of this machine and user, by making parts of a lab ---

_MODULES = "veth bridge ifb sch_tbf sch_ingress cls_u32 act_mirred"
_SYSCTLS_THAT_FORBID = {
    "kernel/unprivileged_userns_clone": "0",
    "user/max_user_namespaces": "0",
    "kernel/apparmor_restrict_unprivileged_userns": "1",
}


def missing() -> dict[str, str]:
    """Return the remedy for each thing that a lab needs and that this machine or user lacks."""
    if namespaces.is_privileged():
        return namespaces.in_thread(_try_all)
    try:
        return namespaces.try_in_namespace(_try_all)
    except OSError as error:
        reason, remedy = error.strerror, "run as root"
    for key, forbidding in _SYSCTLS_THAT_FORBID.items():
        path, name = Path("/proc/sys") / key, key.replace("/", ".")
        if path.exists() and path.read_text().strip() == forbidding:
            reason, remedy = f"{name} is {forbidding}", f"run as root, or change the sysctl {name}"
            break
    return {f"CAP_SYS_ADMIN and CAP_NET_ADMIN, and user namespaces ({reason})": remedy}


def _try_all() -> dict[str, str]:
    """Make each part of a lab in an unnamed namespace; return the remedy for each that fails.

    The namespace ends with the thread. Its interfaces stay down, and the loopback interface (index
    1) is used to try the queueing disciplines.
    """
    try:
        namespaces.unshare(namespaces.CLONE_NEWNET)
    except OSError as error:
        return {f"network namespaces: {error.strerror}": "a kernel with CONFIG_NET_NS"}
    with IPRoute() as netlink:
        try:
            _add_veth(netlink, ("v0", "v1"), "", {})
            _add_bridge(netlink, _BRIDGE_INDEX, "b0", "")
            netlink.link("add", ifname="i0", kind="ifb")
            add_shaper(netlink, 1, Shaper(10_000_000, 131_072, 1500))
            redirect_to_ifb(netlink, 1, 1)
        except NetlinkError as error:
            what = f"interfaces and queues of a lab: {os.strerror(error.code)}"
            return {what: f"`modprobe -a {_MODULES}` as root"}
    return {}
