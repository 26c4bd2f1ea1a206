# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts, a job file and two people: nodes started one by one, without a controller."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import labkit
import runs
from switchbench import labs
from switchbench.base.programs import find_engine

pytestmark = [labkit.needs_lab, pytest.mark.usefixtures("nothing_left")]

SITE = Path(__file__).resolve().parents[2] / "conf" / "by-hand.yaml"
HEARTBEAT_TIMEOUT_S = 0.5  # a site's
STOP_LIMIT_S = 0.25  # beyond it, on a busy machine
PATIENCE_S = 1.5
SLOWNESS_S = 0.8  # of the second person: longer than the heartbeat_timeout, shorter than patience


@dataclass
class Hand:
    """A node started by hand at a host."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path
    log: Path

    def records(self) -> list[runs.Record]:
        """Return what it has written so far, whole lines."""
        lines = self.output.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def said(self, kind: str) -> list[runs.Record]:
        """Its records of one type."""
        return [record for record in self.records() if record["type"] == kind]

    def under_load(self) -> bool:
        """Return whether it says that it is in a phase's window."""
        assert self.process.poll() is None, self.log.read_text()
        return any(record["step"] == "window" for record in self.said("progress"))

    def end(self, limit_s: float = 15) -> int:
        """Its exit status."""
        return self.process.wait(timeout=limit_s)


