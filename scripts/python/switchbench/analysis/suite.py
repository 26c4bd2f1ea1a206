# SPDX-License-Identifier: BSD-3-Clause
"""Progress of a suite: its next trial, and the results of each subtest from its trials.

The next trial depends on the results of earlier trials alone. So results of subtests are not
recorded, but computed from the trials of a results directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import format
from ..base.measures import MORE
from ..base.model import Run, Trial
from ..config.clauses import Clause, Spec, matches, parse_clause
from ..plan.chosen import (
    VARIANT,
    chosen_trial,
    parameters_of,
    range_of,
    search_of,
    setting_of,
    subtest_of,
    suite_words,
)
from ..records.rows import PhaseFlows, Rows
from ..records.summary_form import ClauseEntry, Entry, PhaseEntry, filled
from ..search.loads import End, ProposedTrial, SearchResult, TrialLoss
from ..search.suites.declaration import (
    HARDLY_LOWER,
    Excluded,
    PortFacts,
    Row,
    SubtestTrials,
    TrialFacts,
)
from . import measures as m
from .judge import FAILURES_NAMED, INCONCLUSIVE, clause_entry
from .measures import PhaseResult

Facts = Mapping[int, TrialFacts]  # by trial number


class Measurement:
    """Measurement of one subtest at one frame size: its trials one after the other."""

    def __init__(
        self, run: Run, planned: Trial, earlier: Mapping[str, Row], used_s: float = 0.0
    ) -> None:
        self.planned = planned
        self.subtest = subtest_of(run, planned)
        self.setting = setting_of(planned, parameters_of(run))
        self.earlier = earlier
        # all trials so far, including tester-limited ones
        self.every: list[tuple[ProposedTrial, TrialFacts]] = []
        # highest rate that each port received in any trial, frames/s
        self._most: dict[str, float] = {}
        method = self.subtest.method(self.setting, earlier)
        self.why_not = method if isinstance(method, str) else ""
        self.method = None if isinstance(method, str) else method
        self.search = None if self.method is None else search_of(run, planned, self.method, used_s)

    def answer(self, facts: TrialFacts) -> None:
        """Store the result of the trial that the search proposed."""
        assert self.search is not None
        assert self.search.trial is not None
        proposed = self.search.trial
        most = dict(self._most)
        for name, port in facts.ports.items():
            self._most[name] = max(self._most.get(name, 0.0), port.delivered_fps or 0.0)
        harmless = max(
            (
                other.late_total
                for trial, other in self.every
                if HARDLY_LOWER * proposed.value <= trial.value < proposed.value
                and not (other.tester_limited or other.lost)
            ),
            default=-1,
        )
        if self.subtest.is_unclear(self.setting, facts, most, harmless):
            facts = replace(facts, tester_limited=True)
        self.every.append((proposed, facts))
        self.search.answer(trial_loss(proposed.duration_s, facts, self.subtest.bad(facts)))

    @property
    def results(self) -> tuple[SearchResult, ...]:
        """Return the search's results so far; a search of loads has one for each goal."""
        return () if self.search is None else self.search.result()

    def rows(self) -> list[dict[str, float | None]]:
        """Return the rows of the subtest's table; one empty row if nothing could be measured."""
        return self.rows_of(self.results if self._trials else ())

    def rows_of(self, results: tuple[SearchResult, ...]) -> list[dict[str, float | None]]:
        """Return the rows of the subtest's table for given results of its search."""
        keys = [value.key for value in self.subtest.values]
        found = self.subtest.rows(self._measured(results)) if results else {}
        rows = [found] if isinstance(found, dict) else found or [{}]
        return [{key: row.get(key) for key in keys} for row in rows]

    def outcome(self) -> tuple[str, bool]:
        """Return a sentence on how the measurement ended, and whether it is complete."""
        if self.search is None:
            return self.why_not, isinstance(self.why_not, Excluded)
        results = self.results
        cut = (one.outcome for one in results if not one.outcome.is_whole)
        worst = next(cut, results[0].outcome)
        whole = worst.is_whole
        no_result = self.subtest.no_result(self._measured(results)) if whole else ""
        return no_result or worst.sentence, whole and not no_result

    @property
    def _trials(self) -> list[tuple[ProposedTrial, TrialFacts]]:
        return [one for one in self.every if not one[1].tester_limited]

    def _measured(self, results: tuple[SearchResult, ...]) -> SubtestTrials:
        return SubtestTrials(self.setting, self.earlier, results, self._trials)


