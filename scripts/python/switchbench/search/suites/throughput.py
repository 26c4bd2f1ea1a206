# SPDX-License-Identifier: BSD-3-Clause
"""What several documents share: the throughput of RFC 2544, 26.1, searched as RFC 9971 does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

from ...base.measures import LESS, MORE, NEITHER, NUMBER, PERCENT
from ..loads import (
    RFC2544,
    FixedTrials,
    LoadRange,
    LoadSearch,
    NoLossAtMax,
    ProposedTrial,
    SearchGoal,
    Steps,
)
from .declaration import (
    MORE_OFFERED,
    Earlier,
    Method,
    Rows,
    Statement,
    Subtest,
    SubtestTrials,
    Suite,
    SuiteParameters,
    SuitePoint,
    Value,
)

MethodOf = Callable[[SuitePoint, Earlier], Method | str]

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


def search_loads(goals: Callable[[SuiteParameters], Mapping[str, SearchGoal]]) -> MethodOf:
    """Return the method that searches the loads of these goals."""
    return lambda point, _: LoadSearch([*goals(point.parameters).values()], point.loads)


search_throughput = search_loads(throughput_goal)


def fixed(seconds: str, repeats: str = "repeats", *, at_throughput: bool = False) -> MethodOf:
    """Return the method of equal trials at the max load, or at the throughput that was found.

    Their seconds and their number are parameters.
    """

    def method(point: SuitePoint, earlier: Earlier) -> Method | str:
        load = throughput_percent(earlier) if at_throughput else point.loads.max
        if isinstance(load, str):
            return load
        count = int(getattr(point.parameters, repeats))
        return FixedTrials([load] * count, getattr(point.parameters, seconds), "% of line")

    return method


def throughput_row(measured: SubtestTrials) -> dict[str, Any]:
    """Return its values. A device that holds the max load has that as its throughput."""
    point, [result] = measured.point, measured.result
    usable = result.is_regular or isinstance(result.outcome, NoLossAtMax)
    percent = result.relevant_lower_bound if usable else None
    rate = point.fps(percent)
    return {
        "throughput": rate,
        "throughput_percent": percent,
        "upper_bound_percent": result.relevant_upper_bound,
        "theoretical_max": point.max_fps,
        "throughput_bps": None if rate is None else rate * point.size * 8 / 1e6,
    }


def throughput_rows(measured: SubtestTrials) -> Rows:
    """Return one row."""
    return [throughput_row(measured)]


def above_forwarding(measured: SubtestTrials) -> str:
    """Say where the throughput is more than the device forwards: buffers held the rest."""
    [result] = measured.result
    held = [
        facts.offered_fps or 0.0
        for trial, facts in measured.trials
        if trial.value == result.relevant_lower_bound
    ]
    rates = [facts.delivered_fps or 0.0 for facts in measured.facts]
    offered, forwarded = max(held, default=0.0), max(rates)
    if not forwarded or offered <= MORE_OFFERED * forwarded:
        return ""
    return (
        f"The throughput, {offered:.0f} frames/s of all ports, is above the max forwarding rate, "
        f"{forwarded:.0f}: buffers held the rest to the end of the trial. Raise trial_s, "
        f"{measured.point.parameters.trial_s:g}."
    )


def throughput_percent(earlier: Earlier, subtest: str = "throughput") -> float | str:
    """Return what an earlier subtest found at this size, or why nothing can follow from it."""
    found = earlier.get(subtest, {}).get("throughput_percent")
    if found is None:
        return f"Not measured: {subtest} has no result at this size."
    return float(found)


def variation_percent(values: Sequence[float]) -> float | None:
    """Return the percentage of variation (RFC 8239, 3.3).

    The largest change from one iteration to the next; None where one of them began from 0.
    """
    pairs = list(pairwise(values))
    if not all(before for before, _ in pairs):
        return None
    return max((abs(now - before) / before * 100 for before, now in pairs), default=None)


def known(values: Iterable[float | None]) -> list[float]:
    """Return what was observed."""
    return [value for value in values if value is not None]


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of what was observed."""
    observed = known(values)
    return fmean(observed) if observed else None


