# SPDX-License-Identifier: BSD-3-Clause
"""Tables of latencies, loopbacks, skew, intervals and CPU time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...records.document.schema import at
from .columns import PHASE, SETTING, TITLED, TRIAL
from .table import PAGE, RATE, Column, Entry, Spec, count, measured, text

_KIND = text("kind", "kind", about="What is timed: doc/reference/latency.md")
_TIMED = count("times", "times.count", about="Times measured")

KINDS = {
    "one_way": "one way",
    "ipdv": "delay variation",
    "round_trip": "round trip",
    "pingpong": "ping-pong",
}

skew = Spec(
    "skew",
    "Start and stop skew",
    "How far apart the first and the last rank began, and ended, in each phase.",
    (
        *SETTING,
        PHASE,
        measured("start_skew_us"),
        measured("stop_skew_us"),
        Column("either within twice", "skew_bound_us", unit="µs", fold=True),
        Column("window", "window_s", unit="s", fold=True),
        Column("phase took", "elapsed_s", unit="s"),
        text("drained", "drained", fold=True),
        TRIAL,
    ),
    "trials",
)


def _low(title: str, key: str, kind: str = "number", unit: str = "") -> Column:
    return Column(title, f"low.{key}", kind, unit, defined=f"intervals.lowest.{key}")


intervals = Spec(
    "intervals",
    "Lowest interval results",
    "Of each phase the five flows that fell the furthest below their own mean, and when.",
    (
        *SETTING,
        PHASE,
        text("flow", "slowest", about="The flow that fell"),
        _low("fell to", "mbps", unit=RATE),
        _low("of its mean", "percent_of_mean", "percent", "%"),
        _low("from", "from_s", unit="s"),
        _low("to", "to_s", unit="s"),
    ),
    lambda summary: (
        {**entry, "low": low, "slowest": low}
        for entry in summary.get("trials", ())
        for low in at(entry, "intervals.lowest") or ()
    ),
)

_PERCENTILES = (
    *(
        Column(title, f"times.{key}", unit="µs", defined=f"latency.one_way.{key}", drop=drop)
        for title, key, drop in (
            ("min", "min", 0), ("mean", "mean", 3), ("p50", "p50", 0), ("p90", "p90", 2),
            ("p99", "p99", 0), ("p99.9", "p99_9", 6), ("p99.99", "p99_99", 4), ("max", "max", 0),
            ("PDV", "pdv", 5),
        )
    ),
    Column("clocks within", "times.bound", unit="µs", defined="latency.one_way.bound", drop=1,
           seldom=True, value=lambda row: row["times"].get("bound") or None),
)  # fmt: skip


def of_phase(entry: Entry) -> Iterator[Entry]:
    """Yield a row for each kind of times that a phase has."""
    for kind, times in (entry.get("latency") or {}).items():
        if times:
            yield {**entry, "kind": KINDS.get(kind, kind), "times": times}


latencies = Spec(
    "times",
    "Times",
    "Measured beside the load. The way of each is in doc/reference/latency.md.",
    (
        *TITLED,
        replace(PHASE, output=PAGE),
        _KIND,
        _TIMED,
        count("lost", "times.lost", fold=True, about="Probes or messages that never came back"),
        *_PERCENTILES,
        text("worst flow", "times.worst", about="The flow with the largest p99", drop=1),
    ),
    lambda summary: (row for entry in summary.get("trials", ()) for row in of_phase(entry)),
)


def _per_gb(entry: Entry) -> float | None:
    """Return a plan's CPU seconds by 10^9 bytes of payload."""
    used, delivered = entry.get("cpu_s"), entry.get("delivered_bytes")
    return used * 1e9 / delivered if used is not None and delivered else None


cpu = Spec(
    "cpu",
    "CPU cost",
    "Of all machines together, kernel and interrupts included.",
    (
        *SETTING,
        count("payload delivered", "delivered_bytes", unit="B"),
        Column("CPU time", "cpu_s", unit="s"),
        Column("CPU time of nodes' processes", "cpu_process_s", unit="s"),
        measured("cpu_s_per_gb", value=_per_gb),
        text("polling", "polling", fold=True),
        TRIAL,
    ),
    "plans",
)
