# SPDX-License-Identifier: BSD-3-Clause
"""How a search nears one goal: short trials first, longer ones from level to level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .classify import RelevantBounds, relevant_bounds
from .goals import SearchGoal
from .trials import TrialLoss

PRECEDING = 2  # levels before the final one
EXPANSION = 2  # by which an external search multiplies what it has gone so far


@dataclass(frozen=True)
class SearchLevel:
    """A goal with shorter sums of durations; its bounds may be so many steps of the grid apart."""

    goal: SearchGoal
    steps: int


def levels(goal: SearchGoal, steps: int) -> list[SearchLevel]:
    """The levels of a goal whose width is so many steps of the grid, the goal itself last.

    Sums of durations grow by one ratio, from the initial trial's to the goal's. The level before
    the final one is as narrow as that, so that the longest trials only confirm its bounds.
    """
    ratio = (goal.initial_trial_s / goal.duration_sum_s) ** (1.0 / PRECEDING)
    found = [SearchLevel(goal, steps)]
    if ratio == 1.0:
        return found
    for number in range(1, PRECEDING + 1):
        sum_s = max(goal.initial_trial_s, goal.duration_sum_s * ratio**number)
        if number == PRECEDING:
            sum_s = goal.initial_trial_s
        trial_s = min(goal.final_trial_s, sum_s)
        shorter = replace(goal, final_trial_s=trial_s, duration_sum_s=sum_s)
        found.insert(0, SearchLevel(shorter, steps * 2 ** (number - 1)))
    return found


def is_narrow(bounds: RelevantBounds, steps: int, top: int) -> bool:
    """Whether a search for these bounds is done: near enough, or the range has no load left."""
    if bounds.lower is None:
        return bounds.upper == 0
    if bounds.upper is None:
        return bounds.lower == top
    return bounds.upper - bounds.lower <= steps


def next_load(bounds: RelevantBounds, hint: RelevantBounds, steps: int, top: int) -> int:
    """The number of the load (0 to `top`) to measure at for bounds that are not narrow yet.

    `bounds` are relevant at this level, `hint` were at the level before. It is always a load that
    is not decided at this level, so that each trial brings the search forward:
    the middle of the hint where that halves to the width at once, then the hint's ends; beyond
    them by growing steps (external search); between two bounds by halving (internal search).
    """
    lower, upper = bounds.lower, bounds.upper
    ends = [load for load in (hint.lower, hint.upper) if load is not None]
    first, last = ends[0], ends[-1]
    halves = [(first + last) // 2] if steps < last - first <= 2 * steps else []
    for load in halves + ends:
        if (lower is None or load > lower) and (upper is None or load < upper):
            return load
    if lower is None:
        assert upper is not None
        down = upper - max(steps, (EXPANSION - 1) * (last - upper))
        return 0 if down < steps else down
    up = lower + max(steps, (EXPANSION - 1) * (lower - first))
    if upper is None:
        return top if top - up < steps else up
    middle = (lower + upper) // 2
    # Next to the hint sooner than in the middle, where that is farther away.
    if upper <= first:
        return max(middle, upper - max(steps, (EXPANSION - 1) * (last - upper)))
    return min(middle, up) if lower >= last else middle


class GoalProgress:
    """Where a search stands with one goal: its level, and the bounds of the level before."""

    def __init__(self, goal: SearchGoal, steps: int, top: int) -> None:
        self._levels = levels(goal, steps)
        self.top = top
        """The number of the highest load that can be offered."""
        self._number = 0
        self.hint = RelevantBounds(None, None)

    @property
    def first(self) -> SearchLevel:
        """The coarsest level, whose trials are the initial ones."""
        return self._levels[0]

    def nominate(self, trials: Mapping[int, Sequence[TrialLoss]]) -> tuple[int, float] | None:
        """The number of a load and the seconds to measure there; None when the goal is done."""
        while True:
            level = self._levels[self._number]
            bounds = relevant_bounds(level.goal, trials)
            if not is_narrow(bounds, level.steps, self.top):
                load = next_load(bounds, self.hint, level.steps, self.top)
                return load, level.goal.final_trial_s
            if level is self._levels[-1]:
                return None
            self._number += 1
            self.hint = bounds

    def bounds(self, trials: Mapping[int, Sequence[TrialLoss]]) -> tuple[RelevantBounds, bool]:
        """The bounds of the goal itself by these trials, and whether they end its search."""
        level = self._levels[-1]
        found = relevant_bounds(level.goal, trials)
        return found, is_narrow(found, level.steps, self.top)
