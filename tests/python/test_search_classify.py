# SPDX-License-Identifier: BSD-3-Clause
"""The class of a load from its trials (RFC 9971), beside the reference implementation."""

from __future__ import annotations

import random

import pytest
from MLRsearch.discrete_load import DiscreteLoad
from MLRsearch.discrete_result import DiscreteResult
from MLRsearch.discrete_width import DiscreteWidth
from MLRsearch.goal_result import GoalResult
from MLRsearch.load_rounding import LoadRounding
from MLRsearch.measurement_database import MeasurementDatabase
from MLRsearch.target_spec import TargetSpec
from MLRsearch.target_stat import TargetStat
from MLRsearch.trial_measurement import MeasurementResult

from switchbench.search.loads import (
    NDR,
    PDR,
    RFC2544,
    TST009,
    LoadClass,
    SearchGoal,
    TrialLoss,
    classify,
    conditional_loss,
    relevant_bounds,
)

GOOD, BAD = TrialLoss(1000, 0, 60.0), TrialLoss(1000, 10, 60.0)
SHORT_GOOD, SHORT_BAD = TrialLoss(1000, 0, 1.0), TrialLoss(1000, 10, 1.0)
LIMITED = TrialLoss(1000, 10, 60.0, tester_limited=True)


@pytest.mark.parametrize(
    ("goal", "trials", "expected"),
    [
        (RFC2544, [], LoadClass.UNDECIDED),
        (RFC2544, [GOOD], LoadClass.LOWER),
        (RFC2544, [GOOD, BAD], LoadClass.UPPER),
        (RFC2544, [SHORT_GOOD] * 60, LoadClass.UNDECIDED),
        (RFC2544, [SHORT_BAD], LoadClass.UPPER),
        (RFC2544, [LIMITED], LoadClass.UNDECIDED),
        (TST009, [GOOD], LoadClass.LOWER),
        (TST009, [BAD], LoadClass.UNDECIDED),
        (TST009, [BAD, GOOD], LoadClass.LOWER),
        (TST009, [BAD, BAD], LoadClass.UPPER),
        (TST009, [BAD, SHORT_BAD], LoadClass.UPPER),
        (TST009, [BAD, SHORT_BAD, SHORT_GOOD], LoadClass.UNDECIDED),
    ],
)
def test_class(goal: SearchGoal, trials: list[TrialLoss], expected: LoadClass) -> None:
    assert classify(goal, trials) is expected


def random_goal(rng: random.Random) -> SearchGoal:
    if rng.random() < 0.4:
        return rng.choice([RFC2544, TST009, NDR, PDR])
    final_s = rng.choice([1.0, 5.0, 60.0, rng.uniform(1.0, 60.0)])
    return SearchGoal(
        rng.choice([0.0, 0.005, rng.random() * 0.1]),
        rng.choice([0.0, 0.5, rng.random() * 0.99]),
        final_s,
        final_s * rng.choice([1.0, 2.0, 21.0, rng.uniform(1.0, 20.0)]),
    )


def random_trial(rng: random.Random, goal: SearchGoal) -> TrialLoss:
    final_s = goal.final_trial_s
    intended_s = rng.choice([final_s, final_s, final_s / 7.7, 1.0, rng.uniform(0.5, 2.0) * final_s])
    offered = rng.choice([1000, rng.randint(1, 10**7)])
    ratio = rng.choice([0.0, 0.0, goal.loss_ratio, rng.random() * 0.02, 1.0])
    effective_s = intended_s * rng.uniform(1.0, 1.2) if rng.random() < 0.3 else None
    return TrialLoss(offered, round(offered * ratio), intended_s, effective_s)


def reference_goal(goal: SearchGoal, rounding: LoadRounding | None = None) -> TargetSpec:
    return TargetSpec(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        discrete_width=rounding and DiscreteWidth(rounding=rounding, int_width=1),
        trial_duration=goal.final_trial_s,
        duration_sum=goal.duration_sum_s,
        expansion_coefficient=2,
        fail_fast=False,
        preceding=None,
    )


def reference_trial(trial: TrialLoss) -> MeasurementResult:
    return MeasurementResult(
        intended_duration=trial.intended_s,
        intended_load=1000.0,
        offered_count=trial.offered,
        loss_count=trial.lost,
        duration_with_overheads=trial.effective_s,
    )


CLASS_OF = {
    (True, True): LoadClass.LOWER,
    (False, False): LoadClass.UPPER,
}


def test_every_class_is_the_reference_implementations() -> None:
    """10,000 random sequences, compared after each trial."""
    seen = dict.fromkeys(LoadClass, 0)
    for seed in range(10_000):
        rng = random.Random(seed)
        goal = random_goal(rng)
        reference, trials = TargetStat(reference_goal(goal)), list[TrialLoss]()
        for _ in range(rng.randint(1, 24)):
            trials.append(random_trial(rng, goal))
            reference.add(reference_trial(trials[-1]))
            expected = CLASS_OF.get(reference.estimates(), LoadClass.UNDECIDED)
            assert classify(goal, trials) is expected, (seed, goal, trials)
            seen[expected] += 1
            if expected is LoadClass.LOWER:
                loss = conditional_loss(goal, trials)
                assert loss <= goal.loss_ratio
                # 1.0 at a lower bound is the reference's sum, rounded away from the same sum.
                if reference.pessimistic_loss_ratio != 1.0:
                    assert loss == reference.pessimistic_loss_ratio, (seed, goal, trials)
    assert min(seen.values()) > 10_000


def test_relevant_bounds_are_the_reference_implementations() -> None:
    rounding = LoadRounding(min_load=1.0, max_load=1000.0, float_goals=(0.5,))
    for seed in range(2_000):
        rng = random.Random(seed)
        goal = random_goal(rng)
        target = reference_goal(goal, rounding)
        database = MeasurementDatabase((target,))
        trials: dict[int, list[TrialLoss]] = {}
        for _ in range(rng.randint(1, 20)):
            load, trial = rng.randint(0, 8), random_trial(rng, goal)
            trials.setdefault(load, []).append(trial)
            discrete = DiscreteLoad.int_conver(rounding)(load)
            plain = reference_trial(trial)
            plain.intended_load = float(discrete)
            database.add(DiscreteResult.with_load(plain, discrete))
        result = GoalResult.from_bounds(database.get_relevant_bounds(target))
        lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
        found = relevant_bounds(goal, trials)
        assert found.lower == (None if lower is None else int(lower)), seed
        assert found.upper == (None if upper is None else int(upper)), seed


@pytest.mark.parametrize(
    "values",
    [
        (1.0, 0.0, 1.0, 1.0),
        (0.0, 1.0, 1.0, 1.0),
        (0.0, 0.0, 2.0, 1.0),
        (0.0, 0.0, 0.5, 1.0),
        (0.0, 0.0, 2.0, 2.0, 1.0, 0.0),
    ],
)
def test_goal_refused(values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="a goal's"):
        SearchGoal(*values)


@pytest.mark.parametrize("values", [(10, 11, 1.0), (0, 0, 1.0), (10, -1, 1.0), (10, 0, -1.0)])
def test_trial_refused(values: tuple[int, int, float]) -> None:
    with pytest.raises(ValueError, match="a trial"):
        TrialLoss(*values)
