# SPDX-License-Identifier: BSD-3-Clause
"""Clauses of a contract: `expect:` judged while the records come.

A clause reads: `where` these trials, `measure` this, `over` each flow | port | phase | plan or
the whole run, `require` a comparison. Its verdict is accepted, refused or inconclusive: the last
where a value was not observed, where a trial is missing, or where a host and not the network may
have been the limit.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import ConfigurationError
from ..model import Load, Trial
from .latency import FIGURES, KINDS, figure
from .measures import MEGA, PortShares, greatest, least, lost_frames, payload_bps, total
from .records import Flow, PhaseKey

ACCEPTED = "accepted"
REFUSED = "refused"
INCONCLUSIVE = "inconclusive"

OVERS = ("flow", "port", "phase", "plan", "run")

Reducer = Callable[[Iterable[float | None]], float | None]


class Sample(NamedTuple):
    """One value to judge and what it is of."""

    label: str
    value: float | None


@dataclass(frozen=True)
class PhaseResult:
    """One phase in one network, as the clauses see it."""

    key: PhaseKey
    entry: Mapping[str, Any]  # its entry in the summary's `trials`
    flows: list[Flow]
    shares: PortShares

    @property
    def label(self) -> str:
        """What people are shown."""
        return f"trial {self.key.trial} {self.entry['pattern']} phase {self.key.phase}"


@dataclass(frozen=True)
class Measure:
    """A name of doc/measures.md: how it is read from a phase, and how phases are put together."""

    phase: tuple[str, ...]  # where it stands in a phase's entry
    reduce: Reducer  # several phases to one value
    flow: Callable[[Flow], float | None] | None = None
    port: Callable[[PhaseResult], dict[str, float | None]] | None = None
    of_network: bool = True  # worthless where a host was the limit

    @property
    def of_repeats(self) -> bool:
        """Whether it is the rate whose mean over the repeats has to be sure."""
        return self.phase[0] == "throughput"

    @property
    def overs(self) -> tuple[str, ...]:
        """Over what it can be judged."""
        missing = {"flow": self.flow is None, "port": self.port is None}
        return tuple(over for over in OVERS if not missing.get(over, False))


def _judged(name: str) -> Callable[[Flow], float | None]:
    """A count that the destination keeps of frames; tcp sees none."""

    def value(flow: Flow) -> float | None:
        side = flow.destination
        if side is None or side.whole.frames is None:
            return None
        count: int | None = getattr(side, name)
        return count

    return value


def _retransmitted(flow: Flow) -> float | None:
    return None if flow.source is None else flow.source.measures.get("retransmitted_segments")


def _throughput(flow: Flow) -> float | None:
    rate = payload_bps(flow)
    return None if rate is None else rate / MEGA


def _offered(flow: Flow) -> float | None:
    return None if flow.source is None else flow.source.whole.frames


def _delivered(flow: Flow) -> float | None:
    return None if flow.destination is None else flow.destination.whole.frames


def loss_percent(flow: Flow) -> float | None:
    """Lost frames of 100 offered."""
    lost, offered = lost_frames(flow), _offered(flow)
    return None if lost is None or not offered else 100.0 * lost / offered


def _port_shares(result: PhaseResult) -> dict[str, float | None]:
    """The lesser of what came from the port and what came to it."""
    shares: dict[str, float | None] = dict(result.shares.source)
    for port, share in result.shares.destination.items():
        shares[port] = share if shares.get(port) is None else least((shares[port], share))
    return shares


def _port_loss(result: PhaseResult) -> dict[str, float | None]:
    """Frames lost to and from the port."""
    losses: dict[str, list[float | None]] = {}
    for flow in result.flows:
        for port in (flow.src, flow.dst):
            losses.setdefault(port, []).append(lost_frames(flow))
    return {port: total(values) for port, values in losses.items()}


MEASURES: dict[str, Measure] = {
    "throughput": Measure(("throughput", "mean"), least, flow=_throughput),
    "throughput_min": Measure(("throughput", "min"), least),
    "throughput_max": Measure(("throughput", "max"), greatest),
    "throughput_min_interim": Measure(("interim", "least"), least),
    "throughput_total": Measure(("throughput", "total"), least),
    "percent_of_line": Measure(("throughput", "percent_of_line"), least, port=_port_shares),
    "least_percent_of_line": Measure(("throughput", "least_percent_of_line"), least),
    "offered_load": Measure(("offered_load",), least, of_network=False),
    "offered_frames": Measure(("offered_frames",), total, flow=_offered, of_network=False),
    "delivered_frames": Measure(("delivered_frames",), total, flow=_delivered),
    "lost_frames": Measure(("lost_frames",), total, flow=lost_frames, port=_port_loss),
    "loss_percent": Measure(("loss_percent",), greatest, flow=loss_percent),
    "duplicated_frames": Measure(("duplicated_frames",), total, flow=_judged("duplicated")),
    "reordered_frames": Measure(("reordered_frames",), total, flow=_judged("reordered")),
    "late_frames": Measure(("late_frames",), total, flow=_judged("late")),
    "corrupted_frames": Measure(("corrupted_frames",), total, flow=_judged("corrupted")),
    "misdelivered_frames": Measure(("misdelivered_frames",), total),
    "host_dropped_frames": Measure(("host_dropped_frames",), total, of_network=False),
    "pause_frames": Measure(("pause_frames",), total, of_network=False),
    "retransmitted_segments": Measure(
        ("retransmitted_segments",), total, flow=_retransmitted, of_network=False
    ),
    "retransmitted_packets": Measure(("retransmitted_packets",), total, of_network=False),
    "lost_messages": Measure(("lost_messages",), total),
    "start_skew_us": Measure(("start_skew_us",), greatest, of_network=False),
    "stop_skew_us": Measure(("stop_skew_us",), greatest, of_network=False),
    "elapsed_s": Measure(("elapsed_s",), total, of_network=False),
    "cpu_s_per_gb": Measure(("cpu_s_per_gb",), greatest, of_network=False),
}


def _time(kind: str, name: str) -> Measure:
    return Measure(
        ("latency", kind, name),
        greatest,
        flow=lambda flow: figure(kind, name, flow.times.get(kind)),
    )


def _lost_probes(flow: Flow) -> float | None:
    times = flow.times.get("round_trip")
    return None if times is None else times.lost


# round_trip_p99_us, one_way_max_us, ipdv_p99_9_us ... (doc/latency.md)
MEASURES |= {
    f"{kind}_{name}_us": _time(kind, name)
    for kind in KINDS
    for name in FIGURES
    if (kind, name) != ("ipdv", "pdv")
}
MEASURES["lost_probes"] = Measure(("latency", "round_trip", "lost"), total, flow=_lost_probes)

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_REQUIRE = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*([-+0-9.eE]+)\s*[%A-Za-z/]*\s*")
_PERCENT = re.compile(r"\s*([-+0-9.eE]+)\s*%\s*")


@dataclass
class Clause:
    """One clause and what has been seen for it so far."""

    spec: Mapping[str, Any]
    measure: Measure
    over: str
    compare: Callable[[float, float], bool]
    limit: float
    judged: int = 0
    failed: int = 0
    unknown: int = 0
    worst: Sample | None = None
    gathered: dict[str, list[float | None]] = field(default_factory=dict)
    limited: dict[str, str] = field(default_factory=dict)  # port: why its host is doubted first
    trials: set[tuple[int, int]] = field(default_factory=set)

    def add(self, result: PhaseResult) -> None:
        """Takes a phase that `where` holds for."""
        self.trials.add((result.key.trial, result.key.repeat))
        if self.measure.of_network:
            for limit in result.entry["host_limited"]:
                self.limited.setdefault(limit["port"], limit["reason"])
        for sample in self._samples(result):
            if self.over in ("flow", "phase"):
                self._judge(sample)
            else:
                self.gathered.setdefault(sample.label, []).append(sample.value)

    def verdict(
        self, wanted: set[tuple[int, int]], unsure: Mapping[tuple[int, int], str]
    ) -> dict[str, Any]:
        """The clause's entry in the summary; `wanted` are the trials that it should have seen.

        `unsure`: those whose mean over the repeats is not sure enough, and why.
        """
        for label, values in self.gathered.items():
            value = self.measure.reduce(values)
            if None in values and value is not None and self.compare(value, self.limit):
                value = None  # what is known holds, but not all is known
            self._judge(Sample(label, value))
        self.gathered = {}
        doubts = self._doubts(wanted, unsure)
        verdict = INCONCLUSIVE if doubts else REFUSED if self.failed else ACCEPTED
        names = ("id", "clause", "where", "measure", "over", "require")
        return {name: self.spec.get(name) for name in names} | {
            "verdict": verdict,
            "judged": self.judged,
            "failed": self.failed,
            "value": None if self.worst is None else self.worst.value,
            "of": None if self.worst is None else self.worst.label,
            "reason": "; ".join(doubts) or None,
        }

    def _samples(self, result: PhaseResult) -> Iterator[Sample]:
        if self.over == "flow" and self.measure.flow is not None:
            for flow in result.flows:
                label = f"{flow.src} -> {flow.dst} in {result.label}"
                yield Sample(label, self.measure.flow(flow))
            return
        if self.over == "port" and self.measure.port is not None:
            for port, share in self.measure.port(result).items():
                yield Sample(port, share)
            return
        value: Any = result.entry
        for name in self.measure.phase:
            value = None if value is None else value[name]
        labels = {"phase": result.label, "plan": result.label.rsplit(" phase", 1)[0]}
        yield Sample(labels.get(self.over, "the run"), value)

    def _judge(self, sample: Sample) -> None:
        self.judged += 1
        if sample.value is None:
            self.unknown += 1
            return
        self.failed += not self.compare(sample.value, self.limit)
        if self.worst is None or self._badness(sample.value) > self._badness(self.worst.value):
            self.worst = sample

    def _badness(self, value: float | None) -> float:
        """How far a value is on the wrong side of the limit, whichever side that is."""
        if value is None:
            return float("-inf")
        if self.compare in (operator.ge, operator.gt):
            return self.limit - value
        if self.compare in (operator.le, operator.lt):
            return value - self.limit
        return abs(value - self.limit)

    def _doubts(
        self, wanted: set[tuple[int, int]], unsure: Mapping[tuple[int, int], str]
    ) -> list[str]:
        """Why nothing can be concluded. A failure that nothing casts doubt on stays a failure."""
        doubts = []
        if self.limited:
            first, *others = sorted(self.limited)
            more = f" (and {len(others)} more ports)" if others else ""
            doubts.append(f"{first}: {self.limited[first]}{more}")
        if self.measure.of_repeats:
            doubts += sorted({unsure[key] for key in wanted if key in unsure})
        if self.failed and not doubts:
            return []
        if self.unknown:
            doubts.append(f"{self.unknown} of {self.judged} values could not be observed")
        missing = wanted - self.trials
        if missing:
            doubts.append(f"{len(missing)} of {len(wanted)} trials were not measured")
        return doubts


class Judge:
    """All clauses of a run. Refuses, before any traffic, a clause that can never be judged."""

    def __init__(self, expectations: Iterable[Mapping[str, Any]], trials: Iterable[Trial]) -> None:
        """Parses the clauses and finds the trials of each."""
        self._trials = {(trial.id, trial.repeat): trial for trial in trials}
        self._clauses: list[tuple[Clause, set[tuple[int, int]]]] = []
        for spec in expectations:
            clause = parse_clause(spec)
            where = spec.get("where") or {}
            wanted = {key for key, trial in self._trials.items() if matches(where, trial)}
            if not wanted:
                raise ConfigurationError(
                    f"{_name(spec)}: where: {dict(where)} holds for no trial of this run; "
                    "`switchbench plan` lists them"
                )
            self._clauses.append((clause, wanted))

    def add(self, result: PhaseResult) -> None:
        """Takes one measured phase."""
        for clause, wanted in self._clauses:
            if (result.key.trial, result.key.repeat) in wanted:
                clause.add(result)

    def verdicts(
        self,
        unsure: Mapping[tuple[int, int], str],
        not_needed: set[tuple[int, int]],
    ) -> list[dict[str, Any]]:
        """What the summary's `expectations` says, after the last phase.

        `unsure`: trials whose mean over the repeats is not sure enough, and why. `not_needed`:
        repeats that were not run because it was.
        """
        return [clause.verdict(wanted - not_needed, unsure) for clause, wanted in self._clauses]


def parse_clause(spec: Mapping[str, Any]) -> Clause:
    """Checks one clause; a ConfigurationError says what is wrong with it."""
    name = _name(spec)
    measure = MEASURES.get(spec.get("measure", ""))
    if measure is None:
        raise ConfigurationError(
            f"{name}: measure: {spec.get('measure')!r} is none of {', '.join(MEASURES)}"
        )
    over = spec.get("over") or "run"
    if over not in measure.overs:
        raise ConfigurationError(
            f"{name}: over: {spec['measure']} is judged over {', '.join(measure.overs)}, "
            f"not {over!r}"
        )
    match = _REQUIRE.fullmatch(str(spec.get("require", "")))
    try:
        if match is None:
            raise ValueError
        limit = float(match[2])
    except ValueError:
        raise ConfigurationError(
            f"{name}: require: {spec.get('require')!r} is not a comparison "
            f"({', '.join(_COMPARISONS)}) with a number, such as '== 0'"
        ) from None
    return Clause(spec, measure, over, _COMPARISONS[match[1]], limit)


def matches(where: Mapping[str, Any], trial: Trial) -> bool:
    """Whether a clause's `where` holds for a trial. A list holds when one of its values does."""
    facts = _facts(trial)
    for key, wanted in where.items():
        choices = wanted if isinstance(wanted, list) else [wanted]
        if not any(_same(choice, fact) for choice in choices for fact in facts.get(key, [])):
            return False
    return True


def _facts(trial: Trial) -> dict[str, list[Any]]:
    facts: dict[str, list[Any]] = {name: [value] for name, value in trial.parameters.items()}
    facts |= {
        "pattern": [trial.pattern["name"]],
        "transport": [trial.transport],
        "network": [part.network for part in trial.parts],
        "ranks": [len(part.ranks) for part in trial.parts],
        "size": list(trial.sizes),
        f"{trial.size_unit}_size": list(trial.sizes),
        "load": [_load(trial.load)],
        "traffic": [trial.traffic],
        "test": [trial.test],
        "repeat": [trial.repeat],
    }
    return facts


def _load(load: Load) -> Any:
    return load if load.percent is None else f"{load.percent}%"


def _same(wanted: Any, fact: Any) -> bool:
    if isinstance(fact, Load):
        return wanted in (fact.bps, fact.fps)
    if isinstance(wanted, str) and isinstance(fact, str):
        left, right = _PERCENT.fullmatch(wanted), _PERCENT.fullmatch(fact)
        if left and right:
            return float(left[1]) == float(right[1])
    return bool(wanted == fact) or str(wanted) == str(fact)


def _name(spec: Mapping[str, Any]) -> str:
    return f"expect {spec['id']}" if spec.get("id") else "expect"
