# SPDX-License-Identifier: BSD-3-Clause
"""What goes by steps: times of repetitions by rank, put together as IMB and we do.

Each rank times its own repetitions, from behind a barrier until its last step is complete. Formulas
are in doc/reference/measures.md, "Dependent steps"; doc/how-to/hpcc-imb.md lays them beside those
of IMB and HPCC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from ..base.model import Repeats, Trial
from ..records.document.series import (
    ConfidenceIntervalEntry,
    CurveSetting,
    Function,
    FunctionPoint,
    ImbFigures,
    KernelEntry,
    RankedPath,
    Ranking,
    Steps,
)
from ..records.flows import PhaseFlows, Places
from ..records.latency import Histogram, merged
from ..records.rows import PhaseKey
from . import measures as m
from .rank_times import MeasuredExecutions, RankTimes
from .statistics import interval
from .sweep import about, matrix_of, path_of

# IMB's MB/s: so many times the message size by its time (Intel MPI Benchmarks' user guide); of a
# ping-pong the time is half the round trip. Others have none.
IMB_FACTORS = {"pingpong": 1, "pingping": 1, "sendrecv": 2, "exchange": 4}
IMB_MEGA = 1e6


class ExecutionTable:
    """Takes the times of repetitions, phase by phase, and says what they amount to."""

    def __init__(self, trials: Mapping[tuple[int, int], Trial]) -> None:
        """`trials` by id and repeat."""
        self._trials = trials
        self._measured: dict[tuple[int, int, str], MeasuredExecutions] = {}

    def add(self, key: PhaseKey, executions: Iterable[Mapping[str, Any]]) -> None:
        """Take the ranks' times of one phase, a row of `histograms` each."""
        for row in executions:
            one = self._of(self._trials[key.trial, key.repeat], key.network)
            one.phases.setdefault(key.phase, {})[row["src"]] = RankTimes(
                row.get("repetitions", 0), row["sum_ns"], Histogram.of_row(row), row.get("verified")
            )

    def add_flows(self, trial: Trial, network: str, phase: int, flows: PhaseFlows) -> None:
        """Take all flows of one phase.

        How fast data reached the ports, and which ranks had messages.
        """
        one = self._of(trial, network)
        one.rates_mbps[phase] = port_rate_mbps(flows.ends("dst"), m.payload_bps(flows))
        busy = flows.taken(~flows.idle)
        one.leave_out_idle(phase, {end for pair in busy.pairs for end in pair})

    def forget(self, trial: tuple[int, int]) -> None:
        """Drop the times of a trial (id, repeat)."""
        self._measured = {key: one for key, one in self._measured.items() if key[:2] != trial}

    def average_us(self, trial: Trial, network: str) -> float | None:
        """Return what one repeat adds to the mean over repeats."""
        return self._of(trial, network).average_us

    def summary(self) -> Steps:
        """Return the summary's `steps`."""
        found = list(self._measured.values())
        some = [one for one in found if iterations_of(one.trial)]
        others = [one for one in found if one not in some]
        kernels = kernel_entries(some)
        return {
            "functions": list(_functions(others)),
            "kernels": kernels,
            "rankings": rankings(kernels),
        }

    def _of(self, trial: Trial, network: str) -> MeasuredExecutions:
        part = next(part for part in trial.parts if part.network == network)
        key = (trial.id, trial.repeat, network)
        return self._measured.setdefault(key, MeasuredExecutions(trial, part))


def port_rate_mbps(ports: Places[str], rates_bps: m.Floats) -> float | None:
    """Return the mean over the ports that anything was sent to, of all that reached each.

    The rates are flows', whose destinations are the ports.
    """
    sums = m.sum_by_port(ports, rates_bps).values()
    totals = [total for total in sums if total is None or total > 0]
    if None in totals or not totals:
        return None
    mean = m.mean(totals)
    return None if mean is None else mean / m.MEGA


# --- functions -----------------------------------------------------------------------------------


def _functions(found: Iterable[MeasuredExecutions]) -> Iterator[Function]:
    """Yield one entry for each function at one setting, its points by size."""
    curves: dict[str, tuple[CurveSetting, dict[int, list[MeasuredExecutions]]]] = {}
    for one in found:
        what = about(one.trial, one.part)
        _, sizes = curves.setdefault(json.dumps(what, sort_keys=True), (what, {}))
        sizes.setdefault(one.trial.sizes[0], []).append(one)
    for what, sizes in curves.values():
        yield {
            **what,
            "points": [_point(what["pattern"], size, some) for size, some in sorted(sizes.items())],
        }


def _point(pattern: str, size: int, repeats: Sequence[MeasuredExecutions]) -> FunctionPoint:
    """Return one size: all phases and repeats together."""
    ranks = [times for one in repeats for phase in one.phases.values() for times in phase.values()]
    batches = merged(times.times for times in ranks)
    averages = [one.average_us for one in repeats]
    by_repeat = [_imb(pattern, size, one) for one in repeats]
    halved = parts_of(pattern)
    t_max = m.mean(imb["t_max_us"] for imb in by_repeat)
    return {
        "size": size,
        "trials": [one.trial.id for one in repeats],
        "repetitions": max((times.repetitions for times in ranks), default=0),
        "batch": schedule.batch if (schedule := repeats[0].trial.schedule) else 1,
        "imb": {
            "t_min_us": m.mean(imb["t_min_us"] for imb in by_repeat),
            "t_avg_us": m.mean(imb["t_avg_us"] for imb in by_repeat),
            "t_max_us": t_max,
            "mbytes_s": _imb_mbytes_s(pattern, size, t_max),
        },
        "by_repeat": by_repeat,
        "repetition_us": {
            "min": _us(batches.min_ns),
            "mean": m.mean(averages),
            "p50": _us(batches.quantile_ns(0.5)),
            "p99": _us(batches.quantile_ns(0.99)),
            "max": _us(batches.max_ns),
        },
        "ci_us": _interval(averages, halved, repeats[0].trial.repeats),
        "port_mbps": m.mean(rate for one in repeats for rate in one.rates_mbps.values()),
        "verified": m.total_int(times.verified for times in ranks),
    }


