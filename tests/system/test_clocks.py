# SPDX-License-Identifier: BSD-3-Clause
"""Clocks in runs on one machine, where the truth is known: one clock, or one set off by a time
namespace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import labkit
import runs
from switchbench.base.programs import find_engine

LIMIT_S = 60
AHEAD_S = 5000
SET_OFF = ("unshare", "--time", "--monotonic", str(AHEAD_S), "--fork", "--")
ONE_AT_A_TIME_US = 25_000  # what two sleeping workers on shared cores may add
UNSYNCHRONIZED = "calls its clock not synchronized"


# --- two nodes on loopback, without ports --------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """A node that has ended."""

    status: int
    records: list[dict[str, Any]]
    log: str

    @property
    def ready(self) -> dict[str, Any]:
        """What it said when all nodes had met."""
        (record,) = (record for record in self.records if record["type"] == "ready")
        return record

    @property
    def error(self) -> str:
        """Why it gave up."""
        found = [record["text"] for record in self.records if record["type"] == "error"]
        assert len(found) == 1, self.log
        return str(found[0])


def _documents(clock: dict[str, Any], udp_port: int) -> str:
    addresses = [f"127.0.0.1:{udp_port + i}" for i in range(2)]
    nodes = [{"name": f"n{i}", "control": {"address": addresses[i]}} for i in range(2)]
    job = {
        "protocol": 2,
        "run": f"clocks-{os.getpid()}",
        "controlled": False,
        "heartbeat_timeout_ms": 5000,
        "barrier_timeout_ms": 10_000,
        "clock": clock,
        "nodes": nodes,
    }
    peers = {"addresses": addresses, "key": "5c" * 32}
    parts: list[dict[str, Any]] = [{"job": job}, {"peers": peers}, {"quit": True}]
    return "".join(yaml.safe_dump(part, explicit_start=True, explicit_end=True) for part in parts)


def _nodes(
    clock: dict[str, Any], second: Sequence[str] = (), first: Sequence[str] = ()
) -> list[Ended]:
    """Both nodes from start to end; `first` and `second` start them."""
    text = _documents(clock, 20_000 + os.getpid() % 20_000)
    engine = str(find_engine())
    processes = [
        subprocess.Popen(
            [*prefix, engine, "--name", f"n{i}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i, prefix in enumerate((first, second))
    ]
    try:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(text)
            process.stdin.flush()
        said = [process.communicate(timeout=LIMIT_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [
        Ended(process.returncode, [json.loads(line) for line in out.splitlines()], log)
        for process, (out, log) in zip(processes, said, strict=True)
    ]


def _set_off() -> tuple[str, ...]:
    """Starts a program whose CLOCK_MONOTONIC is ahead; skips where the kernel can't."""
    tried = subprocess.run([*SET_OFF, "true"], check=False, capture_output=True)
    if tried.returncode != 0:
        pytest.skip("no time namespaces here, or no right to make one")
    return SET_OFF


@pytest.mark.parametrize("mode", ["auto", "shared"])
def test_one_machine_shares_a_clock(mode: str) -> None:
    for node in _nodes({"mode": mode}):
        assert node.status == 0, node.log
        assert node.ready["clock"] == "shared"
        assert node.ready["clock_bound_ns"] == 0
        assert node.ready["clock_reason"] == (
            "asked for" if mode == "shared" else "boot ids are equal"
        )


def test_one_clock_is_estimated_when_asked_for() -> None:
    first, second = _nodes({"mode": "estimated"})
    assert (first.status, second.status) == (0, 0), first.log + second.log
    assert first.ready["clock_bound_ns"] == 0
    assert first.ready["clock_id"] == second.ready["clock_id"]
    bound_ns = second.ready["clock_bound_ns"]
    assert 0 < bound_ns < 20e6
    assert abs(second.ready["clock_offset_ns"]) <= bound_ns


def test_a_time_namespace_is_another_clock() -> None:
    first, second = _nodes({"mode": "auto"}, _set_off())
    assert (first.status, second.status) == (0, 0), first.log + second.log
    ready = second.ready
    assert (ready["clock"], ready["clock_reason"]) == ("estimated", "time namespaces differ")
    assert first.ready["clock_id"] != ready["clock_id"]
    assert abs(ready["clock_offset_ns"] + AHEAD_S * 10**9) <= ready["clock_bound_ns"] < 20e6


def test_a_clock_that_is_not_shared_is_refused() -> None:
    first, second = _nodes({"mode": "shared"}, _set_off())
    assert second.status == 2
    assert "clock: shared, but n1 and n0 are in different time namespaces" in second.error
    assert "clock: estimated" in second.error
    assert first.status != 0


def test_ptp_wants_a_synchronized_kernel() -> None:
    nodes = _nodes({"mode": "ptp"})
    if all(node.status == 0 for node in nodes):  # somebody steers this machine's clock
        for node in nodes:
            assert node.ready["clock"] == "ptp"
            assert node.ready["clock_bound_ns"] > 0
        return
    # Who is first refuses, and the other may hear of it before it looks at its own.
    assert {node.status for node in nodes} == {2}
    for node in nodes:
        assert UNSYNCHRONIZED in node.log
        assert "clock: estimated" in node.log


