# SPDX-License-Identifier: BSD-3-Clause
"""Messages there and back: latency and bandwidth against size, and which path to use for which.

Times are half the round trip, as the papers give them. doc/reference/messages.md has the formulas.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from ..base.model import PINGPONG, Part, Trial
from ..records.document.series import (
    Crossing,
    CrossingRange,
    Curve,
    CurvePoint,
    CurveSetting,
    Peak,
    ScatterTimes,
)
from ..records.flows import Pair, Times
from ..records.latency import Histogram, merged
from ..records.rows import PhaseKey

Flows = dict[tuple[str, str], Histogram]  # by source and destination

ALIKE = 0.05  # paths whose times differ by less are alike


def is_sweep(trial: Trial) -> bool:
    """Return whether a trial gives a point of a curve: one size, there and back."""
    return trial.traffic == "pingpong" and "scatter" not in trial.parameters


class SweepTable:
    """Takes the times of ping-pong, phase by phase, and says what they amount to."""

    def __init__(self, trials: Mapping[tuple[int, int], Trial]) -> None:
        """`trials` by id and repeat."""
        self._trials = trials
        self._flows: dict[tuple[int, int, str], Flows] = {}

    def add(self, key: PhaseKey, times: Mapping[Pair, Times]) -> None:
        """Take the times of one phase's flows by kind; other kinds are not its own."""
        for pair, kinds in times.items():
            if PINGPONG in kinds:
                flows = self._flows.setdefault(key[:3], {})
                flows.setdefault(pair, Histogram()).merge(kinds[PINGPONG])

    def forget(self, trial: tuple[int, int]) -> None:
        """Drop the times of a trial (id, repeat)."""
        self._flows = {key: flows for key, flows in self._flows.items() if key[:2] != trial}

    def lost(self, entry: ScatterTimes) -> int | None:
        """Messages of one trial's entry that did not come back; None: that is not known."""
        key = (entry["trial"], entry["repeat"], entry["network"])
        return merged(self._flows.get(key, {}).values()).lost

    def curves(self) -> Iterator[Curve]:
        """Yield one of each setting, its points by size."""
        found: dict[str, tuple[CurveSetting, dict[int, list[Flows]]]] = {}
        for (trial_id, repeat, network), flows in sorted(self._flows.items()):
            trial = self._trials[trial_id, repeat]
            if not is_sweep(trial):
                continue
            part = next(part for part in trial.parts if part.network == network)
            said = about(trial, part)
            _, sizes = found.setdefault(json.dumps(said, sort_keys=True), (said, {}))
            sizes.setdefault(trial.sizes[0], []).append(flows)
        for said, sizes in found.values():
            points = [_point(size, repeats) for size, repeats in sorted(sizes.items())]
            yield {**said, "points": points, **peak(points)}


def about(trial: Trial, part: Part) -> CurveSetting:
    """Return what tells a curve from others."""
    return {
        "transport": trial.transport,
        "network": part.network,
        "ranks": len(part.ranks),
        "pattern": trial.pattern["name"],
        "parameters": dict(trial.parameters),
    }


def _point(size: int, repeats: Sequence[Flows]) -> CurvePoint:
    """Return one size: all flows and repeats together, and the slowest flow."""
    flows: Flows = {}
    for repeat in repeats:
        for pair, times in repeat.items():
            flows.setdefault(pair, Histogram()).merge(times)
    whole = merged(flows.values())
    known = {pair: times.mean_ns for pair, times in flows.items() if times.mean_ns is not None}
    slowest = max(known, key=lambda pair: known[pair] or 0.0, default=None)
    return {
        "size": size,
        "round_trips": whole.count,
        "lost": whole.lost,
        "flows": len(flows),
        "latency_us": {
            "min": half_us(whole.min_ns),
            "mean": half_us(whole.mean_ns),
            "p50": half_us(whole.quantile_ns(0.5)),
            "p99": half_us(whole.quantile_ns(0.99)),
            "max": half_us(whole.max_ns),
        },
        "bandwidth_mbps": _bandwidth(size, whole.mean_ns),
        "slowest": None
        if slowest is None
        else {
            "src": slowest[0],
            "dst": slowest[1],
            "mean_us": half_us(known[slowest]),
            "bandwidth_mbps": _bandwidth(size, known[slowest]),
        },
    }


