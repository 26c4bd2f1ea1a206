# SPDX-License-Identifier: BSD-3-Clause
"""The longest burst without loss, searched as often as a document asks (RFC 2544, 26.4; 9004)."""

from __future__ import annotations

from statistics import stdev
from typing import Any

from ...base.measures import NEITHER
from ..counts import CountSearch
from ..loads import LoadRange
from ..outcomes import NoLossAtMax
from .declaration import Earlier, Method, SubtestTrials, SuitePoint, Value
from .throughput import spread

UNIT = "frames per port"


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
    each_s = 1.0 / (point.max_fps or 1e6)
    return CountSearch(largest_burst(point), UNIT, repeats=repeats, seconds_each=each_s)


def capped(measured: SubtestTrials) -> str:
    """Say where the largest value that is tried held, so that the device's limit is not known."""
    outcome = measured.result.outcome
    return outcome.sentence if isinstance(outcome, NoLossAtMax) else ""


def burst_row(measured: SubtestTrials) -> dict[str, Any]:
    """The values of all searches together."""
    longest = measured.result.longest
    return spread("back_to_back", longest) | {
        "back_to_back_deviation": stdev(longest) if len(longest) > 1 else 0.0 if longest else None,
        "searches": len(longest) or None,
    }