class SuiteCourse:
    """Test suite in progress: `trial` is measured next, `answer` stores its result."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting = list(run.searches)
        self._rows: dict[tuple[Any, ...], dict[str, Row]] = {}
        self.measurements: list[Measurement] = []
        self.trial: Trial | None = None
        self._identity = 0
        self._advance()

    def answer(self, facts: TrialFacts) -> None:
        """Store the result of the trial, and choose the next trial."""
        self.measurements[-1].answer(facts)
        self._identity += 1
        self._advance()

    @property
    def every(self) -> list[Measurement]:
        """Return all measurements of the suite, including those that have not begun."""
        later = [Measurement(self._run, planned, {}) for planned in self._waiting]
        for one in later:  # their start depends on results that are missing yet
            if one.search is None:
                one.why_not = End.IN_PROGRESS.value
        return self.measurements + later

    def _advance(self) -> None:
        while True:
            now = self.measurements[-1] if self.measurements else None
            if now is not None and now.search is not None and now.search.trial is not None:
                trial, made = now.search.trial, now.search.trials
                self.trial = chosen_trial(self._run, now.planned, trial, self._identity, made)
                return
            # later subtests at this size start from this result
            if now is not None and now.subtest.values:
                found = self._rows.setdefault(_point(now.planned), {})
                found.setdefault(now.subtest.name, now.rows()[0])
            if not self._waiting:
                self.trial = None
                return
            planned = self._waiting.pop(0)
            earlier = self._rows.get(_point(planned), {})
            used_s = sum(one.search.used_s for one in self.measurements if one.search is not None)
            self.measurements.append(Measurement(self._run, planned, earlier, used_s))


def replayed(run: Run, facts: Facts) -> SuiteCourse:
    """Return the suite in its state after the given trials, whose facts the records contain."""
    course = SuiteCourse(run)
    while course.trial is not None and course.trial.id in facts:
        course.answer(facts[course.trial.id])
    return course


def _point(planned: Trial) -> tuple[Any, ...]:
    return planned.sizes, tuple(part.network for part in planned.parts), planned.transport


def suite_summary(run: Run, course: SuiteCourse) -> Entry:
    """Return the summary's `suite`: parameters, media, and results by subtest."""
    ports = [port for planned in run.searches for port in planned.ports]
    rates = sorted({port.line_rate_bps for port in ports if port.line_rate_bps})
    return {
        "name": run.suite or "",
        "parameters": dict(run.suite_parameters),
        "media": ", ".join(["Ethernet", *map(format.bit_rate, rates)]),
        "traffic_classes": sorted(
            {
                f"{key.upper()} {value}"
                for planned in run.searches
                for key, value in planned.options.items()
                if key in ("dscp", "pcp")
            }
        ),
        "subtests": suite_entries(course),
    }


def search_entries(course: SuiteCourse) -> list[Entry]:
    """Return the summary's `searches`: one entry for each goal of each search of loads."""
    return [
        filled(
            "SearchEntry",
            _facts_of(measured),
            result,
            {f"goal_{key}": value for key, value in vars(goal).items()},
            search=measured.planned.id,
            goal=name,
            load_unit=range_of(measured.planned).unit,
            trials=measured.search.trials,
            regular=result.is_regular,
            outcome=result.outcome.sentence,
            min_load=measured.setting.loads.min,
            max_load=measured.setting.loads.max,
        )
        for measured in course.every
        if measured.search is not None and measured.subtest.goals is not None
        for goals in [measured.subtest.goals(measured.setting.parameters)]
        for (name, goal), result in zip(goals.items(), measured.results, strict=True)
    ]


def suite_entries(course: SuiteCourse) -> list[Entry]:
    """Return the summary's entry of each subtest, variant and frame size, with its rows."""
    found: list[Entry] = []
    for measured in course.every:
        if not measured.subtest.values:
            continue
        sentence, whole = measured.outcome()
        found.append(
            filled(
                "SubtestEntry",
                _facts_of(measured),
                subtest=measured.subtest.name,
                variant=measured.planned.parameters.get(VARIANT),
                rows=measured.rows(),
                unit="" if measured.method is None else measured.method.unit,
                trials=[
                    filled(
                        "TrialEntry",
                        proposed,
                        facts,
                        learning_rate={
                            "rate": proposed.value,
                            "addresses": proposed.value / (proposed.duration_s or 1.0),
                        }.get(measured.subtest.quantity),
                        forwarded=facts.offered - facts.lost,
                    )
                    for proposed, facts in measured.every
                ],
                iterations=[length for one in measured.results for length in one.longest],
                complete=whole,
                outcome=sentence,
            )
        )
    return found


