# SPDX-License-Identifier: BSD-3-Clause
"""Faults of `verbs`: one sentence names the device and the remedy, the other ranks print it, too,
and earlier results are kept. Two nodes are run by hand on guests that stay up."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import guests
import runs
import vmkit
from nodekit import NodeRuns, Record
from verbskit import LONG, PORT, SHORT, job, play, running

pytestmark = vmkit.needs_guests


@pytest.fixture(scope="module")
def rig() -> Iterator[guests.Rig]:
    with guests.boot(guests.machines(2)) as booted:
        yield booted


PAIRS = {"pattern": "pairs", "verbs": LONG}
REFUSED, STOPPED = 2, 3  # a node that can't do what is asked; one that ended before its end


def assert_refused(said: NodeRuns, words: str) -> None:
    """Check that node1 refuses with this sentence, and that node2 prints it, too."""
    assert said.status == [REFUSED, REFUSED]
    assert words in said.logs[0]
    assert f"node1 gave up: {words}" in said.logs[1]
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


# --- refused before any traffic -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "size", "words"),
    [
        ({"mtu": 4096}, "64KiB", "mtu 4096 is larger than the port's active MTU 1024; use at most "
         "that, or raise the MTU of the link (on RoCE that of eth0, and of the switch)"),
        ({"gid_index": 77}, "64KiB", "gid_index 77 is not in the port's GID table, which has 0, 1"),
        ({}, "16MiB", "8388608 are the most that this device"),
    ],
    ids=["mtu", "gid", "size"],
)  # fmt: skip
def test_what_the_device_has_not(
    rig: guests.Rig, tmp_path: Path, options: Record, size: str, words: str
) -> None:
    wrong = {"pattern": "pairs", "verbs": LONG | options, "message_size": size}
    said = play(rig, job(tmp_path, [PAIRS, wrong], PORT))
    assert words in said.text
    assert "rxe0/1" in said.text
    assert_all_ended(said)
    assert_first_test_kept(said)
    assert not said.of("flow", trial=1)


def test_only_one_port_has_a_small_mtu(rig: guests.Rig, tmp_path: Path) -> None:
    """The other rank names the reason, too."""
    rig["node1"].output(["ip", "link", "set", "eth0", "mtu", "600"])
    try:
        info = partial(rig["node1"].output, ["ibv_devinfo"])
        runs.wait_until(lambda: "512 (2)" in info(), "the port's MTU is 512", 5)
        said = play(rig, job(tmp_path, [{"pattern": "pairs", "verbs": LONG | {"mtu": 1024}}], PORT))
    finally:
        rig["node1"].output(["ip", "link", "set", "eth0", "mtu", "1500"])
    assert_refused(said, "node1:e0 (rxe0/1): mtu 1024 is larger than the port's active MTU 512")


def test_no_device_of_that_name(rig: guests.Rig, tmp_path: Path) -> None:
    said = play(rig, job(tmp_path, [PAIRS], {"rdma": "mlx5_9/1"}))
    assert "There is no RDMA port mlx5_9/1; `rdma link` lists them." in said.text
    assert_all_ended(said)


def test_no_device_at_all(rig: guests.Rig, tmp_path: Path) -> None:
    rig["node1"].output(["rdma", "link", "delete", "rxe0"])
    try:
        named = play(rig, job(tmp_path, [PAIRS], {"rdma": "rxe0/1", "iface": "eth0"}))
        found = play(rig, job(tmp_path, [PAIRS], PORT))
    finally:
        rig["node1"].output(["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "eth0"])
    assert_refused_at_once(named, "There is no RDMA port rxe0/1; `rdma link` lists them.")
    assert_refused_at_once(found, "port node1:e0: eth0 has no RDMA device")
    assert "rdma link add rxe0 type rxe netdev eth0" in found.logs[0]


def test_an_interface_without_a_device(rig: guests.Rig, tmp_path: Path) -> None:
    said = play(rig, job(tmp_path, [PAIRS], {"iface": "ctl0"}))
    assert "ctl0 has no RDMA device" in said.text
    assert "rdma link add rxe0 type rxe netdev ctl0" in said.text
    assert_all_ended(said)


def test_a_port_that_is_down(rig: guests.Rig, tmp_path: Path) -> None:
    rig["node1"].output(["ip", "link", "set", "eth0", "down"])
    try:
        said = play(rig, job(tmp_path, [PAIRS], PORT))
    finally:
        rig["node1"].output(["ip", "link", "set", "eth0", "up"])
        rig["node1"].run(["ip", "address", "add", "2001:2:0:1::1/64", "dev", "eth0", "nodad"])
    assert "port node1:e0 has had no link for 10 s: check its cable and its peer" in said.logs[0]
    assert "node1 gave up: port node1:e0" in said.logs[1]
    assert_all_ended(said)


def without(capability: str) -> str:
    """Shell words: what follows is run as root, but without one of its rights."""
    return f"/usr/bin/setpriv --bounding-set=-{capability} --inh-caps=-{capability}"


def test_a_user_who_may_lock_little(rig: guests.Rig, tmp_path: Path) -> None:
    may_not = f"ulimit -l 64; exec {without('ipc_lock')}"
    said = play(rig, job(tmp_path, [PAIRS], PORT), may_not)
    assert_refused(said, "node1:e0 (rxe0/1): can't register")
    assert "this user may lock 64 KiB; raise the limit (`ulimit -l unlimited`" in said.logs[0]


def test_a_user_who_may_lock_less_than_steps_need(rig: guests.Rig, tmp_path: Path) -> None:
    """What a port needs besides fits; each rank's own memory does not."""
    may_not = f"ulimit -l 32768; exec {without('ipc_lock')}"
    steps = {"pattern": "bcast", "message_size": "32MiB", "verbs": SHORT}
    said = play(rig, job(tmp_path, [steps], PORT), may_not)
    assert_refused(said, "node1:e0 (rxe0/1): can't register 32772 KiB")
    assert "this user may lock 32768 KiB; raise the limit (`ulimit -l unlimited`" in said.logs[0]


