# SPDX-License-Identifier: BSD-3-Clause
"""The engine of suites: which trial follows, and what the trials of each subtest amount to.

A suite's course is a function of the results of its trials alone. So what was found is not
recorded: it follows from the trials of a results directory, as all else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from ..records.summary_form import ClauseEntry, Entry, filled
from ..search.loads import End, GoalResult, ProposedTrial, Search, TrialLoss
from ..search.suites.declaration import Excluded, PortFacts, Row, SubtestTrials, TrialFacts
from ..search.suites.formulas import CountResult, RateResult
from . import measures as m
from .judge import FAILURES_NAMED, clause_entry
from .measures import PhaseResult

Facts = Mapping[int, TrialFacts]  # by the trial's number


class Measurement:
    """One subtest at one size: its trials one after the other."""

    def __init__(
        self, run: Run, planned: Trial, earlier: Mapping[str, Row], used_s: float = 0.0
    ) -> None:
        self.planned = planned
        self.subtest = subtest_of(run, planned)
        self.setting = setting_of(planned, parameters_of(run))
        self.earlier = earlier
        self.every: list[tuple[ProposedTrial, TrialFacts]] = []  # tester-limited ones too
        self._most: dict[str, float] = {}  # that ports received in a trial, frames/s
        method = self.subtest.method(self.setting, earlier)
        self.why_not = method if isinstance(method, str) else ""
        self.method = None if isinstance(method, str) else method
        self.search: Search | None = None
        if not isinstance(method, str):
            self.search = search_of(run, planned, method, used_s)

    @property
    def trial(self) -> ProposedTrial | None:
        """What to measure next; None when there is nothing more."""
        return None if self.search is None else self.search.trial

    def has(self, key: str) -> bool:
        """Return whether its table has a column of that key."""
        return any(value.key == key for value in self.subtest.values)

    def answer(self, facts: TrialFacts) -> None:
        """Take what the trial said."""
        assert self.search is not None
        assert self.search.trial is not None
        proposed = self.search.trial
        most = dict(self._most)
        for name, port in facts.ports.items():
            self._most[name] = max(self._most.get(name, 0.0), port.delivered_fps or 0.0)
        if self.subtest.is_unclear(self.setting, facts, most):
            facts = replace(facts, tester_limited=True)
        self.every.append((proposed, facts))
        self.search.answer(trial_loss(proposed.duration_s, facts, self.subtest.bad(facts)))

    @property
    def result(self) -> Any:
        """The method's, by the trials so far."""
        return None if self.search is None else self.search.result()

    def rows(self) -> list[dict[str, float | None]]:
        """Return the rows of its table; where nothing could be measured, one without values."""
        return self._rows(self.result if self._trials else None)

    def failed_rows(self) -> list[dict[str, float | None]]:
        """Return the rows as if the min of the range had held, where it failed.

        What a larger value is better of is below these. [] for searches that did not end so.
        """
        if not any(one.outcome.end is End.LOSS_AT_MIN for one in self._results):
            return []
        held = tuple(map(_held_at_min, self._results))
        return self._rows(held if isinstance(self.result, tuple) else held[0])

    def _rows(self, result: Any) -> list[dict[str, float | None]]:
        keys = [value.key for value in self.subtest.values]
        found = {} if result is None else self.subtest.rows(self._measured(result))
        rows = found if isinstance(found, list) else [found]
        return [{key: row.get(key) for key in keys} for row in rows]

    @property
    def _results(self) -> tuple[Any, ...]:
        """One result per goal of its search, or the only one."""
        if self.search is None:
            return ()
        return self.result if isinstance(self.result, tuple) else (self.result,)

    @property
    def is_judged(self) -> bool:
        """Whether its trials said anything of the device."""
        return any(one.outcome.is_of_device for one in self._results)

    def outcome(self) -> tuple[str, bool]:
        """Return how it ended, a sentence, and whether all that was asked for is there."""
        if self.search is None:
            return self.why_not, isinstance(self.why_not, Excluded)
        results = self._results
        cut = (one.outcome for one in results if not one.outcome.is_whole)
        worst = next(cut, results[0].outcome)
        whole = worst.is_whole
        no_result = self.subtest.no_result(self._measured(self.result)) if whole else ""
        return no_result or worst.sentence, whole and not no_result

    @property
    def _trials(self) -> list[tuple[ProposedTrial, TrialFacts]]:
        return [one for one in self.every if not one[1].tester_limited]

    def _measured(self, result: Any) -> SubtestTrials:
        return SubtestTrials(self.setting, self.earlier, result, self._trials)


def _held_at_min(result: Any) -> Any:
    """Return a search's result as if the min of its range, which failed, had held."""
    if result.outcome.end is not End.LOSS_AT_MIN:
        return result
    held: dict[str, object]
    if isinstance(result, GoalResult):
        held = {"relevant_lower_bound": result.relevant_upper_bound}
    elif isinstance(result, CountResult):
        held = {"longest": (1,), "holds": 1}
    elif isinstance(result, RateResult):
        held = {"highest": result.lowest_failing}
    else:  # fixed trials look for no value
        return result
    return replace(result, outcome=End.REACHED.at(), **held)


