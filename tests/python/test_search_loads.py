# SPDX-License-Identifier: BSD-3-Clause
"""Searches for loads: bounds around a known truth, and how searches end that find none."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plain_search import PlainBinarySearch
from search_devices import LossyDevice, run
from switchbench.search.loads import (
    NDR,
    PDR,
    RFC2544,
    TST009,
    CannotBeMet,
    HeldAllOffered,
    InProgress,
    LimitedByTester,
    LoadGrid,
    LoadRange,
    LoadSearch,
    LossAtMin,
    NoLossAtMax,
    OutOfTime,
    ProposedTrial,
    Reached,
    Search,
    SearchGoal,
    TrialLoss,
    method_s,
)

LOADS = LoadRange(14_881.0, 14_880_952.0)


@given(
    truth=st.floats(0.002, 0.99),
    collapse=st.floats(0.0, 3.0),
    width=st.sampled_from([0.001, 0.005, 0.05]),
    goals=st.lists(st.sampled_from([RFC2544, TST009, NDR, PDR]), min_size=1, max_size=3),
)
@settings(deadline=None, max_examples=150)
def test_bounds_are_around_the_truth(
    truth: float, collapse: float, width: float, goals: list[SearchGoal]
) -> None:
    device = LossyDevice(truth * LOADS.max, collapse=collapse)
    goals = [
        SearchGoal(g.loss_ratio, g.exceed_ratio, g.final_trial_s, g.duration_sum_s, 1.0, width)
        for g in goals
    ]
    search, asked = run(LoadSearch(goals, LOADS), device.measure)
    assert all(LOADS.min <= trial.value <= LOADS.max for trial in asked)
    for goal, result in zip(goals, search.result(), strict=True):
        if isinstance(result.outcome, NoLossAtMax):
            assert device.measure(ProposedTrial(LOADS.max, 60.0)).loss_ratio <= goal.loss_ratio
            continue
        assert result.is_regular
        lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
        assert lower is not None
        assert upper is not None
        held, failed = (
            device.measure(ProposedTrial(load, goal.final_trial_s)).loss_ratio <= goal.loss_ratio
            for load in (lower, upper)
        )
        assert (held, failed) == (True, False)
        assert result.relative_width is not None
        assert result.relative_width <= width
        assert result.conditional_throughput is not None
        assert lower * (1 - goal.loss_ratio) <= result.conditional_throughput <= lower


@pytest.mark.parametrize("seed", range(60))
def test_a_device_without_rule_still_ends_the_search(seed: int) -> None:
    rng = random.Random(seed)

    def measure(trial: ProposedTrial) -> TrialLoss:
        return TrialLoss(1000, rng.choice([0, 0, 3, 30]), trial.duration_s)

    search, asked = run(LoadSearch([NDR, PDR, RFC2544], LOADS), measure)
    assert len(asked) < 3000
    for result in search.result():
        assert isinstance(result.outcome, (Reached, LossAtMin, NoLossAtMax))


def test_trials_serve_all_goals() -> None:
    device = LossyDevice(5e6)
    both, _ = run(LoadSearch([RFC2544, TST009], LOADS), device.measure)
    apart = [run(LoadSearch([goal], LOADS), device.measure)[0] for goal in (RFC2544, TST009)]
    assert both.used_s < sum(search.used_s for search in apart)
    assert both.result()[0] == apart[0].result()[0]


def test_short_trials_come_first() -> None:
    _, asked = run(LoadSearch([RFC2544], LOADS), LossyDevice(5e6).measure)
    assert asked[0] == ProposedTrial(LOADS.max, 1.0)
    assert asked[-1].duration_s == 60.0
    assert sum(trial.duration_s == 60.0 for trial in asked) <= 2


def test_plain_search_takes_full_trials_alone() -> None:
    search, asked = run(PlainBinarySearch(LOADS), LossyDevice(5e6).measure)
    result = search.result()
    assert {trial.duration_s for trial in asked} == {60.0}
    assert [trial.value for trial in asked[:2]] == [LOADS.max, LOADS.min]
    assert result.relevant_lower_bound is not None
    assert result.relevant_upper_bound is not None
    assert result.relevant_lower_bound <= 5e6 < result.relevant_upper_bound
    assert result.relative_width is not None
    assert result.relative_width <= 0.005


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("truth", "outcome", "words"),
    [
        (2e7, NoLossAtMax(LOADS.max, "frames/s"), "holds the max of the range, 1.4881e+07"),
        (1e3, LossAtMin(LOADS.min, "frames/s"), "fails at the min of the range, 14881 frames/s"),
    ],
)
def test_a_search_that_never_brackets(
    truth: float, outcome: LossAtMin | NoLossAtMax, words: str, plain: bool
) -> None:
    device = LossyDevice(truth)
    if plain:
        result = run(PlainBinarySearch(LOADS), device.measure)[0].result()
    else:
        (result,) = run(LoadSearch([RFC2544], LOADS), device.measure)[0].result()
    assert result.outcome == outcome
    assert words in result.outcome.sentence
    assert not result.is_regular
    assert result.relative_width is None
    assert (result.conditional_throughput == LOADS.max) == (truth > LOADS.max)


def test_tester_limited_trials_are_repeated_and_then_end_the_search() -> None:
    def measure(trial: ProposedTrial) -> TrialLoss:
        return TrialLoss(10, 10, trial.duration_s, tester_limited=True)

    search, asked = run(LoadSearch([NDR, PDR], LOADS), measure)
    assert asked == [ProposedTrial(LOADS.max, 1.0)] * 3
    for result in search.result():
        assert result.outcome == LimitedByTester(LOADS.max, "frames/s", 3)
        assert "The tester, not the device" in result.outcome.sentence
        assert result.relevant_lower_bound is None


@pytest.mark.parametrize(("truth", "found"), [(61.0, Reached), (95.0, HeldAllOffered)])
def test_what_the_tester_cannot_offer_is_not_searched(truth: float, found: type) -> None:
    """It offers 70 % of the line at most."""
    device = LossyDevice(truth * 1e4)
    loads = LoadRange(1e4, 1e6)

    def measure(trial: ProposedTrial) -> TrialLoss:
        result = device.measure(trial)
        if trial.value <= 70e4:
            return result
        return replace(result, tester_limited=True, offered_part=70e4 / trial.value)

    search, _ = run(LoadSearch([NDR, PDR], loads), measure)
    for result in search.result():
        assert isinstance(result.outcome, found)
        assert result.relevant_lower_bound == pytest.approx(min(truth, 70.0) * 1e4, rel=0.011)
    assert search.stopped is None


def test_a_tester_limited_trial_now_and_then_changes_nothing() -> None:
    device, rng = LossyDevice(5e6), random.Random(1)
    plain, _ = run(LoadSearch([RFC2544], LOADS), device.measure)
    limited_before = False

    def measure(trial: ProposedTrial) -> TrialLoss:
        nonlocal limited_before
        limited_before = not limited_before and rng.random() < 0.5
        if limited_before:
            return TrialLoss(10, 10, trial.duration_s, tester_limited=True)
        return device.measure(trial)

    search, _ = run(LoadSearch([RFC2544], LOADS), measure)
    assert search.result() == plain.result()
    assert search.used_s > plain.used_s


def test_time_limit_keeps_what_is_known() -> None:
    device = LossyDevice(5e6, collapse=1.0)
    search, asked = run(LoadSearch([NDR, RFC2544], LOADS), device.measure, time_limit_s=60.0)
    assert search.used_s <= 60.0
    done, cut = search.result()
    assert done.is_regular
    assert isinstance(cut.outcome, OutOfTime)
    assert "its next trial takes 60 s, and time_limit is 60 s" in cut.outcome.sentence
    assert cut.relevant_upper_bound is not None
    assert cut.relevant_lower_bound is None
    assert len(asked) == search.trials


def test_result_before_the_end() -> None:
    search = Search(LoadSearch([RFC2544], LOADS))
    assert search.result()[0].outcome == InProgress()
    with pytest.raises(ValueError, match="another duration"):
        search.answer(TrialLoss(10, 0, 60.0))
    search, _ = run(LoadSearch([RFC2544], LOADS), LossyDevice(5e6).measure)
    with pytest.raises(ValueError, match="has ended"):
        search.answer(TrialLoss(10, 0, 60.0))


def test_estimate_is_what_a_device_that_behaves_takes() -> None:
    alone = method_s(lambda _: LoadSearch([RFC2544], LOADS), LOADS)
    assert 60.0 < alone < 200.0
    assert method_s(lambda _: LoadSearch([RFC2544], LOADS), LOADS, overhead_s=5.0) > alone + 5 * 5.0
    assert method_s(lambda _: LoadSearch([RFC2544, NDR], LOADS), LOADS) > alone


def test_what_cannot_be_met_is_said_per_size() -> None:
    found = CannotBeMet(100.0, {"64 B": 70.0, "1518 B": 60.0})
    words = "needs 130 s (64 B at least 70 s, 1518 B at least 60 s), limit 100 s: raise time_limit"
    assert found.sentence.startswith(words)


@pytest.mark.parametrize("widths", [[0.005], [0.005, 0.003], [0.01, 0.1, 0.0007], [0.3]])
def test_grid_has_steps_of_the_widths(widths: list[float]) -> None:
    grid = LoadGrid(LOADS, widths)
    assert grid.load(0) == pytest.approx(LOADS.min)
    assert grid.load(grid.top) == LOADS.max
    for width in widths:
        steps = grid.steps(width)
        reached = 1 - grid.load(100) / grid.load(100 + steps) if grid.top > 100 + steps else width
        assert 0.9 * width <= reached <= width * (1 + 1e-9)
    for number in range(0, grid.top, 7):
        assert grid.below(grid.load(number) * (1 + 1e-9)) == number
    assert (grid.below(0.0), grid.below(1e12)) == (0, grid.top)


def test_ranges_and_searches_refused() -> None:
    for least, most in ((0.0, 1.0), (2.0, 2.0), (3.0, 2.0)):
        with pytest.raises(ValueError, match="a range of loads"):
            LoadRange(least, most)
    with pytest.raises(ValueError, match="at least one goal"):
        LoadSearch([], LOADS)
