# SPDX-License-Identifier: BSD-3-Clause
"""Simulated devices whose truth is known, for tests and the benchmark of searches."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from switchbench.search.loads import ProposedTrial, Search, SearchMethod, TrialLoss

Result = TypeVar("Result")


@dataclass
class LossyDevice:
    """Forwards `truth` frames/s, and less of it by `collapse` per relative overload; what a buffer
    of so many frames holds is not lost; lost frames vary log-normally by `noise`; a `sporadic` part
    of all trials loses frames for no reason."""

    truth: float
    buffer: float = 0.0
    collapse: float = 0.0
    noise: float = 0.0
    sporadic: float = 0.0
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def measure(self, trial: ProposedTrial) -> TrialLoss:
        offered = max(1, round(trial.value * trial.duration_s))
        overload = trial.value / self.truth - 1.0
        lost = 0.0
        if overload > 0.0:
            forwarded = self.truth * max(0.0, 1.0 - self.collapse * overload)
            lost = (trial.value - forwarded) * trial.duration_s - self.buffer
        if lost > 0.0 and self.noise > 0.0:
            lost = max(1.0, lost * self.rng.lognormvariate(0.0, self.noise))
        if self.rng.random() < self.sporadic:
            lost = max(lost, 0.0) + self.rng.randint(1, 200)
        return TrialLoss(offered, min(offered, max(0, round(lost))), trial.duration_s)


def run(
    method: SearchMethod[Result],
    measure: Callable[[ProposedTrial], TrialLoss],
    *,
    time_limit_s: float = float("inf"),
    overhead_s: float = 0.0,
) -> tuple[Search[Result], list[ProposedTrial]]:
    """The search when it has ended, and all trials in order."""
    search = Search(method, time_limit_s=time_limit_s, overhead_s=overhead_s)
    asked = []
    while (trial := search.trial) is not None:
        asked.append(trial)
        search.answer(measure(trial))
    return search, asked
