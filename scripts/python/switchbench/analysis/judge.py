# SPDX-License-Identifier: BSD-3-Clause
"""The clauses judged while the records come.

A clause fails where any valid value is not as required. It is INCONCLUSIVE where none is, but a
value was not observed, a trial is missing, or the tester may have been the limit. Of a
tester-limited phase those values are valid that no host can have caused (`Measure.when_limited`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

import numpy as np

from ..base import format
from ..base.errors import ConfigurationError
from ..base.measures import COUNT, LATENCY_MEASURES, MEASURES, NOTHING, REDUCED, VALID, Measure
from ..base.model import Trial
from ..config.clauses import Clause, Spec, name_of, parse_clause, selected
from ..records.document.summary import ClauseEntry, FailureEntry, StatedClause, ValueLocationEntry
from ..records.document.trials import PhaseEntry, PlanEntry
from ..records.flows import PhaseFlows, Places, Times
from ..records.latency import figure
from .loss_location import beyond_hosts, lost_in_network
from .measures import (
    MEGA,
    ByPort,
    Floats,
    PhaseResult,
    as_int,
    greatest,
    least,
    loss_percent,
    lost_frames,
    median,
    observed,
    payload_bps,
    sum_by_port,
    total,
)

Reducer = Callable[[Iterable[float | None]], float | None]


@dataclass(frozen=True)
class LowerBound:
    """How a measure of a tester-limited phase is read, where that is not as in other phases."""

    phase: Callable[[PhaseResult], float | None]
    flow: Callable[[PhaseResult], Floats]
    port: Callable[[PhaseResult], ByPort]


@dataclass(frozen=True)
class Formula:
    """How a measure is read from a phase, and how several phases are put together."""

    phase: Callable[[PhaseResult], float | None]
    reduce: Reducer
    flow: Callable[[PhaseFlows], Floats] | None = None
    port: Callable[[PhaseResult], ByPort] | None = None
    at_least: LowerBound | None = None


def _entry(*names: str) -> Callable[[PhaseResult], float | None]:
    """Return what stands there in the phase's entry of the summary."""

    def value(result: PhaseResult) -> float | None:
        found: Any = result.entry
        for name in names:
            if found is None:
                return None
            found = found[name]
        known: float | None = found
        return known

    return value


# --- of a flow -----------------------------------------------------------------------------------


def _judged(name: str) -> Callable[[PhaseFlows], Floats]:
    """Return a count that the destination keeps of frames; tcp sees none."""

    def values(flows: PhaseFlows) -> Floats:
        end = flows.destination
        found: Floats = np.where(np.isnan(end.floats("frames")), np.nan, end.floats(name))
        return found

    return values


def _throughput(flows: PhaseFlows) -> Floats:
    found: Floats = np.where(flows.window_off, np.nan, payload_bps(flows) / MEGA)
    return found


def _offered(flows: PhaseFlows) -> Floats:
    return flows.source.floats("frames")


def _of_times(value: Callable[[Times], float | None]) -> Callable[[PhaseFlows], Floats]:
    """Return what is read from the histograms of each flow."""
    return lambda flows: np.array(
        [value(flows.times.get(pair, {})) for pair in flows.pairs], dtype=np.float64
    )


def _lost_probes(times: Times) -> float | None:
    found = times.get("round_trip")
    return None if found is None else found.lost


# --- of a port -----------------------------------------------------------------------------------


def _lesser(source: ByPort, destination: ByPort) -> ByPort:
    """Of each port the lesser of what came from it and what came to it."""
    both = dict(source)
    for port, value in destination.items():
        both[port] = value if both.get(port) is None else least((both[port], value))
    return both


def _relative(shares: ByPort) -> ByPort:
    """Percent of the median port's share."""
    middle = median(shares.values())
    if not middle:
        return dict.fromkeys(shares)
    return {port: None if v is None else 100.0 * v / middle for port, v in shares.items()}


