# SPDX-License-Identifier: BSD-3-Clause
"""How long plans by steps take: every rank goes on when its own messages have come and gone.

A simulation of all messages: those under way share the network as a model of contention says, and
are divided anew whenever one begins or is gone. Messages of one pair follow each other, as in one
connection. A message is there when its last byte has left and the path's latency has passed; its
sender goes on without waiting for that. Formulas: doc/reference/topology.md, "Plans by steps".
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import numpy as np

from ..plan.engine import RECEIVE, SEND, WORK, Ops
from ..topology.fabric.routes import Ranks, Rates

MOST_MESSAGES = 100_000
"""Of one repetition; plans with more are left out."""
_FOLLOWED = 50_000
"""Messages of the repetitions of a batch that are followed, two repetitions at least; the rest go
on as the second half of these did."""
_MOST_DIVIDED = 10_000_000
"""Flows under way, summed over all moments at which their rates are not known yet: some 15 s."""
_MOST_KNOWN = 2_000_000
"""The same of rates that are kept: 32 MB."""
_AT_ONCE_S = 1e-9
"""What is so near is at the same time: sums of floating point differ by less."""

Pair = tuple[int, int]
RatesOf = Callable[[Ranks], Rates]
"""The rates of these flows, by number, while no other sends."""


@dataclass(frozen=True)
class Step:
    """What a rank does at the same time, and what it computes afterwards."""

    sends: tuple[tuple[int, int], ...]
    """A flow's number and the message's bytes."""
    receives: tuple[int, ...]
    """Flows' numbers."""
    operations: int


@dataclass(frozen=True)
class StepProgram:
    """One repetition of all ranks."""

    flows: tuple[Pair, ...]
    """Source and destination by number of the flow."""
    steps: tuple[tuple[Step, ...], ...]
    """By rank."""

    @property
    def busy(self) -> list[int]:
        """The ranks that have messages."""
        return sorted({rank for pair in self.flows for rank in pair})


def program_of(ops: Sequence[Ops]) -> StepProgram:
    """From what the engine says of one phase: the operations of each rank."""
    numbers: dict[Pair, int] = {}
    steps = tuple(_steps(rank, each, numbers) for rank, each in enumerate(ops))
    return StepProgram(tuple(numbers), steps)


def _steps(rank: int, ops: Ops, numbers: dict[Pair, int]) -> tuple[Step, ...]:
    sends: dict[int, list[tuple[int, int]]] = defaultdict(list)
    receives: dict[int, list[int]] = defaultdict(list)
    operations: dict[int, int] = defaultdict(int)
    for step, action, peer, amount in ops.tolist():
        if action == SEND:
            sends[step].append((numbers.setdefault((rank, peer), len(numbers)), amount))
        elif action == RECEIVE:
            receives[step].append(numbers.setdefault((peer, rank), len(numbers)))
        elif action == WORK:
            operations[step] += amount
    last = max([*sends, *receives, *operations], default=-1)
    return tuple(
        Step(tuple(sends[step]), tuple(receives[step]), operations[step])
        for step in range(last + 1)
    )


@dataclass(frozen=True)
class StepCosts:
    """What messages and computing cost beside the lines."""

    latency_s: float
    """From a message's last byte to its receiver's going on."""
    bits: float = 8.0
    """At layer 1, of a byte of payload."""
    gap_s: float = 0.0
    """Between two messages that a rank sends, or takes in."""
    flops: float = np.inf
    """Floating point operations a second of one rank."""
    late_s: float = 0.0
    """By how much a rank goes on later after each step, in the mean: exponentially distributed."""


@dataclass
class _Rank:
    """Where a rank is."""

    position: int = 0
    """Its step, counted through all repetitions."""
    open: int = 0
    """Messages of the step that have not gone, or have not come."""
    out_s: float = -np.inf
    in_s: float = -np.inf
    """When it last began to send, and took something in."""
    ends: list[float] = field(default_factory=list)
    """Of its repetitions."""


class TooLongError(Exception):
    """More moments, and flows under way in them, than are followed."""


