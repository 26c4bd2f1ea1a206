# SPDX-License-Identifier: BSD-3-Clause
"""Clocks from the configuration to the summary: which words, which document, what a bound does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from configs import read_text
from switchbench.analysis.clocks import ClockTable
from switchbench.base.model import ONE_WAY, ClockChoice
from switchbench.config import effective
from switchbench.plan.compile import compile_run
from switchbench.plan.documents import job_document
from switchbench.records.rows import Histogram

LAB = "switchbench: 1\nsite: {lab: one-switch}\ntests: [{pattern: chain}]\n"


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "choice", "document"),
    [
        ("", ClockChoice(), {"mode": "auto"}),
        ("clock: shared\n", ClockChoice("shared"), {"mode": "shared"}),
        ("clock: {mode: ptp}\n", ClockChoice("ptp"), {"mode": "ptp"}),
        (
            "clock: {mode: ptp, error: 1us}\n",
            ClockChoice("ptp", error_ns=1000),
            {"mode": "ptp", "error_ns": 1000},
        ),
    ],
)
def test_the_key_comes_to_the_job(
    tmp_path: Path, text: str, choice: ClockChoice, document: dict[str, Any]
) -> None:
    reading = read_text(tmp_path, LAB + text)
    run = compile_run(reading)
    assert run.clock == choice
    assert job_document(run, "run")["clock"] == document
    again = read_text(tmp_path, yaml.safe_dump(effective(reading)))
    assert compile_run(again).clock == choice


def test_a_flow_from_a_node_to_itself_is_not_moved_and_has_no_bound() -> None:
    clocks = ClockTable({"node1:e0": "node1"})
    times: dict[str, Histogram] = {ONE_WAY: Histogram(count=1, sum_ns=50, bound_ns=40)}
    clocks.correct((0, 0, 0), {("node1:e0", "node1:e0"): times})
    assert (times[ONE_WAY].mean_ns, times[ONE_WAY].bound_ns) == (50, 0)