def test_a_user_who_may_not_open_the_device(rig: guests.Rig, tmp_path: Path) -> None:
    device = "/dev/infiniband/uverbs0"
    rig["node1"].output(["chmod", "0", device])
    try:
        said = play(rig, job(tmp_path, [PAIRS], PORT), f"exec {without('dac_override')}")
    finally:
        rig["node1"].output(["chmod", "666", device])
    assert_refused_at_once(said, "node1:e0 (rxe0/1): can't open the RDMA device")
    assert "this user may not read and write /dev/infiniband/uverbs*" in said.logs[0]


# --- a device that has less ---------------------------------------------------------------------


def test_an_operation_that_the_device_lacks(rig: guests.Rig, tmp_path: Path) -> None:
    """Soft-RoCE has them all; a library between says no to what a lesser device refuses."""
    lesser = {"pattern": "pairs", "verbs": {"depth": 16, "service": "uc", "operation": "write"}}
    between = vmkit.built("tests/transport/lesser_device.so")
    said = play(rig, job(tmp_path, [PAIRS, lesser], PORT), f"LD_PRELOAD={between}")
    why = "the device has no UC queue pairs; use another service"
    assert_refused(said, f"node1:e0 (rxe0/1): {why}")
    assert_first_test_kept(said)


# --- in the middle of a phase -------------------------------------------------------------------


def long_phase(options: Record, window: str = "6s") -> list[Record]:
    """Return a job of a short phase and a long one, in which the fault comes."""
    return [
        {"pattern": "pairs", "verbs": LONG, "load": "100kbit"},
        {"pattern": "pairs", "verbs": options, "load": "4Mbit", "window": window},
    ]


def assert_resumed(said: NodeRuns) -> None:
    """All that was sent has arrived, later; nothing is damaged."""
    assert said.status == [0, 0]
    for name in ("node1:e0", "node2:e0"):
        (source,) = said.of("flow", trial=1, side="source", src=name, phase=0)
        (end,) = said.of("flow", trial=1, side="destination", src=name, phase=0)
        assert end["messages"] == source["messages"]
        assert end["payload_bytes"] > 0.6 * source["intended"]
        assert not end["corrupted"]
    assert {record["state"] for record in said.of("phase", trial=1, phase=0)} == {"complete"}


