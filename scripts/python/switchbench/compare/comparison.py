# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of results: matched cases, reasons for unmatched ones, and all differences.

Two cases match if matrix, size, load and transport are equal, except for the compared settings. If
the compared setting is the transport, frames match messages as in the summary's comparisons
(analysis/series.py): at equal payload, else the largest frames. Schedules have no load, and match
the same schedule at equal size.

Measures come from the summary. A sample is a run where a side has several, else a repeat. With at
least two samples on both sides, the difference has a confidence interval by Welch's t (Welch 1947);
else a reason replaces it. All tests of one comparison form one family: with 95 % confidence, at
most 5 of 100 comparisons of equal networks claim any difference at all. Arrays have a row per
sample and a column per compared measure; NaN is a missing measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from scipy.special import stdtr, stdtrit

from ..analysis.measures import mean
from ..analysis.series import alternated, matrix_series, rows_of
from ..analysis.statistics import CONFIDENCE, Estimates, estimates
from ..base import format
from ..base.errors import ConfigurationError
from ..base.model import SCHEDULE
from ..base.transports import NAMES
from ..records.rows import Floats
from ..records.summary_form import Entry, by
from .cases import (
    LOAD,
    MEASURES,
    NETWORK,
    SIZE,
    TRANSPORT,
    Case,
    ComparedMeasure,
    Differing,
    Subject,
    differing,
    figure_cases,
    joined,
    load,
)

BETTER: Final = "better"
WORSE: Final = "worse"
SAME: Final = "same"
UNSURE: Final = "not sure"
UNKNOWN: Final = "not known"
FEW_REPEATS = "no interval: needs at least 2 repeats per side"
ONE_SIDE = "observed in one of the results only"
OTHER_LOAD = "not judged: the intended loads differ"
SHARED_MACHINE = "not judged: the nodes share a machine's CPUs"

_PROBABILITIES = ("p", "p_adjusted")
Row = Entry
"""Compared measure of one case in two results, as in the JSON (doc/how-to/compare.md)."""


# --- Welch's t, many pairs at once ----------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Samples of one side of a comparison, and the errors that all samples share.

    Errors are shares of the mean.
    """

    values: Floats
    # standard deviation of a shared error, such as the run's; it is known, not estimated
    shared: float = 0.0
    rounding: float = 0.0  # standard deviation of the rounding that all values share
    chosen: bool = False  # true where the number of values was decided by their spread


@dataclass(frozen=True)
class WelchTest:
    """Differences of means, other result minus baseline; NaN if there are too few samples."""

    base: Estimates
    other: Estimates
    difference: Floats
    error: Floats  # standard error of the difference
    freedom: Floats
    p: Floats  # probability of so large a difference if both means are equal

    @property
    def half_width(self) -> Floats:
        """Return half the width of the confidence interval of each difference."""
        half: Floats = stdtrit(self.freedom, (1.0 + CONFIDENCE) / 2.0) * self.error
        return half


def welch(base: Sample, other: Sample) -> WelchTest:
    """Return Welch's t-test of the samples of two sides, for each column.

    The shared error is known, not estimated, and has infinite degrees of freedom. Rounding widens
    the standard error alone: a t-test with rounding would claim too much if the spread of a
    few values is small by chance.
    """
    a, b = (estimates(side.values, CONFIDENCE, side.chosen) for side in (base, other))
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
    """Return p-values, corrected for the number of tests by Holm (1979); NaN stays NaN.

    Without the correction, 5 of 100 equal flows would differ at 95 % confidence.
    """
    corrected = np.full(len(p), np.nan)
    asked = np.flatnonzero(~np.isnan(p))
    order = asked[np.argsort(p[asked], kind="stable")]
    weighted = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(weighted))
    return corrected


# --- tests of two matched cases -------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two matched cases: one of the baseline, one of the other result."""

    base: Case
    other: Case

    @property
    def title(self) -> str:
        """Return the case of the pair in words, with both settings if they differ."""
        if self.base.title == self.other.title:
            return self.base.title
        return f"{self.base.matrix}: {self.base.setting} → {self.other.setting}"

    @property
    def samples(self) -> str:
        """Return the number of samples in words, such as `5 repeats` or `3 and 2 runs`."""
        runs = [len(case.runs) for case in (self.base, self.other)]
        repeats = [len(case.plans) for case in (self.base, self.other)]
        noun, counts = ("run", runs) if max(runs) > 1 else ("repeat", repeats)
        *first, last = dict.fromkeys(counts)
        return " and ".join([*map(str, first), format.of(last, noun)])


