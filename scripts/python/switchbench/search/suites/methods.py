# SPDX-License-Identifier: BSD-3-Clause
"""Ways to measure that no document shares: fixed trials, loads in steps down, learning rates."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from ..drive import Steps
from ..outcomes import (
    Done,
    InProgress,
    LossAtMin,
    NoLossAtMax,
    NotRepeatable,
    Reached,
    SearchOutcome,
    Stopped,
)
from ..trials import ProposedTrial, TrialLoss


@dataclass(frozen=True)
class TrialsResult:
    """How a subtest without a search ended."""

    outcome: SearchOutcome


class FixedTrials:
    """A method for `Search`: these values in turn, each for so long."""

    def __init__(self, values: Sequence[float], duration_s: float, unit: str) -> None:
        self.unit = unit
        self._values = tuple(values)
        self._duration_s = duration_s
        self._done = False

    def steps(self) -> Steps:
        """One trial per value."""
        for value in self._values:
            yield ProposedTrial(value, self._duration_s)
        self._done = True

    def result(self, stopped: Stopped | None) -> TrialsResult:
        """Whether all were measured."""
        return TrialsResult(stopped or (Done() if self._done else InProgress()))


class LossSteps:
    """A method for `Search`: from the max load down until two trials in a row lose nothing.

    RFC 2544, 26.3. Loads are in percent of line rate; `step`: percent of the max.
    """

    def __init__(self, max_load: float, step: float, duration_s: float, unit: str) -> None:
        self.unit = unit
        self._max = max_load
        self._step = step
        self._duration_s = duration_s
        self._end: SearchOutcome | None = None

    def steps(self) -> Steps:
        """The max load first."""
        without, part, load = 0, 100.0, self._max
        while without < 2 and part > 0:
            load = self._max * part / 100
            result = yield ProposedTrial(load, self._duration_s)
            without = without + 1 if result.lost == 0 else 0
            part -= self._step
        self._end = Done() if without == 2 else LossAtMin(load, self.unit)

    def result(self, stopped: Stopped | None) -> TrialsResult:
        """Whether the two without loss were measured."""
        return TrialsResult(self._end or stopped or InProgress())


@dataclass(frozen=True)
class RateResult:
    """The highest rate that held and the lowest that failed; None where there is none."""

    highest: float | None
    lowest_failing: float | None
    outcome: SearchOutcome


class RateSearch:
    """A method for `Search`: the highest rate of so many events that a device keeps up with.

    From the max down by a factor of four until one holds, then the geometric middle until
    (upper - lower) / upper is at most `width`. A rate that failed is tried once more, and the
    result is confirmed at the end. `smallest`, `largest`: events/s.
    """

    _FACTOR = 4.0

    def __init__(
        self, events: int, smallest: float, largest: float, width: float, unit: str
    ) -> None:
        self.unit = unit
        self._events = events
        self._smallest, self._largest = smallest, largest
        self._width = width
        self._holds: float | None = None
        self._fails: float | None = None
        self._end: SearchOutcome | None = None

    def steps(self) -> Steps:
        """High rates first: they take the least time."""
        rate = self._largest
        while not (yield from self._is_held(rate)):
            self._fails = rate
            if rate <= self._smallest:
                self._end = LossAtMin(rate, self.unit)
                return
            rate = max(self._smallest, rate / self._FACTOR)
        self._holds = rate
        while self._fails is not None and self._fails - self._holds > self._width * self._fails:
            middle = (self._holds * self._fails) ** 0.5
            if (yield from self._is_held(middle)):
                self._holds = middle
            else:
                self._fails = middle
        if not (yield from self._is_held(self._holds)):
            self._end = NotRepeatable(self._holds, self.unit)
        elif self._fails is None:
            self._end = NoLossAtMax(self._largest, self.unit)
        else:
            self._end = Reached()

    def result(self, stopped: Stopped | None) -> RateResult:
        """What is known by the trials so far."""
        held = None if isinstance(self._end, NotRepeatable) else self._holds
        return RateResult(held, self._fails, self._end or stopped or InProgress())

    def _is_held(self, rate: float) -> Generator[ProposedTrial, TrialLoss, bool]:
        for _ in range(2):
            result = yield ProposedTrial(rate, self._events / rate)
            if result.lost == 0:
                return True
        return False