def parts_of(pattern: str) -> int:
    """IMB's time of a ping-pong is of one way."""
    return 2 if pattern == "pingpong" else 1


def _imb(pattern: str, size: int, one: MeasuredExecutions) -> ImbFigures:
    """IMB's figures of one repeat; null where it was not measured whole."""
    times = _by_rank(one) if one.whole else []
    parts = parts_of(pattern)
    t_max = _share(max(times, default=None), parts)
    return {
        "t_min_us": _share(min(times, default=None), parts),
        "t_avg_us": _share(one.average_us, parts),
        "t_max_us": t_max,
        "mbytes_s": _imb_mbytes_s(pattern, size, t_max),
    }


def _by_rank(one: MeasuredExecutions) -> list[float]:
    """Return the mean of a repetition of each rank; of several phases their mean."""
    found: dict[str, list[float]] = {}
    for ranks in one.phases.values():
        for name, times in ranks.items():
            found.setdefault(name, []).append(times.mean_us or 0.0)
    return [sum(values) / len(values) for values in found.values()]


def _imb_mbytes_s(pattern: str, size: int, time_us: float | None) -> float | None:
    factor = IMB_FACTORS.get(pattern)
    if factor is None or not time_us:
        return None
    return factor * size / (time_us / 1e6) / IMB_MEGA


def _interval(
    values: Sequence[float | None], parts: int, asked: Repeats
) -> ConfidenceIntervalEntry | None:
    """Of the mean over repeats, as `_share`.

    None where there are too few, or one was not measured whole.
    """
    known = [value / parts for value in values if value is not None]
    if len(known) < len(values):
        return None
    found = interval(known, asked.confidence, chosen=asked.width is not None)
    return None if found is None else {"low": found.low, "high": found.high}


def _share(value: float | None, parts: int) -> float | None:
    return None if value is None else value / parts


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e3


US = 1e6  # in a second


def iterations_of(trial: Trial) -> int | None:
    """Of the benchmark that a trial stands for; None: it stands for none."""
    return trial.steps.iterations if trial.steps else None


def kernel_entries(found: Iterable[MeasuredExecutions]) -> list[KernelEntry]:
    """Return the summary's `kernels`."""
    points: dict[int, dict[str, list[MeasuredExecutions]]] = {}
    for one in found:
        points.setdefault(one.trial.point, {}).setdefault(one.part.network, []).append(one)
    return [_entry(repeats) for networks in points.values() for repeats in networks.values()]


def _entry(repeats: Sequence[MeasuredExecutions]) -> KernelEntry:
    first = repeats[0]
    iterations = iterations_of(first.trial) or 0
    times = [one.slowest_us for one in repeats]
    mean = m.mean(times)
    known = [time for time in times if time is not None]
    asked = first.trial.repeats
    sure = (
        interval(known, asked.confidence, chosen=asked.width is not None)
        if len(known) == len(times)
        else None
    )
    ranks = [t for one in repeats for phase in one.phases.values() for t in phase.values()]
    return {
        **about(first.trial, first.part),
        "trials": [one.trial.id for one in repeats],
        "repetitions": max((times.repetitions for times in ranks), default=0),
        "iterations": iterations,
        "iteration_us": mean,
        "total_s": _whole_s(mean, iterations),
        "by_repeat_s": [_whole_s(time, iterations) for time in times],
        "ci_s": None
        if sure is None
        else {
            "low": _whole_s(sure.low, iterations),
            "high": _whole_s(sure.high, iterations),
        },
        "port_mbps": m.mean(rate for one in repeats for rate in one.rates_mbps.values()),
    }


def _whole_s(time_us: float | None, iterations: int) -> float | None:
    return None if time_us is None else iterations * time_us / US


def rankings(entries: Iterable[KernelEntry]) -> list[Ranking]:
    """Of each problem that several paths (a transport in a network) ran: the fastest first."""
    problems: dict[str, list[tuple[float, KernelEntry]]] = {}
    for entry in entries:
        if entry["total_s"] is not None:
            problems.setdefault(matrix_of(entry), []).append((entry["total_s"], entry))
    return [
        _ranking(some)
        for some in problems.values()
        if len({path_of(entry) for _, entry in some}) > 1
    ]


def _ranking(some: Iterable[tuple[float, KernelEntry]]) -> Ranking:
    ordered = sorted(some, key=itemgetter(0))
    least, fastest = ordered[0]
    paths: list[RankedPath] = [
        {
            "path": path_of(entry),
            "total_s": total_s,
            "ratio_to_fastest": total_s / least if least else None,
        }
        for total_s, entry in ordered
    ]
    return {
        "pattern": fastest["pattern"],
        "parameters": fastest["parameters"],
        "ranks": fastest["ranks"],
        "paths": paths,
    }
