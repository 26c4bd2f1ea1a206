# SPDX-License-Identifier: BSD-3-Clause
"""What each phase lost and moved, as soon as all nodes have told of it: frames, by their
destination, and the rates of its window, which the table shows."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from ...analysis import measures as m
from ...records.flows import PhaseFlows, PhaseRecords
from ...records.record_forms import Record

JUDGED = ("duplicated", "reordered", "corrupted")

_Moment = tuple[int, int, int]  # trial, repeat, phase


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
    whole: bool = True  # it came to its end: else what was under way was neither lost nor delivered
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


@dataclass
class _Open:
    """A phase of which not all nodes have told yet."""

    records: PhaseRecords = field(default_factory=PhaseRecords)
    told: int = 0
    whole: bool = True


class LossTable:
    """Joins both sides of each flow; holds no more than the phases that are not ended."""

    def __init__(self, nodes: int) -> None:
        """So many nodes tell of each phase."""
        self._nodes = nodes
        self._open: defaultdict[_Moment, _Open] = defaultdict(_Open)

    def take(self, record: Record) -> PhaseLoss | None:
        """Takes a `flow` or `phase` record; the phase that it was the last of."""
        moment = (record["trial"], record.get("repeat") or 0, record["phase"])
        if moment[2] < 0:  # the probe
            return None
        phase = self._open[moment]
        if record["type"] == "flow":
            phase.records.add_record(0, record)
            return None
        phase.told += 1
        phase.whole = phase.whole and record.get("state") == "complete"
        return self._close(moment) if phase.told == self._nodes else None

    def _close(self, moment: _Moment) -> PhaseLoss:
        phase = self._open.pop(moment)
        result = PhaseLoss(*moment, whole=phase.whole)
        if not phase.whole:
            return result
        flows = phase.records.flows()
        result.rates = _rates(flows)
        # TCP and RDMA repeat what is lost.
        flows = flows.taken(flows.whole & ~np.isnan(flows.source.floats("frames")))
        ports = flows.ends("dst")
        for counter, counts in (
            (result.sent, flows.source.floats("frames")),
            (result.lost, m.or_zero(m.lost_frames(flows))),
        ):
            sums = m.sum_by_port(ports, counts)
            counter.update({port: int(count) for port, count in sums.items() if count is not None})
        for name in JUDGED:
            result.judged[name] = int(m.or_zero(flows.destination.floats(name)).sum())
        return result


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
