# SPDX-License-Identifier: BSD-3-Clause
"""The conversation with nodes that behave and nodes that do not; runs that go on after they were
cut off; phases that are measured again because the tester limited them."""

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
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench import Bench, BrokenPlace, FakeLauncher, FarLauncher, Recorder, suite_run, summary_of
from recorded import replace_rows, rows_in, write_tables
from runs import records_in
from switchbench.analysis.summary import gather, remade
from switchbench.base.errors import ConfigurationError, RunError
from switchbench.base.model import Repeats, Run
from switchbench.plan.chosen import trials_again
from switchbench.plan.documents import trial_document
from switchbench.records.directory import LineFile, read_plan, write_plan
from switchbench.records.store import Begun, finish, resume
from switchbench.records.summary_form import summary_schema
from switchbench.run import controller, nodes
from switchbench.run.controller import Outcome, peers
from switchbench.run.launch.far import piped
from switchbench.run.nodes import Node, RemoteNodes
from synthetic import about, hello, make_run, make_site, make_trial, phase_record, trial_record


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
    assert byes[0] >= 10
    ready = [record for record in records if record["type"] == "ready"]
    assert [record["length"] for record in ready] == [32] * 2
    assert len({record["digest"] for record in ready}) == 1
    assert [record["addresses"] for record in ready] == [["127.0.0.1:4000"] * 2] * 2
    for file in (tmp_path / "run").iterdir():
        assert key not in file.read_bytes()
        assert key.hex().encode() not in file.read_bytes()


LIMITS = (
    ("stays", controller, "QUIT_TIMEOUT_S", 6.0),
    ("hang", controller, "SILENCE_SLACK_S", -10.0),
    ("mute", controller, "HELLO_TIMEOUT_S", 6.0),
    ("missing_first", controller, "AGREE_TIMEOUT_S", 20.0),
    *(
        (behaviour, nodes, name, 0.5)
        for behaviour in ("deaf", "stays")
        for name in ("STOP_TIMEOUT_S", "SIGNAL_TIMEOUT_S")
    ),
)


