# SPDX-License-Identifier: BSD-3-Clause
"""How sure a mean is: Student's t against printed tables, intervals against draws of known mean."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from switchbench.analysis.statistics import (
    CONFIDENCE,
    RepeatTable,
    deviation_limit,
    estimates,
    greatest_by_chance,
    interval,
    t_quantile,
)
from switchbench.base.model import Repeats, Trial
from synthetic import make_site, make_trial


@pytest.mark.rows
def test_quantiles_as_printed(freedom: int, students: list[float], chi: float | None) -> None:
    """NIST/SEMATECH e-Handbook, 1.3.6.7.2: critical values of Student's t, one-sided 0.95, 0.975
    and 0.995; 1.3.6.7.4: lower critical values of chi-squared, 0.01."""
    found = [t_quantile(confidence, freedom) for confidence in (0.90, 0.95, 0.99)]
    assert found == pytest.approx(students, abs=0.0006)
    if chi is not None:
        least = deviation_limit(0.95, freedom) ** -2 * freedom
        assert least == pytest.approx(chi, abs=0.0006)


def test_the_limit_of_a_deviation_far_out() -> None:
    limits = [deviation_limit(0.95, freedom) for freedom in (8000, 8492, 8493, 10_000)]
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] == pytest.approx(1.0168, abs=1e-4)  # by Wilson and Hilferty 1931


def test_an_interval_by_hand() -> None:
    """1, 2, 3, 4, 5: mean 3, s = sqrt(2.5), t(4) = 2.776445."""
    found = interval([5.0, 1.0, 4.0, 2.0, 3.0], 0.95)
    assert found is not None
    assert found.mean == 3.0
    assert found.standard_deviation == pytest.approx(math.sqrt(2.5))
    assert found.ci_half_width == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)
    assert found.width == pytest.approx(2 * found.ci_half_width / 3)
    assert (found.ci_low, found.ci_high) == (3 - found.ci_half_width, 3 + found.ci_half_width)
    assert not found.dependent
    # Where the values decided the number of repeats, r is -0.7 and 0.4, of which -1/5 is by chance.
    chosen = interval([5.0, 1.0, 4.0, 2.0, 3.0], 0.95, chosen=True)
    rising = interval([1.0, 2.0, 3.0, 4.0, 5.0], 0.95, chosen=True)
    assert chosen is not None
    assert rising is not None
    assert chosen.ci_half_width == pytest.approx(found.ci_half_width * deviation_limit(0.95, 4))
    assert rising.ci_half_width == pytest.approx(chosen.ci_half_width * math.sqrt(1.6 / 0.4))


@pytest.mark.parametrize(
    ("values", "width"),
    [((), None), ((3.0,), None), ((7.0,) * 5, 0.0), ((0.0, 0.0), 0.0), ((-1.0, 1.0), math.inf)],
)
def test_width_of_few_or_equal_values(values: tuple[float, ...], width: float | None) -> None:
    found = interval(values, 0.95)
    assert (found and found.width) == width
    assert found is None or (found.autocorrelation, found.dependent) == (None, False)


def follow(draw: random.Random, weight: float, count: int) -> list[float]:
    """Return repeats of which each is near the one before (an AR(1) process)."""
    values, last = [], draw.gauss(0, 1 / math.sqrt(1 - weight * weight))
    for _ in range(count):
        last = weight * last + draw.gauss(0, 1)
        values.append(100 + last)
    return values


def test_autocorrelation() -> None:
    values = [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, -1.0] * 50]
    values.append(follow(random.Random(1), 0.8, 5000))
    found = [one and one.autocorrelation for one in (interval(some, 0.95) for some in values)]
    assert found == [
        None, pytest.approx(0.4), pytest.approx(-0.99), pytest.approx(0.8, abs=0.05),
    ]  # fmt: skip


@pytest.mark.parametrize("count", [5, 8, 20, 100])
def test_independent_repeats_seldom_look_dependent(count: int) -> None:
    draws = np.random.default_rng(2).standard_normal((100_000, count))
    left = draws - draws.mean(axis=1, keepdims=True)
    coefficients = (left[:, 1:] * left[:, :-1]).sum(axis=1) / (left**2).sum(axis=1)
    first = interval(draws[0].tolist(), 0.95)
    assert first is not None
    assert coefficients[0] == pytest.approx(first.autocorrelation)
    assert 0.048 < np.mean(coefficients > greatest_by_chance(np.float64(count))) < 0.06


def test_dependent_repeats_get_a_wider_interval() -> None:
    """Student's interval misses the truth often; the wider one does so much more seldom."""
    draw = random.Random(3)
    runs, covered, plain = 500, 0, 0
    for _ in range(runs):
        values = follow(draw, 0.8, 30)
        found = interval(values, 0.95)
        assert found is not None
        half = t_quantile(0.95, 29) * found.standard_deviation / math.sqrt(30)
        plain += abs(found.mean - 100) <= half
        covered += found.ci_low <= 100 <= found.ci_high
        assert found.ci_half_width >= half * (1 - 1e-12)
    assert plain / runs < 0.6
    assert covered / runs > 0.75  # r is estimated too small from 30 repeats


