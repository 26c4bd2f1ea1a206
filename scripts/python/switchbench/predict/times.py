# SPDX-License-Identifier: BSD-3-Clause
"""How long transfers and messages should take: latency, and what a model's rates leave to them.

The rates of a model are those of all flows of a phase; once some are done the others get more, so
a phase is followed from end to end of its flows. Formulas: doc/reference/topology.md, "Single
messages".
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..analysis import measures
from ..analysis.executions import parts_of
from ..analysis.hpcc import hpcc_entries
from ..analysis.kernels import iterations_of
from ..analysis.rank_times import MeasuredExecutions, RankTimes
from ..analysis.sweep import is_sweep
from ..base import transports
from ..base.model import SCHEDULE, Part, Site, Trial
from ..base.timing import PHASE_PER_NODE_S, PHASE_S
from ..records.document.summary import SummaryDocument
from ..records.document.trials import PlanEntry
from ..records.latency import Histogram
from ..topology.fabric.routes import Ranks, Rates
from .models import MODELS, SLOW, Flows
from .parameters import Parameters, Path_
from .results import sure_summary
from .stepwise import StepCosts, StepProgram, StepTime, repetition

_ENDS = 64
"""So many ends of flows are followed one by one; what is left then keeps its rates."""
_MOST_SLOW = 1_000
"""Models that go through flows one by one are not asked again at each end of more flows."""
_AT_ONCE = 1e-6
"""Flows whose ends are so near each other, as a share of the phase, end together."""

PHASES_S = "phases, s"
PLAN_S = "plan, s"
HALF_TRIP_US = "half the round trip, µs"
T_AVG_US = "t_avg, µs"
ITERATION_US = "an iteration, µs"


@dataclass(frozen=True)
class Time:
    """One time as a model predicts it; of HPCC's suite a figure under its own name."""

    what: str
    """PHASES_S: each phase from its start to its last byte, summed. PLAN_S: with what is between
    them. HALF_TRIP_US: of a typical message. T_AVG_US: a repetition by steps, as IMB has it.
    ITERATION_US: the same of an application kernel, its slowest rank."""
    model: str
    predicted: float
    measured: float | None = None

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured."""
        return None if not self.measured else self.predicted / self.measured - 1.0


def payload_share(trial: Trial) -> float:
    """Payload of large messages by layer-1 bits: full frames of an MTU of 1500, or packets."""
    if not transports.of(trial.transport).rdma:
        # A message over dpdk has as much room in a frame as in tcp's.
        return measures.TCP_SEGMENT_PAYLOAD / (
            measures.TCP_SEGMENT_PAYLOAD + measures.TCP_SEGMENT_OVERHEAD
        )
    shape = measures.packet_shape(trial.options, {}, None)
    return shape.path_mtu_bytes / (shape.path_mtu_bytes + shape.packet_bytes)


@dataclass(frozen=True)
class Wire:
    """What a message finds on its path."""

    share: float
    """Payload by layer-1 bits."""
    parameters: Parameters

    def _fitted_bps(self, model: str) -> float | None:
        """The payload rate of a large message alone, as the model has it."""
        hockney, loggp = self.parameters.hockney, self.parameters.loggp
        if model == "hockney" and hockney.bandwidth_mbps is not None:
            return 1e6 * hockney.bandwidth_mbps.value
        if model == "loggp" and loggp.byte_ns is not None:
            return 8e9 / loggp.byte_ns.value
        return None

    def rates(self, model: str, flows: Flows) -> Rates:
        """Hockney's and LogGP's messages are no faster than those that parameters are fitted to;
        LogGP's share that rate at a port."""
        most_bps = self._fitted_bps(model)
        if most_bps is not None:
            most = np.full(len(flows.sources), most_bps / self.share)
            if model == "loggp":
                most /= np.maximum(
                    np.bincount(flows.sources)[flows.sources],
                    np.bincount(flows.destinations)[flows.destinations],
                )
            flows = flows.offering(np.minimum(flows.demand_bps, most))
        return MODELS[model](flows)

    def costs(self, model: str) -> StepCosts:
        """Beside the lines: only LogGP's ranks need time from one message to the next."""
        bits = 8.0 / self.share
        if model != "loggp":
            return StepCosts(self.parameters.hockney.latency_us.value / 1e6, bits)
        of = self.parameters.loggp
        gap_us = max(of.gap_us or 0.0, of.overhead_us or 0.0)
        return StepCosts(of.small_us.value / 1e6, bits, gap_us / 1e6)

    def ends_s(self, size: int, model: str, flows: Flows) -> Rates:
        """When each flow has the last byte of a message of this size, all begun together; LogGP's
        sender begins its messages one by one."""
        costs = self.costs(model)
        fellows = np.bincount(flows.sources)[flows.sources] - 1.0
        latency_s = np.asarray(costs.latency_s + fellows * costs.gap_s, dtype=np.float64)
        return latency_s + self._followed_s(model, flows, 8.0 * size / self.share)

    def _followed_s(self, model: str, flows: Flows, bits: float) -> Rates:
        """Without latency: whoever is left shares what those leave who are done."""
        left = np.full(len(flows.sources), bits)
        ends = np.zeros(len(left))
        going = np.arange(len(left))
        now_s = 0.0
        for number in range(_ENDS):
            rates = np.maximum(self.rates(model, flows.only(going)), 1e-3)
            rest_s = left[going] / rates
            # Alone, as Hockney has it, nobody gets more when others are done.
            last = model == "hockney" or number == _ENDS - 1
            step_s = float(rest_s.max() if last else rest_s.min())
            ending = rest_s <= step_s + _AT_ONCE * (now_s + step_s)
            ends[going[ending]] = now_s + rest_s[ending]
            left[going] -= rates * step_s
            now_s += step_s
            going = going[~ending]
            if not going.size:
                break
        return ends