class Execution:
    """Some repetitions, one behind the other without a barrier, all ranks begun together."""

    def __init__(
        self, program: StepProgram, costs: StepCosts, rates: RatesOf, repetitions: int
    ) -> None:
        self._program = program
        self._costs = costs
        self._rates = rates
        self._repetitions = repetitions
        self._ranks = [_Rank() for _ in program.steps]
        self._waiting: list[deque[float]] = [deque() for _ in program.flows]  # bits of each message
        self._left = np.zeros(len(program.flows))  # of the first one
        self._going: set[int] = set()
        self._came = [0] * len(program.flows)  # before they were waited for
        self._missed = [0] * len(program.flows)  # waited for before they came
        self._known: dict[bytes, Rates] = {}
        self._kept = 0  # flows in them
        self._divided = 0
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._chance = np.random.default_rng(len(program.flows))
        self._now_s = 0.0

    def run(self) -> list[list[float]]:
        """When each rank has ended each repetition, in seconds; TooLongError."""
        for number, steps in enumerate(self._program.steps):
            if steps:
                self._open(number)
        while self._going or self._later:
            self._go_on()
        return [rank.ends for rank in self._ranks]

    # --- ranks ---

    def _open(self, number: int) -> None:
        """A rank's next step, and those behind it that need not wait."""
        rank, steps = self._ranks[number], self._program.steps[number]
        while rank.position < self._repetitions * len(steps):
            step = steps[rank.position % len(steps)]
            rank.open = len(step.sends)
            for flow, size in step.sends:
                self._send(rank, flow, size)
            for flow in step.receives:
                if self._came[flow]:
                    self._came[flow] -= 1
                else:
                    self._missed[flow] += 1
                    rank.open += 1
            if rank.open or not self._complete(number, step):
                return

    def _complete(self, number: int, step: Step) -> bool:
        """The step's messages are through; whether the rank goes on at once."""
        idle_s = step.operations / self._costs.flops
        if self._costs.late_s:
            idle_s += self._chance.exponential(self._costs.late_s)
        if idle_s:
            self._at(self._now_s + idle_s, lambda: self._computed(number))
            return False
        self._pass(number)
        return True

    def _computed(self, number: int) -> None:
        self._pass(number)
        self._open(number)

    def _pass(self, number: int) -> None:
        rank, steps = self._ranks[number], self._program.steps[number]
        rank.position += 1
        if rank.position % len(steps) == 0:
            rank.ends.append(self._now_s)

    def _through(self, number: int) -> None:
        """One message less to wait for."""
        rank, steps = self._ranks[number], self._program.steps[number]
        rank.open -= 1
        if rank.open == 0 and self._complete(number, steps[rank.position % len(steps)]):
            self._open(number)

    # --- messages ---

    def _send(self, rank: _Rank, flow: int, size: int) -> None:
        rank.out_s = max(self._now_s, rank.out_s + self._costs.gap_s)
        bits = self._costs.bits * size
        if rank.out_s > self._now_s:
            self._at(rank.out_s, lambda: self._begin(flow, bits))
        else:
            self._begin(flow, bits)

    def _begin(self, flow: int, bits: float) -> None:
        self._waiting[flow].append(bits)
        if len(self._waiting[flow]) == 1:
            self._start(flow)

    def _start(self, flow: int) -> None:
        """The first of a pair's messages has the path; one without bytes is gone at once."""
        self._left[flow] = self._waiting[flow][0]
        if self._left[flow] > 0:
            self._going.add(flow)
        else:
            self._at(self._now_s, lambda: self._gone(flow))

    def _gone(self, flow: int) -> None:
        self._going.discard(flow)
        self._waiting[flow].popleft()
        if self._waiting[flow]:
            self._start(flow)
        source, destination = self._program.flows[flow]
        receiver = self._ranks[destination]
        receiver.in_s = max(self._now_s + self._costs.latency_s, receiver.in_s + self._costs.gap_s)
        self._at(receiver.in_s, lambda: self._arrive(flow, destination))
        self._through(source)

    def _arrive(self, flow: int, destination: int) -> None:
        if self._missed[flow]:
            self._missed[flow] -= 1
            self._through(destination)
        else:
            self._came[flow] += 1

    # --- time ---

    def _at(self, when_s: float, what: Callable[[], None]) -> None:
        heappush(self._later, (when_s, next(self._order), what))

    def _go_on(self) -> None:
        """To the next moment at which something begins, is gone or arrives."""
        going = np.array(sorted(self._going), dtype=np.int64)
        rates = self._rates_of(going)
        rest_s = self._left[going] / rates
        step_s = float(rest_s.min(initial=np.inf))
        if self._later:
            step_s = min(step_s, max(0.0, self._later[0][0] - self._now_s))
        self._now_s += step_s
        self._left[going] -= rates * step_s
        for flow in going[rest_s <= step_s + _AT_ONCE_S].tolist():
            self._gone(flow)
        while self._later and self._later[0][0] <= self._now_s + _AT_ONCE_S:
            heappop(self._later)[2]()

    def _rates_of(self, going: Ranks) -> Rates:
        key = going.tobytes()
        if key not in self._known:
            self._divided += going.size
            if self._divided > _MOST_DIVIDED:
                raise TooLongError
            self._kept += going.size
            if self._kept > _MOST_KNOWN:
                self._known.clear()
                self._kept = going.size
            self._known[key] = np.maximum(self._rates(going), 1e-3) if going.size else np.empty(0)
        return self._known[key]


@dataclass(frozen=True)
class StepTime:
    """A repetition of a phase."""

    by_rank: Mapping[int, float]
    """Seconds, of the ranks that have messages."""

    @property
    def mean_s(self) -> float:
        """Over ranks: IMB's t_avg."""
        return sum(self.by_rank.values()) / len(self.by_rank)

    @property
    def slowest_s(self) -> float:
        """Of the slowest rank."""
        return max(self.by_rank.values())


def repetition(
    program: StepProgram, costs: StepCosts, rates: RatesOf, batch: int, lead: int = 0
) -> StepTime | None:
    """How long one takes in batches of so many, behind so many that are not timed; None where no
    rank has messages, or where it is too much to follow."""
    busy = program.busy
    if not busy:
        return None
    messages = sum(len(step.sends) for steps in program.steps for step in steps)
    whole = lead + batch
    followed = min(whole, max(2, _FOLLOWED // max(1, messages)))
    try:
        ends = Execution(program, costs, rates, followed).run()
    except TooLongError:
        return None
    return StepTime({n: (_end(ends[n], whole) - _end(ends[n], lead)) / batch for n in busy})


def _end(ends: Sequence[float], number: int) -> float:
    """Of the repetition with this number, from 1; those that were not followed go on alike."""
    if number <= len(ends):
        return ends[number - 1] if number else 0.0
    half = len(ends) // 2
    each = (ends[-1] - ends[half - 1]) / (len(ends) - half)
    return ends[-1] + (number - len(ends)) * each
