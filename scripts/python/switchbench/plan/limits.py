# SPDX-License-Identifier: BSD-3-Clause
"""What no port, no process and no pattern can do, refused before anything starts.

Each rule yields the key at which something is wrong, and a sentence; the first one is raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..base import quantities, transports
from ..base.model import SCHEDULE, WAITING, Port, Site, Trial
from ..base.words import listed
from ..config import profiles
from ..config.profiles import SHARED_PERCENT, frame_header
from ..config.rules import OPERATIONS, operation_of
from ..config.schema import ResolvedSettings
from ..config.settings import carries_messages
from ..config.steps import FUNCTIONS, algorithm_refusal, size_refusal
from ..config.tests import PointPlace
from .engine import layer1_bps, port_parts

Refusals = Iterator[tuple[str, str]]  # a key (or several, the first that was given), a sentence

_MEMINFO = Path("/proc/meminfo")
WINDOW_LEAST_NS = 1_000_000  # a shorter one opens and closes between two looks at a port


def check_point(point: ResolvedSettings, site: Site, place: PointPlace) -> None:
    """Refuse settings that no port can have, whatever the pattern's flows are."""
    for rule in (_frames, _verbs, _waiting, _times, _schedules, _traffic, _destinations):
        for key, text in rule(point):
            raise place.problem(key, text)
    most = transports.of(point.transport).ports_most
    for process in site.processes:
        if most is not None and len(process.ports) > most:
            raise place.document.problem(
                ("site", "pack"),
                f"{process.name} would hold {len(process.ports)} ports in one process: "
                f"Debian's DPDK holds at most {most}",
            )
    interval_ns, window_ns = point.interval or 0, point.window
    if window_ns and interval_ns > window_ns and place.given("interval"):
        text = f"{quantities.DURATION.text(interval_ns)} is longer than the window: none would end"
        raise place.problem("interval", text)


def check_trial(trial: Trial, site: Site, memory_bytes: int, place: PointPlace) -> None:
    """Refuse a load that a port can't have, shares without a load, and more memory than there is.

    `memory_bytes`: that one repetition of a schedule needs on all ranks.
    """
    if trial.traffic not in ("stream", "burst") and "shares" in trial.pattern:
        raise place.problem(
            "flows",
            f"shares are not implemented for traffic: {trial.traffic}: "
            "use traffic: stream or burst, or flows without shares",
        )
    if trial.traffic not in WAITING:
        for part in trial.parts:
            shares = port_parts(trial.pattern, len(part.ranks), trial.seed)
            for port, share in zip(part.ranks, shares, strict=True):
                if text := _load_refusal(trial, port, float(share)):
                    raise place.problem("load", text)
    # All ranks of a lab are on this host; elsewhere each node looks at its own.
    spare = spare_bytes() if site.launcher.in_lab and memory_bytes else None
    if spare is not None and memory_bytes > spare:
        raise place.problem(
            "message_size pattern",
            f"the messages of all ranks need {memory_bytes >> 20} MiB of memory, and this host has "
            f"{spare >> 20} MiB to spare: use smaller messages or fewer ranks",
        )


def spare_bytes() -> int | None:
    """Return as much as the engine takes at most (engine/platform/memory.h); None: not known."""
    try:
        found = re.search(r"^MemAvailable: *(\d+) kB$", _MEMINFO.read_text(), re.M)
    except OSError:
        return None
    return int(found[1]) * 1024 // 8 * 7 if found else None


def _frames(point: ResolvedSettings) -> Refusals:
    """Frame sizes, and one-frame messages, that the kind of header or the ports can't have."""
    dpdk = frame_header(point)
    if carries_messages(point.transport, point.traffic):
        room, size = profiles.message_room(dpdk, point.frame_max), max(point.sizes)
        frames = transports.of(point.transport).frames
        if frames and point.traffic == "pingpong" and size > room:
            yield (
                "message_size scatter",
                f"a ping-pong message over {point.transport} is one frame, of at most {room} "
                f"bytes here, not {size}: larger ones run over tcp and verbs",
            )
        return
    least, tagged = profiles.smallest_frame(dpdk), dpdk.vlan is not None
    most = point.frame_max + (profiles.VLAN_TAG if tagged else 0)
    for size in point.sizes:
        if size < least:
            yield (
                "frame_size",
                f"a frame of {size} bytes holds no {dpdk.header} header"
                f"{' with a VLAN tag' if tagged else ''} and signature: at least {least}",
            )
        if point.frame_max and size > most:
            yield (
                "frame_size",
                f"a frame of {size} bytes does not fit the ports' MTU: at most {most} "
                f"(FCS included)",
            )


