# SPDX-License-Identifier: BSD-3-Clause
"""The battery of all transports over `verbs`: three Soft-RoCE devices of one guest, one switch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import vmkit
from switchbench import guests
from switchbench.guests.machine import TEST

ROOT = Path(__file__).resolve().parents[2]
PORTS = 3
LIMIT_S = 120.0

pytestmark = vmkit.needs_guests

# Each interface has a table of routes of its own, and the kernel's table of local addresses comes
# after those: what one device sends to another of the same machine leaves by the cable.
OUT_BY_THE_CABLE = r"""
ip() { /usr/sbin/ip "$@"; }
for conf in /proc/sys/net/ipv4/conf/*; do echo 1 >$conf/accept_local; echo 0 >$conf/rp_filter; done
ip rule add pref 100 lookup local
ip rule del pref 0
for i in 0 1 2; do
    ip route add 10.9.0.0/24 dev eth$i table $((100 + i))
    ip rule add pref $((10 + i)) oif eth$i lookup $((100 + i))
    for j in 0 1 2; do
        [ $i = $j ] || ip neigh replace 10.9.0.$((j + 1)) lladdr 02:53:42:09:00:0$((j + 1)) \
            dev eth$i nud permanent
    done
done
"""

QUICK = ((), ("write",), ("read", "event"), ("ud",))
SLOW = (
    ("write", "plain"),
    ("uc", "write"),
    ("pairs",),
    ("cm",),
    ("poll",),
    ("event",),
    ("fresh",),
    ("shallow",),
    ("outline",),
)


def battery() -> Path:
    """The program, of whichever build there is."""
    found = [*ROOT.glob("build/tests/transport/battery_verbs")]
    found += ROOT.glob("build-test/gcc/tests/transport/battery_verbs")
    if not found:
        pytest.skip("battery_verbs is not built: this build has no verbs")
    return found[0]


def machine() -> guests.Machine:
    """A guest with three NICs on one switch."""
    nics = tuple(
        guests.Nic(f"eth{i}", f"02:53:42:09:00:0{i + 1}", (f"10.9.0.{i + 1}/24",), TEST)
        for i in range(PORTS)
    )
    alone = guests.machine(1)
    rdma = tuple(nic.name for nic in nics)
    return replace(alone, nics=(alone.nics[0], *nics), rdma=rdma, memory_mib=512, cpus=2)


@pytest.fixture(scope="module")
def guest() -> Iterator[guests.Guest]:
    with guests.boot([machine()], guests.Job(programs=(battery(),))) as rig:
        rig["node1"].output(["sh", "-c", OUT_BY_THE_CABLE])
        yield rig["node1"]


def run(guest: guests.Guest, words: tuple[str, ...]) -> None:
    devices = [f"rxe{i}" for i in range(PORTS)]
    done = guest.run(["battery_verbs", *devices, *words], LIMIT_S)
    print(done.stdout + done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ]" in done.stdout + done.stderr


@pytest.mark.parametrize("words", QUICK, ids=lambda words: "-".join(words) or "send")
def test_battery(guest: guests.Guest, words: tuple[str, ...]) -> None:
    run(guest, words)


@pytest.mark.slow
@pytest.mark.parametrize("words", SLOW, ids="-".join)
def test_battery_of_further_options(guest: guests.Guest, words: tuple[str, ...]) -> None:
    run(guest, words)