# --- of a trial --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Between:
    """What a plan takes beside its phases: partners' addresses, connections, barriers."""

    once_s: float
    phase_s: float
    measured: bool
    """In the run that the parameters are from; else as `plan` reckons."""


def between(site: Site, results: Path) -> Between:
    """A line through what plans of different numbers of phases took beside them."""
    beside = [
        (plan["phases"], (plan["elapsed_s"] or 0.0) - spent)
        for plan, spent in plan_times(sure_summary(results))
        if plan["traffic"] not in ("stream", SCHEDULE)  # which end after their phases do
    ]
    by_phases: dict[int, list[float]] = defaultdict(list)
    for phases, seconds in beside:
        by_phases[phases].append(seconds)
    if len(by_phases) > 1:
        counts = sorted(by_phases)
        slope, start = np.polyfit(counts, [statistics.median(by_phases[n]) for n in counts], 1)
        if slope > 0:
            return Between(max(0.0, float(start)), float(slope), True)
    sharing = len(site.processes) if site.launch == "lab" else 0
    return Between(0.0, PHASE_S + PHASE_PER_NODE_S * sharing, False)


def plan_times(summary: SummaryDocument) -> list[tuple[PlanEntry, float]]:
    """Each plan that was timed, with the sum of its phases."""
    spent: dict[tuple[int, int, str], float] = defaultdict(float)
    for entry in summary["trials"]:
        spent[entry["trial"], entry["repeat"], entry["network"]] += entry["elapsed_s"] or 0.0
    return [
        (plan, spent[plan["trial"], plan["repeat"], plan["network"]])
        for plan in summary["plans"]
        if plan["elapsed_s"] and plan["phases"]
    ]


@dataclass(frozen=True)
class PhaseTime:
    """When the flows of one phase in one network have their last bytes."""

    last_s: float
    sum_s: float
    flows: int


