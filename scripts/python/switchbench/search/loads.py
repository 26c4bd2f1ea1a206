# SPDX-License-Identifier: BSD-3-Clause
"""Search for the highest load that goals allow (RFC 9971), without I/O.

Chooses the next trial, classifies loads by the trials' loss, and decides when a search ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import fmean
from typing import NamedTuple, Protocol


@dataclass(frozen=True)
class ProposedTrial:
    """Trial that a search proposes to measure next.

    `value` is the searched quantity: an intended load (in the unit of the search's range, such as
    frames/s), the length of a burst (frames), or the size of a table (addresses). `duration_s` is
    the intended duration in seconds, 0 where the value itself determines it.
    """

    value: float
    duration_s: float


@dataclass(frozen=True)
class TrialLoss:
    """Result of a trial in a search: offered and lost frames (RFC 9971, Trial Output).

    `offered` and `lost` are frames of all ports together, counted by senders and receivers; in a
    search of addresses, `lost` are flooded frames. `intended_s` is the intended duration.
    `tester_limited`: the offered load was below the intended load, so that the trial says nothing
    about the device.
    """

    offered: int
    lost: int
    intended_s: float
    tester_limited: bool = False
    # min over ports of offered load / intended load
    offered_part: float = 1.0

    @property
    def loss_ratio(self) -> float:
        """Return lost frames per offered frame, from 0 to 1 (RFC 9971, Trial Loss Ratio)."""
        return self.lost / self.offered if self.offered else 0.0


class End(Enum):
    """Reasons for the end of a search, each with a sentence; values replace the braces."""

    REACHED = "The bounds are as close as the goal requires."
    DONE = "All trials were measured."
    IN_PROGRESS = "The run ended before this measurement was complete."
    LOSS_AT_MIN = (
        "The device fails at the min of the range, {value:g} {unit}, so there is no "
        "lower bound: lower the min, or look for loss that does not depend on it."
    )
    NO_LOSS_AT_MAX = (
        "The device holds the max of the range, {value:g} {unit}, so there is no "
        "upper bound: its limit is there or above."
    )
    HELD_ALL_OFFERED = (
        "The device holds {value:g} {unit}, the most that the tester offered: its "
        "limit is there or above. Give the tester more cores, or lower the ports' rate."
    )
    LIMITED_BETWEEN = (
        "The device holds {value:g} {unit} and loses frames at {above:g}; between them the tester "
        "was the limit. Give the tester more cores, or lower the ports' rate."
    )
    LIMITED_BY_TIME = (
        "Of {value} addresses the device forwards all frames when it learns {faster:g} per "
        "second, and not at {rate:g}: it forgets addresses before the trial ends, or does not "
        "learn them in time. Raise its ageing time or learning_fps."
    )
    NOT_REPEATABLE = (
        "The device held {value:g} {unit}, and failed there at the end of the search: its table "
        "may be full of the addresses of all trials. Lower learning_addresses."
    )
    LIMITED_BY_TESTER = (
        "The tester, not the device, was the limit at {value:g} {unit} in each of "
        "{attempts} trials, so the search ended there: lower the max of the range or the "
        "ports' rate, or give the tester more cores."
    )
    OUT_OF_TIME = (
        "The search ended after {used_s:g} s: its next trial takes {next_s:g} s, "
        "and time_limit is {time_limit_s:g} s. The bounds so far are kept."
    )

    def at(self, value: float = 0.0, unit: str = "", **facts: float) -> SearchOutcome:
        """Return the outcome of a search that ends for this reason at a value of its range."""
        return SearchOutcome(self, self.value.format(value=value, unit=unit, **facts))


class SearchOutcome(NamedTuple):
    """Reason for the end of a search, with a sentence for the user."""

    end: End
    sentence: str

    @property
    def is_whole(self) -> bool:
        """Return whether the search was complete."""
        return self.end in (End.REACHED, End.NO_LOSS_AT_MAX, End.DONE)

    @property
    def is_of_device(self) -> bool:
        """Return whether the device, not the tester or the time limit, ended the search."""
        return self.end not in (
            End.HELD_ALL_OFFERED, End.IN_PROGRESS, End.LIMITED_BETWEEN, End.LIMITED_BY_TESTER,
            End.OUT_OF_TIME,
        )  # fmt: skip


@dataclass(frozen=True)
class SearchResult:
    """Result of a search: lower and upper bound, in the unit of the range; None: no bound.

    A search of loads has one result for each goal (RFC 9971, Goal Result). In a search of a
    count, the lower bound is that of the last search, even if this is still in progress.
    """

    outcome: SearchOutcome
    relevant_lower_bound: float | None = None
    relevant_upper_bound: float | None = None
    conditional_throughput: float | None = None
    longest: tuple[int, ...] = ()  # of a count: result of each search that has ended

    @property
    def is_regular(self) -> bool:
        """Return true if both bounds exist and are near enough (RFC 9971, Regular Goal Result)."""
        return self.outcome.end is End.REACHED

    @property
    def relative_width(self) -> float | None:
        """Return (upper - lower) / upper of the bounds (RFC 9971, Goal Width), or None."""
        if self.relevant_lower_bound is None or self.relevant_upper_bound is None:
            return None
        return 1.0 - self.relevant_lower_bound / self.relevant_upper_bound

    def held_at_min(self) -> SearchResult:
        """Return the result with the range's min as lower bound, if the search failed there."""
        if self.outcome.end is not End.LOSS_AT_MIN:
            return self
        least = self.relevant_upper_bound
        return replace(self, outcome=End.REACHED.at(), relevant_lower_bound=least, longest=(1,))


