# SPDX-License-Identifier: BSD-3-Clause
"""Latency against queues whose delay is known, over frames and over TCP, and how it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import labkit
import runs

pytestmark = labkit.needs_lab

LINE_BPS = 10e6
QUEUE_BYTES = 128 * 1024
DRAIN_US = QUEUE_BYTES * 8 / LINE_BPS * 1e6  # 105 ms
SLEEP_US = 25_000  # what two sleeping workers on shared cores may add
TIMED = {"warmup": "1s", "window": "3s", "latency": {"probes": 100}}


def _site(tmp_path: Path) -> dict[str, Any]:
    """Return a lab with a name of this run of the tests."""
    return {"lab": str(labkit.write_topology(tmp_path, *labkit.NODES, rate="10M"))}


def test_a_full_queue_is_seen_in_the_round_trip(tmp_path: Path) -> None:
    """node1 is faster than node2's line: from half of its own on the queue to node2 fills."""
    site = _site(tmp_path) | {"queue": "128KiB", "overrides": {"node1": {"rate": "20M"}}}
    conf = {"site": site, "transport": "dpdk", "ranks": [2], "load": "70%", "frame_size": 512}
    result = runs.run(tmp_path, TIMED | conf | {"tests": [{"pattern": "chain"}]})
    (trial,) = result.summary["trials"]
    latency = trial["latency"]
    trip, one_way = latency["round_trip"], latency["one_way"]
    assert trip["lost"] > 0  # probes share the queue's fate
    assert trip["count"] >= 100
    assert trip["p50"] == pytest.approx(DRAIN_US, rel=0.1, abs=SLEEP_US)
    assert one_way["p50"] == pytest.approx(DRAIN_US, rel=0.1, abs=SLEEP_US)
    assert one_way["bound"] == 0
    # Load and probes are counted apart, and what is lost of each: together all that left.
    ports = {record["port"]: record for record in result.records("port") if record["phase"] == 0}
    sent, came = ports["node1:e0"], ports["node2:e0"]
    guests = sent["hardware_sent"] - sent["sent_frames"] - sent["probes_sent"]
    assert 0 <= guests <= sent["arp_nd_sent"]  # one may have left before the phase's first look
    assert sent["probes_received"] == trip["count"]
    assert came["probes_received"] == came["probes_sent"] == sent["probes_sent"] - trip["lost"]
    # node2's line was offered more than it has: this loss is expected, and blames no network.
    (one,) = result.summary["location"]["expected"]
    assert one["ports"] == ["node2:e0"]
    assert one["frames"] == pytest.approx(trial["lost_frames"], rel=0.01)
    assert one["frames"] > 1000


def test_probes_beside_streams(tmp_path: Path) -> None:
    """Over TCP probes have a connection of their own; at full load they wait in its queues."""
    conf = {"transport": "tcp", "loads": ["50%", "100%"], "tests": [{"pattern": "pairs"}]}
    result = runs.run(tmp_path, TIMED | conf | {"site": _site(tmp_path)}).complete
    assert result.summary["location"]["suspects"] == []  # TCP itself loses what fills the queues
    half, full = (trial["latency"] for trial in result.trials(pattern="pairs"))
    for latency in (half, full):
        trip = latency["round_trip"]
        assert latency["one_way"] is None  # a stream has no frames to stamp
        assert trip["lost"] == 0
        assert trip["count"] == pytest.approx(4 * 300, rel=0.25)
        assert trip["p99_9"] is not None
        assert trip["min"] < trip["p50"] < trip["p99"] < trip["max"]
        assert trip["worst"]["src"].startswith("node")
        assert trip["p50"] < 2 * DRAIN_US + SLEEP_US  # both ways
    assert full["round_trip"]["p50"] > 5_000  # behind what the streams have in the queues
    table = runs.execute("table", str(result.directory), "--all").stdout
    assert "\nround trip" in table
    assert "RTT" in result.output