def test_a_cable_that_is_cut_for_a_second(rig: guests.Rig, tmp_path: Path) -> None:
    """Somewhere behind the port: its carrier stays, packets are lost and sent again."""
    cut = running(rig, lambda: rig.cut("node1/eth0", 1.0))
    said = play(rig, job(tmp_path, long_phase(LONG), PORT), meanwhile=cut)
    assert_resumed(said)
    again = [record["retransmitted"] for record in said.of("port", trial=1, phase=0)]
    assert sum(again) > 0
    assert not said.of("event", kind="link-down")


def test_a_cable_that_is_pulled_for_a_second(rig: guests.Rig, tmp_path: Path) -> None:
    """At the port: it sees its carrier go and come."""

    def pull() -> None:
        rig["node1"].set_link("eth0", up=False)
        time.sleep(1.0)
        rig["node1"].set_link("eth0", up=True)

    said = play(rig, job(tmp_path, long_phase(LONG), PORT), meanwhile=running(rig, pull))
    assert_resumed(said)
    assert len(said.of("event", kind="link-down", port="node1:e0")) == 1
    (back,) = said.of("event", kind="link-up", port="node1:e0")
    assert "it was down for" in back["text"]
    assert sum(record["retransmitted"] for record in said.of("port", trial=1, phase=0)) > 0


NO_ANSWER = "it does not answer, and all retries are used up: its node was killed, its port is down"


def assert_given_up(said: NodeRuns, trial: int = 1) -> None:
    """A queue pair has, within its retry limit; what was measured until then is there."""
    assert NO_ANSWER in said.text
    assert "rxe0/1: sending to rank" in said.text
    assert said.of("event", kind="lane-error", trial=trial)
    assert said.of("flow", trial=trial, side="source")
    assert "stopped" in {record["state"] for record in said.of("phase", trial=trial)}
    assert_first_test_kept(said)


def test_a_cable_that_is_cut_for_ten_seconds(rig: guests.Rig, tmp_path: Path) -> None:
    cut = running(rig, lambda: rig.cut("node1/eth0", 10.0))
    said = play(rig, job(tmp_path, long_phase(SHORT), PORT), meanwhile=cut)
    time.sleep(10)
    assert_all_ended(said)
    assert_given_up(said)


def test_a_cable_that_is_pulled_for_eleven_seconds(rig: guests.Rig, tmp_path: Path) -> None:
    """Longer than a link is waited for; here before any retry limit."""

    def pull() -> None:
        rig["node1"].set_link("eth0", up=False)

    patient = {"timeout": 20, "depth": 16}  # 7 x 4.3 s
    try:
        said = play(
            rig, job(tmp_path, long_phase(patient, "15s"), PORT), meanwhile=running(rig, pull)
        )
    finally:
        rig["node1"].set_link("eth0", up=True)
    assert_all_ended(said)
    assert "port node1:e0 has had no link for 10 s: check its cable and its peer" in said.logs[0]
    assert "node1 gave up: port node1:e0 has had no link for 10 s" in said.logs[1]
    assert len(said.of("event", kind="link-down", port="node1:e0")) == 1
    assert said.of("flow", trial=1, side="destination")
    assert_first_test_kept(said)


def test_a_peer_that_is_killed(rig: guests.Rig, tmp_path: Path) -> None:
    killed_s = 0.0

    def kill() -> None:
        nonlocal killed_s
        rig["node2"].output(["sh", "-c", "kill -9 $(pidof switchbench-node)"])
        killed_s = time.monotonic()

    said = play(rig, job(tmp_path, long_phase(SHORT, "15s"), PORT), meanwhile=running(rig, kill))
    assert time.monotonic() - killed_s < 45
    assert said.status == [STOPPED, 128 + signal.SIGKILL]
    assert "rxe0/1: sending to rank 1 (::ffff:198.18.0.2, queue pair" in said.logs[0]
    assert NO_ANSWER in said.logs[0]
    assert_given_up(said)
    (sent,) = said.of("flow", trial=1, side="source", phase=0)
    assert sent["payload_bytes"] > 0
