# SPDX-License-Identifier: BSD-3-Clause
"""Latency against a queue whose delay is known: the lab's, full and empty."""

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


def _run(tmp_path: Path, load: str) -> dict[str, Any]:
    result = runs.run(
        tmp_path,
        {
            # node1 is faster than node2's line: from half of its own on the queue to node2 fills.
            "site": {
                "lab": "one-switch",
                "rate": "10M",
                "queue": "128KiB",
                "overrides": {"node1": {"rate": "20M"}},
            },
            "transport": "dpdk",
            "ranks": [2],
            "load": load,
            "frame_size": 512,
            "warmup": "1s",
            "window": "3s",
            "latency": {"probes": "100/s"},
            "tests": [{"pattern": "chain"}],
        },
    )
    (trial,) = result.trials(pattern="chain")
    latency: dict[str, Any] = trial["latency"]
    return latency


def test_a_full_queue_is_seen_in_the_round_trip(tmp_path: Path) -> None:
    latency = _run(tmp_path, "70%")
    trip, one_way = latency["round_trip"], latency["one_way"]
    assert trip["lost"] > 0  # probes share the queue's fate
    assert trip["count"] >= 100
    assert trip["p50"] == pytest.approx(DRAIN_US, rel=0.1, abs=SLEEP_US)
    assert one_way["p50"] == pytest.approx(DRAIN_US, rel=0.1, abs=SLEEP_US)
    assert one_way["bound"] == 0


def test_an_empty_queue_is_not(tmp_path: Path) -> None:
    latency = _run(tmp_path, "10%")
    trip = latency["round_trip"]
    assert trip["lost"] == 0
    assert trip["count"] == pytest.approx(300, rel=0.2)
    assert trip["p50"] < SLEEP_US
    assert latency["ipdv"]["p50"] < SLEEP_US
