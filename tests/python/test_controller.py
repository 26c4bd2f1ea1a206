# SPDX-License-Identifier: BSD-3-Clause
"""The conversation with nodes that behave and nodes that don't."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nacl.public import PrivateKey, SealedBox

from recorded import rows_in, told_in
from schemas import validate_summary
from switchbench.analysis.remake import gather
from switchbench.base.errors import RunError
from switchbench.base.model import Process, Repeats, Run, Trial
from switchbench.records.directory import LineFile, RunDirectory, read_plan
from switchbench.records.store import Begun
from switchbench.run import controller, nodes
from switchbench.run.controller import Controller, Outcome, peers
from switchbench.run.launch.far import Launcher, piped
from switchbench.run.nodes import Interrupt, Node, RemoteNodes
from synthetic import about, hello, make_run, make_site, make_trial

HERE = Path(__file__).parent
FAKE = HERE / "fake_node.py"


class FakeLauncher(Launcher):
    """Starts fake nodes; remembers them so that a test can look for what is left."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, _process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        self.started.append(piped(command, env=os.environ | {"PYTHONPATH": str(HERE)}))
        return self.started[-1]


class FarLauncher(FakeLauncher):
    """Whose connections know of every end but the node's own: as ssh's client with 255."""

    def lost(self, _host: str, status: int | None, _log: Sequence[str]) -> str | None:
        return "was lost there" if status else None


class BrokenPlace(FakeLauncher):
    """Whose switch has ended: that shows after a node has ended for that reason."""

    def check(self) -> None:
        if any(popen.returncode is not None for popen in self.started):
            raise RunError("the switch has ended")


class Recorder:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.records = 0
        self.grown: list[Trial] = []

    def stage(self, text: str) -> None:
        self.stages.append(text)

    def record(self, _record: dict[str, Any]) -> None:
        self.records += 1

    def grow(self, trial: Trial) -> None:
        self.grown.append(trial)

    def turn(self) -> None:
        pass


class Bench:
    """One run with fake nodes."""

    def __init__(self, path: Path, hosts: int = 2, heartbeat_timeout_ms: int = 500) -> None:
        site = make_site(hosts, heartbeat_timeout_ms=heartbeat_timeout_ms)
        self.run = make_run(
            site,
            make_trial(site, flows=hosts),
            make_trial(site, 1, flows=hosts),
        )
        self.path = path
        self.launcher = FakeLauncher()
        self.watcher = Recorder()

    def conduct(
        self, begun: Begun | None = None, watched: bool = False, **behaviours: str
    ) -> Outcome:
        directory = RunDirectory(self.path, begun=(self.path / "plan.json").exists())
        job = {"nodes": [{"name": process.name} for process in self.run.site.processes]}
        controller = Controller(self.run, job, directory, self.watcher, begun, watched)

        def command(name: str) -> list[str]:
            return [sys.executable, str(FAKE), name, behaviours.get(name, "good")]

        with Interrupt() as interrupt:
            outcome = controller.conduct(self.launcher, command, interrupt)
        assert all(popen.returncode is not None for popen in self.launcher.started)
        return outcome

    def records(self) -> list[dict[str, Any]]:
        return told_in(self.path)

    def summary(self, outcome: Outcome) -> dict[str, Any]:
        return summary_of(self.run, self.path, outcome)


def summary_of(run: Run, path: Path, outcome: Outcome) -> dict[str, Any]:
    result = gather(run, path).finish(about(), outcome.faults)
    validate_summary(result)
    return result


@pytest.mark.parametrize(
    ("behaviour", "most", "run", "verdict"),
    [("good", 8, 3, "conclusive"), ("noisy", 6, 6, "inconclusive"), ("die", 6, 0, "inconclusive")],
)
def test_repeats_go_on_until_the_mean_is_sure(
    behaviour: str, most: int, run: int, verdict: str, tmp_path: Path
) -> None:
    """What was needed and not run is not mistaken for what was not needed."""
    bench = Bench(tmp_path / "run")
    site, repeats = bench.run.site, Repeats(3, most, 0.02)
    trials = [make_trial(site, number, repeat=number, repeats=repeats) for number in range(most)]
    clause = {"measure": "throughput", "over": "plan", "require": "> 1", "where": {}}
    bench.run = make_run(site, *trials, expectations=(clause,))
    outcome = bench.conduct(node1=behaviour.replace("die", "good"), node2=behaviour)
    summary = bench.summary(outcome)
    (entry,), (judged,) = summary["statistics"], summary["expectations"]
    assert entry["verdict"] == verdict
    if not run:
        assert (outcome.status, summary["status"]) == (3, "partial")
        assert entry["reason"].endswith("repeats could not be measured")
        assert summary["not_measured"]
        return
    assert outcome == Outcome([], 0)
    assert summary["status"] == "complete"
    assert [plan["repeat"] for plan in summary["plans"]] == entry["trials"] == list(range(run))
    assert entry["ci_low"] <= entry["mean"] <= entry["ci_high"]
    assert summary["exit_status"] == (0 if verdict == "conclusive" else 4)
    if verdict == "inconclusive":
        assert judged["verdict"] == "INCONCLUSIVE"
        assert "after 6 repeats, more than the 2 % asked for" in judged["reason"]


