# SPDX-License-Identifier: BSD-3-Clause
"""Confidence intervals of means over repeats, and the decision on one more repeat.

The interval is Student's t, wider if the number of repeats was decided by looking at the values.
doc/reference/measures.md, "Repeats", has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..base.model import SCHEDULE, Repeats, Trial
from ..base.programs import Later
from ..records.summary_form import Entry, filled

Floats = NDArray[np.float64]
special = Later("scipy.special")  # its import takes 0.2 s

MEASURE: Final = "throughput"  # mean over the flows; repeats end when its interval is narrow
# time of a repetition, mean over ranks; repeats of dependent steps end by its interval
STEP_MEASURE: Final = "repetition_us"
CONFIDENCE: Final = 0.95  # confidence level of every interval
NORMAL_ONE_SIDED = 1.645  # 95 % of the normal distribution
LEAST_FOR_CORRELATION = 5  # min repeats for an autocorrelation
MOST_CORRELATION = 0.99  # larger correlations are taken as this one
DEVIATION_SHARE = 0.2  # probability of a deviation above its limit, as a share of 1 - confidence


@cache
def t_quantile(confidence: float, freedom: int) -> float:
    """Return Student's two-sided critical value t: P(|T| <= t) = confidence."""
    return float(special.stdtrit(freedom, (1.0 + confidence) / 2.0))


@cache
def deviation_limit(confidence: float, freedom: int) -> float:
    """Return the factor from a sample's deviation to the upper limit of the true deviation.

    The sample is taken from a normal distribution, with `freedom` degrees of freedom.

    Repeats that end as soon as an interval is narrow tend to end at a deviation that is small by
    chance. So the decision uses the limit, not the deviation itself.
    """
    chance = DEVIATION_SHARE * (1.0 - confidence)
    return math.sqrt(freedom / float(special.chdtri(freedom, 1.0 - chance)))


def gammaln(values: NDArray[Any]) -> Any:
    """Return the logarithms of the gamma function of positive values."""
    return special.gammaln(values)


def greatest_by_chance(count: Floats) -> Floats:
    """Return the lag-1 autocorrelation that 5 to 6 % of independent samples exceed by chance.

    The limit assumes a normal distribution with the coefficient's exact mean and variance (Moran
    1948), computed about the sample's own mean.
    """
    return (NORMAL_ONE_SIDED * (count - 2) / np.sqrt(count - 1) - 1.0) / count


@dataclass(frozen=True)
class Estimates:
    """Means over repeats with their errors: one element for each quantity; NaN is unknown."""

    count: Floats
    mean: Floats
    deviation: Floats  # standard deviation of the sample
    error: Floats  # standard error of the mean, corrected for dependence and for stopping
    correlation: Floats  # lag 1
    dependent: NDArray[np.bool_]  # true: the correlation is beyond chance


def estimates(values: Floats, confidence: float, chosen: bool = False) -> Estimates:
    """Return for each column the mean over repeats, with its standard error.

    All intervals and tests over repeats are computed here. `values`: a row for each repeat, NaN if
    not measured. `chosen`: true if the values decided how many repeats were made;
    the standard error is then larger (deviation_limit).

    n values with autocorrelation r are worth n (1 - r) / (1 + r) independent values. If r is beyond
    chance, the standard error grows accordingly; a negative r never reduces it. If `chosen`, the
    error always grows by the excess of r over its mean by chance, -1/n.
    """
    known = ~np.isnan(values)
    count = known.sum(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=0) / count
        left = np.where(known, values - mean, 0.0)
        squares = (left**2).sum(axis=0)
        # Rounding errors that depend on the order of summation are no deviation.
        squares = np.where(squares <= count * (1e-12 * np.abs(mean)) ** 2, 0.0, squares)
        deviation = np.where(count > 1, np.sqrt(squares / (count - 1)), np.nan)
        correlation = (left[1:] * left[:-1]).sum(axis=0) / squares
    gapless = (known == (np.arange(len(values))[:, None] < count)).all(axis=0)
    judged = gapless & (squares > 0) & (count >= LEAST_FOR_CORRELATION)
    correlation = np.where(judged, correlation, np.nan)
    dependent = judged & (correlation > greatest_by_chance(np.maximum(count, 2)))
    error = deviation / np.sqrt(np.maximum(count, 1))
    if chosen:
        for repeats in np.unique(count[count > 1]):
            error[count == repeats] *= deviation_limit(confidence, int(repeats) - 1)
        follows = np.where(judged, correlation + 1.0 / np.maximum(count, 1), 0.0)
    else:
        follows = np.where(dependent, correlation, 0.0)
    bounded = np.clip(follows, 0.0, MOST_CORRELATION)
    error *= np.sqrt((1.0 + bounded) / (1.0 - bounded))
    return Estimates(count, mean, deviation, error, correlation, dependent)


@dataclass(frozen=True)
class ConfidenceInterval:
    """Confidence interval of a mean, with the keys of the summary's `statistics`."""

    mean: float
    standard_deviation: float  # of the sample
    ci_half_width: float
    ci_low: float
    ci_high: float
    autocorrelation: float | None  # lag 1
    dependent: bool  # true: correlated repeats, so wider than Student's interval

    @property
    def width(self) -> float:
        """Return the full width of the interval as a share of the mean."""
        if self.ci_half_width == 0.0:
            return 0.0
        return math.inf if self.mean == 0.0 else 2.0 * self.ci_half_width / abs(self.mean)