class SuiteCourse:
    """A suite in progress: `trial` is to be measured next, `answer` takes what it said."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting = list(run.searches)
        self._rows: dict[tuple[Any, ...], dict[str, Row]] = {}
        self.measurements: list[Measurement] = []
        self.trial: Trial | None = None
        self._identity = 0
        self._advance()

    def answer(self, facts: TrialFacts) -> None:
        """Take what the trial said, and set the next one."""
        self.measurements[-1].answer(facts)
        self._identity += 1
        self._advance()

    @property
    def every(self) -> list[Measurement]:
        """All measurements, those too that have not begun."""
        later = [Measurement(self._run, planned, {}) for planned in self._waiting]
        for one in later:  # what they start from is not known yet
            if one.search is None:
                one.why_not = End.IN_PROGRESS.value
        return self.measurements + later

    def _advance(self) -> None:
        while True:
            now = self.measurements[-1] if self.measurements else None
            if now is not None and now.trial is not None:
                assert now.search is not None
                self.trial = chosen_trial(
                    self._run, now.planned, now.trial, self._identity, now.search.trials
                )
                return
            if now is not None and now.subtest.values:  # what later ones at this size start from
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
    """Return the suite as far as its recorded trials bring it."""
    course = SuiteCourse(run)
    while course.trial is not None and course.trial.id in facts:
        course.answer(facts[course.trial.id])
    return course


def _point(planned: Trial) -> tuple[Any, ...]:
    return planned.sizes, tuple(part.network for part in planned.parts), planned.transport


def suite_summary(run: Run, course: SuiteCourse) -> Entry:
    """Return the summary's `suite`."""
    ports = [port for planned in run.searches for part in planned.parts for port in part.ranks]
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
    """Return the summary's `searches`: one entry per search of loads and goal."""
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
        for (name, goal), result in zip(goals.items(), measured.result, strict=True)
    ]


def suite_entries(course: SuiteCourse) -> list[Entry]:
    """Return one entry per subtest, variant and size, with its rows."""
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
                trials=[_trial_entry(measured, *one) for one in measured.every],
                iterations=list(getattr(measured.result, "longest", ())),
                complete=whole,
                outcome=sentence,
            )
        )
    return found


def _trial_entry(measured: Measurement, proposed: ProposedTrial, facts: TrialFacts) -> Entry:
    rate = {"rate": proposed.value, "addresses": proposed.value / (proposed.duration_s or 1.0)}
    return filled(
        "TrialEntry",
        proposed,
        facts,
        learning_rate=rate.get(measured.subtest.quantity),
        forwarded=facts.offered - facts.lost,
    )


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


def suite_verdicts(expectations: Iterable[Spec], course: SuiteCourse) -> list[ClauseEntry]:
    """Return the summary's `expectations`, in the order of the clauses."""
    return [_verdict(parse_clause(spec), course) for spec in expectations]


