# SPDX-License-Identifier: BSD-3-Clause
"""What `verbs` counts and carries between two guests: loss by service, sizes, memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import guests
import vmkit
from nodekit import Record
from verbskit import LONG, PORT, job, play

pytestmark = vmkit.needs_guests

HUGEPAGES = 48  # of 2 MiB


@pytest.fixture(scope="module")
def rig() -> Iterator[guests.Rig]:
    vmkit.built("tests/transport/battery_verbs")
    first, second = guests.machines(2)
    machines = [replace(first, memory_mib=512, hugepages=HUGEPAGES), second]
    with guests.boot(machines) as booted:
        yield booted


# --- services that may lose ---------------------------------------------------------------------

# What a source sends besides messages: the end mark, 40 times at most, and some ARP and ND.
OTHER_FRAMES = 60


@pytest.mark.parametrize("size", [8, 1000])
@pytest.mark.parametrize(
    "options",
    [
        {"service": "ud"},
        {"service": "uc", "operation": "write"},
    ],
    ids=["ud", "uc"],
)
def test_loss_is_counted(rig: guests.Rig, tmp_path: Path, options: Record, size: int) -> None:
    """One flow of messages that are one packet each: what the switch took is what is missing."""
    test = {
        "pattern": "chain",
        "verbs": {"depth": 16} | options,
        "message_size": str(size),
        "load": {8: "300kbit", 1000: "1Mbit"}[size],
        "window": "3s",
        "connectivity_check": False,
    }
    before = rig.counters()["node1/eth0"]["lost"]
    rig.lose("node1/eth0", 0.02)
    try:
        said = play(rig, job(tmp_path, [test], PORT))
    finally:
        rig.lose("node1/eth0", 0.0)
    taken = rig.counters()["node1/eth0"]["lost"] - before
    assert said.status == [0, 0]
    (source,) = said.of("flow", side="source")
    (end,) = said.of("flow", side="destination")
    lost = source["messages"] - end["messages"]
    assert source["messages"] > 300
    assert max(1, taken - OTHER_FRAMES) <= lost <= taken
    assert end["payload_bytes"] == size * end["messages"]
    assert (end["corrupted"], end["reordered"], end["duplicated"], end["late"]) == (0, 0, 0, 0)
    assert lost - 5 <= end["measures"]["missed_messages"] <= lost  # those after the last are not


def test_loss_is_repaired_and_counted(rig: guests.Rig, tmp_path: Path) -> None:
    """With `rc` the device repeats, and says so."""
    test = {
        "pattern": "pairs",
        "verbs": LONG,
        "load": "2Mbit",
        "window": "3s",
        "connectivity_check": False,
    }
    rig.lose("node1/eth0", 0.02)
    try:
        said = play(rig, job(tmp_path, [test], PORT))
    finally:
        rig.lose("node1/eth0", 0.0)
    assert said.status == [0, 0]
    for name in ("node1:e0", "node2:e0"):
        (source,) = said.of("flow", side="source", src=name)
        (end,) = said.of("flow", side="destination", src=name)
        # The last ones' acknowledgements may still be on their way when the drain is over.
        assert 0 < source["messages"] <= end["messages"] <= source["messages"] + LONG["depth"]
        assert (end["corrupted"], end["reordered"], end["duplicated"]) == (0, None, None)
    (sender,) = said.of("port", port="node1:e0")
    (receiver,) = said.of("port", port="node2:e0")
    assert sender["retransmitted"] > 0
    assert receiver["out_of_sequence"] > 0


# --- sizes and memory ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["1", "8MiB"])
def test_smallest_and_largest_message(rig: guests.Rig, tmp_path: Path, size: str) -> None:
    """8 MiB are the most that Soft-RoCE sends at once; a ring has two places for such."""
    test = {
        "pattern": "chain",
        "verbs": {"operation": "write", "timeout": 20, "depth": 4},
        "message_size": size,
        "window": "2s",
    }
    said = play(rig, job(tmp_path, [test], PORT))
    assert said.status == [0, 0]
    (source,) = said.of("flow", side="source", phase=0)
    (end,) = said.of("flow", side="destination", phase=0)
    assert end["messages"] == source["messages"] > 0
    assert not end["corrupted"]
    assert end["measures"]["slots"] == (8 if size == "1" else 2)


def test_a_message_that_no_device_may_send(rig: guests.Rig, tmp_path: Path) -> None:
    test = {"pattern": "pairs", "verbs": LONG, "message_size": "1GiB"}
    said = play(rig, job(tmp_path, [test], PORT))
    words = "a message of 1073741824 bytes; 8388608 are the most that this device sends at once"
    assert words in said.logs[0]
    assert all(said.status)


def test_more_memory_than_the_machine_gives(rig: guests.Rig, tmp_path: Path) -> None:
    test = {"pattern": "pairs", "verbs": LONG | {"queue_pairs": 16}, "message_size": "8MiB"}
    said = play(rig, job(tmp_path, [test], PORT))
    assert "MiB of buffers are wanted besides the" in said.text
    assert "a quarter of this machine's memory, are the most" in said.text
    assert "use smaller messages, less depth or fewer queue_pairs" in said.text
    assert all(said.status)


def test_hugepages_are_used_where_there_are_some(rig: guests.Rig, tmp_path: Path) -> None:
    """node1 has some, node2 has none."""
    test = {"pattern": "pairs", "verbs": LONG, "message_size": "64KiB"}
    said = play(rig, job(tmp_path, [test], PORT))
    assert said.status == [0, 0]
    (with_some,) = said.of("port", port="node1:e0", phase=0)
    (without,) = said.of("port", port="node2:e0", phase=0)
    assert with_some["variant"].endswith(", hugepages")
    assert "hugepages" not in without["variant"]
