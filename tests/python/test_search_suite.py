# SPDX-License-Identifier: BSD-3-Clause
"""Suites that search: planned, measured trial by trial, and read again from their results."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from switchbench.analysis.data import Measured
from switchbench.analysis.measures import PhaseResult, PortShares
from switchbench.analysis.suite import (
    SuiteCourse,
    replayed,
    search_entries,
    suite_entries,
    trial_facts,
    trial_loss,
)
from switchbench.base.model import Load, Run
from switchbench.plan.chosen import estimates_s, searches_of
from switchbench.plan.documents import trial_document
from switchbench.records.directory import SUMMARY, read_plan
from switchbench.records.rows import NOTHING, PhaseKey, PhaseRows
from switchbench.render.report.build import make
from switchbench.search.loads import TrialLoss
from switchbench.search.suites import SUITES
from switchbench.search.suites.declaration import TrialFacts
from synthetic import flows_of, frame_side, make_run, make_site, make_trial
from test_controller import Bench, summary_of


def facts(offered: int, lost: int, limited: bool = False) -> TrialFacts:
    times = {"min": 5.0, "mean": 20.0, "max": 90.0}
    return TrialFacts(
        offered=offered, lost=lost, tester_limited=limited, latency_us=times, rtt_us={"mean": 42.0}
    )


def a_run() -> Run:
    site = make_site(2)
    searches = searches_of("ndr-pdr", [make_trial(site, interval_s=2.0)])
    asked = SUITES["ndr-pdr"].parameters
    estimates = estimates_s("ndr-pdr", asked, searches)
    return make_run(
        site, suite="ndr-pdr", searches=searches, estimates_s=estimates,
        suite_parameters=asdict(asked),
    )  # fmt: skip


def result(**changes: Any) -> PhaseResult:
    values = {"offered_frames": 1000, "lost_frames": 3, "state": "complete", "tester_limited": []}
    values |= {"misdelivered_frames": 0, "latency": None, "window_s": 1.0, "size_unit": "frame"}
    values |= changes
    flows, rows = PhaseRows().flows(), NOTHING
    shares = PortShares({}, {}, {})
    key = PhaseKey(0, 0, "lab", 0)
    return PhaseResult(key, values, flows, shares, {}, flows, rows, {}, lambda _: None)


STREAMS: dict[str, Any] = {"offered_frames": None, "lost_frames": None, "size_unit": "message"}


def late(frames: int, learning: float = 0, to: str = "b", src: str = "a") -> PhaseResult:
    """A phase whose sender was late by so many frames, those of each of its flows."""
    sent = [frame_side("source", src, end, 99, 99, measures={"late_frames": frames}) for end in to]
    measures = {"learning_late": learning}
    came = [frame_side("destination", src, end, 99, 99, measures=measures) for end in to]
    return replace(result(), flows=flows_of(*sent, *came))


def ended(
    numbers: float = 100, reordered: int = 0, gap_ns: float = 2.5e9,
    last_sent: float = 5e9, last_came: float | None = 5e9,
) -> PhaseResult:  # fmt: skip
    """One flow, of which ten frames were lost before the one that was sent at `gap_ns`."""
    measures = {"numbers": numbers, "gap_ns": gap_ns}
    sent = frame_side("source", "a", "b", 100, 100, last_run_ns=last_sent)
    came = frame_side("destination", "a", "b", 90, 90, reordered=reordered, measures=measures,
                      last_run_ns=last_came)  # fmt: skip
    return replace(result(), flows=flows_of(sent, came))


def held(came: int) -> PhaseResult:
    """A flow of which so much came in a window in which 8,100 frames were sent."""
    ends = ("node1:e0", "node2:e0")
    sides = frame_side("source", *ends, 9000, 8100), frame_side("destination", *ends, 9000, came)
    return replace(result(), flows=flows_of(*sides))


NOTHING_SAID = {"offered": 0, "lost": 0, "tester_limited": True}


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([result(), result(offered_frames=500, lost_frames=0)], {"offered": 1500, "lost": 3}),
        ([result(lost_frames=-1)], {"offered": 1000, "lost": 0, "goodput": None}),
        ([result(tester_limited=["late"])], {"lost": 3, "tester_limited": True}),
        ([result(lost_frames=None)], NOTHING_SAID),
        ([result(state="partial")], NOTHING_SAID),
        ([result(offered_frames=0)], NOTHING_SAID),
        ([], NOTHING_SAID),
        # A device forwards no more than it is offered: what came beyond was held until then.
        ([held(8000)], {"offered_fps": 8100.0, "delivered_fps": 8000.0}),
        ([held(8200)], {"offered_fps": 8100.0, "delivered_fps": 8100.0}),
        # Streams of bytes say their goodput beside frames.
        (
            [result(), result(**STREAMS, throughput={"total": 7.5})],
            {"goodput": 7.5, "offered": 1000, "lost": 3, "tester_limited": False},
        ),
        (
            [result(), result(**STREAMS, throughput={"total": 7.5}, tester_limited=["late"])],
            {"tester_limited": True},
        ),
        ([result(), result(**STREAMS, throughput={"total": None}, state="partial")], NOTHING_SAID),
        # How late the senders were: of the port, whatever its flows.
        ([late(3), late(5, src="c")], {"late_frames": 5, "late_total": 8, "learned_late": False}),
        ([result()], {"late_frames": 0, "late_total": 0, "last_gap_s": None}),
        ([late(4, to="bc")], {"late_frames": 4, "late_total": 4}),
        ([late(0, 0.9)], {"learned_late": False}),
        ([late(0, 2)], {"learned_late": True}),
        # When the frame behind the last gap was sent; None where that is not known.
        ([ended()], {"last_gap_s": 2.5}),
        ([ended(gap_ns=0.0)], {"last_gap_s": 0.0}),
        ([ended(), ended(gap_ns=3e9)], {"last_gap_s": 3.0}),
        ([ended(numbers=99.0)], {"last_gap_s": None}),  # it lost the last one
        ([ended(reordered=1)], {"last_gap_s": None}),
        ([ended(), ended(numbers=float("nan"))], {"last_gap_s": None}),
        # For how long nothing came before the end.
        ([ended(last_came=5.001e9)], {"silent_s": 0.0}),
        ([ended(last_came=0.7e9)], {"silent_s": pytest.approx(4.3)}),
        ([ended(last_came=None)], {"silent_s": None}),
    ],
)
def test_what_a_trial_says(results: list[PhaseResult], expected: dict[str, Any]) -> None:
    found = trial_facts(results)
    assert {key: getattr(found, key) for key in expected} == expected
    loss = trial_loss(1.0, found, found.lost)
    assert loss == TrialLoss(found.offered, found.lost, 1.0, None, found.tester_limited)


def test_trials_are_ordinary_ones() -> None:
    run = a_run()
    course = SuiteCourse(run)
    measured: dict[int, TrialFacts] = {}
    trials = []
    while (trial := course.trial) is not None:
        trials.append(trial)
        lost = max(0, round(10**6 * (1 - 40 / (trial.load.percent or 0))))
        measured[trial.id] = facts(10**6, lost)
        course.answer(measured[trial.id])
    assert [trial.id for trial in trials] == list(range(len(trials)))
    assert trials[0].load == Load(percent=95.0)
    assert [trial.window_s for trial in trials[-4:]] == [1.0, 5.0, 5.0, 5.0]  # latency
    for trial in trials[:-3]:
        assert trial_document(trial)["load"] == {"percent": trial.load.percent}
        assert trial_document(trial)["window_ns"] == trial_document(trial)["interval_ns"] == 10**9
        assert (trial.window_s, trial.search) == (1.0, 0)
    ndr, pdr = search_entries(replayed(run, measured))
    [subtest] = suite_entries(replayed(run, measured))
    parts = [ndr["relevant_lower_bound"] * part for part in (0.1, 0.5, 0.9)]
    assert [trial.load.percent for trial in trials[-3:]] == pytest.approx(parts)
    assert [row["load_percent"] for row in subtest["rows"]] == pytest.approx(parts)
    assert [row["of_ndr"] for row in subtest["rows"]] == pytest.approx([10, 50, 90])
    for row in subtest["rows"]:
        assert (row["latency"], row["latency_min"], row["latency_max"]) == (20.0, 5.0, 90.0)
        assert row["rtt"] == 42.0
    assert ndr["relevant_lower_bound"] <= 40 < ndr["relevant_upper_bound"]
    assert pdr["relevant_lower_bound"] <= 40 / 0.995 < pdr["relevant_upper_bound"]
    assert ndr["relative_width"] <= 0.005
    assert (ndr["regular"], ndr["trials"]) == (True, len(trials))
    cut, _ = search_entries(replayed(run, {trial: measured[trial] for trial in range(5)}))
    assert cut["outcome"] == "The run ended before this measurement was complete."


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
    (tmp_path / "run" / SUMMARY).write_text(json.dumps(summary))
    page = make(Measured.load(tmp_path / "run")).text
    sections = re.findall(r'<details class="section"( open)?><summary><h2>([^<]+)', page)
    opened = {title: bool(is_open) for is_open, title in sections}
    assert (opened["Suite"], opened["Results"], opened["Trials"]) == (True, False, False)


def test_a_search_that_was_cut_short_keeps_what_it_has(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.run = replace(a_run(), site=bench.run.site)
    outcome = bench.conduct(node1="half", node2="die")
    assert outcome.status == 3
    summary = summary_of(replace(bench.run, trials=outcome.trials), tmp_path / "run", outcome)
    assert summary["searches"][0]["regular"] is False