def _port_uniformity(result: PhaseResult) -> ByPort:
    return _lesser(_relative(result.shares.source), _relative(result.shares.destination))


def _uniformity(result: PhaseResult) -> float | None:
    values = list(_port_uniformity(result).values())
    return None if None in values else least(values)


def _sum_of_port(flows: PhaseFlows, values: Floats) -> ByPort:
    """Return a flow's value, at both its ports."""
    ends = Places.of([port for pair in flows.pairs for port in pair])
    return sum_by_port(ends, np.repeat(values, 2))


def _port_loss(result: PhaseResult) -> ByPort:
    return _sum_of_port(result.flows, lost_frames(result.flows))


def _port_loss_percent(result: PhaseResult) -> ByPort:
    return _percents(_port_loss(result), _sum_of_port(result.flows, _offered(result.flows)))


def _percents(parts: ByPort, wholes: ByPort) -> ByPort:
    return {
        port: None if part is None or not (whole := wholes[port]) else 100.0 * part / whole
        for port, part in parts.items()
    }


# --- of a tester-limited phase -------------------------------------------------------------------


def _share_at_least(result: PhaseResult) -> Floats:
    with np.errstate(invalid="ignore"):
        found: Floats = 100.0 * beyond_hosts(result) / _offered(result.flows)
    return found


def _port_share_at_least(result: PhaseResult) -> ByPort:
    return _percents(
        _sum_of_port(result.flows, beyond_hosts(result)),
        _sum_of_port(result.flows, _offered(result.flows)),
    )


def _phase_share_at_least(result: PhaseResult) -> float | None:
    lost, offered = lost_in_network(result), result.entry["offered_frames"]
    return None if lost is None or not offered else 100.0 * lost / offered


_AT_LEAST = {
    "lost_frames": LowerBound(
        lost_in_network,
        beyond_hosts,
        lambda result: _sum_of_port(result.flows, beyond_hosts(result)),
    ),
    "loss_percent": LowerBound(_phase_share_at_least, _share_at_least, _port_share_at_least),
}


# --- by measure ----------------------------------------------------------------------------------

_REDUCERS: dict[str, Reducer] = {"min": least, "max": greatest, "sum": total}

_OF_FLOW: dict[str, Callable[[PhaseFlows], Floats]] = {
    "throughput": _throughput,
    "offered_frames": _offered,
    "delivered_frames": lambda flows: flows.destination.floats("frames"),
    "lost_frames": lost_frames,
    "loss_percent": loss_percent,
    "duplicated_frames": _judged("duplicated"),
    "reordered_frames": _judged("reordered"),
    "late_frames": _judged("late"),
    "corrupted_frames": _judged("corrupted"),
    "retransmitted_segments": lambda flows: flows.source.floats("retransmitted_segments"),
    "lost_probes": _of_times(_lost_probes),
}
_OF_PORT: dict[str, Callable[[PhaseResult], ByPort]] = {
    "percent_of_line": lambda result: _lesser(result.shares.source, result.shares.destination),
    "uniformity_percent": _port_uniformity,
    "lost_frames": _port_loss,
    "loss_percent": _port_loss_percent,
}


def _latency(kind: str, name: str) -> Callable[[PhaseFlows], Floats]:
    return _of_times(lambda times: figure(kind, name, times.get(kind)))


_OF_FLOW |= {key: _latency(kind, name) for key, (kind, name) in LATENCY_MEASURES.items()}

_OF_PHASE: dict[str, Callable[[PhaseResult], float | None]] = {"uniformity_percent": _uniformity}


def formula_of(measure: Measure) -> Formula:
    """Return the formula of a measure.

    KeyError for one that neither the summary nor a function here gives for a phase.
    """
    return Formula(
        _entry(*measure.entry.split(".")) if measure.entry else _OF_PHASE[measure.key],
        _REDUCERS[measure.over_phases],
        flow=_OF_FLOW.get(measure.key),
        port=_OF_PORT.get(measure.key),
        at_least=_AT_LEAST.get(measure.key),
    )


