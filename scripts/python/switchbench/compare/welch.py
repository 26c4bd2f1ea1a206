# SPDX-License-Identifier: BSD-3-Clause
"""How sure a difference of two means is: Welch's t (Welch 1947), many pairs at once.

Arrays have a row for each sample and a column for each pair; NaN is what was not measured. Means
and their errors are those of every interval (analysis/statistics.py). Degrees of freedom are
Welch's and Satterthwaite's, no whole number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from ..analysis.statistics import Estimates, Floats, estimates


@dataclass(frozen=True)
class Sample:
    """One side: what was measured, and what else its mean may be off by, as shares of the mean."""

    values: Floats
    shared: float = 0.0  # standard deviation of what all values share, as by their run; known
    rounding: float = 0.0  # the same of what all values are rounded to
    chosen: bool = False  # how many values there are was decided by looking at them


@dataclass(frozen=True)
class WelchTest:
    """Differences of means, `other` less `base`; NaN where repeats can't tell."""

    base: Estimates
    other: Estimates
    difference: Floats
    error: Floats  # standard error of the difference
    freedom: Floats
    p: Floats  # of a difference at least as large, if there were none

    def half_width(self, confidence: float) -> Floats:
        """Of the differences' confidence intervals."""
        half: Floats = stdtrit(self.freedom, (1.0 + confidence) / 2.0) * self.error
        return half


def test(base: Sample, other: Sample, confidence: float) -> WelchTest:
    """Welch's test of each column.

    What values share is known, not estimated, and has infinite freedom. Rounding widens the error
    alone: to trust it where the spread of a few values is small by chance would claim too much.
    """
    a, b = (estimates(side.values, confidence, side.chosen) for side in (base, other))
    difference = b.mean - a.mean
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = (base.shared * a.mean) ** 2 + (other.shared * b.mean) ** 2
        rounding = (base.rounding * a.mean) ** 2 + (other.rounding * b.mean) ** 2
        variance = a.error**2 + b.error**2 + shared
        parts = a.error**4 / (a.count - 1) + b.error**4 / (b.count - 1)
        freedom = np.where(variance > 0, variance**2 / parts, a.count + b.count - 2)
        variance = variance + rounding
        error = np.where(variance > 0, np.sqrt(variance), np.nan)
        freedom = np.where(variance > 0, freedom, np.nan)
        p = 2.0 * stdtr(freedom, -np.abs(difference / error))
    return WelchTest(a, b, difference, error, freedom, p)


def holm(p: Floats) -> Floats:
    """Return the probabilities as Holm (1979) corrects them for how many were asked at once.

    NaN is none.

    Of a hundred equal flows five would else differ `at 95 %`.
    """
    adjusted = np.full(len(p), np.nan)
    asked = np.flatnonzero(~np.isnan(p))
    order = asked[np.argsort(p[asked], kind="stable")]
    weighted = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(weighted))
    return adjusted
