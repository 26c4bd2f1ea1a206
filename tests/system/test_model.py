# SPDX-License-Identifier: BSD-3-Clause
"""Labs with a modelled switch: the benchmark finds what the switch has recorded."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import labkit
import runs
from switchbench import labs as lab
from switchbench.labs import state, switches
from switchbench.topology.topology import PROJECT_LABS

pytestmark = [labkit.needs_lab, labkit.needs_switch]

Record = dict[str, Any]

# Without latency probes: the switch writes of them, too, and flows know nothing of them.
SHORT = {"profile": "quick", "warmup": "200ms", "window": "1s", "latency": {"probes": 0}}
CHAIN = {"pattern": "pairs", "partners": "neighbours"}


def site(name: str = "model-good", **model: Any) -> Record:
    """Return a modelled lab of four nodes under a name of this run of the tests."""
    return {"lab": name, "nodes": 4, "model": {"flows": "tags", **model}}


def test_frames_that_come_in_the_next_phase_are_lost_once(tmp_path: Path) -> None:
    """A switch that keeps some of the first phase's frames until the second: they are lost to the
    one, and foreign to the other, in which nothing else is changed by them."""
    fault = {"kind": "reorder", "one_in": 40, "at_most": 8, "measured": True}
    fault |= {"displacement": 10_000, "hold_ms": 2300}
    conf = SHORT | {"site": site(seed=3, faults=[fault]), "transport": "dpdk", "load": "10%"}
    result = runs.run(tmp_path, conf | {"tests": [{"pattern": "aapc", "order": "shift"}]}).complete
    first, second, third = result.trials(pattern="aapc")
    (struck,) = (record["struck"] for record in result.switch("fault"))
    foreign = [0, 0, 0]
    for port in result.records("port"):
        foreign[port["phase"]] += port["unexpected"] if port["phase"] >= 0 else 0
    assert 0 < first["lost_frames"] <= struck  # a frame of the plan's probe may be among them
    assert foreign == [struck - first["lost_frames"], first["lost_frames"], 0]
    for trial in (first, second, third):
        assert trial["delivered_frames"] + trial["lost_frames"] == trial["offered_frames"]
        assert trial["duplicated_frames"] == trial["reordered_frames"] == trial["late_frames"] == 0
    assert second["lost_frames"] == third["lost_frames"] == 0


def test_kernels_reach_each_other_over_the_switch(tmp_path: Path) -> None:
    """By the interface that a port has beside its memif; no frame is unaccounted for."""
    conf = SHORT | {"site": site(), "transport": "tcp", "tests": [CHAIN]}
    result = runs.run(tmp_path, conf).complete
    (tcp,) = result.trials(transport="tcp")
    assert tcp["throughput"]["percent_of_line"] > 70
    for flow in result.switch("flow"):
        gone = flow["delivered"] + flow["astray"] + sum(flow["dropped"].values())
        assert flow["received"] + flow["copies"] == gone, flow
    for port in result.switch("port"):
        assert port["received"] > 1000
        assert port["pause_sent"] == 0


def test_a_lab_that_stays_is_used_again_and_counts_anew(tmp_path: Path) -> None:
    name = f"{labkit.PREFIX}-kept"
    topology = lab.load("model-good", {"nodes": 2})
    made = lab.up(topology, name)
    try:
        switches.clear(name, topology)
        labkit.send_at_once(made.nodes[0], made.nodes[1], 60, 100)
        time.sleep(0.3)
        for expected in (100, 0):
            records = switches.report(name, topology)
            (total,) = (record for record in records if record["type"] == "total")
            assert total["received"] == expected
            switches.clear(name, topology)
    finally:
        lab.down(name)
    assert labkit.leftovers() == []
    assert not list(state.RUN_DIR.glob(f"{name}*"))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Yield a small lab; whatever a test of a crash comes to, it is not left behind."""
    topology = tmp_path / f"{labkit.PREFIX}-small.yaml"
    good = yaml.safe_load((PROJECT_LABS / "model-good.yaml").read_text())
    topology.write_text(yaml.safe_dump({**good, "nodes": {"node[1-2]": {}}}))
    yield topology
    if topology.stem in lab.state.labs():
        lab.down(topology.stem)
    assert labkit.leftovers() == []


def test_a_switch_ends_when_its_run_is_killed(small: Path, tmp_path: Path) -> None:
    given = {"site": {"lab": str(small)}, "transport": "dpdk", "window": "30s", "tests": [CHAIN]}
    with runs.started(tmp_path / "run", given, "--quiet") as run:
        pid = _switch_of(small.stem)
        run.process.kill()
        run.process.wait()
        gone = Path(f"/proc/{pid}")  # freeing its memory takes some time
        runs.wait_until(lambda: not gone.exists(), "the switch has ended", 10)
        with lab.session(lab.load(small)):
            pass  # what the crash has left is removed first
        assert labkit.leftovers() == []


def test_a_trial_whose_switch_died_is_not_complete(small: Path, tmp_path: Path) -> None:
    given = SHORT | {"site": {"lab": str(small)}, "transport": "dpdk", "tests": [CHAIN]}
    with runs.started(tmp_path / "run", given | {"window": "3s"}) as run:
        run.wait_for_load()
        os.kill(_switch_of(small.stem), signal.SIGKILL)
        result = run.end()
    assert result.status == 3
    assert f"module switch of lab {small.stem}, a modelled switch, has ended" in result.errors
    assert [trial["state"] for trial in result.summary["trials"]] != ["complete"]
    assert result.summary["status"] != "complete"


def _switch_of(name: str) -> int:
    records = state.RUN_DIR / f"{name}.m0.ndjson"
    runs.wait_until(
        lambda: records.exists() and '"ready"' in records.read_text(), "a switch comes up", 30
    )
    return int(json.loads(records.read_text().splitlines()[0])["pid"])


@pytest.mark.rows
def test_bad_input_is_one_sentence(text: str, says: str) -> None:
    done = runs.program(str(switches.find_binary()), input=text, timeout=30)
    assert done.returncode in (2, 3)
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
