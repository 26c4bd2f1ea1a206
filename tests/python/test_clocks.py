# SPDX-License-Identifier: BSD-3-Clause
"""Clocks from the configuration to the summary: which words, which document, what a bound does."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from configs import read_text
from recorded import fed
from schemas import validate_summary
from switchbench.analysis.clocks import ClockTable
from switchbench.base.model import ONE_WAY, ClockChoice
from switchbench.config import effective
from switchbench.plan.compile import compile_run
from switchbench.plan.documents import job_document
from switchbench.records.latency import Histogram
from switchbench.render.terminal import SummaryPrinter
from synthetic import about, make_run, make_site, make_trial, pair_records
from test_latency import record

LAB = "switchbench: 1\nsite: {lab: one-switch}\ntests: [{pattern: chain}]\n"
OFFSET_NS = 5_000_000_000
DELAYS = list(range(40_000, 60_000, 10))


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


# --- summary --------------------------------------------------------------------------------------


def _ready(node: str, how: str, why: str, clock_id: str) -> dict[str, Any]:
    return {"type": "ready", "node": node, "clock": how, "clock_reason": why, "clock_id": clock_id}


def _clock(node: str, shift_ns: int, bound_ns: int | None) -> dict[str, Any]:
    known = bound_ns is not None
    return {
        "type": "clock",
        "node": node,
        "trial": 0,
        "repeat": 0,
        "phase": 0,
        "offset_ns": OFFSET_NS + shift_ns if known else None,
        "shift_ns": shift_ns if known else None,
        "bound_ns": bound_ns,
    }


def _one_way(bound_ns: int | None, delays: list[int]) -> dict[str, Any]:
    place = {"trial": 0, "repeat": 0, "phase": 0, "network": "lab", "unit": "ns"}
    ends = {"type": "histogram", "node": "node2", "src": "node1:e0", "dst": "node2:e0"}
    return record(delays, kind="one_way", bound_ns=bound_ns) | place | ends


def _summary(*more: dict[str, Any]) -> dict[str, Any]:
    site = make_site()
    records = pair_records()
    summary = fed(make_run(site, make_trial(site)), [*more, *records])
    result = summary.finish(about(), [])
    validate_summary(result)
    return result


def _two(how: str, why: str, ids: str = "ab") -> list[dict[str, Any]]:
    return [_ready(f"node{i + 1}", how, why, ids[i]) for i in range(2)]


def test_a_flow_from_a_node_to_itself_is_not_moved_and_has_no_bound() -> None:
    clocks = ClockTable({"node1:e0": "node1"})
    times: dict[str, Histogram] = {ONE_WAY: Histogram(count=1, sum_ns=50, bound_ns=40)}
    clocks.correct((0, 0, 0), [("node1:e0", "node1:e0", times)])
    assert (times[ONE_WAY].mean_ns, times[ONE_WAY].bound_ns) == (50, 0)


def _printed(result: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=400, color_system=None)
    SummaryPrinter(result, console, every_time=True).print("results")
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (
            lambda: [
                *_two("shared", "boot ids are equal"),
                *(_clock(node, 0, 0) for node in ("node1", "node2")),
            ],
            "clocks: shared (boot ids are equal)",
        ),
        (
            lambda: [
                _ready("node1", "shared", "boot ids are equal", "a"),
                _ready("node2", "estimated", "boot ids differ", "b"),
                _clock("node1", 0, 0),
                _clock("node2", 10, 23_456),
            ],
            "shared (boot ids are equal) in 1 of 2 nodes; estimated (boot ids differ) in 1 of 2 "
            "nodes; each within 23.5 µs",
        ),
        (
            lambda: [
                *_two("ptp", "asked for"),
                *(_clock(node, 0, 400) for node in ("node1", "node2")),
            ],
            "clocks: ptp (asked for); each within 0.4 µs",
        ),
        (
            lambda: [*_two("ptp", "asked for"), _clock("node1", 0, None)],
            "clocks: ptp (asked for); not known in some phase",
        ),
    ],
)
def test_the_table_says_how_clocks_were_known(
    records: Callable[[], list[dict[str, Any]]], words: str
) -> None:
    printed = _printed(_summary(*records(), _one_way(0, DELAYS)))
    assert words in printed
    assert ("each within" in words) == ("each within" in printed)
