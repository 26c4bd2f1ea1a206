# SPDX-License-Identifier: BSD-3-Clause
"""Rates that no line carries.

What is wrong with them (doc/reference/measures.md, "Above line rate").

Of windows, by port; and of steps, which have none, but what IMB calls bandwidth is a
message by its time. A lab's shapers have a bucket (`burst`) that is full after silence, and a
message that waits for another is often sent after silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..base import format
from ..base.model import Site
from ..records.summary_form import Entry
from . import measures as m

LINE_ALARM_SHARE = 0.0002  # clocks may differ by 100 ppm each way
_NO_LINE = "no line carries that; the line rate is wrong or the count is"
_BEFORE = (
    "frames that were sent before the window opened are counted in it: the receiving host or a "
    "lab's switch was away then"
)
_BURST = (
    "a shaped port lets `burst` pass at once after silence; a smaller `site.burst` holds it to the "
    "line"
)


# --- windows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Excess:
    """A port above its line in one window."""

    port: str
    percent: float
    bytes: float  # above the line


def windows_above_line(result: m.PhaseResult, site: Site) -> Iterator[str]:
    """Yield a sentence for each way and cause.

    The port that is the furthest above its line, and how many more there are.
    """
    queue = site.queue_bytes or 0
    every = result.shares
    if result.flows.window_off.any():
        every = m.port_shares(result.flows, result.lines, every=True)
    for words, end, waiting, shares in (
        ("delivered to it", "dst", 0, every.destination),
        ("delivered from it", "src", queue, every.source),
    ):
        causes: dict[str, list[_Excess]] = {}
        for found in _above(result, end, waiting, shares):
            causes.setdefault(_cause(result, found, end, site), []).append(found)
        for cause, ports in causes.items():
            worst = max(ports, key=lambda found: found.percent)
            more = f" (and {format.of(len(ports) - 1, 'more port')})" if len(ports) > 1 else ""
            yield (
                f"{worst.port}{more}: {worst.percent:.2f} % of its line rate {words} in "
                f"{result.label}: {cause}"
            )


def _above(result: m.PhaseResult, end: str, waiting: int, shares: m.ByPort) -> Iterator[_Excess]:
    """Yield each port above its line.

    waiting: bytes between a port's line and where they are counted, when the window opens.
    """
    window_s = result.entry["window_s"]
    held_bytes: m.ByPort | None = None
    for port, percent in shares.items():
        if percent is None or percent <= 100.0:
            continue
        line = result.lines.get(port)
        if not line or not window_s:
            continue
        allowed = LINE_ALARM_SHARE * line * window_s / 8.0 + waiting
        excess = (percent / 100.0 - 1.0) * line * window_s / 8.0
        if excess <= allowed:
            continue
        if held_bytes is None:
            held_bytes = m.sum_by_port(result.flows.ends(end), _held_bytes(result))
        if excess > allowed + (held_bytes[port] or 0.0):
            yield _Excess(port, percent, excess)


def _held_bytes(result: m.PhaseResult) -> m.Floats:
    """Return the bytes of each flow that arrived before a window opened and count in it.

    The rest of a frame or message; over TCP what waited behind a missing segment.
    """
    flows = result.flows
    if result.entry["size_unit"] == "frame":
        return np.full(len(flows), float(max(result.frame_bytes) + m.FRAME_OVERHEAD_L1))
    if flows.packets is not None:
        sizes = result.entry["size"]
        return np.full(len(flows), float(max(sizes) if isinstance(sizes, list) else sizes))
    segment, overhead = m.tcp_segment(flows, "received")
    behind, buffer = (
        m.or_zero(flows[name]) for name in ("out_of_order_segments", "receive_buffer_bytes")
    )
    held: m.Floats = segment + overhead + np.minimum(behind * segment, buffer)
    return held


def _cause(result: m.PhaseResult, found: _Excess, end: str, site: Site) -> str:
    """Return the host, where one is the cause; the lab's shaper; else what is given as the line."""
    place = ("src", "dst").index(end)
    senders = (pair[0] for pair in result.flows.pairs if pair[place] == found.port)
    ports = [found.port, *senders]
    limited = {limit["port"]: limit["reason"] for limit in result.entry["tester_limited"]}
    for port in ports:
        if port in limited:
            return f"the host of {port} may be why: {limited[port]}"
    if not site.burst_bytes or found.bytes > site.burst_bytes:
        # What came in the windows of the port's flows and was not sent in them.
        more = m.delivered_line_bps(result.flows) - m.offered_line_bps(result.flows)
        early_bps = m.sum_by_port(result.flows.ends(end), more)[found.port] or 0.0
        early = early_bps * (result.entry["window_s"] or 0.0) / 8.0
        return _BEFORE if early >= found.bytes else _NO_LINE
    asked = max(result.entry["intended_load"] or 0.0, 100.0)
    for port in ports:
        sent = result.shares.offered.get(port)
        if sent is not None and sent > asked * (1.0 + LINE_ALARM_SHARE):
            return f"the host of {port} sent late what was due before the window, and {_BURST}"
    return _BURST


# --- steps -------------------------------------------------------------------------------------

# What IMB's MB/s of a function counts by what leaves (and enters) a port: both of the latter two.
_IMB_WAYS = {"pingpong": 1, "pingping": 1, "sendrecv": 2, "exchange": 2}


def above_line(steps: Entry, site: Site) -> Iterator[str]:
    """Yield a sentence for each figure of `steps` above the fastest line of its network."""
    rates = {name: [port.line_rate_bps for port in site.networks[name]] for name in site.networks}
    lines = {name: max(some) for name, some in rates.items() if all(some)}
    for what, network, bps in _bandwidths(steps):
        line_bps = lines.get(network)
        if line_bps and bps > line_bps * (1 + LINE_ALARM_SHARE):
            yield (
                f"{what}: {bps / 8e9:.4g} GB/s is above the line rate of network {network}, "
                f"{line_bps / 8e9:.4g} GB/s: {_why(site)}"
            )


def _why(site: Site) -> str:
    if site.lab:
        return (
            "a shaped port lets `burst` pass at once after silence; a smaller `site.burst` holds "
            "messages to the line (doc/how-to/hpcc-imb.md)"
        )
    return _NO_LINE


def _bandwidths(steps: Entry) -> Iterator[tuple[str, str, float]]:
    """Yield what it is, its network, and bit/s that left a port."""
    for function in steps["functions"]:
        ways = _IMB_WAYS.get(function["pattern"])
        for point in function["points"] if ways else ():
            rate = point["imb"]["mbytes_s"]
            if ways and rate:
                yield (
                    f"{function['pattern']} of {point['size']} bytes over {function['transport']}",
                    function["network"],
                    rate / ways * 8e6,
                )
