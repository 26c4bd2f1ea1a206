# SPDX-License-Identifier: BSD-3-Clause
"""Makes labs of network namespaces, and removes them.

    sb-<lab>-switch                                      sb-<lab>-<node>
      module 0: bridge b0 -- p1 [TBF to the node] ======== eth0, under test
                             `-- i1 [IFB, TBF from it]
      trunk 0: t0a [TBF] == t0b [TBF], between bridges
      control: bridge ctl -- c1 ========================== ctl0, never shaped

In a lab of `kind: model` there are p1 and ctl alone, and a process a module instead of the bridges.
In one of `kind: ovs` Open vSwitch has the bridges (openvswitch.py). In one of `kind: routed` nodes
forward, and have links of their own (routed.py).

All of it goes through one thread and one netlink socket a namespace: 64 nodes take about a second.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from switchbench.labs import namespaces, neighbours, openvswitch, routed, shaper, state, switches
from switchbench.labs.routing import Routing
from switchbench.labs.state import LabError
from switchbench.topology import lab_addresses
from switchbench.topology.direction import Shaper
from switchbench.topology.topology import OVS, ROUTED, SITE, UNSHAPED, AttachedHost, Topology, Trunk

_BRIDGE_PORTS = 1023  # net/bridge/br_private.h: BR_PORT_BITS
_FORWARDING = 3  # linux/if_bridge.h: BR_STATE_FORWARDING
_FORWARDING_TIMEOUT_S = 10.0
_SILENCE_S = 0.05
_SILENCE_TIMEOUT_S = 2.0
_TERMINATE_TIMEOUT_S = 2.0
_LAB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")

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
_NODE_SYSCTLS = {
    "ipv6/conf/default/accept_ra": 0,
    "ipv6/conf/default/autoconf": 0,
    "ipv6/conf/default/router_solicitations": 0,
    "ipv6/conf/default/accept_dad": 0,
    "ipv6/conf/default/dad_transmits": 0,
    "ipv6/conf/default/addr_gen_mode": 1,  # No link-local address.
    "ipv6/conf/default/mldv1_unsolicited_report_interval": 1,  # ms
    "ipv6/conf/default/mldv2_unsolicited_report_interval": 1,  # ms
}
_SWITCH_SYSCTLS = {
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
        """The node of that name; `TopologyError` names those there are."""
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
    """The trunks' queues on the slowest way from a module, not back to the one before it."""
    ways = [0.0]
    for trunk in topology.trunks:
        if module in (trunk.a, trunk.b):
            beyond = trunk.b if module == trunk.a else trunk.a
            if beyond != before:
                ways.append(_queue_s(trunk) + _farthest_s(topology, beyond, module))
    return max(ways)


def _queue_s(link: AttachedHost | Trunk) -> float:
    return link.queue_bytes * 8 / link.rate_bps if link.rate_bps != UNSHAPED else 0.0


def up(topology: Topology, name: str | None = None) -> Lab:
    """Make a lab that stays until `down`."""
    lab = _lab(topology, name)
    with state.locked(lab.name):
        _clear_for(lab)
        _make(lab, kept=True)
    return lab


@contextmanager
def session(topology: Topology, name: str | None = None) -> Iterator[Lab]:
    """A lab for the time of a run, alone: nobody else uses or removes it meanwhile.

    One that `up` has left is used, and left again, if its topology is the same.
    """
    lab = _lab(topology, name)
    with state.locked(lab.name):
        known = state.read(lab.name)
        if known is not None and known.kept:
            if known.topology != topology:
                raise LabError(
                    f"lab {lab.name} is up with another topology than this run wants: "
                    f"`switchbench lab down {lab.name}` first"
                )
            yield lab
            return
        _clear_for(lab)
        _make(lab, kept=False)
        try:
            yield lab
        finally:
            _remove(lab)


def find(name: str) -> Lab:
    """The lab of that name, if it is up."""
    known = state.read(name)
    if known is None:
        up_now = ", ".join(state.labs()) or "none"
        raise LabError(f"lab {name} is not up (up are: {up_now})")
    return Lab(name, known.topology)


def down(name: str) -> None:
    """Remove a lab, or what a crash left of it, with every process in it."""
    find(name)
    with state.locked(name):
        _remove(find(name))


def _lab(topology: Topology, name: str | None) -> Lab:
    lab = Lab(name or topology.name, topology)
    if not _LAB_NAME.fullmatch(lab.name):
        raise LabError(f"{lab.name!r} can't be a lab's name: letters, digits, '.', '_' and '-'")
    if topology.guests is not None:
        raise LabError(
            f"{topology.name} is made of guests: `switchbench run` boots them for a run, and "
            "`python -m switchbench.labs.vm run` for a command (doc/guests.md)"
        )
    if topology.kind == SITE:
        raise LabError(
            f"{topology.name} describes a real network (kind: site), of which no lab is made: "
            "`switchbench topology` and `switchbench predict --topology` read it"
        )
    ports = len(topology.nodes) + len(topology.trunks)
    if ports > _BRIDGE_PORTS:
        raise LabError(
            f"{topology.name} has {ports} nodes and trunks; a lab takes {_BRIDGE_PORTS}, "
            "the most ports that a Linux bridge can have"
        )
    return lab


