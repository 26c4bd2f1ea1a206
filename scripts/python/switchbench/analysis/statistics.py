# SPDX-License-Identifier: BSD-3-Clause
"""How sure a mean over repeats is, and whether one more repeat is worth its time.

The interval is Student's t, and wider where the number of repeats was decided by looking at them.
Formulas stand in doc/reference/measures.md, "Repeats".
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
from ..records.summary_form import Entry, filled

Floats = NDArray[np.float64]

MEASURE: Final = "throughput"  # what decides: the plan's mean of flows
STEP_MEASURE: Final = "repetition_us"  # ... and of what goes by steps: the mean time over ranks
NORMAL_ONE_SIDED = 1.645  # 95 % of the normal distribution
LEAST_FOR_CORRELATION = 5  # repeats; with fewer the coefficient says nothing
MOST_CORRELATION = 0.99  # what a wider interval is computed with at most
DEVIATION_SHARE = 0.2  # of what `confidence` leaves: how often a deviation is above its upper limit


@cache
def t_quantile(confidence: float, freedom: int) -> float:
    """Return the t with P(|T| <= t) = confidence: the two-sided critical value."""
    from scipy.special import stdtrit  # a fifth of a second, which runs without repeats don't need

    return float(stdtrit(freedom, (1.0 + confidence) / 2.0))


@cache
def deviation_limit(confidence: float, freedom: int) -> float:
    """Return how many times a sample's deviation the true one may be, at the confidence.

    Of normal draws.

    Who repeats until an interval is narrow stops where the sample's deviation is small by chance,
    so this limit of it, and not the deviation itself, says whether the mean is sure.
    """
    from scipy.special import chdtri

    chance = DEVIATION_SHARE * (1.0 - confidence)
    return math.sqrt(freedom / float(chdtri(freedom, 1.0 - chance)))


def gammaln(values: NDArray[Any]) -> Any:
    """Return the logarithms of the gamma function of positive values."""
    from scipy.special import gammaln as of  # loaded when flows are judged, not when a run begins

    return of(values)


def greatest_by_chance(count: Floats) -> Floats:
    """Return the lag-1 coefficient that 5 to 6 % of independent repeats exceed.

    The normal distribution with the coefficient's exact mean and variance (Moran 1948), both of a
    sample's own mean.
    """
    limit: Floats = (NORMAL_ONE_SIDED * (count - 2) / np.sqrt(count - 1) - 1.0) / count
    return limit


@dataclass(frozen=True)
class Estimates:
    """Means over repeats of many things, a column each; NaN is what is not known."""

    count: Floats
    mean: Floats
    deviation: Floats  # standard deviation of the sample
    error: Floats  # standard error of the mean, corrected for dependence and for stopping
    correlation: Floats  # lag 1
    dependent: NDArray[np.bool_]  # beyond chance


def estimates(values: Floats, confidence: float, chosen: bool = False) -> Estimates:
    """Return the means of the columns, and how far from the truth they may be.

    This is the one place where repeats become an interval or a test. `values`: a row for each
    repeat, NaN where it was not measured. `chosen`: how many repeats there are was decided by
    looking at them, and the error is wider by what that hides (deviation_limit).

    Values that follow their neighbours are worth fewer independent ones: n (1 - r) / (1 + r). Where
    r is beyond chance the error is wider by that; a negative r never makes it narrower. Where
    the values were looked at, what r says beyond its mean by chance, -1/n, always counts.
    """
    known = ~np.isnan(values)
    count = known.sum(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=0) / count
        left = np.where(known, values - mean, 0.0)
        squares = (left**2).sum(axis=0)
        # What summing in another order would change is no spread.
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
    """The confidence interval of a mean."""

    mean: float
    deviation: float  # standard deviation of the sample
    half_width: float
    correlation: float | None  # lag 1
    dependent: bool  # beyond chance: Student's interval is too narrow, and half_width is wider

    @property
    def low(self) -> float:
        """Its lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width

    @property
    def width(self) -> float:
        """Its full width as a share of the mean."""
        if self.half_width == 0.0:
            return 0.0
        return math.inf if self.mean == 0.0 else 2.0 * self.half_width / abs(self.mean)


def interval(
    values: Sequence[float], confidence: float, chosen: bool = False
) -> ConfidenceInterval | None:
    """Return the interval of the values' mean, as `estimates` has it; None for less than two."""
    if len(values) < 2:
        return None
    found = estimates(np.array(values, dtype=np.float64)[:, None], confidence, chosen)
    half_width = t_quantile(confidence, len(values) - 1) * float(found.error[0])
    known = None if np.isnan(found.correlation[0]) else float(found.correlation[0])
    return ConfidenceInterval(
        float(found.mean[0]), float(found.deviation[0]), half_width, known, bool(found.dependent[0])
    )