Steps = Generator[ProposedTrial, TrialLoss, None]
Asked = Generator[ProposedTrial, TrialLoss, bool]


class TesterLimitError(Exception):
    """Error: all repeats of a trial were tester-limited; a method may continue at other values."""

    def __init__(self, result: TrialLoss) -> None:
        """Store the result of the last repeat of the trial."""
        super().__init__("the tester was the limit")
        self.result = result


class SearchMethod(Protocol):
    """Method of a search: it proposes trials one after the other and stores their results."""

    unit: str

    def steps(self) -> Steps:
        """Yield proposed trials and receive their results, until the search is complete."""

    def result(self, stopped: SearchOutcome | None) -> tuple[SearchResult, ...]:
        """Return the result of the trials so far; `stopped` is the reason for an early end."""


@dataclass
class Search:
    """Search that runs a method, trial by trial.

    while (trial := search.trial) is not None:
        search.answer(measure(trial))
    print(search.result())

    A tester-limited trial decides nothing: the search proposes it again, at most `repeats` times.
    Then the method continues at other values (TesterLimitError), or the search ends. The search
    also ends when the next trial would not end within `time_limit_s` (seconds of trials, each with
    `overhead_s` for barrier, learning frames and drain).
    """

    method: SearchMethod
    time_limit_s: float = math.inf
    overhead_s: float = 0.0
    repeats: int = 2
    trial: ProposedTrial | None = field(default=None, init=False)
    """Next trial; None when the search has ended."""
    used_s: float = field(default=0.0, init=False)
    """Seconds of all trials so far, with their overheads."""
    trials: int = field(default=0, init=False)
    """Number of trials with a result."""
    stopped: SearchOutcome | None = field(default=None, init=False)
    """Reason for an end before the goals were reached."""
    # successive tester-limited trials of the proposed trial
    _limited: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Propose the first trial."""
        self._steps = self.method.steps()
        self._propose(lambda: next(self._steps))

    def answer(self, result: TrialLoss) -> None:
        """Store the result of the proposed trial, and propose the next trial."""
        trial = self.trial
        assert trial is not None
        self.used_s += result.intended_s + self.overhead_s
        self.trials += 1
        self._limited = self._limited + 1 if result.tester_limited else 0
        if not result.tester_limited:
            self._propose(lambda: self._steps.send(result))
        elif self._limited <= self.repeats:
            self._propose(lambda: trial)
        else:
            limit = End.LIMITED_BY_TESTER.at(trial.value, self.method.unit, attempts=self._limited)
            self._limited = 0
            try:
                self._propose(lambda: self._steps.throw(TesterLimitError(result)))
            except TesterLimitError:
                self._stop(limit)

    def result(self) -> tuple[SearchResult, ...]:
        """Return the method's results so far, also before the search has ended."""
        return self.method.result(self.stopped)

    def _propose(self, asked: Callable[[], ProposedTrial]) -> None:
        """Set the next trial, or end the search if the method is complete or no time is left."""
        try:
            self.trial = asked()
        except StopIteration:
            self.trial = None
            return
        next_s = self.trial.duration_s + self.overhead_s
        if self.used_s + next_s > self.time_limit_s:
            self._stop(
                End.OUT_OF_TIME.at(
                    time_limit_s=self.time_limit_s, used_s=self.used_s, next_s=next_s
                )
            )

    def _stop(self, outcome: SearchOutcome) -> None:
        self.stopped = outcome
        self.trial = None
        self._steps.close()


