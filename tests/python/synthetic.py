# SPDX-License-Identifier: BSD-3-Clause
"""Runs and records made by hand, for the tests of results and controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from switchbench import __version__
from switchbench.base.model import Load, Part, Port, Process, Run, Site, Trial
from switchbench.records.collector import Collector
from switchbench.records.rows import Pair, PhaseFlows, PhaseRows, Rows
from switchbench.records.summary_form import summary_schema

LINE_BPS = 100_000_000
FRAME = 1518
FRAME_PAYLOAD = 1500
PLACE: dict[str, Any] = {"trial": 0, "repeat": 0, "network": "lab", "phase": 0}


def make_site(
    hosts: int | Sequence[str] = 2, launch: str = "lab", line_bps: int = LINE_BPS, **more: Any
) -> Site:
    """Return hosts of these names, or node1 ..., with one port e0 each, one process a host."""
    names = [f"node{i + 1}" for i in range(hosts)] if isinstance(hosts, int) else hosts
    processes = []
    for name in names:
        port = Port(f"{name}:e0", name, "lab", ("dpdk", "tcp"), {}, line_rate_bps=line_bps)
        processes.append(Process(name, (port,), {"address": f"127.0.0.1:{0}"}))
    return Site(launch, tuple(processes), **more)


def make_trial(site: Site, number: int = 0, **changes: Any) -> Trial:
    """Return pairs over all ports of the site, one second of dpdk frames at 95 %."""
    trial = Trial(
        id=number, test=0, repeat=0, transport="dpdk", parts=(Part("lab", site.ports),),
        pattern={"name": "pairs", "partners": "neighbours"},
        parameters={"partners": "neighbours"}, sizes=(FRAME,), size_unit="frame",
        load=Load(percent=95.0), traffic="stream", warmup_s=0.1, window_s=1.0, cooldown_s=0.1,
        phases=1, flows=2, expected_s=2.0,
    )  # fmt: skip
    return replace(trial, **changes)


def make_run(site: Site, *trials: Trial, **more: Any) -> Run:
    """Return a run of these trials."""
    return Run(site, trials, seed=1, effective={"switchbench": 1}, **more)


def hello(node: str, **changes: Any) -> dict[str, Any]:
    """Return a node's hello."""
    return {
        "type": "hello", "node": node, "protocol": 2, "version": __version__, "host": "here",
        "boot": "00112233aabbccdd", "pid": 7, "control": "127.0.0.1:4000", "key": "", "cpus": 2,
        "workers": 1, "worker": "sleep", "ports": 1,
    } | changes  # fmt: skip


def frames_count(prefix: str, frames: int | None) -> dict[str, Any]:
    """Return the counts of so many frames of FRAME bytes."""
    if frames is None:
        return {prefix + name: None for name in ("frames", "frame_bytes", "payload_bytes")}
    return {
        prefix + "frames": frames,
        prefix + "frame_bytes": frames * FRAME,
        prefix + "payload_bytes": frames * FRAME_PAYLOAD,
    }


def frame_side(side: str, src: str, dst: str, frames: int, window: int, **more: Any) -> Any:
    """Return a `flow` record of dpdk; more: other keys, or others' values."""
    record = PLACE | {
        "type": "flow", "node": (src if side == "source" else dst).split(":")[0], "side": side,
        "src": src, "dst": dst, "role": "generate", "messages": None, "window_messages": None,
        "window_ns": 1_000_000_000, "intended": frames if side == "source" else None,
    }  # fmt: skip
    judged = 0 if side == "destination" else None
    record |= dict.fromkeys(("duplicated", "reordered", "late", "forged", "corrupted"), judged)
    return record | frames_count("", frames) | frames_count("window_", window) | more


