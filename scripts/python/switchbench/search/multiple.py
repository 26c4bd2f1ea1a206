# SPDX-License-Identifier: BSD-3-Clause
"""The search for the highest load that each of several goals allows (RFC 9971, MLRsearch)."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from .classify import RelevantBounds, conditional_loss
from .drive import Steps, TesterLimitError
from .goals import SearchGoal
from .levels import GoalProgress
from .loads import GoalResult, LoadGrid, LoadRange
from .outcomes import (
    HeldAllOffered,
    InProgress,
    LossAtMin,
    NoLossAtMax,
    Reached,
    SearchOutcome,
    Stopped,
)
from .trials import ProposedTrial, TrialLoss


class LoadSearch:
    """A method for `Search`: trials at loads of one grid, each of which serves all goals.

    Short trials come first: of what the goals ask for, the shortest is measured, at the lowest
    load. Results are one GoalResult per goal, in the order of the goals.
    Raises ValueError where there is no goal.
    """

    def __init__(self, goals: Sequence[SearchGoal], loads: LoadRange) -> None:
        if not goals:
            raise ValueError("a search needs at least one goal")
        self.unit = loads.unit
        self._goals = tuple(goals)
        self._grid = LoadGrid(loads, [goal.width for goal in goals])
        self._trials: dict[int, list[TrialLoss]] = {}
        self._top = self._grid.top  # what the tester can offer
        self._progress = [
            GoalProgress(goal, self._grid.steps(goal.width), self._grid.top) for goal in goals
        ]

    def steps(self) -> Steps:
        """RFC 9971, Search: initial trials, then what the goals ask for until none asks."""
        hint = yield from self._initial()
        for progress in self._progress:
            progress.hint = hint
        while True:
            asked = [progress.nominate(self._trials) for progress in self._progress]
            wanted = [(seconds, load) for load, seconds in filter(None, asked)]
            if not wanted:
                return
            seconds, load = min(wanted)
            yield from self._measure(load, seconds)

    def result(self, stopped: Stopped | None) -> tuple[GoalResult, ...]:
        """One result per goal, by the trials so far."""
        return tuple(
            self._goal_result(goal, progress, stopped)
            for goal, progress in zip(self._goals, self._progress, strict=True)
        )

    def _measure(self, load: int, seconds: float) -> Generator[ProposedTrial, TrialLoss, bool]:
        """Whether it was measured; else the search goes on below what the tester offered."""
        try:
            result = yield ProposedTrial(self._grid.load(load), seconds)
        except TesterLimitError as limit:
            top = self._grid.below(self._grid.load(load) * limit.result.offered_part)
            if not 0 < top < load:
                raise
            self._top = top
            for progress in self._progress:
                progress.top = top
            return False
        self._trials.setdefault(load, []).append(result)
        return True

    def _initial(self) -> Generator[ProposedTrial, TrialLoss, RelevantBounds]:
        """Two or three short trials: at the max load, at what was forwarded there, and beside it.

        Returns where the search is to begin.
        """
        seconds = max(progress.first.goal.final_trial_s for progress in self._progress)
        allowed = min(goal.loss_ratio for goal in self._goals)
        beside = max(progress.first.steps for progress in self._progress)
        while not (yield from self._measure(self._top, seconds)):
            pass
        top = self._top
        first = self._forwarded(top, allowed)
        if first >= top:
            return RelevantBounds(top, None)
        first = 0 if first < beside else min(first, top - 1)
        if not (yield from self._measure(first, seconds)):
            return RelevantBounds(self._top, None)
        if self._trials[first][-1].loss_ratio > allowed:
            second = min(self._forwarded(first, allowed), first - beside)
        else:
            second = first + beside
        if not 0 < second < top:
            return RelevantBounds(first, top)
        yield from self._measure(second, seconds)
        return RelevantBounds(min(first, second), max(first, second))

    def _forwarded(self, load: int, allowed: float) -> int:
        """The load of which the last trial here forwarded all but what may be lost."""
        ratio = (1.0 - self._trials[load][-1].loss_ratio) / (1.0 - allowed)
        return load if ratio >= 1.0 else self._grid.below(self._grid.load(load) * ratio)

    def _goal_result(
        self, goal: SearchGoal, progress: GoalProgress, stopped: Stopped | None
    ) -> GoalResult:
        bounds, is_done = progress.bounds(self._trials)
        lower = None if bounds.lower is None else self._grid.load(bounds.lower)
        upper = None if bounds.upper is None else self._grid.load(bounds.upper)
        throughput = None
        if bounds.lower is not None and lower is not None:
            throughput = lower * (1.0 - conditional_loss(goal, self._trials[bounds.lower]))
        outcome: SearchOutcome = Reached()
        if not is_done:
            outcome = stopped or InProgress()
        elif upper is None and self._top < self._grid.top:
            outcome = HeldAllOffered(self._grid.load(self._top), self.unit)
        elif upper is None:
            outcome = NoLossAtMax(self._grid.loads.max, self.unit)
        elif lower is None:
            outcome = LossAtMin(self._grid.loads.min, self.unit)
        return GoalResult(lower, upper, throughput, outcome)
