# SPDX-License-Identifier: BSD-3-Clause
"""Methods that choose the trials of subtests: fixed trials, falling loads, and searches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..loads import (
    Asked,
    End,
    FixedTrials,
    LoadRange,
    LoadSearch,
    OneSearch,
    ProposedTrial,
    SearchGoal,
    SearchMethod,
    Steps,
)
from .declaration import (
    LINE_RATE_PERCENT,
    Earlier,
    Excluded,
    MethodOf,
    Row,
    SubtestTrials,
    SuiteParameters,
    SuitePoint,
    TrialFacts,
    extra_share,
)
from .formulas import ERRORED_SIZES, capped, loads_of_latency, spread, throughput_percent

STEP_DOWN = 4.0  # factor between a failing rate and the next rate tried
FASTER = 2.0  # factor of the learning rate; a limit that it raises is a time limit


@dataclass
class CountSearch(OneSearch):
    """Method for `Search`: binary searches of a number from 1 to `largest`, exact to one.

    The first trial is at the max: a device that holds the max has no limit in the range. Below a
    failing max, `repeats` searches follow. With `near`, the expected result, the first search
    begins at `near` instead and continues by doubling steps. A trial holds if it loses no frame (in
    a search of addresses: floods no frame). `seconds_each` is the time that one more frame or
    address adds to a trial (RFC 9004, 5.2: bursts are sent at the max rate). A failing number is
    tried again `verifications` times, and holds if one of these trials holds (binary search with
    loss verification of TST 009). With `confirms`, the smallest failing number is also tried in
    half of the time; if this trial holds, the limit is a time limit.
    """

    largest: int
    unit: str
    repeats: int = 1
    seconds_each: float = 0.0
    verifications: int = 1
    near: int | None = None
    confirms: bool = False

    def steps(self) -> Steps:
        """Yield the trials of all searches, one search after the other.

        Doubling steps from `near` find the smallest number that fails; without `near`, only the max
        is tried.
        """
        fails = self.largest + 1
        at, step = self.largest, self.largest
        if self.near is not None:
            at, step = min(max(1, self.near), self.largest), 1
        while (self._lower or 0) < at < fails:
            if (yield from self._holds(at)):
                at = min(at + step, self.largest)
            else:
                fails, at = at, at - step
            step *= 2
        for _ in range(self.repeats):
            held = round(self._lower or 0)
            while fails - held > 1:
                middle = (held + fails) // 2
                if (yield from self._holds(middle)):
                    held = middle
                else:
                    fails = middle
            if held == 0:
                self._upper, self._end = 1, End.LOSS_AT_MIN.at(1, self.unit)
                return
            self._longest += (held,)
            if held == self.largest:
                self._end = End.NO_LOSS_AT_MAX.at(self.largest, self.unit)
                return
            if self.confirms and (yield self._trial(fails, FASTER)).lost == 0:
                rate = 1 / self.seconds_each
                self._end = End.LIMITED_BY_TIME.at(fails, rate=rate, faster=FASTER * rate)
                return
            if len(self._longest) < self.repeats:
                self._lower, fails = None, self.largest
        self._end = End.REACHED.at()

    def _holds(self, number: int) -> Asked:
        for _ in range(1 + self.verifications):
            result = yield self._trial(number)
            if result.lost == 0:
                self._lower = number
                return True
        return False

    def _trial(self, number: int, faster: float = 1.0) -> ProposedTrial:
        return ProposedTrial(number, number * self.seconds_each / faster)


@dataclass
class RateSearch(OneSearch):
    """Method for `Search`: the highest rate of events that a device sustains without loss.

    The search starts at the max and divides the rate by four until a rate holds. Then it tries
    geometric middles until (upper - lower) / upper is at most `width`. A failing rate is tried once
    more, and the result is confirmed at the end. `smallest` and `largest` are in events/s.
    """

    events: int
    smallest: float
    largest: float
    width: float
    unit: str

    def steps(self) -> Steps:
        """Yield trials from high to low rates, because trials at high rates take less time."""
        rate = self.largest
        while not (yield from self._is_held(rate)):
            self._upper = rate
            if rate <= self.smallest:
                self._end = End.LOSS_AT_MIN.at(rate, self.unit)
                return
            rate = max(self.smallest, rate / STEP_DOWN)
        self._lower = rate
        while self._upper is not None and self._upper - rate > self.width * self._upper:
            middle = (rate * self._upper) ** 0.5
            if (yield from self._is_held(middle)):
                self._lower = rate = middle
            else:
                self._upper = middle
        if not (yield from self._is_held(rate)):
            self._lower, self._end = None, End.NOT_REPEATABLE.at(rate, self.unit)
        elif self._upper is None:
            self._end = End.NO_LOSS_AT_MAX.at(self.largest, self.unit)
        else:
            self._end = End.REACHED.at()

    def _is_held(self, rate: float) -> Asked:
        for _ in range(2):
            result = yield ProposedTrial(rate, self.events / rate)
            if result.lost == 0:
                return True
        return False


def throughput_goal(parameters: SuiteParameters) -> dict[str, SearchGoal]:
    """Return the search goal for RFC 2544's throughput: no loss in a trial of `trial_s`."""
    trial_s = parameters.trial_s
    initial_s = min(parameters.initial_s, trial_s)
    return {"rfc2544": SearchGoal(0.0, 0.0, trial_s, trial_s, initial_s, parameters.width)}