@pytest.mark.rows
def test_how_runs_end_that_nodes_spoil(
    behaviours: str, words: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fault, which names the cause; what was measured until then can be read. `behaviours`: of
    fake_node.py."""
    every = behaviours.split()
    for behaviour, module, name, limit_s in LIMITS:  # honest nodes have long ones
        if behaviour in every:
            monkeypatch.setattr(module, name, limit_s)
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


class Striker(Recorder):
    """A watcher that sends a signal at each of some records of a type."""

    def __init__(self, kind: str, numbers: range, signal_number: signal.Signals) -> None:
        super().__init__()
        self.kind, self.numbers, self.number = kind, numbers, signal_number
        self.seen, self.struck_s = 0, 0.0

    def record(self, record: dict[str, Any]) -> None:
        self.seen += record["type"] == self.kind
        if record["type"] == self.kind and self.seen in self.numbers:
            self.struck_s = time.monotonic()
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_in_order(tmp_path: Path, number: signal.Signals) -> None:
    bench = Bench(tmp_path / "run")
    bench.watcher = strike = Striker("flow", range(1, 2), number)
    outcome = bench.conduct(node1="hang", node2="hang")
    assert outcome.faults == [f"interrupted by signal {number.name}"]
    assert outcome.status == 3
    assert time.monotonic() - strike.struck_s < nodes.STOP_TIMEOUT_S
    assert bench.summary(outcome)["status"] == "partial"


def test_a_watch_repeats_its_trial_until_a_signal(tmp_path: Path) -> None:
    """What was sent still ends, and the plan has the trials that were; a second signal is one."""
    bench = Bench(tmp_path / "run")
    bench.run = make_run(bench.run.site, make_trial(bench.run.site, flows=2))
    bench.watcher = Striker("trial", range(5, 6), signal.SIGINT)
    outcome = bench.conduct(watched=True, node1="late-quit")  # trials of half a second
    assert (outcome.faults, outcome.status) == ([], 0)
    assert len(outcome.trials) > 2
    assert read_plan(tmp_path / "run").trials == outcome.trials
    summary = summary_of(replace(bench.run, trials=outcome.trials), bench.path, outcome)
    assert summary["status"] == "complete"
    assert [one["repeat"] for one in summary["trials"]] == list(range(len(outcome.trials)))
    bench.path, bench.watcher = tmp_path / "twice", Striker("flow", range(1, 3), signal.SIGINT)
    assert bench.conduct(watched=True, node1="hang").faults == ["interrupted by signal SIGINT"]


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


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 16) as disk, LineFile(disk / "lines") as lines:
        for _ in range(5):  # 15,000 of 16,384 bytes
            lines.write(b"x" * 2999 + b"\n")
        with pytest.raises(RunError, match="No space left"):
            lines.write(b"x" * 2999 + b"\n")
        assert (disk / "lines").stat().st_size == 15_000


@pytest.mark.parametrize("key", ["", "YWJj", "\u00e9", b64encode(bytes(32)).decode()])
def test_a_key_that_nothing_can_be_sealed_with_is_named(key: str) -> None:
    with pytest.raises(RunError, match="node1 sent no valid public key"):
        peers([hello("node1", key=key)], b"k" * 32)


def test_a_node_that_invents_types_is_not_kept() -> None:
    """And one that has ended takes no document."""
    popen = piped(["true"])
    node = Node(make_site().processes[0], popen)
    for kind in ("hello", "ready", *map(str, range(100))):
        node.keep({"type": kind, "node": "node1"})
    assert node.records.keys() == {"hello", "ready"}
    assert popen.wait(10) == 0
    node.send(b'{"trial": {}}\n')
    node.beat(b'{"heartbeat": 1}\n')
    assert not node.waiting


@pytest.mark.rows
def test_what_was_unreachable_is_named(trials: list[int], pairs: int, says: str) -> None:
    records = [
        {"trial": trial, "src": f"n{number}", "dst": f"n{number + 1}"}
        for trial in trials
        for number in range(pairs)
    ]
    assert controller.unreachable(records) == says


def test_each_node_may_open_its_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three each: of many nodes more than a shell allows."""
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
    assert asked[1] - asked[0] == 2 * 3


def test_nothing_large_is_imported_while_heartbeats_are_due(tmp_path: Path) -> None:
    """The first array of pyarrow imported pandas during the first phase: heartbeats were late."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom bench import Bench\n"
        "from switchbench.run.nodes import RemoteNodes\nloaded = []\n"
        "def noted(method):\n"
        "    def call(*words):\n        loaded.append(set(sys.modules))\n"
        "        return method(*words)\n    return call\n"
        "for name in ('begin_heartbeats', 'close'):\n"
        "    setattr(RemoteNodes, name, noted(getattr(RemoteNodes, name)))\n"
        f"assert not Bench(Path({str(tmp_path / 'run')!r})).conduct().faults\n"
        "large = {'pandas', 'pyarrow.compute', 'scipy.special', 'networkx'}\n"
        "print(sorted(large & (loaded[1] - loaded[0])))\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    words = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


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


# --- runs that were cut off and go on -------------------------------------------------------------


def numbers(path: Path) -> list[int]:
    """Return the numbers of the trials that the nodes ended, in order."""
    return [record["trial"] for record in records_in(path, "trial")]


def test_a_suite_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run"
    whole = Bench(tmp_path / "whole")
    whole.run = replace(suite_run(), site=whole.run.site)
    every = whole.conduct(node1="half", node2="half").trials
    bench = Bench(path)
    bench.run = replace(suite_run(), site=bench.run.site)
    assert bench.conduct(node1="half", node2="half-then-dies").status == 3
    run, begun = resume(path)
    assert [trial.id for trial in run.trials] == [0, 1, 2]
    assert begun.whole == {(0, 0), (1, 0), (2, 0)}
    bench.run = run
    outcome = bench.conduct(begun, node1="half", node2="half")
    assert (outcome.faults, outcome.status) == ([], 0)
    assert outcome.trials == every
    assert numbers(path) == [trial.id for trial in every for _ in range(2)]
    bench.run = replace(run, trials=outcome.trials)
    found = summary_of(bench.run, path, outcome)
    assert (found["status"], found["not_measured"]) == ("complete", [])
    ended = replace(whole.run, trials=every)
    assert found["searches"] == summary_of(ended, tmp_path / "whole", outcome)["searches"]


def test_a_plan_goes_on_with_the_trials_that_are_left(tmp_path: Path) -> None:
    path = tmp_path / "run"
    bench = Bench(path)
    site = bench.run.site
    bench.run = make_run(site, *(make_trial(site, number, flows=2) for number in range(4)))
    path.mkdir()
    write_plan(path, bench.run)
    assert bench.conduct(node2="dies-in-1").status == 3
    run, begun = resume(path)
    assert begun == Begun(frozenset({(0, 0)}), {})
    assert run == bench.run
    outcome = bench.conduct(begun)
    assert (outcome.faults, outcome.status) == ([], 0)
    assert sorted(numbers(path)) == [0, 0, 1, 1, 2, 2, 3, 3]
    summary = summary_of(run, path, outcome)
    assert (summary["status"], summary["not_measured"]) == ("complete", [])
    with pytest.raises(ConfigurationError, match="is complete: all its trials were measured"):
        resume(path)


def test_whole_phases_of_a_trial_stay(tmp_path: Path) -> None:
    site = make_site(2)
    run = make_run(site, make_trial(site, phases=4))
    write_plan(tmp_path, run)
    nodes = ("node1", "node2")
    told = [phase_record(node, phase=phase) for phase in (-1, 0, 2) for node in nodes]
    told += [phase_record("node1", phase=1), phase_record("node2", phase=3, state="stopped")]
    told += [trial_record("node1")]
    write_tables(tmp_path, run, told)
    found, begun = resume(tmp_path)
    assert begun.left == {(0, 0): [1, 3]}
    assert begun.left_of(found.trials[0]) == replace(found.trials[0], chosen=(1, 3))
    kept = rows_in(tmp_path, "phases")
    assert [(each["node"], each["phase"]) for each in kept] == [
        (node, phase) for phase in (0, 2) for node in nodes
    ]


# --- phases that the tester limited are measured again, and stand where they were pla -------------


def busy_bench(path: Path, rounds: int) -> Bench:
    """Return two trials; the first, and its first repetition, find node1's host busy."""
    bench = Bench(path)
    site = bench.run.site
    trials = [make_trial(site, number) for number in (0, 1)]
    bench.run = make_run(site, *trials, remeasure=rounds)
    return bench


def summary_again(run: Run, path: Path) -> dict[str, Any]:
    return gather(run, path).finish(about(), [])


def trials_in(path: Path) -> set[int | None]:
    return {record.get("trial") for record in records_in(path)}


def test_a_limited_phase_is_measured_until_it_is_not(tmp_path: Path) -> None:
    """What was measured before is in tables of its own."""
    bench = busy_bench(tmp_path / "run", 3)
    outcome = bench.conduct(node1="busy")
    assert outcome.faults == []
    assert [
        (trial.id, trial.again, trial_document(trial)["phases"]) for trial in outcome.again
    ] == [
        (2, 0, [0]),
        (3, 0, [0]),
    ]
    assert all(trial_document(trial)["connectivity_check"] is False for trial in outcome.again)
    run = finish(bench.path, replace(bench.run, again=outcome.again))
    assert (run.again, run.remeasured) == ((), 1)
    assert read_plan(bench.path).remeasured == 1
    summary = summary_again(run, bench.path)
    assert [(e["trial"], e["phase"], e["tester_limited"]) for e in summary["trials"]] == [
        (0, 0, []),
        (1, 0, []),
    ]
    assert summary["run"]["remeasured_phases"] == 1
    assert trials_in(bench.path) == {None, 0, 1}
    assert trials_in(bench.path / "superseded") == {0, 2, 3}
    jsonschema.validate(summary, summary_schema())
    begun = {"errors": [], "exit_status": 0, "run": about()}
    assert remade(read_plan(bench.path), bench.path, begun)["trials"] == summary["trials"]


def test_so_many_rounds_and_no_more(tmp_path: Path) -> None:
    bench = busy_bench(tmp_path / "run", 1)
    outcome = bench.conduct(node1="busy")
    assert [trial.id for trial in outcome.again] == [2]
    run = finish(bench.path, replace(bench.run, again=outcome.again))
    limits = [entry["tester_limited"] for entry in summary_again(run, bench.path)["trials"]]
    assert [[limit["port"] for limit in some] for some in limits] == [["node1:e0"], []]
    quiet = busy_bench(tmp_path / "quiet", 3)  # nothing is measured again
    assert quiet.conduct().again == ()
    assert finish(quiet.path, quiet.run) is quiet.run
    assert not (quiet.path / "superseded").exists()


def test_what_was_cut_short_replaces_nothing(tmp_path: Path) -> None:
    """The command was killed in the middle of it: `table --again` puts the records in order."""
    bench = busy_bench(tmp_path / "run", 1)
    outcome = bench.conduct(node1="busy")
    events = rows_in(bench.path, "events")
    ends = [i for i, row in enumerate(events) if (row["type"], row["trial"]) == ("trial", 2)]
    replace_rows(bench.path, "events", events[: ends[-1]])
    run = replace(bench.run, again=outcome.again)
    write_plan(bench.path, run)
    begun = {"errors": [], "exit_status": 3, "run": about()}
    read = remade(read_plan(bench.path), bench.path, begun)  # its second try is a trial of its own
    assert [bool(entry["tester_limited"]) for entry in read["trials"]] == [True, False, True]
    summary = remade(read_plan(bench.path), bench.path, begun, keep=True)
    assert [bool(entry["tester_limited"]) for entry in summary["trials"]] == [True, False]
    assert "remeasured_phases" not in summary["run"]


def test_a_node_that_ends_twice_does_not_stand_for_another(tmp_path: Path) -> None:
    bench = busy_bench(tmp_path / "run", 1)
    outcome = bench.conduct(node1="busy")
    events = rows_in(bench.path, "events")
    one, other = (row for row in events if (row["type"], row["trial"]) == ("trial", 2))
    replace_rows(bench.path, "events", [row for row in events if row != other] + [one])
    run = finish(bench.path, replace(bench.run, again=outcome.again))
    assert run.remeasured == 0


def test_a_phase_in_which_the_network_lost_frames_is_not_measured_again(tmp_path: Path) -> None:
    """Its host was busy, and its cable was cut: the loss stays in counts and findings."""
    bench = busy_bench(tmp_path / "run", 3)
    outcome = bench.conduct(node1="cut")
    assert outcome.faults == []
    assert outcome.again == ()
    summary = summary_again(bench.run, bench.path)
    assert [entry["lost_frames"] for entry in summary["trials"]] == [400, 0]
    assert summary["trials"][0]["tester_limited"] != []
    assert [(f["kind"], f["count"]) for f in summary["findings"]] == [("unexplained", 400)]


def test_only_streams_are_measured_again() -> None:
    trial = make_trial(make_site(2), traffic="pingpong")
    assert list(trials_again([trial], lambda _trial: [0], 1)) == []