def _facts_of(measured: Measurement) -> Entry:
    planned = measured.planned
    return filled(
        "SuiteSetting",
        planned,
        pattern=planned.parameters.get(VARIANT) or planned.pattern["name"],
        parameters=dict(planned.parameters),
        networks=[part.network for part in planned.parts],
        size=planned.sizes[0] if len(planned.sizes) == 1 else list(planned.sizes),
    )


def suite_verdict(spec: Spec, course: SuiteCourse) -> ClauseEntry:
    """Judge a clause on a suite, and return its entry for the summary."""
    clause = parse_clause(spec)
    key = clause.measure.key.partition(".")[2]
    about = [
        one
        for one in course.every
        if key in {value.key for value in one.subtest.values}
        and matches(clause.spec.get("where") or {}, one.planned)
    ]
    ended = [one for one in about if one.outcome()[1]]
    values = [(row.get(key), words_of(one, row)) for one in ended for row in one.rows()]
    known = [(value, words) for value, words in values if value is not None]
    below = [pair for one in about if one not in ended for pair in _too_low(clause, key, one)]
    ordered = sorted([*known, *below], key=lambda pair: clause.margin(pair[0]))
    bad = [pair for pair in ordered if pair in below or not clause.holds(pair[0])]
    doubts = [f"{words_of(one)}: {one.outcome()[0]}" for one in about if one not in ended]
    if len(known) < len(values):
        doubts.append(f"{len(values) - len(known)} of {len(values)} values could not be observed")
    worst, words = ordered[0] if ordered else (None, None)
    return clause_entry(
        clause,
        worst,
        doubts,
        judged=len(values) + len(below),
        failed=len(bad),
        unobserved=len(values) - len(known),
        limited=0,
        trials=len(about),
        trials_measured=len(ended),
        of=words,
        at=None,
        failures=[
            {"value": value, "margin": clause.margin(value), "of": said, "at": None}
            for value, said in bad[:FAILURES_NAMED]
        ],
    )


def _too_low(clause: Clause, key: str, measured: Measurement) -> Iterator[tuple[float, str]]:
    """Yield upper limits of values whose search failed at the min load, if they violate a clause.

    The limits are the values that the search would have if the min of its range had held.
    """
    failed = any(one.outcome.end is End.LOSS_AT_MIN for one in measured.results)
    if not failed or clause.measure.better != MORE or clause.sign not in (">=", ">"):
        return
    for row in measured.rows_of(tuple(one.held_at_min() for one in measured.results)):
        value = row.get(key)
        if value is not None and value <= clause.limit:
            yield value, f"{words_of(measured, row)}, which fails at the min of its range"


def words_of(measured: Measurement, row: Mapping[str, float | None] | None = None) -> str:
    """Return a measurement's name in words: subtest, variant, frame size, and the row's load."""
    planned = measured.planned
    parts = [*suite_words(planned), f"{planned.sizes[0]} B"]
    if row is not None and row.get("load_percent") is not None:
        parts.append(f"at {row['load_percent']:.4g} %")
    return " ".join(parts)


# --- facts of a trial for formulas of subtests: counts of all senders and receivers together -----

LATE_SHARE = 0.01  # share of learning frames that may be sent late


