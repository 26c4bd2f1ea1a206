# SPDX-License-Identifier: BSD-3-Clause
"""Results of several trials: curves, computation, schedules, transports.

Times of ping-pong are half the round trip, as in the papers. doc/reference/messages.md and
measures.md have the formulas.

Transports are compared by payload, on the same ports, at equal message size. A dpdk frame is a
message of its own payload; if none of equal size was measured, the largest frames are compared, and
the entry says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter, itemgetter

from ..base.model import PERCENTILES, PINGPONG, Repeats, Trial
from ..base.transports import BASELINES
from ..records.rows import Floats, Histogram, NameIndex, Pair, PhaseKey, PhaseRows, Times, merged
from ..records.schema import Row
from ..records.summary_form import Entry, PlanEntry, by, filled
from . import measures as m
from .statistics import interval

Flows = dict[tuple[str, str], Histogram]  # by source and destination


class SweepTable:
    """Gatherer of ping-pong times, phase by phase, for curves by message size."""

    def __init__(self, trials: Mapping[tuple[int, int], Trial]) -> None:
        """Make a gatherer without any times; `trials`: by id and repeat."""
        self._trials = trials
        self._flows: dict[tuple[int, int, str], Flows] = {}

    def add(self, key: PhaseKey, times: Mapping[Pair, Times]) -> None:
        """Add the ping-pong times of one phase's flows; ignore other kinds of times."""
        for pair, kinds in times.items():
            if PINGPONG in kinds:
                flows = self._flows.setdefault(key[:3], {})
                flows.setdefault(pair, Histogram()).merge(kinds[PINGPONG])

    def curves(self) -> Iterator[Entry]:
        """Yield a curve for each setting, with points by size."""
        found: dict[str, tuple[Entry, dict[int, Flows]]] = {}
        for (trial_id, repeat, network), flows in sorted(self._flows.items()):
            trial = self._trials[trial_id, repeat]
            setting = about(trial, network)
            _, sizes = found.setdefault(json.dumps(setting, sort_keys=True), (setting, {}))
            together = sizes.setdefault(trial.sizes[0], {})
            for pair, times in flows.items():
                together.setdefault(pair, Histogram()).merge(times)
        for setting, sizes in found.values():
            points = [_point(size, flows) for size, flows in sorted(sizes.items())]
            yield {**setting, "points": points}


def about(trial: Trial, network: str) -> Entry:
    """Return the setting that distinguishes a curve from others."""
    return {
        "transport": trial.transport,
        "network": network,
        "ranks": next(len(part.ranks) for part in trial.parts if part.network == network),
        "pattern": trial.pattern["name"],
        "parameters": dict(trial.parameters),
    }


def _point(size: int, flows: Flows) -> Entry:
    """Return the point of one size: over all flows and repeats, and the slowest flow."""
    whole = merged(flows.values())
    known = [(times.mean_ns, pair) for pair, times in flows.items() if times.mean_ns is not None]
    mean_ns, slowest = max(known, key=itemgetter(0), default=(None, ("", "")))
    figures = {"min": whole.min_ns, "mean": whole.mean_ns, "p50": whole.quantile_ns(0.5),
               "p99": whole.quantile_ns(0.99), "max": whole.max_ns}  # fmt: skip
    slow = {"mean_us": half_us(mean_ns), "bandwidth_mbps": m.ratio(8 * size, half_us(mean_ns))}
    return {
        "size": size,
        "round_trips": whole.count,
        "lost": whole.lost,
        "flows": len(flows),
        "latency_us": {name: half_us(ns) for name, ns in figures.items()},
        "bandwidth_mbps": m.ratio(8 * size, half_us(whole.mean_ns)),
        "slowest": slow | {"src": slowest[0], "dst": slowest[1]} if known else None,
    }


def half_us(ns: float | None) -> float | None:
    """Return half a round trip in microseconds."""
    return None if ns is None else ns / 2000


# --- dependent steps -----------------------------------------------------------------------------

US = 1e6  # microseconds in a second


@dataclass
class MeasuredExecutions:
    """Repetitions of one trial in one network: rows of `histograms` of its ranks, by phase."""

    trial: Trial
    network: str
    phases: list[list[Row]] = field(default_factory=list)
    rates_mbps: list[float | None] = field(default_factory=list)  # of receiving ports, by phase
    all_timed: bool = True  # all ranks of these phases timed repetitions

    @property
    def ranks(self) -> list[Row]:
        """Rows of all ranks in all phases."""
        return [row for rows in self.phases for row in rows]

    @property
    def about(self) -> Entry:
        """Setting that distinguishes this trial from others."""
        return about(self.trial, self.network)

    @property
    def iterations(self) -> int:
        """Iterations of the application kernel that the trial stands for; 0 for none."""
        return self.trial.steps.iterations or 0 if self.trial.steps else 0

    @property
    def whole(self) -> bool:
        """Return whether all participating ranks timed repetitions in all phases."""
        return self.all_timed and len(self.phases) == self.trial.phases

    def over_ranks(self, choose: Callable[[Iterable[float | None]], float | None]) -> float | None:
        """Return the mean over phases of a figure of the ranks' means; None if incomplete."""
        if not self.whole:
            return None
        return m.mean(choose(map(_mean_us, rows)) for rows in self.phases)