@dataclass
class _Point:
    """The repeats of one setting: a value of each network of each repeat; None: not measured."""

    first: Trial
    values: dict[int, dict[str, float | None]] = field(default_factory=dict)
    trials: list[int] = field(default_factory=list)

    def of(self, network: str, before: int | None = None) -> list[float | None]:
        """Return the values in the order of repeats; of the first so many."""
        repeats = sorted(self.values) if before is None else range(before)
        return [self.values.get(repeat, {}).get(network) for repeat in repeats]


class RepeatTable:
    """Gathers repeats while they are measured; says whether there are enough, and how sure it is.

    Which repeats are needed follows from the values alone: a summary that is made again from the
    records comes to the same.
    """

    def __init__(self, trials: Iterable[Trial]) -> None:
        """Knows what may come."""
        self._points: dict[int, _Point] = {}
        for trial in trials:
            self.expect(trial)

    def expect(self, trial: Trial) -> None:
        """Add one that may come."""
        self._points.setdefault(trial.point, _Point(trial))

    def add(self, trial: Trial, network: str, value: float | None) -> None:
        """Take one network's value of one repeat; None: it was not measured as it should."""
        point = self._points[trial.point]
        point.values.setdefault(trial.repeat, {})[network] = value
        if trial.id not in point.trials:
            point.trials.append(trial.id)

    def needed(self, trial: Trial) -> bool:
        """Return whether this repeat is to be run, after those before it.

        One that could not be measured ends the repeats: more of them would not make it known.
        """
        if trial.repeat < trial.repeats.least:
            return True
        point = self._points[trial.point]
        found = [point.of(part.network, trial.repeat) for part in trial.parts]
        if any(None in values for values in found):
            return False
        return any(self._doubt(trial.repeats, values) is not None for values in found)

    def doubt(self, trial: Trial) -> str | None:
        """Return why the mean of this trial's point is inconclusive.

        None: it is not, or nobody asked.
        """
        point = self._points[trial.point]
        doubts = (self._doubt(trial.repeats, point.of(part.network)) for part in trial.parts)
        return next((doubt for doubt in doubts if doubt), None)

    def summary(self) -> list[Entry]:
        """Return the summary's `statistics`.

        One entry for each setting and network that was repeated.
        """
        return [
            self._entry(point, part.network)
            for _, point in sorted(self._points.items())
            for part in point.first.parts
            if len(point.values) > 1 or (point.values and point.first.repeats.width is not None)
        ]

    @staticmethod
    def _doubt(repeats: Repeats, values: Sequence[float | None]) -> str | None:
        if repeats.width is None:
            return None
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return f"{len(values) - len(known)} of {len(values)} repeats could not be measured"
        if len(known) < repeats.least:
            return f"{len(known)} of at least {repeats.least} repeats were measured"
        found = interval(known, repeats.confidence, chosen=True)
        if found is None or found.width <= repeats.width:
            return None
        return (
            f"the {100 * repeats.confidence:g} % confidence interval is "
            f"{100 * found.width:.3g} % of the mean after {len(known)} repeats, more than the "
            f"{100 * repeats.width:g} % asked for"
            + (", and the repeats depend on each other" if found.dependent else "")
        )

    def _entry(self, point: _Point, network: str) -> Entry:
        repeats, by_steps = point.first.repeats, point.first.traffic == SCHEDULE
        values, width = point.of(network), repeats.width
        known = [value for value in values if value is not None]
        found = interval(known, repeats.confidence, chosen=width is not None)
        doubt = self._doubt(repeats, values)
        return filled(
            "StatisticEntry",
            {key: getattr(found, name, None) for key, name in _INTERVAL.items()},
            point=point.first.point,
            test=point.first.test,
            trials=point.trials,
            network=network,
            measure=STEP_MEASURE if by_steps else MEASURE,
            unit="us" if by_steps else "Mbit/s",
            values=values,
            min_repeats=repeats.least,
            max_repeats=repeats.most,
            target_ci_width_percent=None if width is None else 100 * width,
            confidence_percent=100 * repeats.confidence,
            ci_width_percent=None
            if found is None or math.isinf(found.width)
            else 100 * found.width,
            verdict=None if width is None else "inconclusive" if doubt else "conclusive",
            reason=doubt,
        )


# Keys of the summary's statistics, and what an interval calls them.
_INTERVAL = {
    "mean": "mean", "standard_deviation": "deviation", "ci_half_width": "half_width",
    "ci_low": "low", "ci_high": "high", "autocorrelation": "correlation", "dependent": "dependent",
}  # fmt: skip