def test_the_limit_of_chance() -> None:
    """Moran 1948: the mean is -1/n, the variance (n - 2)^2 / (n^2 (n - 1))."""
    by_hand = -1 / 5 + 1.645 * math.sqrt(9 / (25 * 4))
    assert greatest_by_chance(np.float64(5)) == pytest.approx(by_hand)
    assert greatest_by_chance(np.float64(30)) == pytest.approx(0.2518, abs=1e-4)


# --- whether to go on ------------------------------------------------------------------------


def trials(repeats: Repeats) -> list[Trial]:
    site = make_site()
    return [
        make_trial(site, number, repeat=number, repeats=repeats) for number in range(repeats.most)
    ]


def run_until_enough(repeats: Repeats, values: list[float | None]) -> tuple[RepeatTable, int]:
    """Return repeats as the controller does; how many were run."""
    told = trials(repeats)
    table = RepeatTable(told)
    count = 0
    for trial, value in zip(told, values, strict=False):
        if table.needed(trial):
            assert trial.repeat == count, "one was run after one that was not needed"
            table.add(trial, "lab", value)
            count += 1
    return table, count


UNTIL_SURE = Repeats(5, 12, 0.02)
NOISE = [99.0, 101.0, 99.5, 100.5, 100.0, 100.1, 99.9, 100.0, 100.0, 100.0]
DRAW = random.Random(8)
FAR = [DRAW.gauss(100, 20) for _ in range(12)]
RISING = [float(value) for value in range(90, 102)]


@pytest.mark.parametrize(
    ("values", "run", "reason"),
    [
        ([100.0, 100.1, 99.9, 100.0, 100.05] * 3, {5}, None),
        (NOISE, set(range(6, 12)), None),
        (FAR, {12}, "after 12 repeats, more than the 2 % asked for..."),
        # They rise from one to the next, or else each is as far from the mean as the one before.
        (RISING, {12}, "2 % asked for, and the repeats depend on each other"),
        ([80.0, 120.0] * 6, {12}, "2 % asked for"),
        ([100.0, None, 90.0, 110.0, 100.0, 100.0], {5}, "1 of 5 repeats could not be measured"),
    ],
)
def test_repeats_end_when_they_are_sure_or_at_the_limit(
    values: list[float | None], run: set[int], reason: str | None
) -> None:
    table, count = run_until_enough(UNTIL_SURE, values)
    assert count in run
    (entry,) = table.summary()
    assert entry["verdict"] == ("inconclusive" if reason else "conclusive")
    assert entry["values"] == values[:count]
    why = (reason or "").removesuffix("...")
    assert why in (entry["reason"] or "")
    assert why != reason or (entry["reason"] or "").endswith(why)
    assert table.doubt(trials(UNTIL_SURE)[0]) == entry["reason"]
    if reason and "measured" not in reason:
        assert entry["reason"].startswith("the 95 % confidence interval is ")
        assert entry["ci_low"] < entry["mean"] < entry["ci_high"]
    elif not reason:
        assert entry["ci_width_percent"] < 2


