# SPDX-License-Identifier: BSD-3-Clause
"""`verbs` between two guests that stay up, whose nodes are run by hand: loss by service, sizes and
memory; and faults, each with one sentence that names the device and the remedy, which the other
rank prints, too, while earlier results are kept."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import guests
import vmkit
from nodekit import NodeRuns, Record
from vmkit import play

pytestmark = vmkit.needs_guests

HUGEPAGES = 48  # of 2 MiB
# Retries end within 7 x 4 x 4.096 us x 2^14, two seconds: devices may wait four times the timeout.
SHORT = {"timeout": 14, "depth": 16}
LONG = {"timeout": 18, "depth": 16}
PAIRS = {"pattern": "pairs", "verbs": LONG}
REFUSED, STOPPED = 2, 3  # a node that can't do what is asked; one that ended before its end


@pytest.fixture(scope="module")
def rig() -> Iterator[guests.Rig]:
    """Yield two guests, of which the first has hugepages."""
    vmkit.built("tests/transport/battery_verbs")
    first, second = vmkit.machines(2)
    with guests.boot([replace(first, hugepages=HUGEPAGES), second]) as booted:
        yield booted


def job(directory: Path, *tests: Record, **port: str) -> str:
    """Return the documents for both nodes; `port`: what names it, if not `eth0`."""
    place = vmkit.site(None, **(port or {"iface": "eth0"}))
    return vmkit.job(directory, place, list(tests), transport="verbs", message_size="64KiB")


def during_load(rig: guests.Rig, then: Callable[[], None]) -> Callable[[], None]:
    """Return what does it once traffic has flowed for a while."""

    def wait() -> None:
        vmkit.wait_for_load(rig)
        then()

    return wait


# --- what is counted and carried ----------------------------------------------------------------

# What a source sends besides messages: the end mark, 40 times at most, and some ARP and ND.
OTHER_FRAMES = 60


@pytest.mark.parametrize(
    "options", [{"service": "ud"}, {"service": "uc", "operation": "write"}], ids=["ud", "uc"]
)
def test_loss_is_counted(rig: guests.Rig, tmp_path: Path, options: Record) -> None:
    """One flow of messages that are one packet each: what the switch took is what is missing."""
    size = 1000
    test = {
        "pattern": "chain",
        "verbs": {"depth": 16} | options,
        "message_size": str(size),
        "load": "1Mbit",
        "window": "3s",
        "connectivity_check": False,
    }
    before = rig.ports["node1/eth0"].lost
    rig.ports["node1/eth0"].loss = 0.02
    try:
        said = play(rig, job(tmp_path, test))
    finally:
        rig.ports["node1/eth0"].loss = 0.0
    taken = rig.ports["node1/eth0"].lost - before
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
    test = PAIRS | {"load": "2Mbit", "window": "3s", "connectivity_check": False}
    rig.ports["node1/eth0"].loss = 0.02
    try:
        said = play(rig, job(tmp_path, test))
    finally:
        rig.ports["node1/eth0"].loss = 0.0
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


@pytest.mark.parametrize("size", ["1", "8MiB"])
def test_smallest_and_largest_message(rig: guests.Rig, tmp_path: Path, size: str) -> None:
    """8 MiB are the most that Soft-RoCE sends at once; a ring has two places for such."""
    options = {"operation": "write", "timeout": 20, "depth": 4}
    test = {"pattern": "chain", "verbs": options, "message_size": size, "window": "2s"}
    said = play(rig, job(tmp_path, test))
    assert said.status == [0, 0]
    (source,) = said.of("flow", side="source", phase=0)
    (end,) = said.of("flow", side="destination", phase=0)
    assert end["messages"] == source["messages"] > 0
    assert not end["corrupted"]
    assert end["measures"]["slots"] == (8 if size == "1" else 2)


def test_more_memory_than_the_machine_gives(rig: guests.Rig, tmp_path: Path) -> None:
    test = {"pattern": "pairs", "verbs": LONG | {"queue_pairs": 16}, "message_size": "8MiB"}
    said = play(rig, job(tmp_path, test))
    assert "MiB of buffers are needed besides the" in said.text
    assert "a quarter of this machine's memory, are allowed" in said.text
    assert "use smaller messages, less depth or fewer queue_pairs" in said.text
    assert all(said.status)


def test_hugepages_are_used_where_there_are_some(rig: guests.Rig, tmp_path: Path) -> None:
    """node1 has some, node2 has none."""
    said = play(rig, job(tmp_path, PAIRS))
    assert said.status == [0, 0]
    (with_some,) = said.of("port", port="node1:e0", phase=0)
    (without,) = said.of("port", port="node2:e0", phase=0)
    assert with_some["variant"].endswith(", hugepages")
    assert "hugepages" not in without["variant"]


# --- refused before any traffic -----------------------------------------------------------------


def assert_refused(said: NodeRuns, words: str) -> None:
    """Check that node1 refuses with this sentence, and that node2 prints it, too."""
    assert said.status == [REFUSED, REFUSED]
    assert words in said.logs[0]
    assert f"node1 aborted the run: {words}" in said.logs[1]
    assert_all_ended(said)


def assert_refused_at_once(said: NodeRuns, words: str) -> None:
    """Check that a node refuses before it has joined the run."""
    assert said.status == [REFUSED, STOPPED]
    assert words in said.logs[0]
    assert "node1 did not reach barrier 0" in said.logs[1]


def assert_first_test_kept(said: NodeRuns) -> None:
    """What was measured before is there, both sides of both flows."""
    for side in ("source", "destination"):
        kept = said.of("flow", trial=0, side=side)
        assert len(kept) == 2
        assert all(flow["payload_bytes"] > 0 for flow in kept)


def assert_all_ended(said: NodeRuns) -> None:
    """With an error each, and of all that was measured nothing is damaged."""
    assert set(said.status) <= {REFUSED, STOPPED}
    for log in said.logs:
        assert "error:" in log
    assert not any(flow["corrupted"] for flow in said.of("flow", side="destination"))


def test_what_the_device_has_not(rig: guests.Rig, tmp_path: Path) -> None:
    said = play(rig, job(tmp_path, PAIRS, PAIRS | {"message_size": "16MiB"}))
    assert "this device sends at most 8388608 bytes at once" in said.text
    assert "rxe0/1" in said.text
    assert_all_ended(said)
    assert_first_test_kept(said)
    assert not said.of("flow", trial=1)


def test_no_device_at_all(rig: guests.Rig, tmp_path: Path) -> None:
    rig["node1"].output(["rdma", "link", "delete", "rxe0"])
    try:
        named = play(rig, job(tmp_path, PAIRS, rdma="rxe0/1", iface="eth0"))
        found = play(rig, job(tmp_path, PAIRS))
    finally:
        rig["node1"].output(["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "eth0"])
    assert_refused_at_once(named, "There is no RDMA port rxe0/1; `rdma link` lists them.")
    assert_refused_at_once(found, "port node1:e0: eth0 has no RDMA device")
    assert "rdma link add rxe0 type rxe netdev eth0" in found.logs[0]


def without(capability: str) -> str:
    """Shell words: what follows is run as root, but without one of its rights."""
    return f"exec /usr/bin/setpriv --bounding-set=-{capability} --inh-caps=-{capability}"


def test_a_user_who_may_lock_little(rig: guests.Rig, tmp_path: Path) -> None:
    said = play(rig, job(tmp_path, PAIRS), f"ulimit -l 64; {without('ipc_lock')}")
    assert_refused(said, "node1:e0 (rxe0/1): can't register")
    assert "this user may lock 64 KiB; raise the limit (`ulimit -l unlimited`" in said.logs[0]


def test_a_user_who_may_not_open_the_device(rig: guests.Rig, tmp_path: Path) -> None:
    device = "/dev/infiniband/uverbs0"
    rig["node1"].output(["chmod", "0", device])
    try:
        said = play(rig, job(tmp_path, PAIRS), without("dac_override"))
    finally:
        rig["node1"].output(["chmod", "666", device])
    assert_refused_at_once(said, "node1:e0 (rxe0/1): can't open the RDMA device")
    assert "this user may not read and write /dev/infiniband/uverbs*" in said.logs[0]


# --- in the middle of a phase -------------------------------------------------------------------

NO_ANSWER = "the partner does not answer, and all retries are used up: its node was killed"


def long_phase(directory: Path, options: Record, window: str = "6s") -> str:
    """Return a job of a short phase and a long one, in which the fault comes."""
    short = PAIRS | {"load": "100kbit"}
    return job(directory, short, PAIRS | {"verbs": options, "load": "4Mbit", "window": window})


def test_a_cable_that_is_pulled_for_a_second(rig: guests.Rig, tmp_path: Path) -> None:
    """The port sees its carrier go and come; all that was sent arrives, later and undamaged."""

    def pull() -> None:
        rig["node1"].set_link("eth0", up=False)
        time.sleep(1.0)
        rig["node1"].set_link("eth0", up=True)

    said = play(rig, long_phase(tmp_path, LONG), meanwhile=during_load(rig, pull))
    assert said.status == [0, 0]
    for name in ("node1:e0", "node2:e0"):
        (source,) = said.of("flow", trial=1, side="source", src=name, phase=0)
        (end,) = said.of("flow", trial=1, side="destination", src=name, phase=0)
        assert end["messages"] == source["messages"]
        assert end["payload_bytes"] > 0.6 * source["intended"]
        assert not end["corrupted"]
    assert {record["state"] for record in said.of("phase", trial=1, phase=0)} == {"complete"}
    assert len(said.of("event", kind="link-down", port="node1:e0")) == 1
    (back,) = said.of("event", kind="link-up", port="node1:e0")
    assert "the link was down for" in back["text"]
    assert sum(record["retransmitted"] for record in said.of("port", trial=1, phase=0)) > 0


def test_a_cable_that_is_pulled_for_eleven_seconds(rig: guests.Rig, tmp_path: Path) -> None:
    """Longer than a link is waited for; here before any retry limit."""
    patient = {"timeout": 20, "depth": 16}  # 7 x 4.3 s
    pull = during_load(rig, lambda: rig["node1"].set_link("eth0", up=False))
    try:
        said = play(rig, long_phase(tmp_path, patient, "15s"), meanwhile=pull)
    finally:
        rig["node1"].set_link("eth0", up=True)
    assert_all_ended(said)
    assert "port node1:e0 has had no link for 10 s: check its cable and its peer" in said.logs[0]
    assert "node1 aborted the run: port node1:e0 has had no link for 10 s" in said.logs[1]
    assert len(said.of("event", kind="link-down", port="node1:e0")) == 1
    assert said.of("flow", trial=1, side="destination")
    assert_first_test_kept(said)


def test_a_peer_that_is_killed(rig: guests.Rig, tmp_path: Path) -> None:
    """A queue pair gives up within its retry limit; what was measured until then is there."""
    killed_s = 0.0

    def kill() -> None:
        nonlocal killed_s
        rig["node2"].output(["sh", "-c", "kill -9 $(pidof switchbench-node)"])
        killed_s = time.monotonic()

    said = play(rig, long_phase(tmp_path, SHORT, "15s"), meanwhile=during_load(rig, kill))
    assert time.monotonic() - killed_s < 45
    assert said.status == [STOPPED, 128 + signal.SIGKILL]
    assert "rxe0/1: sending to rank 1 (::ffff:198.18.0.2, queue pair" in said.logs[0]
    assert NO_ANSWER in said.logs[0]
    assert said.of("event", kind="lane-error", trial=1)
    (sent,) = said.of("flow", trial=1, side="source", phase=0)
    assert sent["payload_bytes"] > 0
    assert "stopped" in {record["state"] for record in said.of("phase", trial=1)}
    assert_first_test_kept(said)