def tcp_side(side: str, src: str, dst: str, sent: int, window: int, **more: Any) -> Any:
    """Return a `flow` record of tcp in payload bytes."""
    nothing = dict.fromkeys(("frames", "frame_bytes", "window_frames", "window_frame_bytes"))
    given = {"payload_bytes": sent, "window_payload_bytes": window, "messages": sent // 65536}
    return frame_side(side, src, dst, 0, 0) | nothing | given | more


def flows_of(*records: dict[str, Any], pairs: Iterable[Pair] = ()) -> PhaseFlows:
    """Return the flows of the ends' records; `pairs`: further flows, without a record."""
    collector = Collector(make_run(make_site()))
    for record in records:
        collector.take({"trial": 0, "phase": 0, "network": "lab"} | record)
    rows = [row for phase in collector.rest() for row in phase["flows"].to_pylist()]
    rows += [{"src": src, "dst": dst} for src, dst in pairs]
    return PhaseRows(tables={"flows": Rows.of("flows", rows)}).flows()


def port_record(port: str, **changes: Any) -> dict[str, Any]:
    """Return a `port` record on which nothing happened."""
    counts = ("misdelivered", "unexpected", "arp_nd_sent", "arp_nd_received", "send_refused")
    hardware = ("dropped_receive", "dropped_send", "errors", "pause")
    head = {"type": "port", "node": port.split(":")[0], "port": port}
    return head | PLACE | dict.fromkeys(counts + hardware, 0) | changes


def phase_record(node: str, **changes: Any) -> dict[str, Any]:
    """Return a `phase` record that ended well."""
    return {
        "type": "phase", "node": node, "trial": 0, "repeat": 0, "phase": 0, "name": "pairs",
        "window_ns": 1_000_000_000, "elapsed_ns": 1_500_000_000, "start_skew_us": 120.5,
        "stop_skew_us": 80.25, "skew_bound_us": 0.5, "state": "complete", "drained": True,
        "cpu_span_s": 1.5, "cpu_s": 0.2, "cpu_idle_s": 2.5, "cpus": 2,
    } | changes  # fmt: skip


def trial_record(node: str, **changes: Any) -> dict[str, Any]:
    """Return a `trial` record that ended well."""
    return {
        "type": "trial", "node": node, "trial": 0, "repeat": 0, "phases": 1,
        "elapsed_ns": 1_800_000_000, "state": "complete",
    } | changes  # fmt: skip


def bucket_of(ns: int) -> int:
    """Return the bucket of a time, as engine/measure/histogram.h has it."""
    if ns < 128:
        return ns
    power = ns.bit_length() - 1
    return (power - 6) * 64 + (ns >> (power - 6))


def buckets_of(times_ns: Iterable[int]) -> str:
    """Return the buckets of a node's record of these times."""
    counts = Counter(map(bucket_of, times_ns))
    return " ".join(f"{bucket}:{count}" for bucket, count in sorted(counts.items()))


def times_record(times_ns: Sequence[int], **changes: Any) -> dict[str, Any]:
    """Return a record of round trips from node1 to node2."""
    return PLACE | {
        "type": "histogram", "node": "node1", "kind": "round_trip", "src": "node1:e0",
        "dst": "node2:e0", "unit": "ns", "count": len(times_ns), "sum_ns": sum(times_ns),
        "min_ns": min(times_ns, default=None), "max_ns": max(times_ns, default=None),
        "overflow": 0, "lost": None, "bound_ns": None, "buckets": buckets_of(times_ns),
    } | changes  # fmt: skip


def pair_records() -> list[dict[str, Any]]:
    """Return records of node1 and node2: each sends 8,000 frames, and the second flow loses 10."""
    first, second = ("node1:e0", "node2:e0"), ("node2:e0", "node1:e0")
    return [
        hello("node1"),
        hello("node2"),
        frame_side("source", *first, 8000, 7720),
        frame_side("destination", *first, 8000, 7720),
        frame_side("source", *second, 8000, 7720),
        frame_side("destination", *second, 7990, 7710, duplicated=2, reordered=3),
        port_record("node1:e0"),
        port_record("node2:e0"),
        phase_record("node1"),
        phase_record("node2"),
        trial_record("node1"),
        trial_record("node2"),
    ]


def about() -> dict[str, Any]:
    """Return the `run` of a summary, but for what the records say."""
    machine = {"host": "h", "system": "Linux", "cpus": 2, "cpu": None, "memory_bytes": None}
    return {
        "id": "run-1", "started": "2026-01-01T00:00:00Z", "elapsed_s": 3.0,
        "command": ["switchbench", "run", "results/x/configuration.yaml"], "launch": "lab",
        "lab": "one-switch", "excluded_hosts": [], "versions": {"switchbench": "0.1.0"},
        "machine": machine,
    }  # fmt: skip


def blank(form: str | dict[str, Any]) -> Any:
    """Return the emptiest value of a form of the summary's schema, or of the type of that name."""
    defs = summary_schema()["$defs"]
    form = defs[form] if isinstance(form, str) else form
    if "$ref" in form:
        return blank(form["$ref"].rpartition("/")[2])
    if "anyOf" in form:
        return None if {"type": "null"} in form["anyOf"] else blank(form["anyOf"][0])
    if "const" in form or "enum" in form:
        return form.get("const", form.get("enum", [None])[0])
    simple = {"array": [], "integer": 0, "number": 0, "string": "", "boolean": False}
    if form.get("type") in simple:
        return form.get("minimum", simple[form["type"]])
    parts = form.get("properties", {})
    return {name: blank(parts[name]) for name in form.get("required", ())}
