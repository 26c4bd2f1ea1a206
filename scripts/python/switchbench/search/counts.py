# SPDX-License-Identifier: BSD-3-Clause
"""The largest whole number that holds: frames of a burst, addresses of a table."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from .loads import (
    InProgress,
    LimitedByTime,
    LossAtMin,
    NoLossAtMax,
    ProposedTrial,
    Reached,
    SearchOutcome,
    Steps,
    Stopped,
    TrialLoss,
)

FASTER = 2.0  # a limit that is none of time stays where addresses are learned so many times faster


@dataclass(frozen=True)
class CountResult:
    """The largest number that held in each search that has ended.

    Of one that never failed, the max. `holds`: the same of the last search, in progress too, 0:
    none.
    """

    longest: tuple[int, ...]
    outcome: SearchOutcome
    holds: int = 0


class CountSearch:
    """A method for `Search`: binary searches of a number from 1 to `largest`, exact to one.

    The max comes first, once: a device that holds it has no limit here, and of one that fails it
    each of the `repeats` searches is below it. `near`: where the result is expected; the first
    search begins there instead, and goes on by steps that double. A trial holds when it loses (a
    table's: floods) no frame. `seconds_each`: what one more frame or address adds to a trial's
    duration (RFC 9004, 5.2: bursts are sent at the max rate). `verifications`: a number that failed
    is tried again so many times, and holds when one of these trials does (binary search with loss
    verification of TST 009). `confirms`: the smallest number that fails is tried in half of the
    time, too; where it holds then, the limit is one of time.
    """

    def __init__(
        self,
        largest: int,
        unit: str,
        *,
        repeats: int = 1,
        seconds_each: float = 0.0,
        verifications: int = 1,
        near: int | None = None,
        confirms: bool = False,
    ) -> None:
        self.unit = unit
        self._largest = largest
        self._repeats = repeats
        self._seconds_each = seconds_each
        self._verifications = verifications
        self._near = near
        self._confirms = confirms
        self._longest: list[int] = []
        self._held = 0
        self._end: SearchOutcome | None = None

    def steps(self) -> Steps:
        """Return one search after the other."""
        fails = yield from self._bracket()
        for _ in range(self._repeats):
            while fails - self._held > 1:
                middle = (self._held + fails) // 2
                if not (yield from self._holds(middle)):
                    fails = middle
            if self._held == 0:
                self._end = LossAtMin(1, self.unit)
                return
            self._longest.append(self._held)
            if self._held == self._largest:
                self._end = NoLossAtMax(self._largest, self.unit)
                return
            if self._confirms and (yield self._trial(fails, FASTER)).lost == 0:
                rate = 1 / self._seconds_each
                self._end = LimitedByTime(fails, rate, FASTER * rate)
                return
            if len(self._longest) < self._repeats:
                self._held, fails = 0, self._largest
        self._end = Reached()

    def _bracket(self) -> Generator[ProposedTrial, TrialLoss, int]:
        """Return the least number that is known to fail, by steps that double.

        Or of the whole range.
        """
        fails = self._largest + 1
        at, step = self._largest, self._largest
        if self._near is not None:
            at, step = min(max(1, self._near), self._largest), 1
        while self._held < at < fails:
            if (yield from self._holds(at)):
                at = min(at + step, self._largest)
            else:
                fails, at = at, at - step
            step *= 2
        return fails

    def _holds(self, number: int) -> Generator[ProposedTrial, TrialLoss, bool]:
        for _ in range(1 + self._verifications):
            result = yield self._trial(number)
            if result.lost == 0:
                self._held = number
                return True
        return False

    def _trial(self, number: int, faster: float = 1.0) -> ProposedTrial:
        return ProposedTrial(number, number * self._seconds_each / faster)

    def result(self, stopped: Stopped | None) -> CountResult:
        """Return what is known by the trials so far."""
        outcome = self._end or stopped or InProgress()
        return CountResult(tuple(self._longest), outcome, self._held)
