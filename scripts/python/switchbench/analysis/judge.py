# SPDX-License-Identifier: BSD-3-Clause
"""Judgement of a run's clauses while its records arrive.

A clause fails if any valid value violates the limit. Otherwise the clause is INCONCLUSIVE if a
value was not observed, a trial is missing, or the tester may have been the limit. In a
tester-limited phase only values that no host can have caused are valid (`Measure.when_limited`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from ..base import format
from ..base.measures import COUNT, NOTHING, VALID, Measure
from ..base.model import Run, Trial
from ..config.clauses import Clause, Spec, clauses_sha256, parse_clause, selected
from ..records.rows import Floats, NameIndex, PhaseFlows, TrialKey
from ..records.summary_form import ClauseEntry, Entry, PhaseEntry, PlanEntry, at, filled
from . import measures as m
from .measures import ByPort, PhaseResult
from .tester import beyond_hosts, lost_in_network

# --- a measure's values in a phase ---------------------------------------------------------------


def _by_port(flows: PhaseFlows, values: Floats) -> ByPort:
    """Return by port the sum of its flows' values; each flow counts at both ends."""
    ends = NameIndex.of(port for pair in flows.pairs for port in pair)
    return m.sum_by_port(ends, np.repeat(values, 2))


# measures of ports; true: relative to the median port
_RELATIVE = {"percent_of_line": False, "uniformity_percent": True}
_LOSS = ("lost_frames", "loss_percent")


def measured(
    measure: Measure, result: PhaseResult, over: str, is_limited: bool
) -> Floats | ByPort | float | None:
    """Return a phase's values of a measure: by flow, by port, or one for the phase.

    `is_limited`: for a loss, count only frames that the network lost for certain.
    """
    flows, entry = result.flows, result.entry
    if measure.key not in _LOSS:
        if over == "flow":
            return m.flow_column(flows, measure.flow)
        if over != "port" and measure.entry:
            known: float | None = at(entry, measure.entry)
            return known
        # By port the lower of its sent and received rate.
        relative = _RELATIVE[measure.key]
        lesser: ByPort = {}
        for shares in (result.shares.source, result.shares.destination):
            middle = m.median(shares.values())
            for port, value in shares.items():
                if relative and value is not None:
                    value = 100.0 * value / middle if middle else None
                before = lesser.get(port)
                lesser[port] = value if before is None else m.least((before, value))
        values = lesser.values()
        return lesser if over == "port" else None if None in values else m.least(values)
    is_share = measure.key == "loss_percent"
    if over not in ("flow", "port"):
        lost, offered = entry["lost_frames"], entry["offered_frames"]
        lost = lost_in_network(result) if is_limited else lost
        return m.ratio(lost, offered, 100) if is_share else lost
    lost = beyond_hosts(result) if is_limited else m.lost_frames(flows)
    if over == "flow":
        with np.errstate(invalid="ignore"):
            return 100.0 * lost / flows["sent_frames"] if is_share else lost
    parts, wholes = _by_port(flows, lost), _by_port(flows, flows["sent_frames"])
    if not is_share:
        return parts
    return {port: m.ratio(part, wholes[port], 100) for port, part in parts.items()}


PASS: Final = "PASS"
FAIL: Final = "FAIL"
INCONCLUSIVE: Final = "INCONCLUSIVE"

FAILURES_NAMED = 20  # failures listed for one clause, the worst first


class ValueLocation(NamedTuple):
    """Place of a measured value: trial, phase, flow or port; None if a key does not apply."""

    trial: int | None = None
    repeat: int | None = None
    pattern: str | None = None
    network: str | None = None
    phase: int | None = None
    src: str | None = None
    dst: str | None = None
    port: str | None = None

    def words(self, over: str) -> str:
        """Return a text that names the flow, port or phase of the value, and the trial."""
        trial = f"trial {self.trial} {self.pattern}"
        if over == "flow":
            return f"{self.src} -> {self.dst} in {trial} phase {self.phase}"
        places = [f"{self.port}"] if over == "port" else []
        if self.phase is not None:
            places.append(f"{trial} phase {self.phase}")
        elif self.trial is not None:
            places.append(trial)
        return " in ".join(places) or "the run"


