# SPDX-License-Identifier: BSD-3-Clause
"""Ways to measure that no document shares: fixed trials, loads in steps down, learning rates."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from ...base.measures import NEITHER, PERCENT
from ...base.model import Load
from ..counts import CountResult, CountSearch
from ..loads import (
    Done,
    InProgress,
    LoadRange,
    LossAtMin,
    NoLossAtMax,
    NotRepeatable,
    ProposedTrial,
    Reached,
    SearchOutcome,
    Steps,
    Stopped,
    TrialLoss,
    TrialsResult,
)
from . import declaration
from .declaration import (
    LINE_RATE_PERCENT,
    Earlier,
    Flow,
    Method,
    Row,
    Rows,
    Subtest,
    SubtestTrials,
    SuiteParameters,
    SuitePoint,
    TrialFacts,
    Value,
    Variant,
    Variants,
)
from .throughput import load_value, spread, spread_values


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
