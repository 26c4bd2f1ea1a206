# SPDX-License-Identifier: BSD-3-Clause
"""Tables of latencies, loopbacks, skew, intervals and CPU time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...base import format
from ...base.measures import COUNT, MEASURES, PERCENT
from .table import RATE, Column, Entry, Table, at, make

Summary = Mapping[str, Any]


def pattern(entry: Entry) -> str:
    return format.pattern(entry)


def _phase(entry: Entry) -> str:
    return str(entry["phase_name"] or entry["phase"])


def _load(entry: Entry) -> float | None:
    load: float | None = entry.get("intended_load")
    return load


SIZE = "Of frames with FCS (RFC 2544), or of messages"

# What a row is of. Folded: said once above the table where all rows have the same.
SETTING = (
    Column("pattern", "pattern", "text", fold=True, value=pattern),
    Column("transport", "transport", "text", fold=True),
    Column("network", "network", "text", fold=True),
    Column("ranks", "ranks", "count", fold=True),
    Column("size", "size", "text", fold=True, value=format.size, about=SIZE),
    Column("load asked", "intended_load", "percent", "% of line", fold=True, value=_load),
    Column("repeat", "repeat", "count", fold=True),
)

PHASE = Column("phase", "phase_name", "text", value=_phase)

TRIAL = Column("trial", "trial", "count")

STATE = Column("state", "state", "text", fold=True)


def measured(key: str, **options: Any) -> Column:
    """The column of a measure of base.measures; `options` as of any other column."""
    measure = MEASURES[key]
    kind = measure.format if measure.format in (PERCENT, COUNT) else "number"
    unit = "" if kind == COUNT else measure.unit.replace("us", "µs")
    return Column(measure.title, measure.entry, kind, unit, **options)


def frames(title: str, key: str, fold: bool = True, seldom: bool = False) -> Column:
    return Column(title, key, "count", fold=fold, seldom=seldom)


def _per_gb(entry: Entry) -> float | None:
    """A plan's CPU seconds by 10^9 bytes of payload."""
    cpu, delivered = entry.get("cpu_s"), entry.get("delivered_bytes")
    return cpu * 1e9 / delivered if cpu is not None and delivered else None


def skew(summary: Summary) -> Table | None:
    """How well all ranks began and ended together."""
    columns = (
        *SETTING,
        PHASE,
        measured("start_skew_us"),
        measured("stop_skew_us"),
        Column("either within twice", "skew_bound_us", unit="µs", fold=True),
        Column("window", "window_s", unit="s", fold=True),
        Column("phase took", "elapsed_s", unit="s"),
        Column("drained", "drained", "text", fold=True),
        TRIAL,
    )
    about = "How far apart the first and the last rank began, and ended, in each phase."
    return make("skew", "Start and stop skew", about, columns, summary.get("trials", []))


def _interval_entries(summary: Summary) -> Iterator[Entry]:
    for entry in summary.get("trials", []):
        for low in at(entry, "intervals.lowest") or []:
            yield {**entry, "low": low, "slowest": low}


def intervals(summary: Summary) -> Table | None:
    """How low flows fell while their phase ran."""
    columns = (
        *SETTING,
        PHASE,
        Column("flow", "slowest", "text", about="The flow that fell"),
        Column("fell to", "low.mbps", unit=RATE, defined="intervals.lowest.mbps"),
        Column("of its mean", "low.percent_of_mean", "percent", "%",
               defined="intervals.lowest.percent_of_mean"),
        Column("from", "low.from_s", unit="s", defined="intervals.lowest.from_s",
               value=lambda entry: round(entry["low"]["from_s"], 3)),
        Column("to", "low.to_s", unit="s", defined="intervals.lowest.to_s",
               value=lambda entry: round(entry["low"]["to_s"], 3)),
    )  # fmt: skip
    about = "Of each phase the five flows that fell the furthest below their own mean, and when."
    entries = _interval_entries(summary)
    return make("intervals", "Lowest interval results", about, columns, entries)


_KINDS = {
    "one_way": "one way",
    "ipdv": "delay variation (IPDV)",
    "round_trip": "round trip",
    "pingpong": "message, there and back",
}

_PERCENTILES = tuple(
    Column(title, f"times.{key}", unit="µs", defined=f"loopback_baselines.{key}")
    for title, key in (
        ("least", "min"), ("mean", "mean"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99"),
        ("p99.9", "p99_9"), ("p99.99", "p99_99"), ("greatest", "max"), ("variation", "pdv"),
        ("clocks within", "bound"),
    )
)  # fmt: skip


def _timed(summary: Summary) -> Iterator[Entry]:
    for entry in summary.get("trials", []):
        for kind, times in (entry.get("latency") or {}).items():
            if times:
                yield {**entry, "kind": _KINDS.get(kind, kind), "times": times}


def latencies(summary: Summary) -> Table | None:
    """Times under load, by phase and kind."""
    columns = (
        *SETTING,
        PHASE,
        Column("kind", "kind", "text", fold=True, about="What is timed: doc/latency.md"),
        Column("measured", "times.count", "count", about="Times measured"),
        Column("never came", "times.lost", "count", fold=True,
               about="Probes or messages that never came back"),
        *_PERCENTILES,
        Column("flow with the greatest p99", "times.worst", "text", about="Source and destination"),
    )  # fmt: skip
    about = "Measured beside the load. The way of each is in doc/latency.md."
    return make("times", "Times", about, columns, _timed(summary))


def floors(summary: Summary) -> Table | None:
    """The software's own path."""
    columns = (
        Column("node", "node", "text"),
        Column("transport", "transport", "text", fold=True),
        Column("kind", "kind", "text", fold=True, about="What is timed: doc/latency.md"),
        Column("measured", "times.count", "count", about="Times measured"),
        *_PERCENTILES,
    )
    about = "The software's own path, measured on a loopback; not subtracted from anything."
    entries = [
        {**floor, "kind": _KINDS.get(floor["kind"], floor["kind"]), "times": floor}
        for floor in summary.get("loopback_baselines", [])
    ]
    return make("loopback_baselines", "Floor of times", about, columns, entries)


def cpu(summary: Summary) -> Table | None:
    """What moving the data cost the hosts."""
    columns = (
        *SETTING,
        Column("payload delivered", "delivered_bytes", "count", "B"),
        Column("CPU", "cpu_s", unit="s"),
        Column("CPU of nodes' processes", "cpu_process_s", unit="s"),
        measured("cpu_s_per_gb", value=_per_gb),
        Column("polling", "polling", "text", fold=True),
        TRIAL,
    )
    about = "Of all machines together, kernel and interrupts included."
    return make("cpu", "CPU cost", about, columns, summary.get("plans", []))
