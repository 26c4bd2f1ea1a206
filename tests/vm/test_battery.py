# SPDX-License-Identifier: BSD-3-Clause
"""The battery of all transports over `verbs`: three Soft-RoCE devices of one guest, one switch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import by_cable
import guests
import vmkit

PORTS = 3
LIMIT_S = 120.0

pytestmark = vmkit.needs_guests

QUICK = ((), ("operation=write",), ("completion=event",), ("service=ud",))
SLOW = (
    ("service=uc", "operation=write"),
    ("queue_pairs=3",),
    ("completion=poll",),
    ("reuse=0",),
    ("depth=2",),
    ("inline=0",),
)


@pytest.fixture(scope="module")
def guest() -> Iterator[guests.Guest]:
    battery = vmkit.built("tests/transport/battery_verbs")
    with guests.boot([by_cable.machine(PORTS)], guests.Job(programs=(battery,))) as rig:
        by_cable.route(rig["node1"])
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
