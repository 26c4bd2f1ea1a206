# SPDX-License-Identifier: BSD-3-Clause
"""Messages there and back on two guests: TCP and RDMA over the same ports, by size."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet

import runs
from test_runs import DONE, RUN_LIMIT_S, pytestmark

__all__ = ["pytestmark"]

SIZES = (4, 1024, 64 << 10, 1 << 20)


@pytest.mark.slow
def test_sweep_over_tcp_and_verbs(tmp_path: Path) -> None:
    """Both have a curve, nothing is lost, and the table says where they cross and half the peak."""
    configuration = {
        "site": {"lab": "verbs-guests", "guests": 2},
        "transports": ["tcp", "verbs"],
        "traffic": "pingpong",
        "message_sizes": list(SIZES),
        "warmup": "200ms",
        "window": "2s",
        "verbs": {"timeout": 18},
        "tests": [{"pattern": "pairs"}],
    }
    result = runs.run(tmp_path, configuration, RUN_LIMIT_S)
    print(result.output)
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


def test_scatter_beside_computing_over_verbs(tmp_path: Path) -> None:
    """Salmon's experiment by RDMA: every single time is kept, the fit and the computing said."""
    count = 30
    scatter = {"partners": "random", "sizes": [4, 16 << 10], "count": count, "compute": 0.5}
    configuration = {
        "site": {"lab": "verbs-guests", "guests": 3},
        "transport": "verbs",
        "traffic": "pingpong",
        "verbs": {"timeout": 18},
        "tests": [{"pattern": "aapc", "order": "naive", "scatter": scatter}],
    }
    result = runs.run(tmp_path, configuration, RUN_LIMIT_S)
    print(result.output)
    assert result.status in DONE, result.errors
    samples = parquet.read_table(result.directory / "samples.parquet").to_pydict()
    assert sorted(samples["src"]) == [rank for rank in range(3) for _ in range(count)]
    assert all(a != b for a, b in zip(samples["src"], samples["dst"], strict=True))
    assert all(4 <= size <= 16 << 10 for size in samples["size"])
    assert all(time_ns > 1000 for time_ns in samples["time_ns"])
    (fit,) = result.summary["messages"]["scatter"]
    assert (fit["transport"], fit["messages"], fit["lost"]) == ("verbs", 3 * count, 0)
    (computing,) = result.summary["messages"]["concurrent_computation"]
    assert computing["nodes"] == 3
    assert computing["compute_only_mflops"] > 0
    assert computing["concurrent_mflops"] > 0
