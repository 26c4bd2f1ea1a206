# SPDX-License-Identifier: BSD-3-Clause
"""Results over several trials: curves, collective operations, kernels, transports compared.

Times of ping-pong are half the round trip, as in the papers. doc/reference/messages.md and
measures.md have the formulas.

Transports are compared by payload, on the same ports, at equal message size. A DPDK frame counts as
a message of its payload. Without frames of equal payload, the largest frames are compared, and the
entry has `equal_size: false`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

from ..base.model import PERCENTILES, PINGPONG, Repeats, Trial
from ..base.transports import BASELINES
from ..records.rows import Floats, Histogram, NameIndex, Pair, PhaseKey, PhaseRows, Times, merged
from ..records.schema import Row
from ..records.summary_form import Entry, PlanEntry, by, filled
from . import measures as m
from .statistics import CONFIDENCE, interval

Flows = dict[tuple[str, str], Histogram]  # by source and destination


class SweepTable:
    """Collector of ping-pong times, phase by phase, for curves over message size."""

    def __init__(self, trials: Mapping[tuple[int, int], Trial]) -> None:
        """Create a collector without times; `trials` are by number and repeat."""
        self._trials = trials
        # by setting: the setting, and the times by message size
        self._curves: dict[str, tuple[Entry, dict[int, Flows]]] = {}

    def add(self, key: PhaseKey, times: Mapping[Pair, Times]) -> None:
        """Add the ping-pong times of one phase; ignore other kinds of times."""
        trial = self._trials[key.trial, key.repeat]
        for pair, kinds in times.items():
            if PINGPONG in kinds:
                setting = about(trial, key.network)
                name = json.dumps(setting, sort_keys=True)
                _, sizes = self._curves.setdefault(name, (setting, {}))
                flows = sizes.setdefault(trial.sizes[0], {})
                flows.setdefault(pair, Histogram()).merge(kinds[PINGPONG])

    def curves(self) -> Iterator[Entry]:
        """Yield one curve for each setting, with a point for each message size."""
        for setting, sizes in self._curves.values():
            points = [_point(size, flows) for size, flows in sorted(sizes.items())]
            yield {**setting, "points": points}


def about(trial: Trial, network: str) -> Entry:
    """Return the settings that distinguish a trial's curve from other curves."""
    return {
        "transport": trial.transport,
        "network": network,
        "ranks": next(len(part.ranks) for part in trial.parts if part.network == network),
        "pattern": trial.pattern["name"],
        "parameters": dict(trial.parameters),
    }


def _point(size: int, flows: Flows) -> Entry:
    """Return a curve's point at one message size: times of all flows, and of the slowest flow."""
    whole = merged(flows.values())
    known = [(times.mean_ns, pair) for pair, times in flows.items() if times.mean_ns is not None]
    mean_ns, slowest = max(known, key=itemgetter(0), default=(None, ("", "")))
    figures = {"min": whole.min_ns, "mean": whole.mean_ns, "p50": whole.quantile_ns(0.5),
               "p99": whole.quantile_ns(0.99), "max": whole.max_ns}  # fmt: skip
    slow_mbps = m.ratio(8 * size, half_us(mean_ns))
    slow = {"src": slowest[0], "dst": slowest[1], "bandwidth_mbps": slow_mbps}
    return {
        "size": size,
        "round_trips": whole.count,
        "lost": whole.lost,
        "flows": len(flows),
        "latency_us": {name: half_us(ns) for name, ns in figures.items()},
        "bandwidth_mbps": m.ratio(8 * size, half_us(whole.mean_ns)),
        "slowest": slow if known else None,
    }


def half_us(ns: float | None) -> float | None:
    """Return half a round-trip time in microseconds."""
    return None if ns is None else ns / 2000


# --- dependent steps -----------------------------------------------------------------------------

US = 1e6  # microseconds in a second