def half_us(ns: float | None) -> float | None:
    """Half a round trip, in microseconds."""
    return None if ns is None else ns / 2000


def _bandwidth(size: int, mean_ns: float | None) -> float | None:
    """Mbit/s: the size by half the mean round trip."""
    return None if not mean_ns else 8 * size / (mean_ns / 2000)


def peak(points: Sequence[CurvePoint]) -> Peak:
    """Return the largest bandwidth of a curve, and the sizes that reach half and 90 % of it."""
    known = [(p["size"], p["bandwidth_mbps"]) for p in points if p["bandwidth_mbps"] is not None]
    size, most = max(known, key=lambda pair: pair[1], default=(None, None))
    return {
        "peak_mbps": most,
        "peak_size": size,
        # It may be higher still beyond the last size.
        "peak_at_end": bool(known) and size == known[-1][0],
        "size_at_half_peak": None if most is None else reached(known, most / 2),
        "size_at_90_percent_peak": None if most is None else reached(known, 0.9 * most),
    }


def reached(points: Sequence[tuple[int, float]], wanted: float) -> float | None:
    """Return the first size that has the bandwidth, between two points on a line in logarithms."""
    before: tuple[int, float] | None = None
    for size, rate in points:
        if rate >= wanted:
            if before is None:
                return float(size)
            share = math.log(wanted / before[1]) / math.log(rate / before[1])
            return float(before[0] * (size / before[0]) ** share)
        before = (size, rate)
    return None


# --- two paths side by side --------------------------------------------------------------------


def path_of(curve: CurveSetting) -> str:
    """Return what one chooses between: a transport in a network."""
    return f"{curve['transport']} in {curve['network']}"


def crossovers(curves: Sequence[Curve]) -> Iterator[Crossing]:
    """For each two paths with the same matrix: which is the faster, and where that changes."""
    for one, other in combinations(curves, 2):
        if matrix_of(one) != matrix_of(other) or path_of(one) == path_of(other):
            continue
        ranges = _ranges(one, other)
        if ranges:
            yield {
                "paths": [path_of(one), path_of(other)],
                "ranks": one["ranks"],
                "pattern": one["pattern"],
                "parameters": one["parameters"],
                "ranges": ranges,
            }


def matrix_of(curve: CurveSetting) -> str:
    """Equal for curves that can be compared."""
    return json.dumps([curve["ranks"], curve["pattern"], curve["parameters"]], sort_keys=True)


def _ranges(one: Curve, other: Curve) -> list[CrossingRange]:
    """From size to size: which path to use; null where they are alike."""
    times = [
        {p["size"]: p["latency_us"]["mean"] or 0.0 for p in curve["points"]}
        for curve in (one, other)
    ]
    ratios = [
        (size, math.log(times[1][size] / times[0][size]))
        for size in sorted(times[0].keys() & times[1].keys())
        if times[0][size] and times[1][size]
    ]
    found: list[CrossingRange] = []
    within: dict[int, float] = {}  # where they cross while they are alike, by range
    for place, (size, ratio) in enumerate(ratios):
        use = None if abs(ratio) < math.log1p(ALIKE) else path_of(one if ratio > 0 else other)
        crossed = _crossed(ratios[place - 1], (size, ratio)) if place else None
        if found and found[-1]["use"] == use:
            found[-1]["to"] = size
            if crossed:
                within.setdefault(len(found) - 1, crossed)
            continue
        found.append({"use": use, "from": size, "to": size, "crossover_size": crossed})
    # Alike curves cross by chance; between two sizes where different ones are better they must.
    for place, crossed in within.items():
        around = {part["use"] for part in found[max(0, place - 1) : place + 2]} - {None}
        if len(around) == 2:
            found[place]["crossover_size"] = found[place]["crossover_size"] or crossed
    return found


def _crossed(before: tuple[int, float], after: tuple[int, float]) -> float | None:
    """Return where two curves cross between two sizes, if they do."""
    if before[1] * after[1] >= 0:
        return None
    share = before[1] / (before[1] - after[1])
    return float(before[0] * (after[0] / before[0]) ** share)
