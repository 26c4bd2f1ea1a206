# SPDX-License-Identifier: BSD-3-Clause
"""What large labs' nodes know of each other's MAC addresses from the start.

All namespaces of a machine share one table of IPv4 neighbours, of 1,024 entries at the most
(net.ipv4.neigh.default.gc_thresh3): in an all-to-all of 24 nodes each side of it needs 552 entries
under test and as many for control, and with 33 nodes the kernel begins to throw connections away
("neighbour table overflow"). Permanent entries do not count (net/core/neighbour.c). Small labs ask
by ARP, as hosts do.

`ip -batch` makes them: 64 nodes need 8,064, for which pyroute2 takes 6 to 21 s.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

from switchbench.labs.state import LabFailedError
from switchbench.topology.lab_addresses import LabNode, control_mac

MANY = 16
"""Nodes; with more, each knows all others."""


def introduce(node: LabNode, nodes: Iterable[LabNode], on_one_link: bool) -> None:
    """Tell the kernel of this namespace, the node's, where all others are.

    `on_one_link`: under test, too; behind routers only the control addresses are neighbours.
    """
    lines = []
    for other in (other for other in nodes if other is not node):
        ends = [(other.control_ipv4, control_mac(other.index), node.control_iface)]
        ends += [(other.ipv4, other.mac, node.iface)] if on_one_link else []
        lines += [
            f"neigh replace {ip} lladdr {mac} dev {dev} nud permanent" for ip, mac, dev in ends
        ]
    try:
        done = subprocess.run(
            ["ip", "-batch", "-"],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise LabFailedError(
            f"a lab of more than {MANY} nodes needs `ip` (iproute2): {error.strerror}"
        ) from None
    if done.returncode != 0:
        raise LabFailedError(f"the kernel rejected a neighbour entry: {done.stderr.strip()[:200]}")
