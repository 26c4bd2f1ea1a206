# SPDX-License-Identifier: BSD-3-Clause
"""Bridges, ports, trunks and nodes of a lab, made in their namespaces."""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
import time
from collections.abc import Sequence

from pyroute2 import IPRoute

from switchbench.labs import namespaces, openvswitch, routed, shaper
from switchbench.labs.routing import Routing
from switchbench.labs.state import LabFailedError
from switchbench.topology import lab_addresses
from switchbench.topology.direction import Shaper
from switchbench.topology.file_form import OVS, AttachedHost, Topology
from switchbench.topology.topology import UNSHAPED

from .lab import Lab

BRIDGE_PORTS = 1023  # net/bridge/br_private.h: BR_PORT_BITS

_FORWARDING = 3  # linux/if_bridge.h: BR_STATE_FORWARDING

_FORWARDING_TIMEOUT_S = 10.0

_SILENCE_S = 0.05

_SILENCE_TIMEOUT_S = 2.0

# Interface numbers in the switch's namespace, chosen so that nothing has to be looked up.
_BRIDGE_INDEX = 10

_CONTROL_BRIDGE_INDEX = 9

_TRUNK_INDEX = 10_000

_PORT_INDEX = 100_000

_CONTROL_PORT_INDEX = 200_000

_IFB_INDEX = 300_000

# Nothing but the benchmark and the address resolution that it causes may send on a link under
# test. Multicast listener reports (RFC 3810) can't be switched off; they are all sent while the
# lab is being made: each twice, within a few timer ticks.
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

# linux/ethtool.h. With segments or checksums left to a NIC that isn't there, the size table
# charges 64 KB as one frame and captures show wrong checksums. Without GRO what comes from a veth
# peer waits on the CPU that sent it, and frames of a sender that moves to another CPU overtake its
# earlier ones; with it, all wait in one ring. Frames that are longer than the limit when merged are
# not merged.
_SIOCETHTOOL = 0x8946

_OFFLOADS = {
    "receive checksum": (0x15, 0),
    "transmit checksum": (0x17, 0),
    "TSO": (0x1F, 0),
    "GSO": (0x24, 0),
    "GRO": (0x2C, 1),
}

MERGED_BYTES = 1


def switched(topology: Topology) -> list[AttachedHost]:
    """Return the nodes on a switch: all of them but in a routed lab."""
    return [node for node in topology.nodes if node.module]


def set_sysctls(values: dict[str, int]) -> None:
    """Set network parameters of the calling thread's namespace."""
    for key, value in values.items():
        namespaces.write_sysctl(key, value)


def build_switch(netlink: IPRoute, topology: Topology, nodes: Sequence[int]) -> None:
    """Make the switch: bridges, ports, shapers and trunks; `nodes`: their namespaces, open."""
    _add_bridge(netlink, _CONTROL_BRIDGE_INDEX, "ctl", "control")
    if topology.model is not None:
        for node, fd in zip(topology.nodes, nodes, strict=True):
            _add_test_port(netlink, topology, node, fd)
            _add_control_port(netlink, node, fd)
        return
    add_bridges = openvswitch.add_wires if topology.kind == OVS else _add_bridges
    masters = add_bridges(netlink, topology)
    for node, fd in zip(topology.nodes, nodes, strict=True):
        if node.module:
            _add_port(netlink, topology, node, masters[lab_addresses.switch_port(node)], fd)
        _add_control_port(netlink, node, fd)
    for i in range(len(topology.trunks)):
        _add_trunk(netlink, topology, i, masters)


def _add_bridges(netlink: IPRoute, topology: Topology) -> dict[str, int]:
    """Return a bridge for each module; to which of them each interface of the switch belongs."""
    masters: dict[str, int] = {}
    for number, module in enumerate(topology.modules):
        index = _BRIDGE_INDEX + number
        _add_bridge(netlink, index, f"b{number}", module)
        masters |= dict.fromkeys(lab_addresses.module_ports(topology, module), index)
    return masters


def _add_bridge(netlink: IPRoute, index: int, name: str, alias: str) -> None:
    netlink.link(
        "add",
        index=index,
        ifname=name,
        kind="bridge",
        ifalias=alias,
        state="up",
        br_stp_state=0,
        br_forward_delay=0,
        br_mcast_snooping=0,
    )


def _add_port(
    netlink: IPRoute, topology: Topology, node: AttachedHost, bridge: int, namespace: int
) -> None:
    index = _add_test_port(netlink, topology, node, namespace, master=bridge)
    if node.rate_bps == UNSHAPED:
        return
    ifb = _IFB_INDEX + node.index
    netlink.link(
        "add",
        index=ifb,
        ifname=lab_addresses.inbound_shaper(node),
        kind="ifb",
        ifalias=node.name,
        mtu=topology.mtu,
        state="up",
    )
    shape = Shaper(node.rate_bps, node.queue_bytes, topology.mtu, topology.burst_bytes)
    shaper.add(netlink, index, shape)
    shaper.add(netlink, ifb, shape)
    shaper.redirect(netlink, index, ifb)


def _add_test_port(
    netlink: IPRoute, topology: Topology, node: AttachedHost, namespace: int, **master: int
) -> int:
    """Without a master a modelled switch's process opens it (switches.py)."""
    ends = (lab_addresses.switch_port(node), lab_addresses.IFACE)
    peer = {"address": lab_addresses.mac(node.index), "mtu": topology.mtu, "net_ns_fd": namespace}
    index = _PORT_INDEX + node.index
    _add_veth(netlink, index, node, ends, peer, mtu=topology.mtu, **master)
    return index


