# SPDX-License-Identifier: BSD-3-Clause
"""What large labs' nodes know of each other's MAC addresses from the start.

All namespaces of a machine share one table of IPv4 neighbours, of 1,024 entries at the most
(net.ipv4.neigh.default.gc_thresh3): in an all-to-all of 24 nodes each side of it needs 552 entries
under test and as many for control, and with 33 nodes the kernel begins to throw connections away
("neighbour table overflow"). Permanent entries do not count (net/core/neighbour.c). Small labs ask
by ARP, as hosts do.

The messages are laid out here: 64 nodes need 8,064, for which pyroute2's own take 6 to 21 s where
these take 0.2 to 0.5 (two cores beside other work, in turn).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator

from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NLMSG_ERROR
from pyroute2.netlink.rtnl import RTM_NEWNEIGH

from switchbench.topology.lab_addresses import LabNode, control_mac

MANY = 16
"""Nodes; with more, each knows all others."""

_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # struct ndmsg
_ATTRIBUTE = struct.Struct("=HH")  # struct rtattr
_ERROR = struct.Struct("=i")  # of struct nlmsgerr
_NDA_DST, _NDA_LLADDR = 1, 2
_NUD_PERMANENT = 0x80
_BATCH = 128  # messages, so that their acknowledgements fit any receive buffer
_RECEIVE = 1 << 16


def introduce(node: LabNode, nodes: Iterable[LabNode], on_one_link: bool) -> None:
    """Tells the kernel of this namespace, the node's, where all others are.

    `on_one_link`: under test, too; behind routers only the control addresses are neighbours.
    """
    others = [other for other in nodes if other is not node]
    control = socket.if_nametoindex(node.control_iface)
    messages = [_message(control, other.control_ipv4, control_mac(other.index)) for other in others]
    if on_one_link:
        test = socket.if_nametoindex(node.iface)
        messages += [_message(test, other.ipv4, other.mac) for other in others]
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        for first in range(0, len(messages), _BATCH):
            batch = messages[first : first + _BATCH]
            netlink.send(b"".join(batch))
            _await(netlink, len(batch))


def _message(interface: int, ipv4: str, mac: str) -> bytes:
    body = _NEIGHBOUR.pack(socket.AF_INET, interface, _NUD_PERMANENT, 0, 0)
    body += _attribute(_NDA_DST, socket.inet_aton(ipv4))
    body += _attribute(_NDA_LLADDR, bytes.fromhex(mac.replace(":", "")))
    flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE
    return _HEADER.pack(_HEADER.size + len(body), RTM_NEWNEIGH, flags, 0, 0) + body


def _attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + bytes(-len(value) % 4)


def _await(netlink: socket.socket, count: int) -> None:
    """Waits for so many acknowledgements; the first that is a refusal is raised."""
    while count > 0:
        for errno in _acknowledgements(netlink.recv(_RECEIVE)):
            if errno != 0:
                raise OSError(-errno, "the kernel rejected a neighbour entry")
            count -= 1


def _acknowledgements(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if kind == NLMSG_ERROR:
            yield _ERROR.unpack_from(data, at + _HEADER.size)[0]
        at += (length + 3) & ~3
