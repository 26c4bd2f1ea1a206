# SPDX-License-Identifier: BSD-3-Clause
"""What the keys of version 1 are called in version 2, and a converter of results directories.

Nothing of version 1 was ever released, and no program reads it. The converter shows that with the
names no number changed: of data/golden_1, a directory as version 1 wrote it, it makes the one of
data/golden, to the last digit (test_golden.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Of the configuration, wherever they stand; `parameters` of summaries have them, too.
CONFIGURATION = {
    "deadman": "heartbeat_timeout",
    "drain_silence": "drain_timeout",
    "draw": "random_generator",
    "interim": "interval",
    "probe": "connectivity_check",
    "together": "concurrent_networks",
}

# Of the documents that nodes read (doc/reference/node-protocol.md).
DOCUMENTS = {
    "beat": "heartbeat",
    "job.deadman_ms": "heartbeat_timeout_ms",
    "plan.headline": "totals_only",
    "trial.drain_silence_ns": "drain_timeout_ns",
    "trial.interim_ns": "interval_ns",
    "trial.pattern.draw": "random_generator",
    "trial.pattern.there_and_back": "round_trip",
    "trial.pingpong.patience_ns": "timeout_ns",
    "trial.pingpong.size_least": "min_size",
    "trial.pingpong.size_most": "max_size",
    "trial.probe": "connectivity_check",
    "trial.probe_sizes": "connectivity_check_sizes",
    "trial.schedule.lead": "batch_warmup",
}

# Types of records ...
TYPES = {
    "floor": "loopback-baseline",
    "foreign": "imported",
    "interim": "interval",
    "stray": "misdelivered-flow",
}

# ... and their keys, after their type in version 1.
RECORDS = {
    "compute.alone": "compute_only",
    "compute.alone.piece_most_ns": "piece_max_ns",
    "compute.beside": "concurrent",
    "compute.beside.piece_most_ns": "piece_max_ns",
    "event.what": "kind",
    "execution.greatest_ns": "max_ns",
    "execution.least_ns": "min_ns",
    "floor.beyond": "overflow",
    "floor.greatest_ns": "max_ns",
    "floor.least_ns": "min_ns",
    "foreign.ours": "comparable",
    "foreign.ours.how": "conversion",
    "histogram.beyond": "overflow",
    "histogram.greatest_ns": "max_ns",
    "histogram.least_ns": "min_ns",
    "missing.who": "missing_node",
    "port.foreign": "unexpected",
    "port.guest_received": "arp_nd_received",
    "port.guest_sent": "arp_nd_sent",
    "ready.clock_why": "clock_reason",
    "reorder.extent_most": "extent_max",
    "reorder.near": "three_reordered",
}

# Of summary.json, by their places.
SUMMARY = {
    "alarms": "warnings",
    "clocks.why": "reason",
    "comparisons.together": "concurrent_networks",
    "comparisons.transports.asked_load": "intended_load",
    "comparisons.transports.ratio.throughput_greatest": "throughput_max",
    "comparisons.transports.ratio.throughput_least": "throughput_min",
    "comparisons.transports.throughput.greatest": "max",
    "comparisons.transports.throughput.least": "min",
    "faults": "errors",
    "floors": "loopback_baselines",
    "imported.ours": "comparable",
    "imported.ours.how": "conversion",
    "messages.computing": "concurrent_computation",
    "messages.computing.alone_mflops": "compute_only_mflops",
    "messages.computing.beside_mflops": "concurrent_mflops",
    "messages.computing.piece_us.alone": "compute_only",
    "messages.computing.piece_us.alone.most": "max",
    "messages.computing.piece_us.beside": "concurrent",
    "messages.computing.piece_us.beside.most": "max",
    "messages.computing.slower_half_width_percent": "slowdown_ci_half_width_percent",
    "messages.computing.slower_percent": "slowdown_percent",
    "messages.computing.slowest_percent": "max_slowdown_percent",
    "messages.crossings": "crossovers",
    "messages.crossings.ranges.crossed_at": "crossover_size",
    "messages.curves.half_peak_size": "size_at_half_peak",
    "messages.curves.ninety_peak_size": "size_at_90_percent_peak",
    "messages.scatter.greatest_size": "max_size",
    "messages.scatter.least_size": "min_size",
    "messages.scatter.worst.begun_s": "started_s",
    "messages.scatter.worst.times_the_fit": "ratio_to_fit",
    "plans.asked_load": "intended_load",
    "plans.throughput.least_percent_of_line": "min_percent_of_line",
    "plans.together": "concurrent_networks",
    "ports.as_destination.least_percent_of_line": "min_percent_of_line",
    "ports.as_source.least_percent_of_line": "min_percent_of_line",
    "run.left_out": "excluded_hosts",
    "statistics.asked_width_percent": "target_ci_width_percent",
    "statistics.deviation": "standard_deviation",
    "statistics.half_width": "ci_half_width",
    "statistics.high": "ci_high",
    "statistics.least_repeats": "min_repeats",
    "statistics.low": "ci_low",
    "statistics.most_repeats": "max_repeats",
    "statistics.width_percent": "ci_width_percent",
    "steps.functions.points.interval_us": "ci_us",
    "steps.functions.points.repetition_us.greatest": "max",
    "steps.functions.points.repetition_us.least": "min",
    "steps.kernels.interval_s": "ci_s",
    "steps.kernels.whole_s": "total_s",
    "steps.rankings.paths.times_the_fastest": "ratio_to_fastest",
    "steps.rankings.paths.whole_s": "total_s",
    "trials.asked_load": "intended_load",
    "trials.disorder": "reordering",
    "trials.disorder.extent_most": "extent_max",
    "trials.disorder.near_percent": "three_reordered_percent",
    "trials.disorder.worst.extent_most": "extent_max",
    "trials.foreign_frames": "unexpected_frames",
    "trials.guest_frames": "arp_nd_frames",
    "trials.host_limited": "tester_limited",
    "trials.host_limited.late_ms": "start_delay_ms",
    "trials.host_limited.short_percent": "shortfall_percent",
    "trials.host_limited.window_off_percent": "window_error_percent",
    "trials.interim": "intervals",
    "trials.interim.least": "min",
    "trials.interim.spans": "count",
    "trials.interim.step_s": "length_s",
    "trials.throughput.least_percent_of_line": "min_percent_of_line",
    "trials.together": "concurrent_networks",
    "trials.whereabouts": "loss_location",
    "trials.whereabouts.agree": "consistent",
    "verdict.reservations": "warnings",
}

# Of comparison.json (doc/how-to/compare.md), in any of its rows.
COMPARISON = {"axes.most": "max", "rows.high": "ci_high", "rows.low": "ci_low"}

# Of plan.json: a trial's document is what its nodes read.
PLAN = {
    "run.site.deadman_ms": "heartbeat_timeout_ms",
    "run.trials.pattern.draw": "random_generator",
    **{
        old.replace("trial.", "run.trials.document."): new
        for old, new in DOCUMENTS.items()
        if old.startswith("trial.")
    },
}

# What clauses are about.
MEASURES = {
    "least_percent_of_line": "min_percent_of_line",
    "throughput_min_interim": "throughput_min_interval",
}

_VALUES = {
    "schema": {
        "switchbench-plan/1": "switchbench-plan/2",
        "switchbench-summary/1": "switchbench-summary/2",
    },
    "run.nodes.protocol": {1: 2},
    "hello.protocol": {1: 2},
    "progress.step": {"probe": "connectivity-check"},
    "bye.reason": {"deadman": "heartbeat-timeout"},
    "expectations.measure": MEASURES,
    "run.expectations.measure": MEASURES,
}


def summary(found: Mapping[str, Any]) -> dict[str, Any]:
    """A summary of version 1 in the words of version 2."""
    converted: dict[str, Any] = _converted(found, SUMMARY, "")
    return converted


def record(found: Mapping[str, Any]) -> dict[str, Any]:
    """A record."""
    converted: dict[str, Any] = _converted(found, RECORDS, found["type"])
    return converted | {"type": TYPES.get(found["type"], found["type"])}


def plan(found: Mapping[str, Any]) -> dict[str, Any]:
    """A compiled run (plan.json)."""
    converted: dict[str, Any] = _converted(found, PLAN, "")
    return converted


def configuration(text: str) -> str:
    """A configuration, with its comments."""
    keys = {rf"\b{old}(?=: )": new for old, new in CONFIGURATION.items()}
    for pattern, new in (keys | {rf"\b{old}\b": new for old, new in MEASURES.items()}).items():
        text = re.sub(pattern, new, text)
    return text


def directory(path: Path) -> None:
    """Converts a results directory in place."""
    records = path / "records.ndjson"
    lines = [_line(record(json.loads(line))) for line in records.read_text().splitlines()]
    records.write_text("".join(f"{line}\n" for line in lines))
    kept = path / "summary.json"
    kept.write_text(json.dumps(summary(json.loads(kept.read_text()))))
    kept = path / "plan.json"
    kept.write_text(_line(plan(json.loads(kept.read_text()))) + "\n")
    kept = path / "configuration.yaml"
    kept.write_text(configuration(kept.read_text()))


def _as_configured(found: Any) -> Any:
    if isinstance(found, list):
        return [_as_configured(one) for one in found]
    if not isinstance(found, Mapping):
        return MEASURES.get(found, found) if isinstance(found, str) else found
    return {CONFIGURATION.get(key, key): _as_configured(value) for key, value in found.items()}


def _line(found: Mapping[str, Any]) -> str:
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _converted(found: Any, names: Mapping[str, str], place: str) -> Any:
    if isinstance(found, list):
        return [_converted(one, names, place) for one in found]
    if not isinstance(found, Mapping):
        values = _VALUES.get(place, {})
        return values.get(found, found) if isinstance(found, str | int) else found
    if place.endswith("parameters") or place == "run.effective":
        return _as_configured(found)
    below = {key: f"{place}.{key}" if place else key for key in found}
    return {
        names.get(below[key], key): _converted(value, names, below[key])
        for key, value in found.items()
    }
