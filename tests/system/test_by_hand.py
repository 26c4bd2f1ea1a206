# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts, a job file and two people: nodes started one by one, without a controller."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import labkit
import nodekit
import runs
from switchbench.base.programs import find_engine
from switchbench.labs import Lab

pytestmark = [labkit.needs_lab, pytest.mark.usefixtures("nothing_left")]

SITE = Path(__file__).resolve().parents[2] / "conf" / "by-hand.yaml"
PATIENCE_S = 1.5
SLOWNESS_S = 0.8  # of the second person: longer than the heartbeat_timeout, shorter than patience


def write_job(lab: Lab, path: Path, transport: str) -> Path:
    """Write the job of the example for two hosts, with this lab's addresses and interfaces."""
    words = [
        *(f"site.control.addresses.{node.name}={node.control_ipv4}" for node in lab.nodes),
        f"site.control.barrier_timeout={PATIENCE_S * 1000:.0f}ms",
        "site.ports.e0.iface=eth0",
        "site.ports.e0.line_rate=20Mbit",
        f"transport={transport}",
        *(["frame_size=1518"] if transport == "dpdk" else []),
        "load=80%",
        "warmup=100ms",
        "window=800ms",
        "repeat=1",
    ]
    sets = [word for setting in words for word in ("--set", setting)]
    done = runs.execute("plan", str(SITE), *sets, "--job", str(path))
    assert done.returncode == 0, done.stderr
    return path


def changed(job: Path, change: Callable[[list[runs.Record]], None]) -> Path:
    """Write a job that the command would not have written."""
    documents = [json.loads(line) for line in job.read_text().splitlines()]
    change(documents)
    path = job.with_name("changed.yaml")
    path.touch(0o600)
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def start(lab: Lab, host: str, job: Path) -> subprocess.Popen[str]:
    """Return what a person types at a host."""
    pipe, command = subprocess.PIPE, [str(find_engine()), str(job), "--name", host]
    return lab.popen(host, command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def played(lab: Lab, **jobs: Path) -> nodekit.NodeRuns:
    """Start a node at each of these hosts, and read it to its end."""
    return nodekit.conduct([start(lab, host, job) for host, job in jobs.items()])


@pytest.mark.parametrize("transport", ["dpdk", "tcp"])
def test_two_people_measure_a_cable(transport: str, lab: Lab, tmp_path: Path) -> None:
    job = write_job(lab, tmp_path / "job", transport)
    bob = start(lab, "bob", job)
    time.sleep(SLOWNESS_S)
    said = nodekit.conduct([start(lab, "alice", job), bob])
    assert said.status == [0, 0], said.text
    flows: dict[tuple[str, str], dict[str, runs.Record]] = {}
    for record in said.of("flow"):
        flows.setdefault((record["src"], record["dst"]), {})[record["side"]] = record
    assert set(flows) == {("alice:e0", "bob:e0"), ("bob:e0", "alice:e0")}
    unit = "frames" if transport == "dpdk" else "payload_bytes"
    for sides in flows.values():
        source, destination = sides["source"], sides["destination"]
        assert source["node"] != destination["node"]
        assert 0 < destination[unit] == source[unit]
        assert destination["corrupted"] == 0
        assert 0.7 * 20e6 < runs.payload_bps(destination) < 0.85 * 20e6
    assert [(bye["status"], bye["reason"]) for bye in said.of("bye")] == [(0, "quit")] * 2
    assert [phase["state"] for phase in said.of("phase") if phase["phase"] >= 0] == ["complete"] * 2


def test_who_does_not_come_is_named(lab: Lab, tmp_path: Path) -> None:
    job = write_job(lab, tmp_path / "job", "tcp")
    began_s = time.monotonic()
    (said,) = played(lab, alice=job)
    assert said.status == 3
    assert time.monotonic() - began_s < PATIENCE_S + 2
    (missing,) = said.of("missing")
    assert missing["missing_node"] == "bob"
    sentence = (
        f"bob did not reach barrier 0 within {PATIENCE_S * 1000:.0f} ms; it has never answered"
    )
    assert missing["text"] == sentence
    assert said.log.count(sentence) == 1
    assert [bye["status"] for bye in said.of("bye")] == [3]


def test_dpdk_never_shares_a_port(lab: Lab, tmp_path: Path) -> None:
    """The node refuses a job that the command would not have written."""

    def share(documents: list[runs.Record]) -> None:
        (port,) = documents[0]["job"]["nodes"][0]["ports"]
        port["shared"] = True

    (said,) = played(lab, alice=changed(write_job(lab, tmp_path / "job", "dpdk"), share))
    assert said.status == 2
    assert "can't be `shared: true`: dpdk receives all frames of a port" in said.log


def test_steps_that_need_more_memory_than_there_is(lab: Lab, tmp_path: Path) -> None:
    """A panel of a TiB is refused before any of it is taken."""

    def enlarge(documents: list[runs.Record]) -> None:
        (trial,) = (document["trial"] for document in documents if "trial" in document)
        trial.pop("load")
        pattern = {"name": "hpl", "matrix": 1 << 22, "block": 1 << 16}
        trial |= {"pattern": pattern, "traffic": "schedule", "schedule": {"count": 1}}

    job = changed(write_job(lab, tmp_path / "job", "tcp"), enlarge)
    said = played(lab, alice=job, bob=job)
    assert said.status == [2, 2], said.text
    assert "MiB of memory, and" in said.text
    assert "use smaller messages or fewer ranks" in said.text


def test_another_run_s_key_is_nobody(lab: Lab, tmp_path: Path) -> None:
    one, other = (write_job(lab, tmp_path / name, "tcp") for name in ("one", "other"))
    alice, bob = played(lab, alice=one, bob=other)
    assert alice.status == bob.status == 3
    assert [record["missing_node"] for record in alice.of("missing")] == ["bob"]
    assert [record["missing_node"] for record in bob.of("missing")] == ["alice"]
    assert alice.of("bye")[0]["dropped_datagrams"] > 0


def test_a_trial_that_only_one_refuses_is_impossible_for_both(lab: Lab, tmp_path: Path) -> None:
    """The other learns of it by the word of the first alone."""

    def misname(documents: list[runs.Record]) -> None:
        (trial,) = (document["trial"] for document in documents if "trial" in document)
        trial["pattern"]["name"] = "nonsense"

    good = write_job(lab, tmp_path / "job", "tcp")
    alice, bob = played(lab, alice=good, bob=changed(good, misname))
    assert [alice.status, bob.status] == [2, 2]
    (missing,) = alice.of("missing")
    assert missing["gave_up"]
    assert missing["status"] == 2
    assert missing["text"].startswith("bob aborted the run: ")
    assert "nonsense" in missing["text"]