def _verbs(point: ResolvedSettings) -> Refusals:
    """Yield combinations of verbs' options, and messages, that no device can have."""
    verbs, frame_max = point.verbs, point.frame_max
    if verbs is None:
        return
    service, operation = verbs.service, operation_of(verbs)
    if operation not in OPERATIONS[service]:
        yield (
            "verbs.operation verbs.service",
            f"service {service} has no operation {operation}: it can {listed(OPERATIONS[service])}",
        )
    if point.forward and service != "rc":
        yield (
            "forward",
            f"a chain is forwarded over service rc only: what {service} loses could not be sent on",
        )
    if (verbs.signal_every or 1) > verbs.depth:
        yield (
            "verbs.signal_every",
            f"{verbs.signal_every} is more than the depth of {verbs.depth} messages: the "
            "queue would fill before one of them completes",
        )
    carried = profiles.largest_path_mtu(frame_max) if frame_max else profiles.PATH_MTUS[-1]
    mtu = verbs.mtu or carried
    if mtu > carried:
        yield (
            "verbs.mtu",
            f"{mtu} bytes and RoCE's headers do not fit the ports' MTU of "
            f"{frame_max - profiles.ETHERNET_HEADER_FCS}: at most {carried}",
        )
    if service == "ud" and max(point.sizes) > mtu:
        yield (
            "message_size verbs",
            f"a message of {max(point.sizes)} bytes is more than service ud sends: one packet, at "
            f"most {mtu} bytes here",
        )


def _waiting(point: ResolvedSettings) -> Refusals:
    """Ways that messages which wait for each other don't go, as the node would refuse them."""
    tcp, verbs = point.tcp, point.verbs
    if point.traffic not in WAITING:
        return
    what = "a step's message" if point.traffic == SCHEDULE else "a ping-pong message"
    for key, noun, count in (
        ("tcp.streams_per_flow", "stream", tcp.streams_per_flow if tcp else 1),
        ("verbs.queue_pairs", "queue pair", verbs.queue_pairs if verbs else 1),
    ):
        if count > 1:
            yield key, f"{what} goes by one {noun}, not {count}: leave it out here"
    if tcp is not None and tcp.zero_copy:
        yield "tcp.zero_copy", f"{what} is copied: leave it out here"
    if verbs is not None and point.traffic == SCHEDULE:
        words = "the messages of steps go by service rc and operation send, not by"
        if verbs.service != "rc":
            yield "verbs.service", f"{words} {verbs.service}"
        if operation_of(verbs) != "send":
            yield "verbs.operation", f"{words} {operation_of(verbs)}"


def _times(point: ResolvedSettings) -> Refusals:
    if point.window is not None and point.window < WINDOW_LEAST_NS:
        found, least = map(quantities.DURATION.text, (point.window, WINDOW_LEAST_NS))
        yield "window", f"{found} is too short to measure in: {least} at least"
    if point.sync == "none" and point.window is None:
        yield "sync", f"none needs phases of a known length, and a {point.traffic} has none"


def _schedules(point: ResolvedSettings) -> Refusals:
    carrier = transports.of(point.transport)
    if point.traffic != SCHEDULE:
        if carries_messages(point.transport, point.traffic) and min(point.sizes) == 0:
            text = "a message of 0 bytes: only steps are empty, others have 1 byte to 1GiB"
            yield "message_size", text
        return
    if not carrier.reliable:
        text = f"{carrier.name} carries no dependent steps: {transports.BY_STEPS_ONLY}"
        yield "transport", text
    for size in point.sizes:
        if odd := size_refusal(point.pattern, size):
            yield "message_size", odd
    if point.pattern in FUNCTIONS and point.algorithm is not None:
        refusal = algorithm_refusal(point.pattern, point.algorithm)
        if refusal:
            yield "algorithm", refusal


def _traffic(point: ResolvedSettings) -> Refusals:
    if point.traffic == "burst" and not transports.of(point.transport).bursts:
        able = (each.name for each in transports.TRANSPORTS if each.bursts)
        yield (
            "traffic",
            f"{point.transport} sends no bursts of a counted length: take {' or '.join(able)}",
        )


def _destinations(point: ResolvedSettings) -> Refusals:
    dpdk = point.dpdk
    if dpdk is None or dpdk.destination in (None, "port"):
        return
    if dpdk.header != "l2":
        yield "dpdk.destination", "frames to all ports have header l2"
    if (dpdk.addresses or 1) > 1:
        yield "dpdk.addresses", "of frames to all ports, each port has one address"


def _load_refusal(trial: Trial, port: Port, share: float) -> str | None:
    """Return why a port can't be asked for this part of the load, or None."""
    load, line_bps = trial.load, port.line_rate_bps
    wanted_bps = share * layer1_bps(trial, load)
    percent = load.percent and load.percent * share
    of_line = percent if percent is not None or not line_bps else 100 * wanted_bps / line_bps
    if port.engine.get("shared") and of_line is not None and of_line > SHARED_PERCENT:
        return (
            f"{of_line:g}% of line: {port.name} is shared, so at most {SHARED_PERCENT:g}% is for it"
        )
    if percent is not None and percent > 100:
        of = f" for each of its senders: {percent:g}% of {port.name}" * (share != 1)
        return f'"{quantities.load_text(load)}" is above line rate{of}: at most 100%'
    if percent is not None:
        frames = transports.of(trial.transport).frames
        if line_bps or port.network != "lab" or (not frames and load.percent == 100.0):
            return None
        return (
            f"{load.percent:g}% of an unknown line rate: {port.name} is not shaped, so give the "
            "load in bit/s (100Mbit) or frames/s (10kfps), or the site a `line_rate`"
        )
    if line_bps and wanted_bps > line_bps:
        return (
            f"{wanted_bps / 1e6:g} Mbit/s at layer 1 is above the line rate of {port.name}, "
            f"{line_bps / 1e6:g} Mbit/s"
        )
    return None
