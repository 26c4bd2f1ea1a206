# SPDX-License-Identifier: BSD-3-Clause
"""What the tester itself may have limited, by port: its host, and not the network
(doc/reference/measures.md, "My host or the network")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..records.records import Flow, NodePhase, PhaseRecords, Side
from . import measures as m

SHORT_SHARE_SITE = 0.001  # offered below intended: the host could not keep up
SHORT_SHARE_LAB = 0.03
LATE_MS = 5.0  # after the agreed start
WINDOW_SHARE = 0.01  # of the agreed window, that one side's may be off
SOME_RANK = "a rank"  # late, and no record says which


@dataclass(frozen=True)
class HostLimit:
    """A host that was, or may have been, the limit: not the network."""

    port: str
    shortfall_percent: float | None = None  # offered so much less than intended; None: it kept up
    dropped_frames: int | None = None  # dropped in the host; None: none, or not observed
    start_delay_ms: float | None = None  # began so late; None: in time, or not observed
    window_error_percent: float | None = None  # its window's length; None: as agreed

    @property
    def reason(self) -> str:
        """In words."""
        words = []
        if self.shortfall_percent is not None:
            words.append(f"offered {self.shortfall_percent:.1f} % less than intended")
        if self.dropped_frames is not None:
            frames = "frame" if self.dropped_frames == 1 else "frames"
            words.append(f"{self.dropped_frames} {frames} dropped in the host")
        if self.start_delay_ms is not None:
            words.append(f"started {self.start_delay_ms:.1f} ms late")
        if self.window_error_percent is not None:
            words.append(f"its window was {self.window_error_percent:.1f} % off its length")
        return ", ".join(words)


def mark_windows(flows: list[Flow], window_s: float | None) -> None:
    """Marks the flows of which a side's window is not as long as the agreed one."""
    for flow in flows:
        sides = (flow.source, flow.destination)
        flow.window_off = max((_off(side, window_s) for side in sides), default=0.0) > WINDOW_SHARE


def host_limits(
    phase: PhaseRecords,
    nodes: Mapping[str, NodePhase],
    short_share: float,
    window_s: float | None,
) -> list[HostLimit]:
    """Ports whose hosts could not offer what was intended, dropped frames themselves, began late,
    or were away at an end of the window. `window_s`: the agreed one; None: ends need not be met."""
    short, late, off = _short(phase, short_share), _late(phase, nodes), _windows(phase, window_s)
    drops = {name: count for name, port in phase.ports.items() if (count := m.host_drops(port))}
    names = sorted(short.keys() | drops.keys() | late.keys() | off.keys())
    return [
        HostLimit(name, short.get(name), drops.get(name), late.get(name), off.get(name))
        for name in names
    ]


def _short(phase: PhaseRecords, allowed_share: float) -> dict[str, float]:
    """Percent that is missing of what was intended.

    TCP sends less than intended because the network tells it to: only frames are judged so.
    """
    made: dict[str, tuple[int, int]] = {}  # port: frames sent, frames intended
    for flow in phase.flows.values():
        side = flow.source
        if side is None or side.role != "generate" or not side.intended:
            continue
        if side.whole.frames is not None:
            sent, intended = made.get(flow.src, (0, 0))
            made[flow.src] = (sent + side.whole.frames, intended + side.intended)
    return {
        name: 100.0 * (1.0 - sent / intended)
        for name, (sent, intended) in made.items()
        if 1.0 - sent / intended > allowed_share
    }


def _late(phase: PhaseRecords, nodes: Mapping[str, NodePhase]) -> dict[str, float]:
    """By port, in ms. Where no port says when it began, what the nodes say of the skew."""
    agreed_ns = next((node.start_run_ns for node in nodes.values() if node.start_run_ns), None)
    begun = {name: port.start_run_ns for name, port in phase.ports.items() if port.start_run_ns}
    if agreed_ns is not None and begun:
        late = {name: (at_ns - agreed_ns) / 1e6 for name, at_ns in begun.items()}
    else:
        skew_us = m.greatest(node.start_skew_us for node in nodes.values())
        late = {} if skew_us is None else {SOME_RANK: skew_us / 1e3}
    return {
        name: start_delay_ms for name, start_delay_ms in late.items() if start_delay_ms > LATE_MS
    }


def _windows(phase: PhaseRecords, window_s: float | None) -> dict[str, float]:
    """By port, in percent."""
    off: dict[str, float] = {}
    for flow in phase.flows.values():
        for port, side in ((flow.src, flow.source), (flow.dst, flow.destination)):
            share = _off(side, window_s)
            if share > WINDOW_SHARE:
                off[port] = max(off.get(port, 0.0), 100.0 * share)
    return off


def _off(side: Side | None, window_s: float | None) -> float:
    """By what share a side's window differs; 0 where that is not known."""
    if side is None or side.window_ns is None or not window_s:
        return 0.0
    return abs(side.window_ns / (1e9 * window_s) - 1.0)
