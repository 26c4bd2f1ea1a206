# SPDX-License-Identifier: BSD-3-Clause
"""The entries of the summary: one for each phase, and one for each whole plan, in a network.

The keys and their meaning are the schema's; a key with no observation is there, and is None.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from ..base import transports
from ..base.model import SCHEDULE, Load, Part, Trial
from ..records.directory import RECORDS
from ..records.records import Flow, NodePhase, PhaseKey, PhaseRecords, Record
from . import measures as m

_STATES = ("flooded", "stopped", "unreachable")  # what nodes say of a phase, the cause first


@dataclass(frozen=True)
class PhaseContext:
    """Where a phase's records belong: what the configuration says of them."""

    trial: Trial
    part: Part
    key: PhaseKey


def setting(place: PhaseContext, lines: dict[str, int]) -> dict[str, Any]:
    trial = place.trial
    size: int | list[int] = trial.sizes[0] if len(trial.sizes) == 1 else list(trial.sizes)
    return {
        "trial": trial.id,
        "test": trial.test,
        "repeat": trial.repeat,
        "pattern": trial.pattern["name"],
        "parameters": dict(trial.parameters),
        "transport": trial.transport,
        "network": place.part.network,
        "concurrent_networks": [part.network for part in trial.parts]
        if len(trial.parts) > 1
        else None,
        "ranks": len(place.part.ranks),
        "phase": place.key.phase,
        "traffic": trial.traffic,
        "size": size,
        "size_unit": trial.size_unit,
        "frame_bytes": size if trial.size_unit == "frame" else None,
        "load": {name: value for name, value in asdict(trial.load).items() if value is not None},
        "intended_load": _asked_percent(trial, lines),
        "load_unit": "percent_of_line",
    }


def _asked_percent(trial: Trial, lines: dict[str, int]) -> float | None:
    """The load in percent of line: mean over the part's ports, which may have several rates."""
    load: Load = trial.load
    if trial.traffic == SCHEDULE:
        return None  # a step waits for the one before
    if load.percent is not None:
        return load.percent
    bps = load.bps
    if load.fps is not None and trial.size_unit == "frame":
        frame = sum(trial.sizes) / len(trial.sizes)
        bps = load.fps * 8 * (frame + m.FRAME_OVERHEAD_L1)
    known = [100.0 * bps / line for line in lines.values() if bps is not None and line]
    return m.mean(known)


def timing(place: PhaseContext, nodes: dict[str, NodePhase]) -> dict[str, Any]:
    views = list(nodes.values())
    window_ns = m.greatest(view.window_ns for view in views)
    elapsed_ns = m.greatest(view.elapsed_ns for view in views)
    drained = {view.drained for view in views}
    return {
        "phase_name": next((view.name for view in views if view.name), None),
        "window_s": place.trial.window_s if window_ns is None else window_ns / 1e9,
        "elapsed_s": None if elapsed_ns is None else elapsed_ns / 1e9,
        "start_skew_us": m.greatest(view.start_skew_us for view in views),
        "stop_skew_us": m.greatest(view.stop_skew_us for view in views),
        "skew_bound_us": m.greatest(view.skew_bound_us for view in views),
        "drained": False if False in drained else (True if True in drained else None),
    }


def start_of(nodes: dict[str, NodePhase]) -> int | None:
    """When the phase's start was agreed to be, in run time."""
    return next((v.start_run_ns for v in nodes.values() if v.start_run_ns is not None), None)


def _ended_ns(flow: Flow) -> int:
    """A transfer's flows have one window: the slowest is the one that was done last."""
    side = flow.destination
    return side.last_run_ns or 0 if side else 0


def throughput(flows: list[Flow], shares: m.PortShares) -> dict[str, Any]:
    """Flows whose window was off are in the total alone."""
    every = [m.payload_bps(flow) for flow in flows]
    rates = [None if flow.window_off else rate for flow, rate in zip(flows, every, strict=True)]
    known = [(rate, flow) for rate, flow in zip(rates, flows, strict=True) if rate is not None]
    slowest = min(known, key=lambda pair: (pair[0], -_ended_ns(pair[1])))[1] if known else None
    received = shares.destination.values()

    def mega(bps: float | None) -> float | None:
        return None if bps is None else bps / m.MEGA

    return {
        "offered_load": m.mean(shares.offered.values()),
        "throughput": {
            "layer": "payload",
            "unit": "Mbit/s",
            "min": mega(m.least(rates)),
            "mean": mega(m.mean(rates)),
            "max": mega(m.greatest(rates)),
            "total": mega(m.total(every)),
            "percent_of_line": m.mean(received),
            "min_percent_of_line": m.least(received),
        },
        "slowest": None if slowest is None else {"src": slowest.src, "dst": slowest.dst},
    }