def draws(kind: str, draw: random.Random) -> Iterator[float]:
    """Deviations of repeats from their mean, of variance 1; of `outliers` in parts of how far one
    in 20 is below the others."""
    follows = {"autocorrelated": 0.5, "autocorrelated 0.3": 0.3}.get(kind)
    if follows is not None:
        last = draw.gauss(0, 1)
        while True:
            yield last
            last = follows * last + math.sqrt(1 - follows**2) * draw.gauss(0, 1)
    while kind == "outliers":
        yield 0.05 - (draw.random() < 0.05) + 0.01 * draw.gauss(0, 1)
    while True:  # skewed: most repeats are a little above the mean, a few are far below
        yield draw.gauss(0, 1) if kind == "normal" else 1 - draw.expovariate(1)


def coverage(kind: str, deviations: list[float], repeats: Repeats, draw: random.Random) -> Any:
    """Runs that repeat until the interval is narrow enough: one for each deviation.

    Of all runs, and of those that are conclusive, the shares whose interval held the mean; and of
    all the shares that are conclusive, and that are and miss it.
    """
    values = np.array(
        [[1 + part * x for x in islice(draws(kind, draw), repeats.most)] for part in deviations]
    ).T
    covers, sure = (np.zeros(len(deviations), dtype=bool) for _ in range(2))
    for count in range(repeats.least, repeats.most + 1):
        left = np.flatnonzero(~sure)
        found = estimates(values[:count, left], CONFIDENCE, chosen=True)
        half = t_quantile(CONFIDENCE, count - 1) * found.error
        covers[left] = np.abs(found.mean - 1) <= half
        sure[left] = 2 * half / np.abs(found.mean) <= (repeats.width or 0)
    held = covers[sure].mean() if sure.any() else 1.0
    return covers.mean(), held, sure.mean(), (sure & ~covers).mean()


KINDS = ("normal", "skewed", "autocorrelated")
PLANS = (Repeats(3, 10, 0.02), Repeats(5, 10, 0.02), Repeats(5, 30, 0.02))


@pytest.mark.parametrize("repeats", PLANS)
@pytest.mark.parametrize("kind", KINDS)
def test_conclusive_intervals_cover_the_truth(kind: str, repeats: Repeats) -> None:
    """Deviations of 0.1 to 4 % of the mean, as likely from each to its double: of all intervals,
    and of those that are called conclusive. Whatever the deviation, so many repeats that can't
    settle it are hardly ever conclusive."""
    draw = random.Random(11)
    wide = [math.exp(draw.uniform(math.log(0.001), math.log(0.04))) for _ in range(3000)]
    covered, held, conclusive, _ = coverage(kind, wide, repeats, draw)
    assert min(covered, held) > 0.97
    assert conclusive > 1 / 3
    for deviation in (0.005, 0.01, 0.02, 0.03):
        covered, held, conclusive, missed = coverage(
            kind, [deviation] * 800, repeats, random.Random(12)
        )
        assert covered > 0.94  # 0.95 less what 800 runs may be off by
        if kind == "normal" and conclusive > 0.2:  # by more than chance
            assert held > 0.94
        assert missed < 0.05


@pytest.mark.rows
def test_how_often_a_verdict_holds_is_as_documented(
    kind: str, deviation: float, held: float, conclusive: float
) -> None:
    """Of 5 to 30 repeats (doc/reference/measures.md): percent of the conclusive intervals that hold
    the mean, and of the runs that are conclusive."""
    runs = 700
    _, *seen, _ = coverage(kind, [deviation] * runs, PLANS[2], random.Random(14))
    for found, count, percent in zip(seen, (runs * seen[1], runs), (held, conclusive), strict=True):
        share = percent / 100
        assert abs(found - share) < 4 * math.sqrt(share * (1 - share) / count)


def test_a_fixed_number_is_judged_by_nobody() -> None:
    table, count = run_until_enough(Repeats(3, 3), [50.0, 100.0, 150.0])
    assert count == 3
    (entry,) = table.summary()
    assert entry["verdict"] is None
    assert entry["target_ci_width_percent"] is None
    assert entry["ci_low"] < 100 < entry["ci_high"]
