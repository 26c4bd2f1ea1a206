# SPDX-License-Identifier: BSD-3-Clause
"""Clocks in runs on one machine, where the truth is known: one clock, or one set off by a time
namespace."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import labkit
import nodekit
import runs
from nodekit import NodeRuns, Record
from switchbench.base.programs import find_engine

AHEAD_S = 5000
SET_OFF = ("unshare", "--time", "--monotonic", str(AHEAD_S), "--fork", "--")
ONE_AT_A_TIME_US = 25_000  # what two sleeping workers on shared cores may add


# --- two nodes on loopback, without ports --------------------------------------------------------


def _nodes(clock: Record, second: Sequence[str] = (), first: Sequence[str] = ()) -> NodeRuns:
    """Run both nodes from start to end; `first` and `second` start them."""
    words = [str(find_engine()), "--name"]
    processes = [
        nodekit.start([*before, *words, f"node{i}"]) for i, before in enumerate((first, second), 1)
    ]
    meeting = nodekit.meeting(nodekit.free_addresses(), clock=clock)
    return nodekit.conduct(processes, meeting + '{"quit": true}\n')


def _ready(*args: Any) -> list[Record]:
    """Return the `ready` records of two nodes."""
    found = _nodes(*args)
    assert found.status == [0, 0], found.text
    return found.of("ready")


def _set_off() -> tuple[str, ...]:
    """Start a program with a CLOCK_MONOTONIC that is ahead; skip where the kernel can't."""
    tried = subprocess.run([*SET_OFF, "true"], check=False, capture_output=True)
    if tried.returncode != 0:
        pytest.skip("no time namespaces here, or no right to make one")
    return SET_OFF


def test_one_machine_shares_a_clock() -> None:
    for ready in _ready({"mode": "auto"}):
        assert (ready["clock"], ready["clock_reason"]) == ("shared", "boot ids are equal")
        assert ready["clock_bound_ns"] == 0


def test_a_time_namespace_is_another_clock() -> None:
    first, second = _ready({"mode": "auto"}, _set_off())
    assert (second["clock"], second["clock_reason"]) == ("estimated", "time namespaces differ")
    assert first["clock_id"] != second["clock_id"]
    assert abs(second["clock_offset_ns"] + AHEAD_S * 10**9) <= second["clock_bound_ns"] < 20e6


def test_ptp_wants_a_synchronized_kernel() -> None:
    found = _nodes({"mode": "ptp"})
    if found.status == [0, 0]:  # somebody steers this machine's clock
        for ready in found.of("ready"):
            assert ready["clock"] == "ptp"
            assert ready["clock_bound_ns"] > 0
        return
    # Who is first refuses, and the other may hear of it before it looks at its own.
    assert found.status == [2, 2]
    for log in found.logs:
        assert "reports an unsynchronized clock" in log
        assert "clock: estimated" in log


def _kernel(directory: Path, ahead_us: int) -> tuple[str, ...]:
    """Starts a program on a kernel that says that its clock is synchronized."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    library = directory / "kernel_clock.so"
    source = Path(__file__).with_name("kernel_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return ("env", f"LD_PRELOAD={library}", f"AHEAD_US={ahead_us}")


def test_ptp_has_the_kernels_error_as_its_bound_or_what_is_stated(tmp_path: Path) -> None:
    kernel = _kernel(tmp_path, 0)
    for ready in _ready({"mode": "ptp"}, kernel, kernel):
        assert ready["clock"] == "ptp"
        assert 800_000 < ready["clock_bound_ns"] < 900_000
        realtime_ns = time.time_ns() - time.monotonic_ns()
        assert abs(ready["clock_offset_ns"] - realtime_ns) < 10e6
    for ready in _ready({"mode": "ptp", "error_ns": 5_000_000}, kernel, kernel):
        assert ready["clock_bound_ns"] == 5_000_000


def test_a_synchronized_clock_that_is_wrong_is_found_out(tmp_path: Path) -> None:
    """By 200 ms, which no datagram on loopback takes."""
    _, second = _ready({"mode": "ptp"}, _kernel(tmp_path, 0), _kernel(tmp_path, 200_000))
    assert 199e6 < second["clock_bound_ns"] < 300e6


# --- whole runs on a lab -------------------------------------------------------------------------


def _run(directory: Path, clock: str, load: str, **site: Any) -> runs.Result:
    """Run one flow through a lab."""
    what = yaml.safe_load((labkit.DATA / "clocks.yaml").read_text())
    where = {"site": {"lab": "one-switch", **site}, "clock": clock, "load": load}
    return runs.run(directory, what | where)


def _check_clocks(result: runs.Result) -> None:
    """The nodes' clocks of the measured phases differ by less than their bound: the truth is 0."""
    clocks = [record for record in result.records("clock") if record["phase"] >= 0]
    assert {record["node"] for record in clocks} >= {"node1", "node2"}
    for record in clocks:
        assert abs(record["offset_ns"]) <= record["bound_ns"], record


def _one_way(result: runs.Result) -> Record:
    (trial,) = result.trials(pattern="chain")
    found: Record = trial["latency"]["one_way"]
    return found


@labkit.needs_lab
def test_estimated_delays_are_the_shared_clocks(tmp_path: Path) -> None:
    """Into a queue that is full, through a path that is slower one way."""
    slow = {"rate": "10M", "queue": "64KiB", "overrides": {"node1": {"rate": "20M"}}}
    shared, estimated = (
        _run(tmp_path / clock, clock, "70%", **slow) for clock in ("auto", "estimated")
    )
    truth, found = _one_way(shared), _one_way(estimated)
    assert truth["bound"] == 0
    assert 0 < found["bound"] < 20_000
    for name in ("p50", "p90"):
        near = pytest.approx(truth[name], abs=found["bound"] + ONE_AT_A_TIME_US)
        assert found[name] == near, name
    _check_clocks(estimated)
    assert "clocks: estimated (asked for); each within" in estimated.output
