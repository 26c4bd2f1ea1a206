# SPDX-License-Identifier: BSD-3-Clause
"""switchbench-node itself: its options, and how a run of two nodes without ports ends.

Nodes without ports send no traffic, and yet they join, meet in barriers and leave together.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from configs import needs_engine
from switchbench.base.programs import find_engine
from switchbench.plan.engine import PlanRefused, plan_phases, plan_size

pytestmark = needs_engine

TIMEOUT_S = 30
HEARTBEAT_TIMEOUT_MS = 500


def node(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a node to its end."""
    return subprocess.run(
        [find_engine(), *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def free_ports() -> tuple[int, int]:
    """Two UDP ports of the loopback that nobody has."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second,
    ):
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def documents(controlled: bool = False) -> str:
    """`job` and `peers` of node1 and node2."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports()]
    job = {
        "protocol": 2,
        "run": "test-node",
        "controlled": controlled,
        "heartbeat_timeout_ms": HEARTBEAT_TIMEOUT_MS,
        "barrier_timeout_ms": 1000,
        "nodes": [
            {"name": f"node{i}", "control": {"address": address}, "ports": []}
            for i, address in enumerate(addresses, 1)
        ],
    }
    peers = {"addresses": addresses, "key": secrets.token_hex(32)}
    return "".join(
        json.dumps(document) + "\n...\n" for document in ({"job": job}, {"peers": peers})
    )


class Pair:
    """Two nodes that read what the test says."""

    def __init__(self) -> None:
        """Starts them."""
        self.nodes = [
            subprocess.Popen(
                [find_engine(), "--name", name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for name in ("node1", "node2")
        ]

    def tell(self, text: str) -> None:
        """Writes to both."""
        for one in self.nodes:
            assert one.stdin is not None
            one.stdin.write(text)
            one.stdin.flush()

    def await_ready(self) -> None:
        """Until both have passed the first barrier."""
        for one in self.nodes:
            assert one.stdout is not None
            while json.loads(one.stdout.readline())["type"] != "ready":
                pass

    def ends(self) -> list[tuple[int, str]]:
        """Ends the input of those whose input is open: status and reason of both."""
        return [self.end(one) for one in self.nodes]

    @staticmethod
    def end(one: subprocess.Popen[str]) -> tuple[int, str]:
        """The same for one."""
        out, _log = one.communicate(timeout=TIMEOUT_S)
        bye = json.loads(out.splitlines()[-1])
        assert bye["type"] == "bye"
        assert bye["status"] == one.returncode
        return one.returncode, bye["reason"]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two running nodes; none is left afterwards."""
    two = Pair()
    yield two
    for one in two.nodes:
        if one.poll() is None:
            one.kill()
            one.communicate()


# --- options ---------------------------------------------------------------------------------


def test_version_and_help() -> None:
    version = node("--version")
    assert (version.returncode, version.stdout[:17]) == (0, "switchbench-node ")
    shown = node("--help")
    assert shown.returncode == 0
    for option in ("--name", "--netns", "--connection", "--plan"):
        assert option in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--patern"], "see switchbench-node --help"),
        (["--name"], "see switchbench-node --help"),
        (["one", "two"], "one job file at most, not 2"),
        (["/nowhere/job.yaml"], "can't read /nowhere/job.yaml: No such file"),
        (["--netns", "no-such-netns"], "no-such-netns"),
    ],
)
def test_what_is_refused(arguments: list[str], sentence: str) -> None:
    refused = node(*arguments, text="")
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert refused.stdout == ""


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(documents())
    job.chmod(0o640)
    refused = node(str(job), "--name", "node1")
    assert refused.returncode == 2
    assert f"chmod 600 {job}" in refused.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("jib: 1\n...\n", "jib"),
        ("peers: {addresses: [a]}\n...\n", "the first document must be a job"),
        (documents().replace("node1", "node3"), "no node is called node1"),
        (documents().replace('"protocol": 2', '"protocol": 9'), "job.protocol is 9"),
    ],
)
def test_documents_that_are_refused(text: str, sentence: str) -> None:
    refused = node("--name", "node1", text=text)
    records = [json.loads(line) for line in refused.stdout.splitlines()]
    assert refused.returncode == 2
    assert [record["type"] for record in records] == ["error", "bye"]
    assert sentence in records[0]["text"]
    assert records[0]["status"] == records[1]["status"] == 2
    assert sentence in refused.stderr


def test_records_that_can_not_be_written_are_no_success() -> None:
    text = "plan: {ranks: 2, pattern: {name: pairs}}\n"
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [find_engine(), "--plan"],
            input=text,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert ended.returncode == 3
    assert "No space left on device" in ended.stderr


def null_ports(**trial: Any) -> str:
    """A node alone with two ports of one network and one of another, all without a wire."""
    ports = [
        {
            "name": f"node1:e{i}",
            "network": network,
            "vdev": f"net_null{i}",
            "mac": f"02:00:00:00:00:0{i}",
        }
        | {"line_rate_bps": 1_000_000, "transports": ["dpdk"]}
        for i, network in enumerate(("lab", "lab", "other"))
    ]
    node1 = {"name": "node1", "control": {"address": "127.0.0.1:0"}, "ports": ports}
    plan = {
        "id": 7,
        "transport": "dpdk",
        "parts": [{"network": "lab", "ranks": ["node1:e0", "node1:e1"]}],
        "pattern": {"name": "pairs"},
        "sizes": [64],
        "load": {"percent": 50},
        "window_ns": 1000,
    } | trial
    said = (
        {"job": {"protocol": 2, "run": "test-trial", "controlled": False, "nodes": [node1]}},
        {"peers": {"addresses": ["127.0.0.1:1"], "key": secrets.token_hex(32)}},
        {"trial": plan},
    )
    return "".join(json.dumps(document) + "\n...\n" for document in said)


@pytest.mark.parametrize(
    ("trial", "sentence"),
    [
        ({"second": "e9"}, "trial 7: rank 1 is port 'node1:e9', which no node has"),
        ({"second": "e0"}, "trial 7: port node1:e0 has two ranks"),
        ({"second": "e2"}, "trial 7: port node1:e2 is in network other, not in lab"),
        ({"phases": [0, 1]}, "trial 7: phase 1: the plan has phases 0 to 0"),
        ({"pattern": {"name": "pear"}}, "trial 7: "),
        ({"load": {"bps": 1_000_001}}, "above its line rate of 1 Mbit/s"),
        ({"sizes": [63]}, "64 bytes at least, not 63"),
    ],
)
def test_trials_that_are_refused_before_traffic(trial: dict[str, Any], sentence: str) -> None:
    """`second`: the port of rank 1."""
    if trial.keys() & {"load", "sizes"}:
        trial = trial | {"connectivity_check": False}
    ranks = ["node1:e0", f"node1:{trial.get('second', 'e1')}"]
    more = {key: value for key, value in trial.items() if key != "second"}
    parts = [{"network": "lab", "ranks": ranks}]
    refused = node("--name", "node1", text=null_ports(**more, parts=parts))
    records = [json.loads(line) for line in refused.stdout.splitlines()]
    if "this build has no transport dpdk" in refused.stderr:
        pytest.skip("this build has no dpdk")
    assert sentence in refused.stderr
    assert refused.returncode == 2
    assert "flow" not in {record["type"] for record in records}
    assert records[-2]["status"] == records[-1]["status"] == 2


@pytest.mark.parametrize(
    ("ranks", "pattern", "phases", "flows"),
    [
        (301, {"name": "aapc", "order": "pairwise"}, 301, 300),
        (65536, {"name": "pairs", "partners": "halves"}, 1, 65536),
        (1000, {"name": "pairs", "partners": "list", "list": [0, 999]}, 1, 2),
    ],
)
def test_every_flow_of_a_plan_is_listed(
    ranks: int, pattern: dict[str, Any], phases: int, flows: int
) -> None:
    listed = list(plan_phases(ranks, pattern, 1))
    assert [phase.number for phase in listed] == list(range(phases))
    assert {len(phase.flows) for phase in listed} == {flows}
    assert plan_size(ranks, pattern, 1).flows == phases * flows


def test_a_plan_says_the_memory_of_its_schedule_and_which_phases_it_has() -> None:
    ring = {"name": "allreduce", "algorithm": "ring", "bytes": 400}
    assert plan_size(4, ring, 1).memory_bytes == 4 * 800
    with pytest.raises(PlanRefused, match="the plan has phases 0 to 6"):
        list(plan_phases(8, {"name": "aapc", "order": "shift"}, 1, [7]))


# --- hello, and how a run ends ---------------------------------------------------------------


def test_a_job_file_may_end_without_quit(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(documents())
    job.chmod(0o600)
    both = [
        subprocess.Popen(
            [find_engine(), str(job), "--name", name], stdout=subprocess.PIPE, text=True
        )
        for name in ("node1", "node2")
    ]
    assert [Pair.end(one) for one in both] == [(0, "quit")] * 2


def test_hello_tells_the_machine(pair: Pair) -> None:
    pair.tell(documents())
    hellos: list[dict[str, Any]] = []
    for one in pair.nodes:
        assert one.stdout is not None
        hellos.append(json.loads(one.stdout.readline()))
    assert [hello["type"] for hello in hellos] == ["hello", "hello"]
    assert hellos[0]["boot"] == hellos[1]["boot"]
    assert len(bytes.fromhex(hellos[0]["boot"])) == 8
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
    assert hellos[0]["boot"] not in boot_id.replace("-", "")


def test_a_controller_may_go_with_its_quit(pair: Pair) -> None:
    pair.tell(documents(controlled=True))
    pair.await_ready()
    pair.tell("quit: true\n...\n")
    assert pair.ends() == [(0, "quit")] * 2


def test_the_end_of_input_is_no_quit(pair: Pair) -> None:
    pair.tell(documents(controlled=True))
    pair.await_ready()
    status, reason = pair.end(pair.nodes[0])
    assert (status, reason) == (3, "end-of-input")
    assert pair.end(pair.nodes[1])[0] == 3


def test_a_signal_ends_all_with_the_one_named(pair: Pair) -> None:
    pair.tell(documents())
    pair.await_ready()
    os.kill(pair.nodes[1].pid, signal.SIGTERM)
    out, log = pair.nodes[0].communicate(timeout=TIMEOUT_S)
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["type"] for record in records] == ["missing", "bye"]
    assert records[0]["missing_node"] == "node2"
    assert records[0]["gave_up"] is True
    assert "node2 gave up: signal" in log
    assert pair.nodes[0].returncode == 3
    assert pair.end(pair.nodes[1]) == (3, "signal")


def test_silence_of_the_controller_is_an_end(pair: Pair) -> None:
    pair.tell(documents(controlled=True))
    pair.await_ready()
    for one in pair.nodes:
        assert one.wait(TIMEOUT_S) == 3
        assert one.stdout is not None
        last = json.loads(one.stdout.readlines()[-1])
        assert last["reason"] in ("heartbeat-timeout", "peer")


def test_node1_beats_for_all_by_hand(pair: Pair) -> None:
    pair.tell(documents())
    pair.await_ready()
    with pytest.raises(subprocess.TimeoutExpired):
        pair.nodes[1].wait(3 * HEARTBEAT_TIMEOUT_MS / 1000)
    pair.nodes[0].send_signal(signal.SIGSTOP)
    assert pair.nodes[1].wait(TIMEOUT_S) == 3
    assert pair.nodes[1].stdout is not None
    assert json.loads(pair.nodes[1].stdout.readlines()[-1])["reason"] == "heartbeat-timeout"


def test_who_is_heard_on_the_control_network() -> None:
    """Two that answer, one place where nobody listens, and one stranger without the token."""
    here, there = free_ports()
    token = "5" * 32
    partners = f"127.0.0.1:{here}\n127.0.0.1:{there}\n127.0.0.1:9\n"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    words = [str(find_engine()), "--reach"]
    with (
        subprocess.Popen([*words, f"127.0.0.1:{here}"], **pipes) as one,
        subprocess.Popen([*words, f"127.0.0.1:{there}"], **pipes) as other,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        said = []
        for process in (one, other):
            process.stdin.write(f"{token}\n{partners}\n")
            process.stdin.flush()
        for process in (one, other):
            said.append(json.loads(process.stdout.readline()))
        stranger.settimeout(0.3)
        request = struct.pack("=II", 0, 7)
        stranger.sendto(b"6" * 32 + request, ("127.0.0.1", here))
        with pytest.raises(TimeoutError):
            stranger.recv(64)
        stranger.sendto(token.encode() + request, ("127.0.0.1", here))
        assert stranger.recv(64) == token.encode() + struct.pack("=II", 1, 7)
        for process in (one, other):
            process.stdin.close()
            assert process.wait(TIMEOUT_S) == 0
    assert [one["answered"] for one in said] == [[0, 1], [0, 1]]
    assert all(abs(one["realtime_ns"] / 1e9 - time.time()) < 60 for one in said)
    taken = node("--reach", "192.0.2.1:7600")
    assert taken.returncode == 3
    assert "the control address 192.0.2.1:7600 can't be used: " in taken.stderr
    assert node("--reach", "nowhere").returncode == 2
