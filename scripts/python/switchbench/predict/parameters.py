# SPDX-License-Identifier: BSD-3-Clause
"""What models of single messages need to know of a path, fitted to messages there and back.

Hockney 1994: t(m) = t0 + m / r_inf, and n_1/2 = t0 r_inf, the size that gets half of r_inf.
LogGP (Alexandrov et al. 1995): t(m) = o_s + (m - 1) G + L + o_r for one message; messages of one
sender follow each other no faster than one each g. Formulas, and what can't be told apart:
doc/reference/topology.md, "Single messages".
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..analysis.scatter import HUBER, NORMAL, Floats
from ..analysis.scatter import fit as fit_line
from ..analysis.statistics import t_quantile
from ..analysis.sweep import is_sweep
from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import PINGPONG, Trial
from ..config.steps import COMPOSITE
from ..records.directory import RECORDS
from ..records.latency import Histogram
from ..records.plan_file import read_plan
from ..records.reader import RecordReader
from ..records.rows import KINDS, columns_of
from .results import Number, measured_trials

LEAST_SIZES = 3
"""Two give a line that fits whatever they are."""
SMALL = 64
"""Bytes: what is no larger costs what the smallest message costs."""
LARGE = 8192
"""Bytes: from here on a message is many frames, which switches pass on one behind the other."""
_CONFIDENCE = 0.95
_POLLS = 0.9
"""A process that computes for such a share of a phase waits by looking."""

Entry = dict[str, Any]


class Path_(NamedTuple):
    """What parameters are of."""

    transport: str
    network: str
    by_steps: bool = False
    """Of messages that a plan by steps sends: its ranks wait in another way."""

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.transport} in {self.network}{', by steps' * self.by_steps}"


@dataclass(frozen=True)
class Estimate:
    """A parameter with its 95 % interval; None: an end that is not known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Hockney:
    """t(m) = latency + m / bandwidth, half a round trip."""

    latency_us: Estimate
    bandwidth_mbps: Estimate | None
    """r_inf, of payload; None: time did not grow with size."""
    half_bytes: Estimate | None
    """n_1/2."""
    residual_percent: float
    """Robust scale of (time - fit) / fit over all points."""
    residuals: dict[int, float]
    """By size, the median of (time - fit) / fit, in percent."""

    def time_us(self, size: float) -> float:
        """Of one message on an empty network."""
        slope = 8.0 / self.bandwidth_mbps.value if self.bandwidth_mbps else 0.0
        return self.latency_us.value + slope * size


@dataclass(frozen=True)
class LogGP:
    """The same times, split between hosts and network as far as the measurement allows."""

    small_us: Estimate
    """L + o_s + o_r: half the round trip of a message of one byte."""
    byte_ns: Estimate | None
    """G."""
    latency_us: float | None
    """L; None where it can't be told from the overheads."""
    overhead_us: float | None
    """o_s and o_r, taken as alike: only their sum is seen."""
    gap_us: float | None
    """g; None: not measured, or not to be had of this transport."""
    unknown: tuple[str, ...] = ()
    """Why what is None is None, a sentence each."""


@dataclass(frozen=True)
class Parameters:
    """What is known of one path."""

    transport: str
    network: str
    points: int
    hockney: Hockney
    loggp: LogGP
    by_steps: bool = False

    @property
    def path(self) -> Path_:
        """What they are of."""
        return Path_(self.transport, self.network, self.by_steps)


# --- Hockney -----------------------------------------------------------------------------------


def fit_hockney(sizes: Sequence[float], times_us: Sequence[float]) -> Hockney:
    """By least squares of relative residuals with Huber's weights, as single times are fitted.

    The intervals are those of a weighted line, with the weights of the last round and Student's t;
    n_1/2 by the delta method.
    """
    size, time = np.asarray(sizes, dtype=np.float64), np.asarray(times_us, dtype=np.float64)
    line = fit_line(size, time)
    latency, bandwidth = line.latency_us, line.bandwidth_mbps
    slope = 8.0 / bandwidth if bandwidth else 0.0
    spread = _covariance(size, latency + slope * size, line.residuals)
    t = t_quantile(_CONFIDENCE, len(size) - 2)

    def estimate(value: float, variance: float) -> Estimate:
        half = t * math.sqrt(max(variance, 0.0))
        return Estimate(value, max(0.0, value - half), value + half)

    by_size: dict[int, list[float]] = defaultdict(list)
    for one, residual in zip(size, line.residuals, strict=True):
        by_size[int(one)].append(100.0 * float(residual))
    half_bytes = latency / slope if slope else 0.0
    half_variance = (
        (spread[0, 0] - 2 * half_bytes * spread[0, 1] + half_bytes**2 * spread[1, 1]) / slope**2
        if slope
        else 0.0
    )
    return Hockney(
        estimate(latency, spread[0, 0]),
        _inverse(estimate(slope, spread[1, 1]), 8.0) if slope else None,
        estimate(half_bytes, half_variance) if slope else None,
        line.residual_percent,
        {one: statistics.median(some) for one, some in sorted(by_size.items())},
    )