def spread(key: str, values: Iterable[float | None]) -> dict[str, Any]:
    """Return the mean, min, max and variation of what iterations observed."""
    observed = known(values)
    return {
        key: mean(observed),
        f"{key}_min": min(observed, default=None),
        f"{key}_max": max(observed, default=None),
        f"{key}_variation": variation_percent(observed),
    }


def variation_value(key: str, title: str = "variation") -> Value:
    """Return the column of the percentage of variation."""
    return Value(
        f"{key}_variation", title, "%", "The largest change from one iteration to the next; none: "
        "there was only one, or one of them was 0", better=LESS,
    )  # fmt: skip


def spread_values(
    key: str, title: str, unit: str, definition: str, better: int = MORE, ends: str = NUMBER
) -> tuple[Value, ...]:
    """Return the columns of a spread; `ends`: the format of min and max."""
    return (
        Value(key, title, unit, definition, better=better),
        Value(f"{key}_min", f"{title} min", unit, "Of the iterations", ends, better),
        Value(f"{key}_max", f"{title} max", unit, "Of the iterations", ends, better),
        variation_value(key, f"{title} variation"),
    )


def latency_row(measured: SubtestTrials, key: str = "latency") -> dict[str, Any]:
    """Return one-way times of all trials: the mean of means, the extremes of all frames."""
    times = [facts.latency_us for facts in measured.facts if facts.latency_us]
    return spread(key, (each.get("mean") for each in times)) | {
        f"{key}_min": min(known(each.get("min") for each in times), default=None),
        f"{key}_max": max(known(each.get("max") for each in times), default=None),
        "latency_trials": len(times),
    }


def latency_values(definition: str, key: str = "latency") -> tuple[Value, ...]:
    """Return the columns of it."""
    return (
        Value(key, "latency", "us", f"Mean of the trials' means; {definition}", better=LESS),
        Value(f"{key}_min", "latency min", "us", "Lowest of all frames of all trials", better=LESS),
        Value(f"{key}_max", "latency max", "us", "Highest of all frames of all trials",
              better=LESS),
    )  # fmt: skip


LATENCY_TRIALS = Value(
    "latency_trials", "trials", "", "That were averaged", "count", of_setting=True
)
LATENCY_DEFINITION = (
    "FILO: from the sender's stamp, before the frame's first bit, to the receiver's, after its "
    "last; every frame is stamped, not one per trial"
)


def load_value(key: str = "load_percent") -> Value:
    """Return the column of a row's load."""
    return Value(
        key, "load", "%", "Intended load of each sending port, percent of line rate", PERCENT,
        NEITHER, of_setting=True,
    )  # fmt: skip


LATE_SENDERS = (
    "A trial in which a sender was late is repeated as tester-limited where that may be why it "
    "held or failed: a burst at line rate without loss; any other burst that lost no more frames "
    "than were sent late, at once; a stream that lost at most 1.5 times as many, of ports that "
    "were offered less than they received elsewhere."
)  # one of the deviations

PHASES = (
    "Trial phases (RFC 2544, 23): warm-up, window, cool-down and drain of Switchbench in place of "
    "2 s and 5 s of silence; learning frames are its connectivity check."
)  # another

LOSS = Value("loss", "lost", "%", "(in - out) x 100 / in (RFC 2544, 26.3)", "number", LESS)


# --- ndr pdr --------------------------------------------------------------------------------------
# Non-drop rate and partial drop rate, as FD.io CSIT searches them (RFC 9971).


