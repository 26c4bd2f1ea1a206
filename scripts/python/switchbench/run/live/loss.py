# SPDX-License-Identifier: BSD-3-Clause
"""What each phase lost, as soon as all nodes have told of it: frames, by their destination."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from ...analysis import measures as m
from ...records.flows import PhaseRecords
from ...records.record_forms import Record

JUDGED = ("duplicated", "reordered", "corrupted")

_Moment = tuple[int, int, int]  # trial, repeat, phase


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

    @property
    def sentence(self) -> str | None:
        """What went wrong in it; None: nothing did."""
        counts = {"lost": self.lost.total()} | self.judged
        words = [f"{count:,} {what}" for what, count in counts.items() if count]
        if not words:
            return None
        port, most = next(iter(self.lost.most_common(1)), ("", 0))
        whose = f"; {most:,} lost were for {port}" if most else ""
        where = f"trial {self.trial}, phase {self.phase}"
        return f"{where}: of {self.sent.total():,} frames {', '.join(words)}{whose}"


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