# --- estimates ------------------------------------------------------------------------------------
# The duration of a search is estimated by running the search on a simulated device.


FRAMES = 10**9  # frames of a simulated trial: enough for every loss ratio
# limits of simulated devices, as parts of the range on a logarithmic scale
TRUTHS = (0.03, 0.21, 0.39, 0.57, 0.75, 0.93)


def method_s(
    make: Callable[[float], SearchMethod],
    values: LoadRange,
    overhead_s: float = 0.0,
    of: Callable[[Sequence[float]], float] = fmean,
) -> float:
    """Return the estimated seconds of a search, from searches on simulated devices.

    A device that loses at random, or forwards less under overload, takes longer. `make` returns the
    method for a limit; `values` is the range of limits; `overhead_s` is each trial's time besides
    its duration; `of` combines the times of several limits.
    """
    found = []
    for part in TRUTHS:
        truth = values.min * (values.max / values.min) ** part
        search = Search(make(truth), overhead_s=overhead_s)
        while (trial := search.trial) is not None:
            lost = round(FRAMES * max(0.0, 1.0 - truth / trial.value))
            search.answer(TrialLoss(FRAMES, lost, trial.duration_s))
        found.append(search.used_s)
    return of(found)


# --- loads ----------------------------------------------------------------------------------------
# Goals of a search (RFC 9971, Search Goal), and the usable loads.


@dataclass(frozen=True)
class SearchGoal:
    """Goal of a search: the condition of a lower bound, and the required distance of the bounds.

    `loss_ratio` (0 to below 1): a trial that loses more is bad. `exceed_ratio` (0 to below 1): the
    share of the duration sum that bad trials may take. `final_trial_s`: seconds of a full-length
    trial. `duration_sum_s`: seconds of full-length trials that classify a load.
    `initial_trial_s`: seconds of the first, short trials. `width`: the largest
    (upper - lower) / upper that ends the search.
    """

    loss_ratio: float
    exceed_ratio: float
    final_trial_s: float
    duration_sum_s: float
    initial_trial_s: float = 1.0
    width: float = 0.005


@dataclass(frozen=True)
class LoadRange:
    """Min and max intended load (RFC 9971), in one unit of rate: 0 < min < max."""

    min: float
    max: float
    unit: str = "frames/s"


class LoadGrid:
    """Grid of loads from min (number 0) to max (number `top`), each a fixed ratio above the last.

    All goals of a search use one grid, so that one trial serves all goals.
    """

    def __init__(self, loads: LoadRange, width: float) -> None:
        self.loads = loads
        self._whole = math.log(loads.max / loads.min)
        self.top = max(1, math.ceil(self._whole / -math.log1p(-width)))
        """Number of the max load, equal to the number of steps from min to max."""

    def load(self, number: int) -> float:
        """Return the load with the given number, from 0 to `top`, in the unit of the range."""
        if number == self.top:
            return self.loads.max
        return self.loads.min * math.exp(self._whole * number / self.top)

    def below(self, load: float) -> int:
        """Return the number of the grid's highest load that is at most `load`; 0 if none is."""
        if load <= self.loads.min:
            return 0
        return min(self.top, math.floor(math.log(load / self.loads.min) / self._whole * self.top))


# --- classify -------------------------------------------------------------------------------------
# Classification of a load by its trials: lower bound, upper bound, or undecided (RFC 9971).


class LoadClass(Enum):
    """Class of a load: lower bound, upper bound or undecided (RFC 9971, Load Classification)."""

    LOWER = "lower bound"
    UPPER = "upper bound"
    UNDECIDED = "undecided"