class JudgedValue(NamedTuple):
    """Value to judge, with the place where it was measured."""

    value: float | None
    at: ValueLocation
    limited: bool = False  # true: the tester limits the value
    is_open: bool = False  # true: a value of several phases, of which one is unknown

    def joined(self, other: JudgedValue, reduce: str) -> JudgedValue:
        """Combine this value with the value of another phase; return the result with its place.

        The place is the phase that has exactly this value; else the trial, if both values are of
        one trial. A run has millions of values, so they are reduced one by one.
        """
        both = (self, other)
        value = m.REDUCERS[reduce]([one.value for one in both if one.value is not None])
        place = next((one.at for one in both if one.value == value), None)
        if place is None:
            trials = {ValueLocation(*one.at[:3]) for one in both}
            place = trials.pop() if len(trials) == 1 else ValueLocation()
            place = place._replace(port=self.at.port)
        is_open = any(one.is_open or one.value is None for one in both)
        return JudgedValue(value, place, self.limited or other.limited, is_open)


@dataclass
class ClauseJudge:
    """Judgement of one clause: counts of its values so far, and the verdict."""

    clause: Clause
    wanted: set[TrialKey]  # trials to which the clause applies
    judged: int = 0
    failed: int = 0
    unknown: int = 0
    limited: int = 0
    worst: JudgedValue | None = None
    worst_badness: float = 0.0
    # heap of the worst failures: badness, order, value
    failures: list[tuple[float, int, JudgedValue]] = field(default_factory=list)
    gathered: dict[Any, JudgedValue] = field(default_factory=dict)
    # by port: why its host may be the limit
    limits: dict[str, str] = field(default_factory=dict)
    trials: set[TrialKey] = field(default_factory=set)

    @property
    def is_of_plans(self) -> bool:
        """Return whether the clause judges pattern totals: a trial's totals over all its phases."""
        return self.clause.over == "plan" and bool(self.clause.measure.plan)

    def add(self, result: PhaseResult) -> None:
        """Judge the values of one phase, if the clause's `where` selects its trial."""
        trial = result.key.trial, result.key.repeat
        if trial not in self.wanted:
            return
        self.trials.add(trial)
        if self.clause.measure.when_limited != VALID:
            for limit in result.entry["tester_limited"]:
                self.limits.setdefault(limit["port"], limit["reason"])
        if self.is_of_plans:
            return
        # Of a tester-limited phase only certain values count, else None.
        measure, over, own = self.clause.measure, self.clause.over, result.key
        here = ValueLocation(own.trial, own.repeat, result.entry["pattern"], own.network, own.phase)
        limited = bool(result.entry["tester_limited"]) and measure.when_limited != VALID
        found = measured(measure, result, over, limited)
        places: Iterable[ValueLocation] = [here]
        values: Iterable[float | None]
        if isinstance(found, np.ndarray):
            places = (here._replace(src=src, dst=dst) for src, dst in result.flows.pairs)
            values = m.observed(found)
        elif isinstance(found, dict):
            places, values = (here._replace(port=port) for port in found), found.values()
        else:
            values = [found]
        is_count = measure.format == COUNT and over in ("flow", "port")
        for value, place in zip(values, places, strict=True):
            certain = None if limited and measure.when_limited == NOTHING else value
            sample = JudgedValue(m.as_int(certain) if is_count else certain, place, limited)
            if over in ("flow", "phase"):
                self._judge(sample)
            else:
                key = {"port": place.port, "plan": place.trial}.get(over)
                before = self.gathered.get(key)
                joined = before and before.joined(sample, measure.over_phases)
                self.gathered[key] = joined or sample

    def add_plan(self, trial: TrialKey, plan: PlanEntry, entries: Sequence[PhaseEntry]) -> None:
        """Judge the totals of a trial in one network, if the clause judges pattern totals."""
        measure = self.clause.measure
        if not self.is_of_plans or trial not in self.wanted:
            return
        here = ValueLocation(plan["trial"], plan["repeat"], plan["pattern"], plan["network"])
        value = at(plan, measure.plan)
        limited = [bool(entry["tester_limited"]) for entry in entries]
        if measure.when_limited != VALID and any(limited):
            self._judge(JudgedValue(value, here, limited=True))
            return
        whole = len(limited) == plan["phases"] and all(
            at(entry, measure.entry) is not None for entry in entries
        )
        self._judge(JudgedValue(value if whole else None, here))

    def verdict(self, unsure: Mapping[TrialKey, str], not_needed: set[TrialKey]) -> ClauseEntry:
        """Judge the values over several phases; return the clause's entry in `expectations`.

        `unsure`: trials whose mean over repeats is inconclusive, with the reason. `not_needed`:
        repeats that were skipped because the mean was already conclusive.
        """
        wanted = self.wanted - not_needed
        for value, place, limited, lacks in self.gathered.values():
            is_open = limited or lacks
            if is_open and value is not None and self._is_past_saving(value):
                self._judge(JudgedValue(value, place))
            else:
                self._judge(JudgedValue(None if is_open else value, place, limited))
        self.gathered = {}
        doubts = []  # reasons why a clause without failures is inconclusive
        if self.limited:
            first, *others = sorted(self.limits)
            more = f" (and {format.of(len(others), 'more port')})" if others else ""
            doubts.append(f"{first}: {self.limits[first]}{more}")
        if self.clause.measure.of_repeats:
            doubts += sorted({unsure[key] for key in wanted if key in unsure})
        if self.unknown:
            doubts.append(f"{self.unknown} of {self.judged} values could not be observed")
        if missing := wanted - self.trials:
            doubts.append(f"{len(missing)} of {len(wanted)} trials were not measured")
        if not self.judged and not doubts:
            doubts.append("no value of its measure was measured")
        worst = self.worst
        return clause_entry(
            self.clause,
            None if worst is None else worst.value,
            doubts,
            judged=self.judged,
            failed=self.failed,
            unobserved=self.unknown,
            limited=self.limited,
            trials=len(wanted),
            trials_measured=len(wanted & self.trials),
            of=worst and worst.at.words(self.clause.over),
            at=worst and filled("ValueLocationEntry", worst.at),
            failures=[
                {
                    "value": sample.value,
                    "margin": -badness,
                    "of": sample.at.words(self.clause.over),
                    "at": filled("ValueLocationEntry", sample.at),
                }
                for badness, _, sample in sorted(self.failures, key=lambda one: (-one[0], one[1]))
            ],
        )

    def _judge(self, sample: JudgedValue) -> None:
        self.judged += 1
        if sample.limited and (sample.value is None or not self._is_past_saving(sample.value)):
            self.limited += 1
            return
        if sample.value is None:
            self.unknown += 1
            return
        badness = -self.clause.margin(sample.value)
        if not self.clause.holds(sample.value):
            self.failed += 1
            heapq.heappush(self.failures, (badness, -self.judged, sample))
            if len(self.failures) > FAILURES_NAMED:
                heapq.heappop(self.failures)
        if self.worst is None or badness > self.worst_badness:
            self.worst, self.worst_badness = sample, badness

    def _is_past_saving(self, known: float) -> bool:
        """Return whether the clause fails whatever values the unobserved samples have.

        `known`: the combination of the observed values. Further values can only lower a min, and
        only raise a max or a sum.
        """
        if self.clause.holds(known):
            return False
        falls, sign = self.clause.measure.over_phases == "min", self.clause.sign
        if sign in (">=", ">"):
            return falls
        if sign in ("<=", "<"):
            return not falls
        return known != self.clause.limit and (known < self.clause.limit) == falls


