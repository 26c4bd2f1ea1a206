# SPDX-License-Identifier: BSD-3-Clause
"""The entries of the summary: one for each phase, and one for each whole plan, in a network.

The keys and their meaning are the schema's; a key with no observation is there, and is None.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from ..base import transports
from ..base.model import SCHEDULE, Load, Part, Trial
from ..records.document.trials import (
    Counts,
    CpuTime,
    FlowEnds,
    PhaseEntry,
    PlanEntry,
    QueuePairs,
    Rates,
    RdmaCounts,
    Setting,
    SizeUnit,
    State,
    Timing,
    Traffic,
)
from ..records.flows import Ends, PhaseFlows
from ..records.record_forms import Record
from ..records.rows import PhaseKey, Rows
from . import measures as m

# What nodes say of a phase, the cause first.
_STATES: tuple[State, ...] = ("flooded", "stopped", "unreachable")


@dataclass(frozen=True)
class PhaseContext:
    """Where a phase's records belong: what the configuration says of them."""

    trial: Trial
    part: Part
    key: PhaseKey


def setting(place: PhaseContext, lines: dict[str, int]) -> Setting:
    """Return what a phase was asked to do."""
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
        "traffic": cast(Traffic, trial.traffic),
        "size": size,
        "size_unit": cast(SizeUnit, trial.size_unit),
        "frame_bytes": size if trial.size_unit == "frame" else None,
        "load": {name: value for name, value in asdict(trial.load).items() if value is not None},
        "intended_load": _asked_percent(trial, lines),
        "load_unit": "percent_of_line",
    }


def _asked_percent(trial: Trial, lines: dict[str, int]) -> float | None:
    """Return the load in percent of line.

    Mean over the part's ports, which may have several rates.
    """
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


def timing(place: PhaseContext, nodes: Rows) -> Timing:
    """Return when a phase began, how long it took and how far its ranks were apart."""
    window_ns = m.greatest(nodes.floats("window_ns"))
    elapsed_ns = m.greatest(nodes.floats("elapsed_ns"))
    drained = set(nodes.texts("drained"))
    return {
        "phase_name": next((name for name in nodes.texts("name") if name), None),
        "window_s": place.trial.window_s if window_ns is None else window_ns / 1e9,
        "elapsed_s": None if elapsed_ns is None else elapsed_ns / 1e9,
        "start_skew_us": m.greatest(nodes.floats("start_skew_us")),
        "stop_skew_us": m.greatest(nodes.floats("stop_skew_us")),
        "skew_bound_us": m.greatest(nodes.floats("skew_bound_us")),
        "drained": False if False in drained else (True if True in drained else None),
    }


def start_of(nodes: Rows) -> int | None:
    """When the phase's start was agreed to be, in run time."""
    said = nodes.floats("start_run_ns")
    return next((m.as_int(value) for value in said.tolist() if not math.isnan(value)), None)


def throughput(flows: PhaseFlows, shares: m.PortShares) -> Rates:
    """PhaseFlows whose window was off are in the total alone."""
    every = m.payload_bps(flows)
    rates = np.where(flows.window_off, np.nan, every)
    # A transfer's flows have one window: the slowest is the one that was done last.
    ended_ns = m.or_zero(flows.destination.floats("last_run_ns"))
    order = np.lexsort((-ended_ns, rates))[: len(rates) - int(np.isnan(rates).sum())]
    slowest = flows.pairs[order[0]] if len(order) else None
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
        "slowest": FlowEnds(src=slowest[0], dst=slowest[1]) if slowest else None,
    }


