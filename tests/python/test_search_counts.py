# SPDX-License-Identifier: BSD-3-Clause
"""Binary searches of bursts and of addresses: exact to one, with few and short trials."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_devices import run
from switchbench.search.loads import LimitedByTester, ProposedTrial, Reached, TrialLoss
from switchbench.search.suites.formulas import CountResult
from switchbench.search.suites.methods import CountSearch

LINE_RATE = 14_880_952.0


def holding(truth: int) -> Callable[[ProposedTrial], TrialLoss]:
    def measure(trial: ProposedTrial) -> TrialLoss:
        number = round(trial.value)
        return TrialLoss(number, max(0, number - truth), trial.duration_s)

    return measure


def table(largest: int) -> CountSearch:
    return CountSearch(largest, "addresses", seconds_each=1e-3, near=1, confirms=True)


@given(truth=st.integers(1, 10**6))
def test_the_longest_burst_is_exact(truth: int) -> None:
    search, asked = run(
        CountSearch(2 * 10**6, "frames", seconds_each=1 / LINE_RATE, verifications=0, near=1),
        holding(truth),
    )
    assert search.result() == CountResult((truth,), Reached(), truth)
    assert len(asked) <= 2 * truth.bit_length() + 2
    assert max(trial.value for trial in asked) <= 2 * truth
    assert asked[0].duration_s == pytest.approx(1 / LINE_RATE)


@pytest.mark.parametrize("truth", [1000, 1024, 8191, 8192, 32768, 32769])
def test_the_largest_table_is_exact(truth: int) -> None:
    """Twice as fast, the number that failed fails again."""
    search, asked = run(table(65536), holding(truth))
    assert search.result() == CountResult((truth,), Reached(), truth)
    assert asked[-1].value == truth + 1
    assert asked[-1].duration_s == pytest.approx((truth + 1) / 2000)


def test_loss_is_verified_where_asked() -> None:
    """Every other trial loses a frame for no reason."""
    count = 0

    def measure(trial: ProposedTrial) -> TrialLoss:
        nonlocal count
        count += 1
        lost = max(0, round(trial.value) - 777)
        return TrialLoss(round(trial.value), max(lost, count % 2), trial.duration_s)

    search, _ = run(CountSearch(10**5, "frames"), measure)
    assert search.result().longest == (777,)


def test_tester_limited() -> None:
    def measure(trial: ProposedTrial) -> TrialLoss:
        return TrialLoss(1, 0, trial.duration_s, tester_limited=trial.value > 50)

    search, _ = run(CountSearch(10**5, "frames", near=1), measure)
    assert search.result() == CountResult((), LimitedByTester(64, "frames", 3), 32)
