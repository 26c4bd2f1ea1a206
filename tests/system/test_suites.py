# SPDX-License-Identifier: BSD-3-Clause
"""Suites on a modelled switch whose capacity, buffers, table and reset are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import labkit
import runs
from switchbench.labs import state

pytestmark = [labkit.needs_lab, labkit.needs_switch]

CAPACITY_PERCENT = 75.0  # of four ports' line rates together
# What the switch's buffers hold of a trial's excess, and what its window has less than that.
HIDDEN_PERCENT = 0.8
CAPACITY = {"capacity": "60M", "input_buffer": "16KiB"}


def site(queue: str = "16KiB", **model: Any) -> dict[str, Any]:
    """Return four slow ports, so that a busy machine limits few trials, and small buffers."""
    return {"lab": "model-good", "nodes": 4, "rate": "20M", "queue": queue, "model": model}


def measured(
    folder: Path, suite: str, where: dict[str, Any], *subtests: str, **more: Any
) -> runs.Result:
    """Run a suite, or some of its subtests, to its end."""
    some = {"tests": [{"subtest": one} for one in subtests]} if subtests else {}
    done = runs.run(folder, {"suite": suite, "site": where} | some | more).complete
    return done


def rows(done: runs.Result, subtest: str) -> list[dict[str, Any]]:
    found = []
    for entry in done.summary["suite"]["subtests"]:
        if entry["subtest"] == subtest:
            assert entry["complete"], entry["outcome"]
            found += entry["rows"]
    assert found
    return found


def test_a_search_finds_the_planted_capacity(tmp_path: Path) -> None:
    more = {"transport": "dpdk", "warmup": "200ms"}
    done = measured(tmp_path, "ndr-pdr", site(**CAPACITY), **more)
    assert "Searches" in done.output
    for entry, allowed in zip(done.summary["searches"], (0.0, 0.5), strict=True):
        assert entry["regular"], entry["outcome"]
        assert entry["relative_width"] <= 0.005
        truth = CAPACITY_PERCENT / (1 - allowed / 100)
        assert entry["relevant_upper_bound"] > truth
        assert entry["relevant_lower_bound"] < truth * (1 + HIDDEN_PERCENT / 100)
        assert entry["relevant_lower_bound"] > truth * 0.99


def test_rfc2544_finds_the_planted_capacity_and_its_loss(tmp_path: Path) -> None:
    clause = {"measure": "rfc2544.throughput_percent", "require": ">= 74"}
    more = {"frame_size": 1518, "expect": [clause]}
    done = measured(tmp_path, "rfc2544", site(**CAPACITY), "throughput", "loss-rate", **more)
    (row,) = rows(done, "throughput")
    assert 0.99 < row["throughput_percent"] / CAPACITY_PERCENT < 1 + HIDDEN_PERCENT / 100
    losses = rows(done, "loss-rate")
    assert losses[0]["loss"] == pytest.approx(100 - CAPACITY_PERCENT, abs=1.0)
    assert [row["lost_frames"] for row in losses[-2:]] == [0, 0]
    assert "Throughput (RFC 2544, 26.1)" in done.output


def test_rfc2544_finds_the_rate_of_a_slow_port(tmp_path: Path) -> None:
    """Its host can send no more either, which is the device's doing."""
    slow = [{"kind": "slow", "port": "node2", "rate": "10M"}]
    done = measured(tmp_path, "rfc2544", site(faults=slow), "throughput", frame_size=128)
    (row,) = rows(done, "throughput")
    assert row["throughput_percent"] == pytest.approx(50.0, rel=0.03)


def test_rfc2544_finds_the_planted_recovery(tmp_path: Path) -> None:
    """A port of half the rate is overloaded; it drops all for 150 ms behind that."""
    slow = [{"kind": "slow", "port": "node2", "rate": "10M"}]
    where = site(faults=slow, recovery_ms=150)
    done = measured(tmp_path, "rfc2544", where, "throughput", "recovery", frame_size=1518)
    (row,) = rows(done, "recovery")
    assert row["recovery_trials"] == 2
    assert row["recovery_time"] == pytest.approx(150, abs=2 * row["recovery_resolution"])
    assert row["recovery_time_max"] == pytest.approx(150, abs=2 * row["recovery_resolution"])