def _mean_us(row: Row) -> float | None:
    """Return the mean time of a rank's repetition."""
    repetitions = row.get("repetitions")
    return row["sum_ns"] / repetitions / 1e3 if repetitions else None


class ExecutionTable:
    """Collector of repetition times, phase by phase, for the summary's `steps`.

    Each rank times its own repetitions, from a barrier until its last step is complete. Formulas
    are in doc/reference/measures.md, "Dependent steps".
    """

    def __init__(self) -> None:
        """Begin without any times."""
        self._measured: dict[tuple[int, int, str], MeasuredExecutions] = {}

    def add(self, trial: Trial, network: str, phase: PhaseRows) -> None:
        """Add one phase: the ranks' times, and how fast data reached the ports.

        Ranks that went through repetitions without any message are left out: of a ping-pong among
        many only two do something.
        """
        one, rows, flows = self._of(trial, network), phase.executions, phase.flows()
        flows = flows.select(~flows.idle)
        busy = {end for pair in flows.pairs for end in pair}
        one.phases.append([row for row in rows if row["src"] in busy or not row["count"]] or rows)
        one.rates_mbps.append(port_rate_mbps(flows.ends("dst"), m.payload_bps(flows)))
        one.all_timed &= len(rows) == one.about["ranks"] and all(row["count"] for row in rows)

    def average_us(self, trial: Trial, network: str) -> float | None:
        """Return the value of one repeat for the mean over repeats, in µs."""
        return self._of(trial, network).over_ranks(m.mean)

    def summary(self) -> Entry:
        """Return the summary's `steps`."""
        every = self._measured.values()
        place = attrgetter("trial.point", "network")
        kernels = by((one for one in every if one.iterations), place).values()
        others = (one for one in every if not one.iterations)
        functions = by(others, lambda one: json.dumps(one.about, sort_keys=True)).values()
        entries = [_kernel(repeats) for repeats in kernels]
        shown = []
        for some in functions:
            sizes = by(some, lambda one: one.trial.sizes[0])
            points = [_function_point(*point) for point in sorted(sizes.items())]
            shown.append({**some[0].about, "points": points})
        return {"functions": shown, "kernels": entries}

    def _of(self, trial: Trial, network: str) -> MeasuredExecutions:
        key = (trial.id, trial.repeat, network)
        return self._measured.setdefault(key, MeasuredExecutions(trial, network))


def port_rate_mbps(ports: NameIndex[str], rates_bps: Floats) -> float | None:
    """Return the mean rate over the ports that received data, in Mbit/s.

    `rates_bps` are flows' rates, with the flows' destinations in `ports`.
    """
    totals = [one for one in m.sum_by_port(ports, rates_bps).values() if one is None or one > 0]
    mean = None if None in totals else m.mean(totals)
    return None if mean is None else mean / m.MEGA


def _function_point(size: int, repeats: Sequence[MeasuredExecutions]) -> Entry:
    """Return the point of one size, over all phases and repeats."""
    first = repeats[0].trial
    ranks = [row for one in repeats for row in one.ranks]
    batches = merged(map(Histogram.of_row, ranks))
    averages = [one.over_ranks(m.mean) for one in repeats]
    batch: dict[str, float | None] = {"min": batches.min_ns, "max": batches.max_ns}
    batch |= {name: batches.quantile_ns(PERCENTILES[name]) for name in ("p50", "p99")}
    return {
        "size": size,
        "trials": [one.trial.id for one in repeats],
        "repetitions": max((row.get("repetitions", 0) for row in ranks), default=0),
        "batch": first.schedule.batch if first.schedule else 1,
        "by_repeat_us": averages,
        "repetition_us": filled(
            "RepetitionTimes",
            {name: None if ns is None else ns / 1e3 for name, ns in batch.items()},
            mean=m.mean(averages),
            slowest_rank=m.mean(one.over_ranks(m.greatest) for one in repeats),
        ),
        "ci_us": _sure(averages, first.repeats),
        "port_mbps": m.mean(rate for one in repeats for rate in one.rates_mbps),
        "verified": m.total_int(row.get("verified") for row in ranks),
    }


def _sure(values: Sequence[float | None], asked: Repeats, scale: float = 1.0) -> Entry | None:
    """Return the confidence interval of the mean over repeats, times `scale`.

    None with too few repeats, or if one was not measured completely.
    """
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    found = interval(known, asked.confidence, chosen=asked.width is not None)
    return None if found is None else {"low": found.ci_low * scale, "high": found.ci_high * scale}


