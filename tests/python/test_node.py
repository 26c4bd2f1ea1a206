# SPDX-License-Identifier: BSD-3-Clause
"""switchbench-node itself: its options, and how a run of two nodes without ports ends.

Nodes without ports send no traffic, and yet they join, meet in barriers and leave together.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import nodekit
import runs
from configs import PROJECT, needs_engine
from switchbench.base.programs import find_engine

pytestmark = needs_engine

TIMEOUT_S = 30
HEARTBEAT_TIMEOUT_MS = 3000


def node(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a node to its end."""
    return runs.program(find_engine(), *arguments, input=text, timeout=TIMEOUT_S)


def documents(controlled: bool = False) -> str:
    """Return the documents `job` and `peers` of node1 and node2."""
    times = {"heartbeat_timeout_ms": HEARTBEAT_TIMEOUT_MS}
    return nodekit.meeting(nodekit.free_addresses(), controlled=controlled, **times)


class Pair:
    """Two running nodes that read the test's documents."""

    def __init__(self, *words: str) -> None:
        self.nodes = [
            nodekit.start([str(find_engine()), *words, "--name", name])
            for name in ("node1", "node2")
        ]

    def tell(self, text: str, ready: bool = False) -> None:
        """Write to both; wait until both have passed the first barrier."""
        for one in self.nodes:
            assert one.stdin is not None
            one.stdin.write(text)
            one.stdin.flush()
        for one in self.nodes if ready else ():
            while self.record(one)["type"] != "ready":
                pass

    @staticmethod
    def record(one: subprocess.Popen[str]) -> dict[str, Any]:
        assert one.stdout is not None
        record: dict[str, Any] = json.loads(one.stdout.readline())
        return record

    def end(self, at: int) -> tuple[int, str, str]:
        """Close the input of one, if it is open; return its status, the reason and its log."""
        out, log = self.nodes[at].communicate(timeout=TIMEOUT_S)
        bye = json.loads(out.splitlines()[-1])
        assert (bye["type"], bye["status"]) == ("bye", self.nodes[at].returncode)
        return self.nodes[at].returncode, bye["reason"], log


@pytest.fixture
def pair() -> Iterator[Callable[[], Pair]]:
    """Make two running nodes; none is left afterwards."""
    made: list[Pair] = []

    def make() -> Pair:
        made.append(Pair())
        return made[-1]

    yield make
    for one in (one for two in made for one in two.nodes if one.poll() is None):
        one.kill()
        one.communicate()


# --- options ---------------------------------------------------------------------------------


@pytest.mark.rows
def test_what_is_refused(arguments: list[str], sentence: str) -> None:
    refused = node(*arguments, text="")
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"jib": 1}\n', "jib"),
        ('{"peers": {"addresses": ["a"]}}\n', "the first document must be a job"),
        (documents().replace("node1", "node3"), "there is no node node1"),
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
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [find_engine(), "--plan"],
            input='{"plan": {"ranks": 2, "pattern": {"name": "pairs"}}}\n',
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    assert ended.returncode == 3
    assert "No space left on device" in ended.stderr


def null_ports(**trial: Any) -> str:
    """Return a node alone with two ports of one network and one of another, all without a wire."""
    text = (PROJECT / "tests/python/data/node_alone.yaml").read_text()
    said = yaml.safe_load(text)
    said[2]["trial"] |= trial
    return "".join(json.dumps(document) + "\n" for document in said)


@pytest.mark.rows
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


# --- hello, and how a run ends ---------------------------------------------------------------


def test_a_job_file_may_end_without_quit(tmp_path: Path) -> None:
    """A job file ends the run at its end; a file that others may read is rejected."""
    job = tmp_path / "job.ndjson"
    job.write_text(documents())
    job.chmod(0o640)
    refused = node(str(job), "--name", "node1")
    assert refused.returncode == 2
    assert f"chmod 600 {job}" in refused.stderr
    job.chmod(0o600)
    two = Pair(str(job))
    assert [two.end(at)[:2] for at in (0, 1)] == [(0, "quit")] * 2


def test_hello_tells_the_machine(pair: Callable[[], Pair]) -> None:
    two = pair()
    two.tell(documents())
    hellos = [two.record(one) for one in two.nodes]
    assert [hello["type"] for hello in hellos] == ["hello", "hello"]
    assert hellos[0]["boot"] == hellos[1]["boot"]
    assert len(bytes.fromhex(hellos[0]["boot"])) == 8
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
    assert hellos[0]["boot"] not in boot_id.replace("-", "")


def test_a_quit_and_the_end_of_input(pair: Callable[[], Pair]) -> None:
    """A node ends with status 0 after `quit`, and with 3 where its input ends without one."""
    two = pair()
    two.tell(documents(controlled=True), ready=True)
    two.tell('{"quit": true}\n')
    assert [two.end(at)[:2] for at in (0, 1)] == [(0, "quit")] * 2
    two = pair()
    two.tell(documents(controlled=True), ready=True)
    assert two.end(0)[:2] == (3, "end-of-input")
    assert two.end(1)[0] == 3


def test_a_signal_ends_all_with_the_one_named(pair: Callable[[], Pair]) -> None:
    two = pair()
    two.tell(documents(), ready=True)
    os.kill(two.nodes[1].pid, signal.SIGTERM)
    missing = two.record(two.nodes[0])
    assert (missing["type"], missing["missing_node"], missing["gave_up"]) == (
        "missing",
        "node2",
        True,
    )
    status, _, log = two.end(0)
    assert status == 3
    assert "node2 aborted the run: signal" in log
    assert two.end(1)[:2] == (3, "signal")


def test_silence_is_an_end(pair: Callable[[], Pair]) -> None:
    """Nodes end when the heartbeats of the controller, or by hand of node1, stop."""
    two = pair()
    two.tell(documents(), ready=True)
    with pytest.raises(subprocess.TimeoutExpired):
        two.nodes[1].wait(1.5 * HEARTBEAT_TIMEOUT_MS / 1000)
    two.nodes[0].send_signal(signal.SIGSTOP)
    assert two.nodes[1].wait(TIMEOUT_S) == 3
    assert two.end(1)[1] == "heartbeat-timeout"
    two = pair()
    two.tell(documents(controlled=True), ready=True)
    for at, one in enumerate(two.nodes):
        assert one.wait(TIMEOUT_S) == 3
        assert two.end(at)[1] in ("heartbeat-timeout", "peer")