def _verdict(clause: Clause, course: SuiteCourse) -> ClauseEntry:
    key = clause.measure.key.partition(".")[2]
    about = [
        one
        for one in course.every
        if one.has(key) and matches(clause.spec.get("where") or {}, one.planned)
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
    """Yield what a search that fails at the min of its range is below, where that is too little."""
    if clause.measure.better != MORE or clause.sign not in (">=", ">"):
        return
    for row in measured.failed_rows():
        value = row.get(key)
        if value is not None and value <= clause.limit:
            yield value, f"{words_of(measured, row)}, which fails at the min of its range"


def words_of(measured: Measurement, row: Mapping[str, float | None] | None = None) -> str:
    """Return what people are shown: subtest, variant, size, and the row's load."""
    planned = measured.planned
    parts = [*suite_words(planned), f"{planned.sizes[0]} B"]
    if row is not None and row.get("load_percent") is not None:
        parts.append(f"at {row['load_percent']:.4g} %")
    return " ".join(parts)


# --- what formulas are given of a trial: its senders' and receivers' counts together -------------

LATE_SHARE = 0.01  # of the learning frames


def trial_facts(results: Iterable[PhaseResult]) -> TrialFacts:
    """Of all phases and networks of one trial. One that was not measured whole says nothing.

    Where some ports send streams of bytes, these say their goodput, and all else is the frames'.
    """
    told = list(results)
    every = [result for result in told if result.entry["size_unit"] == "frame"]
    streams = [result.entry for result in told if result.entry["size_unit"] != "frame"]
    entries = [result.entry for result in every]
    sent_fps = m.total([m.total(m.frames_per_second(result.flows, "sent")) for result in every])
    came_fps = m.total([m.total(m.frames_per_second(result.flows, "received")) for result in every])
    offered = m.total_int(entry["offered_frames"] for entry in entries)
    lost = [entry["lost_frames"] for entry in entries if entry["lost_frames"] is not None]
    whole = all(result.entry["state"] == "complete" for result in told)
    if not every or not whole or len(lost) < len(entries) or not offered:
        return TrialFacts()
    late_frames = _late_frames(every)
    return TrialFacts(
        offered=offered,
        lost=min(offered, sum(max(0, count) for count in lost)),
        flooded=sum(entry["misdelivered_frames"] or 0 for entry in entries),
        offered_part=_offered_part(every),
        tester_limited=any(result.entry["tester_limited"] for result in told),
        offered_fps=sent_fps,
        # What came beyond was sent before the window opened, and held until then.
        delivered_fps=None if came_fps is None else m.least((came_fps, sent_fps)),
        goodput=m.total(entry["throughput"]["total"] for entry in streams),
        latency_us=_latency(entries, "one_way"),
        rtt_us=_latency(entries, "round_trip"),
        ports=_ports(every),
        late_frames=max(late_frames, default=0),
        late_total=sum(late_frames),
        learned_late=_learned_late(every),
        last_gap_s=_last_gap_s(every),
        silent_s=_silent_s(every),
        duration_s=max(entry["window_s"] or 0.0 for entry in entries),
    )


def trial_loss(intended_s: float, facts: TrialFacts, bad: int) -> TrialLoss:
    """Return the same as a search is told it; `bad`: frames that fail the trial."""
    if not facts.offered:
        return TrialLoss(0, 0, intended_s, tester_limited=True)
    return TrialLoss(
        facts.offered,
        min(facts.offered, bad),
        intended_s,
        tester_limited=facts.tester_limited,
        offered_part=facts.offered_part,
    )


def _ports(results: Iterable[PhaseResult]) -> dict[str, PortFacts]:
    """Return the facts of each port that frames were for.

    A suite's trial has one phase in each network.
    """
    found = {}
    for result in results:
        flows = result.flows
        places = flows.ends("dst")
        sent = m.sum_by_port(places, m.or_zero(flows["sent_frames"]))
        lost = m.sum_by_port(places, m.or_zero(m.lost_frames(flows)))
        rates = m.sum_by_port(places, m.frames_per_second(flows, "received"))
        offered = m.sum_by_port(places, m.frames_per_second(flows, "sent"))
        for port, rate in rates.items():
            came = None if rate is None else m.least((rate, offered.get(port)))
            found[port] = PortFacts(
                int(sent[port] or 0), int(lost[port] or 0), came, offered.get(port)
            )
    return found


def _offered_part(results: Iterable[PhaseResult]) -> float:
    parts = []
    for result in results:
        flows, places = result.flows, result.flows.ends("src")
        sent = m.sum_by_port(places, m.or_zero(flows["sent_frames"]))
        asked = m.sum_by_port(places, m.or_zero(flows["intended"]))
        parts += [(sent[port] or 0.0) / count for port, count in asked.items() if count]
    return min([1.0, *parts])


def _late_frames(results: Iterable[PhaseResult]) -> list[int]:
    """Of each sending port; each of its flows has those of all."""
    found: dict[tuple[int, str], float] = {}
    for network, result in enumerate(results):
        places = result.flows.ends("src")
        late = m.or_zero(result.flows["late_frames"])
        for number, frames in zip(places.place.tolist(), late.tolist(), strict=True):
            port = network, places.names[number]
            found[port] = max(found.get(port, 0.0), frames)
    return [int(frames) for frames in found.values()]


def _learned_late(results: Iterable[PhaseResult]) -> bool:
    """Return whether addresses were announced at a lower rate than asked for.

    More than one of a hundred was late.
    """
    for result in results:
        announced = np.nansum(result.flows["sent_frames"])
        late = np.nansum(result.flows["learning_late"])
        if late > LATE_SHARE * announced:
            return True
    return False


def _last_gap_s(results: Iterable[PhaseResult]) -> float | None:
    """Return the latest of all flows.

    None where frames behind the last arrival are lost, or reordered ones may have filled a gap, or
    no load fell.
    """
    gaps_ns = []
    for result in results:
        flows = result.flows
        unclear = flows["sent_frames"] - flows["numbers"] + flows["reordered"]
        if not len(unclear) or not (unclear == 0).all():
            return None
        gaps_ns.append(float(flows["gap_ns"].max()))
    return max(gaps_ns) / 1e9


def _silent_s(results: Iterable[PhaseResult]) -> float | None:
    """For how long at the end of its traffic nothing came of a flow, the longest."""
    every = [result.flows for result in results]
    times = [flows["sent_last_run_ns"] - flows["received_last_run_ns"] for flows in every]
    longest = max((float(each.max(initial=0.0)) for each in times), default=0.0)
    return None if any(np.isnan(each).any() for each in times) else longest / 1e9


def _latency(entries: Iterable[Mapping[str, object]], kind: str) -> Mapping[str, float | None]:
    """Return times of a suite's only phase."""
    [latency, *more] = [entry["latency"] for entry in entries]
    if more or not isinstance(latency, Mapping):
        return {}
    found: Mapping[str, float | None] = latency.get(kind) or {}
    return found
