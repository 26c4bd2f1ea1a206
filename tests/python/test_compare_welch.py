# SPDX-License-Identifier: BSD-3-Clause
"""Welch's t against figures that others have published, and against Student's t of repeats."""

from __future__ import annotations

import numpy as np
import pytest

from switchbench.analysis import statistics
from switchbench.compare.differences import Sample, WelchTest, holm, welch

# The first two examples of the article "Welch's t-test" in Wikipedia: samples of equal size ...
ONE = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4]
TWO = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4]
# ... and of 10 and 20 values.
FEW = [17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8]
MANY = [21.5, 22.8, 21.0, 23.0, 21.6, 23.6, 22.5, 20.7, 23.4, 21.8]
MANY += [20.7, 21.7, 21.5, 22.5, 23.6, 21.5, 22.5, 23.5, 21.5, 21.8]


def column(values: list[float]) -> statistics.Floats:
    return np.array(values, dtype=np.float64)[:, None]


def welch_of(base: statistics.Floats, other: statistics.Floats) -> WelchTest:
    return welch(Sample(base), Sample(other), 0.95)


@pytest.mark.parametrize(
    ("one", "two", "t", "freedom", "p"),
    [(ONE, TWO, 2.45536, 24.9885, 0.021378), (FEW, MANY, 1.565, 9.905, 0.149)],
)
def test_published(one: list[float], two: list[float], t: float, freedom: float, p: float) -> None:
    found = welch_of(column(one), column(two))
    assert found.difference[0] / found.error[0] == pytest.approx(t, rel=1e-3)
    assert found.freedom[0] == pytest.approx(freedom, rel=1e-3)
    assert found.p[0] == pytest.approx(p, rel=5e-3)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Of 4,000 pairs of samples without a difference, of unequal spread and size."""
    random = np.random.default_rng(6)
    found = welch_of(random.normal(5.0, 1.0, (4, 4000)), random.normal(5.0, 3.0, (9, 4000)))
    covered = np.abs(found.difference) <= found.half_width(0.95)
    assert 0.94 < covered.mean() < 0.96
    assert np.nanmean(found.p < 0.05) == pytest.approx(1.0 - covered.mean(), abs=1e-9)


def test_an_allowance_covers_what_all_repeats_of_a_run_share() -> None:
    """Runs of five repeats that deviate by 0.1 %, and by 2 % from run to run."""
    random = np.random.default_rng(7)
    runs = [100 + random.normal(0, 2, 4000) + random.normal(0, 0.1, (5, 4000)) for _ in range(2)]
    without = welch_of(*runs)
    assert (np.abs(without.difference) <= without.half_width(0.95)).mean() < 0.2
    found = welch(*(Sample(run, shared=0.02) for run in runs), 0.95)
    assert 0.94 < (np.abs(found.difference) <= found.half_width(0.95)).mean() < 0.96


@pytest.mark.parametrize("deviation", [0.005, 0.01, 0.02, 0.04])
def test_repeats_until_the_mean_is_sure_cover_the_truth(deviation: float) -> None:
    """Of both sides the repeats ended when their interval was 2 % wide, or after ten."""
    random = np.random.default_rng(8)
    sides = []
    for _ in range(2):
        values = random.normal(1.0, deviation, (10, 2000))
        for count in range(9, 2, -1):  # the first count that would do ends the repeats
            found = statistics.estimates(values[:count], 0.95, chosen=True)
            sure = 2 * statistics.t_quantile(0.95, count - 1) * found.error <= 0.02
            values[count:, sure] = np.nan
        sides.append(values)
    found = welch(*(Sample(side, chosen=True) for side in sides), 0.95)
    assert (np.abs(found.difference) <= found.half_width(0.95)).mean() > 0.95
    plain = welch_of(*sides)
    narrower = plain.half_width(0.95) < found.half_width(0.95)
    assert narrower.all()


def test_nothing_is_made_up() -> None:
    """One repeat, none, or no spread at all: no probability, no interval."""
    nan = np.nan
    base = np.array([[1.0, nan, 5.0, 0.1], [nan, nan, 5.0, 0.2], [nan, nan, 5.0, 0.3]])
    other = np.array([[2.0, 3.0, 6.0, 1.1], [2.5, 3.5, 6.0, 1.2], [2.6, 3.1, 6.0, 1.3]])
    found = welch_of(base, other)
    assert np.isnan(found.p).tolist() == [True, True, True, False]
    width = found.half_width(0.95)
    assert np.isnan(width).tolist() == [True, True, True, False]
    assert found.difference[2] == 1.0
    assert found.base.count.tolist() == [1, 0, 3, 3]


def test_equal_values_have_no_spread_of_rounding() -> None:
    found = welch_of(column([0.1 + 0.2] * 3), column([0.3, 0.1 + 0.2, 0.3]))
    assert np.isnan(found.p[0])


def test_repeats_that_follow_each_other_are_worth_less() -> None:
    drift = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]
    mixed = [1.4, 1.1, 1.7, 1.0, 1.6, 1.2, 1.5, 1.3]
    calm = column([1.0, 1.2, 1.1, 1.0, 1.1, 1.2, 1.0, 1.2])
    slow, quick = welch_of(calm, column(drift)), welch_of(calm, column(mixed))
    assert slow.other.dependent[0]
    assert not quick.other.dependent[0]
    assert slow.difference[0] == pytest.approx(quick.difference[0])
    assert slow.error[0] > 1.5 * quick.error[0]
    single = statistics.interval(drift, 0.95)
    assert single is not None
    # The half width that the summary's `statistics` gives this side alone.
    error = slow.other.error[0]
    assert single.half_width == pytest.approx(statistics.t_quantile(0.95, 7) * error)


def test_holm() -> None:
    p = np.array([0.01, 0.04, np.nan, 0.03, 0.005])
    assert holm(p)[[0, 1, 3, 4]] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert np.isnan(holm(p)[2])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
