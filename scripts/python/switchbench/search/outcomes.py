# SPDX-License-Identifier: BSD-3-Clause
"""How a search ends: typed values, each with one sentence for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Reached:
    """The bounds are as near to each other as was asked."""

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return "The bounds are as near to each other as the goal asks."


@dataclass(frozen=True)
class InProgress:
    """Asked for before the search has ended."""

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return "The run ended before this measurement was complete."


@dataclass(frozen=True)
class LossAtMin:
    """The search never brackets: the least value of its range already fails."""

    value: float
    unit: str

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return (
            f"The device fails at the min of the range, {self.value:g} {self.unit}, so there is no "
            "lower bound: lower the min, or look for loss that does not depend on it."
        )


@dataclass(frozen=True)
class NoLossAtMax:
    """The search never brackets: the largest value of its range still holds."""

    value: float
    unit: str

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return (
            f"The device holds the max of the range, {self.value:g} {self.unit}, so there is no "
            "upper bound: its limit is there or above."
        )


@dataclass(frozen=True)
class HeldAllOffered:
    """The tester offers no more than what the device still holds."""

    value: float
    unit: str

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return (
            f"The device holds {self.value:g} {self.unit}, the most that the tester offered: its "
            "limit is there or above. Give the tester more cores, or lower the ports' rate."
        )


@dataclass(frozen=True)
class LimitedByTester:
    """No trial at a value could be believed, in so many attempts."""

    value: float
    unit: str
    attempts: int

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return (
            f"The tester, not the device, was the limit at {self.value:g} {self.unit} in each of "
            f"{self.attempts} trials, so the search ended there: lower the max of the range or the "
            "ports' rate, or give the tester more cores."
        )


@dataclass(frozen=True)
class OutOfTime:
    """The next trial would have ended after the time limit."""

    time_limit_s: float
    used_s: float
    next_s: float

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return (
            f"The search ended after {self.used_s:g} s: its next trial takes {self.next_s:g} s, "
            f"and time_limit is {self.time_limit_s:g} s. The bounds so far are kept."
        )


@dataclass(frozen=True)
class CannotBeMet:
    """What is known before the first trial: the time limit is too short.

    `estimates_s`: what is measured, such as "throughput 64 B" -> seconds that it takes at least.
    """

    time_limit_s: float
    estimates_s: Mapping[str, float]

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        each = ", ".join(f"{name} at least {took:.0f} s" for name, took in self.estimates_s.items())
        whole_s = sum(self.estimates_s.values())
        return (
            f"The goals cannot be met in time_limit, {self.time_limit_s:g} s: {each}, together "
            f"{whole_s:.0f} s. Raise time_limit, or ask for shorter trials, fewer sizes or a "
            "larger width."
        )


Stopped = LimitedByTester | OutOfTime
SearchOutcome = Reached | InProgress | LossAtMin | NoLossAtMax | HeldAllOffered | Stopped
