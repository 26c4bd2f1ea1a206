# SPDX-License-Identifier: BSD-3-Clause
"""What no port, no process and no pattern can do, refused before anything starts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..base import quantities, transports
from ..base.model import WAITING, Port
from ..config.point import Point, frame_limits, given, verbs_limits, waiting_limits
from ..config.profiles import SHARED_PERCENT
from ..config.settings import LOAD, MESSAGES, TRANSPORT, form_of
from ..config.steps import FUNCTIONS, algorithm_refusal, size_refusal
from .draft import Draft
from .engine import PlanSize
from .shares import LAYER1_OVERHEAD, port_parts

_MEMINFO = Path("/proc/meminfo")


def spare_bytes() -> int | None:
    """As much as the engine takes at most (engine/platform/memory.h); None: not known."""
    try:
        found = re.search(r"^MemAvailable: *(\d+) kB$", _MEMINFO.read_text(), re.M)
    except OSError:
        return None
    return int(found[1]) * 1024 // 8 * 7 if found else None


WINDOW_LEAST_NS = 1_000_000  # a shorter one opens and closes between two looks at a port


def check(draft: Draft) -> None:
    """Refuses what no port can do."""
    frame_limits(draft.point, draft.document)
    verbs_limits(draft.point, draft.document)
    waiting_limits(draft.point, draft.document)
    _check_window(draft)
    _check_load(draft)
    _check_pack(draft)
    _check_interval(draft)
    _check_steps(draft)
    _check_traffic(draft)
    _check_addresses(draft)
    if draft.values.sync == "none" and draft.values.window is None:
        raise draft.problem(
            "sync",
            f"none needs phases of a known length, and a {draft.values.traffic} has none",
        )


def check_memory(draft: Draft, sizes: Sequence[PlanSize]) -> None:
    """All ranks of a lab are on this host; elsewhere each node looks at its own."""
    if not draft.site.launcher.in_lab or not draft.by_steps:
        return
    needed = sum(size.memory_bytes for size in sizes)
    spare = spare_bytes()
    if spare is not None and needed > spare:
        raise draft.problem(
            form_of(draft.values, MESSAGES) or "pattern",
            f"the messages of all ranks need {needed >> 20} MiB of memory, and this host has "
            f"{spare >> 20} MiB to spare: use smaller messages or fewer ranks",
        )


def _check_load(draft: Draft) -> None:
    if draft.values.traffic in WAITING:
        return  # it has none
    for part in draft.parts:
        draft.size(part)  # refuses a pattern that can't be made
        shares = port_parts(draft.pattern, len(part.ranks), draft.values.seed)
        for port, share in zip(part.ranks, shares, strict=True):
            text = _load_refusal(draft.point, port, float(share))
            if text:
                raise draft.problem(form_of(draft.values, LOAD) or "loads", text)


def _check_traffic(draft: Draft) -> None:
    if draft.values.traffic == "burst" and not draft.carrier.bursts:
        able = (each.name for each in transports.TRANSPORTS if each.bursts)
        raise draft.problem(
            "traffic",
            f"{draft.transport} sends no bursts of a counted length: take {' or '.join(able)}",
        )
    if draft.values.traffic not in ("stream", "burst") and "shares" in draft.pattern:
        raise draft.problem(
            "flows",
            f"shares are not implemented for traffic: {draft.values.traffic}: "
            "use traffic: stream or burst, or flows without shares",
        )


def _check_addresses(draft: Draft) -> None:
    dpdk = draft.values.dpdk
    if dpdk is None or dpdk.destination in (None, "port"):
        return
    if dpdk.header != "l2":
        raise draft.problem("dpdk.destination", "frames to all ports have header l2")
    if (dpdk.addresses or 1) > 1:
        raise draft.problem("dpdk.addresses", "of frames to all ports, each port has one address")


def _check_window(draft: Draft) -> None:
    window_ns = draft.values.window
    if window_ns is not None and window_ns < WINDOW_LEAST_NS:
        raise draft.problem(
            "window",
            f"{quantities.DURATION.text(window_ns)} is too short to measure in: "
            f"{quantities.DURATION.text(WINDOW_LEAST_NS)} at least",
        )


def _check_pack(draft: Draft) -> None:
    most = draft.carrier.ports_most
    if most is None:
        return
    for process in draft.site.processes:
        if len(process.ports) > most:
            raise draft.document.problem(
                ("site", "pack"),
                f"{process.name} would hold {len(process.ports)} ports in one process: "
                f"Debian's DPDK holds at most {most}",
            )


def _check_interval(draft: Draft) -> None:
    step_ns, window_ns = draft.values.interval or 0, draft.values.window
    if window_ns and step_ns > window_ns and given(draft.point, "interval", draft.document):
        raise draft.problem(
            "interval",
            f"{quantities.DURATION.text(step_ns)} is longer than the window: none would end",
        )


def _check_steps(draft: Draft) -> None:
    pattern, values = draft.point.pattern, draft.values
    size_key = form_of(values, MESSAGES) or "message_sizes"
    if not draft.by_steps:
        least = min(draft.point.sizes)
        if draft.of_messages() and least == 0:
            raise draft.problem(
                size_key,
                "a message of 0 bytes: only steps are empty, others have 1 byte to 1GiB",
            )
        return
    if not draft.carrier.reliable:
        text = f"{draft.transport} carries no dependent steps: {transports.BY_STEPS_ONLY}"
        raise draft.problem(form_of(values, TRANSPORT) or "transports", text)
    for size in draft.point.sizes:
        if odd := size_refusal(pattern, size):
            raise draft.problem(size_key, odd)
    if pattern in FUNCTIONS and values.algorithm is not None:
        refusal = algorithm_refusal(pattern, values.algorithm)
        if refusal:
            raise draft.problem("algorithm", refusal)


def _shared_refusal(point: Point, port: Port, share: float) -> str | None:
    """What other traffic on the port's line needs is left to it."""
    load, line_bps = point.load, port.line_rate_bps
    percent = load.percent
    if percent is None and line_bps:
        mean_bytes = sum(point.sizes) / len(point.sizes)
        if transports.of(point.test.transport).frames:
            mean_bytes += LAYER1_OVERHEAD
        wanted_bps = load.bps if load.bps is not None else 8 * mean_bytes * (load.fps or 0.0)
        percent = 100 * wanted_bps / line_bps
    if percent is None or percent * share <= SHARED_PERCENT:
        return None
    return (
        f"{percent * share:g}% of line: {port.name} is shared, so at most {SHARED_PERCENT:g}% is "
        "for it"
    )