@dataclass(frozen=True)
class TimePredictor:
    """Times of phases and trials, from the parameters of their paths."""

    parameters: Mapping[Path_, Parameters]
    between: Between
    flops: float = np.inf
    """Floating point operations a second of a rank that computes in its steps."""
    late_s: float = 0.0
    """By how much ranks by steps go on later, in the mean."""

    def phase(
        self, trial: Trial, network: str, flows: Flows, models: Iterable[str]
    ) -> dict[str, PhaseTime]:
        """By model; empty where time says nothing, or no parameters are of this path."""
        parameters = self.of(trial, network)
        if parameters is None or not (trial.traffic == "transfer" or is_sweep(trial)):
            return {}  # a stream ends by the clock
        size = trial.sizes[0] if is_sweep(trial) else int(trial.document["transfer_bytes"])
        wire = Wire(payload_share(trial), parameters)
        found = {}
        for model in models:
            if model in SLOW and len(flows.sources) > _MOST_SLOW:
                continue
            ends = wire.ends_s(size, model, flows)
            found[model] = PhaseTime(float(ends.max()), float(ends.sum()), len(ends))
        return found

    def steps(
        self, trial: Trial, network: str, program: StepProgram, flows: Flows, models: Iterable[str]
    ) -> dict[str, StepTime]:
        """By model, of one phase; empty where no parameters are of this path."""
        parameters = self.of(trial, network)
        if parameters is None:
            return {}
        wire = Wire(payload_share(trial), parameters)
        how = trial.document["schedule"]
        found = {}
        for model in models:

            def rates(which: Ranks, model: str = model) -> Rates:
                return wire.rates(model, flows.only(which))

            costs = replace(wire.costs(model), flops=self.flops, late_s=self.late_s)
            time = repetition(program, costs, rates, how["batch"], how["batch_warmup"])
            if time is not None:
                found[model] = time
        return found

    def of(self, trial: Trial, network: str) -> Parameters | None:
        """Of its own network, else of the only one of its transport that was measured; in each of
        its own way of sending, else of the other."""
        own = Path_(trial.transport, network, trial.traffic == SCHEDULE)
        alike = [path for path in self.parameters if path.transport == own.transport]
        networks = {path.network for path in alike}
        if network not in networks and len(networks) != 1:
            return None
        near = [path for path in alike if path.network == network] or alike
        best = sorted(near, key=lambda path: path.by_steps != own.by_steps)
        return self.parameters[best[0]] if best else None

    def whole(self, trial: Trial, phases: Sequence[tuple[int, dict[str, PhaseTime]]]) -> list[Time]:
        """Each model's time of a trial; phases by number, those of networks at the same time."""
        models = set.intersection(*(set(times) for _, times in phases)) if phases else set()
        found = []
        for model in (name for name in MODELS if name in models):
            times = [(number, times[model]) for number, times in phases]
            if is_sweep(trial):
                mean_s = sum(t.sum_s for _, t in times) / sum(t.flows for _, t in times)
                found.append(Time(HALF_TRIP_US, model, 1e6 * mean_s))
                continue
            last: dict[int, float] = defaultdict(float)
            for number, time in times:
                last[number] = max(last[number], time.last_s)
            phases_s = sum(last.values())
            found.append(Time(PHASES_S, model, phases_s))
            beside_s = self.between.once_s + len(last) * self.between.phase_s
            found.append(Time(PLAN_S, model, phases_s + beside_s))
        return found


def named(what: str, trial: Trial, network: str) -> str:
    """A time's name, with its network where networks work together."""
    if len(trial.parts) == 1:
        return what
    head, comma, unit = what.partition(",")
    return f"{head} in {network}{comma}{unit}"


def of_steps(
    trial: Trial, network: str, phases: Sequence[Mapping[str, StepTime]]
) -> Iterator[Time]:
    """Each model's time of a repetition; of several phases their mean, as the summary has it."""
    kernel = bool(iterations_of(trial))
    halves = 1 if kernel else parts_of(trial.pattern["name"])
    what = named(ITERATION_US if kernel else T_AVG_US, trial, network)
    for model in (name for name in MODELS if phases and all(name in times for times in phases)):
        times = [each[model] for each in phases]
        mean_s = statistics.fmean(t.slowest_s if kernel else t.mean_s for t in times)
        yield Time(what, model, 1e6 * mean_s / halves)


@dataclass(frozen=True)
class OfSuite:
    """One trial of HPCC's suite in one network, predicted."""

    trial: Trial
    part: Part
    phases: Sequence[Mapping[str, StepTime]]

    def measured(self, model: str) -> MeasuredExecutions:
        """As if that had been measured."""
        times = {}
        for number, by_model in enumerate(self.phases):
            ns = ((rank, round(1e9 * s)) for rank, s in by_model[model].by_rank.items())
            times[number] = {self.part.ranks[rank].name: _one_repetition(one) for rank, one in ns}
        return MeasuredExecutions(self.trial, self.part, times)


def _one_repetition(ns: int) -> RankTimes:
    return RankTimes(1, ns, Histogram(count=1, sum_ns=ns, min_ns=ns, max_ns=ns))


def of_suite(shares: Sequence[OfSuite]) -> Iterator[Time]:
    """HPCC's figures by each model that predicts all of its trials in one network."""
    first = shares[0]
    phases = [times for share in shares for times in share.phases]
    for model in (name for name in MODELS if all(name in times for times in phases)):
        (entry,) = hpcc_entries(share.measured(model) for share in shares)
        for name, value in entry["outputs"].items():
            if isinstance(value, float):
                yield Time(named(name, first.trial, first.part.network), model, value)
