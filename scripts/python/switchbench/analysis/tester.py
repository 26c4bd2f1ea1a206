# SPDX-License-Identifier: BSD-3-Clause
"""What the tester itself may have limited, by port.

Its host, and not the network (doc/reference/measures.md, "Tester-limited").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..base import format
from ..records.rows import Bools, Floats, PhaseFlows, Rows
from ..records.summary_form import Entry, filled
from . import measures as m
from .loss_location import lost_in_network

SHORT_SHARE_SITE = 0.001  # offered below intended: the host could not keep up
SHORT_SHARE_LAB = 0.03
CPU_IDLE_SHARE = 0.05  # of a lab's CPUs, at most: none was to be had
LATE_MS = 5.0  # after the agreed start
WINDOW_SHARE = 0.01  # of the agreed window, that one side's may be off
COMPUTES_ALONE_MS = 500.0  # ALONE_NS of engine/trial/lanes.c
SOME_RANK = "a rank"  # late, and no record says which
MORE = 1.005  # than the line: clocks differ, and senders catch up in a window
BOTH_WAYS = 0.5  # of the share that a slow link does not take, so much at least it loses
PAUSE_BITS = 65_535 * 512  # for which one PAUSE frame stops a port at most (IEEE 802.3, 31B.2)


def _limit(
    port: str, pauses: int = 0, dropped_frames: int | None = None, **percents: float
) -> Entry:
    """Return why a host may have been the limit; `pauses`: too few for its shortfall."""
    words = {
        "shortfall_percent": "offered {:.1f} % less than intended"
        + (f", PAUSE frames received: {pauses}" if pauses else ""),
        "start_delay_ms": "started {:.1f} ms late",
        "window_error_percent": "its window was {:.1f} % off its length",
        "cpu_idle_percent": "below its load while the lab's CPUs were idle {:.1f} % of the time",
    }
    reasons = [text.format(percents[name]) for name, text in words.items() if name in percents]
    if dropped_frames is not None:
        dropped = f"{format.of(dropped_frames, 'frame')} dropped in the host"
        reasons.insert("shortfall_percent" in percents, dropped)
    known = {"start_delay_ms": None, "window_error_percent": None, **percents}
    return filled(
        "TesterLimitEntry",
        known,
        port=port,
        dropped_frames=dropped_frames,
        reason=", ".join(reasons),
    )


_ODD = ("misdelivered_frames", "duplicated_frames", "reordered_frames", "late_frames",
        "corrupted_frames", "forged_frames", "lost_messages")  # fmt: skip


def explains_all(result: m.PhaseResult) -> bool:
    """Return whether the tester was the limit and explains all that is odd in the phase.

    No frame was lost that no host dropped, no cable lost its carrier, nothing came twice, late,
    damaged or elsewhere.
    """
    entry: Mapping[str, object] = result.entry
    if not entry["tester_limited"] or entry["state"] not in ("complete", "partial"):
        return False
    if any(entry[name] for name in _ODD) or m.or_zero(result.ports.floats("no_carrier")).any():
        return False
    return not entry["lost_frames"] or lost_in_network(result) == 0


def windows_off(flows: PhaseFlows, window_s: float | None) -> Bools:
    """Return the flows of which an end's window is not as long as the agreed one."""
    off = [_off(flows, end, window_s) > WINDOW_SHARE for end in ("sent", "received")]
    found: Bools = off[0] | off[1]
    return found


def host_limits(
    flows: PhaseFlows,
    ports: Rows,
    nodes: Rows,
    short_share: float,
    window_s: float | None,
    lines: Mapping[str, int],
    computes: bool = False,
) -> list[Entry]:
    """Ports whose hosts could not offer what was intended, dropped frames themselves, began late.

    Or were away at an end of the window. `window_s`: the agreed one; None: ends need not be met.
    `computes`: nodes compute alone before their messages begin.

    Two things say that the network held a port back: PAUSE frames, for their time at its longest;
    and a port that did not take the frames, and loses those for it: its link is slow both ways.
    """
    names = ports.texts("port")
    pauses, refused = (
        dict(zip(names, m.or_zero(ports.floats(key)).tolist(), strict=True))
        for key in ("pause", "send_refused")
    )
    shortfalls = _shortfalls(flows, short_share)
    lost_percents = _lost_percents(flows, lines) if shortfalls else {}
    short = {
        name: found.percent
        for name, found in shortfalls.items()
        if found.bits > pauses.get(name, 0) * PAUSE_BITS
        and not (
            refused.get(name, 0) >= found.frames
            and lost_percents.get(name, 0.0) >= BOTH_WAYS * found.percent
        )
    }
    late, off = (
        _late(ports, nodes, COMPUTES_ALONE_MS if computes else 0.0),
        _windows(flows, window_s),
    )
    counts = zip(names, m.observed(m.host_drops(ports)), strict=True)
    drops = {name: int(count) for name, count in counts if count}
    said = {"shortfall_percent": short, "start_delay_ms": late, "window_error_percent": off}
    return [
        _limit(
            name,
            int(pauses.get(name, 0)),
            drops.get(name),
            **{key: found[name] for key, found in said.items() if name in found},
        )
        for name in sorted(set().union(drops, *said.values()))
    ]


