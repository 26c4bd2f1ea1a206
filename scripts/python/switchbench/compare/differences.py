# SPDX-License-Identifier: BSD-3-Clause
"""By how much plans, phases and flows differ, and how sure that is.

A measure's value of a plan or phase is made of the summary alone, those of flows of the records. A
sample is a run where a side has several, else a repeat. Of at least two samples on both sides the
difference has a confidence interval; else it has none, and says why. All that is asked of one
comparison is one family: with 95 % confidence at most 5 of 100 comparisons of equal networks claim
any difference at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np

from ..analysis.statistics import Floats
from . import welch
from .match import Match, Pair
from .measures import MEASURES, ComparedMeasure, Entry, with_times
from .settings import LOAD
from .subjects import Case, Subject

Verdict = Literal["better", "worse", "same", "not sure", "not known"]
BETTER: Final = "better"
WORSE: Final = "worse"
SAME: Final = "same"
UNSURE: Final = "not sure"
UNKNOWN: Final = "not known"
Runs = Sequence[Sequence[Entry]]  # the repeats of each run

FEW_REPEATS = "no interval: needs at least 2 repeats per side"
ONE_SIDE = "observed in one of the results only"
OTHER_LOAD = "not judged: the intended loads differ"
SHARED_MACHINE = "not judged: the nodes share a machine's CPUs"
# How much of the chance of a false claim each level may use.
SHARES = {"plans": 0.6, "phases": 0.2, "flows": 0.2}


@dataclass(frozen=True)
class DifferenceRow:
    """One measure of one thing in two results."""

    pair: int  # place of its pair in the match
    of: str  # phase or flow; empty for the plan
    measure: ComparedMeasure
    base: float | None
    other: float | None
    counts: tuple[int, int]  # repeats in which it was observed
    difference: float | None = None  # other - base
    low: float | None = None  # ends of the difference's confidence interval; None: there is none
    high: float | None = None
    freedom: float | None = None
    p: float | None = None  # of so large a difference, if there were none
    p_adjusted: float | None = None  # corrected for all that the comparison asked
    dependent: bool = False  # repeats followed each other: the interval is wider for it
    verdict: Verdict = UNKNOWN
    reason: str | None = None  # why there is no interval

    @property
    def percent(self) -> float | None:
        """The difference as a share of the baseline's."""
        if self.difference is None or not self.base:
            return 0.0 if self.difference == 0 else None
        return 100.0 * self.difference / abs(self.base)


# --- families ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """One measure of all phases, or of all flows, of a pair."""

    pair: int
    measure: ComparedMeasure
    name: Callable[[int], str]  # what a column is of
    tested: welch.WelchTest
    confidence: float
    refusal: str | None = None  # why nothing may be claimed of it
    most: int | None = None  # so many rows: the surest differences, then the largest

    @property
    def p(self) -> Floats:
        """The probabilities that count among those of the comparison."""
        return self.tested.p if self.refusal is None else np.full(len(self.tested.p), np.nan)

    def rows(self, adjusted: Floats) -> Iterator[DifferenceRow]:
        """Yield a row for each column that either side observed; `adjusted`: its p, corrected."""
        tested, half = self.tested, self.tested.half_width(self.confidence)
        for i in self._chosen():
            counts = (int(tested.base.count[i]), int(tested.other.count[i]))
            if not any(counts):
                continue
            difference, width = tested.difference[i], half[i]
            judged = self.refusal is None
            row = DifferenceRow(
                self.pair, self.name(i), self.measure,
                base=_known(tested.base.mean[i]),
                other=_known(tested.other.mean[i]),
                counts=counts,
                difference=_known(difference),
                low=_known(difference - width) if judged else None,
                high=_known(difference + width) if judged else None,
                freedom=_known(tested.freedom[i]) if judged else None,
                p=_known(tested.p[i]) if judged else None,
                p_adjusted=_known(adjusted[i]),
                dependent=bool(tested.base.dependent[i] or tested.other.dependent[i]),
            )  # fmt: skip
            yield self._judged(row)

    def _chosen(self) -> list[int]:
        if self.most is None:
            return list(range(len(self.tested.p)))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.nan_to_num(np.abs(self.tested.difference / self.tested.base.mean))
        order = np.lexsort((-share, np.where(np.isnan(self.tested.p), 1.0, self.tested.p)))
        return [int(i) for i in order[: self.most]]

    def _judged(self, row: DifferenceRow) -> DifferenceRow:
        """With its verdict, and why there is none."""
        if row.difference is None:
            return replace(row, reason=ONE_SIDE)
        if self.refusal is not None:
            return replace(row, reason=self.refusal)
        if min(row.counts) < 2:
            return replace(row, reason=FEW_REPEATS)
        if row.difference == 0:
            return replace(row, verdict=SAME)
        if row.p_adjusted is None or row.p_adjusted >= 1.0 - self.confidence:
            return replace(row, verdict=UNSURE)
        better = row.difference * row.measure.better > 0
        return replace(row, verdict=BETTER if better else WORSE)


def _known(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)


def adjusted(levels: dict[str, list[Family]]) -> dict[str, list[Floats]]:
    """Return each family's p, corrected for all that is asked at once.

    By Holm (1979) within a level, and by the level's share of the chance of a false claim.
    """
    shares = {
        level: SHARES[level]
        for level, families in levels.items()
        if any(not np.isnan(family.p).all() for family in families)
    }
    found = {}
    for level, families in levels.items():
        p = [family.p for family in families]
        share = shares.get(level, 1.0) / (sum(shares.values()) or 1.0)
        whole = np.minimum(1.0, welch.holm(np.concatenate(p)) / share) if p else np.zeros(0)
        found[level] = np.split(whole, np.cumsum([len(one) for one in p])[:-1]) if p else []
    return found


