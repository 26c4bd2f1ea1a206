# SPDX-License-Identifier: BSD-3-Clause
"""Binary searches of bursts and of addresses: exact to one, with few and short trials."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_devices import run
from switchbench.search.counts import CountSearch, address_search
from switchbench.search.outcomes import LimitedByTester, LossAtMin, NoLossAtMax, Reached
from switchbench.search.trials import ProposedTrial, TrialLoss

LINE_RATE = 14_880_952.0


def holding(truth: int) -> Callable[[ProposedTrial], TrialLoss]:
    def measure(trial: ProposedTrial) -> TrialLoss:
        number = round(trial.value)
        return TrialLoss(number, max(0, number - truth), trial.duration_s)

    return measure


@given(truth=st.integers(1, 10**6))
def test_the_longest_burst_is_exact(truth: int) -> None:
    search, asked = run(
        CountSearch(1, 2 * 10**6, "frames", seconds_each=1 / LINE_RATE), holding(truth)
    )
    result = search.result()
    assert (result.largest, result.smallest_failing) == (truth, truth + 1)
    assert result.outcome == Reached()
    assert len(asked) <= 2 * truth.bit_length() + 2
    assert max(trial.value for trial in asked) <= 2 * truth
    assert asked[0].duration_s == pytest.approx(1 / LINE_RATE)


@pytest.mark.parametrize("truth", [1000, 1024, 8191, 8192, 32768, 32769])
def test_the_largest_table_is_exact(truth: int) -> None:
    search, _ = run(address_search(65536, 1000.0), holding(truth))
    assert search.result().largest == truth


def test_a_search_that_never_brackets() -> None:
    search, asked = run(address_search(5000, 1000.0, smallest=100), holding(10**6))
    assert search.result().outcome == NoLossAtMax(5000, "addresses")
    assert asked[-1].value == 5000
    search, asked = run(CountSearch(100, 5000, "frames"), holding(10))
    assert search.result().outcome == LossAtMin(100, "frames")
    assert search.result().largest is None
    assert len(asked) == 1


def test_loss_is_verified_where_asked() -> None:
    """Every other trial loses a frame for no reason."""
    count = 0

    def measure(trial: ProposedTrial) -> TrialLoss:
        nonlocal count
        count += 1
        lost = max(0, round(trial.value) - 777)
        return TrialLoss(round(trial.value), max(lost, count % 2), trial.duration_s)

    search, _ = run(CountSearch(1, 10**5, "frames", verifications=1), measure)
    assert search.result().largest == 777


def test_tester_limited() -> None:
    def measure(trial: ProposedTrial) -> TrialLoss:
        return TrialLoss(1, 0, trial.duration_s, tester_limited=trial.value > 50)

    search, _ = run(CountSearch(1, 10**5, "frames"), measure)
    assert search.result().outcome == LimitedByTester(64, "frames", 3)
    assert search.result().largest == 32


@pytest.mark.parametrize("bounds", [(0, 5), (5, 5), (6, 5)])
def test_refused(bounds: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="a search of numbers"):
        CountSearch(*bounds, "frames")
    with pytest.raises(ValueError, match="a rate of"):
        address_search(100, 0.0)
    with pytest.raises(ValueError, match="at least 0"):
        CountSearch(1, 5, "frames", verifications=-1)
