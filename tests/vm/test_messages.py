# SPDX-License-Identifier: BSD-3-Clause
"""Messages there and back on two guests: TCP and RDMA over the same ports, by size."""

from __future__ import annotations

from pathlib import Path

import runs
from test_runs import DONE, RUN_LIMIT_S, pytestmark

__all__ = ["pytestmark"]

SIZES = (4, 1024, 64 << 10, 1 << 20)


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
    for words in ("Messages there and back", "half from", "Which path to use"):
        assert words in result.output
