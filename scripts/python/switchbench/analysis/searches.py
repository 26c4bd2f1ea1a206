# SPDX-License-Identifier: BSD-3-Clause
"""What a suite's trials amount to: which trial follows, and each goal's result.

A search is a function of the results of its trials alone. So what was found is not recorded: it
follows from the trials of a results directory, as all else does.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from ..base.model import Run, Trial
from ..plan.suite import chosen_trial, range_of, search_of
from ..search.drive import Search
from ..search.loads import GoalResult
from ..search.suites import SUITES
from ..search.trials import TrialLoss

Entries = Sequence[Mapping[str, Any]]  # a trial's phases, as the summary has them
LoadsSearch = Search[tuple[GoalResult, ...]]


def trial_loss(intended_s: float, entries: Entries) -> TrialLoss:
    """What all phases of a trial together lost. One that was not measured whole says nothing."""
    offered = [entry["offered_frames"] for entry in entries]
    lost = [entry["lost_frames"] for entry in entries]
    whole = all(entry["state"] == "complete" for entry in entries)
    if not entries or not whole or None in offered or None in lost or not sum(offered):
        return TrialLoss(0, 0, intended_s, tester_limited=True)
    limited = any(entry["tester_limited"] for entry in entries)
    sent, missing = sum(offered), sum(max(0, count) for count in lost)
    return TrialLoss(sent, min(sent, missing), intended_s, tester_limited=limited)


def suite_trials(run: Run) -> Generator[Trial, Entries, None]:
    """All trials of the run's searches, one search after the other; sent each trial's phases."""
    identity = 0
    for planned in run.searches:
        search = _begun(run, planned)
        while (proposed := search.trial) is not None:
            entries = yield chosen_trial(planned, proposed, identity)
            search.answer(trial_loss(proposed.duration_s, entries))
            identity += 1


def search_entries(run: Run, entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The summary's `searches`: one entry per search and goal, by the trials that were measured."""
    phases: dict[int, list[Mapping[str, Any]]] = {}
    for entry in entries:
        phases.setdefault(entry["trial"], []).append(entry)
    found = []
    for planned in run.searches:
        search = _begun(run, planned)
        for trial in run.trials:
            if trial.search != planned.id or trial.id not in phases or search.trial is None:
                continue
            search.answer(trial_loss(search.trial.duration_s, phases[trial.id]))
        found += _entries_of(run, planned, search)
    return found


def _begun(run: Run, planned: Trial) -> LoadsSearch:
    limit_s = None if run.time_limit_s is None else run.time_limit_s / len(run.searches)
    return search_of(str(run.suite), planned, limit_s, run.site.launch == "lab")


def _entries_of(run: Run, planned: Trial, search: LoadsSearch) -> list[dict[str, Any]]:
    return [
        {
            "search": planned.id,
            "goal": goal,
            "pattern": planned.pattern["name"],
            "parameters": dict(planned.parameters),
            "transport": planned.transport,
            "networks": [part.network for part in planned.parts],
            "size": planned.sizes[0] if len(planned.sizes) == 1 else list(planned.sizes),
            "size_unit": planned.size_unit,
            "load_unit": range_of(planned).unit,
            "relevant_lower_bound": result.relevant_lower_bound,
            "relevant_upper_bound": result.relevant_upper_bound,
            "conditional_throughput": result.conditional_throughput,
            "relative_width": result.relative_width,
            "trials": search.trials,
            "regular": result.is_regular,
            "outcome": result.outcome.sentence,
        }
        for goal, result in zip(SUITES[str(run.suite)], search.result(), strict=True)
    ]
