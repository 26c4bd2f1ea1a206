# SPDX-License-Identifier: BSD-3-Clause
"""The longest burst without loss, searched as often as a document asks (RFC 2544, 26.4; 9004)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from statistics import fmean, stdev

from ...base.measures import NEITHER
from ..drive import Steps
from ..loads import LoadRange
from ..outcomes import InProgress, LossAtMin, NoLossAtMax, Reached, SearchOutcome, Stopped
from ..trials import ProposedTrial, TrialLoss
from .declaration import Earlier, Method, Row, SubtestTrials, SuitePoint, Value

UNIT = "frames per port"
VERIFICATIONS = 1  # a sender that was late for once decides nothing


@dataclass(frozen=True)
class BurstResult:
    """The longest burst of each search that has ended; of one that never failed, the max."""

    longest: tuple[int, ...]
    outcome: SearchOutcome


class RepeatedBursts:
    """A method for `Search`: binary searches of a burst's length, exact to one frame.

    RFC 9004, 6.2 (TST 009's binary search with loss verification). The max comes first, once: a
    device that holds it has no limit here, and of one that fails it each search is below it.
    `near`: where the result is expected; the first search begins there instead.
    """

    def __init__(
        self,
        largest: int,
        repeats: int,
        seconds_each: float,
        unit: str = UNIT,
        verifications: int = VERIFICATIONS,
        near: int | None = None,
    ) -> None:
        self.unit = unit
        self._near = near
        self._verifications = verifications
        self._largest = largest
        self._repeats = repeats
        self._seconds_each = seconds_each
        self._longest: list[int] = []
        self._end: SearchOutcome | None = None

    def steps(self) -> Steps:
        """One search after the other."""
        holds, fails = yield from self._bracket()
        for _ in range(self._repeats):
            while fails - holds > 1:
                middle = (holds + fails) // 2
                if (yield from self._holds(middle)):
                    holds = middle
                else:
                    fails = middle
            if holds == 0:
                self._end = LossAtMin(1, self.unit)
                return
            self._longest.append(holds)
            if holds == self._largest:
                self._end = NoLossAtMax(self._largest, self.unit)
                return
            holds, fails = 0, self._largest
        self._end = Reached()

    def _bracket(self) -> Generator[ProposedTrial, TrialLoss, tuple[int, int]]:
        """A length that holds and one that fails, by steps that double, or the whole range."""
        holds, fails = 0, self._largest + 1
        at, step = self._largest, self._largest
        if self._near is not None:
            at, step = min(max(1, self._near), self._largest), 1
        while holds < at < fails:
            if (yield from self._holds(at)):
                holds, at = at, at + step
            else:
                fails, at = at, at - step
            step *= 2
        return holds, fails

    def _holds(self, frames: int) -> Generator[ProposedTrial, TrialLoss, bool]:
        """A length that loses frames is tried again (TST 009's loss verification)."""
        for _ in range(1 + self._verifications):
            result = yield ProposedTrial(frames, frames * self._seconds_each)
            if result.lost == 0:
                return True
        return False

    def result(self, stopped: Stopped | None) -> BurstResult:
        """What is known by the trials so far."""
        return BurstResult(tuple(self._longest), self._end or stopped or InProgress())


BURST_VALUES = (
    Value("back_to_back", "burst", "frames",
          "Longest burst of each sending port without loss, mean over the searches"),
    Value("back_to_back_min", "min", "frames", "Of the shortest of them", "count"),
    Value("back_to_back_max", "max", "frames", "Of the longest of them", "count", NEITHER),
    Value("back_to_back_deviation", "deviation", "frames", "Standard deviation over the searches",
          better=NEITHER),
    Value("searches", "searches", "", "How often the search was repeated (N)", "count",
          of_setting=True),
)  # fmt: skip


def largest_burst(point: SuitePoint, percent: float = 100.0) -> int:
    """Frames of the longest burst that is tried."""
    return max(2, round(point.parameters.burst_s * (point.fps(percent) or 1e6)))


def burst_range(point: SuitePoint) -> LoadRange:
    """Of the lengths that are tried."""
    return LoadRange(1, largest_burst(point), UNIT)


def search_bursts(point: SuitePoint, _earlier: Earlier) -> Method:
    """The searches; bursts are sent at the max rate."""
    repeats = int(point.parameters.burst_repeats)
    return RepeatedBursts(largest_burst(point), repeats, 1.0 / (point.max_fps or 1e6))


def capped(_point: SuitePoint, measured: SubtestTrials) -> str:
    """Say where the largest value that is tried held, so that the device's limit is not known."""
    outcome = measured.result.outcome
    return outcome.sentence if isinstance(outcome, NoLossAtMax) else ""


def burst_row(measured: SubtestTrials) -> Row:
    """The values of all searches together."""
    longest = measured.result.longest
    if not longest:
        return dict.fromkeys(value.key for value in BURST_VALUES)
    return {
        "back_to_back": fmean(longest),
        "back_to_back_min": min(longest),
        "back_to_back_max": max(longest),
        "back_to_back_deviation": stdev(longest) if len(longest) > 1 else 0.0,
        "searches": len(longest),
    }
