# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that forward IP: the cables between them, and what their kernels are told.

    sb-<lab>-<node>                                     sb-<lab>-<another node>
      lo    198.18.i.i/32, what others send to
      eth0  to its switch, as in a lab of bridges
      eth1 [TBF] ====================================== [TBF] eth1

A cable's shapers are its two ends' queues, where a host's NIC has them: what a node sends itself
is held back there, and what it forwards is dropped there when the queue is full.
"""

from __future__ import annotations

import socket

from pyroute2 import IPRoute

from ..topology import lab_addresses
from ..topology.direction import Shaper
from ..topology.file_form import Topology
from ..topology.links import NodeLink
from ..topology.topology import UNSHAPED
from . import namespaces, shaper
from .routing import Routing

# In this order: forwarding sets others to what routers have by default (ip-sysctl: ip_forward).
SYSCTLS = {
    "ipv4/ip_forward": 1,
    "ipv4/conf/all/rp_filter": 0,  # Ways back may differ from ways there.
    "ipv4/conf/default/rp_filter": 0,
    "ipv4/conf/all/send_redirects": 0,
    "ipv4/conf/default/send_redirects": 0,
    "ipv4/conf/all/accept_redirects": 0,
    "ipv4/conf/default/accept_redirects": 0,
    "ipv4/conf/all/arp_announce": 2,  # Not the loopback's address: it is on no link.
    "ipv4/conf/all/arp_ignore": 1,
    "ipv6/conf/all/disable_ipv6": 1,
    "ipv6/conf/default/disable_ipv6": 1,
}

_LOOPBACK = 1
_STATIC = 4  # linux/rtnetlink.h: RTPROT_STATIC


def add_links(topology: Topology, routing: Routing, nodes: dict[str, int]) -> None:
    """Join the nodes, whose namespaces are open; leaves the calling thread in one of them."""
    for position, link in enumerate(topology.links):
        namespaces.setns(nodes[link.a], namespaces.CLONE_NEWNET)
        with IPRoute() as netlink:
            _add_link(netlink, topology, link, routing.ends(position), nodes[link.b])


def _add_link(
    netlink: IPRoute, topology: Topology, link: NodeLink, ends: tuple[str, str], far: int
) -> None:
    near_end, far_end = ends
    near_index, far_index = topology.node(link.a).index, topology.node(link.b).index
    netlink.link(
        "add",
        ifname=near_end,
        kind="veth",
        ifalias=link.name,
        mtu=topology.mtu,
        address=lab_addresses.further_mac(near_index, int(near_end.removeprefix("eth"))),
        peer={
            "ifname": far_end,
            "net_ns_fd": far,
            "mtu": topology.mtu,
            "address": lab_addresses.further_mac(far_index, int(far_end.removeprefix("eth"))),
        },
    )


def configure(
    netlink: IPRoute, topology: Topology, routing: Routing, node: lab_addresses.LabNode
) -> None:
    """Addresses, shapers and routes of a node, in whose namespace the calling thread is."""
    netlink.link("set", index=_LOOPBACK, state="up")
    netlink.addr("add", index=_LOOPBACK, address=node.ipv4, prefixlen=32)
    index = {}
    for interface in routing.interfaces(node.name):
        index[interface.name] = socket.if_nametoindex(interface.name)
        netlink.link("set", index=index[interface.name], state="up")
        netlink.addr(
            "add",
            index=index[interface.name],
            address=interface.address,
            prefixlen=interface.prefix,
        )
    for position, link in enumerate(topology.links):
        ends = dict(zip((link.a, link.b), routing.ends(position), strict=True))
        if node.name in ends and link.rate_bps != UNSHAPED:
            shape = Shaper(link.rate_bps, link.queue_bytes, topology.mtu, topology.burst_bytes)
            shaper.add(netlink, index[ends[node.name]], shape)
    for route in routing.routes(node.name):
        netlink.route(
            "add",
            dst=f"{route.destination}/32",
            gateway=route.gateway,
            oif=index[route.interface],
            prefsrc=node.ipv4,
            proto=_STATIC,
        )