@dataclass(frozen=True)
class MeasureTest:
    """Test of one measure of a pair of cases; `welch` has one column."""

    pair: int  # index of the pair in the match
    measure: ComparedMeasure
    welch: WelchTest  # its errors are NaN if no difference may be claimed
    refusal: str | None = None  # reason why no difference may be claimed

    def row(self, adjusted: float) -> Row:
        """Return the compared values for output; `adjusted` is the p-value corrected by Holm."""
        tested = self.welch
        counts = [int(side.count[0]) for side in (tested.base, tested.other)]
        difference, half = float(tested.difference[0]), float(tested.half_width[0])
        found = {
            "baseline": tested.base.mean[0],
            "other": tested.other.mean[0],
            "difference": difference,
            "ci_low": difference - half,
            "ci_high": difference + half,
            "degrees_of_freedom": tested.freedom[0],
            "p": tested.p[0],
            "p_adjusted": adjusted,
        }
        known = {k: float(value) if math.isfinite(value) else None for k, value in found.items()}
        base, p = known["baseline"], known["p_adjusted"]
        percent = 0.0 if difference == 0 else None
        if known["difference"] is not None and base:
            percent = 100.0 * difference / abs(base)
        verdict, reason = UNKNOWN, None
        if known["difference"] is None:
            reason = ONE_SIDE
        elif self.refusal is not None:
            reason = self.refusal
        elif min(counts) < 2:
            reason = FEW_REPEATS
        elif difference == 0:
            verdict = SAME
        elif p is None or p >= 1.0 - CONFIDENCE:
            verdict = UNSURE
        else:
            verdict = BETTER if difference * self.measure.better > 0 else WORSE
        return {
            "pair": self.pair,
            "measure": self.measure.name,
            "title": self.measure.title,
            "unit": self.measure.unit,
            "better": "more" if self.measure.better > 0 else "less",
            "repeats": counts,
            "percent": percent,
            **known,
            "dependent": bool(tested.base.dependent[0] or tested.other.dependent[0]),
            "verdict": verdict,
            "reason": reason,
        }


def sampled(runs: Sequence[Floats]) -> Floats:
    """Return the samples of one side: repeats of its only run, or means of its several runs."""
    if len(runs) == 1:
        return runs[0]
    known = [(~np.isnan(run)).sum(axis=0) for run in runs]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [np.nansum(run, axis=0) / count for run, count in zip(runs, known, strict=True)]
    return np.array(means)


def _tests(number: int, pair: Pair, sides: Sequence[Subject]) -> Iterator[MeasureTest]:
    """Yield a test for each measure of pair `number`; tester-limited values become NaN."""
    cases, figure = (pair.base, pair.other), pair.base.figure
    entries = [
        [[p if figure else run.whole(p) for p in plans] for run, plans in case.runs]
        for case in cases
    ]
    # If one run measured each repeat of both cases before the next repeat of either case, the error
    # of that run affects both cases alike.
    one_run = sides[0].measured.directory == sides[1].measured.directory
    in_turn = one_run and alternated(plan for case in cases for plan in case.plans) is not False
    for measure in MEASURES if figure is None else (figure,):
        samples = []
        for case, runs in zip(cases, entries, strict=True):
            known = (
                [None if entry.get("tester_limited") else measure.of(entry) for entry in run]
                for run in runs
            )
            values = sampled([np.array([run], dtype=np.float64).T for run in known])
            several = len(runs) > 1
            shared = 0.0 if several or in_turn else measure.between_runs
            trials = {plan["trial"] for plan in case.plans}
            chosen = not several and not trials.isdisjoint(case.runs[0][0].until_sure)
            samples.append(Sample(values, shared, measure.rounding, chosen))
        if all(np.isnan(sample.values).all() for sample in samples):
            continue
        refusal = None
        if measure.name == "cpu" and any(subject.one_machine for subject in sides):
            refusal = SHARED_MACHINE
        if pair.base.settings[LOAD] != pair.other.settings[LOAD]:
            refusal = OTHER_LOAD
        tested = welch(*samples)
        if refusal is not None:
            nothing = np.full(len(tested.p), np.nan)
            tested = replace(tested, error=nothing, freedom=nothing, p=nothing)
        yield MeasureTest(number, measure, tested, refusal)


# --- one comparison ------------------------------------------------------------------------------


