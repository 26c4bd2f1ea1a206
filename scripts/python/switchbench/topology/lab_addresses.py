# SPDX-License-Identifier: BSD-3-Clause
"""Names and addresses in a lab, computed from the lab's name and topology alone.

Values that differ by node are made from the node's position i (from 1, 16 bits):

| what | value | why |
| --- | --- | --- |
| eth0, the kernel's addresses | 198.18.i.i/16, 2001:2:0:1::i/64 | RFC 2544, RFC 5180: benchmarks |
| eth0, for raw frames | 198.19.i.i/16, 2001:2:0:2::i/64 | no kernel answers for these |
| eth0, MAC for raw frames | 02:53:42:00:i:i | locally administered, "SB" |
| ctl0 | 100.64.i.i/16 | RFC 6598: no clash with a site's addresses |

In a routed lab (devices.py) the kernel's address is on the loopback interface, with 32 bits, and
there is no IPv6.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from switchbench.topology.form import AttachedHost, Topology

# Folder in which iproute2 keeps the names of network namespaces.
NAMESPACES = Path("/run/netns")
IFACE = "eth0"
CONTROL_IFACE = "ctl0"
IPV4_PREFIX = 16
IPV6_PREFIX = 64

_KERNEL_IPV4 = IPv4Address("198.18.0.0")
_GUEST_IPV4 = IPv4Address("198.19.0.0")
_CONTROL_IPV4 = IPv4Address("100.64.0.0")
_KERNEL_IPV6 = IPv6Address("2001:2:0:1::")
_GUEST_IPV6 = IPv6Address("2001:2:0:2::")


@dataclass(frozen=True)
class LabNode:
    """Names, addresses and line rate of one lab node, as launchers need them.

    Attributes
    ----------
    index : int
        Position in the topology, from 1.
    iface : str
        Interface under test; in a routed lab, the interface to the node's switch.
    ipv4, ipv6 : str
        The kernel's addresses on this interface, without prefix length; `tcp` uses them.
    guest_mac, guest_ipv4, guest_ipv6 : str
        Addresses that no kernel owns, for raw frames.
    line_rate_bps : int
        Layer-1 rate of the node's link per direction; 0 where it is not shaped.
    module, port : str
        Switch module and switch port, as shown to users.
    """

    name: str
    index: int
    namespace: Path
    iface: str
    mac: str
    ipv4: str
    ipv6: str
    guest_mac: str
    guest_ipv4: str
    guest_ipv6: str
    control_iface: str
    control_ipv4: str
    line_rate_bps: int
    module: str
    port: str


def namespace_name(lab: str, node: str) -> str:
    """Return the name of a lab node's network namespace; the node `switch` is the switch."""
    return f"sb-{lab}-{node}"


def switch_name(lab: str) -> str:
    """Return the name of the namespace with a lab's switch modules, trunks and shapers."""
    return namespace_name(lab, "switch")


def namespace_names(lab: str, topology: Topology) -> list[str]:
    """Return the names of all namespaces of a lab, the switch's first."""
    return [switch_name(lab), *(namespace_name(lab, node.name) for node in topology.nodes)]


def switch_port(node: AttachedHost) -> str:
    """Return the interface in the switch's namespace to which the node is connected."""
    return f"p{node.index}"


def inbound_shaper(node: AttachedHost) -> str:
    """Return the IFB interface in the switch's namespace that shapes frames from the node."""
    return f"i{node.index}"


def control_port(node: AttachedHost) -> str:
    """Return the interface of the control bridge to which the node's `ctl0` is connected."""
    return f"c{node.index}"


def trunk_ends(position: int) -> tuple[str, str]:
    """Return the interfaces at a trunk's two ends, in the switch's namespace.

    `position` is the trunk's index in the topology.
    """
    return f"t{position}a", f"t{position}b"


def module_ports(topology: Topology, module: str) -> list[str]:
    """Return the interfaces in the switch's namespace that belong to one module."""
    ports = [switch_port(node) for node in topology.nodes if node.module == module]
    for position, trunk in enumerate(topology.trunks):
        ends = zip((trunk.a, trunk.b), trunk_ends(position), strict=True)
        ports += [end for of, end in ends if of == module]
    return ports


def lab_node(lab: str, node: AttachedHost) -> LabNode:
    """Return the names and addresses of one lab node."""
    i = node.index
    return LabNode(
        name=node.name,
        index=i,
        namespace=NAMESPACES / namespace_name(lab, node.name),
        iface=IFACE,
        mac=mac(i),
        ipv4=kernel_ipv4(i),
        ipv6=kernel_ipv6(i),
        guest_mac=_mac(0, i),
        guest_ipv4=str(_GUEST_IPV4 + i),
        guest_ipv6=str(_GUEST_IPV6 + i),
        control_iface=CONTROL_IFACE,
        control_ipv4=control_ipv4(i),
        line_rate_bps=node.rate_bps,
        module=node.module,
        port=node.port,
    )


def kernel_ipv4(index: int) -> str:
    """Return the kernel's IPv4 address on a node's `eth0`."""
    return str(_KERNEL_IPV4 + index)


def kernel_ipv6(index: int) -> str:
    """Return the kernel's IPv6 address on a node's `eth0`."""
    return str(_KERNEL_IPV6 + index)


def control_ipv4(index: int) -> str:
    """Return the IPv4 address of a node's `ctl0`."""
    return str(_CONTROL_IPV4 + index)


def mac(index: int) -> str:
    """Return the kernel's MAC address on a node's `eth0`."""
    return _mac(1, index)


def further_mac(index: int, port: int) -> str:
    """Return the kernel's MAC address on a node's further port number `port`, from 1."""
    return _mac(0x10 + port, index)


def control_mac(index: int) -> str:
    """Return the MAC address of a node's `ctl0`."""
    return _mac(2, index)


def _mac(kind: int, index: int) -> str:
    return f"02:53:42:{kind:02x}:{index >> 8:02x}:{index & 0xFF:02x}"