def clause_judges(expectations: Iterable[Spec], trials: Iterable[Trial]) -> list[ClauseJudge]:
    """Return a ClauseJudge for each clause; raise ConfigurationError for an invalid clause."""
    every, judges = list(trials), []
    for spec in expectations:
        chosen = selected(spec.get("where") or {}, every)
        wanted = {(trial.id, trial.repeat) for trial in chosen}
        judges.append(ClauseJudge(parse_clause(spec), wanted))
    return judges


def clause_entry(
    clause: Clause, worst: float | None, doubts: Sequence[str], *, failed: int, **seen: object
) -> ClauseEntry:
    """Return a clause's entry for the summary, from its worst value and counts.

    `doubts`: reasons that make a clause without failures INCONCLUSIVE.
    """
    margin = None if worst is None else clause.margin(worst)
    return filled(
        "ClauseEntry",
        {"source": None, **clause.spec},
        seen,
        limit=clause.limit,
        unit=clause.measure.unit,
        verdict=FAIL if failed else INCONCLUSIVE if doubts else PASS,
        failed=failed,
        value=worst,
        margin=margin,
        margin_percent=m.ratio(margin, abs(clause.limit), 100),
        reason=None if failed else "; ".join(doubts) or None,
    )


# --- the verdict of a whole run ------------------------------------------------------------------

