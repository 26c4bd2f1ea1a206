# SPDX-License-Identifier: BSD-3-Clause
"""Ways to measure that no document shares: fixed trials, loads in steps down, learning rates."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from ...base.measures import LESS, MORE, NEITHER, NUMBER, PERCENT
from ...base.model import Load
from ..loads import (
    RFC2544,
    Done,
    FixedTrials,
    InProgress,
    LimitedByTime,
    LoadRange,
    LoadSearch,
    LossAtMin,
    NoLossAtMax,
    NotRepeatable,
    ProposedTrial,
    Reached,
    SearchGoal,
    SearchOutcome,
    Steps,
    Stopped,
    TrialLoss,
    TrialsResult,
)
from . import declaration
from .declaration import (
    LINE_RATE_PERCENT,
    MORE_OFFERED,
    Earlier,
    Flow,
    Method,
    Row,
    Rows,
    Statement,
    Subtest,
    SubtestTrials,
    Suite,
    SuiteParameters,
    SuitePoint,
    TrialFacts,
    Value,
    Variant,
    Variants,
)

FASTER = 2.0  # a limit that is none of time stays where addresses are learned so many times faster


@dataclass(frozen=True)
class CountResult:
    """The largest number that held in each search that has ended.

    Of one that never failed, the max. `holds`: the same of the last search, in progress too, 0:
    none.
    """

    longest: tuple[int, ...]
    outcome: SearchOutcome
    holds: int = 0


class CountSearch:
    """A method for `Search`: binary searches of a number from 1 to `largest`, exact to one.

    The max comes first, once: a device that holds it has no limit here, and of one that fails it
    each of the `repeats` searches is below it. `near`: where the result is expected; the first
    search begins there instead, and goes on by steps that double. A trial holds when it loses (a
    table's: floods) no frame. `seconds_each`: what one more frame or address adds to a trial's
    duration (RFC 9004, 5.2: bursts are sent at the max rate). `verifications`: a number that failed
    is tried again so many times, and holds when one of these trials does (binary search with loss
    verification of TST 009). `confirms`: the smallest number that fails is tried in half of the
    time, too; where it holds then, the limit is one of time.
    """

    def __init__(
        self,
        largest: int,
        unit: str,
        *,
        repeats: int = 1,
        seconds_each: float = 0.0,
        verifications: int = 1,
        near: int | None = None,
        confirms: bool = False,
    ) -> None:
        self.unit = unit
        self._largest = largest
        self._repeats = repeats
        self._seconds_each = seconds_each
        self._verifications = verifications
        self._near = near
        self._confirms = confirms
        self._longest: list[int] = []
        self._held = 0
        self._end: SearchOutcome | None = None

    def steps(self) -> Steps:
        """Return one search after the other."""
        fails = yield from self._bracket()
        for _ in range(self._repeats):
            while fails - self._held > 1:
                middle = (self._held + fails) // 2
                if not (yield from self._holds(middle)):
                    fails = middle
            if self._held == 0:
                self._end = LossAtMin(1, self.unit)
                return
            self._longest.append(self._held)
            if self._held == self._largest:
                self._end = NoLossAtMax(self._largest, self.unit)
                return
            if self._confirms and (yield self._trial(fails, FASTER)).lost == 0:
                rate = 1 / self._seconds_each
                self._end = LimitedByTime(fails, rate, FASTER * rate)
                return
            if len(self._longest) < self._repeats:
                self._held, fails = 0, self._largest
        self._end = Reached()

    def _bracket(self) -> Generator[ProposedTrial, TrialLoss, int]:
        """Return the least number that is known to fail, by steps that double.

        Or of the whole range.
        """
        fails = self._largest + 1
        at, step = self._largest, self._largest
        if self._near is not None:
            at, step = min(max(1, self._near), self._largest), 1
        while self._held < at < fails:
            if (yield from self._holds(at)):
                at = min(at + step, self._largest)
            else:
                fails, at = at, at - step
            step *= 2
        return fails

    def _holds(self, number: int) -> Generator[ProposedTrial, TrialLoss, bool]:
        for _ in range(1 + self._verifications):
            result = yield self._trial(number)
            if result.lost == 0:
                self._held = number
                return True
        return False

    def _trial(self, number: int, faster: float = 1.0) -> ProposedTrial:
        return ProposedTrial(number, number * self._seconds_each / faster)

    def result(self, stopped: Stopped | None) -> CountResult:
        """Return what is known by the trials so far."""
        outcome = self._end or stopped or InProgress()
        return CountResult(tuple(self._longest), outcome, self._held)


# --- throughput -----------------------------------------------------------------------------------
# What several documents share: the throughput of RFC 2544, 26.1, searched as RFC 9971 does.


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


# --- methods --------------------------------------------------------------------------------------
# Ways to measure that no document shares: fixed trials, loads in steps down, learning rates.


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
        """Return the max load first."""
        without, part, load = 0, 100.0, self._max
        while without < 2 and part > 0:
            load = self._max * part / 100
            result = yield ProposedTrial(load, self._duration_s)
            without = without + 1 if result.lost == 0 else 0
            part -= self._step
        self._end = Done() if without == 2 else LossAtMin(load, self.unit)

    def result(self, stopped: Stopped | None) -> TrialsResult:
        """Return whether the two without loss were measured."""
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
        """Return what is known by the trials so far."""
        held = None if isinstance(self._end, NotRepeatable) else self._holds
        return RateResult(held, self._fails, self._end or stopped or InProgress())

    def _is_held(self, rate: float) -> Generator[ProposedTrial, TrialLoss, bool]:
        for _ in range(2):
            result = yield ProposedTrial(rate, self._events / rate)
            if result.lost == 0:
                return True
        return False


# --- bursts ---------------------------------------------------------------------------------------
# The longest burst without loss, searched as often as a document asks (RFC 2544, 26.4; 9004).


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
    """Return the searches; bursts are sent at the max rate."""
    repeats = int(point.parameters.burst_repeats)
    each_s = 1.0 / (point.max_fps or 1e6)
    return CountSearch(largest_burst(point), UNIT, repeats=repeats, seconds_each=each_s)


def capped(measured: SubtestTrials) -> str:
    """Say where the largest value that is tried held, so that the device's limit is not known."""
    outcome = measured.result.outcome
    return outcome.sentence if isinstance(outcome, NoLossAtMax) else ""


def burst_row(measured: SubtestTrials) -> dict[str, Any]:
    """Return the values of all searches together."""
    longest = measured.result.longest
    return spread("back_to_back", longest) | {
        "back_to_back_deviation": stdev(longest) if len(longest) > 1 else 0.0 if longest else None,
        "searches": len(longest) or None,
    }


# --- addresses ------------------------------------------------------------------------------------
# How many addresses a device holds, and how quickly it learns them (RFC 2889, 5.7 and 5.8).


ADDRESS_LOAD_PERCENT = 10.0  # of the frames that look for learned addresses
ADDRESS_KEYS = {
    "traffic": "burst", "loads": [Load(percent=ADDRESS_LOAD_PERCENT)], "flood_limit": 0,
    "frame_sizes": [64],
}  # fmt: skip
LEARNING_RANGE = 256.0  # from the lowest to the highest learning rate


def not_learned(facts: TrialFacts) -> int:
    """Frames for addresses that the device did not have: it flooded them, or dropped them."""
    return facts.flooded + facts.lost


def search_addresses(point: SuitePoint, _earlier: Earlier) -> Method | str:
    """Return the search of 5.7, or why the device would forget meanwhile."""
    asked = point.parameters
    most, rate = int(asked.addresses_max), asked.learning_fps
    test_fps = point.fps(ADDRESS_LOAD_PERCENT) or rate
    trial_s = most / rate + most / test_fps
    if trial_s > asked.ageing_s:
        return _forgets(asked, f"a trial of {most} addresses takes", trial_s, "addresses_max",
                        "learning_fps")  # fmt: skip
    return CountSearch(most, "addresses", seconds_each=1 / rate, near=1, confirms=True)


def _forgets(asked: SuiteParameters, what: str, takes_s: float, lower: str, higher: str) -> str:
    return (
        f"Not measured: the device forgets an address after ageing_s, {asked.ageing_s:g} s, and "
        f"{what} {takes_s:.0f} s: lower {lower}, or raise {higher}."
    )


def search_learning_rate(point: SuitePoint, _earlier: Earlier) -> Method | str:
    """Return the search of 5.8, or why the device would forget meanwhile."""
    asked = point.parameters
    events = int(asked.learning_addresses)
    slowest = asked.learning_fps_max / LEARNING_RANGE
    if events / slowest > asked.ageing_s:
        return _forgets(asked, f"{events} addresses at {slowest:g} frames/s take", events / slowest,
                        "learning_addresses", "learning_fps_max")  # fmt: skip
    return RateSearch(
        events, slowest, asked.learning_fps_max, asked.learning_width, "learning frames/s"
    )


def learning_rate_rows(measured: SubtestTrials) -> Rows:
    """Return one row."""
    found: RateResult = measured.result
    return [
        {
            "address_learning_rate": None if capped(measured) else found.highest,
            "upper_bound_rate": found.lowest_failing,
            "addresses": int(measured.point.parameters.learning_addresses),
            "learning_trials": len(measured.trials),
        }
    ]


def address_rows(measured: SubtestTrials) -> Rows:
    """Return one row. Each other port has an address in the table, too."""
    found: CountResult = measured.result
    in_table = found.holds + len(measured.point.ports) - 1
    return [
        {
            "address_capacity": in_table if isinstance(found.outcome, Reached) else None,
            "learned": found.holds or None,
            "learning_rate": measured.point.parameters.learning_fps,
        }
    ]


# --- buffering ------------------------------------------------------------------------------------
# Buffers by bursts that oversubscribe an egress port a little (RFC 8239, section 3).


EXTRA_UNIT = "extra frames"

ITERATIONS = Value(
    "iterations", "iterations", "", "Of the same test", "count", NEITHER, of_setting=True
)


# --- who sends to whom ---


def first_ports(_ports: int) -> Iterator[Variant]:
    """Procedure 1: port 1 at line rate and port 3 at 1 % to port 2."""
    yield _oversubscribed([(0, 1)], [(2, 1)])


def each_port(ports: int) -> Iterator[Variant]:
    """Procedure 2: port 2 as in procedure 1, then port 3 with its neighbours, and so on."""
    for first in range(ports - 2):
        yield _oversubscribed([(first, first + 1)], [(first + 2, first + 1)])


def port_pairs(ports: int) -> Iterator[Variant]:
    """Procedure 3: pairs at line rate; the last two ports oversubscribe those of two pairs."""
    [pairs] = declaration.one_way_pairs(ports - 2)
    for (_, one), (_, two) in pairwise(pairs.flows):
        yield _oversubscribed(pairs.flows, [(ports - 2, one), (ports - 1, two)])


def _oversubscribed(full: Sequence[Flow], extra: Sequence[Flow]) -> Variant:
    egress = " and ".join(str(destination + 1) for _, destination in extra)
    return Variant(f"to port {egress}", (*full, *extra), extra=len(extra))


def extra_share(parameters: SuiteParameters) -> float:
    """Return what a port that oversubscribes sends of one at line rate (0 to 1)."""
    return parameters.oversubscription_percent / LINE_RATE_PERCENT


# --- how many frames wait ---


def line_percent(_point: SuitePoint) -> float:
    """Of a port at line rate."""
    return LINE_RATE_PERCENT


def line_frames(point: SuitePoint, extra: float) -> int:
    """Return what a port at line rate sends while another sends so many extra frames."""
    return round(extra / extra_share(point.parameters))


def _extra_percent(point: SuitePoint) -> float:
    return point.parameters.oversubscription_percent


def _extra_held(point: SuitePoint, frames: float) -> float:
    """Return how many the egress line carries of them beside those of the port at line rate."""
    return frames - frames * (100 - LINE_RATE_PERCENT) / _extra_percent(point)


def many_percent(point: SuitePoint) -> float:
    """Of each of the ports that send to one (procedure 4), in percent of line rate."""
    return (LINE_RATE_PERCENT + _extra_percent(point)) / point.sources


def _many_held(point: SuitePoint, frames: float) -> float:
    """Return how many frames are held when all ports send at the same times.

    The egress line carries some until the last ones.
    """
    interval = 100 / many_percent(point)  # from one frame of a port to the next, in frames
    return point.sources * frames - interval * (frames - 1) - 1


# --- subtests ---


@dataclass(frozen=True)
class _Buffer:
    """The search and the formulas of one procedure, whose columns begin with `prefix`."""

    prefix: str
    load: Value
    unit: str
    percent: Callable[[SuitePoint], float]  # load of a port whose burst is searched
    held: Callable[[SuitePoint, float], float]  # frames that wait in the end, by its length
    verifications: int

    def range(self, point: SuitePoint) -> LoadRange:
        """Of the bursts that are tried."""
        return LoadRange(1, largest_burst(point, self.percent(point)), self.unit)

    def search(self, point: SuitePoint, earlier: Earlier) -> Method:
        """Begins at what the first port of it held, else that of the procedure before."""
        found = [row[key] for row in earlier.values() for key in _FRAMES if row.get(key)]
        return CountSearch(
            largest_burst(point, self.percent(point)),
            self.unit,
            repeats=int(point.parameters.burst_repeats),
            seconds_each=1.0 / (point.fps(self.percent(point)) or 1e6),
            verifications=self.verifications,
            near=self._length(point, found[-1]) if found else None,
        )

    def near(self, point: SuitePoint, frames: float) -> Row:
        """Return the row of which another search takes where it begins: such a burst was held."""
        return {f"{self.prefix}_frames": self.held(point, frames)}

    def _length(self, point: SuitePoint, held: float) -> int:
        """Of the burst of which so many frames wait."""
        none = self.held(point, 0)
        return round((held - none) / (self.held(point, 1) - none))

    def rows(self, measured: SubtestTrials) -> Rows:
        """Return one row."""
        if capped(measured):
            return [{}]
        point = measured.point
        held = [self.held(point, burst) for burst in measured.result.longest]
        return [
            spread(f"{self.prefix}_bytes", [point.size * frames for frames in held])
            | {
                f"{self.prefix}_frames": fmean(held) if held else None,
                self.load.key: self.percent(point),
                "iterations": len(held),
            }
        ]

    def values(self, definition: str) -> tuple[Value, ...]:
        """Return its columns."""
        key = f"{self.prefix}_bytes"
        return (
            self.load,
            Value(f"{self.prefix}_frames", "buffer", "frames",
                  f"{definition}, exact to one per ingress"),
            *spread_values(key, "buffer size", "bytes", "The same x frame size"),
            ITERATIONS,
        )  # fmt: skip


_EXTRA = ("efficiency_buffer", "port_buffer", "pair_buffer")  # columns of procedures 1 to 3
_MANY = "buffer"
_OVERSUBSCRIPTION = Value(
    "oversubscription", "extra", "%", "Load of a port with extra frames, percent of line rate",
    PERCENT, NEITHER, of_setting=True,
)  # fmt: skip
_FRAMES = tuple(f"{prefix}_frames" for prefix in (*_EXTRA, _MANY))
_BURST: dict[str, Any] = {
    "quantity": "burst", "keys": {"traffic": "burst"}, "no_result": capped,
}  # fmt: skip


def by_extra_frames(
    procedure: int, name: str, title: str, about: str, variants: Variants, ports: int, step: int = 1
) -> Subtest:
    """Return one of procedures 1 to 3, on at least so many ports."""
    buffer = _Buffer(
        _EXTRA[procedure - 1], _OVERSUBSCRIPTION, EXTRA_UNIT, _extra_percent, _extra_held, 0
    )
    return Subtest(
        name, f"3, procedure {procedure}", title, about, variants, buffer.search, buffer.rows,
        buffer.values("Of an egress port: extra frames less those that its line carried meanwhile"),
        burst_percent=line_percent, burst_frames=line_frames,
        range=buffer.range, near=buffer.near, ports_min=ports, ports_step=step, **_BURST,
    )  # fmt: skip


def by_many_ports(name: str, title: str, about: str) -> Subtest:
    """Procedure 4."""
    buffer = _Buffer(_MANY, load_value(), UNIT, many_percent, _many_held, 1)
    return Subtest(
        name, "3, procedure 4", title, about, declaration.to_each, buffer.search, buffer.rows,
        buffer.values("Frames beyond what the egress port carried meanwhile"),
        burst_percent=many_percent, range=buffer.range, near=buffer.near, ports_min=3,
        **_BURST,
    )  # fmt: skip
