# SPDX-License-Identifier: BSD-3-Clause
"""Searches without I/O: classes as the reference implementation has them, bounds around a known
truth, counts exact to one, and how searches end."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    End,
    LoadClass,
    LoadGrid,
    LoadRange,
    LoadSearch,
    ProposedTrial,
    Search,
    SearchGoal,
    SearchMethod,
    SearchResult,
    TrialLoss,
    classify,
    conditional_loss,
    method_s,
    relevant_bounds,
)
from switchbench.search.suites.methods import UNIT, CountSearch

Device = Callable[[ProposedTrial], TrialLoss]
RFC2544 = SearchGoal(0.0, 0.0, 60.0, 60.0)  # RFC 9971, A.1
TST009 = SearchGoal(0.0, 0.5, 60.0, 120.0)  # A.2
NDR, PDR = SearchGoal(0.0, 0.5, 1.0, 21.0), SearchGoal(0.005, 0.5, 1.0, 21.0)  # FD.io CSIT
GOALS = [RFC2544, TST009, NDR, PDR]
LOADS = LoadRange(14_881.0, 14_880_952.0)


def run(
    method: SearchMethod, device: Device, time_limit_s: float = float("inf")
) -> tuple[Search, list[ProposedTrial]]:
    """Return the search when it has ended, and all trials in order."""
    search, asked = Search(method, time_limit_s), list[ProposedTrial]()
    while (trial := search.trial) is not None:
        asked.append(trial)
        search.answer(device(trial))
    return search, asked


def forwards(truth: float, collapse: float = 0.0) -> Device:
    """Return a device that forwards `truth` frames/s, less by `collapse` per relative overload."""

    def measure(trial: ProposedTrial) -> TrialLoss:
        offered = max(1, round(trial.value * trial.duration_s))
        overload = max(0.0, trial.value / truth - 1.0)
        forwarded = truth * max(0.0, 1.0 - collapse * overload)
        lost = round((trial.value - forwarded) * trial.duration_s) if overload else 0
        return TrialLoss(offered, min(offered, lost), trial.duration_s)

    return measure


# --- classes of loads, beside the reference implementation ---------------------------------------


def random_goal(rng: random.Random) -> SearchGoal:
    if rng.random() < 0.4:
        return rng.choice(GOALS)
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
    intended_s *= rng.uniform(1.0, 1.2) if rng.random() < 0.3 else 1.0
    return TrialLoss(offered, round(offered * ratio), intended_s)


def reference_goal(goal: SearchGoal, rounding: LoadRounding | None = None) -> TargetSpec:
    return TargetSpec(
        loss_ratio=goal.loss_ratio, exceed_ratio=goal.exceed_ratio,
        discrete_width=rounding and DiscreteWidth(rounding=rounding, int_width=1),
        trial_duration=goal.final_trial_s, duration_sum=goal.duration_sum_s,
        expansion_coefficient=2, fail_fast=False, preceding=None,
    )  # fmt: skip


def reference_trial(trial: TrialLoss, load: float = 1000.0) -> MeasurementResult:
    return MeasurementResult(
        intended_duration=trial.intended_s, intended_load=load, offered_count=trial.offered,
        loss_count=trial.lost,
    )  # fmt: skip


def test_every_class_is_the_reference_implementations() -> None:
    """10,000 random sequences, compared after each trial; tester-limited ones count for nothing."""
    classes = {(True, True): LoadClass.LOWER, (False, False): LoadClass.UPPER}
    seen = dict.fromkeys(LoadClass, 0)
    for seed in range(10_000):
        rng = random.Random(seed)
        goal = random_goal(rng)
        reference, trials = TargetStat(reference_goal(goal)), list[TrialLoss]()
        for _ in range(rng.randint(1, 24)):
            trials.append(random_trial(rng, goal))
            reference.add(reference_trial(trials[-1]))
            trials.insert(0, replace(random_trial(rng, goal), tester_limited=True))
            expected = classes.get(reference.estimates(), LoadClass.UNDECIDED)
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
            plain = reference_trial(trial, float(discrete))
            database.add(DiscreteResult.with_load(plain, discrete))
        result = GoalResult.from_bounds(database.get_relevant_bounds(target))
        bounds = (result.relevant_lower_bound, result.relevant_upper_bound)
        expected = tuple(None if bound is None else int(bound) for bound in bounds)
        assert relevant_bounds(goal, trials) == expected, seed


# --- loads ---------------------------------------------------------------------------------------


@given(
    truth=st.floats(0.002, 0.99),
    collapse=st.floats(0.0, 3.0),
    width=st.sampled_from([0.001, 0.005, 0.05]),
    goals=st.lists(st.sampled_from(GOALS), min_size=1, max_size=3),
)
@settings(max_examples=150)
def test_bounds_are_around_the_truth(
    truth: float, collapse: float, width: float, goals: list[SearchGoal]
) -> None:
    device = forwards(truth * LOADS.max, collapse)
    goals = [replace(goal, width=width) for goal in goals]
    search, asked = run(LoadSearch(goals, LOADS), device)
    assert all(LOADS.min <= trial.value <= LOADS.max for trial in asked)
    for goal, result in zip(goals, search.result(), strict=True):
        lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
        if result.outcome.end is End.NO_LOSS_AT_MAX:
            assert device(ProposedTrial(LOADS.max, 60.0)).loss_ratio <= goal.loss_ratio
            continue
        assert result.is_regular
        held, failed = (
            device(ProposedTrial(load, goal.final_trial_s)).loss_ratio <= goal.loss_ratio
            for load in (lower, upper)
        )
        assert (held, failed) == (True, False)
        assert result.relative_width <= width
        assert lower * (1 - goal.loss_ratio) <= result.conditional_throughput <= lower


@pytest.mark.parametrize("seed", range(60))
def test_a_device_without_rule_still_ends_the_search(seed: int) -> None:
    rng = random.Random(seed)

    def measure(trial: ProposedTrial) -> TrialLoss:
        return TrialLoss(1000, rng.choice([0, 0, 3, 30]), trial.duration_s)

    search, asked = run(LoadSearch([NDR, PDR, RFC2544], LOADS), measure)
    assert len(asked) < 3000
    ends = {result.outcome.end for result in search.result()}
    assert ends <= {End.REACHED, End.LOSS_AT_MIN, End.NO_LOSS_AT_MAX}


def test_short_trials_come_first_and_serve_all_goals() -> None:
    device = forwards(5e6)
    both, _ = run(LoadSearch([RFC2544, TST009], LOADS), device)
    apart = [run(LoadSearch([goal], LOADS), device) for goal in (RFC2544, TST009)]
    assert both.used_s < sum(search.used_s for search, _ in apart)
    assert both.result()[0] == apart[0][0].result()[0]
    asked = apart[0][1]
    assert asked[0] == ProposedTrial(LOADS.max, 1.0)
    assert asked[-1].duration_s == 60.0
    assert sum(trial.duration_s == 60.0 for trial in asked) <= 2


@pytest.mark.rows
def test_a_search_that_never_brackets(truth: float, end: str, words: str) -> None:
    (result,) = run(LoadSearch([RFC2544], LOADS), forwards(truth))[0].result()
    assert result.outcome.end is End[end]
    assert words in result.outcome.sentence
    assert (result.is_regular, result.relative_width) == (False, None)
    assert (result.conditional_throughput == LOADS.max) == (truth > LOADS.max)


def test_tester_limited_trials_are_repeated_and_then_end_the_search() -> None:
    def measure(trial: ProposedTrial) -> TrialLoss:
        return TrialLoss(10, 10, trial.duration_s, tester_limited=True)

    search, asked = run(LoadSearch([NDR, PDR], LOADS), measure)
    assert asked == [ProposedTrial(LOADS.max, 1.0)] * 3
    for result in search.result():
        assert result.outcome == End.LIMITED_BY_TESTER.at(LOADS.max, "frames/s", attempts=3)
        assert "the limit at 1.4881e+07 frames/s in each of 3 trials" in result.outcome.sentence
        assert result.relevant_lower_bound is None


@pytest.mark.parametrize(("truth", "found"), [(61.0, End.REACHED), (95.0, End.HELD_ALL_OFFERED)])
def test_what_the_tester_cannot_offer_is_not_searched(truth: float, found: End) -> None:
    """The tester offers at most 70 % of the line; the search stays below that."""
    device, loads = forwards(truth * 1e4), LoadRange(1e4, 1e6)

    def measure(trial: ProposedTrial) -> TrialLoss:
        if trial.value <= 70e4:
            return device(trial)
        return replace(device(trial), tester_limited=True, offered_part=70e4 / trial.value)

    search, _ = run(LoadSearch([NDR, PDR], loads), measure)
    for result in search.result():
        assert result.outcome.end is found
        assert result.relevant_lower_bound == pytest.approx(min(truth, 70.0) * 1e4, rel=0.011)
    assert search.stopped is None


@pytest.mark.parametrize(
    ("most", "end"),
    [(0.4, End.LIMITED_BETWEEN), (0.99, End.LIMITED_BETWEEN), (0.999, End.REACHED)],
)
def test_what_the_tester_offers_for_short_trials_alone_ends_a_search(most: float, end: End) -> None:
    """Full-length trials reach a part of what the device forwards; the search goes below that."""
    device, asked = forwards(5e6), 0

    def measure(trial: ProposedTrial) -> TrialLoss:
        nonlocal asked
        asked += 1
        assert asked < 200
        if trial.duration_s < RFC2544.final_trial_s or trial.value <= most * 5e6:
            return device(trial)
        return replace(device(trial), tester_limited=True, offered_part=most * 5e6 / trial.value)

    search, _ = run(LoadSearch([RFC2544], LOADS), measure)
    (result,) = search.result()
    assert result.outcome.end is end
    assert result.relevant_lower_bound == pytest.approx(most * 5e6, rel=0.011)


def test_a_load_that_fails_above_the_last_clear_one_is_not_more_than_was_offered() -> None:
    """All trials between two loads are void; the device held one and failed at the other."""
    device = forwards(5e6)

    def measure(trial: ProposedTrial) -> TrialLoss:
        return replace(device(trial), tester_limited=5e6 < trial.value < 5.04e6, offered_part=0.999)

    search, _ = run(LoadSearch([NDR, PDR], LOADS), measure)
    for result in search.result():
        assert result.outcome.end is End.LIMITED_BETWEEN
        assert result.relevant_lower_bound == pytest.approx(5e6, rel=0.011)
        assert " and loses frames at 5.0" in result.outcome.sentence


def test_a_load_that_was_offered_late_is_measured_again_at_the_end() -> None:
    """It is void until trials below it have shown how many late frames do no harm."""
    device, held = forwards(5e6), 0

    def measure(trial: ProposedTrial) -> TrialLoss:
        nonlocal held
        found = device(trial)
        held += not found.lost
        return replace(found, tester_limited=5e6 < trial.value < 5.04e6 and held < 3)

    search, _ = run(LoadSearch([NDR, PDR], LOADS), measure)
    for result in search.result():
        assert result.is_regular
        assert result.relevant_lower_bound == pytest.approx(5e6, rel=0.011)


def test_a_tester_limited_trial_now_and_then_changes_nothing() -> None:
    device, rng, limited = forwards(5e6), random.Random(1), False

    def measure(trial: ProposedTrial) -> TrialLoss:
        nonlocal limited
        limited = not limited and rng.random() < 0.5
        return replace(device(trial), tester_limited=limited)

    plain, _ = run(LoadSearch([RFC2544], LOADS), device)
    search, _ = run(LoadSearch([RFC2544], LOADS), measure)
    assert search.result() == plain.result()
    assert search.used_s > plain.used_s


def test_time_limit_keeps_what_is_known() -> None:
    search, asked = run(LoadSearch([NDR, RFC2544], LOADS), forwards(5e6, 1.0), 60.0)
    assert search.used_s <= 60.0
    assert len(asked) == search.trials
    done, cut = search.result()
    assert done.is_regular
    assert "its next trial takes 60 s, and time_limit is 60 s" in cut.outcome.sentence
    assert cut.relevant_upper_bound is not None
    assert cut.relevant_lower_bound is None


def test_a_result_before_the_end() -> None:
    search = Search(LoadSearch([RFC2544], LOADS))
    assert search.result()[0].outcome.end is End.IN_PROGRESS


def test_estimate_is_what_a_device_that_behaves_takes() -> None:
    alone = method_s(lambda _: LoadSearch([RFC2544], LOADS), LOADS)
    assert 60.0 < alone < 200.0
    assert method_s(lambda _: LoadSearch([RFC2544], LOADS), LOADS, overhead_s=5.0) > alone + 5 * 5.0
    assert method_s(lambda _: LoadSearch([RFC2544, NDR], LOADS), LOADS) > alone


def test_a_grid_has_its_ends_and_the_loads_between() -> None:
    grid = LoadGrid(LOADS, 0.005)
    assert (grid.load(0), grid.load(grid.top)) == (pytest.approx(LOADS.min), LOADS.max)
    for number in range(0, grid.top, 7):
        assert grid.below(grid.load(number) * (1 + 1e-9)) == number
    assert (grid.below(0.0), grid.below(1e12)) == (0, grid.top)


# --- bursts and tables of addresses --------------------------------------------------------------


def holding(truth: int) -> Device:
    return lambda trial: TrialLoss(
        round(trial.value), max(0, round(trial.value) - truth), trial.duration_s
    )


@given(truth=st.integers(1, 10**6))
def test_the_longest_burst_is_exact(truth: int) -> None:
    method = CountSearch(2 * 10**6, UNIT, seconds_each=1e-6, verifications=0, near=1)
    search, asked = run(method, holding(truth))
    assert search.result() == (SearchResult(End.REACHED.at(), truth, longest=(truth,)),)
    assert len(asked) <= 2 * truth.bit_length() + 2
    assert max(trial.value for trial in asked) <= 2 * truth
    assert asked[0].duration_s == pytest.approx(1e-6)


@pytest.mark.parametrize("truth", [1000, 1024, 8191, 8192, 32768, 32769])
def test_the_largest_table_is_exact(truth: int) -> None:
    """The number that failed is tried at twice the rate at the end, and fails again."""
    method = CountSearch(65536, "addresses", seconds_each=1e-3, near=1, confirms=True)
    search, asked = run(method, holding(truth))
    assert search.result() == (SearchResult(End.REACHED.at(), truth, longest=(truth,)),)
    assert asked[-1] == ProposedTrial(truth + 1, pytest.approx((truth + 1) / 2000))


def test_loss_is_verified_where_asked() -> None:
    """The device loses one frame in every other trial, which changes no result."""
    trials: list[ProposedTrial] = []

    def measure(trial: ProposedTrial) -> TrialLoss:
        trials.append(trial)
        found = holding(777)(trial)
        return replace(found, lost=max(found.lost, len(trials) % 2))

    assert run(CountSearch(10**5, UNIT), measure)[0].result()[0].longest == (777,)


def test_a_later_search_asks_for_lengths_below_what_failed() -> None:
    """A device that loses frames of its first bursts alone: no max is mixed into the mean."""
    asked: list[float] = []

    def measure(trial: ProposedTrial) -> TrialLoss:
        asked.append(trial.value)
        return TrialLoss(10, int(trial.value > 100 and len(asked) < 12), trial.duration_s)

    [found] = run(CountSearch(325, UNIT, repeats=3), measure)[0].result()
    assert len(found.longest) == 3
    assert max(found.longest) < 325
    assert asked.count(325) == 2


def test_a_later_search_takes_nothing_for_held_that_an_earlier_one_measured() -> None:
    """A device that holds 700 frames in the first search, and 300 after it."""
    first = len(run(CountSearch(1000, UNIT), holding(700))[1])
    asked: list[float] = []

    def measure(trial: ProposedTrial) -> TrialLoss:
        asked.append(trial.value)
        return holding(700 if len(asked) <= first else 300)(trial)

    [found] = run(CountSearch(1000, UNIT, repeats=2), measure)[0].result()
    assert found.longest == (700, 300)


def test_a_count_that_the_tester_cannot_offer() -> None:
    def measure(trial: ProposedTrial) -> TrialLoss:
        return TrialLoss(1, 0, trial.duration_s, tester_limited=trial.value > 50)

    limit = End.LIMITED_BY_TESTER.at(64, UNIT, attempts=3)
    search, _ = run(CountSearch(10**5, UNIT, near=1), measure)
    assert search.result() == (SearchResult(limit, 32),)


@pytest.mark.parametrize("truth", [0, 1, 7, 8, 100, 640, 641, 700, 999, 1000])
@pytest.mark.parametrize("near", [None, 1, 8, 100, 700, 1000, 5000])
def test_where_a_search_of_bursts_begins_changes_no_result(truth: int, near: int | None) -> None:
    search, asked = run(CountSearch(1000, UNIT, repeats=2, near=near), holding(truth))
    assert {1 <= trial.value <= 1000 for trial in asked} == {True}
    [found] = search.result()
    ends = {0: End.LOSS_AT_MIN, 1000: End.NO_LOSS_AT_MAX}
    assert found.outcome.end is ends.get(truth, End.REACHED)
    assert found.longest == {0: (), 1000: (1000,)}.get(truth, (truth, truth))