def test_all_goes_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All nodes get one key that is nowhere else, and heartbeats while they run."""
    key = bytes(range(32))
    monkeypatch.setattr(controller.secrets, "token_bytes", lambda size: key[:size])
    bench = Bench(tmp_path / "run", heartbeat_timeout_ms=250)  # a beat every 50 ms
    outcome = bench.conduct(node1="late-quit")  # two trials of half a second
    assert outcome == Outcome([], 0)
    assert bench.watcher.stages[0] == "starting the nodes"
    summary = bench.summary(outcome)
    assert summary["status"] == "complete"
    assert [entry["trial"] for entry in summary["trials"]] == [0, 1]
    records = bench.records()
    rows = Counter(record["type"] for record in records)
    assert (rows["flow"], rows["phase"], rows["trial"]) == (8, 4, 4)
    assert "heart" not in {thread.name for thread in threading.enumerate()}
    byes = [r["beats"] for r in records if r["type"] == "bye" and r["node"] == "node1"]
    assert 10 <= byes[0] <= 60
    ready = [record for record in records if record["type"] == "ready"]
    assert [record["length"] for record in ready] == [32] * 2
    assert len({record["digest"] for record in ready}) == 1
    for file in (tmp_path / "run").iterdir():
        assert key not in file.read_bytes()
        assert key.hex().encode() not in file.read_bytes()


# How nodes behave (fake_node.py), what the first fault begins with or has in it, and the status.
ENDS: list[tuple[str, str, int]] = [
    ("good die good", "node2 was ended by signal 9 (Killed)", 3),
    ("good die good", "the ring is gone", 3),  # its last words
    ("missing good", "node2 did not reach barrier 14 within 5 s", 3),
    # One that is cut off misses the others first; two of them miss it.
    ("missing missing_first missing_first", "node1 did not reach barrier 14 within 5 s", 3),
    ("refused-by-other good", "node2 gave up: no such pattern", 2),
    ("refuse good", "node1: no interface eth7", 2),
    ("good stays", "waited 2 s for node2 to end (its output is closed)", 3),
    ("good hang", "for node2 to end its trials", 3),
    ("good other-version", "node1 has 0.1.0, node2 has 9.9", 2),
    ("good other-protocol", "node2 speaks protocol 3", 2),
    ("twin twin", "have the same address 02:00:00:00:00:01", 2),
    ("garbage good", r"node1 wrote what is no record of it: b'EAL: hello\n': the line is no", 3),
    # Each was a traceback and status 1, or went into the results.
    ("liar good", "node1 wrote what is no record of it", 3),
    ("stranger good", "trial 0 has no phase 7", 3),
    ("endless good", "the line has", 3),
    ("wild good", "a flow record's `frames` is not what it has to be", 3),
    ("stutter good", "a second record of the source", 3),
    ("good mute", "waited 4 s for node2 to say hello", 3),
    ("refuse deaf", "node1: no interface eth7", 2),  # one that no signal but SIGKILL ends
    ("good error", "node2 (leaf2 Eth1/17): the link is down", 3),
    ("escapes good", r"\x1b[2J", 3),
]


@pytest.mark.parametrize(("behaviours", "words", "status"), ENDS)
def test_how_runs_end_that_nodes_spoil(
    behaviours: str, words: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fault, which names the cause; what was measured until then can be read."""
    monkeypatch.setattr(controller, "QUIT_TIMEOUT_S", 1.5)
    monkeypatch.setattr(controller, "SILENCE_SLACK_S", -15.0)
    monkeypatch.setattr(controller, "HELLO_TIMEOUT_S", 4.0)
    monkeypatch.setattr(nodes, "STOP_TIMEOUT_S", 0.5)
    monkeypatch.setattr(nodes, "SIGNAL_TIMEOUT_S", 0.5)
    every = behaviours.split()
    bench = Bench(tmp_path / "run", hosts=len(every))
    if "error" in every:
        port = bench.run.site.processes[1].ports[0]
        object.__setattr__(port, "switch", "leaf2")
        object.__setattr__(port, "switch_port", "Eth1/17")
    outcome = bench.conduct(**{f"node{i}": one for i, one in enumerate(every, start=1)})
    assert outcome.status == status
    assert words in outcome.faults[0]
    assert outcome.faults[0].isprintable()
    assert (tmp_path / "run" / "nodes.log").read_text().replace("\n", "").isprintable()
    begun = any(record["type"] == "flow" for record in bench.records())
    assert bench.summary(outcome)["status"] == ("partial" if begun else "failed")


