# SPDX-License-Identifier: BSD-3-Clause
"""Ports with several queues, on several workers: nothing is lost or counted twice between them.

The workers sleep, so that two cores hold them beside the lab; but they are two threads on two
cores, and the kernel spreads what each port receives over both of its queues.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import labkit
import runs

pytestmark = labkit.needs_lab

SOURCES = 8
SITE: dict[str, Any] = {"lab": "one-switch", "nodes": 4, "pack": 4, "queues": 2}
TIMED = {"warmup": "200ms", "window": "1s"}

needs_two_cores = pytest.mark.skipif(
    not {0, 1} <= os.sched_getaffinity(0), reason="needs cores 0 and 1"
)


def configuration(site: dict[str, Any], *tests: dict[str, Any]) -> dict[str, Any]:
    """Return a run of these tests with UDP streams that a hash can spread."""
    dpdk = {"header": "ipv4-udp", "udp_sources_per_flow": SOURCES}
    return {
        "site": SITE | site, "transport": "dpdk", "dpdk": dpdk, "tests": list(tests),
        "load": "80%", "worker": "sleep", "profile": "quick",
    }  # fmt: skip


@needs_two_cores
def test_queues_share_a_port(tmp_path: Path) -> None:
    """Streams, frames that are forwarded, and transfers."""
    tests = (
        TIMED | {"pattern": "aapc", "order": "naive", "frame_size": 512},
        TIMED | {"pattern": "chain", "forward": True},
        {"pattern": "pairs", "traffic": "transfer", "transfer_size": "256KiB"},
    )
    result = runs.run(tmp_path, configuration({"cores": "0-1"}, *tests))
    assert result.counted, result.output + result.errors
    for trial in result.trials():
        for flow in result.flows(trial):
            assert flow.destination["frames"] == flow.source["frames"], flow.name
            wrong = ("duplicated", "reordered", "late", "corrupted")
            assert all(flow.destination[key] == 0 for key in wrong), flow.name
            assert flow.source["frames"] > 0
    (node,) = result.summary["run"]["nodes"]
    assert (node["workers"], node["worker"], node["cores"]) == (2, "sleep", [0, 1])
    for port in result.summary["ports"]:
        assert (port["queues"], port["cores"]) == (2, [0, 1])


def test_one_worker_holds_all_queues(tmp_path: Path) -> None:
    result = runs.run(tmp_path, configuration({}, TIMED | {"pattern": "ring", "count": 1}))
    assert result.counted, result.output + result.errors
    assert result.summary["run"]["nodes"][0]["workers"] == 1
    assert sum(trial["lost_frames"] for trial in result.trials()) == 0
