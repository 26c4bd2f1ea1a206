# SPDX-License-Identifier: BSD-3-Clause
"""Ways to measure that are no search: fixed trials, and loads in steps down to no loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..drive import Steps
from ..outcomes import InProgress, Stopped
from ..trials import ProposedTrial


@dataclass(frozen=True)
class Done:
    """All that was to be measured is."""

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return "All trials were measured."


@dataclass(frozen=True)
class TrialsResult:
    """How a subtest without a search ended."""

    outcome: Done | InProgress | Stopped


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
        self._done = False

    def steps(self) -> Steps:
        """The max load first."""
        without, part = 0, 100.0
        while without < 2 and part > 0:
            result = yield ProposedTrial(self._max * part / 100, self._duration_s)
            without = without + 1 if result.lost == 0 else 0
            part -= self._step
        self._done = True

    def result(self, stopped: Stopped | None) -> TrialsResult:
        """Whether all were measured."""
        return TrialsResult(stopped or (Done() if self._done else InProgress()))
