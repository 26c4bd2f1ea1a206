# SPDX-License-Identifier: BSD-3-Clause
"""Phases that the tester limited are measured again, and stand where they were planned."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from recorded import replace_rows, rows_in, told_in
from switchbench.analysis.remake import gather, remade
from switchbench.base.errors import ConfigurationError, RunError
from switchbench.base.model import Run
from switchbench.plan.chosen import trials_again
from switchbench.plan.documents import trial_document
from switchbench.records import store
from switchbench.records.directory import read_plan, write_plan
from switchbench.records.store import finish
from switchbench.records.summary_form import summary_schema
from synthetic import about, make_run, make_site, make_trial
from test_controller import Bench


def busy_bench(path: Path, rounds: int) -> Bench:
    """Two trials; the first, and its first repetition, find node1's host busy."""
    bench = Bench(path)
    site = bench.run.site
    trials = [make_trial(site, number) for number in (0, 1)]
    bench.run = make_run(site, *trials, remeasure=rounds)
    return bench


def summary_of(run: Run, path: Path) -> dict[str, Any]:
    return gather(run, path).finish(about(), [])


def trials_in(path: Path) -> set[int | None]:
    return {record.get("trial") for record in told_in(path)}


def test_a_limited_phase_is_measured_until_it_is_not(tmp_path: Path) -> None:
    bench = busy_bench(tmp_path / "run", 3)
    outcome = bench.conduct(node1="busy")
    assert outcome.faults == []
    assert [
        (trial.id, trial.again, trial_document(trial)["phases"]) for trial in outcome.again
    ] == [
        (2, 0, [0]),
        (3, 0, [0]),
    ]
    assert all(trial_document(trial)["connectivity_check"] is False for trial in outcome.again)
    run = finish(bench.path, replace(bench.run, again=outcome.again))
    assert (run.again, run.remeasured) == ((), 1)
    assert read_plan(bench.path).remeasured == 1
    summary = summary_of(run, bench.path)
    assert [(e["trial"], e["phase"], e["tester_limited"]) for e in summary["trials"]] == [
        (0, 0, []),
        (1, 0, []),
    ]
    assert summary["run"]["remeasured_phases"] == 1
    assert trials_in(bench.path) == {None, 0, 1}
    assert trials_in(bench.path / "superseded") == {0, 2, 3}


def test_so_many_rounds_and_no_more(tmp_path: Path) -> None:
    bench = busy_bench(tmp_path / "run", 1)
    outcome = bench.conduct(node1="busy")
    assert [trial.id for trial in outcome.again] == [2]
    run = finish(bench.path, replace(bench.run, again=outcome.again))
    limits = [entry["tester_limited"] for entry in summary_of(run, bench.path)["trials"]]
    assert [[limit["port"] for limit in some] for some in limits] == [["node1:e0"], []]
    quiet = busy_bench(tmp_path / "quiet", 3)  # nothing is measured again
    assert quiet.conduct().again == ()
    assert finish(quiet.path, quiet.run) is quiet.run
    assert not (quiet.path / "superseded").exists()


def test_what_was_cut_short_replaces_nothing(tmp_path: Path) -> None:
    """The command was killed in the middle of it: `table` puts the records in order."""
    bench = busy_bench(tmp_path / "run", 1)
    outcome = bench.conduct(node1="busy")
    events = rows_in(bench.path, "events")
    ends = [i for i, row in enumerate(events) if (row["type"], row["trial"]) == ("trial", 2)]
    replace_rows(bench.path, "events", events[: ends[-1]])
    run = replace(bench.run, again=outcome.again)
    write_plan(bench.path, run)
    begun = {"errors": [], "exit_status": 3, "run": about()}
    summary = remade(read_plan(bench.path), bench.path, begun)
    assert [bool(entry["tester_limited"]) for entry in summary["trials"]] == [True, False]
    assert "remeasured_phases" not in summary["run"]


def test_a_node_that_ends_twice_does_not_stand_for_another(tmp_path: Path) -> None:
    bench = busy_bench(tmp_path / "run", 1)
    outcome = bench.conduct(node1="busy")
    events = rows_in(bench.path, "events")
    one, other = (row for row in events if (row["type"], row["trial"]) == ("trial", 2))
    replace_rows(bench.path, "events", [row for row in events if row != other] + [one])
    run = finish(bench.path, replace(bench.run, again=outcome.again))
    assert run.remeasured == 0


def test_a_full_disk_leaves_the_records_as_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = busy_bench(tmp_path / "run", 1)
    outcome = bench.conduct(node1="busy")
    before = told_in(bench.path)

    def full(*_arguments: Any, **_more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.pq.ParquetWriter, "write_table", full)
    with pytest.raises(RunError, match="No space left on device: the tables stay as they were"):
        finish(bench.path, replace(bench.run, again=outcome.again))
    assert told_in(bench.path) == before
    assert not [*bench.path.glob("*.parquet"), *bench.path.glob(".*.new")]


def test_a_phase_in_which_the_network_lost_frames_is_not_measured_again(tmp_path: Path) -> None:
    """Its host was busy, and its cable was cut: the loss stays in counts and findings."""
    bench = busy_bench(tmp_path / "run", 3)
    outcome = bench.conduct(node1="cut")
    assert outcome.faults == []
    assert outcome.again == ()
    summary = summary_of(bench.run, bench.path)
    assert [entry["lost_frames"] for entry in summary["trials"]] == [400, 0]
    assert summary["trials"][0]["tester_limited"] != []
    assert [(f["kind"], f["count"]) for f in summary["findings"]] == [("unexplained", 400)]


def test_what_was_measured_again_is_in_the_summary_and_its_removal_is_noticed(
    tmp_path: Path,
) -> None:
    bench = busy_bench(tmp_path / "run", 3)
    outcome = bench.conduct(node1="busy")
    run = finish(bench.path, replace(bench.run, again=outcome.again))
    summary = summary_of(run, bench.path)
    jsonschema.validate(summary, summary_schema())
    before = summary["superseded"]
    assert [(e["trial"], e["phase"]) for e in before] == [(0, 0), (0, 0)]
    assert all(e["reason"] == "node1:e0: offered 50.0 % less than intended" for e in before)
    begun = {"errors": [], "exit_status": 0, "run": about()}
    assert remade(read_plan(bench.path), bench.path, begun)["superseded"] == before
    shutil.rmtree(bench.path / "superseded")
    with pytest.raises(ConfigurationError, match="superseded is missing: it has the tables"):
        remade(read_plan(bench.path), bench.path, begun)


@pytest.mark.parametrize("changes", [{"traffic": "pingpong"}, {"sync": "none"}])
def test_only_streams_that_start_by_a_barrier_are_measured_again(changes: dict[str, Any]) -> None:
    site = make_site(2)
    trial = make_trial(site, **changes)
    assert list(trials_again([trial], lambda _trial: [0], 1)) == []