def _clear_for(lab: Lab) -> None:
    """Remove what crashes have left, with the lab's lock held."""
    _remove_abandoned(lab.name)
    known = state.read(lab.name)
    if known is not None and known.kept:
        raise LabError(f"lab {lab.name} is already up: `switchbench lab down {lab.name}` first")
    if known is not None:
        _remove(Lab(lab.name, known.topology))
    wanted = set(lab_addresses.namespace_names(lab.name, lab.topology))
    for other in state.labs():
        other_state = state.read(other)
        if other_state is None:
            continue
        taken = wanted.intersection(lab_addresses.namespace_names(other, other_state.topology))
        if taken:
            raise LabError(f"lab {other} already has the namespace {min(taken)}: choose a --name")
    strays = [name for name in wanted if namespaces.exists(name)]
    for name in strays:
        namespaces.remove(name)


def _remove_abandoned(but: str) -> None:
    """Other labs that were to go with their run, which was killed."""
    for name in state.labs():
        if name == but or state.holder(name) is not None:
            continue
        with contextlib.suppress(LabError), state.locked(name):
            known = state.read(name)
            if known is not None and not known.kept:
                _remove(Lab(name, known.topology))


def _remove(lab: Lab) -> None:
    names = lab_addresses.namespace_names(lab.name, lab.topology)
    _terminate(names)
    for name in names:
        namespaces.remove(name)
    switches.release(lab.name, lab.topology)
    openvswitch.release(lab.name)
    state.forget(lab.name)


def _terminate(names: Sequence[str]) -> None:
    """End the processes in these namespaces, which would else keep them in being unseen."""
    signals = [signal.SIGTERM, signal.SIGKILL]
    for number in signals:
        pids = [pid for pid in namespaces.processes(names) if pid != os.getpid()]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + _TERMINATE_TIMEOUT_S
        while namespaces.processes(names) and time.monotonic() < deadline:
            time.sleep(0.01)


def _make(lab: Lab, kept: bool) -> None:
    state.write(state.LabState(lab.name, lab.topology, kept=False))
    try:
        namespaces.in_thread(lambda: _build(lab))
        if lab.topology.model is not None:
            switches.start(lab.name, lab.topology, kept)
    except BaseException as error:
        _remove(lab)
        if isinstance(error, NetlinkError | OSError):
            raise LabError(f"lab {lab.name} can't be made: {error}") from error
        raise
    if kept:
        state.write(state.LabState(lab.name, lab.topology, kept=True))


def _build(lab: Lab) -> None:
    with contextlib.ExitStack() as stack:
        nodes = []
        for node in lab.topology.nodes:
            nodes.append(namespaces.create(lab_addresses.namespace_name(lab.name, node.name)))
            stack.callback(os.close, nodes[-1])
            _set_sysctls(routed.SYSCTLS if lab.topology.kind == ROUTED else _NODE_SYSCTLS)
        switch = namespaces.create(lab_addresses.switch_name(lab.name))
        stack.callback(os.close, switch)
        _set_sysctls(_SWITCH_SYSCTLS)
        with IPRoute() as netlink:
            _build_switch(netlink, lab.topology, nodes)
            if lab.topology.kind == OVS:
                openvswitch.start(lab.name, lab.topology)
            if lab.topology.kind == ROUTED:
                _build_routed_nodes(lab, nodes)
            else:
                for lab_node, fd in zip(lab.nodes, nodes, strict=True):
                    namespaces.setns(fd, namespaces.CLONE_NEWNET)
                    _build_node(lab_node)
            if len(nodes) > neighbours.MANY:
                for lab_node, fd in zip(lab.nodes, nodes, strict=True):
                    namespaces.setns(fd, namespaces.CLONE_NEWNET)
                    neighbours.introduce(lab_node, lab.nodes, lab.topology.kind != ROUTED)
            namespaces.setns(switch, namespaces.CLONE_NEWNET)
            ports = [lab_addresses.switch_port(node) for node in _switched(lab.topology)]
            _set_offloads(netlink, ports)
            _wait_forwarding(netlink)
            _wait_silence(netlink)


def _switched(topology: Topology) -> list[AttachedHost]:
    """The nodes on a switch: all of them but in a routed lab."""
    return [node for node in topology.nodes if node.module]


def _set_sysctls(values: dict[str, int]) -> None:
    for key, value in values.items():
        namespaces.write_sysctl(key, value)


