# SPDX-License-Identifier: BSD-3-Clause
"""Messages there and back on the lab, by the kernel and around it: sizes, and messages that are
lost."""

from __future__ import annotations

from pathlib import Path

import labkit
import runs

pytestmark = labkit.needs_lab

# With shapers that let nothing pass at once but two frames: else messages are faster than the line.
SITE = {"lab": "one-switch", "nodes": {"node[1-4]": {}}, "burst": "4KiB"}
MESSAGES = {"site": SITE, "transports": ["tcp", "dpdk"], "traffic": "pingpong"}
LINE_MBPS = 100.0


def test_sweep(tmp_path: Path) -> None:
    """A large message takes the line's time."""
    small = {"pattern": "pairs", "ranks": [2, 4], "message_sizes": [4, "1KiB"]}
    tests = [small, small | {"message_sizes": ["1MiB"], "transports": ["tcp"]}]
    result = runs.run(
        tmp_path, MESSAGES | {"warmup": "100ms", "window": "500ms", "tests": tests}
    ).complete
    curves = result.summary["messages"]["curves"]
    assert sorted((curve["transport"], curve["ranks"]) for curve in curves) == [
        ("dpdk", 2), ("dpdk", 4), ("tcp", 2), ("tcp", 4),
    ]  # fmt: skip
    for curve in curves:
        small, *_, large = curve["points"]
        sizes = [4, 1024] if curve["transport"] == "dpdk" else [4, 1024, 1 << 20]
        assert [point["size"] for point in curve["points"]] == sizes
        assert all(point["lost"] == 0 for point in curve["points"])
        if curve["transport"] == "tcp":
            assert small["latency_us"]["min"] < large["latency_us"]["min"]
            assert 0.5 * LINE_MBPS < large["bandwidth_mbps"] < LINE_MBPS
    assert "Ping-pong by message size" in result.output


def test_lost_messages(tmp_path: Path) -> None:
    """A switch that drops frames loses messages: they are counted, and the others are not."""
    fault = {"kind": "drop", "one_in": 100, "measured": True}
    site = {"lab": "model-good", "nodes": {"node[1-2]": {}}, "model": {"faults": [fault]}}
    sizes = {"message_sizes": ["1KiB"], "window": "3s"}
    test = {"pattern": "pairs", "transport": "dpdk", "traffic": "pingpong"}
    result = runs.run(tmp_path, {"site": site, "tests": [test | sizes]}).complete
    (curve,) = result.summary["messages"]["curves"]
    (point,) = curve["points"]
    assert point["round_trips"] >= 5
    assert point["lost"] > 0
    dropped = sum(port["dropped"]["fault"] for port in result.switch("port"))
    assert point["lost"] <= dropped
    assert "did not come back" in result.output
