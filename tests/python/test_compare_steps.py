# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench compare` of what goes by steps: IMB's functions, kernels."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.special import stdtrit

import recorded
import synthetic
from compared import compared
from switchbench.base.model import Trial
from switchbench.records.directory import SUMMARY, replace_json
from test_steps import execution, kernel_run, steps_trial

Times = Sequence[tuple[float, float]]  # of both ranks, by repeat
RANKS = ("node1:e0", "node2:e0")


def function(number: int, name: str, size: int, times: Times, **more: Any) -> list[Any]:
    """A function's trials with their records."""
    return [
        (trial, [execution(trial, rank, [us]) for rank, us in zip(RANKS, both, strict=True)])
        for repeat, both in enumerate(times)
        for trial in [
            steps_trial(
                number + repeat, repeat=repeat, pattern={"name": name}, sizes=(size,), point=number,
                **more,
            )
        ]
    ]  # fmt: skip


def made(path: Path, *parts: list[tuple[Trial, list[dict[str, Any]]]]) -> Path:
    """A results directory of these trials; all flows carry the same."""
    trials = [trial for part in parts for trial, _ in part]
    site = synthetic.make_site()
    understood = {"switchbench": 1, "site": {"lab": "one-switch"}, "tests": [{"pattern": "any"}]}
    run = replace(synthetic.make_run(site, *trials), effective=understood)
    records = [synthetic.hello(node) for node in ("node1", "node2")]
    for trial, executions in (one for part in parts for one in part):
        place: dict[str, Any] = {"trial": trial.id, "repeat": trial.repeat}
        for phase in range(trial.phases):
            for ends in (RANKS, RANKS[::-1]):
                records += [
                    synthetic.tcp_side(side, *ends, 10**6, 10**6, **place, phase=phase)
                    for side in ("source", "destination")
                ]
            records += [record | {"phase": phase} for record in executions]
            records += [
                synthetic.phase_record(node, **place, phase=phase) for node in ("node1", "node2")
            ]
        records += [synthetic.trial_record(node, **place) for node in ("node1", "node2")]
    return recorded.results(path, run, records)


def rows(
    capsys: pytest.CaptureFixture[str], *words: object
) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows by the pair's title and measure."""
    _, one = compared(capsys, *words)
    titles = [pair["baseline"]["title"] for pair in one["pairs"]]
    return {(titles[row["pair"]], row["measure"]): row for row in one["plans"]}


STEADY: Times = [(99.0, 100.0), (100.0, 101.0), (101.0, 102.0)]
SLOWER: Times = [(2 * one, 2 * other) for one, other in STEADY]
SENDRECV = "sendrecv, 2 ranks: tcp, 1 KiB messages"


def test_times_of_functions_have_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Less time is better, more of IMB's rate; over repeats they are as sure as rates."""
    a = made(tmp_path / "a", function(0, "sendrecv", 1024, STEADY))
    b = made(tmp_path / "b", function(0, "sendrecv", 1024, SLOWER))
    found = rows(capsys, a, b)
    t_avg, t_max, rate = (found[SENDRECV, name] for name in ("t_avg", "t_max", "mbytes_s"))
    assert (t_avg["baseline"], t_avg["other"], t_avg["unit"]) == (100.5, 201.0, "us")
    assert (t_max["baseline"], t_max["other"]) == (101.0, 202.0)
    assert (t_avg["verdict"], rate["verdict"]) == ("worse", "worse")
    assert (t_avg["better"], rate["better"]) == ("less", "more")
    assert t_avg["repeats"] == [3, 3]
    # Welch: s^2 is 1 and 4 of three each, and runs may differ by 10 % (0.05 % is rounded).
    shared, rounding = ((part * 100.5) ** 2 + (part * 201) ** 2 for part in (0.1, 0.0005))
    freedom = (5 / 3 + shared) ** 2 / ((1 / 9 + 16 / 9) / 2)
    assert t_avg["degrees_of_freedom"] == pytest.approx(freedom)
    half = stdtrit(freedom, 0.975) * (5 / 3 + shared + rounding) ** 0.5
    assert t_avg["ci_high"] - t_avg["difference"] == pytest.approx(half, rel=1e-3)
    assert rate["baseline"] == pytest.approx(sum(2 * 1024 / t for t in (100, 101, 102)) / 3)
    assert rows(capsys, b, a)[SENDRECV, "t_avg"]["verdict"] == "better"


def test_empty_messages_have_times_and_no_rates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 Mbit/s of a barrier would be called the same."""
    parts = function(0, "barrier", 0, STEADY)
    a = made(tmp_path / "a", parts)
    summary = json.loads((a / SUMMARY).read_text())
    for entry in (*summary["plans"], *summary["trials"]):
        entry["delivered_bytes"] = 0
    replace_json(a / SUMMARY, summary)
    found = rows(capsys, a, f"other={a}")
    assert {name for _, name in found} == {"t_avg", "t_max"}


def kernels(number: int, times: Times) -> list[Any]:
    """Repeats of a kernel of 15 iterations."""
    found = []
    for repeat, both in enumerate(times):
        trial, records = kernel_run("tcp", number, both)
        trial = replace(trial, id=number + repeat, repeat=repeat)
        place = {"trial": trial.id, "repeat": repeat}
        found.append((trial, [record | place for record in records]))
    return found


def test_kernels_by_the_time_of_the_whole_benchmark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = made(tmp_path / "a", kernels(0, STEADY))
    b = made(tmp_path / "b", kernels(0, SLOWER))
    found = rows(capsys, a, b)
    ((_, row),) = ((key, row) for key, row in found.items() if key[1] == "whole")
    assert row["baseline"] == pytest.approx(15 * 101e-6)  # the slower rank's mean
    assert (row["unit"], row["better"], row["verdict"]) == ("s", "less", "worse")


def test_transports_of_one_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What goes by steps has no load; kernels and empty messages have no size to be matched by."""
    steps: list[Any] = []
    number = 0
    makers: tuple[Callable[..., list[Any]], ...] = (
        lambda n, **more: function(n, "barrier", 0, STEADY, **more),
        lambda n, **more: function(n, "sendrecv", 1024, STEADY, **more),
    )
    for transport in ("tcp", "verbs"):
        for maker in makers:
            some = maker(number, transport=transport, test=len(steps))
            steps.append(some)
            number += len(some)
    _, one = compared(capsys, made(tmp_path / "both", *steps), "--by", "transport")
    assert [pair["baseline"]["title"] for pair in one["pairs"]] == [
        "barrier, 2 ranks: tcp, messages by steps",
        SENDRECV,
    ]
    assert [one["alone"], one["differing"]] == [[], []]
