# SPDX-License-Identifier: BSD-3-Clause
"""What the trials at each load say of it: a lower bound, an upper one, or undecided (RFC 9971)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from .goals import SearchGoal
from .trials import TrialLoss


class LoadClass(Enum):
    """RFC 9971, Load Classification."""

    LOWER = "lower bound"
    UPPER = "upper bound"
    UNDECIDED = "undecided"


def classify(goal: SearchGoal, trials: Sequence[TrialLoss]) -> LoadClass:
    """The class of a load by all trials there, in any order (RFC 9971, Load Classification).

    Trials shorter than the goal's final one count only by the excess of bad ones over what good
    ones balance. Missing duration is taken as all good, then as all bad: where both agree, no
    further trial is needed. Tester-limited trials count for nothing.
    """
    sums = dict.fromkeys(((long, bad) for long in (0, 1) for bad in (0, 1)), 0.0)
    for trial in trials:
        if not trial.tester_limited:
            long, bad = trial.intended_s >= goal.final_trial_s, trial.loss_ratio > goal.loss_ratio
            sums[long, bad] += trial.counted_s
    balanced = sums[0, 0] * goal.exceed_ratio / (1.0 - goal.exceed_ratio)
    bad_s = sums[1, 1] + max(0.0, sums[0, 1] - balanced)
    whole_s = max(sums[1, 0] + bad_s, goal.duration_sum_s)
    allowed_s = whole_s * goal.exceed_ratio
    if_rest_good, if_rest_bad = bad_s <= allowed_s, whole_s - sums[1, 0] <= allowed_s
    if if_rest_good != if_rest_bad:
        return LoadClass.UNDECIDED
    return LoadClass.LOWER if if_rest_good else LoadClass.UPPER


def conditional_loss(goal: SearchGoal, trials: Sequence[TrialLoss]) -> float:
    """The loss ratio (0 to 1) that a lower bound's conditional throughput is reduced by.

    Of the full-length trials in order of their loss, the one up to which the share that must be
    good reaches (RFC 9971, Conditional Throughput); missing duration is taken as lost.
    """
    long: dict[float, float] = {}
    for trial in trials:
        if trial.intended_s >= goal.final_trial_s and not trial.tester_limited:
            long[trial.loss_ratio] = long.get(trial.loss_ratio, 0.0) + trial.counted_s
    measured_s = sum(long.values())
    left_s = max(goal.duration_sum_s, measured_s) * (1.0 - goal.exceed_ratio)
    ratio = 1.0
    for ratio in sorted(long):
        left_s -= long[ratio]
        if left_s <= 0.0:
            return ratio
    # What rounding alone has left is not missing.
    return ratio if measured_s >= goal.duration_sum_s else 1.0


@dataclass(frozen=True)
class RelevantBounds:
    """RFC 9971, Relevant Lower Bound and Relevant Upper Bound; None where no load is one."""

    lower: int | None
    upper: int | None


def relevant_bounds(goal: SearchGoal, trials: Mapping[int, Sequence[TrialLoss]]) -> RelevantBounds:
    """The smallest upper bound, and the largest lower bound below it.

    `trials`: load (any number that orders as loads do) -> all trials there. Lower bounds above the
    smallest upper bound (loss inversion) are not relevant.
    """
    lower = None
    for load in sorted(trials):
        found = classify(goal, trials[load])
        if found is LoadClass.UPPER:
            return RelevantBounds(lower, load)
        if found is LoadClass.LOWER:
            lower = load
    return RelevantBounds(lower, None)