@dataclass
class MeasuredExecutions:
    """Times that a trial's ranks took for repetitions of a schedule, in one network, by phase."""

    trial: Trial
    network: str
    phases: list[list[Row]] = field(default_factory=list)
    rates_mbps: list[float | None] = field(default_factory=list)  # of receiving ports, by phase
    all_timed: bool = True  # true: all ranks timed repetitions in all these phases

    @property
    def about(self) -> Entry:
        """Return the settings that distinguish this trial from others."""
        return about(self.trial, self.network)

    @property
    def iterations(self) -> int:
        """Return how many iterations the trial's application kernel has; 0 if it runs no kernel."""
        return self.trial.steps.iterations or 0 if self.trial.steps else 0

    def over_ranks(self, choose: Callable[[Iterable[float | None]], float | None]) -> float | None:
        """Reduce the ranks' mean times to one time per phase; return the mean of these over phases.

        None if a rank or a phase lacks times.
        """
        if not self.all_timed or len(self.phases) != self.trial.phases:
            return None
        return m.mean(choose(map(_mean_us, rows)) for rows in self.phases)


def _mean_us(row: Row) -> float | None:
    """Return the mean time of one rank's repetition, in microseconds."""
    repetitions = row.get("repetitions")
    return row["sum_ns"] / repetitions / 1e3 if repetitions else None


class ExecutionTable:
    """Collector of the ranks' times for repetitions of schedules, for the summary's `steps`.

    Each rank times its own repetitions, from a barrier until its last step is complete. Formulas
    are in doc/reference/measures.md, "Dependent steps".
    """

    def __init__(self) -> None:
        """Create a collector without times."""
        self._measured: dict[tuple[int, int, str], MeasuredExecutions] = {}

    def add(self, trial: Trial, network: str, phase: PhaseRows) -> None:
        """Add one phase: the repetition times of ranks, and the rates at which ports received data.

        Ranks without any message are left out: in a ping-pong among many ranks, only two send and
        receive.
        """
        one, rows, flows = self._of(trial, network), phase.executions, phase.flows()
        flows = flows.select(~flows.idle)
        busy = {end for pair in flows.pairs for end in pair}
        one.phases.append([row for row in rows if row["src"] in busy or not row["count"]] or rows)
        one.rates_mbps.append(port_rate_mbps(flows.ends("dst"), m.payload_bps(flows)))
        one.all_timed &= len(rows) == one.about["ranks"] and all(row["count"] for row in rows)

    def average_us(self, trial: Trial, network: str) -> float | None:
        """Return the time of a repetition in one repeat: the mean over ranks, in microseconds."""
        return self._of(trial, network).over_ranks(m.mean)

    def summary(self) -> Entry:
        """Return the summary's `steps`: collective operations and kernels."""
        every = self._measured.values()
        place = attrgetter("trial.point", "network")
        kernels = []
        for repeats in by((one for one in every if one.iterations), place).values():
            first = repeats[0]
            times = [one.over_ranks(m.greatest) for one in repeats]
            mean = m.mean(times)
            whole = [None if us is None else first.iterations * us / US for us in (mean, *times)]
            entry = {
                **first.about,
                **_shared(repeats)[1],
                "iterations": first.iterations,
                "iteration_us": mean,
                "total_s": whole[0],
                "by_repeat_s": whole[1:],
                "ci_s": _sure(times, first.trial.repeats, first.iterations / US),
            }
            kernels.append(entry)
        others = (one for one in every if not one.iterations)
        functions = []
        for some in by(others, lambda one: json.dumps(one.about, sort_keys=True)).values():
            sizes = by(some, lambda one: one.trial.sizes[0])
            points = [_function_point(*point) for point in sorted(sizes.items())]
            functions.append({**some[0].about, "points": points})
        return {"functions": functions, "kernels": kernels}

    def _of(self, trial: Trial, network: str) -> MeasuredExecutions:
        key = (trial.id, trial.repeat, network)
        return self._measured.setdefault(key, MeasuredExecutions(trial, network))


def port_rate_mbps(ports: NameIndex[str], rates_bps: Floats) -> float | None:
    """Return the mean rate of the ports that received data, in Mbit/s.

    `rates_bps`: rates of flows; `ports`: the destinations of these flows.
    """
    totals = [one for one in m.sum_by_port(ports, rates_bps).values() if one is None or one > 0]
    mean = None if None in totals else m.mean(totals)
    return None if mean is None else mean / m.MEGA


