# SPDX-License-Identifier: BSD-3-Clause
"""What a clause can be about: the names of doc/measures.md, "Clauses", as a table."""

from __future__ import annotations

from dataclasses import dataclass

from .model import LATENCY_FIGURES, LATENCY_KINDS

_PHASES = ("phase", "plan", "run")
_FLOWS = ("flow", *_PHASES)
_PORTS = ("port", *_PHASES)
_FLOWS_AND_PORTS = ("flow", *_PORTS)


@dataclass(frozen=True)
class Measure:
    """The unit of a measure, and over what it can be judged."""

    unit: str
    overs: tuple[str, ...] = _PHASES


# round_trip_p99_us, one_way_max_us, ipdv_p99_9_us ... by kind and figure (doc/latency.md)
LATENCY_MEASURES = {
    f"{kind}_{name}_us": (kind, name)
    for kind in LATENCY_KINDS
    for name in LATENCY_FIGURES
    if (kind, name) != ("ipdv", "pdv")
}

MEASURES: dict[str, Measure] = {
    "throughput": Measure("Mbit/s", _FLOWS),
    "throughput_min": Measure("Mbit/s"),
    "throughput_max": Measure("Mbit/s"),
    "throughput_min_interval": Measure("Mbit/s"),
    "throughput_total": Measure("Mbit/s"),
    "percent_of_line": Measure("%", _PORTS),
    "min_percent_of_line": Measure("%"),
    "uniformity_percent": Measure("%", _PORTS),
    "offered_load": Measure("%"),
    "offered_frames": Measure("frames", _FLOWS),
    "delivered_frames": Measure("frames", _FLOWS),
    "lost_frames": Measure("frames", _FLOWS_AND_PORTS),
    "loss_percent": Measure("%", _FLOWS_AND_PORTS),
    "duplicated_frames": Measure("frames", _FLOWS),
    "reordered_frames": Measure("frames", _FLOWS),
    "late_frames": Measure("frames", _FLOWS),
    "corrupted_frames": Measure("frames", _FLOWS),
    "misdelivered_frames": Measure("frames"),
    "host_dropped_frames": Measure("frames"),
    "pause_frames": Measure("frames"),
    "retransmitted_segments": Measure("segments", _FLOWS),
    "retransmitted_packets": Measure("packets"),
    "lost_messages": Measure("messages"),
    "start_skew_us": Measure("us"),
    "stop_skew_us": Measure("us"),
    "elapsed_s": Measure("s"),
    "cpu_s_per_gb": Measure("s/GB"),
    **dict.fromkeys(LATENCY_MEASURES, Measure("us", _FLOWS)),
    "lost_probes": Measure("probes", _FLOWS),
}
