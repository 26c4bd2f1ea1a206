# SPDX-License-Identifier: BSD-3-Clause
"""Runs that were cut off and go on: a suite, and a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recorded import rows_in, told_in, write_tables
from switchbench.base.errors import ConfigurationError
from switchbench.records.directory import write_plan
from switchbench.records.store import Begun, resume
from synthetic import make_run, make_site, make_trial, phase_record, trial_record
from test_controller import Bench, summary_of
from test_search_suite import a_run


def numbers(path: Path) -> list[int]:
    """The trials whose ends the nodes told, in order."""
    return [record["trial"] for record in told_in(path) if record["type"] == "trial"]


def test_a_suite_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run"
    whole = Bench(tmp_path / "whole")
    whole.run = replace(a_run(), site=whole.run.site)
    every = whole.conduct(node1="half", node2="half").trials
    bench = Bench(path)
    bench.run = replace(a_run(), site=bench.run.site)
    assert bench.conduct(node1="half", node2="half-then-dies").status == 3
    run, begun = resume(path)
    assert [trial.id for trial in run.trials] == [0, 1, 2]
    assert begun.whole == {(0, 0), (1, 0), (2, 0)}
    bench.run = run
    outcome = bench.conduct(begun, node1="half", node2="half")
    assert (outcome.faults, outcome.status) == ([], 0)
    assert outcome.trials == every
    assert numbers(path) == [trial.id for trial in every for _ in range(2)]
    bench.run = replace(run, trials=outcome.trials)
    found = summary_of(bench.run, path, outcome)
    assert (found["status"], found["not_measured"]) == ("complete", [])
    ended = replace(whole.run, trials=every)
    assert found["searches"] == summary_of(ended, tmp_path / "whole", outcome)["searches"]


def test_a_plan_goes_on_with_the_trials_that_are_left(tmp_path: Path) -> None:
    path = tmp_path / "run"
    bench = Bench(path)
    site = bench.run.site
    bench.run = make_run(site, *(make_trial(site, number, flows=2) for number in range(4)))
    path.mkdir()
    write_plan(path, bench.run)
    assert bench.conduct(node2="dies-in-1").status == 3
    run, begun = resume(path)
    assert begun == Begun(frozenset({(0, 0)}), {})
    assert run == bench.run
    outcome = bench.conduct(begun)
    assert (outcome.faults, outcome.status) == ([], 0)
    assert sorted(numbers(path)) == [0, 0, 1, 1, 2, 2, 3, 3]
    summary = summary_of(run, path, outcome)
    assert (summary["status"], summary["not_measured"]) == ("complete", [])
    with pytest.raises(ConfigurationError, match="is left to measure: all trials are whole"):
        resume(path)


def test_whole_phases_of_a_trial_stay(tmp_path: Path) -> None:
    site = make_site(2)
    run = make_run(site, make_trial(site, phases=4))
    write_plan(tmp_path, run)
    nodes = ("node1", "node2")
    told = [phase_record(node, phase=phase) for phase in (-1, 0, 2) for node in nodes]
    told += [phase_record("node1", phase=1), phase_record("node2", phase=3, state="stopped")]
    told += [trial_record("node1")]
    write_tables(tmp_path, run, told)
    found, begun = resume(tmp_path)
    assert begun.left == {(0, 0): [1, 3]}
    assert begun.left_of(found.trials[0]) == replace(found.trials[0], chosen=(1, 3))
    kept = rows_in(tmp_path, "phases")
    assert [(each["node"], each["phase"]) for each in kept] == [
        (node, phase) for phase in (0, 2) for node in nodes
    ]