@dataclass
class Compared:
    """Comparison of one result with the baseline: matched cases, tests, unmatched cases."""

    base: Subject
    other: Subject
    pairs: list[Pair] = field(default_factory=list)
    # settings that make the measurements incomparable
    differing: list[Differing] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)  # a sentence for each case of one side only
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Comparison:
    """Comparison of all further results with the baseline, which is the first result."""

    subjects: list[Subject]  # the baseline first
    question: list[Differing]  # compared settings that differ
    compared: list[Compared]

    @property
    def differing(self) -> list[Differing]:
        """Return the differing settings that make matched cases incomparable."""
        return list(dict.fromkeys(d for one in self.compared for d in one.differing))

    @property
    def damage(self) -> list[str]:
        """Return a sentence, with the directory, for each unreadable part of the results."""
        found: dict[str, None] = {}
        for result in (result for subject in self.subjects for result in subject.results):
            for sentence in result.measured.damage:
                where = "" if str(result.directory) in sentence else f"{result.directory}: "
                found[f"{where}{sentence}"] = None
        return list(found)

    @property
    def whole(self) -> bool:
        """Return whether every result has matched cases, all comparable, and no damage."""
        return all(one.pairs for one in self.compared) and not self.differing and not self.damage

    def document(self) -> dict[str, object]:
        """Return the comparison as a JSON document (doc/how-to/compare.md)."""
        return {
            "schema": "switchbench-comparison/2",
            "exit_status": 0 if self.whole else 2,
            "confidence_percent": 100 * CONFIDENCE,
            "baseline": self.subjects[0].name,
            "results": [
                {
                    "name": subject.name,
                    "directory": str(subject.measured.directory),
                    "id": subject.measured.summary["run"].get("id"),
                    "started": subject.measured.summary["run"].get("started"),
                    "status": subject.measured.summary.get("status"),
                    "settings": subject.settings,
                }
                for subject in self.subjects
            ],
            "question": [one.document for one in self.question],
            "comparisons": [
                {
                    "result": one.other.name,
                    "pairs": [
                        {"baseline": pair.base.document, "other": pair.other.document}
                        for pair in one.pairs
                    ],
                    "plans": list(map(_rounded, one.rows)),
                    "differing": [each.document for each in one.differing],
                    "alone": one.alone,
                    "notes": one.notes,
                }
                for one in self.compared
            ],
            "damage": self.damage,
        }


def _rounded(row: Row) -> Row:
    """Return a row with its figures, except probabilities, rounded to six decimals."""
    return {
        name: round(value, 6) if isinstance(value, float) and name not in _PROBABILITIES else value
        for name, value in row.items()
    }


def compare(subjects: Sequence[Subject]) -> Comparison:
    """Return the comparison of each further result with the first result (baseline)."""
    chosen = {name for subject in subjects for name in subject.chosen}
    compared = [match(subjects[0], other, chosen) for other in subjects[1:]]
    tests = [
        (one, test)
        for one in compared
        for number, pair in enumerate(one.pairs)
        for test in _tests(number, pair, (one.base, one.other))
    ]
    corrected = holm(np.array([test.welch.p[0] for _, test in tests]))
    for (one, test), p in zip(tests, corrected, strict=True):
        one.rows.append(test.row(p))
    for one in compared:  # a note on each result with tester-limited phases
        for subject, cases in (
            (one.base, [pair.base for pair in one.pairs]),
            (one.other, [pair.other for pair in one.pairs]),
        ):
            measured = subject.measured
            plans = {id(plan): plan for case in cases for plan in case.plans}.values()
            phases = [phase for plan in plans for phase in measured.phases_of(plan)]
            if limited := sum(1 for phase in phases if phase["tester_limited"]):
                one.notes.append(
                    f"{subject.name}: in {limited} of {format.of(len(phases), 'phase')} a host may "
                    "have been the limit, not the network "
                    f"(`switchbench table {measured.directory}` names it)"
                )
    # The compared settings: those of the test bed that differ, transport and network.
    if any(subject.imported for subject in subjects):
        words = [{"measured by": subject.measured_by} for subject in subjects]
        return Comparison(list(subjects), list(differing("", words, set())), compared)
    question = list(differing("", [subject.settings for subject in subjects], set()))
    if any(one.pairs for one in compared):
        names = (TRANSPORT, NETWORK)
        words = [{name: ", ".join(one.values(name)) for name in names} for one in subjects]
        question += differing("", words, chosen)
    return Comparison(list(subjects), question, compared)


# --- matching of cases ----------------------------------------------------------------------------