def counts(flows: PhaseFlows, ports: Rows, transport: str) -> Counts:
    """Return what was counted of a phase's frames, messages and bytes."""
    frames = transports.of(transport).frames

    def of(end: Ends, name: str) -> int | None:
        return m.total_int(end.floats(name))

    source, destination = flows.source, flows.destination
    offered = of(source, "frames") if frames else None
    lost = m.total_int(m.lost_frames(flows)) if frames else None

    def judged(name: str) -> int | None:
        return of(destination, name) if frames else None

    def at_ports(name: str) -> int | None:
        return m.total_int(ports.floats(name)) if frames else None

    return {
        "offered_frames": offered,
        "delivered_frames": of(destination, "frames") if frames else None,
        "offered_bytes": of(source, "payload_bytes"),
        "delivered_bytes": of(destination, "payload_bytes"),
        "offered_messages": None if frames else of(source, "messages"),
        "delivered_messages": None if frames else of(destination, "messages"),
        "lost_frames": lost,
        "loss_percent": None if lost is None or not offered else 100 * lost / offered,
        "worst_loss_percent": m.greatest(m.loss_percent(flows)) if frames else None,
        "host_dropped_frames": m.total_known(m.host_drops(ports)),
        "duplicated_frames": judged("duplicated"),
        "reordered_frames": judged("reordered"),
        "late_frames": judged("late"),
        "forged_frames": judged("forged"),
        "corrupted_frames": judged("corrupted"),
        "corrupted_bytes": None if frames else of(destination, "corrupted"),
        "misdelivered_frames": at_ports("misdelivered"),
        "unexpected_frames": at_ports("unexpected"),
        "arp_nd_frames": at_ports("arp_nd_sent"),
        "pause_frames": m.total_known(ports.floats("pause")),
        "retransmitted_segments": None if frames else of(source, "retransmitted_segments"),
    }


def rdma(flows: PhaseFlows, ports: Rows, transport: str) -> RdmaCounts:
    """Return what only verbs has.

    Messages that a service may lose, the device's counters, the queues.
    """
    seen = transports.of(transport).rdma
    end = flows.destination

    def device(name: str) -> int | None:
        return m.total_known(ports.floats(name)) if seen else None

    return {
        "lost_messages": m.total_int(_lost_messages(flows)) if seen else None,
        "duplicated_messages": m.total_int(end.floats("duplicated")) if seen else None,
        "reordered_messages": m.total_int(end.floats("reordered")) if seen else None,
        "retransmitted_packets": device("retransmitted"),
        "out_of_sequence_packets": device("out_of_sequence"),
        "receiver_not_ready": device("not_ready"),
        "cnp_sent": device("cnp_sent"),
        "cnp_handled": device("cnp_handled"),
        "ecn_marked_packets": device("ecn_marked"),
        "queue_pairs": _queue_pairs(flows) if seen else None,
    }


def _lost_messages(flows: PhaseFlows) -> m.Floats:
    if not flows.settled:
        return np.full(len(flows), np.nan)
    sent, came = (end.floats("messages") for end in (flows.source, flows.destination))
    return m.missing(sent, came, np.zeros(len(flows)))


def _queue_pairs(flows: PhaseFlows) -> QueuePairs:
    """Return what sources say of them.

    Settings, as they took effect, are equal on all flows or null.
    """
    sources = flows.source.taken(flows.source.seen)
    each = [end.floats("queue_pair_bytes") for end in (flows.source, flows.destination)]

    def same(name: str) -> float | None:
        values = set(m.observed(sources.floats(name)))
        return next(iter(values)) if len(values) == 1 else None

    return {
        "depth": same("depth"),
        "signal_every": same("signal_every"),
        "inline_bytes": same("inline_bytes"),
        "path_mtu_bytes": same("path_mtu_bytes"),
        "gid_index": same("gid_index"),
        "count": m.total(sources.floats("queue_pairs")),
        "reused": m.total(sources.floats("reused_queue_pairs")),
        "bytes_each": m.greatest(np.concatenate(each)),
        "slowest_setup_us": m.greatest(sources.floats("setup_us")),
        "credit_waits": m.total(sources.floats("credit_waits")),
    }


@dataclass(frozen=True)
class Cpu:
    """CPU time of a phase."""

    machines_s: float | None  # all that they did, kernel included
    processes_s: float | None  # of it the node processes'
    polling: bool | None  # whether workers burnt a core each, whatever came