def search_throughput(point: SuitePoint, _earlier: Earlier) -> SearchMethod:
    """Return the search method for the throughput, the highest load without loss."""
    return LoadSearch([*throughput_goal(point.parameters).values()], point.loads)


def fixed(seconds: str, repeats: str = "repeats", *, at_throughput: bool = False) -> MethodOf:
    """Return a function that makes equal trials at the max load, or at the earlier throughput.

    `seconds` and `repeats` are names of parameters.
    """

    def method(point: SuitePoint, earlier: Earlier) -> SearchMethod | str:
        load = throughput_percent(earlier) if at_throughput else point.loads.max
        if isinstance(load, str):
            return load
        count = int(getattr(point.parameters, repeats))
        return FixedTrials([load] * count, getattr(point.parameters, seconds), "% of line")

    return method


UNIT = "frames per port"


def largest_burst(point: SuitePoint, parameter: str = "burst_s", percent: float = 100.0) -> int:
    """Return the number of frames in the longest burst to try; `parameter` names its seconds."""
    seconds: float = getattr(point.parameters, parameter)
    return max(2, round(seconds * (point.fps(percent) or 1e6)))


def burst_range(parameter: str) -> Callable[[SuitePoint], LoadRange]:
    """Return a function that returns the range of burst lengths at a point (setting)."""
    return lambda point: LoadRange(1, largest_burst(point, parameter), UNIT)


def search_bursts(parameter: str) -> MethodOf:
    """Return a function that makes the search for the longest burst without loss at max rate."""

    def method(point: SuitePoint, _earlier: Earlier) -> SearchMethod:
        repeats = int(point.parameters.burst_repeats)
        each_s = 1.0 / (point.max_fps or 1e6)
        most = largest_burst(point, parameter)
        return CountSearch(most, UNIT, repeats=repeats, seconds_each=each_s)

    return method


def loss_steps(point: SuitePoint, _earlier: Earlier) -> SearchMethod:
    """Return the method that lowers the load until two in a row lose nothing (RFC 2544, 26.3)."""
    step, most = point.parameters.loss_step_percent, point.loads.max
    parts = [100 - step * number for number in range(math.ceil(100 / step))]
    loads = [most * part / 100 for part in parts]
    return FixedTrials(loads, point.parameters.trial_s, "% of line", enough=2)


OVERLOAD = 1.1  # overload per throughput (RFC 2544, 26.5)


