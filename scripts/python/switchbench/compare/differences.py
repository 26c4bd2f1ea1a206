# SPDX-License-Identifier: BSD-3-Clause
"""Differences of plans, phases and flows, with their confidence.

Measures of plans and phases come from the summary, measures of flows from the tables. A sample is a
run where a side has several, else a repeat. With at least two samples on both sides, the difference
has a confidence interval by Welch's t (Welch 1947); else a reason replaces it. All tests of one
comparison form one family: with 95 % confidence, at most 5 of 100 comparisons of equal networks
claim any difference at all. Arrays have a row per sample and a column per compared thing; NaN is a
missing measurement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from ..analysis.data import plan_key
from ..analysis.statistics import Estimates, estimates
from ..base import format
from ..records.directory import SUMMARY
from ..records.rows import Floats
from ..records.summary_form import PlanEntry
from .cases import LOAD, Case, ComparedRun, Subject
from .measures import FLOW_LOSS, FLOW_RATE, MEASURES, ComparedMeasure, Entry, with_times

BETTER: Final = "better"
WORSE: Final = "worse"
SAME: Final = "same"
UNSURE: Final = "not sure"
UNKNOWN: Final = "not known"
FEW_REPEATS = "no interval: needs at least 2 repeats per side"
ONE_SIDE = "observed in one of the results only"
OTHER_LOAD = "not judged: the intended loads differ"
SHARED_MACHINE = "not judged: the nodes share a machine's CPUs"
# Share of the false-claim probability that each level may use.
SHARES = {"plans": 0.6, "phases": 0.2, "flows": 0.2}

Row = dict[str, Any]
"""One measure of one thing in two results, as in the JSON (doc/how-to/compare.md)."""
Runs = Sequence[Sequence[Entry]]  # repeats of each run
Codes = NDArray[np.int64]


# --- Welch's t, many pairs at once ----------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Samples of one side, with further errors of their mean as shares of the mean."""

    values: Floats
    # known standard deviation of an error that all values share, such as their run's
    shared: float = 0.0
    rounding: float = 0.0  # standard deviation of the rounding that all values share
    chosen: bool = False  # true where the number of values was decided by their spread


@dataclass(frozen=True)
class WelchTest:
    """Differences of means, `other` less `base`; NaN where there are too few samples."""

    base: Estimates
    other: Estimates
    difference: Floats
    error: Floats  # standard error of the difference
    freedom: Floats
    p: Floats  # probability of a difference at least as large between equal means

    def half_width(self, confidence: float) -> Floats:
        """Return half the width of each difference's confidence interval."""
        half: Floats = stdtrit(self.freedom, (1.0 + confidence) / 2.0) * self.error
        return half


