# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmark says of a network that was hurt in a known way: a link that sags for a moment,
frames that the switch drops, a host that stands still."""

from __future__ import annotations

import os
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

pytestmark = [labkit.needs_lab, pytest.mark.usefixtures("nothing_left")]

SAG_S = 0.5


def change_rate(lab: labs.Lab, node: str, rate_bps: int) -> None:
    """Set the rate at which the switch's port towards a node sends from now on."""
    kernel_faults.limit(lab, f"p{lab.node(node).index}", rate_bps, burst_bytes=40_000)


def configuration(topology: Path, transport: str, **more: Any) -> runs.Record:
    site, tests = {"lab": str(topology)}, [{"pattern": "pairs", "partners": "neighbours"}]
    what = {"site": site, "transport": transport, "tests": tests}
    return what | {"load": "60%", "warmup": "200ms", **more}


def test_a_link_that_sags_for_a_moment_is_found(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    """The switch's port towards node2 has a tenth of its rate for half a second of four."""
    conf = configuration(topology, "dpdk", window="4s", interval="100ms")
    with runs.started(tmp_path / "run", conf) as run:
        run.wait_for_load(phase=0)
        time.sleep(1.0)
        began_s = time.monotonic()
        change_rate(kept_lab, "node2", 2_000_000)
        time.sleep(SAG_S)
        change_rate(kept_lab, "node2", 20_000_000)
        lasted_s = time.monotonic() - began_s
        result = run.end()
    assert lasted_s < 2 * SAG_S, "the machine was too busy to say anything"
    (trial,) = result.trials()
    interval = trial["intervals"]
    assert interval["count"] >= 20
    low = interval["lowest"][0]
    pair = ("node1:e0", "node2:e0")
    assert (low["src"], low["dst"]) == pair
    assert low["percent_of_mean"] < 50
    assert low["to_s"] - low["from_s"] < 0.5
    others = [entry["percent_of_mean"] for entry in interval["lowest"] if entry["src"] not in pair]
    assert len(others) == 2
    assert min(others) > low["percent_of_mean"]


@pytest.mark.parametrize("transport", ["dpdk", "udp"])
def test_what_the_switch_drops_went_missing_in_the_network(
    transport: str, kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    """A port of the switch has a quarter of its rate: neither host is named for the loss."""
    change_rate(kept_lab, "node4", 5_000_000)
    conf = configuration(topology, transport, window="1s", latency={"probes": 0})
    before = labkit.counters(kept_lab)["node4"].dropped_to_node
    result = runs.run(tmp_path, conf)
    (trial,) = result.trials()
    found = trial["loss_location"]
    assert found["lost_frames"] > 100
    assert found["consistent"] is True
    dropped = labkit.counters(kept_lab)["node4"].dropped_to_node - before
    assert trial["offered_frames"] == trial["delivered_frames"] + dropped
    hosts = found["sender_host"] + found["receiver_host"]
    assert found["network"] == found["lost_frames"] - hosts > 100


def test_a_host_that_was_away_is_named_and_not_the_network(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    """node2 stands still while its window should open; what came meanwhile waits in its ring."""
    conf = configuration(topology, "dpdk", warmup="1500ms", window="1s")
    with runs.started(tmp_path / "run", conf) as run:
        progress = partial(run.records, "progress")
        runs.wait_until(lambda: any(r["phase"] == 0 for r in progress()), "it warms up", 60)
        pid = labkit.node_pid(kept_lab.name, "node2")
        os.kill(pid, signal.SIGSTOP)
        try:
            runs.wait_until(
                lambda: any((r["phase"], r["step"]) == (0, "window") for r in progress()),
                "the others' window is open",
                20,
            )
            time.sleep(0.1)
        finally:
            os.kill(pid, signal.SIGCONT)
        result = run.end()
    (trial,) = result.trials()
    limits = {limit["port"]: limit for limit in trial["tester_limited"]}
    assert limits["node2:e0"]["window_error_percent"] > 1
    assert trial["loss_location"]["network"] == 0
    assert {found["kind"] for found in result.summary["findings"]} <= {"host"}
    assert not any("no line carries that" in alarm for alarm in result.summary["warnings"])
    flow = next(
        record
        for record in result.records("flow")
        if (record["dst"], record["side"]) == ("node2:e0", "destination") and record["phase"] >= 0
    )
    assert runs.payload_bps(flow) < 0.62 * 20e6 * 1500 / 1538
