# SPDX-License-Identifier: BSD-3-Clause
"""One search under way: the next trial, its answer, and what ends a search before its goals do."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Generic, Protocol, TypeVar

from .outcomes import LimitedByTester, OutOfTime, Stopped
from .trials import ProposedTrial, TrialLoss

Steps = Generator[ProposedTrial, TrialLoss, None]
Result_co = TypeVar("Result_co", covariant=True)


class TesterLimitError(Exception):
    """A trial was tester-limited as often as it is repeated: a method may go on elsewhere."""

    def __init__(self, result: TrialLoss) -> None:
        """The last of these trials."""
        super().__init__("the tester was the limit")
        self.result = result


class SearchMethod(Protocol[Result_co]):
    """A way to search: it asks for trials one after the other and remembers their results."""

    unit: str

    def steps(self) -> Steps:
        """Yields trials and is sent their results; ends when nothing more has to be measured."""

    def result(self, stopped: Stopped | None) -> Result_co:
        """What is known by the results so far; `stopped`: what ended the search early."""


class Search(Generic[Result_co]):
    """Runs a method trial by trial.

        while (trial := search.trial) is not None:
            search.answer(measure(trial))
        print(search.result())

    A tester-limited trial never decides: it is proposed again, `repeats` times at most, then the
    method goes on elsewhere (TesterLimitError), or the search ends. It also ends when the next
    trial would not end within `time_limit_s` (seconds of trials, each with `overhead_s` for
    barrier, learning frames and drain).
    """

    def __init__(
        self,
        method: SearchMethod[Result_co],
        *,
        time_limit_s: float = math.inf,
        overhead_s: float = 0.0,
        repeats: int = 2,
    ) -> None:
        self._method = method
        self._steps = method.steps()
        self._time_limit_s = time_limit_s
        self._overhead_s = overhead_s
        self._repeats = repeats
        self._limited = 0  # in a row, at the trial under way
        self.trial: ProposedTrial | None = None
        """What to measure next; None when the search has ended."""
        self.used_s = 0.0
        """Seconds that all trials so far took, with their overheads."""
        self.trials = 0
        """How many were answered."""
        self.stopped: Stopped | None = None
        """What ended the search before its goals did."""
        self._propose(next(self._steps, None))

    def answer(self, result: TrialLoss) -> None:
        """Takes the result of `trial`, and sets the next one.

        Raises ValueError when the search has ended, or when the result is of another duration.
        """
        if self.trial is None:
            raise ValueError("the search has ended")
        if result.intended_s != self.trial.duration_s:
            raise ValueError("the result is of a trial of another duration")
        self.used_s += self._seconds(self.trial, result)
        self.trials += 1
        if result.tester_limited:
            self._limited += 1
            if self._limited > self._repeats:
                self._give_up(result)
            else:
                self._propose(self.trial)
            return
        self._limited = 0
        try:
            self._propose(self._steps.send(result))
        except StopIteration:
            self.trial = None

    def _give_up(self, result: TrialLoss) -> None:
        """The method goes on elsewhere, or the search ends."""
        assert self.trial is not None
        limit = LimitedByTester(self.trial.value, self._method.unit, self._limited)
        self._limited = 0
        try:
            self._propose(self._steps.throw(TesterLimitError(result)))
        except TesterLimitError:
            self._stop(limit)
        except StopIteration:
            self.trial = None

    def result(self) -> Result_co:
        """The result, also before the end: by the trials so far."""
        return self._method.result(self.stopped)

    def _seconds(self, trial: ProposedTrial, result: TrialLoss | None = None) -> float:
        return (result.counted_s if result else trial.duration_s) + self._overhead_s

    def _propose(self, trial: ProposedTrial | None) -> None:
        self.trial = trial
        if trial is None:
            return
        next_s = self._seconds(trial)
        if self.used_s + next_s > self._time_limit_s:
            self._stop(OutOfTime(self._time_limit_s, self.used_s, next_s))

    def _stop(self, outcome: Stopped) -> None:
        self.stopped = outcome
        self.trial = None
        self._steps.close()