def welch(base: Sample, other: Sample, confidence: float) -> WelchTest:
    """Return Welch's test of each column.

    The shared error is known, not estimated, and has infinite degrees of freedom. Rounding widens
    the standard error alone: a t-test that used it where the spread of a few values is small by
    chance would claim too much.
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
    """Return p-values corrected for the number of tests by Holm (1979); NaN stays NaN.

    Without it, five of a hundred equal flows would differ `at 95 %`.
    """
    corrected = np.full(len(p), np.nan)
    asked = np.flatnonzero(~np.isnan(p))
    order = asked[np.argsort(p[asked], kind="stable")]
    weighted = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(weighted))
    return corrected


# --- families ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """One measure of a pair's plan, of all its phases, or of all its flows."""

    pair: int  # index of the pair in the match
    measure: ComparedMeasure
    name: Callable[[int], str]  # name of a column's phase or flow; "" for the plan
    tested: WelchTest
    confidence: float
    refusal: str | None = None  # reason for which no difference may be claimed
    most: int | None = None  # row limit: the surest differences, then the largest

    @property
    def p(self) -> Floats:
        """Return the p-values that count in the correction; NaN for a family without claims."""
        return self.tested.p if self.refusal is None else np.full(len(self.tested.p), np.nan)

    def rows(self, adjusted: Floats) -> Iterator[Row]:
        """Yield a row for each column with a value; `adjusted` has the corrected p-values."""
        tested, half = self.tested, self.tested.half_width(self.confidence)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.nan_to_num(np.abs(tested.difference / tested.base.mean))
        surest = np.lexsort((-share, np.where(np.isnan(tested.p), 1.0, tested.p)))
        chosen = range(len(tested.p)) if self.most is None else surest[: self.most]
        for i in map(int, chosen):
            counts = [int(side.count[i]) for side in (tested.base, tested.other)]
            if not any(counts):
                continue
            found = {
                "baseline": tested.base.mean[i],
                "other": tested.other.mean[i],
                "difference": tested.difference[i],
            }
            if self.refusal is None:
                found["ci_low"] = tested.difference[i] - half[i]
                found["ci_high"] = tested.difference[i] + half[i]
                found |= {"degrees_of_freedom": tested.freedom[i], "p": tested.p[i]}
            found["p_adjusted"] = adjusted[i]
            known = {k: None if math.isnan(value) else float(value) for k, value in found.items()}
            verdict, reason = self._verdict(known, counts)
            yield {
                "pair": self.pair,
                "of": self.name(i) or None,
                "measure": self.measure.name,
                "title": self.measure.title,
                "unit": self.measure.unit,
                "better": "more" if self.measure.better > 0 else "less",
                "repeats": counts,
                "percent": _percent(known),
                **dict.fromkeys(("ci_low", "ci_high", "degrees_of_freedom", "p")),
                **known,
                "dependent": bool(tested.base.dependent[i] or tested.other.dependent[i]),
                "verdict": verdict,
                "reason": reason,
            }

    def _verdict(self, row: Row, counts: Sequence[int]) -> tuple[str, str | None]:
        """Return a row's verdict, and the reason where the verdict is `not known`."""
        if row["difference"] is None:
            return UNKNOWN, ONE_SIDE
        if self.refusal is not None:
            return UNKNOWN, self.refusal
        if min(counts) < 2:
            return UNKNOWN, FEW_REPEATS
        if row["difference"] == 0:
            return SAME, None
        if row["p_adjusted"] is None or row["p_adjusted"] >= 1.0 - self.confidence:
            return UNSURE, None
        return BETTER if row["difference"] * self.measure.better > 0 else WORSE, None


def _percent(row: Row) -> float | None:
    """Return the difference in percent of the baseline; None where the baseline is 0."""
    difference, base = row["difference"], row["baseline"]
    if difference is None or not base:
        return 0.0 if difference == 0 else None
    return float(100.0 * difference / abs(base))


def adjusted(levels: Mapping[str, Sequence[Family]]) -> dict[str, list[Floats]]:
    """Return each family's p-values, corrected for all tests of the comparison.

    Corrected by Holm (1979) within a level, and by the level's share of the false-claim
    probability.
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
        whole = np.minimum(1.0, holm(np.concatenate(p)) / share) if p else np.zeros(0)
        found[level] = np.split(whole, np.cumsum([len(one) for one in p])[:-1]) if p else []
    return found


def sampled(runs: Sequence[Floats]) -> Floats:
    """Return the samples of one side: repeats of its only run, or the means of several runs."""
    if len(runs) == 1:
        return runs[0]
    known = [(~np.isnan(run)).sum(axis=0) for run in runs]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [np.nansum(run, axis=0) / count for run, count in zip(runs, known, strict=True)]
    return np.array(means)


# --- two cases beside each other ------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two matched cases: the baseline's and the other result's."""

    base: Case
    other: Case

    @property
    def title(self) -> str:
        """Return the pair in words: the case, with both settings where these differ."""
        if self.base.title == self.other.title:
            return self.base.title
        return f"{self.base.matrix}: {self.base.setting} → {self.other.setting}"

    @property
    def samples(self) -> str:
        """Return the number of samples in words: `5 repeats`, or `3 and 2 runs`."""
        runs = [len(case.runs) for case in (self.base, self.other)]
        repeats = [len(case.plans) for case in (self.base, self.other)]
        noun, counts = ("run", runs) if max(runs) > 1 else ("repeat", repeats)
        *first, last = dict.fromkeys(counts)
        return " and ".join([*map(str, first), format.of(last, noun)])