@dataclass(frozen=True)
class Tester:
    """Makes the tests of one pair of a match."""

    number: int
    match: Match
    confidence: float

    @property
    def pair(self) -> Pair:
        """The pair."""
        return self.match.pairs[self.number]

    @property
    def sides(self) -> tuple[tuple[Subject, Case], tuple[Subject, Case]]:
        """Each result with its case."""
        return (self.match.base, self.pair.base), (self.match.other, self.pair.other)

    def family(
        self,
        measure: ComparedMeasure,
        name: Callable[[int], str],
        tables: Sequence[Floats],
        most: int | None = None,
    ) -> Family:
        """`tables`: of each side a row for each sample, a column for each thing."""
        base, other = (
            self._sample(measure, *side, table)
            for side, table in zip(self.sides, tables, strict=True)
        )
        tested = welch.test(base, other, self.confidence)
        refusal = self._refusal(measure)
        return Family(self.number, measure, name, tested, self.confidence, refusal, most)

    def _sample(
        self, measure: ComparedMeasure, subject: Subject, case: Case, table: Floats
    ) -> welch.Sample:
        several = len(case.runs(subject)) > 1
        shared = 0.0 if several or self._in_turn() else measure.between_runs
        trials = {plan["trial"] for plan in case.plans}
        chosen = not several and not trials.isdisjoint(subject.until_sure)
        return welch.Sample(table, shared, measure.rounding, chosen)

    def _in_turn(self) -> bool:
        """Return whether both were measured in one run.

        Each repeat of both before the next of either: then what a run has by chance both have.
        """
        if self.match.base.directory != self.match.other.directory:
            return False
        turns: dict[int, list[int]] = {}
        for plan in (*self.pair.base.plans, *self.pair.other.plans):
            turns.setdefault(plan["repeat"], []).append(plan["trial"])
        in_order = [turns[repeat] for repeat in sorted(turns)]
        return all(max(turn) < min(following) for turn, following in pairwise(in_order))

    def _refusal(self, measure: ComparedMeasure) -> str | None:
        if self.pair.base.settings[LOAD] != self.pair.other.settings[LOAD]:
            return OTHER_LOAD
        shared = any(subject.one_machine for subject, _ in self.sides)
        return SHARED_MACHINE if measure.name == "cpu" and shared else None


# --- plans and phases ----------------------------------------------------------------------------


def plan_families(tester: Tester) -> Iterator[Family]:
    """Yield the measures of two cases' whole plans."""
    entries = [
        [
            [
                plan
                if case.figure
                else with_times(
                    plan,
                    run.measured.phases_of(plan),
                    run.steps.get((plan["trial"], plan["network"]), {}),
                )
                for plan in of_run.plans
            ]
            for run, of_run in case.runs(subject)
        ]
        for subject, case in tester.sides
    ]
    figure = tester.pair.base.figure
    for measure in MEASURES if figure is None else (figure,):
        yield tester.family(measure, lambda _: "", [_table([side], measure) for side in entries])


def phase_families(tester: Tester) -> Iterator[Family]:
    """Yield the measures of all phases that both cases have; none where the plan is one phase."""
    base, other = both_phases(tester)
    common = [phase for phase in base if phase in other]
    if len(base) < 2 or not common:
        return
    names = [phase_name(base[phase]) for phase in common]
    for measure in MEASURES:
        tables = [_table([side[phase] for phase in common], measure) for side in (base, other)]
        yield tester.family(measure, names.__getitem__, tables)


def phase_name(runs: Runs) -> str:
    """Of any of its entries."""
    entry = next(entry for entries in runs for entry in entries)
    return str(entry["phase_name"] or entry["phase"])


def phases_of(subject: Subject, case: Case) -> dict[int, list[Entry]]:
    """Return the phases of a case by number, an entry for each repeat."""
    found: dict[int, list[Entry]] = {}
    for plan in case.plans:
        for entry in subject.measured.phases_of(plan):
            found.setdefault(entry["phase"], []).append(entry)
    return found


def both_phases(tester: Tester) -> tuple[dict[int, Runs], dict[int, Runs]]:
    """Return those of both cases of a pair, by number: the repeats of each run."""
    sides: list[dict[int, Runs]] = []
    for subject, case in tester.sides:
        runs = [phases_of(run, of_run) for run, of_run in case.runs(subject)]
        numbers = sorted({number for phases in runs for number in phases})
        sides.append({number: [phases.get(number, []) for phases in runs] for number in numbers})
    return sides[0], sides[1]


def _table(columns: Sequence[Runs], measure: ComparedMeasure) -> Floats:
    """Return a column for each thing; what the tester limited is not known."""
    return sampled([
        table_of([[_value(entry, measure) for entry in runs[run]] for runs in columns])
        for run in range(max(map(len, columns)))
    ])  # fmt: skip


def _value(entry: Entry, measure: ComparedMeasure) -> float:
    value = None if entry.get("tester_limited") else measure.of(entry)
    return np.nan if value is None else value


def table_of(columns: Iterable[Sequence[float]]) -> Floats:
    """Return a column for each list of repeats, as long as the longest."""
    lists = list(columns)
    table = np.full((max(map(len, lists), default=0), len(lists)), np.nan)
    for i, values in enumerate(lists):
        table[: len(values), i] = values
    return table


def sampled(runs: Sequence[Floats]) -> Floats:
    """Return the samples of one side: repeats of its only run, or the means of several runs."""
    if len(runs) == 1:
        return runs[0]
    known = [(~np.isnan(run)).sum(axis=0) for run in runs]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [np.nansum(run, axis=0) / count for run, count in zip(runs, known, strict=True)]
    return np.array(means)
