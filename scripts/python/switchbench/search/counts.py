# SPDX-License-Identifier: BSD-3-Clause
"""The largest whole number that holds: frames of a burst, addresses of a table."""

from __future__ import annotations

from dataclasses import dataclass

from .drive import Steps
from .outcomes import InProgress, LossAtMin, NoLossAtMax, Reached, SearchOutcome, Stopped
from .trials import ProposedTrial


@dataclass(frozen=True)
class LimitedByTime:
    """The number that failed holds where its trial is faster."""

    number: int
    rate: float

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return (
            f"Of {self.number} addresses the device forwards all frames when it learns "
            f"{FASTER * self.rate:g} per second, and not at {self.rate:g}: it forgets addresses "
            "before the trial ends, or does not learn them in time. Raise its ageing time or "
            "learning_fps."
        )


FASTER = 2.0  # a limit that is none of time stays where addresses are learned so many times faster


@dataclass(frozen=True)
class CountResult:
    """The largest number that held and the smallest that failed; None where there is none.

    `largest` is exact (one below `smallest_failing`) where the outcome is Reached.
    """

    largest: int | None
    smallest_failing: int | None
    outcome: SearchOutcome | LimitedByTime


class CountSearch:
    """A method for `Search`: twice as much until it fails, then the middle until exact to one.

    A trial holds when it loses (a table's: floods) no frame. `seconds_each`: what one more frame
    or address adds to a trial's duration, in seconds (RFC 9004, 5.2: bursts are sent at the max
    rate). `verifications`: a number that failed is tried again so many times, and holds when one
    of these trials does (binary search with loss verification of RFC 9004, 5.2).
    `confirms`: the smallest number that fails is tried in half of the time, too; where it holds
    then, the limit is one of time.
    Numbers are from `smallest` to `largest`; the result is a CountResult.
    Raises ValueError unless 1 <= smallest < largest, and where the others are below 0.
    """

    def __init__(
        self,
        smallest: int,
        largest: int,
        unit: str,
        *,
        seconds_each: float = 0.0,
        verifications: int = 0,
        confirms: bool = False,
    ) -> None:
        if not 1 <= smallest < largest:
            raise ValueError("a search of numbers has a min of at least 1 and a max above its min")
        if seconds_each < 0 or verifications < 0:
            raise ValueError("seconds and verifications of a search are at least 0")
        self.unit = unit
        self._smallest, self._largest = smallest, largest
        self._seconds_each = seconds_each
        self._verifications = verifications
        self._confirms = confirms
        self._by_time: LimitedByTime | None = None
        self._confirmed = not confirms
        self._holds: int | None = None
        self._fails: int | None = None

    def steps(self) -> Steps:
        """Small numbers first: a trial takes as long as its number says."""
        yield from self._decide(self._smallest)
        while self._fails is None and self._holds is not None and self._holds < self._largest:
            yield from self._decide(min(2 * self._holds, self._largest))
        while self._holds is not None and self._fails is not None and self._fails - self._holds > 1:
            yield from self._decide((self._holds + self._fails) // 2)
        if self._confirms and self._holds is not None and self._fails is not None:
            result = yield ProposedTrial(self._fails, self._fails * self._seconds_each / FASTER)
            if result.lost == 0:
                self._by_time = LimitedByTime(self._fails, 1 / self._seconds_each)
            self._confirmed = True

    def result(self, stopped: Stopped | None) -> CountResult:
        """What is known by the trials so far."""
        outcome: SearchOutcome | LimitedByTime = stopped or InProgress()
        if self._by_time is not None:
            outcome = self._by_time
        elif self._holds == self._largest:
            outcome = NoLossAtMax(self._largest, self.unit)
        elif self._fails == self._smallest:
            outcome = LossAtMin(self._smallest, self.unit)
        elif self._confirmed and self._holds is not None and self._fails == self._holds + 1:
            outcome = Reached()
        return CountResult(self._holds, self._fails, outcome)

    def _decide(self, number: int) -> Steps:
        for _ in range(1 + self._verifications):
            result = yield ProposedTrial(number, number * self._seconds_each)
            if result.lost == 0:
                self._holds = number
                return
        self._fails = number


def address_search(
    largest: int, learning_rate: float, *, smallest: int = 1, verifications: int = 1
) -> CountSearch:
    """The largest address table that neither floods nor loses frames, exact to one (RFC 2889, 5.7).

    `learning_rate`: learning frames/s, each with one new address; a result's `lost` are the lost
    and the flooded frames. RFC 2889 suggests repeats: `verifications`. A trial's value by its
    duration is its learning rate.
    Raises ValueError as CountSearch does, and for a rate of 0 or below.
    """
    if learning_rate <= 0:
        raise ValueError("a rate of learning frames is above 0")
    return CountSearch(
        smallest,
        largest,
        "addresses",
        seconds_each=1.0 / learning_rate,
        verifications=verifications,
        confirms=True,
    )