@pytest.mark.parametrize(
    ("launcher", "node1", "cause"),
    [(BrokenPlace, "good", "the switch has ended"), (FarLauncher, "missing", "node2 was lost")],
)
def test_the_cause_of_a_nodes_end_is_named(
    launcher: type[FakeLauncher], node1: str, cause: str, tmp_path: Path
) -> None:
    bench = Bench(tmp_path / "run")
    bench.launcher = launcher()
    assert bench.conduct(node1=node1, node2="die").faults[0].startswith(cause)


def test_a_node_that_hangs_is_not_ended_by_a_signal_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signals that end its connection are the controller's: the barrier is what is known."""
    monkeypatch.setattr(nodes, "STOP_TIMEOUT_S", 0.5)
    monkeypatch.setattr(nodes, "SIGNAL_TIMEOUT_S", 0.5)
    bench = Bench(tmp_path / "run")
    bench.launcher = FarLauncher()
    outcome = bench.conduct(node1="missing", node2="stopped")
    assert bench.launcher.started[1].returncode == -signal.SIGKILL
    assert outcome.faults[0].startswith("node2 did not reach barrier 14 within 5 s")


def test_a_log_is_read_until_its_node_has_ended(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    assert bench.conduct(node2="goes-on-logging") == Outcome([], 0)
    log = (tmp_path / "run" / "nodes.log").read_text()
    assert log.count("node2: a long farewell\n") == 20_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_in_order(tmp_path: Path, number: signal.Signals) -> None:
    bench = Bench(tmp_path / "run")
    timer = threading.Timer(3, os.kill, (os.getpid(), number))
    timer.start()
    begin = time.monotonic()
    outcome = bench.conduct(node1="hang", node2="hang")
    timer.cancel()
    assert outcome.faults == [f"interrupted ({number.name})"]
    assert outcome.status == 3
    assert time.monotonic() - begin < 7
    assert bench.summary(outcome)["status"] == "partial"


def test_a_watch_repeats_its_trial_until_a_signal(tmp_path: Path) -> None:
    """What was sent still ends, and the plan has the trials that were; a second signal is one."""
    bench = Bench(tmp_path / "run")
    bench.run = make_run(bench.run.site, make_trial(bench.run.site, flows=2))
    timer = threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = bench.conduct(watched=True, node1="late-quit")  # trials of half a second
    timer.cancel()
    assert (outcome.faults, outcome.status) == ([], 0)
    assert len(outcome.trials) > 2
    assert read_plan(tmp_path / "run").trials == outcome.trials
    summary = summary_of(replace(bench.run, trials=outcome.trials), bench.path, outcome)
    assert summary["status"] == "complete"
    assert [one["repeat"] for one in summary["trials"]] == list(range(len(outcome.trials)))
    twice = [threading.Timer(s, os.kill, (os.getpid(), signal.SIGINT)) for s in (2, 2.3)]
    for timer in twice:
        timer.start()
    bench.path = tmp_path / "twice"
    assert bench.conduct(watched=True, node1="hang").faults == ["interrupted (SIGINT)"]


@contextmanager
def tiny_disk(path: Path, kilobytes: int) -> Iterator[Path]:
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_stops_the_run_and_what_is_there_is_whole(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 256) as disk:
        bench = Bench(disk / "run")
        outcome = bench.conduct(node1="chatty", node2="chatty")
        assert outcome.status == 3
        assert len(outcome.faults) == 1
        assert re.search(r"\.1\.arrows: No space left on device", outcome.faults[0])
        noises = [row for row in rows_in(disk / "run", "events") if row["type"] == "event"]
        assert len(noises) > 64
        summary = bench.summary(outcome)  # a phase may have ended before the disk was full
        measured = any(trial["state"] == "complete" for trial in summary["trials"])
        assert summary["status"] == ("partial" if measured else "failed")


def test_why_a_run_ended_has_room_or_is_said_to_have_none(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.begin_summary({"nodes": ["node"] * 20_000, "errors": []})
    directory.end_in_place({"nodes": ["node"] * 20_000, "errors": ["the disk is full"]})
    assert b"the disk is full" in (tmp_path / "summary.json").read_bytes()
    with pytest.raises(RunError, match="has no room for why the run ended"):
        directory.end_in_place({"nodes": ["node"] * 30_000, "errors": []})


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 16) as disk, LineFile(disk / "lines") as lines:
        for _ in range(5):  # 15,000 of 16,384 bytes
            lines.write(b"x" * 2999 + b"\n")
        with pytest.raises(RunError, match="No space left"):
            lines.write(b"x" * 2999 + b"\n")
        assert (disk / "lines").stat().st_size == 15_000


def test_peers_are_sealed_to_each() -> None:
    keys = [PrivateKey.generate() for _ in range(2)]
    hellos = [
        {"control": f"127.0.0.1:{i}", "key": b64encode(bytes(key.public_key)).decode()}
        for i, key in enumerate(keys)
    ]
    document = peers(hellos, b"k" * 32)
    assert document["addresses"] == ["127.0.0.1:0", "127.0.0.1:1"]
    for key, sealed in zip(keys, document["sealed_keys"], strict=True):
        assert SealedBox(key).decrypt(b64decode(sealed)) == b"k" * 32


@pytest.mark.parametrize("key", ["", "YWJj", "\u00e9", b64encode(bytes(32)).decode()])
def test_a_key_that_nothing_can_be_sealed_with_is_named(key: str) -> None:
    with pytest.raises(RunError, match="node1 sent no usable key"):
        peers([hello("node1", key=key)], b"k" * 32)


def test_a_node_that_invents_types_is_not_kept() -> None:
    """And one that has ended takes no document."""
    popen = piped(["true"])
    node = Node(make_site().processes[0], popen)
    for kind in ("hello", "ready", *map(str, range(100))):
        node.hear({"type": kind, "node": "node1"})
    assert node.said.keys() == {"hello", "ready"}
    assert popen.wait(10) == 0
    node.send(b'{"trial": {}}\n')
    node.beat(b'{"heartbeat": 1}\n')
    assert not node.waiting


@pytest.mark.parametrize(
    ("trials", "pairs", "says"),
    [
        ([4, 3], 2, "no load in trials 3, 4: no probe got through n0 -> n1, n1 -> n2"),
        ([3], 7, "no load in trial 3: no probe got through n0 -> n1, n1 -> n2, n2 -> n3, "
                 "n3 -> n4, n4 -> n5, n5 -> n6 and 1 more"),
    ],
)  # fmt: skip
def test_what_was_unreachable_is_named(trials: list[int], pairs: int, says: str) -> None:
    records = [
        {"trial": trial, "src": f"n{number}", "dst": f"n{number + 1}"}
        for trial in trials
        for number in range(pairs)
    ]
    assert controller.unreachable(records) == says


def test_each_node_may_open_its_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own three, and those of the program that binds its ports: beyond a shell's limit."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        for count, soft in ((200, 256), (3200, min(3200, limits[1]))):
            controller.permit_files(count)
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, limits[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    asked: list[int] = []
    monkeypatch.setattr(controller, "permit_files", asked.append)
    for hosts in (2, 4):
        assert not Bench(tmp_path / str(hosts), hosts).conduct().faults
    assert asked[1] - asked[0] == 2 * 2 * 3


def test_documents_and_beats_never_mix() -> None:
    """A node that reads slowly, documents that no pipe holds and many beats: each arrives whole."""
    reader = "import sys\nsys.stdout.write(sys.stdin.read().replace(', ', ',\\n'))\n"
    long = {"names": [f"name{number}" for number in range(60_000)]}
    popen = piped([sys.executable, "-c", reader])
    node = Node(make_site().processes[0], popen)
    lines: list[bytes] = []
    every = RemoteNodes([node], lambda _node, line: lines.append(line), lambda _node, _line: None)
    popen.send_signal(signal.SIGSTOP)
    every.send("trial", long)
    every.send("quit", True)
    assert node.waiting
    number, deadline_s = 0, time.monotonic() + 30
    while node.waiting and time.monotonic() < deadline_s:
        node.beat(b'{"heartbeat": %d}\n' % number)
        number += 1
        if number == 20:
            popen.send_signal(signal.SIGCONT)
        every.turn(0.002)
    every.close()
    assert popen.returncode == 0
    texts = re.split(r"(?<=})\n", b"".join(lines).decode())
    assert texts.pop() == ""
    documents = [json.loads(text) for text in texts]
    kinds = [next(iter(content)) for content in documents]
    assert [kind for kind in kinds if kind != "heartbeat"] == ["trial", "quit"]
    assert documents[kinds.index("trial")]["trial"] == long
    beats = [content["heartbeat"] for content in documents if "heartbeat" in content]
    assert beats == sorted(beats)
    assert 1 <= len(beats) < number  # those that were not taken in time were replaced
