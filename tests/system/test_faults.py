# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong in a run, done to the real engine on a lab: each fault ends in one clear
sentence, with the right exit status, with all that was measured, and on a machine as it was found.
"""

from __future__ import annotations

import os
import re
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kernel_faults
import labkit
import runs
from switchbench import labs
from switchbench.topology import lab_addresses

pytestmark = [labkit.needs_lab, pytest.mark.usefixtures("nothing_left")]

BARRIER_TIMEOUT_S = 1.5
HEARTBEAT_TIMEOUT_S = 0.5
FLOOD_LIMIT = 100
QUICK: dict[str, Any] = {"warmup": "100ms", "window": "800ms", "load": "80%"}
ALL_TO_ALL = {"pattern": "aapc", "order": "shift"}

# A node stops within 100 ms; the rest is for a machine that is busy with other things.
STOP_LIMIT_S = 0.25
FIRST_PROBES = 20  # of the 3 of each of 12 flows: the plan is being probed
LAST_SEGMENTS = 30  # connections are closed, or their partner's kernel resets them


by_each_transport = pytest.mark.parametrize("transport", ["dpdk", "tcp"])


def configuration(topology: Path, transport: str, **more: Any) -> runs.Record:
    control = {
        "barrier_timeout": f"{BARRIER_TIMEOUT_S * 1000:.0f}ms",
        "heartbeat_timeout": f"{HEARTBEAT_TIMEOUT_S * 1000:.0f}ms",
    }
    site = {"lab": str(topology), "control": control}
    return {"site": site, "transport": transport, **QUICK, "tests": [ALL_TO_ALL], **more}


def complete_phases(summary: runs.Record) -> list[int]:
    """Return which phases were measured whole, with nothing unknown or lost in them."""
    return [
        trial["phase"]
        for trial in summary["trials"]
        if trial["state"] == "complete" and 0 < trial["delivered_bytes"] == trial["offered_bytes"]
    ]


def assert_partial(result: runs.Result, sentence: str, phases: list[int] | None = None) -> None:
    """The run ended early with one sentence; `phases`: those that were measured whole."""
    assert (result.status, result.summary["status"]) == (3, "partial")
    assert result.sentence.startswith(sentence)
    assert result.summary["errors"] == [result.sentence]
    found = complete_phases(result.summary)
    assert 0 in found if phases is None else found == phases


def assert_later_runs_work(directory: Path, topology: Path, transport: str) -> None:
    short = configuration(topology, transport, tests=[{"pattern": "pairs"}], window="300ms")
    result = runs.run(directory / "later", short)
    assert result.counted, result.errors
    assert complete_phases(result.summary) == [0]


# --- a node ---------------------------------------------------------------------------------------


@by_each_transport
def test_a_node_that_is_killed_is_named_and_earlier_phases_are_kept(
    transport: str, kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    """The others stop; over dpdk at once, over tcp their kernels have segments to send."""
    with runs.started(tmp_path / "run", configuration(topology, transport)) as run:
        run.wait_for_load(phase=2)
        pid = labkit.node_pid(topology.stem, "node3")
        trace = labkit.Trace(kept_lab, lambda: os.kill(pid, signal.SIGKILL))
        result = run.end()
    assert trace.frames_after(STOP_LIMIT_S) <= (LAST_SEGMENTS if transport == "tcp" else 0)
    said = "node3 (switch p3) was ended by signal 9 (Killed)"
    assert_partial(result, said, [0, 1])
    assert result.sentence == said
    assert [trial["state"] for trial in result.trials(phase=2)] == ["stopped"]
    assert_later_runs_work(tmp_path, topology, transport)


@by_each_transport
def test_a_node_that_falls_silent_is_named(transport: str, topology: Path, tmp_path: Path) -> None:
    with runs.started(tmp_path / "run", configuration(topology, transport)) as run:
        run.wait_for_load(phase=1)
        os.kill(labkit.node_pid(topology.stem, "node2"), signal.SIGSTOP)
        # What is left of the phase, and tcp's drain: its silent partner never says that it is done.
        phase_s = 1.0 + (3.0 if transport == "tcp" else 0.5)
        limit_s = phase_s + BARRIER_TIMEOUT_S + 1.5
        runs.wait_until(lambda: run.records("missing"), "node2 is missed", limit_s)
        result = run.end(limit_s=15)
    assert {record["missing_node"] for record in run.records("missing")} == {"node2"}
    assert_partial(result, "node2 (switch p2) did not reach barrier ", [0])
    assert f"within {BARRIER_TIMEOUT_S * 1000:.0f} ms" in result.sentence


# --- the controller -------------------------------------------------------------------------------


@by_each_transport
def test_traffic_stops_when_the_controller_is_killed(
    transport: str, kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    with runs.started(tmp_path / "run", configuration(topology, transport)) as run:
        run.wait_for_load(phase=1)
        pids = run.node_pids()
        trace = labkit.Trace(kept_lab, run.process.kill)
        assert trace.frames_after(STOP_LIMIT_S) <= (LAST_SEGMENTS if transport == "tcp" else 0)
        runs.wait_until(lambda: not any(map(runs.is_alive, pids)), "the nodes are gone", 1.0)
        result = run.end()
    assert result.status == -signal.SIGKILL
    assert list(result.records("phase"))
    again = runs.execute("table", str(result.directory), "--again")
    assert again.returncode == 3
    assert "the run's command was killed" in again.stdout
    assert 0 in complete_phases(result.summary)
    for word in ("down", "up"):
        what = str(topology) if word == "up" else kept_lab.name
        done = runs.execute("lab", word, what)
        assert done.returncode == 0, done.stderr


def test_a_silent_controller_stops_traffic(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    with runs.started(tmp_path / "run", configuration(topology, "dpdk")) as run:
        run.wait_for_load(phase=1)
        stop = partial(run.process.send_signal, signal.SIGSTOP)
        trace = labkit.Trace(kept_lab, stop, HEARTBEAT_TIMEOUT_S + 1.0)
        assert trace.frames_after(HEARTBEAT_TIMEOUT_S + STOP_LIMIT_S) == 0
        run.process.send_signal(signal.SIGCONT)
        result = run.end()
    assert_partial(result, "")
    heartbeat = (
        f"no heartbeat of the controller for {HEARTBEAT_TIMEOUT_S * 1000:.0f} ms: this node stops"
    )
    assert result.sentence.count(heartbeat) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_in_order(
    number: signal.Signals, topology: Path, tmp_path: Path
) -> None:
    with runs.started(tmp_path / "run", configuration(topology, "dpdk")) as run:
        run.wait_for_load(phase=1)
        run.process.send_signal(number)
        result = run.end(limit_s=10)
    assert_partial(result, f"interrupted by signal {number.name}", [0])
    (stopped,) = result.trials(phase=1)
    assert stopped["state"] == "stopped"
    assert stopped["delivered_frames"] > 0
    assert {record["reason"] for record in result.records("bye")} == {"end-of-input"}
    assert_later_runs_work(tmp_path, topology, "dpdk")


# --- the switch -----------------------------------------------------------------------------------


def probes_only(sent: int) -> bool:
    """Whether so many frames are probes, connections and learning at most: no load of a phase."""
    one_phase = len(labkit.NODES) * 0.8 * 20e6 / 8 / 1538  # a second of it
    return sent < 0.1 * one_phase


@by_each_transport
def test_pairs_without_a_way_are_named_before_load(
    transport: str, kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    labkit.set_port(kept_lab, "node3", master=0)
    before = labkit.frames_from_nodes(kept_lab)
    result = runs.run(tmp_path, configuration(topology, transport))
    assert probes_only(labkit.frames_from_nodes(kept_lab) - before)
    assert result.status == 3
    assert result.sentence == (
        "trial 0 not started: no connectivity probe arrived for "
        "node1:e0 -> node3:e0, node2:e0 -> node3:e0, "
        "node3:e0 -> node1:e0, node3:e0 -> node2:e0, node3:e0 -> node4:e0, node4:e0 -> node3:e0"
    )
    assert result.summary["status"] == "failed"
    named = [text for text in result.summary["not_measured"] if "can't be reached from" in text]
    assert len(named) == 6


def test_a_pair_that_missed_its_probes_is_asked_again(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    """node3 is away from the switch while the first probes are sent, and comes back."""

    port = lab_addresses.switch_port(kept_lab.topology.node("node3"))
    switch = labkit.over_netlink(
        kept_lab, "switch", lambda link: link.get_links(ifname=port)[0].get_attr("IFLA_MASTER")
    )
    labkit.set_port(kept_lab, "node3", master=0)
    before = labkit.frames_from_nodes(kept_lab)
    with runs.started(tmp_path / "run", configuration(topology, "dpdk")) as run:
        while labkit.frames_from_nodes(kept_lab) - before < FIRST_PROBES:
            time.sleep(0.01)
        time.sleep(0.2)
        labkit.set_port(kept_lab, "node3", master=switch)
        result = run.end()
    assert result.status == 0, result.errors
    assert len(complete_phases(result.summary)) == len(labkit.NODES) - 1


def test_a_dead_link_is_named_before_load(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    labkit.set_port(kept_lab, "node2", state="down")
    before = labkit.frames_from_nodes(kept_lab)
    result = runs.run(tmp_path, configuration(topology, "dpdk"))
    assert probes_only(labkit.frames_from_nodes(kept_lab) - before)
    assert result.status == 3
    said = result.sentence
    assert said.startswith("node2 (switch p2)")
    assert "port node2:e0 has had no link for 10 s" in said
    assert result.summary["status"] == "failed"


def test_a_cable_that_is_cut_for_a_while_fails_the_run_whatever_is_measured_again(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    """The phase is not forgotten: its frames are counted, its port is named, the clause fails."""
    clause = {"clause": "no frame is lost", "measure": "lost_frames", "require": "== 0"}
    conf = configuration(topology, "dpdk", window="3s", load="50%", remeasure=3, expect=[clause])
    conf["tests"] = [{"pattern": "pairs"}]

    with runs.started(tmp_path / "run", conf) as run:
        run.wait_for_load()
        labkit.set_port(kept_lab, "node2", state="down")
        time.sleep(0.8)
        labkit.set_port(kept_lab, "node2", state="up")
        result = run.end()
    summary = result.summary
    assert (result.status, summary["status"]) == (1, "complete"), result.errors
    (phase,) = summary["trials"]
    assert phase["lost_frames"] > 100
    (judged,) = summary["expectations"]
    assert (judged["verdict"], judged["value"]) == ("FAIL", phase["lost_frames"])
    named = [suspect["sentence"] for suspect in result.suspects]
    assert any("node2:e0" in sentence for sentence in named), named
    verified = runs.execute("verify", str(result.directory))
    assert verified.returncode == 0, verified.stderr


@pytest.mark.parametrize("tests", [[ALL_TO_ALL], [{"pattern": "pairs"}]], ids=["aapc", "pairs"])
def test_a_flooding_switch_stops_the_run(
    tests: list[Any], kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    port = lab_addresses.switch_port(kept_lab.topology.node("node2"))
    kernel_faults.stop_learning(kept_lab, port)
    before = labkit.counters(kept_lab)
    given = configuration(topology, "dpdk", tests=tests, window="3s", flood_limit=FLOOD_LIMIT)
    result = runs.run(tmp_path, given)
    truth = labkit.subtracted(labkit.counters(kept_lab), before)
    assert result.status == 3
    said = result.sentence
    (count,) = re.findall(r"the switch floods: port node[134]:e0 received (\d+) frames", said)
    assert said.endswith(f"and flood_limit is {FLOOD_LIMIT}")
    assert FLOOD_LIMIT < int(count) < 4 * FLOOD_LIMIT
    assert result.summary["status"] == "partial"
    (flooded,) = result.trials(state="flooded")
    assert flooded["phase"] == 0
    assert flooded["misdelivered_frames"] > FLOOD_LIMIT
    assert flooded["lost_frames"] is None  # nobody waited for what was under way
    # Those whose frames are flooded stop too, long before the phase's end.
    assert probes_only(max(node.frames_from_node for node in truth.values()) // 2)