def _load_refusal(point: Point, port: Port, share: float) -> str | None:
    """Why a port can't be asked for this part of the load, or None."""
    load, line_bps = point.load, port.line_rate_bps
    shared = _shared_refusal(point, port, share) if port.engine.get("shared") else None
    if shared is not None:
        return shared
    if load.percent is not None and load.percent * share > 100:
        of = f" for each of its senders: {load.percent * share:g}% of {port.name}" * (share != 1)
        return f'"{quantities.load_text(load)}" is above line rate{of}: at most 100%'
    if load.percent is not None:
        known = line_bps or port.network != "lab"
        frames = transports.of(point.test.transport).frames
        if known or (not frames and load.percent == 100.0):
            return None
        return (
            f"{load.percent:g}% of an unknown line rate: {port.name} is not shaped, so give the "
            "load in bit/s (100Mbit) or frames/s (10kfps), or the site a `line_rate`"
        )
    mean_bytes = sum(point.sizes) / len(point.sizes)
    if transports.of(point.test.transport).frames:
        mean_bytes += LAYER1_OVERHEAD
    wanted_bps = load.bps if load.bps is not None else 8 * mean_bytes * (load.fps or 0.0)
    wanted_bps *= share
    if line_bps and wanted_bps > line_bps:
        return (
            f"{wanted_bps / 1e6:g} Mbit/s at layer 1 is above the line rate of {port.name}, "
            f"{line_bps / 1e6:g} Mbit/s"
        )
    return None