def counts(flows: list[Flow], phase: PhaseRecords, transport: str) -> dict[str, Any]:
    sources = [flow.source for flow in flows]
    ends = [flow.destination for flow in flows]
    sees_frames = transports.of(transport).frames

    def offered(name: str) -> int | None:
        return m.total_int(getattr(side.whole, name) if side else None for side in sources)

    def delivered(name: str) -> int | None:
        return m.total_int(getattr(side.whole, name) if side else None for side in ends)

    def judged(name: str) -> int | None:
        return m.total_int(getattr(side, name) if side else None for side in ends)

    ports = list(phase.ports.values())
    offered_frames = offered("frames") if sees_frames else None
    lost = m.total_int(map(m.lost_frames, flows)) if sees_frames else None
    retransmitted = [
        side.measures.get("retransmitted_segments") if side else None for side in sources
    ]
    return {
        "offered_frames": offered_frames,
        "delivered_frames": delivered("frames") if sees_frames else None,
        "offered_bytes": offered("payload_bytes"),
        "delivered_bytes": delivered("payload_bytes"),
        "offered_messages": None if sees_frames else offered("messages"),
        "delivered_messages": None if sees_frames else delivered("messages"),
        "lost_frames": lost,
        "loss_percent": None if lost is None or not offered_frames else 100 * lost / offered_frames,
        "worst_loss_percent": m.greatest(map(m.loss_percent, flows)) if sees_frames else None,
        "host_dropped_frames": m.total_known(map(m.host_drops, ports)),
        "duplicated_frames": judged("duplicated") if sees_frames else None,
        "reordered_frames": judged("reordered") if sees_frames else None,
        "late_frames": judged("late") if sees_frames else None,
        "forged_frames": judged("forged") if sees_frames else None,
        "corrupted_frames": judged("corrupted") if sees_frames else None,
        "corrupted_bytes": None if sees_frames else judged("corrupted"),
        "misdelivered_frames": (
            m.total_int(port.misdelivered for port in ports) if sees_frames else None
        ),
        "unexpected_frames": m.total_int(port.unexpected for port in ports)
        if sees_frames
        else None,
        "arp_nd_frames": m.total_int(port.arp_nd_sent for port in ports) if sees_frames else None,
        "pause_frames": m.total_known(port.pause for port in ports),
        "retransmitted_segments": None
        if sees_frames
        else m.total_int(None if count is None else int(count) for count in retransmitted),
    }


def rdma(flows: list[Flow], phase: PhaseRecords, transport: str) -> dict[str, Any]:
    """What only verbs has: messages that a service may lose, the device's counters, the queues."""
    seen = transports.of(transport).rdma
    ports = list(phase.ports.values()) if seen else []
    ends = [flow.destination if seen else None for flow in flows]
    counters = {
        name: m.total_known(getattr(port, kept) for port in ports)
        for name, kept in _DEVICE_COUNTERS.items()
    }
    return {
        "lost_messages": m.total_int(map(_lost_messages, flows)) if seen else None,
        "duplicated_messages": m.total_int(end.duplicated if end else None for end in ends),
        "reordered_messages": m.total_int(end.reordered if end else None for end in ends),
        **counters,
        "queue_pairs": _queue_pairs(flows) if seen else None,
    }


# The summary's names for counters of the `port` records.
_DEVICE_COUNTERS = {
    "retransmitted_packets": "retransmitted",
    "out_of_sequence_packets": "out_of_sequence",
    "receiver_not_ready": "not_ready",
    "cnp_sent": "cnp_sent",
    "cnp_handled": "cnp_handled",
    "ecn_marked_packets": "ecn_marked",
}
# What sources say of their queue pairs, and how flows are put together. Settings, as they took
# effect, are the same on all flows or null.
_SETTINGS = ("depth", "signal_every", "inline_bytes", "path_mtu_bytes", "gid_index")


def _lost_messages(flow: Flow) -> int | None:
    if flow.source is None or flow.destination is None or not flow.settled:
        return None
    sent, came = flow.source.whole.messages, flow.destination.whole.messages
    return None if sent is None or came is None else max(0, sent - came)


def _queue_pairs(flows: list[Flow]) -> dict[str, Any]:
    sides = [flow.source.measures for flow in flows if flow.source]
    ends = [side for flow in flows for side in (flow.source, flow.destination) if side]

    def said(name: str) -> list[float | None]:
        return [side.get(name) for side in sides]

    def same(name: str) -> float | None:
        values = set(said(name))
        return next(iter(values)) if len(values) == 1 else None

    return {name: same(name) for name in _SETTINGS} | {
        "count": m.total(said("queue_pairs")),
        "reused": m.total(said("reused_queue_pairs")),
        "bytes_each": m.greatest(side.measures.get("queue_pair_bytes") for side in ends),
        "slowest_setup_us": m.greatest(said("setup_us")),
        "credit_waits": m.total(said("credit_waits")),
    }


