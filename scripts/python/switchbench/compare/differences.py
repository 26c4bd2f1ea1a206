# SPDX-License-Identifier: BSD-3-Clause
"""By how much plans, phases and flows differ, and how sure that is.

A measure's value of a plan or phase is made of the summary alone, those of flows of the records. Of
more than one repeat on both sides the difference has a confidence interval; else it has none, and
says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from . import welch
from .match import Match, Pair
from .measures import MEASURES, ComparedMeasure, Entry, of_output, with_times
from .subjects import Case, Subject
from .welch import Floats

Verdict = Literal["better", "worse", "differs", "same", "not sure", "not known"]
BETTER: Final = "better"
WORSE: Final = "worse"
DIFFERS: Final = "differs"
SAME: Final = "same"
UNSURE: Final = "not sure"
UNKNOWN: Final = "not known"
Columns = Sequence[Sequence[Entry]]  # of each phase its repeats

ONE_REPEAT = "one repeat: no interval"
ONE_FIGURE = "HPCC's figure is of its best measurements: no interval"
ONE_SIDE = "observed in one of the results only"
NO_SPREAD = "no spread among the repeats: no interval"


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
    p_adjusted: float | None = None  # corrected for how many were asked (Holm)
    dependent: bool = False  # repeats followed each other: the interval is wider for it
    verdict: Verdict = UNKNOWN
    reason: str | None = None  # why there is no interval

    @property
    def percent(self) -> float | None:
        """The difference as a share of the baseline's."""
        if self.difference is None or not self.base:
            return 0.0 if self.difference == 0 else None
        return 100.0 * self.difference / abs(self.base)


# --- rows of columns of repeats ------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """Questions that are asked at once: one measure of all phases, or of all flows, of a pair."""

    pair: int
    measure: ComparedMeasure
    tested: welch.WelchTest
    confidence: float

    def rows(
        self, names: Sequence[str], chosen: Sequence[int] | None = None
    ) -> Iterator[DifferenceRow]:
        """A row for each column, or for the chosen ones; `names`: what these are of."""
        tested = self.tested
        adjusted = welch.holm(tested.p)
        places = range(len(tested.p)) if chosen is None else chosen
        half = tested.half_width(self.confidence, np.array(places, dtype=np.int64))
        for i, name, width in zip(places, names, half, strict=True):
            difference = tested.difference[i]
            row = DifferenceRow(
                self.pair, name, self.measure,
                base=_known(tested.base.mean[i]),
                other=_known(tested.other.mean[i]),
                counts=(int(tested.base.count[i]), int(tested.other.count[i])),
                difference=_known(difference),
                low=_known(difference - width),
                high=_known(difference + width),
                freedom=_known(tested.freedom[i]),
                p=_known(tested.p[i]),
                p_adjusted=_known(adjusted[i]),
                dependent=bool(tested.base.dependent[i] or tested.other.dependent[i]),
            )  # fmt: skip
            yield _judged(row, self.confidence)


def _known(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)


def _judged(row: DifferenceRow, confidence: float) -> DifferenceRow:
    """With its verdict, and why there is no interval."""
    if row.difference is None:
        return replace(row, reason=ONE_SIDE)
    word: Verdict = BETTER if row.difference * row.measure.better > 0 else WORSE
    if row.p_adjusted is not None:
        return replace(row, verdict=word if row.p_adjusted < 1.0 - confidence else UNSURE)
    if min(row.counts) < 2:
        return replace(row, reason=ONE_REPEAT)
    return replace(row, verdict=DIFFERS if row.difference else SAME, reason=NO_SPREAD)


# --- plans and phases ----------------------------------------------------------------------------


def plan_rows(number: int, match: Match, confidence: float) -> Iterator[DifferenceRow]:
    """The measures of two cases' whole plans."""
    pair = match.pairs[number]
    if pair.base.suite is not None and pair.other.suite is not None:
        yield from _output_rows(number, pair.base.suite["outputs"], pair.other.suite["outputs"])
        return
    base, other = (
        [
            with_times(
                plan,
                subject.measured.phases_of(plan),
                subject.steps.get((plan["trial"], plan["network"]), {}),
            )
            for plan in case.plans
        ]
        for subject, case in ((match.base, pair.base), (match.other, pair.other))
    )
    yield from _rows(number, [""], ([base], [other]), confidence)


def _output_rows(number: int, base: Entry, other: Entry) -> Iterator[DifferenceRow]:
    """HPCC's measures, one figure of each run: by its definition of the best measurements."""
    for measure in map(of_output, base):
        values = measure.of(base), measure.of(other)
        if values == (None, None):
            continue
        counts = (int(values[0] is not None), int(values[1] is not None))
        row = DifferenceRow(number, "", measure, *values, counts)
        if values[0] is not None and values[1] is not None:
            row = replace(row, difference=values[1] - values[0], reason=ONE_FIGURE)
        yield row if row.reason else replace(row, reason=ONE_SIDE)


def phase_rows(number: int, match: Match, confidence: float) -> Iterator[DifferenceRow]:
    """The measures of all phases that both cases have; none where the plan is one phase."""
    base, other = both_phases(match, match.pairs[number])
    common = [phase for phase in base if phase in other]
    if len(base) > 1 and common:
        names = [str(base[phase][0]["phase_name"] or phase) for phase in common]
        entries = tuple([side[phase] for phase in common] for side in (base, other))
        yield from _rows(number, names, (entries[0], entries[1]), confidence)


def _rows(
    number: int, names: Sequence[str], sides: tuple[Columns, Columns], confidence: float
) -> Iterator[DifferenceRow]:
    """Measure by measure, without what neither result observed."""
    for measure in MEASURES:
        base, other = (_table(columns, measure) for columns in sides)
        family = Family(number, measure, welch.test(base, other), confidence)
        yield from (row for row in family.rows(names) if any(row.counts))


def phases_of(subject: Subject, case: Case) -> dict[int, list[Entry]]:
    """The phases of a case by number, an entry for each repeat; a suite has none of its own."""
    found: dict[int, list[Entry]] = {}
    for plan in case.plans if case.suite is None else ():
        for entry in subject.measured.phases_of(plan):
            found.setdefault(entry["phase"], []).append(entry)
    return found


def both_phases(match: Match, pair: Pair) -> tuple[dict[int, list[Entry]], dict[int, list[Entry]]]:
    """Those of both cases of a pair."""
    return phases_of(match.base, pair.base), phases_of(match.other, pair.other)


def _table(columns: Columns, measure: ComparedMeasure) -> Floats:
    """A column for each list of repeats, as long as the longest."""
    table = np.full((max(map(len, columns)), len(columns)), np.nan)
    for i, entries in enumerate(columns):
        for repeat, entry in enumerate(entries):
            value = measure.of(entry)
            table[repeat, i] = np.nan if value is None else value
    return table