def starved(
    flows: PhaseFlows, shares: m.PortShares, load_percent: float | None, nodes: Rows
) -> list[Entry]:
    """Return the ports of a lab, whose hosts share one machine.

    Of which less than the load was delivered (percent of line), and not to full lines only, while
    no CPU was idle. TCP has no other sign of it: it sends what it can. Starving hits all alike:
    where at most half of the flows fall short, they may have an element of the network in common.
    """
    machine_s = nodes.floats("cpu_span_s") * nodes.floats("cpus")
    idle = m.greatest(nodes.floats("cpu_idle_s") / machine_s)
    if idle is None or load_percent is None or idle > CPU_IDLE_SHARE:
        return []
    enough = (1.0 - SHORT_SHARE_LAB) * min(load_percent, 100.0)
    slow, free = (
        {port for port, percent in ends.items() if percent is not None and percent < enough}
        for ends in (shares.source, shares.destination)
    )
    short = [src for src, dst in flows.pairs if src in slow and dst in free]
    if 2 * len(short) <= len(flows.pairs):
        return []
    return [_limit(port, cpu_idle_percent=100.0 * idle) for port in sorted(set(short))]


@dataclass(frozen=True)
class _Shortfall:
    """What one port did not send of what was intended."""

    percent: float
    frames: float
    bits: float  # layer 1


def _shortfalls(flows: PhaseFlows, allowed_share: float) -> dict[str, _Shortfall]:
    """By port, where it is more than is allowed.

    TCP sends less than intended because the network tells it to: only frames are judged so.
    """
    sent, intended = flows["sent_frames"], flows["intended"]
    judged = flows.generates & (m.or_zero(intended) > 0) & ~np.isnan(sent)
    ports = flows.ends("src").select(judged)
    octets = m.or_zero(flows["sent_frame_bytes"])
    asked, left, size = (m.sum_by_port(ports, each[judged]) for each in (intended, sent, octets))
    found = {}
    for port, frames in left.items():
        if frames is None:
            continue
        wanted = asked[port] or 1.0
        share = 1.0 - frames / wanted
        if share > allowed_share:
            mean_bytes = max(m.LEAST_FRAME, (size[port] or 0.0) / max(frames, 1.0))
            bits = 8 * (wanted - frames) * (mean_bytes + m.FRAME_OVERHEAD_L1)
            found[port] = _Shortfall(100.0 * share, wanted - frames, bits)
    return found


def _lost_percents(flows: PhaseFlows, lines: Mapping[str, int]) -> dict[str, float]:
    """Of the frames for each port, where no more than its line was offered."""
    ends = flows.ends("dst")
    sent, lost, offered_bps = (
        m.sum_by_port(ends, m.or_zero(each))
        for each in (
            flows["sent_frames"],
            m.lost_frames(flows),
            m.offered_line_bps(flows),
        )
    )
    return {
        port: 100.0 * (lost[port] or 0.0) / frames
        for port, frames in sent.items()
        if frames and (offered_bps[port] or 0.0) <= MORE * lines.get(port, 0)
    }


def _late(ports: Rows, nodes: Rows, delay_ms: float) -> dict[str, float]:
    """By port, in ms after the agreed start and its delay.

    Where no port says when it began, what the nodes say of the skew.
    """
    agreed = [at_ns for at_ns in m.observed(nodes.floats("start_run_ns")) if at_ns]
    starts = zip(ports.texts("port"), m.observed(ports.floats("start_run_ns")), strict=True)
    begun = {name: at_ns for name, at_ns in starts if at_ns}
    if agreed and begun:
        late = {name: (at_ns - agreed[0]) / 1e6 - delay_ms for name, at_ns in begun.items()}
    else:
        skew_us = m.greatest(nodes.floats("start_skew_us"))
        late = {} if skew_us is None else {SOME_RANK: skew_us / 1e3}
    return {
        name: start_delay_ms for name, start_delay_ms in late.items() if start_delay_ms > LATE_MS
    }


def _windows(flows: PhaseFlows, window_s: float | None) -> dict[str, float]:
    """By port, in percent."""
    off: dict[str, float] = {}
    for name, end in (("src", "sent"), ("dst", "received")):
        shares, ports = _off(flows, end, window_s), flows.ends(name)
        for flow in np.flatnonzero(shares > WINDOW_SHARE).tolist():
            port = ports.names[ports.place[flow]]
            off[port] = max(off.get(port, 0.0), 100.0 * float(shares[flow]))
    return off


def _off(flows: PhaseFlows, end: str, window_s: float | None) -> Floats:
    """Return by what share each window of an end differs; 0 where that is not known."""
    if not window_s:
        return np.zeros(len(flows))
    found: Floats = m.or_zero(np.abs(flows[f"{end}_window_ns"] / (1e9 * window_s) - 1.0))
    return found