def search_recovery(point: SuitePoint, earlier: Earlier) -> SearchMethod | str:
    """Return equal trials at a load above the throughput, or the reason if this is impossible."""
    percent = throughput_percent(earlier)
    if isinstance(percent, str):
        return percent
    if percent >= point.loads.max:
        return Excluded("Excluded: the device forwards this size at the max rate: no overload.")
    asked = point.parameters
    loads = [min(OVERLOAD * percent, point.loads.max)] * int(asked.repeats)
    return FixedTrials(loads, asked.trial_s + asked.recovery_s, "% of line")


def search_bursts_below_line_rate(point: SuitePoint, earlier: Earlier) -> SearchMethod | str:
    """Return the search for bursts, or the reason why no burst fills the device's buffers."""
    percent = throughput_percent(earlier)
    if isinstance(percent, str):
        return percent
    if percent >= point.loads.max:
        return Excluded(
            "Excluded: the device forwards this size at the max rate, so that no burst fills its "
            "buffers (RFC 9004, 6.1)."
        )
    return search_bursts("burst_s")(point, earlier)


ADDRESS_LOAD_PERCENT = 10.0  # load of the frames that test for learned addresses


LEARNING_RANGE = 256.0  # ratio of the highest to the lowest learning rate


def not_learned(facts: TrialFacts) -> int:
    """Return the number of frames to addresses that the device did not learn (flooded or lost)."""
    return facts.flooded + facts.lost


def search_addresses(point: SuitePoint, _earlier: Earlier) -> SearchMethod | str:
    """Return the search for the address capacity (RFC 2889, 5.7), or why it is impossible.

    The reason is that addresses would age out within a trial.
    """
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


def search_learning_rate(point: SuitePoint, _earlier: Earlier) -> SearchMethod | str:
    """Return the search for the learning rate (RFC 2889, 5.8), or why it is impossible.

    The reason is that addresses would age out within a trial.
    """
    asked = point.parameters
    events = int(asked.learning_addresses)
    slowest = asked.learning_fps_max / LEARNING_RANGE
    if events / slowest > asked.ageing_s:
        return _forgets(asked, f"{events} addresses at {slowest:g} frames/s take", events / slowest,
                        "learning_addresses", "learning_fps_max")  # fmt: skip
    return RateSearch(
        events, slowest, asked.learning_fps_max, asked.learning_width, "learning frames/s"
    )


def errored_sizes(point: SuitePoint, _earlier: Earlier) -> SearchMethod:
    """Return the method of one trial per errored frame size that the ports can send."""
    sizes = [size for size in ERRORED_SIZES if size <= point.frame_max]
    return FixedTrials(sizes, point.parameters.trial_s, "bytes")


def one_frame(point: SuitePoint, _earlier: Earlier) -> SearchMethod:
    """Return the method of trials in which a port sends one frame (RFC 2889, 5.10.3)."""
    return FixedTrials([1.0] * int(point.parameters.latency_repeats), 0.0, "frames")


def ndr_pdr_goals(parameters: SuiteParameters) -> Mapping[str, SearchGoal]:
    """Return the goals `ndr` and `pdr`, which differ in the permitted loss."""
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


class _LoadsAndLatency(LoadSearch):
    """Search for NDR and PDR, followed by latency trials at 10, 50 and 90 % of the NDR."""

    def __init__(self, goals: Sequence[SearchGoal], loads: LoadRange, latency_s: float) -> None:
        super().__init__(goals, loads)
        self._latency_s = latency_s

    def steps(self) -> Steps:
        """Yield the trials of the search, then the trials of latency."""
        yield from super().steps()
        for load in loads_of_latency(self.result(None)[0].relevant_lower_bound or 0.0):
            yield ProposedTrial(load, self._latency_s)


def search_ndr_pdr(point: SuitePoint, _earlier: Earlier) -> SearchMethod:
    """Return the search for NDR and PDR, followed by trials of latency."""
    asked = point.parameters
    return _LoadsAndLatency([*ndr_pdr_goals(asked).values()], point.loads, asked.latency_s)


def learning_range(point: SuitePoint) -> LoadRange:
    """Return the range of learning rates that a search tries."""
    most = point.parameters.learning_fps_max
    return LoadRange(most / LEARNING_RANGE, most, "frames/s")


