# SPDX-License-Identifier: BSD-3-Clause
"""How sure a difference of two means is: Welch's t (Welch 1947) over repeats, many pairs at once.

Arrays have a row for each repeat and a column for each pair; NaN is what was not measured. Degrees
of freedom are Welch's and Satterthwaite's, no whole number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from ..analysis.statistics import LEAST_FOR_CORRELATION, MOST_CORRELATION, greatest_by_chance

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RepeatSample:
    """The repeats of one result: mean, and the variance of that mean, of each pair."""

    count: Floats
    mean: Floats
    variance_of_mean: Floats  # NaN with less than two repeats
    dependent: NDArray[np.bool_]  # repeats follow their neighbours beyond chance

    @classmethod
    def of(cls, values: Floats) -> RepeatSample:
        """Repeats that depend on each other are worth fewer (analysis/statistics.py)."""
        known = ~np.isnan(values)
        count = known.sum(axis=0).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(known, values, 0.0).sum(axis=0) / count
            left = np.where(known, values - mean, 0.0)
            squares = (left**2).sum(axis=0)
            # What summing in another order would change is no spread.
            squares = np.where(squares <= count * (1e-12 * np.abs(mean)) ** 2, 0.0, squares)
            variance = squares / (count - 1) / count
            correlation = (left[1:] * left[:-1]).sum(axis=0) / squares
        dependent = np.zeros(values.shape[1], dtype=bool)
        if len(values) >= LEAST_FOR_CORRELATION:
            whole = known.all(axis=0) & (squares > 0)
            dependent = whole & (correlation > greatest_by_chance(len(values)))
        bounded = np.minimum(np.where(dependent, correlation, 0.0), MOST_CORRELATION)
        variance = np.where(count > 1, variance, np.nan) * (1 + bounded) / (1 - bounded)
        return cls(count, mean, variance, dependent)


@dataclass(frozen=True)
class WelchTest:
    """Differences of means, `other` less `base`; NaN where repeats can't tell."""

    base: RepeatSample
    other: RepeatSample
    difference: Floats
    error: Floats  # standard error of the difference
    freedom: Floats
    p: Floats  # of a difference at least as large, if there were none

    def half_width(self, confidence: float, chosen: NDArray[np.int64]) -> Floats:
        """Of the differences' confidence intervals, of the chosen columns."""
        return t_quantile(confidence, self.freedom[chosen]) * self.error[chosen]


def test(base: Floats, other: Floats) -> WelchTest:
    """Welch's test of each column."""
    a, b = RepeatSample.of(base), RepeatSample.of(other)
    difference = b.mean - a.mean
    variance = a.variance_of_mean + b.variance_of_mean
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = a.variance_of_mean**2 / (a.count - 1) + b.variance_of_mean**2 / (b.count - 1)
        freedom = np.where(variance > 0, variance**2 / parts, np.nan)
        error = np.where(variance > 0, np.sqrt(variance), np.nan)
        p = t_tail(np.abs(difference / error), freedom)
    return WelchTest(a, b, difference, error, freedom, p)


def holm(p: Floats) -> Floats:
    """The probabilities as Holm (1979) corrects them for how many were asked at once; NaN is none.

    Of a hundred equal flows five would else differ `at 95 %`.
    """
    adjusted = np.full(len(p), np.nan)
    asked = np.flatnonzero(~np.isnan(p))
    order = asked[np.argsort(p[asked], kind="stable")]
    weighted = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(weighted))
    return adjusted


def t_tail(t: Floats, freedom: Floats) -> Floats:
    """P(|T| > t) of Student's t with any degrees of freedom above 0; NaN stays NaN."""
    tail: Floats = 2.0 * stdtr(freedom, -t)
    return tail


def t_quantile(confidence: float, freedom: Floats) -> Floats:
    """The t with P(|T| <= t) = confidence: the two-sided critical value; NaN stays NaN."""
    quantile: Floats = stdtrit(freedom, (1.0 + confidence) / 2.0)
    return quantile