def _add_control_port(netlink: IPRoute, node: AttachedHost, namespace: int) -> None:
    ends = (lab_addresses.control_port(node), lab_addresses.CONTROL_IFACE)
    peer = {"address": lab_addresses.control_mac(node.index), "net_ns_fd": namespace}
    index = _CONTROL_PORT_INDEX + node.index
    _add_veth(netlink, index, node, ends, peer, master=_CONTROL_BRIDGE_INDEX)


def _add_veth(
    netlink: IPRoute,
    index: int,
    node: AttachedHost,
    ends: tuple[str, str],
    peer: dict[str, object],
    **own: int,
) -> None:
    """Add a veth pair from the switch to a node, whose end is the `peer`."""
    netlink.link(
        "add",
        index=index,
        ifname=ends[0],
        kind="veth",
        ifalias=node.name,
        state="up",
        peer={"ifname": ends[1], **peer},
        **own,
    )


def _add_trunk(
    netlink: IPRoute, topology: Topology, position: int, masters: dict[str, int]
) -> None:
    trunk = topology.trunks[position]
    index = _TRUNK_INDEX + 2 * position
    a, b = lab_addresses.trunk_ends(position)
    netlink.link(
        "add",
        index=index,
        ifname=a,
        kind="veth",
        ifalias=trunk.name,
        mtu=topology.mtu,
        peer={"ifname": b, "mtu": topology.mtu},
    )
    set_offloads(netlink, [a, b])
    ends = {index: masters[a], socket.if_nametoindex(b): masters[b]}
    for end, bridge in ends.items():
        netlink.link("set", index=end, master=bridge, state="up")
        if trunk.rate_bps != UNSHAPED:
            shape = Shaper(trunk.rate_bps, trunk.queue_bytes, topology.mtu, topology.burst_bytes)
            shaper.add(netlink, end, shape)


def build_node(node: lab_addresses.LabNode) -> None:
    """Set up a node's interfaces, in whose namespace the calling thread is."""
    namespaces.write_sysctl(f"ipv6/conf/{node.control_iface}/disable_ipv6", 1)
    eth0 = socket.if_nametoindex(node.iface)
    ctl0 = socket.if_nametoindex(node.control_iface)
    with IPRoute() as netlink:
        set_offloads(netlink, [node.iface, node.control_iface])
        for index in (1, eth0, ctl0):
            netlink.link("set", index=index, state="up")
        netlink.addr("add", index=eth0, address=node.ipv4, prefixlen=lab_addresses.IPV4_PREFIX)
        netlink.addr("add", index=eth0, address=node.ipv6, prefixlen=lab_addresses.IPV6_PREFIX)
        netlink.addr(
            "add", index=ctl0, address=node.control_ipv4, prefixlen=lab_addresses.IPV4_PREFIX
        )


def build_routed_nodes(lab: Lab, nodes: Sequence[int]) -> None:
    """Join the nodes of a routed lab, and give them addresses and routes."""
    routing = Routing(lab.topology)
    by_name = dict(zip((node.name for node in lab.nodes), nodes, strict=True))
    routed.add_links(lab.topology, routing, by_name)
    for node in lab.nodes:
        namespaces.setns(by_name[node.name], namespaces.CLONE_NEWNET)
        names = [interface.name for interface in routing.interfaces(node.name)]
        with IPRoute() as netlink:
            set_offloads(netlink, [*names, node.control_iface])
            routed.configure(netlink, lab.topology, routing, node)
            ctl0 = socket.if_nametoindex(node.control_iface)
            netlink.link("set", index=ctl0, state="up")
            netlink.addr(
                "add", index=ctl0, address=node.control_ipv4, prefixlen=lab_addresses.IPV4_PREFIX
            )


def set_offloads(netlink: IPRoute, interfaces: Sequence[str]) -> None:
    """Each frame crosses these alone, and in the order in which it was sent."""
    indices = [socket.if_nametoindex(name) for name in interfaces]
    for index in indices:
        netlink.link("set", index=index, gro_max_size=MERGED_BYTES)
    # Linux before 5.19 takes the limit for none, of all devices alike.
    links = netlink.get_links(indices[0]) if indices else []
    merges = any(link.get("gro_max_size") != MERGED_BYTES for link in links)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name in interfaces:
            for command, value in _OFFLOADS.values():
                _ethtool(sock, name, struct.pack("II", command, 0 if merges else value))


def _ethtool(sock: socket.socket, name: str, command: bytes) -> None:
    value = ctypes.create_string_buffer(command, len(command))
    request = struct.pack("16sP8x", name.encode(), ctypes.addressof(value))
    fcntl.ioctl(sock, _SIOCETHTOOL, request)


def wait_forwarding(netlink: IPRoute) -> None:
    """Wait until every bridge port forwards: the kernel's link watch may take a while."""
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
            raise LabFailedError(f"the switch's ports {', '.join(late)} do not come up")
        time.sleep(0.01)


def wait_silence(netlink: IPRoute) -> None:
    """Wait until the nodes' kernels have said what they say on a new link."""
    deadline = time.monotonic() + _SILENCE_TIMEOUT_S
    last: list[int] = []
    while time.monotonic() < deadline:
        heard = [link.get("stats64")["rx_packets"] for link in netlink.get_links()]
        if heard == last:
            return
        last = heard
        time.sleep(_SILENCE_S)
