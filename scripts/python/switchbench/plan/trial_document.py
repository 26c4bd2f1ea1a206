# SPDX-License-Identifier: BSD-3-Clause
"""The `trial` document of a draft (doc/reference/node-protocol.md)."""

from __future__ import annotations

import math
from typing import cast

from ..base.documents import ScheduleDocument, TrialDocument
from ..base.model import Load, Trial
from ..config.schema import LatencyOptions
from .draft import NODE_WORDS, NS, ROUNDS, STEP_WARMUP, Draft

_FRAME_OVERHEAD = 18  # Ethernet header 14 and FCS 4: what a frame has beyond the MTU
# One probe of a flow fills a segment, jumbo or not; to say that it is there a few bytes will do.
_PROBE_MTU_UNKNOWN = 10_000
_PROBE_BYTES = 64


def trial_document(draft: Draft, identity: int, repeat: int) -> TrialDocument:
    """The `trial` document (doc/reference/node-protocol.md)."""
    values = draft.values
    document: TrialDocument = {
        "id": identity,
        "repeat": repeat,
        "transport": draft.transport,
        "parts": [
            {"network": part.network, "ranks": [port.name for port in part.ranks]}
            for part in draft.parts
        ],
        "pattern": draft.pattern,
        "seed": values.seed,
        "connectivity_check": values.connectivity_check,
        "sync": "barrier" if draft.by_steps else values.sync or "barrier",
        "traffic": values.traffic,
        "sizes": list(draft.point.sizes),
        "load": load_document(draft.point.load),
        "warmup_ns": values.warmup or 0,
        "window_ns": values.window or 0,
        "cooldown_ns": values.cooldown or 0,
        "drain_timeout_ns": values.drain_timeout,
        "drain_max_ns": values.drain_max,
    }
    probe_sizes = _probe_sizes(draft)
    if probe_sizes:
        document["connectivity_check_sizes"] = probe_sizes
    if values.interval:
        document["interval_ns"] = values.interval
    if values.traffic == "pingpong":
        document.update(_pingpong(draft))
    if draft.by_steps:
        document["schedule"] = _schedule(draft)
        del document["sizes"]
    if values.transfer_size is not None:
        document["transfer_bytes"] = values.transfer_size
    burst, dpdk = values.burst, values.dpdk
    if burst is not None:
        document["burst"] = {"frames": burst.frames, "gap_ns": burst.gap, "count": burst.count}
    # Whether ports without a flow may get frames that are measured there.
    if dpdk and ((dpdk.addresses or 1) > 1 or dpdk.destination not in (None, "port")):
        document["listen"] = True
    if values.flood_limit is not None:
        document["flood_limit"] = values.flood_limit
    document["latency"] = latency_document(values.latency)
    options = {NODE_WORDS.get(key, key): value for key, value in draft.options.in_effect().items()}
    return cast("TrialDocument", {**document, draft.transport: options})


def _probe_sizes(draft: Draft) -> list[int]:
    """Of a byte stream: on a slow line with many flows whole messages would take minutes."""
    if not draft.carrier.byte_stream or draft.by_steps or not draft.values.connectivity_check:
        return []
    frames = [port.frame_max for part in draft.parts for port in part.ranks]
    mtu = max(frames) - _FRAME_OVERHEAD if all(frames) else _PROBE_MTU_UNKNOWN
    first = min(mtu, max(draft.point.sizes))
    return [first, *[min(_PROBE_BYTES, first)] * 2]


def _pingpong(draft: Draft) -> TrialDocument:
    """What a document says of messages there and back."""
    timeout_ns = round(NS * ROUNDS * draft.round_s(max(draft.point.sizes)) * _flows_a_port(draft))
    silence_ns = draft.values.drain_timeout
    keys: TrialDocument = {
        "drain_max_ns": max(draft.values.drain_max, silence_ns + timeout_ns),
        "pingpong": {"timeout_ns": silence_ns},
    }
    scatter = draft.values.scatter
    if scatter is None:
        keys["window_ns"] = draft.window_ns()
        return keys
    least, most = scatter.sizes
    keys["pingpong"] |= {
        "count": scatter.count,
        "min_size": least,
        "max_size": most,
        "partners": scatter.partners,
        "samples": True,
        "compute": scatter.compute,
    }
    return keys


def _schedule(draft: Draft) -> ScheduleDocument:
    """What a document says of steps; whole batches are counted."""
    values = draft.values
    batch = values.batch or 1
    return {
        "batch": batch,
        "count": batch * math.ceil((values.repetitions or 0) / batch),
        "warmup": STEP_WARMUP,
        "compute": values.compute or False,
    }


def _flows_a_port(draft: Draft) -> float:
    """Flows that a port has under way at once, sent and received: they share its line."""
    sizes = ((draft.size(part), len(part.ranks)) for part in draft.parts)
    return max(max(1.0, 2 * size.flows / size.phases / ranks) for size, ranks in sizes)


def with_options(trial: Trial, **options: object) -> TrialDocument:
    """A trial's document with other options of its transport."""
    return cast("TrialDocument", {**trial.document, trial.transport: trial.options | options})


def load_document(load: Load) -> dict[str, float]:
    """A load as the `trial` document has it."""
    if load.percent is not None:
        return {"percent": load.percent}
    return {"bps": load.bps} if load.bps is not None else {"fps": load.fps or 0.0}


def latency_document(latency: LatencyOptions) -> dict[str, object]:
    """What is measured beside the load, as the `trial` document has it."""
    document: dict[str, object] = {"stamps": latency.one_way != "off"}
    if latency.probes != "auto":
        document["probe_fps"] = latency.probes
    return document