def _kernel(repeats: Sequence[MeasuredExecutions]) -> Entry:
    first = repeats[0]
    times = [one.over_ranks(m.greatest) for one in repeats]
    mean = m.mean(times)
    whole = [None if us is None else first.iterations * us / US for us in (mean, *times)]
    return {
        **first.about,
        "trials": [one.trial.id for one in repeats],
        "repetitions": max(
            (r.get("repetitions", 0) for one in repeats for r in one.ranks), default=0
        ),
        "iterations": first.iterations,
        "iteration_us": mean,
        "total_s": whole[0],
        "by_repeat_s": whole[1:],
        "ci_s": _sure(times, first.trial.repeats, first.iterations / US),
        "port_mbps": m.mean(rate for one in repeats for rate in one.rates_mbps),
    }


# --- transports side by side ----------------------------------------------------------------------

_TRANSPORT = attrgetter("transport")
NOT_IN_TURN = "the transports did not take turns repeat by repeat"


@dataclass
class TransportSeries:
    """Plans of one transport at one setting, one for each repeat."""

    transport: str
    options: Entry  # swept options of the transport
    plans: list[PlanEntry] = field(default_factory=list)

    @property
    def load(self) -> str:
        """Key of the requested load."""
        return json.dumps(self.plans[0]["load"], sort_keys=True)

    @property
    def asked(self) -> float:
        """Requested load as a number to sort by: percent of line where known."""
        share = self.plans[0]["intended_load"]
        return float(next(iter(self.plans[0]["load"].values())) if share is None else share)

    @property
    def message_bytes(self) -> int | None:
        """Payload bytes of a message or frame; None for a mixture, or without any delivery."""
        plan = self.plans[0]
        if plan["size_unit"] == "message":
            return plan["size"] if isinstance(plan["size"], int) else None
        frames = m.total_int(plan["delivered_frames"] for plan in self.plans)
        payload = m.total_int(plan["delivered_bytes"] for plan in self.plans)
        if isinstance(plan["size"], list) or not frames or payload is None:
            return None
        return round(payload / frames)

    @property
    def rate(self) -> float | None:
        """Mean payload rate of a flow over the repeats, Mbit/s."""
        return m.mean(plan["throughput"]["mean"] for plan in self.plans)

    @property
    def cpu_per_gb(self) -> float | None:
        """CPU seconds of all machines per GB of payload, of all repeats."""
        seconds = m.total(plan["cpu_s"] for plan in self.plans)
        delivered = m.total(plan["delivered_bytes"] for plan in self.plans)
        return m.ratio(seconds, delivered, m.GIGA)


def compare(trials: Mapping[tuple[int, int], Trial], plans: Sequence[PlanEntry]) -> list[Entry]:
    """Return an entry for each matrix and message size that at least two transports carried.

    `trials` are by id and repeat.
    """

    def matrix(plan: PlanEntry) -> str:
        """Return matrix and end of a trial, equal for comparable trials."""
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
    """Yield the plans of one matrix, by transport and setting."""
    found: dict[str, TransportSeries] = {}
    for plan in plans:
        own = {key: value for key, value in plan["parameters"].items() if "." in key}
        setting = json.dumps([plan["transport"], own, plan["size"], plan["load"]], sort_keys=True)
        found.setdefault(setting, TransportSeries(plan["transport"], own)).plans.append(plan)
    yield from found.values()


def rows_of(every: list[TransportSeries]) -> Iterator[list[TransportSeries]]:
    """Yield the settings to compare: for each message size and load, those of each transport."""
    messages = [one for one in every if one.plans[0]["size_unit"] == "message"]
    frames = [one for one in every if one.plans[0]["size_unit"] == "frame"]
    for size in sorted({one.message_bytes for one in messages if one.message_bytes}):
        row = [one for one in messages if one.message_bytes == size]
        for own in by(frames, _TRANSPORT).values():
            # Frames with this payload, else the largest: they cost the least per byte.
            known = {one.message_bytes for one in own if one.message_bytes}
            chosen = size if size in known else max(known, default=None)
            row += [one for one in own if chosen is not None and one.message_bytes == chosen]
        transports = by(row, _TRANSPORT)
        if len(transports) < 2:
            continue
        for load in dict.fromkeys(one.load for one in transports[_baseline_name(row)]):
            beside = []
            for own in transports.values():  # a transport without the load has its greatest load
                most = max(one.asked for one in own)
                same = [one for one in own if one.load == load]
                beside += same or [one for one in own if one.asked == most]
            yield sorted(beside, key=lambda one: BASELINES.index(one.transport))


def _baseline_name(row: Iterable[TransportSeries]) -> str:
    names = {one.transport for one in row}
    return next(name for name in BASELINES if name in names)


def _comparison(row: list[TransportSeries]) -> Entry:
    name = _baseline_name(row)
    # Of several settings of the baseline the best one is what the others have to beat.
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
    """Return whether each repeat of all plans ended before the next repeat of any.

    None with only one repeat.
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
