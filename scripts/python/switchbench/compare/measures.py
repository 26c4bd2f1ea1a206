# SPDX-License-Identifier: BSD-3-Clause
"""Compared figures of plans, phases and flows (doc/reference/measures.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..analysis.measures import total
from ..base.measures import MEASURES as REGISTRY
from ..base.measures import REDUCED
from ..base.model import SCHEDULE
from ..records.summary_form import at

Entry = Mapping[str, Any]
Reading = Callable[[Entry], float | None]


@dataclass(frozen=True)
class ComparedMeasure:
    """Definition of a compared figure; `better` is +1 where more is better, -1 where less is.

    Both allowances are standard deviations as shares of the mean: the figure's rounding, and the
    difference between two equal runs beyond their repeats (doc/how-to/compare.md).
    """

    name: str
    title: str
    unit: str
    better: int
    of: Reading
    rounding: float = 0.0005  # one frame of a short window
    between_runs: float = 0.002


def _compared(name: str, title: str, key: str, of: Reading, *allowances: float) -> ComparedMeasure:
    """Return a measure of base.measures under the short name and title used in comparisons."""
    measure = REGISTRY[key]
    return ComparedMeasure(name, title, measure.unit, measure.better, of, *allowances)


def _read(path: str) -> Reading:
    """Return a function that reads the value at a key's path from an entry."""
    return lambda entry: None if (value := at(entry, path)) is None else float(value)


def _rate(path: str) -> Reading:
    """Return a function that reads a rate; null for messages without payload, as in a barrier."""

    def rate(entry: Entry) -> float | None:
        empty = entry["traffic"] == SCHEDULE and entry["delivered_bytes"] == 0
        return None if empty else _read(path)(entry)

    return rate


def _loss(entry: Entry) -> float | None:
    lost, offered = entry["lost_frames"], entry["offered_frames"]
    return None if lost is None or not offered else 100.0 * lost / offered


def _cpu(entry: Entry) -> float | None:
    """Return the CPU seconds of the nodes' processes per GB delivered, without other load."""
    seconds, delivered = entry["cpu_process_s"], entry["delivered_bytes"]
    return None if seconds is None or not delivered else seconds / (delivered / 1e9)


def _elapsed(entry: Entry) -> float | None:
    """Return a transfer's duration; None for streams, whose duration is configured."""
    return _read("elapsed_s")(entry) if entry["traffic"] == "transfer" else None


WHOLE_S = "total_s"
STEP_TIMES = (0.0005, 0.1)
_BUCKETS = 0.005  # relative error of histogram buckets: width 1/64, evenly distributed
_KINDS = {"round_trip": "round trip", "one_way": "one way", "pingpong": "ping-pong"}
MEASURES = (
    # The times that were requested come first.
    *(
        ComparedMeasure(name, title, unit, better, _read(f"steps.{key}"), *STEP_TIMES)
        for name, title, unit, better, key in (
            ("t_avg", "t_avg", "us", -1, "t_avg_us"),
            ("t_max", "t_max", "us", -1, "t_max_us"),
            ("mbytes_s", "IMB's rate", "MB/s", +1, "mbytes_s"),
            ("whole", "whole benchmark", "s", -1, WHOLE_S),
        )
    ),
    _compared("mean_rate", "mean flow", "throughput", _rate("throughput.mean")),
    _compared("slowest_rate", "slowest flow", "throughput_min", _rate("throughput.min")),
    _compared("of_line", "of line", "percent_of_line", _rate("throughput.percent_of_line")),
    _compared("loss", "lost", "loss_percent", _loss, 0.01, 0.02),
    _compared("cpu", "CPU of nodes", "cpu_s_per_gb", _cpu, 0.0005, 0.3),
    *(_compared(one.key, one.title, one.key, _rate(f"reduced.{one.key}")) for one in REDUCED),
    _compared("elapsed", "time", "elapsed_s", _elapsed),
    *(
        _compared(f"{kind}_{name}", f"{title} {name}", f"{kind}_{name}_us",
                  _read(f"latency.{kind}.{name}"), _BUCKETS, between_runs)
        for kind, title in _KINDS.items()
        for name, between_runs in (("p50", 0.4), ("p99", 0.7))
    ),
)  # fmt: skip
FLOW_RATE = _compared("rate", "rate", "throughput", lambda _: None)
FLOW_LOSS = _compared("loss", "lost", "loss_percent", lambda _: None, 0.01, 0.02)


def with_times(plan: Entry, phases: Sequence[Entry], steps: Entry) -> Entry:
    """Return a plan's entry with step times, and the worst loss and percentiles of its phases.

    Phases that the tester limited are left out.
    """
    fair = [phase for phase in phases if not phase["tester_limited"]]

    def worst(path: str, choose: Callable[..., Any] = max) -> Any:
        known = (at(phase, path) for phase in fair)
        return choose((value for value in known if value is not None), default=None)

    return {
        **plan,
        **{name: total(p[name] for p in fair) for name in ("lost_frames", "offered_frames")},
        "reduced": {
            one.key: worst(f"reduced.{one.key}", min if one.over_phases == "min" else max)
            for one in REDUCED
        },
        "latency": {
            kind: {name: worst(f"latency.{kind}.{name}") for name in ("p50", "p99")}
            for kind in _KINDS
        },
        # A function without payload has no rate.
        "steps": {name: value or None for name, value in steps.items()},
    }
