# SPDX-License-Identifier: BSD-3-Clause
"""Trials by steps on a lab: a collective with verified results, and the phases of an ordinary
pattern without barriers."""

from __future__ import annotations

from pathlib import Path

import pytest

import labkit
import runs

pytestmark = labkit.needs_lab

SITE = {"lab": "one-switch", "nodes": {"node[1-3]": {}}, "burst": "16KiB"}
LINE_MBPS = 100.0
VECTOR = 16384


def test_steps(tmp_path: Path) -> None:
    """One run over tcp: real sums, all to all by steps."""
    tests = [
        {"pattern": "allreduce", "algorithm": "ring", "message_sizes": [4, VECTOR],
         "compute": True, "repetitions": 20},
        {"pattern": "aapc", "sync": "local", "message_size": VECTOR, "repetitions": 20},
        {"pattern": "pingpong", "ranks": [2], "message_sizes": [0, VECTOR], "repetitions": 40,
         "batch": 4},
        {"pattern": "nas_is", "ranks": [2], "repetitions": 2},
    ]  # fmt: skip
    result = runs.run(tmp_path, {"site": SITE, "transport": "tcp", "tests": tests}).complete
    reduce, exchange, pingpong = result.summary["steps"]["functions"]

    small, large = reduce["points"]
    assert [point["size"] for point in reduce["points"]] == [4, VECTOR]
    assert [point["verified"] for point in reduce["points"]] == [3 * 20] * 2
    for point in (small, large):
        assert 0 < point["repetition_us"]["mean"] <= point["repetition_us"]["slowest_rank"]

    # Of three ranks each sends two messages in a repetition, and no line is faster than it is.
    (point,) = exchange["points"]
    assert point["verified"] is None
    assert point["repetition_us"]["slowest_rank"] > 2 * 8 * VECTOR / LINE_MBPS * 0.7
    assert 0 < point["port_mbps"] < LINE_MBPS

    empty, full = pingpong["points"]
    assert empty["repetition_us"]["mean"] < full["repetition_us"]["mean"]
    assert (full["repetitions"], full["batch"]) == (40, 4)
    (kernel,) = result.summary["steps"]["kernels"]
    assert (kernel["iterations"], kernel["repetitions"]) == (10, 2)
    assert kernel["total_s"] == pytest.approx(10 * kernel["iteration_us"] / 1e6, rel=1e-3)
    assert "slowest rank" in result.output
    assert "nas_is S" in result.output
    assert (result.directory / "report.html").stat().st_size > 100_000


def test_a_rank_that_idles_for_long_waits(tmp_path: Path) -> None:
    """Of three ranks in pairs one only meets the others, and a batch takes 40 s."""
    site = SITE | {"rate": "1Mbit"}
    test = {"pattern": "pairs", "sync": "local", "message_size": "1MiB", "batch": 5,
            "repetitions": 5}  # fmt: skip
    result = runs.run(tmp_path, {"site": site, "transport": "tcp", "tests": [test]}).complete
    (point,) = result.summary["steps"]["functions"][0]["points"]
    assert point["repetitions"] == 5
    assert point["repetition_us"]["mean"] > 8e6