def classify(goal: SearchGoal, trials: Sequence[TrialLoss]) -> LoadClass:
    """Classify a load by all its trials, in any order (RFC 9971, Load Classification).

    Trials shorter than the goal's final one count only by the excess of bad trials over the good
    ones that balance them. The load is classified with the missing duration as good and as bad: if
    both agree, no further trial is needed. Tester-limited trials do not count.
    """
    sums = dict.fromkeys(((long, bad) for long in (0, 1) for bad in (0, 1)), 0.0)
    for trial in trials:
        if not trial.tester_limited:
            long, bad = trial.intended_s >= goal.final_trial_s, trial.loss_ratio > goal.loss_ratio
            sums[long, bad] += trial.intended_s
    balanced = sums[0, 0] * goal.exceed_ratio / (1.0 - goal.exceed_ratio)
    bad_s = sums[1, 1] + max(0.0, sums[0, 1] - balanced)
    whole_s = max(sums[1, 0] + bad_s, goal.duration_sum_s)
    allowed_s = whole_s * goal.exceed_ratio
    if_rest_good, if_rest_bad = bad_s <= allowed_s, whole_s - sums[1, 0] <= allowed_s
    if if_rest_good != if_rest_bad:
        return LoadClass.UNDECIDED
    return LoadClass.LOWER if if_rest_good else LoadClass.UPPER


def conditional_loss(goal: SearchGoal, trials: Sequence[TrialLoss]) -> float:
    """Return the loss ratio (0 to 1) for a lower bound's conditional throughput (RFC 9971).

    Full-length trials are sorted by loss; the result is the loss of the trial at which the share
    that must be good is complete (RFC 9971, Conditional Throughput). Missing duration counts as
    lost.
    """
    long: dict[float, float] = {}
    for trial in trials:
        if trial.intended_s >= goal.final_trial_s and not trial.tester_limited:
            long[trial.loss_ratio] = long.get(trial.loss_ratio, 0.0) + trial.intended_s
    measured_s = sum(long.values())
    left_s = max(goal.duration_sum_s, measured_s) * (1.0 - goal.exceed_ratio)
    ratio = 1.0
    for ratio in sorted(long):
        left_s -= long[ratio]
        if left_s <= 0.0:
            return ratio
    # A remainder due to rounding does not count as missing duration.
    return ratio if measured_s >= goal.duration_sum_s else 1.0


class RelevantBounds(NamedTuple):
    """Load numbers of RFC 9971's Relevant Lower and Upper Bound; None if no load qualifies."""

    lower: int | None
    upper: int | None


NO_BOUNDS = RelevantBounds(None, None)


def relevant_bounds(goal: SearchGoal, trials: Mapping[int, Sequence[TrialLoss]]) -> RelevantBounds:
    """Return the smallest load that is an upper bound, and the largest lower bound below.

    `trials` has all trials of a load by the load (any number in the order of loads). Lower bounds
    above the smallest upper bound (loss inversion) are not relevant.
    """
    lower = None
    for load in sorted(trials):
        found = classify(goal, trials[load])
        if found is LoadClass.UPPER:
            return RelevantBounds(lower, load)
        if found is LoadClass.LOWER:
            lower = load
    return RelevantBounds(lower, None)


# --- levels ---------------------------------------------------------------------------------------
# Approach of a search to one goal: short trials first, longer ones from level to level.


PRECEDING = 2  # number of levels before the final level
EXPANSION = 2  # factor by which an external search increases its distance


def levels(goal: SearchGoal) -> list[tuple[SearchGoal, int]]:
    """Return the levels of a search for a goal, each with the max distance of the bounds.

    A level is a goal with shorter trials; the last level is the goal itself. Duration sums grow by
    one ratio, from the initial trial's to the goal's. The level before the final one is as narrow
    as the final one, so that the longest trials only confirm its bounds.
    """
    ratio = (goal.initial_trial_s / goal.duration_sum_s) ** (1.0 / PRECEDING)
    found = [(goal, 1)]
    if ratio == 1.0:
        return found
    for number in range(1, PRECEDING + 1):
        sum_s = max(goal.initial_trial_s, goal.duration_sum_s * ratio**number)
        if number == PRECEDING:
            sum_s = goal.initial_trial_s
        shorter = replace(goal, final_trial_s=min(goal.final_trial_s, sum_s), duration_sum_s=sum_s)
        found.insert(0, (shorter, 2 ** (number - 1)))
    return found


def is_narrow(bounds: RelevantBounds, steps: int, top: int) -> bool:
    """Return whether the bounds of a search are near enough, or no load is left to measure.

    `steps`: max distance of the bounds on the grid.
    """
    if bounds.lower is None:
        return bounds.upper == 0
    if bounds.lower >= top:  # the tester cannot offer a higher load
        return True
    return bounds.upper is not None and bounds.upper - bounds.lower <= steps


