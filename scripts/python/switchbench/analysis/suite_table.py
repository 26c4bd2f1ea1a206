# SPDX-License-Identifier: BSD-3-Clause
"""A suite's trials gathered from a summary's phases, and what they amount to."""

from __future__ import annotations

from ..base.model import Run, Trial
from ..search.suites.declaration import TrialFacts
from .measures import PhaseResult
from .suite import SuiteCourse, replayed
from .suite_facts import trial_facts


class SuiteTable:
    """Takes phases as they are summarised; keeps of each trial what its suite is told."""

    def __init__(self) -> None:
        self._results: dict[int, list[PhaseResult]] = {}  # of trials that have not ended
        self._facts: dict[int, TrialFacts] = {}

    def add(self, result: PhaseResult) -> None:
        """Takes one more phase of its trial."""
        self._results.setdefault(result.key.trial, []).append(result)

    def close(self, trial: Trial) -> None:
        """The trial has no more phases."""
        results = self._results.pop(trial.id, [])
        if trial.search is not None:
            self._facts[trial.id] = trial_facts(results)

    def of(self, trial: Trial) -> TrialFacts:
        """What is known of a trial that has ended."""
        return self._facts.get(trial.id, TrialFacts())

    def course(self, run: Run) -> SuiteCourse | None:
        """A suite as far as its trials bring it; None where the run has none."""
        return None if run.suite is None else replayed(run, self._facts)
