# SPDX-License-Identifier: BSD-3-Clause
"""How sure a mean is: Student's t against printed tables, intervals against draws of known mean."""

from __future__ import annotations

import math
import random

import pytest

from switchbench.model import Repeats, Trial
from switchbench.results.statistics import (
    RepeatTable,
    autocorrelation,
    greatest_by_chance,
    interval,
    t_probability,
    t_quantile,
)
from synthetic import make_site, make_trial

# NIST/SEMATECH e-Handbook, 1.3.6.7.2: critical values of Student's t, one-sided 0.95, 0.975, 0.995.
TABLE = {
    1: (6.314, 12.706, 63.657),
    2: (2.920, 4.303, 9.925),
    3: (2.353, 3.182, 5.841),
    4: (2.132, 2.776, 4.604),
    5: (2.015, 2.571, 4.032),
    9: (1.833, 2.262, 3.250),
    10: (1.812, 2.228, 3.169),
    29: (1.699, 2.045, 2.756),
    30: (1.697, 2.042, 2.750),
    100: (1.660, 1.984, 2.626),
}


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_as_printed(freedom: int) -> None:
    found = [t_quantile(confidence, freedom) for confidence in (0.90, 0.95, 0.99)]
    assert found == pytest.approx(TABLE[freedom], abs=0.0006)


def test_quantile_and_probability_are_inverse() -> None:
    for freedom in (1, 2, 3, 7, 50, 999, 9999):
        for confidence in (0.5, 0.95, 0.9999):
            t = t_quantile(confidence, freedom)
            assert t_probability(t, freedom) == pytest.approx(confidence, rel=1e-9)


def test_an_interval_by_hand() -> None:
    """1, 2, 3, 4, 5: mean 3, s = sqrt(2.5), t(4) = 2.776445."""
    found = interval([5.0, 1.0, 4.0, 2.0, 3.0], 0.95)
    assert found is not None
    assert found.mean == 3.0
    assert found.deviation == pytest.approx(math.sqrt(2.5))
    assert found.half_width == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)
    assert found.width == pytest.approx(2 * found.half_width / 3)
    assert (found.low, found.high) == (3 - found.half_width, 3 + found.half_width)
    assert not found.dependent


def test_too_few_values_have_none() -> None:
    assert interval([], 0.95) is None
    assert interval([3.0], 0.95) is None


def test_equal_values_are_sure() -> None:
    found = interval([7.0] * 5, 0.95)
    assert found is not None
    assert (found.width, found.correlation, found.dependent) == (0.0, None, False)
    nothing = interval([0.0, 0.0], 0.95)
    assert nothing is not None
    assert nothing.width == 0.0
    around_zero = interval([-1.0, 1.0], 0.95)
    assert around_zero is not None
    assert math.isinf(around_zero.width)


def test_intervals_cover_the_truth() -> None:
    """95 of 100 do: within 4 standard errors of 2,000 draws, dependent ones left out."""
    draw = random.Random(5)
    runs, covered = 2000, 0
    for _ in range(runs):
        found = interval([draw.gauss(100, 3) for _ in range(4)], 0.95)
        assert found is not None
        covered += found.low <= 100 <= found.high
    assert abs(covered / runs - 0.95) < 4 * math.sqrt(0.95 * 0.05 / runs)


def follow(draw: random.Random, weight: float, count: int) -> list[float]:
    """Repeats of which each is near the one before (an AR(1) process)."""
    values, last = [], draw.gauss(0, 1 / math.sqrt(1 - weight * weight))
    for _ in range(count):
        last = weight * last + draw.gauss(0, 1)
        values.append(100 + last)
    return values