def _build_switch(netlink: IPRoute, topology: Topology, nodes: Sequence[int]) -> None:
    _add_bridge(netlink, _CONTROL_BRIDGE_INDEX, "ctl", "control")
    if topology.model is not None:
        for node, fd in zip(topology.nodes, nodes, strict=True):
            _add_plain_port(netlink, topology, node, fd)
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
    """A bridge for each module; to which of them each interface of the switch belongs."""
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
    index = _PORT_INDEX + node.index
    peer = {
        "ifname": lab_addresses.IFACE,
        "net_ns_fd": namespace,
        "address": lab_addresses.mac(node.index),
        "mtu": topology.mtu,
    }
    netlink.link(
        "add",
        index=index,
        ifname=lab_addresses.switch_port(node),
        kind="veth",
        ifalias=node.name,
        mtu=topology.mtu,
        master=bridge,
        state="up",
        peer=peer,
    )
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


def _add_plain_port(
    netlink: IPRoute, topology: Topology, node: AttachedHost, namespace: int
) -> None:
    """A port of a modelled switch, whose process opens it (switches.py)."""
    netlink.link(
        "add",
        index=_PORT_INDEX + node.index,
        ifname=lab_addresses.switch_port(node),
        kind="veth",
        ifalias=node.name,
        mtu=topology.mtu,
        state="up",
        peer={
            "ifname": lab_addresses.IFACE,
            "net_ns_fd": namespace,
            "address": lab_addresses.mac(node.index),
            "mtu": topology.mtu,
        },
    )


def _add_control_port(netlink: IPRoute, node: AttachedHost, namespace: int) -> None:
    netlink.link(
        "add",
        index=_CONTROL_PORT_INDEX + node.index,
        ifname=lab_addresses.control_port(node),
        kind="veth",
        ifalias=node.name,
        master=_CONTROL_BRIDGE_INDEX,
        state="up",
        peer={
            "ifname": lab_addresses.CONTROL_IFACE,
            "net_ns_fd": namespace,
            "address": lab_addresses.control_mac(node.index),
        },
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
    _set_offloads(netlink, [a, b])
    ends = {index: masters[a], socket.if_nametoindex(b): masters[b]}
    for end, bridge in ends.items():
        netlink.link("set", index=end, master=bridge, state="up")
        if trunk.rate_bps != UNSHAPED:
            shape = Shaper(trunk.rate_bps, trunk.queue_bytes, topology.mtu, topology.burst_bytes)
            shaper.add(netlink, end, shape)


def _build_node(node: lab_addresses.LabNode) -> None:
    namespaces.write_sysctl(f"ipv6/conf/{node.control_iface}/disable_ipv6", 1)
    eth0 = socket.if_nametoindex(node.iface)
    ctl0 = socket.if_nametoindex(node.control_iface)
    with IPRoute() as netlink:
        _set_offloads(netlink, [node.iface, node.control_iface])
        for index in (1, eth0, ctl0):
            netlink.link("set", index=index, state="up")
        netlink.addr("add", index=eth0, address=node.ipv4, prefixlen=lab_addresses.IPV4_PREFIX)
        netlink.addr("add", index=eth0, address=node.ipv6, prefixlen=lab_addresses.IPV6_PREFIX)
        netlink.addr(
            "add", index=ctl0, address=node.control_ipv4, prefixlen=lab_addresses.IPV4_PREFIX
        )


def _build_routed_nodes(lab: Lab, nodes: Sequence[int]) -> None:
    routing = Routing(lab.topology)
    by_name = dict(zip((node.name for node in lab.nodes), nodes, strict=True))
    routed.add_links(lab.topology, routing, by_name)
    for node in lab.nodes:
        namespaces.setns(by_name[node.name], namespaces.CLONE_NEWNET)
        names = [interface.name for interface in routing.interfaces(node.name)]
        with IPRoute() as netlink:
            _set_offloads(netlink, [*names, node.control_iface])
            routed.configure(netlink, lab.topology, routing, node)
            ctl0 = socket.if_nametoindex(node.control_iface)
            netlink.link("set", index=ctl0, state="up")
            netlink.addr(
                "add", index=ctl0, address=node.control_ipv4, prefixlen=lab_addresses.IPV4_PREFIX
            )


def _set_offloads(netlink: IPRoute, interfaces: Sequence[str]) -> None:
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


def _wait_forwarding(netlink: IPRoute) -> None:
    """Wait until every bridge port forwards: the kernel's link watch may take a while."""
    deadline = time.monotonic() + _FORWARDING_TIMEOUT_S
    while True:
        ports = [link for link in netlink.get_links() if link.get("master")]
        late = [link.get("ifname") for link in ports if _port_state(link) != _FORWARDING]
        if not late:
            return
        if time.monotonic() > deadline:
            raise LabError(f"the switch's ports {', '.join(late)} do not come up")
        time.sleep(0.01)


def _wait_silence(netlink: IPRoute) -> None:
    """Wait until the nodes' kernels have said what they say on a new link."""
    deadline = time.monotonic() + _SILENCE_TIMEOUT_S
    last: list[int] = []
    while time.monotonic() < deadline:
        heard = [link.get("stats64")["rx_packets"] for link in netlink.get_links()]
        if heard == last:
            return
        last = heard
        time.sleep(_SILENCE_S)


def _port_state(link: Any) -> int | None:
    return link.get(("linkinfo", "slave_data", "state"))  # type: ignore[no-any-return]