def next_load(bounds: RelevantBounds, hint: RelevantBounds, steps: int, top: int) -> int:
    """Return the number of the load (0 to `top`) to measure next, to narrow the bounds.

    `bounds`: relevant bounds at this level. `hint`: bounds of the level before. The load is
    undecided at this level, so that each trial advances the search. First comes the middle of the
    hint, if that makes the bounds narrow enough at once, then the hint's ends. Beyond these, steps
    grow (external search); between two bounds, the search halves (internal search).
    """
    lower, upper = bounds.lower, bounds.upper
    ends = [load for load in (hint.lower, hint.upper) if load is not None]
    first, last = ends[0], ends[-1]
    halves = [(first + last) // 2] if steps < last - first <= 2 * steps else []
    for load in halves + ends:
        if (lower is None or load > lower) and (upper is None or load < upper):
            return load
    if lower is None:
        assert upper is not None
        down = upper - max(steps, (EXPANSION - 1) * (last - upper))
        return 0 if down < steps else down
    up = lower + max(steps, (EXPANSION - 1) * (lower - first))
    if upper is None:
        return top if top - up < steps else up
    middle = (lower + upper) // 2
    # Prefer a load next to the hint if the middle is farther away.
    if upper <= first:
        return max(middle, upper - max(steps, (EXPANSION - 1) * (last - upper)))
    return min(middle, up) if lower >= last else middle


@dataclass
class GoalProgress:
    """Progress of a search for one goal: current level, and bounds of the previous level."""

    levels: list[tuple[SearchGoal, int]]
    top: int  # number of the highest load that the tester can offer
    hint: RelevantBounds = NO_BOUNDS
    level: int = 0

    def nominate(self, trials: Mapping[int, Sequence[TrialLoss]]) -> tuple[int, float] | None:
        """Return (load number, seconds) of the goal's next trial; None if the goal is reached.

        The number is an index of the load grid.
        """
        for goal, steps in self.levels[self.level :]:
            bounds = relevant_bounds(goal, trials)
            if not is_narrow(bounds, steps, self.top):
                # The tester may be unable to offer the hint's loads in a longer trial.
                load = min(next_load(bounds, self.hint, steps, self.top), self.top)
                return load, goal.final_trial_s
            if self.level < len(self.levels) - 1:
                self.level += 1
                self.hint = bounds
        return None


# --- multiple -------------------------------------------------------------------------------------
# Search for the highest load that each of several goals allows (RFC 9971, MLRsearch).


class LoadSearch:
    """Method for `Search` with several goals: each trial is on one load grid and serves all goals.

    Of the trials that the goals propose, the shortest is measured first; of equally short ones, the
    trial at the lowest load. Results are one SearchResult per goal, in the order of the goals.
    """

    def __init__(self, goals: Sequence[SearchGoal], loads: LoadRange) -> None:
        self.unit = loads.unit
        self._goals = tuple(goals)
        self._grid = LoadGrid(loads, min(goal.width for goal in goals))
        self._trials: dict[int, list[TrialLoss]] = {}
        self._top = self._grid.top  # highest load that the tester can offer
        self._late = False  # true: a load was offered, but late
        self._progress = [GoalProgress(levels(goal), self._grid.top) for goal in goals]

    def steps(self) -> Steps:
        """Yield initial trials, then the goals' proposals until all are done (RFC 9971, Search).

        A load that the tester offered late is proposed again at the end. By then, trials at lower
        loads have shown how many late frames do no harm.
        """
        hint = yield from self._initial()
        for progress in self._progress:
            progress.hint = hint
        once = True
        while True:
            asked = [progress.nominate(self._trials) for progress in self._progress]
            wanted = [(seconds, load) for load, seconds in filter(None, asked)]
            if not wanted:
                if not (self._late and once):
                    return
                once = False
                self._limit(self._grid.top)
                continue
            seconds, load = min(wanted)
            yield from self._measure(load, seconds)

    def result(self, stopped: SearchOutcome | None) -> tuple[SearchResult, ...]:
        """Return one result per goal, from the trials so far."""
        return tuple(
            self._goal_result(*progress.levels[-1], stopped) for progress in self._progress
        )

    def _measure(self, load: int, seconds: float) -> Asked:
        """Propose a trial at a load of the grid; return true if the trial was measured.

        If the tester was the limit, lower the top of the grid and return False.
        """
        try:
            result = yield ProposedTrial(self._grid.load(load), seconds)
        except TesterLimitError as limit:
            top = self._grid.below(self._grid.load(load) * limit.result.offered_part)
            if top >= load - 1 and max(self._trials, default=0) > load:
                top = load - 1
                self._late = True
            if not 0 < top < load:
                raise
            self._limit(top)
            return False
        self._trials.setdefault(load, []).append(result)
        return True

    def _limit(self, top: int) -> None:
        """Set the highest load that the tester can offer."""
        self._top = top
        for progress in self._progress:
            progress.top = top

    def _initial(self) -> Generator[ProposedTrial, TrialLoss, RelevantBounds]:
        """Measure up to three short trials; return the bounds at which the search begins.

        The trials are at the max load, at the load that the device forwarded then, and near this.
        """
        seconds = max(progress.levels[0][0].final_trial_s for progress in self._progress)
        allowed = min(goal.loss_ratio for goal in self._goals)
        beside = max(progress.levels[0][1] for progress in self._progress)
        while not (yield from self._measure(self._top, seconds)):
            pass
        top = self._top
        first = self._forwarded(top, allowed)
        if first >= top:
            return RelevantBounds(top, None)
        first = 0 if first < beside else min(first, top - 1)
        if not (yield from self._measure(first, seconds)):
            return RelevantBounds(self._top, None)
        if self._trials[first][-1].loss_ratio > allowed:
            second = min(self._forwarded(first, allowed), first - beside)
        else:
            second = first + beside
        if not 0 < second < top:
            return RelevantBounds(first, top)
        yield from self._measure(second, seconds)
        return RelevantBounds(min(first, second), max(first, second))

    def _forwarded(self, load: int, allowed: float) -> int:
        """Return the grid number of the load that the device forwarded in its last trial at `load`.

        The permitted loss ratio `allowed` counts as forwarded.
        """
        ratio = (1.0 - self._trials[load][-1].loss_ratio) / (1.0 - allowed)
        return load if ratio >= 1.0 else self._grid.below(self._grid.load(load) * ratio)

    def _goal_result(
        self, goal: SearchGoal, steps: int, stopped: SearchOutcome | None
    ) -> SearchResult:
        bounds = relevant_bounds(goal, self._trials)
        lower = None if bounds.lower is None else self._grid.load(bounds.lower)
        upper = None if bounds.upper is None else self._grid.load(bounds.upper)
        throughput = None
        if bounds.lower is not None and lower is not None:
            throughput = lower * (1.0 - conditional_loss(goal, self._trials[bounds.lower]))
        outcome = End.REACHED.at()
        if not is_narrow(bounds, steps, self._top):
            outcome = stopped or End.IN_PROGRESS.at()
        elif self._top < self._grid.top and not is_narrow(bounds, steps, self._grid.top):
            failed = (
                load
                for load, trials in self._trials.items()
                if load > self._top and any(one.loss_ratio > goal.loss_ratio for one in trials)
            )
            above, held = min(failed, default=None), self._grid.load(self._top)
            if above is None:
                outcome = End.HELD_ALL_OFFERED.at(held, self.unit)
            else:
                outcome = End.LIMITED_BETWEEN.at(held, self.unit, above=self._grid.load(above))
        elif upper is None:
            outcome = End.NO_LOSS_AT_MAX.at(self._grid.loads.max, self.unit)
        elif lower is None:
            outcome = End.LOSS_AT_MIN.at(self._grid.loads.min, self.unit)
        return SearchResult(outcome, lower, upper, throughput)


class OneSearch:
    """Base of search methods that have one result."""

    _lower: float | None = None
    _upper: float | None = None
    _longest: tuple[int, ...] = ()
    _end: SearchOutcome | None = None

    def result(self, stopped: SearchOutcome | None) -> tuple[SearchResult, ...]:
        """Return the only result of the method, from the trials so far."""
        outcome = self._end or stopped or End.IN_PROGRESS.at()
        return (SearchResult(outcome, self._lower, self._upper, longest=self._longest),)


@dataclass
class FixedTrials(OneSearch):
    """Method for `Search`: one trial of `duration_s` for each given value.

    With `enough`, the method ends after this number of successive trials without loss, and fails if
    this does not happen.
    """

    values: Sequence[float]
    duration_s: float
    unit: str
    enough: int | None = None

    def steps(self) -> Steps:
        """Yield one trial per value."""
        held = 0
        for value in self.values:
            result = yield ProposedTrial(value, self.duration_s)
            held = held + 1 if result.lost == 0 else 0
            if held == self.enough:
                break
        failed = self.enough is not None and held < self.enough
        self._end = End.LOSS_AT_MIN.at(value, self.unit) if failed else End.DONE.at()