def interval(
    values: Sequence[float], confidence: float, chosen: bool = False
) -> ConfidenceInterval | None:
    """Return the confidence interval of the mean of the values; None for fewer than two values."""
    if len(values) < 2:
        return None
    found = estimates(np.array(values, dtype=np.float64)[:, None], confidence, chosen)
    columns = (found.mean, found.deviation, found.error, found.correlation)
    mean, deviation, error, correlation = (float(column[0]) for column in columns)
    half = t_quantile(confidence, len(values) - 1) * error
    known = None if math.isnan(correlation) else correlation
    return ConfidenceInterval(
        mean, deviation, half, mean - half, mean + half, known, bool(found.dependent[0])
    )


@dataclass
class _Point:
    """Repeats of one setting: a value for each repeat and network; None: not measured."""

    first: Trial
    values: dict[int, dict[str, float | None]] = field(default_factory=dict)
    trials: list[int] = field(default_factory=list)

    def of(self, network: str, before: int | None = None) -> list[float | None]:
        """Return a network's values in order of repeats, all or those before repeat `before`."""
        repeats = sorted(self.values) if before is None else range(before)
        return [self.values.get(repeat, {}).get(network) for repeat in repeats]


class RepeatTable:
    """Table of repeats: decides on further repeats, and gives the interval of their mean.

    The decision depends on the values alone, so that a summary computed again from the records has
    the same result.
    """

    def __init__(self, trials: Iterable[Trial]) -> None:
        """Create the table of the planned trials, without any values."""
        self._points: dict[int, _Point] = {}
        for trial in trials:
            self.expect(trial)

    def expect(self, trial: Trial) -> None:
        """Add a trial of the plan, which may be skipped later."""
        self._points.setdefault(trial.point, _Point(trial))

    def add(self, trial: Trial, network: str, value: float | None) -> None:
        """Add the value of one repeat in one network; None: not measured correctly."""
        point = self._points[trial.point]
        point.values.setdefault(trial.repeat, {})[network] = value
        if trial.id not in point.trials:
            point.trials.append(trial.id)

    def needed(self, trial: Trial) -> bool:
        """Return whether a repeat has to be measured, given the repeats before it.

        A repeat that could not be measured ends the repeats of its setting.
        """
        if trial.repeat < trial.repeats.least:
            return True
        point = self._points[trial.point]
        found = [point.of(part.network, trial.repeat) for part in trial.parts]
        if any(None in values for values in found):
            return False
        return any(self._doubt(trial.repeats, values) is not None for values in found)

    def doubt(self, trial: Trial) -> str | None:
        """Return the reason why the mean of the trial's setting is inconclusive, or None.

        None: the mean is conclusive, or the configuration limits no width of the interval.
        """
        point = self._points[trial.point]
        doubts = (self._doubt(trial.repeats, point.of(part.network)) for part in trial.parts)
        return next((doubt for doubt in doubts if doubt), None)

    def summary(self) -> list[Entry]:
        """Return the summary's `statistics`, one entry for each repeated setting and network."""
        entries = []
        for number, point in sorted(self._points.items()):
            first, repeats = point.first, point.first.repeats
            by_steps, width = first.traffic == SCHEDULE, repeats.width
            if not point.values or (len(point.values) == 1 and width is None):
                continue
            for part in first.parts:
                values = point.of(part.network)
                known = [value for value in values if value is not None]
                found = interval(known, CONFIDENCE, chosen=width is not None)
                doubt = self._doubt(repeats, values)
                verdict = "inconclusive" if doubt else "conclusive"
                ci_width = math.inf if found is None else found.width
                entries.append(
                    filled(
                        "StatisticEntry",
                        found,
                        point=number,
                        test=first.test,
                        trials=point.trials,
                        network=part.network,
                        measure=STEP_MEASURE if by_steps else MEASURE,
                        unit="us" if by_steps else "Mbit/s",
                        values=values,
                        target_ci_width_percent=None if width is None else 100 * width,
                        confidence_percent=100 * CONFIDENCE,
                        ci_width_percent=None if math.isinf(ci_width) else 100 * ci_width,
                        verdict=None if width is None else verdict,
                        reason=doubt,
                    )
                )
        return entries

    @staticmethod
    def _doubt(repeats: Repeats, values: Sequence[float | None]) -> str | None:
        if repeats.width is None:
            return None
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return f"{len(values) - len(known)} of {len(values)} repeats could not be measured"
        if len(known) < repeats.least:
            return f"{len(known)} of at least {repeats.least} repeats were measured"
        found = interval(known, CONFIDENCE, chosen=True)
        if found is None or found.width <= repeats.width:
            return None
        return (
            f"the {100 * CONFIDENCE:g} % confidence interval is "
            f"{100 * found.width:.3g} % of the mean after {len(known)} repeats, more than the "
            f"{100 * repeats.width:g} % asked for"
            + (", and the repeats depend on each other" if found.dependent else "")
        )