def reduced(flows: PhaseFlows) -> dict[str, float | None]:
    """Return the measures that are one figure of all flows, by key; None where one is unknown."""
    found: dict[str, float | None] = {}
    for measure in REDUCED:
        values = _OF_FLOW[measure.flow](flows)
        known = len(values) and not np.isnan(values).any()
        found[measure.key] = measure.reduce(values.tolist()) if measure.reduce and known else None
    return found


FORMULAS = {measure.key: formula_of(measure) for measure in MEASURES.values()}


PASS: Final = "PASS"
FAIL: Final = "FAIL"
INCONCLUSIVE: Final = "INCONCLUSIVE"

FAILURES_NAMED = 20  # of one clause, the worst first

TrialKey = tuple[int, int]  # trial, repeat


class ValueLocation(NamedTuple):
    """Where a value was seen. What is None does not apply: a sum is of no one phase."""

    trial: int | None = None
    repeat: int | None = None
    pattern: str | None = None
    network: str | None = None
    phase: int | None = None
    src: str | None = None
    dst: str | None = None
    port: str | None = None

    def entry(self) -> ValueLocationEntry:
        """As the summary has it."""
        return cast("ValueLocationEntry", self._asdict())

    def words(self, over: str) -> str:
        """Return what the value is of, for people, and where it was seen if in one place."""
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
    """One value to judge and what it is of."""

    value: float | None
    at: ValueLocation
    limited: bool = False  # by the tester: the value is the least that it may be


@dataclass(slots=True)
class _Together:
    """Several phases' values as one; `at` is where it was seen, if in one phase."""

    value: float | None  # of what is known
    at: ValueLocation
    unknown: bool = False  # whether one of them was not observed
    limited: bool = False  # whether one of them was tester-limited

    def add(self, sample: JudgedValue, reduce: Reducer) -> None:
        """Take one more phase's value."""
        self.limited |= sample.limited
        self.unknown |= sample.value is None and not sample.limited
        known = [value for value in (self.value, sample.value) if value is not None]
        value = reduce(known) if known else None
        if value == self.value:
            return
        self.value = value
        if value == sample.value:
            self.at = sample.at
        else:
            trial = (
                ValueLocation(*sample.at[:3]) if self.at[:3] == sample.at[:3] else ValueLocation()
            )
            self.at = trial._replace(port=sample.at.port)