def _shared(repeats: Sequence[MeasuredExecutions]) -> tuple[list[Row], Entry]:
    """Return the rows of all ranks, and the values of any operation's or kernel's entry."""
    ranks = [row for one in repeats for rows in one.phases for row in rows]
    return ranks, {
        "trials": [one.trial.id for one in repeats],
        "repetitions": max((row.get("repetitions", 0) for row in ranks), default=0),
        "port_mbps": m.mean(rate for one in repeats for rate in one.rates_mbps),
    }


def _function_point(size: int, repeats: Sequence[MeasuredExecutions]) -> Entry:
    """Return the results of a collective at one message size, over phases and repeats."""
    first, (ranks, shared) = repeats[0].trial, _shared(repeats)
    batches = merged(map(Histogram.of_row, ranks))
    averages = [one.over_ranks(m.mean) for one in repeats]
    batch: dict[str, float | None] = {"min": batches.min_ns, "max": batches.max_ns}
    batch |= {name: batches.quantile_ns(PERCENTILES[name]) for name in ("p50", "p99")}
    return {
        **shared,
        "size": size,
        "batch": first.schedule.batch if first.schedule else 1,
        "by_repeat_us": averages,
        "repetition_us": filled(
            "RepetitionTimes",
            {name: None if ns is None else ns / 1e3 for name, ns in batch.items()},
            mean=m.mean(averages),
            slowest_rank=m.mean(one.over_ranks(m.greatest) for one in repeats),
        ),
        "ci_us": _sure(averages, first.repeats),
        "verified": m.total_int(row.get("verified") for row in ranks),
    }


def _sure(values: Sequence[float | None], asked: Repeats, scale: float = 1.0) -> Entry | None:
    """Return the confidence interval of the mean over repeats, multiplied by `scale`.

    None for fewer than two repeats, or if a repeat is incomplete.
    """
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    found = interval(known, CONFIDENCE, chosen=asked.width is not None)
    return None if found is None else {"low": found.ci_low * scale, "high": found.ci_high * scale}


# --- transports side by side ----------------------------------------------------------------------

_TRANSPORT = attrgetter("transport")
NOT_IN_TURN = "the transports did not take turns repeat by repeat"


class TransportSeries(NamedTuple):
    """Repeats of one transport at one setting, with their mean rate and CPU time."""

    transport: str
    options: Entry  # options of the transport that the configuration varies
    plans: list[PlanEntry]
    load: str  # the intended load in a form that identifies it
    asked: float  # the intended load as a number to sort by: percent of line if known
    message_bytes: int | None  # payload of a message or frame; None for a mix, or if none arrived
    rate: float | None  # mean payload rate of a flow over the repeats, Mbit/s
    cpu_per_gb: float | None  # CPU seconds of all machines per GB of payload, over all repeats


def compare(trials: Mapping[tuple[int, int], Trial], plans: Sequence[PlanEntry]) -> list[Entry]:
    """Return the comparison of transports for each traffic matrix and message size.

    A matrix and size is left out if fewer than two transports carried it.

    `trials`: trials by number and repeat.
    """

    def matrix(plan: PlanEntry) -> str:
        """Return the settings that two trials must share to be compared."""
        trial = trials[plan["trial"], plan["repeat"]]
        parts = [[part.network, [port.name for port in part.ranks]] for part in trial.parts]
        own = [trial.pattern, parts, plan["network"], trial.seed, trial.traffic]
        return json.dumps(own, sort_keys=True)

    return [
        _comparison(row)
        for sharing in by(plans, matrix).values()
        if len({plan["transport"] for plan in sharing}) > 1
        for row in rows_of(list(matrix_series(sharing)))
    ]


