# SPDX-License-Identifier: BSD-3-Clause
"""A history: runs of one network in the order of their dates, the last against all before it.

Whether the last run is worse is asked as every comparison asks it (comparison.py), with the earlier
runs as one side. A trend is the median of the slopes of all pairs of runs (Theil and Sen): it finds
what becomes worse so slowly that no run stands out. Whether there is one is asked by Kendall's rank
correlation with time, exact for few runs, corrected by Holm for all figures of the history.
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
TREND_RUNS = 5  # with fewer, no order of runs is rarer than 5 %


@dataclass(frozen=True)
class Course:
    """One measure of one pattern over the runs.

    `values`: of each run its mean, None where it was not observed; `slope`: percent of the median
    per run, and `p`: how probable so strong an order is without a trend, None where not known.
    """

    title: str
    measure: ComparedMeasure
    values: list[float | None]
    verdict: str  # of the last run against all before it
    slope: float | None = None
    p: float | None = None
    trend: str = ""  # better, worse or none; empty where there are too few runs

    def judged(self, p_adjusted: float, confidence: float) -> Course:
        """Return the course with its trend."""
        if self.slope is None:
            return self
        gains = (self.slope > 0) == (self.measure.better > 0)
        sure = self.slope != 0 and p_adjusted <= 1 - confidence
        return replace(self, trend=("better" if gains else WORSE) if sure else "none")


@dataclass(frozen=True)
class History:
    """All runs, the comparison of the last one with those before, and each measure's course."""

    runs: list[Subject]
    comparison: Comparison
    courses: list[Course]
    unlike: list[str]  # a sentence for each run that lacks what another one has

    @property
    def worse(self) -> list[Course]:
        """The measures of which the last run or the trend is worse."""
        return [one for one in self.courses if WORSE in (one.verdict, one.trend)]

    def document(self) -> dict[str, object]:
        """Return the history as JSON for other programs has it (doc/how-to/compare.md)."""
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
    """Return the history of results directories, whatever order they are named in.

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
    """Yield a sentence for each run that lacks what another one has, and what has no partner."""
    for pair in compared.pairs:
        having = {run.directory for run, _ in (*pair.base.runs, *pair.other.runs)}
        for directory in directories:
            if directory not in having:
                yield f"{directory} has no {pair.base.title}"
    yield from compared.alone


def _course(of: Pair, row: Row, directories: Sequence[Path]) -> Course:
    """Return the course of a measure, with its trend where there are runs enough to judge one."""
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
    """Yield a measure's values of the repeats of a run, those that the tester did not limit."""
    for result, plans in (*of.base.runs, *of.other.runs):
        for plan in plans if result.directory == directory else ():
            value = None if plan.get("tester_limited") else measure.of(whole_plan(result, plan))
            if value is not None:
                yield value
