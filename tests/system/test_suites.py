# SPDX-License-Identifier: BSD-3-Clause
"""Suites that search, on a modelled switch whose capacity is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import labkit
import runs

pytestmark = [labkit.needs_lab, labkit.needs_switch]

CAPACITY_PERCENT = 75.0  # of four ports' line rates together
# What the switch's buffers hold of a trial's excess, and what its window has less than that.
HIDDEN_PERCENT = 0.8


def site(**model: Any) -> dict[str, Any]:
    """Four slow ports, so that a busy machine limits few trials, and small buffers."""
    return {"lab": "model-good", "nodes": 4, "rate": "20M", "queue": "16KiB", "model": model}


SUITE = {"suite": "ndr-pdr", "transport": "dpdk", "warmup": "200ms"}


@pytest.mark.slow
def test_a_search_finds_the_planted_capacity(tmp_path: Path) -> None:
    where = site(capacity="60M", input_buffer="16KiB")
    done = runs.run(tmp_path, SUITE | {"site": where})
    assert done.status == 0, done.errors
    assert "Searches" in done.output
    for entry, allowed in zip(done.summary["searches"], (0.0, 0.5), strict=True):
        assert entry["regular"], entry["outcome"]
        assert entry["relative_width"] <= 0.005
        truth = CAPACITY_PERCENT / (1 - allowed / 100)
        assert entry["relevant_upper_bound"] > truth
        assert entry["relevant_lower_bound"] < truth * (1 + HIDDEN_PERCENT / 100)
        assert entry["relevant_lower_bound"] > truth * 0.99


def test_time_limit_ends_a_search_with_what_it_has(tmp_path: Path) -> None:
    done = runs.run(tmp_path, SUITE | {"site": site(), "time_limit": "20s"})
    assert done.status == 2
    assert "The goals cannot be met in time_limit, 20 s for each size" in done.errors