def _goals(parameters: SuiteParameters) -> Mapping[str, SearchGoal]:
    """Both goals; they differ in the loss that they allow."""
    losses = {"ndr": parameters.ndr_loss_percent, "pdr": parameters.pdr_loss_percent}
    return {
        name: SearchGoal(
            loss_ratio=percent / 100,
            exceed_ratio=parameters.exceed_percent / 100,
            final_trial_s=parameters.trial_s,
            duration_sum_s=parameters.duration_sum_s,
            initial_trial_s=parameters.initial_s,
            width=parameters.width,
        )
        for name, percent in losses.items()
    }


LATENCY_PARTS = (0.1, 0.5, 0.9)  # of NDR


class _LoadsAndLatency(LoadSearch):
    """The search, and then a trial at each part of NDR."""

    def __init__(self, goals: Sequence[SearchGoal], loads: LoadRange, latency_s: float) -> None:
        super().__init__(goals, loads)
        self._latency_s = latency_s

    def steps(self) -> Steps:
        """Return those of the search first."""
        yield from super().steps()
        ndr = self.result(None)[0].relevant_lower_bound or 0.0
        for load in _loads_of_latency(ndr):
            yield ProposedTrial(load, self._latency_s)


def _loads_of_latency(ndr: float) -> list[float]:
    return [part * ndr for part in LATENCY_PARTS if ndr]


def _search(point: SuitePoint, _earlier: Earlier) -> Method:
    asked = point.parameters
    return _LoadsAndLatency([*_goals(asked).values()], point.loads, asked.latency_s)


def _latency_rows(measured: SubtestTrials) -> Rows:
    ndr = measured.result[0].relevant_lower_bound or 0.0
    last = {trial.value: (trial, facts) for trial, facts in measured.trials}
    at = {load: [last[load]] for load in _loads_of_latency(ndr) if load in last}
    return [
        latency_row(replace(measured, trials=trials))
        | {
            "load_percent": load,
            "of_ndr": 100 * load / ndr,
            "rtt": trials[0][1].rtt_us.get("mean"),
        }
        for load, trials in at.items()
    ]


NDR_PDR = Suite(
    name="ndr-pdr",
    document="RFC 9971",
    title="Non-drop rate and partial drop rate (RFC 9971)",
    subtests=(
        Subtest(
            "loads", "", "Latency at parts of NDR",
            "The highest loads that the goals allow (table `searches`), then one trial of "
            "latency_s at each of 10, 50 and 90 % of NDR.",
            None, _search, _latency_rows,
            (
                Value("of_ndr", "of NDR", "%", "Load, of the non-drop rate", PERCENT, NEITHER,
                      of_setting=True),
                load_value(),
                *latency_values(LATENCY_DEFINITION),
                Value("rtt", "RTT mean", "us", "Round trips of the probes beside the load",
                      better=LESS),
            ),
            goals=_goals,
        ),
    ),
    sizes=(),
    parameters=SuiteParameters(trial_s=1.0, latency_s=5.0),
    lab=SuiteParameters(trial_s=1.0, latency_s=1.0),
    uses=(
        "trial_s", "duration_sum_s", "initial_s", "width", "ndr_loss_percent", "pdr_loss_percent",
        "exceed_percent", "latency_s",
    ),
    refused={},
    statements=(
        Statement("Search Goal", "MUST", "all attributes of each goal, optional ones too",
                  "table `searches`, columns loss ratio to goal width"),
        Statement("Goal Result", "MUST", "the relevant lower bound, or that there is none",
                  "table `searches`, columns lower bound and outcome"),
        Statement("Goal Result", "SHOULD", "the relevant upper bound, the conditional throughput",
                  "table `searches`, columns upper bound and throughput"),
        Statement("Load", "MUST", "what a load is, and the range that is searched",
                  "table `searches`, columns load unit, min load, max load: each sending port's"),
        Statement("Trial", "MUST", "deviations from the phases of a trial",
                  "sentence `Deviations`"),
    ),
    deviations=(
        PHASES,
        "The traffic is that of the configuration: any pattern, `pairs` by default.",
        "A tester-limited trial counts for no goal and is measured again.",
        LATE_SENDERS,
    ),
    load_percent=None,
)  # fmt: skip