def address_range(point: SuitePoint) -> LoadRange:
    """Return the range of address counts that a search tries."""
    return LoadRange(1, point.parameters.addresses_max, "addresses")


# --- buffering ------------------------------------------------------------------------------------
# Buffer sizes are measured by bursts that slightly oversubscribe an egress port (RFC 8239, section
# 3).


def line_percent(_point: SuitePoint) -> float:
    """Return the load of a port that sends at line rate, in percent of line."""
    return LINE_RATE_PERCENT


def line_frames(point: SuitePoint, extra: float) -> int:
    """Return the frames that a port sends at line rate while another port sends `extra` frames."""
    return round(extra / extra_share(point.parameters))


def _extra_percent(point: SuitePoint) -> float:
    return point.parameters.oversubscription_percent


def _extra_held(point: SuitePoint, frames: float) -> float:
    """Return the frames in the buffer after a port sent the given number of extra frames.

    The buffer drains at the small part of the line that the port at line rate leaves free.
    """
    return frames - frames * (100 - LINE_RATE_PERCENT) / _extra_percent(point)


def many_percent(point: SuitePoint) -> float:
    """Return the load of each port that sends to the same port (procedure 4), in % of line."""
    return (LINE_RATE_PERCENT + _extra_percent(point)) / point.sources


def _many_held(point: SuitePoint, frames: float) -> float:
    """Return the frames in the buffer if all ports send to one port at the same time.

    The egress line carries some frames until the last ones arrive.
    """
    interval = 100 / many_percent(point)  # interval of a port's frames, in frame times
    return point.sources * frames - interval * (frames - 1) - 1


@dataclass(frozen=True)
class _Buffer:
    """Search and formulas of a procedure of RFC 8239, 3 that measures a buffer in frames."""

    load_key: str  # key of the column with the load
    unit: str
    percent: Callable[[SuitePoint], float]  # load of the ports whose burst is searched
    held: Callable[[SuitePoint, float], float]  # frames buffered at the end, by the burst's length
    verifications: int

    def range(self, point: SuitePoint) -> LoadRange:
        """Return the range of burst lengths that a search tries."""
        return LoadRange(1, largest_burst(point, percent=self.percent(point)), self.unit)

    def search(self, point: SuitePoint, earlier: Earlier) -> SearchMethod:
        """Return the search for the longest burst without loss, begun near an earlier result."""
        found = [row[key] for row in earlier.values() for key in _FRAMES if row.get(key)]
        return CountSearch(
            largest_burst(point, percent=self.percent(point)),
            self.unit,
            repeats=int(point.parameters.burst_repeats),
            seconds_each=1.0 / (point.fps(self.percent(point)) or 1e6),
            verifications=self.verifications,
            near=self._length(point, found[-1]) if found else None,
        )

    def near(self, point: SuitePoint, frames: float) -> Row:
        """Return the result row for an assumed burst length, at which a later search may begin."""
        return {_FRAMES[0]: self.held(point, frames)}

    def _length(self, point: SuitePoint, held: float) -> int:
        """Return the length of the burst that leaves `held` frames in the buffer."""
        none = self.held(point, 0)
        return round((held - none) / (self.held(point, 1) - none))

    def row(self, measured: SubtestTrials) -> Row:
        """Return the table row of the buffer size in bytes and frames."""
        if capped(measured):
            return {}
        point = measured.point
        held = [self.held(point, burst) for burst in measured.results[0].longest]
        return spread("bytes", [point.size * frames for frames in held]) | {
            "frames": fmean(held) if held else None,
            self.load_key: self.percent(point),
            "iterations": len(held),
        }


_FRAMES = tuple(
    f"{name}_frames" for name in ("efficiency_buffer", "port_buffer", "pair_buffer", "buffer")
)


EXTRA = _Buffer("oversubscription", "extra frames", _extra_percent, _extra_held, 0)
"""Procedures 1 to 3: ports at line rate, and further ports with extra frames."""
MANY = _Buffer("load_percent", UNIT, many_percent, _many_held, 1)
"""Procedure 4: all other ports send to one port."""