def _covariance(size: Floats, said: Floats, residuals: Floats) -> Floats:
    """Of latency and time a byte, of three sizes at least."""
    freedom = len(size) - 2
    scale = max(NORMAL * float(np.median(np.abs(residuals))), 1e-9)
    weight = np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residuals), 1e-12))
    inside = float(np.mean(weight == 1.0))  # of normal residuals, so much of their squares is left
    variance = float(weight @ residuals**2) / freedom / max(inside, 0.5)
    design = np.stack([1.0 / said, size / said], axis=1)
    inverse = np.linalg.inv(design.T @ (weight[:, None] * design))
    return np.asarray(variance * inverse, dtype=np.float64)


def _inverse(of: Estimate, over: float) -> Estimate:
    """The estimate of over / x."""
    high = over / of.low if of.low else None
    return Estimate(over / of.value, over / of.high if of.high else None, high)


# --- LogGP -------------------------------------------------------------------------------------


@dataclass
class PathCosts:
    """What was seen of one path beside times: processor time and streams of small messages."""

    cpu_s: float = 0.0
    """Of all processes, in phases of messages of at most SMALL bytes there and back."""
    round_trips: int = 0
    """In these phases, warm-up included."""
    polls: bool = False
    """Whether some process of theirs computed all the time."""
    small_per_s: list[float] = field(default_factory=list)
    """Messages a second of flows that streamed messages of at most SMALL bytes."""


def large_bandwidth(
    sizes: Sequence[float], times_us: Sequence[float], hockney: Hockney
) -> Estimate | None:
    """1 / G: the slope of large messages, of three sizes at least; else that of all."""
    large = [(size, time) for size, time in zip(sizes, times_us, strict=True) if size >= LARGE]
    if len({size for size, _ in large}) < LEAST_SIZES:
        return hockney.bandwidth_mbps
    return fit_hockney([size for size, _ in large], [time for _, time in large]).bandwidth_mbps


def split_loggp(
    transport: str, hockney: Hockney, bandwidth: Estimate | None, costs: PathCosts
) -> LogGP:
    """What can be told apart, and why the rest can't."""
    byte_ns = _inverse(bandwidth, 8e3) if bandwidth else None
    byte_us = byte_ns.value / 1000 if byte_ns else 0.0
    t0 = hockney.latency_us
    small = Estimate(
        t0.value + byte_us, *(None if x is None else x + byte_us for x in (t0.low, t0.high))
    )
    unknown: list[str] = []
    both_us = _overheads_us(costs, small.value, unknown)
    return LogGP(
        small,
        byte_ns,
        None if both_us is None else small.value - both_us,
        None if both_us is None else both_us / 2,
        _gap_us(transport, costs, unknown),
        tuple(unknown),
    )


def _overheads_us(costs: PathCosts, small_us: float, unknown: list[str]) -> float | None:
    """o_s + o_r: each end of a round trip sends once and receives once."""
    told = "L, o_s and o_r are known as their sum only: "
    if not costs.round_trips:
        unknown.append(f"{told}there are no ping-pong messages of {SMALL} B or less")
        return None
    if costs.polls:
        unknown.append(f"{told}workers that poll use all their processor time, sent or not")
        return None
    both_us = 1e6 * costs.cpu_s / (2 * costs.round_trips)
    if both_us >= small_us:
        unknown.append(f"{told}the processes used more processor time than a message takes")
        return None
    return both_us


def _gap_us(transport: str, costs: PathCosts, unknown: list[str]) -> float | None:
    if transports.of(transport).byte_stream:
        unknown.append(f"g can't be had of {transport}: a stream's small messages travel joined")
        return None
    if not costs.small_per_s:
        unknown.append(f"g is not known: there is no stream of messages of {SMALL} B or less")
        return None
    return 1e6 / max(costs.small_per_s)


# --- a results directory -----------------------------------------------------------------------


