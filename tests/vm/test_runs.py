# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs on two guests by `launch: ssh`: transports side by side, messages, clocks, a host
that dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import guests
import runs
import vmkit

RUN_LIMIT_S = 300
SIZES = (4, 1024, 64 << 10, 1 << 20)

# How fast an emulator on a busy machine is decides clauses and nothing else.
DONE = (0, 1, 4)

pytestmark = [
    vmkit.needs_guests,
    pytest.mark.skipif(not vmkit.has_verbs(), reason="this build of the engine has no verbs"),
]


@pytest.fixture(scope="module")
def rig() -> Iterator[guests.Rig]:
    with guests.boot(vmkit.machines(2)) as rig:
        yield rig


def run(directory: Path, rig: guests.Rig, **keys: Any) -> runs.Result:
    configuration = {"site": vmkit.site(rig), "profile": "quick", "repeat": 1, **keys}
    if "verbs" in (keys.get("transport"), *keys.get("transports", ())):
        configuration["verbs"] = {"timeout": 18}
    result = runs.run(directory, configuration, timeout_s=RUN_LIMIT_S)
    print(result.output)
    return result


def test_three_transports_on_the_same_port(rig: guests.Rig, tmp_path: Path) -> None:
    result = run(
        tmp_path,
        rig,
        transports=["tcp", "dpdk", "verbs"],
        load="8Mbit",
        warmup="200ms",
        window="1s",
        latency={"probes": "50/s"},
        tests=[{"pattern": "pairs"}],
    )
    assert result.status in DONE, result.errors
    for transport in ("tcp", "dpdk", "verbs"):
        (trial,) = result.trials(transport=transport)
        assert trial["state"] == "complete"
        for flow in result.flows(trial):
            assert flow.delivered_payload_bps > 1e6, flow.name
        trip = trial["latency"]["round_trip"]
        assert trip["count"] > 10, transport  # of 100, less what an emulated machine was away
        assert trip["lost"] == 0, transport
        assert 10 < trip["min"] <= trip["p50"] <= trip["max"], transport
    assert "Transports side by side" in result.output


def test_pingpong_over_tcp_and_verbs(rig: guests.Rig, tmp_path: Path) -> None:
    """Both have a curve, nothing is lost, and the table says where they cross and half the peak."""
    result = run(
        tmp_path,
        rig,
        transports=["tcp", "verbs"],
        traffic="pingpong",
        message_sizes=list(SIZES),
        warmup="200ms",
        window="2s",
        tests=[{"pattern": "pairs"}],
    )
    assert result.status in DONE, result.errors
    curves = {curve["transport"]: curve for curve in result.summary["messages"]["curves"]}
    assert set(curves) == {"tcp", "verbs"}
    for curve in curves.values():
        assert tuple(point["size"] for point in curve["points"]) == SIZES
        # An emulated machine may stand still for a whole window.
        measured = [point for point in curve["points"] if point["round_trips"]]
        assert len(measured) >= 2
        for point in measured:
            assert point["lost"] == 0
            assert 0 < point["latency_us"]["min"] <= point["latency_us"]["mean"]
    for words in ("Ping-pong by message size", "Peak bandwidth", "Which path to use"):
        assert words in result.output


def test_scatter_beside_computing_over_verbs(rig: guests.Rig, tmp_path: Path) -> None:
    """Salmon's experiment by RDMA: every single time is kept, and what computing costs."""
    count = 30
    scatter = {"partners": "random", "sizes": [4, 16 << 10], "count": count, "compute": 0.5}
    result = run(
        tmp_path,
        rig,
        transport="verbs",
        traffic="pingpong",
        tests=[{"pattern": "aapc", "order": "naive", "scatter": scatter}],
    )
    assert result.status in DONE, result.errors
    samples = parquet.read_table(result.directory / "samples.parquet").to_pydict()
    assert sorted(samples["src"]) == [rank for rank in range(2) for _ in range(count)]
    assert all(a != b for a, b in zip(samples["src"], samples["dst"], strict=True))
    assert all(4 <= size <= 16 << 10 for size in samples["size"])
    assert all(time_ns > 1000 for time_ns in samples["time_ns"])
    (computing,) = result.summary["messages"]["concurrent_computation"]
    assert computing["nodes"] == 2
    assert computing["compute_only_mflops"] > 0
    assert computing["concurrent_mflops"] > 0


# --- clocks of machines that are really two -------------------------------------------------------


def run_clocks(directory: Path, rig: guests.Rig, clock: str) -> runs.Result:
    return run(
        directory,
        rig,
        clock=clock,
        transport="dpdk",
        load="2Mbit",
        frame_size=512,
        warmup="300ms",
        window="2s",
        drain_timeout="3s",  # an emulated guest may stand still for so long
        drain_max="9s",
        tests=[{"pattern": "pairs"}],
    )


def test_one_way_delays_of_two_machines_have_their_bound_or_a_reason(
    rig: guests.Rig, tmp_path: Path
) -> None:
    result = run_clocks(tmp_path, rig, "auto")
    assert result.status in DONE, result.errors
    clocks = {entry["node"]: entry for entry in result.summary["clocks"]}
    assert (clocks["node1"]["clock"], clocks["node2"]["clock"]) == ("shared", "estimated")
    assert clocks["node2"]["reason"] == "boot ids differ"
    assert clocks["node2"]["bound_us"] > 0
    (trial,) = result.trials(pattern="pairs")
    times = trial["latency"]["one_way"]
    assert times["bound"] == pytest.approx(clocks["node2"]["bound_us"])
    for name in ("min", "p50", "max"):
        if times[name] is None:
            assert times["reasons"][name]
        else:
            assert times[name] >= times["bound"]
    # A round trip takes as long as both ways, within what the clocks allow.
    round_trip = trial["latency"]["round_trip"]
    if times["p50"] is not None and round_trip["p50"] is not None:
        assert times["p50"] <= round_trip["max"] + times["bound"]


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ("shared", "node2 and node1 are different machines (their boot ids differ)"),
        # On one machine: tests/system/test_clocks.py.
        ("ptp", "reports an unsynchronized clock"),
    ],
)
def test_what_two_machines_do_not_have_is_rejected(
    rig: guests.Rig, tmp_path: Path, clock: str, words: str
) -> None:
    result = run_clocks(tmp_path, rig, clock)
    assert result.status == 2
    assert words in result.errors + result.output


# --- faults; last, as it ends a guest -------------------------------------------------------------


def test_a_host_that_dies_in_a_run_is_named(rig: guests.Rig, tmp_path: Path) -> None:
    configuration = {
        "site": vmkit.site(rig),
        "transport": "tcp",
        "load": "8Mbit",
        "window": "20s",
        "tests": [{"pattern": "pairs"}],
    }
    with runs.started(tmp_path, configuration) as run:
        run.wait_for_load(limit_s=90)
        rig["node2"].monitor("system_reset")  # -no-reboot: QEMU ends
        _, errors = run.process.communicate(timeout=90)
    assert run.process.returncode == 3
    assert "node2" in errors
