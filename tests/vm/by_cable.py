# SPDX-License-Identifier: BSD-3-Clause
"""A guest with several NICs on one switch, whose traffic from one to another leaves by the cable,
as if each were a host of its own. For programs that hold both ends."""

from __future__ import annotations

from dataclasses import replace

import guests
from guests.machine import TEST

# Each interface has a table of routes of its own, and the kernel's table of local addresses comes
# after those: what one device sends to another of the same machine leaves by the cable.
_ROUTES = r"""
ip() { /usr/sbin/ip "$@"; }
for conf in /proc/sys/net/ipv4/conf/*; do echo 1 >$conf/accept_local; echo 0 >$conf/rp_filter; done
ip rule add pref 100 lookup local
ip rule del pref 0
for i; do
    ip route add 10.9.0.0/24 dev eth$i table $((100 + i))
    ip rule add pref $((10 + i)) oif eth$i lookup $((100 + i))
    for j; do
        [ $i = $j ] || ip neigh replace 10.9.0.$((j + 1)) lladdr 02:53:42:09:00:0$((j + 1)) \
            dev eth$i nud permanent
    done
done
"""


def machine(ports: int, memory_mib: int = 512) -> guests.Machine:
    """`node1` with eth0 ... and rxe0 ..."""
    nics = tuple(
        guests.Nic(f"eth{i}", f"02:53:42:09:00:0{i + 1}", (f"10.9.0.{i + 1}/24",), TEST)
        for i in range(ports)
    )
    alone = guests.machine(1)
    rdma = tuple(nic.name for nic in nics)
    return replace(alone, nics=(alone.nics[0], *nics), rdma=rdma, memory_mib=memory_mib, cpus=2)


def route(guest: guests.Guest) -> None:
    """Sets its routes, once it is up."""
    ports = [str(number) for number in range(len(guest.machine.rdma))]
    guest.output(["sh", "-c", _ROUTES, "-", *ports])