def match(base: Subject, other: Subject, chosen: set[str]) -> Compared:
    """Match the cases of two results, which may differ in the settings that `--by` selects."""
    found = Compared(base, other)
    if base.imported or other.imported:
        # Figures match by definition, ranks and size; those of one program only with each other,
        # where both sides have some of it.
        mine, theirs = figure_cases(base), figure_cases(other)
        programs = [{case.settings[TRANSPORT] for case in cases} for cases in (mine, theirs)]
        asked = set() if programs[0] & programs[1] else {TRANSPORT}
        found.pairs = [
            Pair(case, one)
            for case in mine
            for one in theirs
            if not list(differing("", [case.settings, one.settings], asked))
        ]
        beside = {id(case) for pair in found.pairs for case in (pair.base, pair.other)}
        if alone := sum(id(case) not in beside for case in (*mine, *theirs)):
            found.alone.append(f"{format.of(alone, 'figure')} without a figure of another program")
        return found
    # Settings without a common value are compared: for example the network of another switch has
    # another name, or one side used other transports.
    own = set()
    networks = [set(one.values(NETWORK)) for one in (base, other)]
    if networks[0].isdisjoint(networks[1]) and len(networks[0]) == len(networks[1]) == 1:
        own.add(NETWORK)
    if set(base.values(TRANSPORT)).isdisjoint(other.values(TRANSPORT)):
        own.add(TRANSPORT)
    asked = chosen | own
    if TRANSPORT in own:
        asked.add(SIZE)
        mine, theirs = (list(filter(_is_schedule, one.cases)) for one in (base, other))
        found.pairs = list(_by_transport(base, other, asked))
        found.pairs += _equal(mine, theirs, own)
    else:
        found.pairs = list(_equal(base.cases, other.cases, asked))
    for pair in found.pairs:
        both = [pair.base.settings, pair.other.settings]
        options = set()
        if both[0][TRANSPORT] != both[1][TRANSPORT]:  # different transports have different options
            names = both[0].keys() | both[1].keys()
            options = {n for n in names if n.partition(".")[0] in NAMES or n.startswith("latency")}
        found.differing += differing(pair.title, both, asked | options)
    # Each unmatched case has a sentence, or differs from the nearest case: an unmatched one of the
    # same pattern.
    taken = {id(case) for pair in found.pairs for case in (pair.base, pair.other)}
    right = [case for case in other.cases if id(case) not in taken]
    for case in (case for case in base.cases if id(case) not in taken):
        near = [one for one in right if one.settings["pattern"] == case.settings["pattern"]]
        if not near:
            found.alone.append(f"{case.title}: only in {base.name}")
            continue
        nearest = _nearest(case, near)
        right.remove(nearest)
        what = f"{format.pattern(case.plans[0])}, {case.plans[0]['transport']}"
        found.differing += differing(what, [case.settings, nearest.settings], asked)
    found.alone += [f"{case.title}: only in {other.name}" for case in right]
    return found


def _equal(base: Sequence[Case], other: Sequence[Case], asked: set[str]) -> Iterator[Pair]:
    """Yield pairs of cases whose identifying settings (matrix, size, load) are equal.

    If several cases of `other` match, the most similar one is taken.
    """
    theirs = by(other, lambda case: case.identity(asked))
    for case in base:
        if alike := theirs.get(case.identity(asked)):
            yield Pair(case, _nearest(case, alike))


def _nearest(case: Case, others: Sequence[Case]) -> Case:
    """Return the case of `others` that differs from `case` in the fewest settings."""
    return min(others, key=lambda o: len(list(differing("", [case.settings, o.settings], set()))))


def _by_transport(base: Subject, other: Subject, asked: set[str]) -> Iterator[Pair]:
    """Yield pairs of cases over different transports: the baseline's fastest, and the other's."""
    every = (case for one in (base, other) for case in one.cases if not _is_schedule(case))
    mine = base.values(TRANSPORT)
    for cases in by(every, lambda case: case.identity(asked)).values():
        of = {id(case.plans[0]): case for case in cases}
        for row in rows_of(list(matrix_series(p for c in cases for p in c.plans))):
            own = [one for one in row if one.transport in mine]
            beside = [one for one in row if one.transport not in mine]
            if own:
                best = max(own, key=lambda one: one.rate or 0.0)
                yield from (Pair(of[id(best.plans[0])], of[id(one.plans[0])]) for one in beside)


def _is_schedule(case: Case) -> bool:
    return bool(case.plans[0]["traffic"] == SCHEDULE)