@dataclass
class _Seen:
    """What a results directory says of one path."""

    times: dict[int, dict[tuple[int, int, str, str], Histogram]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """By ranks of the trial, then by size, phase and flow: repeats together."""
    costs: PathCosts = field(default_factory=PathCosts)


def measured(directory: Path) -> list[Parameters]:
    """The parameters of each path of a run that sent messages there and back."""
    seen = _read(directory, measured_trials(read_plan(directory), directory))
    found = [
        made
        for path, times in sorted(seen.items())
        if (made := _parameters(path, times, seen)) is not None
    ]
    if not found:
        raise ConfigurationError(
            f"{directory} has no ping-pong messages of {LEAST_SIZES} sizes, which parameters "
            "are fitted to: run conf/parameters.yaml, or any `traffic: pingpong` or "
            "`pattern: pingpong` of two ranks with `message_sizes`"
        )
    return found


def _parameters(path: Path_, seen: _Seen, others: Mapping[Path_, _Seen]) -> Parameters | None:
    """Of the trials with the fewest ranks, whose messages have the network most to themselves.
    What messages cost beside their time is seen of those there and back."""
    if not seen.times:
        return None
    points = [
        (size, ns / 2000)
        for (size, _, _, _), times in seen.times[min(seen.times)].items()
        # Half the median round trip; of too few for one, half the mean.
        if (ns := times.quantile_ns(0.5) or times.mean_ns) is not None
    ]
    if len({size for size, _ in points}) < LEAST_SIZES:
        return None
    sizes, times_us = [size for size, _ in points], [time for _, time in points]
    hockney = fit_hockney(sizes, times_us)
    bandwidth = large_bandwidth(sizes, times_us, hockney)
    costs = others.get(path._replace(by_steps=False), seen).costs
    loggp = split_loggp(path.transport, hockney, bandwidth, costs)
    return Parameters(path.transport, path.network, len(points), hockney, loggp, path.by_steps)


def _read(directory: Path, trials: Mapping[Number, Trial]) -> dict[Path_, _Seen]:
    seen: dict[Path_, _Seen] = defaultdict(_Seen)
    path = directory / RECORDS
    wanted = {kind: columns_of(kind) if kind in KINDS else () for kind in _TAKERS}
    for batch in RecordReader(path, wanted).batches():
        of_rows = (one for kind, rows in batch.rows.items() for one in rows.records(kind))
        for record in chain(of_rows, (one for _, one in batch.records)):
            trial = trials.get((record.get("trial", -1), record.get("repeat") or 0))
            if trial is not None and record.get("phase", -1) >= 0:
                _TAKERS[record["type"]](trial, record, seen)
    return seen


def _take_times(trial: Trial, record: Entry, seen: Mapping[Path_, _Seen]) -> None:
    if record.get("kind") != PINGPONG or not is_sweep(trial):
        return
    ranks = {part.network: len(part.ranks) for part in trial.parts}[record["network"]]
    times = seen[Path_(trial.transport, record["network"])].times[ranks]
    key = (trial.sizes[0], record["phase"], record["src"], record["dst"])
    times.setdefault(key, Histogram()).add_record(record)


def _take_execution(trial: Trial, record: Entry, seen: Mapping[Path_, _Seen]) -> None:
    """Of two ranks by steps: the first sees whole round trips, the other is through earlier."""
    part = next(part for part in trial.parts if part.network == record["network"])
    if trial.pattern["name"] != "pingpong" or len(part.ranks) != 2 or COMPOSITE in trial.parameters:
        return
    if record["rank"] != part.ranks[0].name:
        return
    times = seen[Path_(trial.transport, part.network, by_steps=True)].times[len(part.ranks)]
    key = (trial.sizes[0], record["phase"], *(port.name for port in part.ranks))
    # Its buckets are of batches, the mean of their repetitions; the sum is of all repetitions.
    count, repetitions = record["batches"], record["repetitions"]
    whole = {"count": count, "sum_ns": record["sum_ns"] * count // max(1, repetitions)}
    times.setdefault(key, Histogram()).add_record(record | whole)


def _take_flow(trial: Trial, record: Entry, seen: Mapping[Path_, _Seen]) -> None:
    if trial.sizes[0] > SMALL or len(trial.sizes) > 1:
        return
    costs = seen[Path_(trial.transport, record["network"])].costs
    if trial.traffic == "stream" and record["side"] == "destination" and record.get("window_ns"):
        came = record.get("window_messages") or record.get("window_frames") or 0
        if came:
            costs.small_per_s.append(1e9 * came / record["window_ns"])
    if is_sweep(trial) and record["side"] == "source" and len(trial.parts) == 1:
        costs.round_trips += record.get("messages") or record.get("frames") or 0


def _take_phase(trial: Trial, record: Entry, seen: Mapping[Path_, _Seen]) -> None:
    """A node's processor time, where the trial has one network: else it is not known whose, and
    its round trips are not counted, either."""
    if not is_sweep(trial) or trial.sizes[0] > SMALL or len(trial.parts) > 1:
        return
    costs = seen[Path_(trial.transport, trial.parts[0].network)].costs
    used, span = record.get("cpu_s"), record.get("cpu_span_s")
    if used is None or not span:
        return
    costs.cpu_s += used
    costs.polls |= span > _MOMENT_S and used > _POLLS * span


_MOMENT_S = 1e-3  # a node without a part in the phase has none to speak of
_TAKERS = {
    "histogram": _take_times,
    "execution": _take_execution,
    "flow": _take_flow,
    "phase": _take_phase,
}