class Tester:
    """Tests of one matched pair of cases."""

    def __init__(self, number: int, pair: Pair, sides: Sequence[Subject], confidence: float):
        """Prepare the tests of pair `number` in the match of two subjects."""
        self.pair, self.cases = pair, (pair.base, pair.other)
        self._number, self._sides, self._confidence = number, sides, confidence
        self.phases = [_phases(case) for case in self.cases]

    def plans(self) -> Iterator[Family]:
        """Yield a family per measure of the two cases' plans as a whole."""
        figure = self.pair.base.figure
        entries = [
            [
                [plan if figure else whole_plan(result, plan) for plan in plans]
                for result, plans in c.runs
            ]
            for c in self.cases
        ]
        for measure in MEASURES if figure is None else (figure,):
            yield self._family(measure, lambda _: "", [_table([side], measure) for side in entries])

    def by_phase(self) -> Iterator[Family]:
        """Yield a family per measure of all common phases; none for plans of one phase."""
        base, other = self.phases
        common = [phase for phase in base if phase in other]
        if len(base) < 2 or not common:
            return
        names = [phase_name(base[phase]) for phase in common]
        for measure in MEASURES:
            tables = [_table([side[phase] for phase in common], measure) for side in (base, other)]
            yield self._family(measure, names.__getitem__, tables)

    def flows(self, most: int | None) -> tuple[tuple[int, int, int], list[Family]]:
        """Return flow counts (common, baseline, other), and the families of rate and loss.

        A thousand ranks have a million flows, so the tables are read as columns.
        """
        measured = self._sides[0].measured
        ports = measured.ports
        sides = [[_repeats(*run, ports) for run in case.runs] for case in self.cases]
        if any(not repeats for runs in sides for repeats in runs):
            return (0, 0, 0), []
        unions = [np.unique(np.concatenate([r.codes for rs in runs for r in rs])) for runs in sides]
        codes: Codes = np.intersect1d(unions[0], unions[1])
        phases = {phase: phase_name(runs) for phase, runs in self.phases[0].items()}
        of_phase = codes // len(ports) ** 2
        if unknown := sorted(set(of_phase.tolist()) - phases.keys()):
            trial = self.pair.base.plans[0]["trial"]
            measured.damage.append(
                f"{SUMMARY} lacks phase {unknown[0]} of trial {trial}, whose flows the tables "
                "have: these are omitted"
            )
            codes = codes[np.isin(of_phase, list(phases))]

        def name(i: int) -> str:
            phase, rest = divmod(int(codes[i]), len(ports) ** 2)
            flow = format.flow({"src": ports[rest // len(ports)], "dst": ports[rest % len(ports)]})
            return f"{phases[phase]}, {flow}" if len(phases) > 1 else flow

        found = []
        for which, measure in enumerate((FLOW_RATE, FLOW_LOSS) if len(codes) else ()):
            tables = [
                sampled([np.array([repeat.of(codes, which) for repeat in run]) for run in runs])
                for runs in sides
            ]
            if measure is FLOW_RATE or sum(np.nansum(table) for table in tables) > 0:
                found.append(self._family(measure, name, tables, most))
        return (len(codes), len(unions[0]), len(unions[1])), found

    def _family(
        self,
        measure: ComparedMeasure,
        name: Callable[[int], str],
        tables: Sequence[Floats],
        most: int | None = None,
    ) -> Family:
        """Return a family; `tables` has per side one row per sample and one column per thing."""
        samples = []
        for case, table in zip(self.cases, tables, strict=True):
            several = len(case.runs) > 1
            shared = 0.0 if several or self._in_turn() else measure.between_runs
            trials = {plan["trial"] for plan in case.plans}
            chosen = not several and not trials.isdisjoint(case.runs[0][0].until_sure)
            samples.append(Sample(table, shared, measure.rounding, chosen))
        refusal = None
        if measure.name == "cpu" and any(subject.one_machine for subject in self._sides):
            refusal = SHARED_MACHINE
        if self.pair.base.settings[LOAD] != self.pair.other.settings[LOAD]:
            refusal = OTHER_LOAD
        tested = welch(samples[0], samples[1], self._confidence)
        return Family(self._number, measure, name, tested, self._confidence, refusal, most)

    def _in_turn(self) -> bool:
        """Return true where both cases were measured alternately in one run.

        Each repeat of both comes before the next repeat of either, so that both share the run's
        chance effects.
        """
        if self._sides[0].measured.directory != self._sides[1].measured.directory:
            return False
        turns: dict[int, list[int]] = {}
        for plan in (*self.pair.base.plans, *self.pair.other.plans):
            turns.setdefault(plan["repeat"], []).append(plan["trial"])
        in_order = [turns[repeat] for repeat in sorted(turns)]
        return all(max(turn) < min(following) for turn, following in pairwise(in_order))


def whole_plan(result: ComparedRun, plan: PlanEntry) -> Entry:
    """Return a plan's summary entry with its step times, worst loss and worst percentiles."""
    steps = result.steps.get((plan["trial"], plan["network"]), {})
    return with_times(plan, result.measured.phases_of(plan), steps)


def _phases(case: Case) -> dict[int, Runs]:
    """Return the phases of a case by number: the entries of each repeat in each run."""
    runs: list[dict[int, list[Entry]]] = []
    for result, plans in case.runs:
        runs.append({})
        for entry in (phase for plan in plans for phase in result.measured.phases_of(plan)):
            runs[-1].setdefault(entry["phase"], []).append(entry)
    numbers = sorted({number for phases in runs for number in phases})
    return {number: [phases.get(number, []) for phases in runs] for number in numbers}


def phase_name(runs: Runs) -> str:
    """Return the name of a phase, taken from its first entry."""
    entry = next(entry for entries in runs for entry in entries)
    return str(entry["phase_name"] or entry["phase"])


def _table(columns: Sequence[Runs], measure: ComparedMeasure) -> Floats:
    """Return samples in rows, things in columns; NaN for tester-limited entries."""
    tables = []
    for run in range(max(map(len, columns))):
        table = np.full((max(len(runs[run]) for runs in columns), len(columns)), np.nan)
        for i, runs in enumerate(columns):
            for repeat, entry in enumerate(runs[run]):
                value = None if entry.get("tester_limited") else measure.of(entry)
                table[repeat, i] = np.nan if value is None else value
        tables.append(table)
    return sampled(tables)


# --- flows ----------------------------------------------------------------------------------------


def places_of(names: Sequence[str], others: Sequence[str]) -> Codes | None:
    """Map each of the other result's ports to a baseline port, by name or by position.

    Names must be equal as sets, else the counts must be equal; None where neither holds.
    """
    if set(names) == set(others):
        known = {name: place for place, name in enumerate(names)}
        return np.array([known[name] for name in others], dtype=np.int64)
    return np.arange(len(others)) if len(names) == len(others) else None


@dataclass(frozen=True)
class _FlowRates:
    """Flow rates and losses of one repeat; codes of phase, source and destination ascend."""

    codes: Codes
    figures: tuple[Floats, Floats]  # rate in Mbit/s, loss in percent

    def of(self, codes: Codes, which: int) -> Floats:
        """Return a figure of the flows with given codes; NaN where the repeat lacks a flow."""
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[place] == codes, self.figures[which][place], np.nan)


def _repeats(
    result: ComparedRun, plans: Iterable[PlanEntry], names: Sequence[str]
) -> list[_FlowRates]:
    """Return the flow rates of each repeat of one run, in the baseline's port numbers.

    Phases that the tester limited are left out.
    """
    places = places_of(names, result.measured.ports)
    found = []
    for plan in plans if places is not None else ():
        flows = result.measured.records.flows(plan_key(plan))
        if flows is None or places is None:
            continue
        phases, ports = flows.phase.astype(np.int64), len(places)
        codes = (phases * ports + places[flows.src]) * ports + places[flows.dst]
        order = np.argsort(codes, kind="stable")
        limited = [p["phase"] for p in result.measured.phases_of(plan) if p["tester_limited"]]
        valid = ~np.isin(flows.phase, limited)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = 100.0 * flows.lost / flows.offered
        rate, loss = (np.where(valid, figure, np.nan)[order] for figure in (flows.mbps, loss))
        found.append(_FlowRates(codes[order], (rate, loss)))
    return found
