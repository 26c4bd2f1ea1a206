# SPDX-License-Identifier: BSD-3-Clause
"""The figures that are compared, of plans, phases and flows.

Formulas are in doc/reference/measures.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..analysis.measures import total
from ..base.measures import MEASURES as REGISTRY
from ..base.measures import REDUCED
from ..base.model import SCHEDULE

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class ComparedMeasure:
    """One figure; `better`: +1 when more of it is better, -1 when less is.

    The allowances are standard deviations as shares of the mean: what a figure is rounded to, and
    by how much two runs of the same differ beyond their repeats (doc/how-to/compare.md).
    """

    name: str
    title: str
    unit: str
    better: int
    of: Callable[[Entry], float | None]
    rounding: float = 0.0005  # a frame of a short window
    between_runs: float = 0.002


def _of_rates(of: Callable[[Entry], float | None]) -> Callable[[Entry], float | None]:
    """Return a measure of rates, null for messages without payload, as a barrier's."""

    def rate(entry: Entry) -> float | None:
        empty = entry["traffic"] == SCHEDULE and entry["delivered_bytes"] == 0
        return None if empty else of(entry)

    return rate


def _rate(name: str) -> Callable[[Entry], float | None]:
    return _of_rates(lambda entry: _number(entry["throughput"][name]))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _loss(entry: Entry) -> float | None:
    lost, offered = entry["lost_frames"], entry["offered_frames"]
    return None if lost is None or not offered else 100.0 * lost / offered


def time_of(entry: Entry, kind: str, name: str) -> float | None:
    """Return a percentile of one kind of times, in microseconds."""
    return _number(((entry.get("latency") or {}).get(kind) or {}).get(name))


def _cpu(entry: Entry) -> float | None:
    """Return the CPU time of the nodes' own processes per GB: a machine has other work as well."""
    seconds, delivered = entry["cpu_process_s"], entry["delivered_bytes"]
    return None if seconds is None or not delivered else seconds / (delivered / 1e9)


def _compared(
    name: str, title: str, key: str, of: Callable[[Entry], float | None], *allowances: float
) -> ComparedMeasure:
    """Return a measure of base.measures.

    Of which the comparison has its own short name and title.
    """
    measure = REGISTRY[key]
    return ComparedMeasure(name, title, measure.unit, measure.better, of, *allowances)


def _reduced(key: str) -> Callable[[Entry], float | None]:
    """Return how a measure of all flows is read from an entry."""
    return _of_rates(lambda entry: _number((entry.get("reduced") or {}).get(key)))


WHOLE_S = "total_s"


def _step(name: str) -> Callable[[Entry], float | None]:
    """Of what goes by steps."""
    return lambda entry: _number((entry.get("steps") or {}).get(name) or None)


STEP_TIMES = (0.0005, 0.1)
_BUCKETS = 0.005  # of histograms: 1/64, evenly
# First, as these are what was asked for.
STEPS = (
    ComparedMeasure("t_avg", "t_avg", "us", -1, _step("t_avg_us"), *STEP_TIMES),
    ComparedMeasure("t_max", "t_max", "us", -1, _step("t_max_us"), *STEP_TIMES),
    ComparedMeasure("mbytes_s", "IMB's rate", "MB/s", +1, _step("mbytes_s"), *STEP_TIMES),
    ComparedMeasure("whole", "whole benchmark", "s", -1, _step(WHOLE_S), *STEP_TIMES),
)
_RATES = (
    _compared("mean_rate", "mean flow", "throughput", _rate("mean")),
    _compared("slowest_rate", "slowest flow", "throughput_min", _rate("min")),
    _compared("of_line", "of line", "percent_of_line", _rate("percent_of_line")),
    _compared("loss", "lost", "loss_percent", _loss, 0.01, 0.02),
    _compared("cpu", "CPU of nodes", "cpu_s_per_gb", _cpu, 0.0005, 0.3),
    *(_compared(one.key, one.title, one.key, _reduced(one.key)) for one in REDUCED),
)
_TIMES = tuple(
    _compared(f"{kind}_{name}", f"{title} {name}", f"{kind}_{name}_us",
              partial(time_of, kind=kind, name=name), _BUCKETS, between_runs)
    for kind, title in (("round_trip", "round trip"), ("one_way", "one way"),
                        ("pingpong", "ping-pong"))
    for name, between_runs in (("p50", 0.4), ("p99", 0.7))
)  # fmt: skip
# A stream's phases last as long as they were asked to.
_ELAPSED = _compared(
    "elapsed", "time", "elapsed_s",
    lambda entry: _number(entry["elapsed_s"]) if entry["traffic"] == "transfer" else None,
)  # fmt: skip
MEASURES = (*STEPS, *_RATES, _ELAPSED, *_TIMES)
FLOW_RATE = _compared("rate", "rate", "throughput", lambda _: None)
FLOW_LOSS = _compared("loss", "lost", "loss_percent", lambda _: None, 0.01, 0.02)


def with_times(plan: Entry, phases: Sequence[Entry], steps: Entry) -> Entry:
    """Return a plan with its times by steps.

    And of its phases that the tester did not limit the loss and the longest of each percentile of
    times.
    """
    fair = [phase for phase in phases if not phase["tester_limited"]]
    latency = {
        kind: {name: _longest(fair, kind, name) for name in ("p50", "p99")}
        for kind in ("round_trip", "one_way", "pingpong")
    }
    counts = {
        name: total(phase[name] for phase in fair) for name in ("lost_frames", "offered_frames")
    }
    reduced = {
        measure.key: (min if measure.over_phases == "min" else max)(
            (v for p in fair if (v := p["reduced"][measure.key]) is not None), default=None
        )
        for measure in REDUCED
    }
    return {**plan, **counts, "reduced": reduced, "latency": latency, "steps": steps}


def _longest(phases: Sequence[Entry], kind: str, name: str) -> float | None:
    times = [time_of(phase, kind, name) for phase in phases]
    return max((time for time in times if time is not None), default=None)
