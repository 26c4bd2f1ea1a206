# SPDX-License-Identifier: BSD-3-Clause
"""The battery of all transports over `verbs`: three Soft-RoCE devices of one guest, one switch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import guests
import vmkit
from guests.machine import TEST

BATTERY = vmkit.built("tests/transport/battery_verbs")
PORTS = 3
LIMIT_S = 120.0

pytestmark = vmkit.needs_guests

# Each interface has a table of routes of its own, and the kernel's table of local addresses comes
# after those: what one device sends to another of the same machine leaves by the cable.
ROUTES = (Path(__file__).parent / "data" / "routes.sh").read_text()


@pytest.fixture(scope="module")
def guest() -> Iterator[guests.Guest]:
    """Yield a guest with eth0 ... and rxe0 ..., as if each were a host of its own."""
    nics = tuple(
        guests.Nic(f"eth{i}", f"02:53:42:09:00:0{i + 1}", (f"10.9.0.{i + 1}/24",), TEST)
        for i in range(PORTS)
    )
    alone = guests.machine(1)
    rdma = tuple(nic.name for nic in nics)
    machine = replace(alone, nics=(alone.nics[0], *nics), rdma=rdma, memory_mib=512, cpus=2)
    with guests.boot([machine]) as rig:
        (only,) = rig.guests
        only.output(["sh", "-c", ROUTES, "-", *map(str, range(PORTS))])
        yield only


@pytest.mark.rows
def test_battery(guest: guests.Guest, words: list[str]) -> None:
    devices = [f"rxe{i}" for i in range(PORTS)]
    done = guest.run([str(BATTERY), *devices, *words], LIMIT_S)
    print(done.stdout + done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ]" in done.stdout + done.stderr
