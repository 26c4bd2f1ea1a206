# SPDX-License-Identifier: BSD-3-Clause
"""Messages there and back on the lab: sizes, single times, computing beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

import labkit
import runs
from switchbench.results import scatter

pytestmark = labkit.needs_lab

SITE = {"lab": "one-switch", "nodes": {"node[1-4]": {}}}
MESSAGES = {"site": SITE, "transport": "tcp", "traffic": "pingpong"}
LINE_MBPS = 100.0
SHAPER_BURST = 160 << 10


def test_sweep(tmp_path: Path) -> None:
    """A large message takes the line's time."""
    tests = [{"pattern": "pairs", "ranks": [2, 4], "message_sizes": [4, "1KiB", "1MiB"]}]
    result = runs.run(tmp_path, MESSAGES | {"warmup": "100ms", "window": "500ms", "tests": tests})
    assert result.status == 0, result.output + result.errors
    curves = result.summary["messages"]["curves"]
    assert [curve["ranks"] for curve in curves] == [2, 4]
    for curve in curves:
        small, _, large = curve["points"]
        assert [point["size"] for point in curve["points"]] == [4, 1024, 1 << 20]
        assert all(point["lost"] == 0 for point in curve["points"])
        assert small["latency_us"]["min"] < large["latency_us"]["min"]
        # A shaper that has rested lets some 128 KiB pass at once (doc/messages.md).
        assert large["latency_us"]["min"] > 8 * ((1 << 20) - SHAPER_BURST) / LINE_MBPS
        assert 0.5 * LINE_MBPS < large["bandwidth_mbps"] < 1.3 * LINE_MBPS
        assert 4 < curve["half_peak_size"] <= curve["ninety_peak_size"] <= curve["peak_size"]
    assert "Messages there and back" in result.output


@pytest.mark.parametrize("partners", ["fixed", "random"])
def test_scatter(tmp_path: Path, partners: str) -> None:
    """Every single time is kept and fitted."""
    pattern = {"pattern": "pairs"} if partners == "fixed" else {"pattern": "aapc", "order": "naive"}
    scattered = {"partners": partners, "sizes": [4, "64KiB"], "count": 100, "compute": 0.3}
    result = runs.run(tmp_path, MESSAGES | {"tests": [pattern | {"scatter": scattered}]})
    assert result.status == 0, result.output + result.errors
    (entry,) = result.summary["messages"]["scatter"]
    senders = 2 if partners == "fixed" else 4
    rows = scatter.read(result.directory).to_pylist()
    assert len(rows) == entry["messages"] == senders * 100
    assert all(4 <= row["size"] <= 65536 and row["src"] != row["dst"] for row in rows)
    assert not (result.directory / scatter.LINES).exists()
    assert entry["bandwidth_mbps"] is None or entry["bandwidth_mbps"] > 0.1 * LINE_MBPS
    assert 0 < entry["latency_us"] < 1e5
    (computing,) = result.summary["messages"]["computing"]
    assert computing["nodes"] == 4
    assert computing["alone_mflops"] > 10
    assert computing["beside_mflops"] > 10