@dataclass
class _Seen:
    """What has been seen for one clause so far."""

    clause: Clause
    wanted: set[TrialKey]  # the trials that it is about
    judged: int = 0
    failed: int = 0
    unknown: int = 0
    limited: int = 0
    worst: JudgedValue | None = None
    worst_badness: float = 0.0
    failures: list[tuple[float, int, JudgedValue]] = field(default_factory=list)  # a heap
    gathered: dict[Any, _Together] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)  # port: why its host is doubted first
    trials: set[TrialKey] = field(default_factory=set)

    @property
    def formula(self) -> Formula:
        """How the clause's measure is computed."""
        return FORMULAS[self.clause.spec["measure"]]

    @property
    def is_of_plans(self) -> bool:
        """Whether it is judged by the summary's entries of plans."""
        return self.clause.over == "plan" and bool(self.clause.measure.plan)

    def add(self, result: PhaseResult) -> None:
        """Take a phase that `where` holds for."""
        self.trials.add((result.key.trial, result.key.repeat))
        if self.clause.measure.when_limited != VALID:
            for limit in result.entry["tester_limited"]:
                self.limits.setdefault(limit["port"], limit["reason"])
        if self.is_of_plans:
            return
        for sample in self._samples(result):
            if self.clause.over in ("flow", "phase"):
                self._judge(sample)
            else:
                key = {"port": sample.at.port, "plan": sample.at.trial}.get(self.clause.over)
                group = self.gathered.setdefault(key, _Together(None, sample.at))
                group.add(sample, self.formula.reduce)

    def add_plan(self, plan: PlanEntry, entries: Sequence[PhaseEntry]) -> None:
        """Take a plan that `where` holds for, with its phases, which the tester did not limit."""
        measure = self.clause.measure
        at = ValueLocation(plan["trial"], plan["repeat"], plan["pattern"], plan["network"])
        value = value_at(plan, measure.plan)
        limited = [bool(entry["tester_limited"]) for entry in entries]
        if measure.when_limited != VALID and any(limited):
            self._judge(JudgedValue(value, at, limited=True))
            return
        whole = len(limited) == plan["phases"] and all(
            value_at(entry, measure.entry) is not None for entry in entries
        )
        self._judge(JudgedValue(value if whole else None, at))

    def verdict(self, unsure: Mapping[TrialKey, str], not_needed: set[TrialKey]) -> ClauseEntry:
        """Return the clause's entry in the summary."""
        wanted = self.wanted - not_needed
        for group in self.gathered.values():
            value, is_open = group.value, group.unknown or group.limited
            if is_open and value is not None and self._is_past_saving(value):
                self._judge(JudgedValue(value, group.at))
            else:
                self._judge(JudgedValue(None if is_open else value, group.at, group.limited))
        self.gathered = {}
        doubts = self._doubts(wanted, unsure)
        clause, worst = self.clause, self.worst
        margin = None if worst is None or worst.value is None else clause.margin(worst.value)
        return {
            **stated(clause.spec),
            "limit": clause.limit,
            "unit": clause.measure.unit,
            "verdict": FAIL if self.failed else INCONCLUSIVE if doubts else PASS,
            "judged": self.judged,
            "failed": self.failed,
            "unobserved": self.unknown,
            "limited": self.limited,
            "trials": len(wanted),
            "trials_measured": len(wanted & self.trials),
            "value": None if worst is None else worst.value,
            "margin": margin,
            "margin_percent": percent_of(margin, clause.limit),
            "of": None if worst is None else worst.at.words(clause.over),
            "at": None if worst is None else worst.at.entry(),
            "failures": self._named(),
            "reason": None if self.failed else "; ".join(doubts) or None,
        }

    def _named(self) -> list[FailureEntry]:
        """Return the worst values that are not as required."""
        ordered = sorted(self.failures, key=lambda item: (item[0], -item[1]), reverse=True)
        return [
            {
                "value": sample.value,
                "margin": -badness,
                "of": sample.at.words(self.clause.over),
                "at": sample.at.entry(),
            }
            for badness, _, sample in ordered
            if sample.value is not None
        ]

    def _samples(self, result: PhaseResult) -> Iterator[JudgedValue]:
        """Yield the values of a phase; of a tester-limited one what is certain, if anything."""
        formula, key, when_limited = self.formula, result.key, self.clause.measure.when_limited
        here = ValueLocation(key.trial, key.repeat, result.entry["pattern"], key.network, key.phase)
        limited = bool(result.entry["tester_limited"]) and when_limited != VALID
        at_least = formula.at_least if limited else None

        def sample(value: float | None, at: ValueLocation) -> JudgedValue:
            certain = None if limited and when_limited == NOTHING else value
            return JudgedValue(certain, at, limited)

        if self.clause.over == "flow" and formula.flow is not None:
            column = at_least.flow(result) if at_least else formula.flow(result.flows)
            for (src, dst), value in zip(result.flows.pairs, observed(column), strict=True):
                yield sample(self._counted(value), here._replace(src=src, dst=dst))
        elif self.clause.over == "port" and formula.port is not None:
            shares = at_least.port(result) if at_least else formula.port(result)
            for port, value in shares.items():
                yield sample(self._counted(value), here._replace(port=port))
        else:
            yield sample((at_least or formula).phase(result), here)

    def _counted(self, value: float | None) -> float | None:
        """Make a count of a column whole."""
        return as_int(value) if self.clause.measure.format == COUNT else value

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
        """Return whether what was not observed could not mend what is known of several phases."""
        if self.clause.holds(known):
            return False
        if self.clause.sign in (">=", ">"):
            return self._can_only_fall()
        if self.clause.sign in ("<=", "<"):
            return not self._can_only_fall()
        too_low = known < self.clause.limit
        return known != self.clause.limit and too_low == self._can_only_fall()

    def _can_only_fall(self) -> bool:
        """Return whether one more value can lower those put together; else it can raise them."""
        return self.formula.reduce is least

    def _doubts(self, wanted: set[TrialKey], unsure: Mapping[TrialKey, str]) -> list[str]:
        """Return why nothing can be concluded where nothing fails."""
        doubts = []
        if self.limited:
            first, *others = sorted(self.limits)
            more = f" (and {format.of(len(others), 'more port')})" if others else ""
            doubts.append(f"{first}: {self.limits[first]}{more}")
        if self.clause.measure.of_repeats:
            doubts += sorted({unsure[key] for key in wanted if key in unsure})
        if self.unknown:
            doubts.append(f"{self.unknown} of {self.judged} values could not be observed")
        missing = wanted - self.trials
        if missing:
            doubts.append(f"{len(missing)} of {len(wanted)} trials were not measured")
        if not self.judged and not doubts:
            doubts.append("nothing was measured that it is about")
        return doubts


