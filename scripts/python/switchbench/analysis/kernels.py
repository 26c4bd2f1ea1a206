# SPDX-License-Identifier: BSD-3-Clause
"""Application kernels: the time of the whole benchmark, and which network is the fastest for it.

One repetition is one iteration of the benchmark; its time is that of the slowest rank, and the
whole benchmark takes as many of them as it has iterations (doc/reference/patterns.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

from ..base.model import Trial
from ..records.document.steps import KernelEntry, RankedPath, Ranking
from . import measures as m
from .rank_times import MeasuredExecutions
from .statistics import interval
from .sweep import about, matrix_of, path_of

US = 1e6  # in a second


def iterations_of(trial: Trial) -> int | None:
    """Of the benchmark that a trial stands for; None: it stands for none."""
    return trial.steps.iterations if trial.steps else None


def kernel_entries(found: Iterable[MeasuredExecutions]) -> list[KernelEntry]:
    """The summary's `kernels`."""
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
