# SPDX-License-Identifier: BSD-3-Clause
"""Clocks of machines that are really two: guests with boot ids, and oscillators, of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import runs
import vmkit

pytestmark = vmkit.needs_guests

RUN_LIMIT_S = 300
DONE = (0, 1, 4)  # how fast an emulator is decides clauses and nothing else


def _run(directory: Path, clock: Any) -> runs.Result:
    return runs.run(
        directory,
        {
            "site": {"lab": "verbs-guests", "guests": 2},
            "clock": clock,
            "transport": "dpdk",
            "load": "2Mbit",
            "frame_size": 512,
            "warmup": "300ms",
            "window": "2s",
            "drain_timeout": "3s",  # an emulated guest may stand still for so long
            "drain_max": "9s",
            "repeat": 1,
            "tests": [{"pattern": "pairs"}],
        },
        RUN_LIMIT_S,
    )


def test_one_way_delays_of_two_machines_have_their_bound_or_a_reason(tmp_path: Path) -> None:
    result = _run(tmp_path, "auto")
    print(result.output)
    assert result.status in DONE, result.errors
    clocks = {entry["node"]: entry for entry in result.summary["clocks"]}
    assert (clocks["node1"]["clock"], clocks["node2"]["clock"]) == ("shared", "estimated")
    assert clocks["node2"]["reason"] == "boot ids differ"
    assert clocks["node2"]["bound_us"] > 0
    (trial,) = result.trials(pattern="pairs")
    times = trial["latency"]["one_way"]
    print(times)
    assert times["bound"] == pytest.approx(clocks["node2"]["bound_us"])
    for name in ("min", "p50", "max"):
        if times[name] is None:
            assert times["reasons"][name]
        else:
            assert times[name] >= times["bound"]
    # What goes there and comes back takes as long as both ways, within what the clocks allow.
    round_trip = trial["latency"]["round_trip"]
    if times["p50"] is not None and round_trip["p50"] is not None:
        assert times["p50"] <= round_trip["max"] + times["bound"]


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ("shared", "node2 and node1 are different machines (their boot ids differ)"),
        # On one machine: tests/system/test_clocks.py.
        pytest.param("ptp", "calls its clock not synchronized", marks=pytest.mark.slow),
    ],
)
def test_what_two_machines_do_not_have_is_refused(tmp_path: Path, clock: str, words: str) -> None:
    result = _run(tmp_path, clock)
    assert result.status == 2
    assert words in result.errors + result.output
    assert vmkit.traces() == set()
