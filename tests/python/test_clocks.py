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
from switchbench.base.errors import ConfigurationError
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clock: gps", "valid values are auto, shared, ptp or estimated"),
        ("clock: [ptp, shared]", "one value"),
        ("clock: {mode: estimated, error: 1us}", "error goes with mode: ptp"),
        ("clock: {mode: estimated, asymmetry: 1us}", "asymmetry is not a key"),
        ("clock: {mode: ptp, error: 2s}", "at most 1s"),
        ("clock: {mode: ptp, errors: 2us}", "unknown key errors"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_text(tmp_path, f"{LAB}{text}\n")
    assert words in str(error.value)
    assert ":4: " in str(error.value)
    assert "\n" not in str(error.value)


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


def _latency(result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = result["trials"][0]["latency"]["one_way"]
    return found


def test_a_flow_has_its_own_ends_bound_and_is_moved() -> None:
    result = _summary(
        *_two("estimated", "asked for"),
        _clock("node1", 3_000, 4_000),
        _clock("node2", -7_000, 9_000),
        _one_way(40_000, DELAYS),
    )
    latency = _latency(result)
    assert latency["bound"] == 13.0  # and not the 40 us of the worst pair
    assert latency["min"] == pytest.approx(30.0)
    assert latency["max"] == pytest.approx(49.99)
    assert latency["mean"] == pytest.approx(49.995 - 10.0)
    assert latency["p50"] == pytest.approx(39.99, rel=0.01)
    assert latency["pdv"] == pytest.approx(19.97, rel=0.02)
    assert [entry["bound_us"] for entry in result["clocks"]] == [4.0, 9.0]


@pytest.mark.parametrize("unknown", ["offset_ns", "shift_ns", "bound_ns"])
def test_a_node_whose_clock_is_half_known_moves_no_delay(unknown: str) -> None:
    clocks = [_clock("node1", 3_000, 4_000), _clock("node2", -7_000, 9_000) | {unknown: None}]
    latency = _latency(_summary(*_two("estimated", "asked for"), *clocks, _one_way(40_000, DELAYS)))
    assert latency["bound"] == 40.0  # as the record has it
    assert latency["min"] == pytest.approx(40.0)


def test_nodes_of_one_machine_have_no_bound_between_them() -> None:
    ready = _two("estimated", "boot ids differ", "aa")
    clocks = [_clock("node1", 3_000, 4_000), _clock("node2", -7_000, 9_000)]
    latency = _latency(_summary(*ready, *clocks, _one_way(13_000, DELAYS)))
    assert latency["bound"] == 0.0
    assert latency["min"] == pytest.approx(40.0)  # what both thought of it was the same


def test_a_flow_from_a_node_to_itself_is_not_moved_and_has_no_bound() -> None:
    clocks = ClockTable({"node1:e0": "node1"})
    times: dict[str, Histogram] = {ONE_WAY: Histogram(count=1, sum_ns=50, bound_ns=40)}
    clocks.correct((0, 0, 0), [("node1:e0", "node1:e0", times)])
    assert (times[ONE_WAY].mean_ns, times[ONE_WAY].bound_ns) == (50, 0)


def test_a_figure_below_the_bound_is_refused() -> None:
    clocks = [_clock("node1", 0, 20_000), _clock("node2", 0, 30_000)]
    latency = _latency(_summary(*_two("estimated", "asked for"), *clocks, _one_way(0, DELAYS)))
    assert latency["min"] is None
    assert "the clocks may differ by 50 us" in latency["reasons"]["min"]
    assert latency["max"] == pytest.approx(59.99)


def test_delays_that_were_cut_off_have_no_mean() -> None:
    clocks = [_clock("node1", 0, 100), _clock("node2", 2_000, 100)]
    delays = [0] * 10 + DELAYS
    latency = _latency(_summary(*_two("estimated", "asked for"), *clocks, _one_way(0, delays)))
    for name in ("min", "mean", "pdv"):
        assert latency[name] is None
        assert "cut off" in latency["reasons"][name]
    assert latency["p50"] is not None


def test_delays_that_were_cut_off_are_no_percentile() -> None:
    """Moved by what the clocks were wrong by they look like times; nobody knows what they were."""
    clocks = [_clock("node1", 0, 100), _clock("node2", 13_000, 100)]
    delays = [0] * 90 + [40_000] * 10
    latency = _latency(_summary(*_two("estimated", "asked for"), *clocks, _one_way(0, delays)))
    assert latency["p50"] is None
    assert "cut off" in latency["reasons"]["p50"]
    assert latency["max"] is not None


def test_without_a_common_clock_there_is_a_reason() -> None:
    clocks = [_clock("node1", 0, 100), _clock("node2", 0, None)]
    result = _summary(*_two("ptp", "asked for"), *clocks, _one_way(None, DELAYS))
    latency = _latency(result)
    assert latency["max"] is None
    assert latency["reasons"]["max"] == "unknown: the ends have no common clock"
    assert latency["pdv"] is not None
    assert result["clocks"][1]["bound_us"] is None


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