@dataclass
class Room:
    """Where the nodes are started; whatever is left of them is killed at its end."""

    lab: labs.Lab
    directory: Path
    stack: ExitStack

    def job(self, transport: str, *settings: str, name: str = "job.ndjson") -> Path:
        """Return the job of the example for two hosts, with this lab's addresses and interfaces."""
        path = self.directory / name
        words = [
            *(f"site.control.addresses.{node.name}={node.control_ipv4}" for node in self.lab.nodes),
            f"site.control.barrier_timeout={PATIENCE_S * 1000:.0f}ms",
            "site.ports.e0.iface=eth0",
            "site.ports.e0.line_rate=20Mbit",
            f"transport={transport}",
            *(["frame_size=1518"] if transport == "dpdk" else []),
            "load=80%",
            "warmup=100ms",
            "window=800ms",
            "repeat=1",
            *settings,
        ]
        sets = [word for setting in words for word in ("--set", setting)]
        done = runs.execute("plan", str(SITE), *sets, "--job", str(path))
        assert done.returncode == 0, done.stderr
        return path

    def start(self, host: str, job: Path) -> Hand:
        """Return what a person types at a host."""
        output, log = (self.directory / f"{host}.{kind}" for kind in ("ndjson", "log"))
        command = [str(find_engine()), str(job), "--name", host]
        with output.open("wb") as stdout, log.open("wb") as stderr:
            process = self.lab.popen(
                host, command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return Hand(host, process, output, log)

    def changed(self, job: Path, change: Callable[[list[runs.Record]], None]) -> Path:
        """Write a job that the command would not have written."""
        documents = [json.loads(line) for line in job.read_text().splitlines()]
        change(documents)
        path = self.directory / "changed.yaml"
        path.touch(0o600)
        path.write_text("".join(json.dumps(document) + "\n" for document in documents))
        return path


@pytest.fixture
def room(lab: labs.Lab, tmp_path: Path) -> Iterator[Room]:
    with ExitStack() as stack:
        yield Room(lab, tmp_path, stack)


@pytest.mark.parametrize("transport", ["dpdk", "tcp"])
def test_two_people_measure_a_cable(transport: str, room: Room) -> None:
    job = room.job(transport)
    bob = room.start("bob", job)
    time.sleep(SLOWNESS_S)
    hands = [room.start("alice", job), bob]
    assert [hand.end() for hand in hands] == [0, 0], [hand.log.read_text() for hand in hands]
    flows: dict[tuple[str, str], dict[str, runs.Record]] = {}
    for record in (record for hand in hands for record in hand.said("flow")):
        flows.setdefault((record["src"], record["dst"]), {})[record["side"]] = record
    assert set(flows) == {("alice:e0", "bob:e0"), ("bob:e0", "alice:e0")}
    unit = "frames" if transport == "dpdk" else "payload_bytes"
    for sides in flows.values():
        source, destination = sides["source"], sides["destination"]
        assert source["node"] != destination["node"]
        assert 0 < destination[unit] == source[unit]
        assert destination["corrupted"] == 0
        assert 0.7 * 20e6 < runs.payload_bps(destination) < 0.85 * 20e6
    for hand in hands:
        (bye,) = hand.said("bye")
        assert (bye["status"], bye["reason"]) == (0, "quit")
        (phase,) = [record for record in hand.said("phase") if record["phase"] >= 0]
        assert phase["state"] == "complete"


def test_who_does_not_come_is_named(room: Room) -> None:
    hand = room.start("alice", room.job("tcp"))
    began_s = time.monotonic()
    assert hand.end() == 3
    assert time.monotonic() - began_s < PATIENCE_S + 2
    (missing,) = hand.said("missing")
    assert missing["missing_node"] == "bob"
    sentence = f"bob did not reach barrier 0 within {PATIENCE_S * 1000:.0f} ms; never heard"
    assert missing["text"] == sentence
    assert hand.log.read_text().count(sentence) == 1
    assert [bye["status"] for bye in hand.said("bye")] == [3]


def test_dpdk_never_shares_a_port(room: Room) -> None:
    """The node refuses a job that the command would not have written."""

    def share(documents: list[runs.Record]) -> None:
        (port,) = documents[0]["job"]["nodes"][0]["ports"]
        port["shared"] = True

    hand = room.start("alice", room.changed(room.job("dpdk"), share))
    assert hand.end() == 2
    assert "can't be `shared: true`: dpdk takes all frames of a port" in hand.log.read_text()


def test_steps_that_need_more_memory_than_there_is(room: Room) -> None:
    """A panel of a TiB is refused before any of it is taken."""

    def enlarge(documents: list[runs.Record]) -> None:
        (trial,) = (document["trial"] for document in documents if "trial" in document)
        trial.pop("load")
        pattern = {"name": "hpl", "matrix": 1 << 22, "block": 1 << 16}
        trial |= {"pattern": pattern, "traffic": "schedule", "schedule": {"count": 1}}

    path = room.changed(room.job("tcp"), enlarge)
    hands = [room.start(name, path) for name in ("alice", "bob")]
    assert [hand.end() for hand in hands] == [2, 2], [hand.log.read_text() for hand in hands]
    said = "\n".join(hand.log.read_text() for hand in hands)
    assert "MiB of memory, and" in said
    assert "use smaller messages or fewer ranks" in said


def test_another_run_s_key_is_nobody(room: Room) -> None:
    jobs = [room.job("tcp"), room.job("tcp", name="other.yaml")]
    alice, bob = room.start("alice", jobs[0]), room.start("bob", jobs[1])
    assert alice.end() == bob.end() == 3
    assert [record["missing_node"] for record in alice.said("missing")] == ["bob"]
    assert [record["missing_node"] for record in bob.said("missing")] == ["alice"]
    assert alice.said("bye")[0]["dropped_datagrams"] > 0


def test_without_node_0_the_other_stops(room: Room) -> None:
    job = room.job("dpdk", "window=5s")
    alice, bob = (room.start(name, job) for name in ("alice", "bob"))
    runs.wait_until(bob.under_load, "bob is under load", 15)
    trace = labkit.Trace(room.lab, alice.process.kill, HEARTBEAT_TIMEOUT_S + 1.0)
    assert trace.frames_after(HEARTBEAT_TIMEOUT_S + STOP_LIMIT_S) == 0
    assert bob.end(5) == 3
    (bye,) = bob.said("bye")
    assert bye["reason"] == "heartbeat-timeout"
    assert "no heartbeat for 500 ms: stopping" in bob.log.read_text()
    sides = {(flow["side"], flow["frames"] or flow["payload_bytes"]) for flow in bob.said("flow")}
    assert {side for side, count in sides if count > 0} == {"source", "destination"}
    assert {phase["state"] for phase in bob.said("phase") if phase["phase"] >= 0} == {"stopped"}


def test_ctrl_c_at_one_host_ends_both(room: Room) -> None:
    job = room.job("dpdk", "window=5s")
    alice, bob = (room.start(name, job) for name in ("alice", "bob"))
    runs.wait_until(alice.under_load, "both are under load", 15)
    trace = labkit.Trace(room.lab, partial(bob.process.send_signal, signal.SIGINT))
    assert trace.frames_after(STOP_LIMIT_S) == 0
    assert [alice.end(5), bob.end(5)] == [3, 3]
    assert [bye["reason"] for bye in bob.said("bye")] == ["signal"]
    (missing,) = alice.said("missing")
    assert missing["gave_up"]
    assert missing["text"] == "bob gave up: signal"
    assert alice.said("flow")
    assert bob.said("flow")


def test_a_trial_that_only_one_refuses_is_impossible_for_both(room: Room) -> None:
    """The other learns of it by the word of the first alone."""

    def misname(documents: list[runs.Record]) -> None:
        (trial,) = (document["trial"] for document in documents if "trial" in document)
        trial["pattern"]["name"] = "nonsense"

    good = room.job("tcp")
    bad = room.changed(good, misname)
    hands = {"alice": room.start("alice", good), "bob": room.start("bob", bad)}
    assert [hand.end() for hand in hands.values()] == [2, 2]
    (missing,) = hands["alice"].said("missing")
    assert missing["gave_up"]
    assert missing["status"] == 2
    assert missing["text"].startswith("bob gave up: ")
    assert "nonsense" in missing["text"]