def matrix_series(plans: Iterable[PlanEntry]) -> Iterator[TransportSeries]:
    """Yield the repeats of one traffic matrix, grouped by transport and setting."""

    def options(plan: PlanEntry) -> Entry:
        return {key: value for key, value in plan["parameters"].items() if "." in key}

    def setting(plan: PlanEntry) -> str:
        own = [plan["transport"], options(plan), plan["size"], plan["load"]]
        return json.dumps(own, sort_keys=True)

    for some in by(plans, setting).values():
        first, load, share = some[0], some[0]["load"], some[0]["intended_load"]
        counts = ("delivered_bytes", "delivered_frames", "cpu_s")
        payload, frames, cpu_s = (m.total(plan[key] for plan in some) for key in counts)
        size = first["size"] if first["size_unit"] == "message" else m.ratio(payload, frames)
        yield TransportSeries(
            first["transport"],
            options(first),
            some,
            json.dumps(load, sort_keys=True),
            float(next(iter(load.values())) if share is None else share),
            None if size is None or isinstance(first["size"], list) else round(size),
            m.mean(plan["throughput"]["mean"] for plan in some),
            m.ratio(cpu_s, payload, m.GIGA),
        )


def rows_of(every: list[TransportSeries]) -> Iterator[list[TransportSeries]]:
    """Yield for each message size and load the transports' series to compare with each other."""
    messages = [one for one in every if one.plans[0]["size_unit"] == "message"]
    frames = [one for one in every if one.plans[0]["size_unit"] == "frame"]
    for size in sorted({one.message_bytes for one in messages if one.message_bytes}):
        row = [one for one in messages if one.message_bytes == size]
        for own in by(frames, _TRANSPORT).values():
            # Frames with this payload, else the largest frames, which need the least CPU time per
            # byte.
            known = {one.message_bytes for one in own if one.message_bytes}
            chosen = size if size in known else max(known, default=None)
            row += [one for one in own if chosen is not None and one.message_bytes == chosen]
        transports = by(row, _TRANSPORT)
        if len(transports) < 2:
            continue
        for load in dict.fromkeys(one.load for one in transports[_baseline_name(row)]):
            beside = []
            for own in transports.values():  # without this load: the transport's highest load
                most = max(one.asked for one in own)
                same = [one for one in own if one.load == load]
                beside += same or [one for one in own if one.asked == most]
            yield sorted(beside, key=lambda one: BASELINES.index(one.transport))


def _baseline_name(row: Iterable[TransportSeries]) -> str:
    names = {one.transport for one in row}
    return next(name for name in BASELINES if name in names)


def _comparison(row: list[TransportSeries]) -> Entry:
    name = _baseline_name(row)
    # The baseline transport is compared at its fastest setting.
    base = max((one for one in row if one.transport == name), key=lambda one: one.rate or 0.0)
    first = base.plans[0]
    of_messages = (one.message_bytes for one in row if one.plans[0]["size_unit"] == "message")
    size = next(size for size in of_messages if size is not None)
    turns = alternated(plan for one in row for plan in one.plans)
    return filled(
        "ComparisonEntry",
        first,
        parameters={key: v for key, v in first["parameters"].items() if "." not in key},
        message_bytes=size,
        baseline=name,
        alternated=turns,
        reason=NOT_IN_TURN if turns is False else None,
        transports=[_transport(one, base, size) for one in row],
    )


def alternated(plans: Iterable[PlanEntry]) -> bool | None:
    """Return whether all compared trials ended a repeat before any began the next repeat.

    None if there is only one repeat.
    """
    turns = sorted(by(plans, "repeat").items())
    trials = [[plan["trial"] for plan in some] for _, some in turns]
    in_turn = [max(turn) < min(following) for turn, following in pairwise(trials)]
    return all(in_turn) if in_turn else None


def _transport(one: TransportSeries, base: TransportSeries, size: int | None) -> Entry:
    rates = [plan["throughput"]["mean"] for plan in one.plans]
    polling = {plan["polling"] for plan in one.plans}
    throughput = {"mean": one.rate, "min": m.least(rates), "max": m.greatest(rates)}
    return filled(
        "ComparedEntry",
        one.plans[0],
        options=one.options,
        message_bytes=one.message_bytes,
        equal_size=one.message_bytes == size,
        repeats=len(one.plans),
        trials=[plan["trial"] for plan in one.plans],
        throughput=filled("ComparedThroughput", throughput, layer="payload", unit="Mbit/s"),
        cpu_s_per_gb=one.cpu_per_gb,
        polling=True if True in polling else None if None in polling else False,
        ratio={
            "throughput": m.ratio(one.rate, base.rate),
            "cpu_s_per_gb": m.ratio(one.cpu_per_gb, base.cpu_per_gb),
        },
    )