SCOPE = "Covers these clauses and this run only; not a conformance certificate."


def overall(run: Run, about: Entry, expectations: Iterable[ClauseEntry], status: str) -> Entry:
    """Return the verdict of a run, with a sentence that explains the verdict.

    If a run is partial, FAIL remains and PASS becomes INCONCLUSIVE.
    """
    counts = Counter(clause["verdict"] for clause in expectations)
    every, failed, undecided = sum(counts.values()), counts[FAIL], counts[INCONCLUSIVE]
    some = "its one clause" if every == 1 else f"{failed or undecided} of {every} clauses"
    each = "" if every == 1 else f" ({counts_words(failed, undecided, counts[PASS])})"
    tested: Any = run.about.get("switches", ())
    switches = []  # model, serial number and firmware of each
    for switch in tested:
        model = " ".join(switch[key] for key in ("vendor", "model") if key in switch)
        more = [f"{key} {switch[key]}" for key in ("serial", "firmware") if key in switch]
        name = f"{model or switch.get('name') or 'a switch'} ({', '.join(more)})"
        switches.append(name.removesuffix(" ()"))
    verdict: str = PASS
    outcome = "meets its one clause" if every == 1 else f"meets all {every} clauses"
    if failed:
        verdict, outcome = FAIL, f"does not meet {some}{each}"
    elif undecided or status != "complete":
        verdict = INCONCLUSIVE
        why = f"{some} could not be judged{each}"
        why = why if undecided else "no clause failed, but the run is not complete"
        outcome = f"neither passes nor fails: {why}"
    return {
        "verdict": verdict,
        "sentence": f"{' with '.join(switches) or 'The system under test'} {outcome}",
        "scope": SCOPE,
        "passed": counts[PASS],
        "failed": failed,
        "inconclusive": undecided,
        "warnings": [*run.reservations, *left_out(about)],
        "clauses_sha256": clauses_sha256(run.expectations),
    }


def left_out(about: Entry) -> list[str]:
    """Return a sentence for each host that the run excluded, with the reason."""
    hosts = about.get("excluded_hosts", [])
    return [f"{host['host']} was left out: {host['reason']}" for host in hosts]


def counts_words(failed: int, inconclusive: int, passed: int) -> str:
    """Return the numbers of clauses by verdict in words: "1 failed, 4 inconclusive, 1 passed"."""
    return f"{failed} failed, {inconclusive} inconclusive, {passed} passed"


def exit_status(status: str, expectations: Iterable[ClauseEntry], judged: bool = True) -> int:
    """Return a run's exit status: 3 (incomplete), else 1 (FAIL), else 4 (INCONCLUSIVE), else 0.

    `judged`: false if nothing that was requested could be judged.
    """
    if status != "complete":
        return 3
    verdicts = {clause["verdict"] for clause in expectations}
    if FAIL in verdicts:
        return 1
    return 4 if INCONCLUSIVE in verdicts or not judged else 0
