# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs on two guests by `launch: ssh`: transports side by side, messages, clocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import guests
import runs
import vmkit

RUN_LIMIT_S = 300
SIZES = (4, 1024, 64 << 10, 1 << 20)

# How fast an emulator on a busy machine is decides clauses and nothing else.
DONE = (0, 1, 4)

vmkit.built("tests/transport/battery_verbs")
pytestmark = vmkit.needs_guests


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
        latency={"probes": 50},
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
    """Both have a curve, nothing is lost, and the run prints both."""
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
    assert "Ping-pong by message size" in result.output


def test_one_way_delays_of_two_machines_have_their_bound_or_a_reason(
    rig: guests.Rig, tmp_path: Path
) -> None:
    """Clocks of machines that are really two."""
    result = run(
        tmp_path,
        rig,
        transport="dpdk",
        load="2Mbit",
        frame_size=512,
        warmup="300ms",
        window="2s",
        drain_timeout="3s",  # an emulated guest may stand still for so long
        drain_max="9s",
        tests=[{"pattern": "pairs"}],
    )
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