def _kernel(directory: Path, ahead_us: int) -> tuple[str, ...]:
    """Starts a program on a kernel that says that its clock is synchronized."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    library = directory / "kernel_clock.so"
    source = Path(__file__).with_name("kernel_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return ("env", f"LD_PRELOAD={library}", f"AHEAD_US={ahead_us}")


def test_ptp_has_the_kernels_error_as_its_bound(tmp_path: Path) -> None:
    kernel = _kernel(tmp_path, 0)
    for node in _nodes({"mode": "ptp"}, kernel, kernel):
        assert node.status == 0, node.log
        assert node.ready["clock"] == "ptp"
        assert 800_000 < node.ready["clock_bound_ns"] < 900_000
        realtime_ns = time.time_ns() - time.monotonic_ns()
        assert abs(node.ready["clock_offset_ns"] - realtime_ns) < 10e6


def test_a_stated_error_takes_the_kernels_place(tmp_path: Path) -> None:
    kernel = _kernel(tmp_path, 0)
    for node in _nodes({"mode": "ptp", "error_ns": 5_000_000}, kernel, kernel):
        assert node.ready["clock_bound_ns"] == 5_000_000


def test_a_synchronized_clock_that_is_wrong_is_found_out(tmp_path: Path) -> None:
    """By 200 ms, which no datagram on loopback takes."""
    first, second = _nodes({"mode": "ptp"}, _kernel(tmp_path, 0), _kernel(tmp_path, 200_000))
    assert (first.status, second.status) == (0, 0), first.log + second.log
    assert 199e6 < second.ready["clock_bound_ns"] < 300e6


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ({"mode": "estimated", "error_ns": 5}, "error_ns goes with ptp"),
        ({"mode": "ptp", "error_ns": -5}, "job.clock.error_ns is 0 to 1000000000, not -5"),
        ({"mode": "gps"}, "job.clock.mode has no value 'gps'; valid values: auto"),
        ({"mode": 7}, "job.clock.mode has no value '7'; valid values: auto"),
    ],
)
def test_bad_words_are_refused(clock: dict[str, Any], words: str) -> None:
    for node in _nodes(clock):
        assert node.status == 2
        assert words in node.error


# --- whole runs on a lab -------------------------------------------------------------------------


def _run(directory: Path, clock: Any) -> runs.Result:
    """One flow into a queue that is full, through a path that is slower one way."""
    directory.mkdir()
    return runs.run(
        directory,
        {
            "site": {
                "lab": "one-switch",
                "rate": "10M",
                "queue": "64KiB",
                "overrides": {"node1": {"rate": "20M"}},
            },
            "clock": clock,
            "transport": "dpdk",
            "ranks": [2],
            "load": "70%",
            "frame_size": 512,
            "warmup": "500ms",
            "window": "1500ms",
            "latency": {"probes": "50/s"},
            "tests": [{"pattern": "chain"}],
        },
    )


def _measured_clocks(result: runs.Result) -> list[dict[str, Any]]:
    """Return the nodes' clocks of the measured phases: none is reported of the probe's."""
    return [record for record in result.records("clock") if record["phase"] >= 0]


def _one_way(result: runs.Result) -> dict[str, Any]:
    (trial,) = result.trials(pattern="chain")
    found: dict[str, Any] = trial["latency"]["one_way"]
    return found


@labkit.needs_lab
def test_estimated_delays_are_the_shared_clocks(tmp_path: Path) -> None:
    shared = _run(tmp_path / "shared", "shared")
    estimated = _run(tmp_path / "estimated", "estimated")
    truth, found = _one_way(shared), _one_way(estimated)
    assert truth["bound"] == 0
    assert 0 < found["bound"] < 20_000
    for name in ("p50", "p90"):
        assert found[name] == pytest.approx(truth[name], abs=found["bound"] + ONE_AT_A_TIME_US), (
            name
        )
    clocks = _measured_clocks(estimated)
    assert {record["node"] for record in clocks} >= {"node1", "node2"}
    for record in clocks:  # the truth is 0
        assert abs(record["offset_ns"]) <= record["bound_ns"], record
    assert "clocks: estimated (asked for); each within" in estimated.output


@labkit.needs_lab
def test_delays_below_the_bound_are_refused(tmp_path: Path) -> None:
    result = runs.run(
        tmp_path,
        {
            "site": {"lab": "one-switch"},
            "clock": "estimated",
            "transport": "dpdk",
            "ranks": [2],
            "load": "5%",
            "frame_size": 512,
            "warmup": "200ms",
            "window": "500ms",
            "tests": [{"pattern": "chain"}],
        },
    )
    found = _one_way(result)
    for record in _measured_clocks(result):
        assert abs(record["offset_ns"]) <= record["bound_ns"], record
    for name, value in found.items():
        if name in ("min", "p50", "p99", "max"):
            assert value is None or value >= found["bound"]
