# SPDX-License-Identifier: BSD-3-Clause
"""A converter of a results directory from the keys of version 1 to those of version 2.

Nothing of version 1 was ever released, and no program reads it. The converter shows that with the
names no number changed: of data/golden_1, a directory as version 1 wrote it, it makes the one of
data/golden, to the last digit (test_golden.py). It knows the keys that this directory has.
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
    "interim": "interval",
    "probe": "connectivity_check",
}

# Types of records ...
TYPES = {
    "floor": "loopback-baseline",
}

# ... and their keys, after their type in version 1.
RECORDS = {
    "floor.beyond": "overflow",
    "floor.greatest_ns": "max_ns",
    "floor.least_ns": "min_ns",
    "histogram.beyond": "overflow",
    "histogram.greatest_ns": "max_ns",
    "histogram.least_ns": "min_ns",
    "port.foreign": "unexpected",
    "port.guest_received": "arp_nd_received",
    "port.guest_sent": "arp_nd_sent",
    "ready.clock_why": "clock_reason",
}

# Of summary.json, by their places.
SUMMARY = {
    "alarms": "warnings",
    "clocks.why": "reason",
    "faults": "errors",
    "floors": "loopback_baselines",
    "messages.computing": "concurrent_computation",
    "messages.crossings": "crossovers",
    "plans.asked_load": "intended_load",
    "plans.throughput.least_percent_of_line": "min_percent_of_line",
    "plans.together": "concurrent_networks",
    "ports.as_destination.least_percent_of_line": "min_percent_of_line",
    "ports.as_source.least_percent_of_line": "min_percent_of_line",
    "run.left_out": "excluded_hosts",
    "trials.asked_load": "intended_load",
    "trials.disorder": "reordering",
    "trials.disorder.extent_most": "extent_max",
    "trials.disorder.near_percent": "three_reordered_percent",
    "trials.foreign_frames": "unexpected_frames",
    "trials.guest_frames": "arp_nd_frames",
    "trials.host_limited": "tester_limited",
    "trials.interim": "intervals",
    "trials.interim.least": "min",
    "trials.interim.spans": "count",
    "trials.interim.step_s": "length_s",
    "trials.throughput.least_percent_of_line": "min_percent_of_line",
    "trials.together": "concurrent_networks",
    "trials.whereabouts": "loss_location",
    "trials.whereabouts.agree": "consistent",
}

# Of plan.json: a trial's document is what its nodes read.
PLAN = {
    "run.site.deadman_ms": "heartbeat_timeout_ms",
    "run.trials.document.drain_silence_ns": "drain_timeout_ns",
    "run.trials.document.probe": "connectivity_check",
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
}


def configuration(text: str) -> str:
    """A configuration, with its comments."""
    for old, new in CONFIGURATION.items():
        text = re.sub(rf"\b{old}(?=: )", new, text)
    return text


def directory(path: Path) -> None:
    """Converts a results directory in place."""
    records = path / "records.ndjson"
    found = [json.loads(line) for line in records.read_text().splitlines()]
    lines = [
        _line(_converted(one, RECORDS, one["type"]) | {"type": TYPES.get(one["type"], one["type"])})
        for one in found
    ]
    records.write_text("".join(f"{line}\n" for line in lines))
    kept = path / "summary.json"
    kept.write_text(json.dumps(_converted(json.loads(kept.read_text()), SUMMARY, "")))
    kept = path / "plan.json"
    kept.write_text(_line(_converted(json.loads(kept.read_text()), PLAN, "")) + "\n")
    kept = path / "configuration.yaml"
    kept.write_text(configuration(kept.read_text()))


def _as_configured(found: Any) -> Any:
    if isinstance(found, list):
        return [_as_configured(one) for one in found]
    if not isinstance(found, Mapping):
        return found
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
