# SPDX-License-Identifier: BSD-3-Clause
"""What each phase lost and moved, as soon as all nodes have told of it: frames, by their
destination, and the rates of its window, which the table shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ...analysis import measures as m
from ...analysis.summary import EndedPhase
from ...records.flows import PhaseFlows

JUDGED = ("duplicated", "reordered", "corrupted")


@dataclass(frozen=True)
class PortRates:
    """A port's rates in a window. None: no flow of the phase goes this way, or it is not known."""

    offered_bps: float | None  # payload
    delivered_bps: float | None
    line_bps: float | None  # delivered, at layer 1 for frames


@dataclass
class PhaseLoss:
    """One phase that has ended."""

    trial: int
    repeat: int
    phase: int
    sent: Counter[str] = field(default_factory=Counter)  # frames, by destination
    lost: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)  # of JUDGED
    rates: dict[str, PortRates] = field(default_factory=dict)

    @property
    def sentence(self) -> str | None:
        """What went wrong in it; None: nothing did."""
        counts = {"lost": self.lost.total()} | self.judged
        words = [f"{count:,} {what}" for what, count in counts.items() if count]
        if not words:
            return None
        where = f"trial {self.trial}, phase {self.phase}"
        return f"{where}: of {self.sent.total():,} frames {', '.join(words)}"


def phase_loss(ended: EndedPhase) -> PhaseLoss:
    """Return what a phase lost and moved, summed over its networks."""
    moment, results = ended
    loss = PhaseLoss(*moment)
    for flows in (result.every for result in results if result.every.settled):
        loss.rates |= _rates(flows)
        # TCP and RDMA repeat what is lost.
        counted = flows.taken(flows.whole & ~np.isnan(flows.source.floats("frames")))
        ports = counted.ends("dst")
        for counter, counts in (
            (loss.sent, counted.source.floats("frames")),
            (loss.lost, m.or_zero(m.lost_frames(counted))),
        ):
            sums = m.sum_by_port(ports, counts)
            counter.update({port: int(count) for port, count in sums.items() if count is not None})
        for name in JUDGED:
            loss.judged[name] += int(m.or_zero(counted.destination.floats(name)).sum())
    return loss


def _rates(flows: PhaseFlows) -> dict[str, PortRates]:
    """Return the rates of each port in the window, as the summary has them."""
    frames = ~np.isnan(flows.destination.floats("frames"))
    line = np.where(frames, m.delivered_line_bps(flows), m.payload_bps(flows))
    offered = m.sum_by_port(flows.ends("src"), m.offered_payload_bps(flows))
    delivered = m.sum_by_port(flows.ends("dst"), m.payload_bps(flows))
    on_line = m.sum_by_port(flows.ends("dst"), line)
    return {
        port: PortRates(offered.get(port), delivered.get(port), on_line.get(port))
        for port in offered.keys() | delivered.keys()
    }