class Judge:
    """All clauses of a run. A clause that can never be judged is invalid before any traffic."""

    def __init__(self, expectations: Iterable[Spec], trials: Iterable[Trial]) -> None:
        """Parse the clauses and find the trials of each."""
        every = list(trials)
        self._clauses: list[_Seen] = []
        for spec in expectations:
            where = spec.get("where") or {}
            wanted = {(trial.id, trial.repeat) for trial in selected(where, every)}
            clause = parse_clause(spec)
            if not wanted:
                raise ConfigurationError(
                    f"{name_of(spec)}: where: {dict(where)} holds for no trial of this run; "
                    "`switchbench plan` lists them"
                )
            self._clauses.append(_Seen(clause, wanted))

    def add(self, result: PhaseResult) -> None:
        """Take one measured phase."""
        for seen in self._clauses:
            if (result.key.trial, result.key.repeat) in seen.wanted:
                seen.add(result)

    def add_plan(self, trial: TrialKey, plan: PlanEntry, entries: Sequence[PhaseEntry]) -> None:
        """Take the entry of a whole plan, with its phases'."""
        for seen in self._clauses:
            if seen.is_of_plans and trial in seen.wanted:
                seen.add_plan(plan, entries)

    def verdicts(
        self, unsure: Mapping[TrialKey, str], not_needed: set[TrialKey]
    ) -> list[ClauseEntry]:
        """Return what the summary's `expectations` says, after the last phase.

        `unsure`: trials whose mean over the repeats is not sure enough, and why. `not_needed`:
        repeats that were not run because it was.
        """
        return [seen.verdict(unsure, not_needed) for seen in self._clauses]


def value_at(entry: Mapping[str, Any], place: str) -> float | None:
    """Return what stands at a place as `throughput.mean` in an entry of the summary."""
    found: Any = entry
    for name in place.split("."):
        found = None if found is None else found[name]
    known: float | None = found
    return known


def stated(spec: Spec) -> StatedClause:
    """Return what the summary repeats of a clause."""
    return cast("StatedClause", {key: spec.get(key) for key in StatedClause.__annotations__})


def percent_of(margin: float | None, limit: float) -> float | None:
    """Return the margin in percent of the limit."""
    return None if margin is None or not limit else 100.0 * margin / abs(limit)
