# SPDX-License-Identifier: BSD-3-Clause
"""How a search ends: typed values, each with one sentence for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class SearchOutcome:
    """How a search ended; its fields fill in the `words` of its class."""

    words: ClassVar[str]

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        return self.words.format_map(vars(self))


class Stopped(SearchOutcome):
    """What ends a search before its goals do."""


@dataclass(frozen=True)
class _AtValue(SearchOutcome):
    """The value of a search's range at which it ended."""

    value: float
    unit: str


class Reached(SearchOutcome):
    """The bounds are as near to each other as was asked."""

    words = "The bounds are as near to each other as the goal asks."


class Done(SearchOutcome):
    """All that was to be measured is."""

    words = "All trials were measured."


class InProgress(SearchOutcome):
    """Asked for before the search has ended."""

    words = "The run ended before this measurement was complete."


class LossAtMin(_AtValue):
    """The search never brackets: the least value of its range already fails."""

    words = (
        "The device fails at the min of the range, {value:g} {unit}, so there is no "
        "lower bound: lower the min, or look for loss that does not depend on it."
    )


class NoLossAtMax(_AtValue):
    """The search never brackets: the largest value of its range still holds."""

    words = (
        "The device holds the max of the range, {value:g} {unit}, so there is no "
        "upper bound: its limit is there or above."
    )


class HeldAllOffered(_AtValue):
    """The tester offers no more than what the device still holds."""

    words = (
        "The device holds {value:g} {unit}, the most that the tester offered: its "
        "limit is there or above. Give the tester more cores, or lower the ports' rate."
    )


@dataclass(frozen=True)
class LimitedByTime(SearchOutcome):
    """The number that failed holds where its trial is faster."""

    number: int
    rate: float
    faster: float
    words = (
        "Of {number} addresses the device forwards all frames when it learns {faster:g} per "
        "second, and not at {rate:g}: it forgets addresses before the trial ends, or does not "
        "learn them in time. Raise its ageing time or learning_fps."
    )


class NotRepeatable(_AtValue):
    """A rate that held failed at the end."""

    words = (
        "The device held {value:g} {unit}, and failed there at the end of the search: its table "
        "may be full of the addresses of all trials. Lower learning_addresses."
    )


@dataclass(frozen=True)
class LimitedByTester(_AtValue, Stopped):
    """No trial at a value could be believed, in so many attempts."""

    attempts: int
    words = (
        "The tester, not the device, was the limit at {value:g} {unit} in each of "
        "{attempts} trials, so the search ended there: lower the max of the range or the "
        "ports' rate, or give the tester more cores."
    )


@dataclass(frozen=True)
class OutOfTime(Stopped):
    """The next trial would have ended after the time limit."""

    time_limit_s: float
    used_s: float
    next_s: float
    words = (
        "The search ended after {used_s:g} s: its next trial takes {next_s:g} s, "
        "and time_limit is {time_limit_s:g} s. The bounds so far are kept."
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