def trial_facts(results: Iterable[PhaseResult]) -> TrialFacts:
    """Return the counts and rates of a trial over its phases and networks.

    The result is empty for an incomplete trial.

    If some ports send byte streams, `goodput` is the payload rate of these streams. All other
    values count frames.
    """
    given = list(results)
    every = [result for result in given if result.entry["size_unit"] == "frame"]
    streams = [result.entry for result in given if result.entry["size_unit"] != "frame"]
    entries = [result.entry for result in every]
    offered = m.total_int(entry["offered_frames"] for entry in entries)
    lost = [entry["lost_frames"] for entry in entries]
    whole = all(result.entry["state"] == "complete" for result in given)
    if not every or not whole or None in lost or not offered:
        return TrialFacts()
    flows = PhaseFlows.of(Rows.joined([result.flows.rows for result in every]))
    sent_fps, came_fps = (
        m.per_second(flows[f"{end}_window_frames"], flows[f"{end}_window_ns"])
        for end in ("sent", "received")
    )
    sources, destinations = flows.ends("src"), flows.ends("dst")
    counts = [m.or_zero(flows[name]) for name in ("sent_frames", "intended")]
    sent, asked = (m.sum_by_port(sources, count) for count in counts)
    columns = (counts[0], m.or_zero(m.lost_frames(flows)), sent_fps, came_fps)
    due, lost_there, fed, came = (m.sum_by_port(destinations, column) for column in columns)
    parts = [(sent[port] or 0.0) / count for port, count in asked.items() if count]
    late = np.zeros(len(sources.names), dtype=np.int64)  # each flow has its port's count
    np.maximum.at(late, sources.place, m.or_zero(flows["late_frames"]).astype(np.int64))
    offered_fps, delivered_fps = m.total(sent_fps), m.total(came_fps)
    # `last_gap_s` is unknown if frames after the last arrival were lost, if reordered frames may
    # fill the gap, or if the load did not fall.
    unclear = flows["sent_frames"] - flows["numbers"] + flows["reordered"]
    silent_ns = flows["sent_last_run_ns"] - flows["received_last_run_ns"]
    latency = (entries[0]["latency"] if len(entries) == 1 else None) or {}
    return TrialFacts(
        offered=offered,
        lost=min(offered, sum(max(0, count) for count in lost)),
        flooded=sum(entry["misdelivered_frames"] or 0 for entry in entries),
        offered_part=min([1.0, *parts]),
        tester_limited=any(result.entry["tester_limited"] for result in given),
        offered_fps=offered_fps,
        # A higher delivered rate shows frames that the device held until the window opened.
        delivered_fps=delivered_fps and m.least((delivered_fps, offered_fps)),
        goodput=m.total(entry["throughput"]["total"] for entry in streams),
        latency_us=latency.get("one_way") or {},
        rtt_us=latency.get("round_trip") or {},
        ports={
            port: PortFacts(
                int(due[port] or 0),
                int(lost_there[port] or 0),
                None if rate is None else m.least((rate, fed[port])),
                fed[port],
            )
            for port, rate in came.items()
        },
        late_frames=int(late.max(initial=0)),
        late_total=int(late.sum()),
        learned_late=any(  # addresses were announced at a lower rate than intended
            np.nansum(result.flows["learning_late"])
            > LATE_SHARE * np.nansum(result.flows["sent_frames"])
            for result in every
        ),
        last_gap_s=float(flows["gap_ns"].max()) / 1e9
        if len(unclear) and (unclear == 0).all()
        else None,
        silent_s=None if np.isnan(silent_ns).any() else float(silent_ns.max(initial=0.0)) / 1e9,
        duration_s=max(entry["window_s"] or 0.0 for entry in entries),
    )


def trial_loss(intended_s: float, facts: TrialFacts, bad: int) -> TrialLoss:
    """Return a trial's loss for the search; `bad` counts the frames that make the trial fail."""
    if not facts.offered:
        return TrialLoss(0, 0, intended_s, tester_limited=True)
    return TrialLoss(
        facts.offered,
        min(facts.offered, bad),
        intended_s,
        tester_limited=facts.tester_limited,
        offered_part=facts.offered_part,
    )


def nothing_judged(
    entries: Sequence[PhaseEntry], expectations: Iterable[ClauseEntry], course: SuiteCourse | None
) -> str | None:
    """Return the reason why nothing of the run could be judged; None if something was judged.

    Clauses and phases can be judged; in a suite, its searches instead.

    `course`: progress of a suite; None for other runs.
    """
    if not entries or any(clause["verdict"] != INCONCLUSIVE for clause in expectations):
        return None
    if course is not None:
        searches = course.every
        if any(one.outcome.is_of_device for measured in searches for one in measured.results):
            return None
        first = searches[0].outcome()[0] if searches else ""
        return f"nothing could be judged: {format.of(len(searches), 'measurement')}. {first}"
    limited = sum(bool(entry["tester_limited"]) for entry in entries)
    if limited < len(entries):
        return None
    phases = format.of(len(entries), "phase")
    return f"nothing could be judged: the tester was the limit in {limited} of {phases}"
