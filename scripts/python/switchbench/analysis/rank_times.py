# SPDX-License-Identifier: BSD-3-Clause
"""Times of repetitions by rank, as `execution` records have them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ..base.model import Part, Trial
from ..records.latency import Histogram
from . import measures as m


@dataclass
class RankTimes:
    """One rank's repetitions in one phase."""

    repetitions: int  # that were timed
    sum_ns: int  # of all of them
    times: Histogram = field(default_factory=Histogram)  # of batches: the mean of their repetitions
    verified: int | None = None  # results that were looked at; None: nothing was computed

    @property
    def mean_us(self) -> float | None:
        """Of a repetition."""
        return self.sum_ns / self.repetitions / 1e3 if self.repetitions else None


Ranks = dict[str, RankTimes]  # by name


@dataclass
class MeasuredExecutions:
    """One trial in one network: its ranks by phase, and how fast data reached the ports."""

    trial: Trial
    part: Part
    phases: dict[int, Ranks] = field(default_factory=dict)
    rates_mbps: dict[int, float | None] = field(default_factory=dict)
    idle: dict[int, int] = field(default_factory=dict)  # by phase: ranks that only met the others

    def leave_out_idle(self, phase: int, busy: Collection[str]) -> None:
        """Drop the ranks of a phase that went through repetitions without any message.

        Of a ping-pong among many only two do something, and IMB's times are over these.
        """
        ranks = self.phases.get(phase, {})
        idle = [name for name in ranks if name not in busy and ranks[name].times.count]
        if len(idle) < len(ranks):
            for name in idle:
                del ranks[name]
            self.idle[phase] = len(idle)

    def ranks(self, phase: int) -> Ranks:
        """Return those of one phase; empty where it left no record."""
        return self.phases.get(phase, {})

    @property
    def whole(self) -> bool:
        """Return whether all ranks that take part timed something in all phases."""
        return len(self.phases) == self.trial.phases and all(
            len(ranks) + self.idle.get(phase, 0) == len(self.part.ranks)
            and all(times.times.count for times in ranks.values())
            for phase, ranks in self.phases.items()
        )

    @property
    def average_us(self) -> float | None:
        """IMB's t_avg: over ranks, of the mean of a repetition; of several phases their mean."""
        if not self.whole:
            return None
        return m.mean(
            m.mean(times.mean_us for times in ranks.values()) for ranks in self.phases.values()
        )

    @property
    def slowest_us(self) -> float | None:
        """IMB's t_max: the greatest over ranks, of the mean of a repetition."""
        if not self.whole:
            return None
        return m.mean(
            m.greatest(times.mean_us for times in ranks.values()) for ranks in self.phases.values()
        )