@dataclass(frozen=True)
class Cpu:
    """CPU time of a phase."""

    machines_s: float | None  # all that they did, kernel included
    processes_s: float | None  # of it the node processes'
    polling: bool | None  # whether workers burnt a core each, whatever came


def cpu(flows: list[Flow], spent: Cpu) -> dict[str, Any]:
    cpu_s = spent.machines_s
    delivered = m.total(
        flow.destination.whole.payload_bytes if flow.destination else None for flow in flows
    )
    per_gb = None if cpu_s is None or not delivered else cpu_s / (delivered / m.GIGA)
    return {
        "cpu_s": cpu_s,
        "cpu_process_s": spent.processes_s,
        "cpu_s_per_gb": per_gb,
        "polling": spent.polling,
    }


def state(flows: list[Flow], nodes: dict[str, NodePhase], wanted: set[str]) -> str:
    said = {view.state for view in nodes.values()} - {None, "complete"}
    for state in _STATES:
        if state in said:
            return state
    whole = all(flow.source and flow.destination for flow in flows)
    return "complete" if whole and nodes.keys() >= wanted else "partial"


def where(key: PhaseKey, phase: PhaseRecords) -> dict[str, Any]:
    return {"file": RECORDS, "first_line": phase.first_line, "last_line": phase.last_line} | (
        key._asdict()
    )


# --- plans -------------------------------------------------------------------------------------

_PLAN_SETTING = (
    "trial", "test", "repeat", "pattern", "parameters", "transport", "network", "ranks",
    "traffic", "size", "size_unit", "frame_bytes", "load", "intended_load", "load_unit",
    "concurrent_networks", "polling",
)  # fmt: skip
_PLAN_SUMS = ("offered_frames", "delivered_frames", "offered_bytes", "delivered_bytes",
              "lost_frames", "host_dropped_frames")  # fmt: skip


def plan_entry(
    trial: Trial, part: Part, entries: list[dict[str, Any]], ended: dict[str, Record]
) -> dict[str, Any]:
    """A whole plan in one network: the paper's figure is its time and its throughput."""
    rates = [entry["throughput"] for entry in entries]
    worst = min(
        (entry for entry in entries if entry["throughput"]["min"] is not None),
        key=lambda entry: entry["throughput"]["min"],
        default=None,
    )
    elapsed_ns = m.greatest(record.get("elapsed_ns") for record in ended.values())
    windows = [entry["window_s"] for entry in entries]
    plan = {name: entries[0][name] for name in _PLAN_SETTING}
    plan |= {name: m.total_int(entry[name] for entry in entries) for name in _PLAN_SUMS}
    plan |= {name: m.total(entry[name] for entry in entries) for name in ("cpu_s", "cpu_process_s")}
    return plan | {
        "phases": trial.phases,
        "phases_measured": len(entries),
        "elapsed_s": None if elapsed_ns is None else elapsed_ns / 1e9,
        "window_s": m.total(windows),
        "throughput": {
            "layer": "payload",
            "unit": "Mbit/s",
            "min": m.least(rate["min"] for rate in rates),
            "mean": m.mean(rate["mean"] for rate in rates),
            "max": m.greatest(rate["max"] for rate in rates),
            "total": _weighted([rate["total"] for rate in rates], windows),
            "percent_of_line": m.mean(rate["percent_of_line"] for rate in rates),
            "min_percent_of_line": m.least(rate["min_percent_of_line"] for rate in rates),
        },
        "worst_phase": None if worst is None else worst["phase"],
        "slowest": None if worst is None else worst["slowest"],
    }


def repeat_value(plan: dict[str, Any], entries: list[dict[str, Any]]) -> float | None:
    """What one repeat adds to the mean over repeats; None where the plan was not measured whole."""
    whole = plan["phases_measured"] == plan["phases"]
    if not whole or any(entry["state"] != "complete" for entry in entries):
        return None
    mean: float | None = plan["throughput"]["mean"]
    return mean


def _weighted(values: list[float | None], weights: list[float]) -> float | None:
    """The mean over time: each phase counts by its window."""
    parts = m.total(
        None if value is None else value * weight
        for value, weight in zip(values, weights, strict=True)
    )
    return None if parts is None or not sum(weights) else parts / sum(weights)


def trial_words(trial: Trial) -> str:
    """A trial in a sentence."""
    networks = " + ".join(part.network for part in trial.parts)
    ranks = max(len(part.ranks) for part in trial.parts)
    return (
        f"trial {trial.id} ({trial.pattern['name']}, {trial.transport}, {networks}, {ranks} ranks)"
    )


def rounded(value: Any) -> Any:
    """Figures to six decimals: none of them is measured more finely. One without end is unknown."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value
