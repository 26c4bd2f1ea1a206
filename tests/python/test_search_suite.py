# SPDX-License-Identifier: BSD-3-Clause
"""Suites that search: planned, measured trial by trial, and read again from their results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from configs import LAB, compile_text
from switchbench.analysis.searches import search_entries, suite_trials, trial_loss
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Load, Run
from switchbench.plan.compile import refuse_too_long
from switchbench.plan.suite import range_of, searches_of
from switchbench.records.plan_file import read_plan
from switchbench.search.trials import TrialLoss
from synthetic import make_run, make_site, make_trial
from test_controller import Bench, summary_of

SUITE = LAB + "suite: ndr-pdr\ntransport: dpdk\n"


def entry(trial: int, offered: int | None, lost: int | None, **changes: Any) -> dict[str, Any]:
    values = {"trial": trial, "offered_frames": offered, "lost_frames": lost, "state": "complete"}
    return values | {"tester_limited": []} | changes


def a_run() -> Run:
    site = make_site(2)
    document = {"id": 0, "window_ns": 5 * 10**9, "interval_ns": 2 * 10**9}
    searches = searches_of([make_trial(site, document=document)])
    return make_run(site, suite="ndr-pdr", searches=searches)


def test_a_suite_is_one_search_per_size(tmp_path: Path) -> None:
    run = compile_text(tmp_path, SUITE + "frame_sizes: [64, 1518]\nprofile: standard\n")
    assert run.trials == ()
    assert [trial.sizes for trial in run.searches] == [(64,), (1518,)]
    assert [trial.pattern["name"] for trial in run.searches] == ["pairs"] * 2
    assert run.effective["suite"] == "ndr-pdr"
    assert run.planned == run.searches
    assert 100 < run.expected_s < 400
    assert range_of(run.searches[0]).max == 95.0
    assert range_of(run.searches[0]).unit == "% of line"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("transport: tcp\n", "pairs over tcp (stream) has none: use dpdk or udp"),
        (
            "transport: dpdk\nexpect: [{measure: lost_frames, require: '== 0'}]\n",
            "are not judged yet where a suite chooses the trials",
        ),
    ],
)
def test_refused(tmp_path: Path, more: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        compile_text(tmp_path, LAB + "suite: ndr-pdr\n" + more)
    assert words in str(caught.value)


def test_too_little_time_is_refused_with_an_estimate(tmp_path: Path) -> None:
    run = compile_text(tmp_path, SUITE + "time_limit: 30s\n")
    with pytest.raises(
        ConfigurationError, match=r"time_limit, 30 s for each size: they take pairs"
    ):
        refuse_too_long(run)
    refuse_too_long(compile_text(tmp_path, SUITE + "time_limit: 10min\n"))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry(0, 1000, 3), entry(0, 500, 0)], TrialLoss(1500, 3, 1.0)),
        ([entry(0, 1000, -1)], TrialLoss(1000, 0, 1.0)),
        ([entry(0, 10, 1, tester_limited=["late"])], TrialLoss(10, 1, 1.0, None, True)),
        ([entry(0, 10, None)], TrialLoss(0, 0, 1.0, None, True)),
        ([entry(0, 10, 0, state="partial")], TrialLoss(0, 0, 1.0, None, True)),
        ([entry(0, 0, 0)], TrialLoss(0, 0, 1.0, None, True)),
        ([], TrialLoss(0, 0, 1.0, None, True)),
    ],
)
def test_what_a_trial_lost(entries: list[dict[str, Any]], expected: TrialLoss) -> None:
    assert trial_loss(1.0, entries) == expected


def test_trials_are_ordinary_ones(tmp_path: Path) -> None:
    run = a_run()
    chosen = suite_trials(run)
    trial = next(chosen)
    trials, entries = [], []
    try:
        while True:
            trials.append(trial)
            lost = max(0, round(10**6 * (1 - 40 / (trial.load.percent or 0))))
            entries.append(entry(trial.id, 10**6, lost))
            trial = chosen.send(entries[-1:])
    except StopIteration:
        pass
    assert [trial.id for trial in trials] == list(range(len(trials)))
    assert trials[0].load == Load(percent=95.0)
    for trial in trials:
        assert trial.document["load"] == {"percent": trial.load.percent}
        assert trial.document["window_ns"] == trial.document["interval_ns"] == 10**9
        assert (trial.window_s, trial.search) == (1.0, 0)
    measured = replace(run, trials=tuple(trials))
    ndr, pdr = search_entries(measured, entries)
    assert ndr["relevant_lower_bound"] <= 40 < ndr["relevant_upper_bound"]
    assert pdr["relevant_lower_bound"] <= 40 / 0.995 < pdr["relevant_upper_bound"]
    assert ndr["relative_width"] <= 0.005
    assert (ndr["regular"], ndr["trials"]) == (True, len(trials))
    cut, _ = search_entries(measured, entries[:5])
    assert cut["outcome"] == "The search has not ended yet."


def test_a_run_searches_and_its_results_say_the_same_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.run = replace(a_run(), site=bench.run.site)
    outcome = bench.conduct(node1="half", node2="half")
    assert (outcome.faults, outcome.status) == ([], 0)
    bench.run = replace(bench.run, trials=outcome.trials)
    assert bench.watcher.grown == list(outcome.trials)
    assert read_plan(tmp_path / "run").trials == outcome.trials
    assert read_plan(tmp_path / "run").searches == bench.run.searches
    summary = summary_of(bench.run, tmp_path / "run", outcome)
    assert (summary["status"], summary["not_measured"]) == ("complete", [])
    ndr, pdr = summary["searches"]
    assert (ndr["goal"], pdr["goal"]) == ("ndr", "pdr")
    for goal, truth in ((ndr, 50.0), (pdr, 50 / 0.995)):
        assert goal["relevant_lower_bound"] <= truth * 1.001
        assert truth < goal["relevant_upper_bound"] * 1.001
        assert goal["regular"]
    assert summary["statistics"] == [] or all(
        len(entry["trials"]) == 1 for entry in summary["statistics"]
    )


def test_a_search_that_was_cut_short_keeps_what_it_has(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.run = replace(a_run(), site=bench.run.site)
    outcome = bench.conduct(node1="half", node2="die")
    assert outcome.status == 3
    summary = summary_of(replace(bench.run, trials=outcome.trials), tmp_path / "run", outcome)
    assert summary["searches"][0]["regular"] is False
