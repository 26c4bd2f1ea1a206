# SPDX-License-Identifier: BSD-3-Clause
"""What several documents share: the throughput of RFC 2544, 26.1, searched as RFC 9971 does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from ...base.measures import LESS, NEITHER, PERCENT
from ..goals import RFC2544, SearchGoal
from ..loads import GoalResult
from ..multiple import LoadSearch
from ..outcomes import NoLossAtMax
from .declaration import Earlier, Method, Rows, SubtestTrials, SuiteParameters, SuitePoint, Value

THROUGHPUT_VALUES = (
    Value("throughput", "throughput", "frames/s",
          "Highest rate of a port at which no frame is lost: the search's lower bound"),
    Value("throughput_percent", "of the max", "%",
          "The same, in percent of the theoretical max of the size", PERCENT),
    Value("upper_bound_percent", "upper bound", "%",
          "Lowest rate with loss, in percent of the theoretical max; none: no rate lost a frame",
          PERCENT, NEITHER, of_setting=True),
    Value("theoretical_max", "theoretical max", "frames/s",
          "Line rate / (8 x (size + 20)): of the medium, one port", better=NEITHER,
          of_setting=True),
    Value("throughput_bps", "bit rate", "Mbit/s",
          "The same as bits of frames, FCS included, without preamble and gap"),
)  # fmt: skip


def throughput_goal(parameters: SuiteParameters) -> dict[str, SearchGoal]:
    """RFC 2544's throughput with the durations of these parameters."""
    goal = replace(
        RFC2544,
        final_trial_s=parameters.trial_s,
        duration_sum_s=parameters.trial_s,
        initial_trial_s=min(parameters.initial_s, parameters.trial_s),
        width=parameters.width,
    )
    return {"rfc2544": goal}


def search_throughput(setting: SuitePoint, _earlier: Earlier) -> Method | str:
    """The search for it."""
    return LoadSearch(list(throughput_goal(setting.parameters).values()), setting.loads)


def throughput_row(setting: SuitePoint, result: GoalResult) -> dict[str, Any]:
    """Its values. A device that holds the max load has that as its throughput."""
    percent = result.relevant_lower_bound if _is_usable(result) else None
    rate = setting.fps(percent)
    return {
        "throughput": rate,
        "throughput_percent": percent,
        "upper_bound_percent": result.relevant_upper_bound,
        "theoretical_max": setting.max_fps,
        "throughput_bps": None if rate is None else rate * setting.size * 8 / 1e6,
    }


def throughput_rows(setting: SuitePoint, _earlier: Earlier, measured: SubtestTrials) -> Rows:
    """One row."""
    [result] = measured.result
    return [throughput_row(setting, result)]


ABOVE = 1.01  # of the max forwarding rate: windows of senders and receivers differ by less


def above_forwarding(point: SuitePoint, measured: SubtestTrials) -> str:
    """Say where the throughput is more than the device forwards: buffers held the rest."""
    [result] = measured.result
    held = [
        facts.offered_fps or 0.0
        for trial, facts in measured.trials
        if trial.value == result.relevant_lower_bound
    ]
    rates = [facts.delivered_fps or 0.0 for _, facts in measured.trials]
    offered, forwarded = max(held, default=0.0), max(rates)
    if not forwarded or offered <= ABOVE * forwarded:
        return ""
    return (
        f"The throughput, {offered:.0f} frames/s of all ports, is above the max forwarding rate, "
        f"{forwarded:.0f}: buffers held the rest to the end of the trial. Raise trial_s, "
        f"{point.parameters.trial_s:g}."
    )


def _is_usable(result: GoalResult) -> bool:
    return result.is_regular or isinstance(result.outcome, NoLossAtMax)


def throughput_percent(earlier: Earlier, subtest: str = "throughput") -> float | str:
    """What an earlier subtest found at this size, or why nothing can follow from it."""
    found = earlier.get(subtest, {}).get("throughput_percent")
    if found is None:
        return f"Not measured: {subtest} has no result at this size."
    return float(found)


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of what was observed."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def load_value(key: str = "load_percent") -> Value:
    """The column of a row's load."""
    return Value(
        key, "load", "%", "Intended load of each sending port, percent of line rate", PERCENT,
        NEITHER, of_setting=True,
    )  # fmt: skip


LATE_SENDERS = (
    "A trial in which a sender was late is repeated as tester-limited where that may be why it "
    "held or failed: a burst at line rate without loss; any other trial that lost no more frames "
    "than were sent late, at once, of ports that were offered less than they received elsewhere."
)  # one of the deviations

LOSS = Value("loss", "lost", "%", "(in - out) x 100 / in (RFC 2544, 26.3)", "number", LESS)