# --- history --------------------------------------------------------------------------------------
# A history has the runs of one network in order of date. The last run is compared with all earlier
# runs, which form one side of the comparison. A trend is the median slope over all pairs of runs
# (Theil and Sen), which shows slow degradation even if no single run stands out. The significance
# of a trend is by Kendall's rank correlation with time, exact for few runs, and corrected by Holm
# for all figures of the history.


EARLIER, LAST = "earlier", "last"
TREND_RUNS = 5  # min number of runs for a trend at 95 % confidence


@dataclass(frozen=True)
class History:
    """Runs of one network: comparison of the last run with the earlier ones, and trends.

    A course has one measure of one pattern over the runs: each run's mean, None if the run lacks
    the measure. Its slope is in percent of the median per run; `p` is the probability of so strong
    an order without a trend.
    """

    runs: list[Subject]
    comparison: Comparison
    courses: list[Row]
    unlike: list[str]  # a sentence for each run that lacks a case

    @property
    def worse(self) -> list[Row]:
        """Return the courses (values over the runs) whose last run or trend became worse."""
        return [one for one in self.courses if WORSE in (one["verdict"], one["trend"])]

    def document(self) -> dict[str, object]:
        """Return the history as a JSON document (doc/how-to/compare.md)."""
        return {
            **self.comparison.document(),
            "runs": [
                {"directory": str(run.measured.directory), "started": _started(run)}
                for run in self.runs
            ],
            "courses": self.courses,
        }


def history(words: Sequence[str]) -> History:
    """Compare the runs of several results directories, given in any order, over time.

    Raises
    ------
    ConfigurationError
        If there are fewer than two directories, or one cannot be read.
    """
    if len(words) < 2:
        raise ConfigurationError("--history needs at least two results directories")
    if twice := [word for word in words if words.count(word) > 1]:
        raise ConfigurationError(f"--history: duplicate directory {twice[0]}")
    runs = sorted((one for word in words for one in load([word], None)), key=_started)
    directories = [run.measured.directory for run in runs]
    names = [EARLIER] * (len(runs) - 1) + [LAST]
    sides = joined([replace(run, name=name) for run, name in zip(runs, names, strict=True)])
    comparison = compare(sides)
    (compared,) = comparison.compared
    courses = [_course(compared.pairs[row["pair"]], row, directories) for row in compared.rows]
    tested = [one for one in courses if one["p"] is not None]
    for one, p in zip(tested, holm(np.array([one["p"] for one in tested])), strict=True):
        gains = (one["slope_percent"] > 0) == (one["better"] == "more")
        sure = one["slope_percent"] != 0 and p <= 1 - CONFIDENCE
        one["trend"] = (BETTER if gains else WORSE) if sure else "none"
    unlike = [
        f"{directory} has no {pair.base.title}"
        for pair in compared.pairs
        for directory in directories
        if all(run.directory != directory for run, _ in (*pair.base.runs, *pair.other.runs))
    ]
    return History(runs, comparison, courses, [*unlike, *compared.alone])


def _started(run: Subject) -> str:
    return str(run.measured.summary["run"].get("started") or "")


def _course(of: Pair, row: Row, directories: Sequence[Path]) -> Row:
    """Return a measure's values over the runs, with the slope if there are enough runs."""
    measure = next(one for one in MEASURES if one.name == row["measure"])
    # Each value is the mean over the run's repeats, without tester-limited ones.
    values = [
        mean(
            measure.of(result.whole(plan))
            for result, plans in (*of.base.runs, *of.other.runs)
            for plan in plans
            if result.directory == directory and not plan.get("tester_limited")
        )
        for directory in directories
    ]
    course = {
        "pattern": of.base.title,
        **{key: row[key] for key in ("measure", "title", "unit", "better", "verdict")},
        **{"values": values, "trend": None, "slope_percent": None, "p": None},
    }
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    places, heights = np.array(known).reshape(-1, 2).T
    if len(known) < TREND_RUNS or not np.median(heights):
        return course
    if row["reason"] in (OTHER_LOAD, SHARED_MACHINE):
        return course
    from scipy.stats import kendalltau, theilslopes  # takes 1 s; needed here only

    slope = 100 * float(theilslopes(heights, places)[0]) / abs(float(np.median(heights)))
    # Kendall's correlation is undefined if all values are equal.
    p = float(kendalltau(places, heights).pvalue) if np.ptp(heights) else 1.0
    return course | {"slope_percent": slope, "p": p}
