# SPDX-License-Identifier: BSD-3-Clause
"""HPCC's network measures under the names of its hpccoutf.txt (doc/how-to/hpcc-imb.md).

As bench_lat_bw of HPCC 1.5 computes them: of a pair the shortest of its measurements; of a ring the
greatest time of all ranks, in its best measurement by its better method; geometric means over the
random rings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

from ..base.model import Part, Trial
from ..config.hpcc import BANDWIDTH, LATENCY, METHODS, SIZES
from ..records.document.steps import (
    Hpcc,
    HpccMeasure,
    HpccOutputs,
    HpccPair,
    HpccRing,
    HpccSetting,
)
from .rank_times import MeasuredExecutions

NATURAL = 0  # the first phase of a plan of rings
_SENDS = 2  # of a rank in one repetition on a ring: HPCC's time is of one of them
_WAYS = 2  # of a ping-pong
TOLD_APART = ("hpcc", "method", "pair", "among")  # parameters that differ within a suite


def hpcc_entries(found: Iterable[MeasuredExecutions]) -> Iterator[Hpcc]:
    """One entry for each run of the suite: a test in a network with so many ranks."""
    suites: dict[str, list[MeasuredExecutions]] = {}
    for one in found:
        suites.setdefault(suite_of(one.trial, one.part), []).append(one)
    for some in suites.values():
        yield _entry(some)


def suite_of(trial: Trial, part: Part) -> str:
    """What all trials of one run of the suite have in common."""
    return json.dumps([trial.test, about_suite(trial, part)], sort_keys=True)


def about_suite(trial: Trial, part: Part) -> HpccSetting:
    """What one run of the suite is of; of its ranks a pair are two."""
    return {
        "transport": trial.transport,
        "network": part.network,
        "ranks": int(trial.parameters.get("among", len(part.ranks))),
        "parameters": {n: v for n, v in trial.parameters.items() if n not in TOLD_APART},
    }


def _entry(some: Sequence[MeasuredExecutions]) -> Hpcc:
    first = some[0]
    rings = {measure: _rings(some, measure) for measure in SIZES}
    pairs = {measure: _pairs(some, measure) for measure in SIZES}
    return {
        "test": first.trial.test,
        **about_suite(first.trial, first.part),
        "outputs": _outputs(rings, pairs),
        "rings": [ring for measure in SIZES for ring in rings[measure]],
        "pairs": [pair for measure in SIZES for pair in pairs[measure]],
    }


# --- rings ---------------------------------------------------------------------------------------


def _rings(some: Iterable[MeasuredExecutions], measure: HpccMeasure) -> list[HpccRing]:
    """Each ring's time of one send, and by method; null where it was not measured whole."""
    measured = [one for one in some if one.trial.parameters["hpcc"] == measure]
    plans = [one for one in measured if "method" in one.trial.parameters]
    phases = max((one.trial.phases for one in plans), default=0)
    return [_ring(plans, measure, phase) for phase in range(phases)]


def _ring(plans: Sequence[MeasuredExecutions], measure: HpccMeasure, phase: int) -> HpccRing:
    times: dict[int, dict[str, dict[str, float]]] = {}  # by measurement, method and rank
    for one in plans:
        ranks = one.ranks(phase)
        known = {name: rank.mean_us / _SENDS for name, rank in ranks.items() if rank.mean_us}
        if len(known) == len(one.part.ranks):
            methods = times.setdefault(one.trial.repeat, {})
            methods[one.trial.parameters["method"]] = known
    whole = [methods for methods in times.values() if len(methods) == len(METHODS)]
    alone = {
        method: _least(max(methods[method].values()) for methods in whole) for method in METHODS
    }
    better = min(METHODS, key=lambda method: alone[method] or math.inf)
    return {
        "measure": measure,
        "ring": phase,
        "natural": phase == NATURAL,
        "time_us": _least(_slowest(methods.values()) for methods in whole),
        "sendrecv_us": alone["sendrecv"],
        "nonblocking_us": alone["nonblocking"],
        "better": better if whole else None,
        "measurements": len(whole),
    }


def _slowest(methods: Iterable[dict[str, float]]) -> float:
    """Over ranks, of each rank's better method."""
    best: dict[str, float] = {}
    for ranks in methods:
        for name, time in ranks.items():
            best[name] = min(time, best.get(name, math.inf))
    return max(best.values())


# --- ping-pong -----------------------------------------------------------------------------------


def _pairs(some: Iterable[MeasuredExecutions], measure: HpccMeasure) -> list[HpccPair]:
    """Each pair's shortest time of one way, as its client has it."""
    return [
        {
            "measure": measure,
            "src": one.part.ranks[0].name,
            "dst": one.part.ranks[1].name,
            "time_us": _client_us(one),
        }
        for one in some
        if one.trial.parameters["hpcc"] == measure and "pair" in one.trial.parameters
    ]


def _client_us(one: MeasuredExecutions) -> float | None:
    client = one.ranks(0).get(one.part.ranks[0].name)
    min_ns = client.times.min_ns if client else None
    return None if min_ns is None else min_ns / 1e3 / _WAYS


# --- HPCC's names --------------------------------------------------------------------------------


def _outputs(
    rings: Mapping[HpccMeasure, list[HpccRing]], pairs: Mapping[HpccMeasure, list[HpccPair]]
) -> HpccOutputs:
    latencies = [pair["time_us"] for pair in pairs[LATENCY]]
    rates = [_gbytes(pair["time_us"]) for pair in pairs[BANDWIDTH]]
    outputs: dict[str, float | None] = {}
    for word, choose in (("Min", min), ("Avg", _mean), ("Max", max)):
        outputs[f"{word}PingPongLatency_usec"] = _of_all(choose, latencies)
        outputs[f"{word}PingPongBandwidth_GBytes"] = _of_all(choose, rates)
    for word, natural in (("Naturally", True), ("Randomly", False)):
        times = {
            measure: _of_all(
                _geometric, [ring["time_us"] for ring in some if ring["natural"] == natural]
            )
            for measure, some in rings.items()
        }
        outputs[f"{word}OrderedRingLatency_usec"] = times[LATENCY]
        outputs[f"{word}OrderedRingBandwidth_GBytes"] = _gbytes(times[BANDWIDTH])
    return cast("HpccOutputs", outputs)


def _of_all(
    choose: Callable[[Sequence[float]], float], values: Sequence[float | None]
) -> float | None:
    """Null where one of them is not known: HPCC leaves none out."""
    known = [value for value in values if value is not None]
    return choose(known) if known and len(known) == len(values) else None


def _gbytes(time_us: float | None) -> float | None:
    """GB/s (10^9) of a process: one message by the time of one send."""
    return None if not time_us else SIZES[BANDWIDTH] / time_us / 1e3


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _geometric(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _least(values: Iterable[float]) -> float | None:
    return min(values, default=None)