def test_rfc2544_finds_the_planted_reset(tmp_path: Path) -> None:
    """Below line rate, where nothing waits that the reset drops, and where floods leave room."""
    commands = state.RUN_DIR / f"{Path(labkit.own('model-good')).stem}.m0.in"
    reset = {"command": ["sh", "-c", f"echo reset 500 > {commands}"]}
    more = {"frame_size": 1518, "load": "95%", "device_reset": reset}
    where = site() | {"nodes": 2}
    done = measured(tmp_path, "rfc2544", where, "throughput", "reset", **more)
    (row,) = rows(done, "reset")
    frame_ms = 8 * 1538 / 20e6 * 1e3
    assert row["reset_trials"] == 2
    assert row["reset_time"] == pytest.approx(500, abs=2 * frame_ms)
    assert row["reset_time_max"] == pytest.approx(500, abs=2 * frame_ms)


def test_rfc9004_finds_the_planted_buffer(tmp_path: Path) -> None:
    done = measured(tmp_path, "rfc9004", site(queue="64KiB"), frame_size=1518)
    (row,) = rows(done, "back-to-back")
    # Three senders to one: of each frame per port, two wait (lab/switch: floor((B/S - 1)/(N - 1))).
    assert row["back_to_back"] == pytest.approx((65536 // 1518 - 1) // 2, abs=1)


def test_the_frames_of_a_burst_follow_listed_shares(tmp_path: Path) -> None:
    """Ports of 100 %, 1 % and, of two flows, 20 % of the load."""
    listed = [[0, 1, "100%"], [2, 1, "1%"], [3, 0, "15%"], [3, 2, "5%"]]
    conf = {
        "tests": [{"pattern": "flows", "flows": listed}], "traffic": "burst", "transport": "dpdk",
        "burst": {"frames": 1000, "count": 2}, "load": "99%", "frame_size": 1518,
    }  # fmt: skip
    done = runs.run(tmp_path, conf | {"site": site(queue="64KiB")}).complete
    (trial,) = done.trials()
    sent = {(f.source["src"][:5], f.source["dst"][:5]): f.source for f in done.flows(trial)}
    assert {ends: side["frames"] for ends, side in sent.items()} == {
        ("node1", "node2"): 2000, ("node3", "node2"): 20,
        ("node4", "node1"): 300, ("node4", "node3"): 100,
    }  # fmt: skip


def test_rfc8239_finds_the_planted_buffer_in_all_procedures(tmp_path: Path) -> None:
    """Of each port what waits, beside the frame that is leaving."""
    exact = {
        "buffer-efficiency": ("efficiency_buffer", 1, 1), "buffer-port": ("port_buffer", 4, 1),
        "buffer-port-pairs": ("pair_buffer", 1, 1),
        "buffer-many-to-one": ("buffer", 6, 5),  # one per ingress
    }  # fmt: skip
    where = site(queue="64KiB") | {"nodes": 6}
    done = measured(tmp_path, "rfc8239", where, *exact, frame_size=1518)
    for subtest, (prefix, variants, frames) in exact.items():
        found = rows(done, subtest)
        assert len(found) == variants
        for row in found:
            assert row[f"{prefix}_frames"] == pytest.approx(65536 // 1518 - 1, abs=frames)


def test_rfc8239_incast_sends_by_tcp_and_udp_in_one_phase(tmp_path: Path) -> None:
    """The burst's frames wait behind what TCP keeps in the queue of the egress port."""
    more = {"frame_size": 1518, "transport": "udp"}
    done = measured(tmp_path, "rfc8239", site(queue="64KiB"), "incast", **more)
    found = rows(done, "incast")
    assert len(found) == 3
    for row in found:
        assert 10 < row["goodput"] < 20
        assert 65536 * 8 / 20 * 0.5 < row["incast_latency_max"] < 65536 * 8 / 20 * 1.5
        assert row["incast_latency_min"] <= row["incast_latency"] <= row["incast_latency_max"]
    burst = round(0.05 * 0.9998 * 20e6 / (8 * 1538))
    for trial in done.trials(transport="udp"):
        assert {flow.source["frames"] for flow in done.flows(trial)} == {burst}
    assert len(done.trials(transport="tcp")) == 3
    assert {found["kind"] for found in done.summary["findings"]} <= {"oversubscribed"}


@pytest.mark.parametrize("size", [256, 32768])
def test_address_capacity_is_the_planted_one(tmp_path: Path, size: int) -> None:
    asked = {"addresses_max": 2 * size, "learning_fps": 20_000}
    where = site(table={"size": size}) | {"nodes": 3, "rate": "100M"}
    done = measured(tmp_path, "rfc2889", where, "address-capacity", suite_parameters=asked)
    (row,) = rows(done, "address-capacity")
    assert row["address_capacity"] == size


def test_the_learning_rate_is_the_planted_one(tmp_path: Path) -> None:
    where = site(table={"size": 65536, "learn_per_s": 400})
    asked = {"learning_addresses": 1000, "learning_fps_max": 2000}
    done = measured(tmp_path, "rfc2889", where, "learning-rate", suite_parameters=asked)
    (row,) = rows(done, "learning-rate")
    assert row["address_learning_rate"] == pytest.approx(400, rel=0.05)


@pytest.mark.parametrize("filters", [True, False])
def test_errored_frames_are_filtered_where_that_is_planted(tmp_path: Path, filters: bool) -> None:
    done = measured(tmp_path, "rfc2889", site(drop_undersize=filters), "errored-frames")
    found = rows(done, "errored-frames")
    assert [row["errored_size"] for row in found] == [36, 63, 1519, 9018]
    assert [row["errored_filtered"] for row in found] == [float(filters)] * 2 + [None] * 2
    for row in found[:2]:
        assert row["errored_forwarded"] == (0 if filters else row["errored_offered"])


def test_a_broadcast_frame_takes_the_planted_time(tmp_path: Path) -> None:
    where = site(latency_ns=100_000_000)
    done = measured(tmp_path, "rfc2889", where, "broadcast-latency", frame_size=64)
    (row,) = rows(done, "broadcast-latency")
    assert row["latency_trials"] == 3
    # A switch whose core was taken away dates what came meanwhile back.
    assert row["broadcast_latency_min"] == pytest.approx(100_000, rel=0.2)
    assert row["broadcast_latency_max"] == pytest.approx(100_000, rel=0.2)


@pytest.mark.parametrize("blocks", [True, False])
def test_blocking_and_backpressure_of_rfc2889(tmp_path: Path, blocks: bool) -> None:
    """A slow port behind one queue per input blocks others; a switch that sends PAUSE loses
    nothing."""
    slow = [{"kind": "slow", "port": "node4", "rate": "10M"}]
    where = (
        site(queueing="input", faults=slow)
        if blocks
        # At twice the rate the sender's ring is full, and its trials are the tester's.
        else site(queue="256KiB", pause={"send": True}) | {"rate": "10M"}
    )
    done = measured(tmp_path, "rfc2889", where, "congestion-control", frame_size=1518)
    (row,) = rows(done, "congestion-control")
    assert (row["head_of_line_blocking"], row["backpressure"]) == (blocks, not blocks)


@pytest.mark.parametrize("blocks", [False, True])
def test_blocking_is_seen_with_the_load_split_over_four_ports(tmp_path: Path, blocks: bool) -> None:
    """RFC 8239, 5.2, procedure 2: only a switch that queues at its inputs blocks."""
    where = site(queueing="input" if blocks else "output") | {"nodes": 8, "rate": "10M"}
    test = {"subtest": "head-of-line", "variant": "all groups, port 1 first"}
    done = measured(tmp_path, "rfc8239", where, frame_size=1518, tests=[test])
    (row,) = rows(done, "head-of-line")
    assert row["blocking"] == blocks
    assert (row["blocked_loss"] > 1) == blocks
