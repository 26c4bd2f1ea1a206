# SPDX-License-Identifier: BSD-3-Clause
"""The plain binary search of a throughput, with full-length trials only (RFC 2544, 24 and 26.1)."""

from __future__ import annotations

from switchbench.search.loads import (
    RFC2544,
    GoalResult,
    InProgress,
    LoadClass,
    LoadRange,
    LossAtMin,
    NoLossAtMax,
    ProposedTrial,
    Reached,
    SearchGoal,
    SearchOutcome,
    Steps,
    Stopped,
    TrialLoss,
    classify,
    conditional_loss,
)


class PlainBinarySearch:
    """A method for `Search`: the max load, the min load, then the middle until near enough.

    Each load is measured with the goal's final trials until it is decided. The result is one
    GoalResult; what `LoadSearch` takes at equal width is compared with it.
    """

    def __init__(self, loads: LoadRange, goal: SearchGoal = RFC2544) -> None:
        self.unit = loads.unit
        self._loads = loads
        self._goal = goal
        self._lower: float | None = None
        self._upper: float | None = None
        self._throughput: float | None = None

    def steps(self) -> Steps:
        """RFC 2544, 26.1: a lower load after loss, a higher one after none."""
        yield from self._decide(self._loads.max)
        if self._lower is None:
            yield from self._decide(self._loads.min)
        while self._lower is not None and self._upper is not None and not self._is_narrow():
            yield from self._decide((self._lower + self._upper) / 2)

    def result(self, stopped: Stopped | None) -> GoalResult:
        """The bounds by the trials so far."""
        outcome: SearchOutcome = stopped or InProgress()
        if self._lower == self._loads.max:
            outcome = NoLossAtMax(self._loads.max, self.unit)
        elif self._upper == self._loads.min:
            outcome = LossAtMin(self._loads.min, self.unit)
        elif self._is_narrow():
            outcome = Reached()
        return GoalResult(self._lower, self._upper, self._throughput, outcome)

    def _is_narrow(self) -> bool:
        if self._lower is None or self._upper is None:
            return False
        return 1.0 - self._lower / self._upper <= self._goal.width

    def _decide(self, load: float) -> Steps:
        trials: list[TrialLoss] = []
        while (found := classify(self._goal, trials)) is LoadClass.UNDECIDED:
            trials.append((yield ProposedTrial(load, self._goal.final_trial_s)))
        if found is LoadClass.UPPER:
            self._upper = load
        else:
            self._lower = load
            self._throughput = load * (1.0 - conditional_loss(self._goal, trials))