def test_autocorrelation() -> None:
    assert autocorrelation([1.0, 2.0, 3.0, 4.0]) is None  # too few to say
    assert autocorrelation([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(0.4)
    assert autocorrelation([1.0, -1.0] * 50) == pytest.approx(-0.99)
    draw = random.Random(1)
    assert autocorrelation(follow(draw, 0.8, 5000)) == pytest.approx(0.8, abs=0.05)


def test_independent_repeats_seldom_look_dependent() -> None:
    draw = random.Random(2)
    alarms = 0
    for _ in range(1000):
        found = interval([draw.gauss(100, 1) for _ in range(20)], 0.95)
        assert found is not None
        alarms += found.dependent
    assert 20 <= alarms <= 80  # 5 % by the choice of the limit


def test_dependent_repeats_get_a_wider_interval() -> None:
    """Student's interval misses the truth often; the wider one does so much more seldom."""
    draw = random.Random(3)
    runs, covered, plain = 500, 0, 0
    for _ in range(runs):
        values = follow(draw, 0.8, 30)
        found = interval(values, 0.95)
        assert found is not None
        half = t_quantile(0.95, 29) * found.deviation / math.sqrt(30)
        plain += abs(found.mean - 100) <= half
        covered += found.low <= 100 <= found.high
        assert found.half_width >= half
    assert plain / runs < 0.6
    assert covered / runs > 0.75  # r is estimated too small from 30 repeats


def test_the_limit_of_chance() -> None:
    assert greatest_by_chance(5) == pytest.approx((1.645 * math.sqrt(3) - 1) / 4)
    assert greatest_by_chance(30) == pytest.approx(0.2657, abs=1e-3)


# --- whether to go on ------------------------------------------------------------------------


def trials(repeats: Repeats) -> list[Trial]:
    site = make_site()
    return [
        make_trial(site, number, repeat=number, repeats=repeats) for number in range(repeats.most)
    ]


def run_until_enough(repeats: Repeats, values: list[float | None]) -> tuple[RepeatTable, int]:
    """Repeats as the controller does; how many were run."""
    told = trials(repeats)
    table = RepeatTable(told)
    count = 0
    for trial, value in zip(told, values, strict=False):
        if table.needed(trial):
            assert trial.repeat == count, "one was run after one that was not needed"
            table.add(trial, "lab", value)
            count += 1
    return table, count


UNTIL_SURE = Repeats(5, 12, 0.02, 0.95)


def test_quiet_repeats_end_at_the_least() -> None:
    table, count = run_until_enough(UNTIL_SURE, [100.0, 100.1, 99.9, 100.0, 100.05] * 3)
    assert count == 5
    (entry,) = table.summary()
    assert entry["verdict"] == "conclusive"
    assert entry["reason"] is None
    assert entry["width_percent"] < 2
    assert table.doubt(trials(UNTIL_SURE)[0]) is None


def test_noise_takes_more_and_then_is_enough() -> None:
    noisy: list[float | None] = [98.0, 102.0, 99.0, 101.0, 100.0, 100.1, 99.9, 100.0, 100.0, 100.0]
    table, count = run_until_enough(UNTIL_SURE, noisy)
    assert 5 < count < 12
    (entry,) = table.summary()
    assert entry["verdict"] == "conclusive"
    assert len(entry["values"]) == count


def test_the_limit_leaves_it_inconclusive_with_the_interval() -> None:
    draw = random.Random(8)
    table, count = run_until_enough(UNTIL_SURE, [draw.gauss(100, 20) for _ in range(12)])
    assert count == 12
    (entry,) = table.summary()
    assert entry["verdict"] == "inconclusive"
    assert entry["low"] < entry["mean"] < entry["high"]
    assert "after 12 repeats, more than the 2 % asked for" in entry["reason"]


def test_to_stop_early_costs_little() -> None:
    """Stopping when the interval is narrow covers the truth almost as often as it says."""
    draw = random.Random(11)
    repeats, ended, covered = Repeats(5, 30, 0.02, 0.95), 0, 0
    for _ in range(400):
        values: list[float | None] = [draw.gauss(100, 2) for _ in range(repeats.most)]
        table, _ = run_until_enough(repeats, values)
        (entry,) = table.summary()
        if entry["verdict"] == "conclusive":
            ended += 1
            covered += entry["low"] <= 100 <= entry["high"]
    assert ended > 350
    assert covered / ended > 0.90


def test_a_repeat_that_failed_ends_them() -> None:
    table, count = run_until_enough(UNTIL_SURE, [100.0, None, 90.0, 110.0, 100.0, 100.0])
    assert count == 5
    (entry,) = table.summary()
    assert entry["verdict"] == "inconclusive"
    assert entry["reason"] == "1 of 5 repeats could not be measured"
    assert entry["values"][1] is None


def test_a_fixed_number_is_judged_by_nobody() -> None:
    table, count = run_until_enough(Repeats(3, 3), [50.0, 100.0, 150.0])
    assert count == 3
    (entry,) = table.summary()
    assert entry["verdict"] is None
    assert entry["asked_width_percent"] is None
    assert entry["low"] < 100 < entry["high"]


def test_one_repeat_is_no_statistic() -> None:
    table, count = run_until_enough(Repeats(1, 1), [50.0])
    assert (count, table.summary()) == (1, [])
