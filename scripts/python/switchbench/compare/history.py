# SPDX-License-Identifier: BSD-3-Clause
"""History of one network: runs in order of date, with the last run compared to all earlier ones.

The test of the last run is that of every comparison (comparison.py), with the earlier runs as one
side. A trend is the median slope over all pairs of runs (Theil and Sen): it finds slow degradation
in which no single run stands out. Its significance is by Kendall's rank correlation with time,
exact for few runs, corrected by Holm for all figures of the history.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau, theilslopes

from ..analysis.measures import mean
from ..base.errors import ConfigurationError
from .cases import Subject, joined, load
from .comparison import Compared, CompareOptions, Comparison, compare
from .differences import OTHER_LOAD, SHARED_MACHINE, WORSE, Pair, Row, holm, whole_plan
from .measures import MEASURES, ComparedMeasure

EARLIER, LAST = "earlier", "last"
TREND_RUNS = 5  # with fewer runs, no order is rarer than 5 %


@dataclass(frozen=True)
class Course:
    """One measure of one pattern over the runs of a history.

    `values` has each run's mean, or None where the run lacks the measure. `slope` is in percent of
    the median per run. `p` is the probability of so strong an order without a trend; None where
    unknown.
    """

    title: str
    measure: ComparedMeasure
    values: list[float | None]
    verdict: str  # verdict on the last run against all earlier runs
    slope: float | None = None
    p: float | None = None
    trend: str = ""  # better, worse or none; empty with too few runs

    def judged(self, p_adjusted: float, confidence: float) -> Course:
        """Return the course with its trend set by a corrected p-value."""
        if self.slope is None:
            return self
        gains = (self.slope > 0) == (self.measure.better > 0)
        sure = self.slope != 0 and p_adjusted <= 1 - confidence
        return replace(self, trend=("better" if gains else WORSE) if sure else "none")


@dataclass(frozen=True)
class History:
    """Runs of one network, the comparison of the last with the earlier ones, and all courses."""

    runs: list[Subject]
    comparison: Comparison
    courses: list[Course]
    unlike: list[str]  # a sentence for each run that lacks a case of another run

    @property
    def worse(self) -> list[Course]:
        """Return the courses in which the last run or the trend is worse."""
        return [one for one in self.courses if WORSE in (one.verdict, one.trend)]

    def document(self) -> dict[str, object]:
        """Return the history as JSON for other programs (doc/how-to/compare.md)."""
        return {
            **self.comparison.document(),
            "runs": [
                {"directory": str(run.measured.directory), "started": _started(run)}
                for run in self.runs
            ],
            "courses": [
                {
                    "pattern": one.title,
                    "measure": one.measure.name,
                    "unit": one.measure.unit,
                    "values": one.values,
                    "verdict": one.verdict,
                    "trend": one.trend or None,
                    "slope_percent": one.slope,
                    "p": one.p,
                }
                for one in self.courses
            ],
        }


def history(words: Sequence[str], asked: CompareOptions) -> History:
    """Return the history of results directories, given in any order.

    Raises
    ------
    ConfigurationError
        With fewer than two directories, or where one can't be read.
    """
    if len(words) < 2:
        raise ConfigurationError("--history takes two results directories or more")
    if twice := [word for word in words if words.count(word) > 1]:
        raise ConfigurationError(f"--history: duplicate directory {twice[0]}")
    runs = sorted((one for word in words for one in load([word], None)), key=_started)
    directories = [run.measured.directory for run in runs]
    names = [EARLIER] * (len(runs) - 1) + [LAST]
    sides = joined([replace(run, name=name) for run, name in zip(runs, names, strict=True)])
    comparison = compare(sides, asked)
    (compared,) = comparison.compared
    found = (
        _course(compared.pairs[row["pair"]], row, directories) for row in compared.levels["plans"]
    )
    courses = list(found)
    corrected = holm(np.array([math.nan if one.p is None else one.p for one in courses]))
    judged = [
        one.judged(float(p), asked.confidence) for one, p in zip(courses, corrected, strict=True)
    ]
    return History(runs, comparison, judged, list(_unlike(compared, directories)))


def _started(run: Subject) -> str:
    return str(run.measured.summary["run"].get("started") or "")


def _unlike(compared: Compared, directories: Sequence[Path]) -> Iterator[str]:
    """Yield a sentence for each run that lacks a compared case, and for each unmatched case."""
    for pair in compared.pairs:
        having = {run.directory for run, _ in (*pair.base.runs, *pair.other.runs)}
        for directory in directories:
            if directory not in having:
                yield f"{directory} has no {pair.base.title}"
    yield from compared.alone


def _course(of: Pair, row: Row, directories: Sequence[Path]) -> Course:
    """Return the course of a measure, with a trend where there are enough runs."""
    measure = next(one for one in MEASURES if one.name == row["measure"])
    values = [mean(_values(of, measure, directory)) for directory in directories]
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    course = Course(of.base.title, measure, values, row["verdict"])
    if len(known) < TREND_RUNS or row["reason"] in (OTHER_LOAD, SHARED_MACHINE):
        return course
    places, heights = np.array(known).T
    middle = float(np.median(heights))
    if not middle:
        return course
    slope = 100 * float(theilslopes(heights, places)[0]) / abs(middle)
    p = float(kendalltau(places, heights).pvalue)
    return replace(course, slope=slope, p=p)


def _values(of: Pair, measure: ComparedMeasure, directory: Path) -> Iterator[float]:
    """Yield a measure's value for each repeat of a run, except tester-limited repeats."""
    for result, plans in (*of.base.runs, *of.other.runs):
        for plan in plans if result.directory == directory else ():
            value = None if plan.get("tester_limited") else measure.of(whole_plan(result, plan))
            if value is not None:
                yield value