def cpu(flows: PhaseFlows, spent: Cpu) -> CpuTime:
    """Return what a phase cost in CPU time."""
    cpu_s = spent.machines_s
    delivered = m.total(flows.destination.floats("payload_bytes"))
    per_gb = None if cpu_s is None or not delivered else cpu_s / (delivered / m.GIGA)
    return {
        "cpu_s": cpu_s,
        "cpu_process_s": spent.processes_s,
        "cpu_s_per_gb": per_gb,
        "polling": spent.polling,
    }


def state(flows: PhaseFlows, nodes: Rows, wanted: Collection[str]) -> State:
    """Return how a phase ended, and who is missing in it."""
    said = set(nodes.texts("state")) - {None, "complete"}
    for state in _STATES:
        if state in said:
            return state
    whole = bool(flows.whole.all()) and set(wanted).issubset(nodes.texts("node"))
    return "complete" if whole else "partial"


# --- plans -------------------------------------------------------------------------------------

_PLAN_SETTING = (
    "trial", "test", "repeat", "pattern", "parameters", "transport", "network", "ranks",
    "traffic", "size", "size_unit", "frame_bytes", "load", "intended_load", "load_unit",
    "concurrent_networks", "polling",
)  # fmt: skip
_PLAN_SUMS = ("offered_frames", "delivered_frames", "offered_bytes", "delivered_bytes",
              "lost_frames", "host_dropped_frames")  # fmt: skip


def plan_entry(
    trial: Trial, part: Part, entries: list[PhaseEntry], ended: dict[str, Record]
) -> PlanEntry:
    """Return a whole plan in one network.

    The paper's figure is its time and its throughput, which is of the phases that the tester did
    not limit.
    """
    fair = [entry for entry in entries if not entry["tester_limited"]]
    rates = [entry["throughput"] for entry in fair]
    worst = min(
        (entry for entry in fair if entry["throughput"]["min"] is not None),
        key=lambda entry: entry["throughput"]["min"] or 0.0,
        default=None,
    )
    elapsed_ns = m.greatest(record.get("elapsed_ns") for record in ended.values())
    first: Mapping[str, Any] = entries[0]
    every: list[Mapping[str, Any]] = [*entries]
    setting = {name: first[name] for name in _PLAN_SETTING}
    sums = {name: m.total_int(entry[name] for entry in every) for name in _PLAN_SUMS}
    sums_s = {name: m.total(entry[name] for entry in every) for name in ("cpu_s", "cpu_process_s")}
    figures = {
        "phases": trial.phases,
        "phases_measured": len(entries),
        "elapsed_s": None if elapsed_ns is None else elapsed_ns / 1e9,
        "window_s": m.total(entry["window_s"] for entry in entries),
        "throughput": {
            "layer": "payload",
            "unit": "Mbit/s",
            "min": m.least(rate["min"] for rate in rates),
            "mean": m.mean(rate["mean"] for rate in rates),
            "max": m.greatest(rate["max"] for rate in rates),
            "total": _weighted(
                [rate["total"] for rate in rates], [entry["window_s"] for entry in fair]
            ),
            "percent_of_line": m.mean(rate["percent_of_line"] for rate in rates),
            "min_percent_of_line": m.least(rate["min_percent_of_line"] for rate in rates),
        },
        "worst_phase": None if worst is None else worst["phase"],
        "slowest": None if worst is None else worst["slowest"],
    }
    return cast(PlanEntry, setting | sums | sums_s | figures)


def repeat_value(plan: PlanEntry, entries: list[PhaseEntry]) -> float | None:
    """Return what one repeat adds to the mean over repeats.

    None where the plan was not measured whole.
    """
    whole = plan["phases_measured"] == plan["phases"]
    if not whole or any(entry["state"] != "complete" for entry in entries):
        return None
    return plan["throughput"]["mean"]


def _weighted(values: list[float | None], windows: list[float | None]) -> float | None:
    """Return the mean over time: each phase counts by its window."""
    weights = [window or 0.0 for window in windows]
    parts = m.total(
        None if value is None else value * weight
        for value, weight in zip(values, weights, strict=True)
    )
    return None if parts is None or not sum(weights) else parts / sum(weights)


def trial_words(trial: Trial) -> str:
    """Return a trial in a sentence."""
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
