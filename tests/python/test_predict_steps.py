# SPDX-License-Identifier: BSD-3-Clause
"""Plans by steps predicted: what algorithms cost by their own formulas, and who waits for whom."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from configs import needs_engine
from switchbench.plan.engine import RECEIVE, SEND, WORK, PlanRefused, PlanRequest, _asked, plan_ops
from switchbench.predict import stepwise
from switchbench.predict.models import MODELS, Flows
from switchbench.predict.stepwise import (
    Execution,
    RatesOf,
    StepCosts,
    StepProgram,
    StepTime,
    program_of,
    repetition,
)
from switchbench.topology.fabric import Fabric, Link, Routes

LINE = 100e6
T0 = 50e-6
COSTS = StepCosts(T0)
MODEL_NAMES = ("hockney", "max-min", "proportional")


def star(ranks: int) -> Routes:
    """Hosts on one switch."""
    names = tuple(f"h{i}" for i in range(ranks))
    return Routes(Fabric("star", names, ("s",), tuple(Link(n, "s", int(LINE)) for n in names)))


def program(ops: dict[int, list[tuple[int, int, int, int]]]) -> StepProgram:
    """By rank: rows of step, action, other rank, bytes or operations."""
    return program_of(
        [np.array(ops[rank], dtype=np.int64).reshape(-1, 4) for rank in range(len(ops))]
    )


def planned(ranks: int, **pattern: Any) -> StepProgram:
    """As the engine has it."""
    (phase,) = plan_ops(PlanRequest.of(ranks, pattern, 1))
    return program_of(phase[1])


def sharing(routes: Routes, of: StepProgram, model: str) -> RatesOf:
    """Rates by a model."""
    ranks = np.array(of.flows, dtype=np.int64)
    flows = Flows.of(routes, ranks, np.full(len(ranks), np.inf))
    rates: RatesOf = lambda which: MODELS[model](flows.only(which))  # noqa: E731
    return rates


def predicted(
    of: StepProgram, model: str = "max-min", costs: StepCosts = COSTS, batch: int = 1, lead: int = 0
) -> StepTime:
    """Of a repetition on one switch."""
    found = repetition(of, costs, sharing(star(len(of.steps)), of, model), batch, lead)
    assert found is not None
    return found


def line_s(size: float) -> float:
    """A message alone, without latency."""
    return 8 * size / LINE


SIZE = 1 << 20
"""Of a vector, or of what one rank has for another; divides by eight ranks."""

ALGORITHMS: list[tuple[dict[str, Any], Callable[[int], float]]] = [
    # Thakur, Rabenseifner and Gropp 2005: what each algorithm takes where no line is shared.
    (
        {"name": "allreduce", "algorithm": "recursive-doubling"},
        lambda n: math.log2(n) * (T0 + line_s(SIZE)),
    ),
    (
        {"name": "allreduce", "algorithm": "ring"},
        lambda n: 2 * (n - 1) * (T0 + line_s(SIZE / n)),
    ),
    (
        {"name": "allreduce", "algorithm": "rabenseifner"},
        lambda n: 2 * math.log2(n) * T0 + 2 * line_s(SIZE) * (n - 1) / n,
    ),
    ({"name": "allgather", "algorithm": "ring"}, lambda n: (n - 1) * (T0 + line_s(SIZE))),
    (
        {"name": "allgather", "algorithm": "recursive-doubling"},
        lambda n: math.log2(n) * T0 + (n - 1) * line_s(SIZE),
    ),
    ({"name": "alltoall", "algorithm": "pairwise"}, lambda n: (n - 1) * (T0 + line_s(SIZE))),
    (
        {"name": "alltoall", "algorithm": "bruck"},
        lambda n: math.log2(n) * (T0 + line_s(SIZE * n / 2)),
    ),
    ({"name": "barrier"}, lambda n: math.log2(n) * T0),
]


@needs_engine
@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize(
    ("pattern", "formula"),
    ALGORITHMS,
    ids=["-".join(pattern.values()) for pattern, _ in ALGORITHMS],
)
def test_collectives_take_what_their_formulas_say(
    pattern: dict[str, Any], formula: Callable[[int], float], ranks: int
) -> None:
    size = {} if pattern["name"] == "barrier" else {"bytes": SIZE}
    of = planned(ranks, **pattern, **size)
    for model in MODEL_NAMES:
        time = predicted(of, model)
        assert time.mean_s == pytest.approx(formula(ranks), rel=1e-6), model
        assert time.slowest_s == pytest.approx(time.mean_s)


@needs_engine
def test_all_at_once_share_the_ports() -> None:
    """The linear all-to-all: n - 1 messages out of each port and into it at the same time."""
    of = planned(4, name="alltoall", algorithm="linear", bytes=SIZE)
    assert predicted(of, "hockney").mean_s == pytest.approx(T0 + line_s(SIZE))
    for model in ("max-min", "proportional", "loggp"):
        assert predicted(of, model).mean_s == pytest.approx(T0 + 3 * line_s(SIZE)), model


@needs_engine
def test_a_root_goes_ahead_and_the_others_wait() -> None:
    """A broadcast down a binomial tree: the root is through when it has sent to its children."""
    of = planned(8, name="bcast", algorithm="binomial", bytes=SIZE)
    one = line_s(SIZE)
    time = predicted(of)
    assert time.slowest_s == pytest.approx(3 * (T0 + one))
    # In a long batch nobody waits for the whole tree: the root's three messages take the time.
    long = predicted(of, batch=1000)
    assert long.slowest_s == pytest.approx(3 * one, rel=0.02)


@needs_engine
def test_the_engine_says_what_each_rank_does() -> None:
    """Two ranks swap 1,000 bytes; and numbers of more than 32 bits come whole."""
    ((phase, ranks),) = plan_ops(
        PlanRequest.of(2, {"name": "alltoall", "algorithm": "pairwise", "bytes": 1000}, 1)
    )
    assert phase == 0
    for rank, ops in enumerate(ranks):
        other = 1 - rank
        moved = [row for row in ops.tolist() if row[1] in (SEND, RECEIVE)]
        assert moved == [[0, SEND, other, 1000], [0, RECEIVE, other, 1000]]
    ((_, few),) = plan_ops(PlanRequest.of(2, {"name": "nas_ep", "class": "A"}, 1))
    ((_, many),) = plan_ops(PlanRequest.of(2, {"name": "nas_ep", "class": "D"}, 1))
    work = [sum(row[3] for row in ops[0].tolist() if row[1] == WORK) for ops in (few, many)]
    assert work[1] > 1 << 32
    assert work[1] == pytest.approx(256 * work[0], rel=1e-3)  # 2^28 and 2^36 pairs of numbers


@needs_engine
def test_a_plan_without_steps_has_no_operations() -> None:
    with pytest.raises(PlanRefused, match=r"plan.ops: pairs has no dependent steps"):
        list(plan_ops(PlanRequest.of(2, {"name": "pairs", "partners": "neighbours"}, 1)))


@needs_engine
def test_the_headline_of_operations_is_the_plans() -> None:
    """It is a record whatever else is asked for, and flows and operations are two things."""
    request = PlanRequest.of(2, {"name": "barrier"}, 1)
    text = request.document(None, totals_only=True, numbers="ops")
    assert json.loads(_asked(text))["type"] == "plan"
    both = request.document(None, numbers="ops").replace("ops: true", "ops: true\n  packed: true")
    with pytest.raises(PlanRefused, match="packed are flows, and ops no flows"):
        _asked(both)


def test_messages_of_a_pair_follow_each_other() -> None:
    """Two at once to the same rank, the small one second: it is there after the large one."""
    of = program({
        0: [(0, SEND, 1, SIZE), (0, SEND, 1, 1000)],
        1: [(0, RECEIVE, 0, SIZE), (1, RECEIVE, 0, 1000)],
    })  # fmt: skip
    assert predicted(of).slowest_s == pytest.approx(T0 + line_s(SIZE + 1000))


def test_who_comes_early_is_kept() -> None:
    """Rank 1 computes first; what rank 0 sent meanwhile is there when it looks."""
    operations = 3_000_000
    of = program({
        0: [(0, SEND, 1, 1000), (1, SEND, 1, 2000)],
        1: [(0, WORK, 0, operations), (1, RECEIVE, 0, 1000), (2, RECEIVE, 0, 2000)],
    })  # fmt: skip
    slow = predicted(of, costs=StepCosts(T0, flops=1e9))
    assert slow.slowest_s == pytest.approx(operations / 1e9)
    assert slow.mean_s == pytest.approx((operations / 1e9 + line_s(3000)) / 2)
    quick = predicted(of)  # computing takes no time
    assert quick.slowest_s == pytest.approx(T0 + line_s(3000))


def test_a_pipeline_is_as_fast_as_its_stages() -> None:
    """Four ranks hand on ten pieces: three hops for the first one, then one piece after another."""
    pieces, ranks = 10, 4
    ops: dict[int, list[tuple[int, int, int, int]]] = {rank: [] for rank in range(ranks)}
    for step in range(pieces):
        ops[0].append((step, SEND, 1, SIZE))
        ops[ranks - 1].append((step, RECEIVE, ranks - 2, SIZE))
    for rank in range(1, ranks - 1):
        ops[rank].append((0, RECEIVE, rank - 1, SIZE))
        for step in range(1, pieces):
            ops[rank] += [(step, SEND, rank + 1, SIZE), (step, RECEIVE, rank - 1, SIZE)]
        ops[rank].append((pieces, SEND, rank + 1, SIZE))
    time = predicted(program(ops))
    assert time.slowest_s == pytest.approx((pieces + 2) * line_s(SIZE) + 3 * T0, rel=0.01)


def test_gaps_hold_up_who_sends_and_who_takes_in() -> None:
    """LogGP: seven small messages leave one gap apart, and come in one gap apart."""
    gap, ranks = 10e-6, 8
    others = range(1, ranks)
    costs = StepCosts(T0, gap_s=gap)
    scatter = program(
        {0: [(0, SEND, rank, 0) for rank in others]} | {r: [(0, RECEIVE, 0, 0)] for r in others}
    )
    assert predicted(scatter, costs=costs).slowest_s == pytest.approx(T0 + 6 * gap)
    gather = program(
        {0: [(0, RECEIVE, rank, 0) for rank in others]} | {r: [(0, SEND, 0, 0)] for r in others}
    )
    assert predicted(gather, costs=costs).slowest_s == pytest.approx(T0 + 6 * gap)


@needs_engine
def test_lateness_costs_all_to_alls_without_a_barrier_more_than_rings() -> None:
    """Who is late meets two senders at a time; in a ring the next one waits, and that is all."""
    late = StepCosts(T0, late_s=500e-6)
    ring = planned(8, name="allreduce", algorithm="ring", bytes=SIZE)
    pairwise = planned(8, name="alltoall", algorithm="pairwise", bytes=1 << 16)
    slower = [
        predicted(of, costs=late, batch=8).mean_s / predicted(of, batch=8).mean_s
        for of in (ring, pairwise)
    ]
    assert 1.02 < slower[0] < 1.3
    assert slower[1] > 1.3
    # The same is drawn each time.
    assert predicted(ring, costs=late, batch=8) == predicted(ring, costs=late, batch=8)


def test_a_trunk_between_switches_is_shared() -> None:
    """Two pairs over one cable have half of it each; where only one rank waits longer, the other
    has what is left."""
    names = ("a", "b", "c", "d")
    links = [Link(name, "left" if name in "ab" else "right", int(LINE)) for name in names]
    fabric = Fabric("two", names, ("left", "right"), (*links, Link("left", "right", int(LINE))))
    of = program({
        0: [(0, SEND, 2, SIZE)], 1: [(0, SEND, 3, 3 * SIZE)],
        2: [(0, RECEIVE, 0, SIZE)], 3: [(0, RECEIVE, 1, 3 * SIZE)],
    })  # fmt: skip
    time = repetition(of, StepCosts(0.0), sharing(Routes(fabric), of, "max-min"), batch=1)
    assert time is not None
    assert time.slowest_s == pytest.approx(4 * line_s(SIZE))
    assert time.mean_s == pytest.approx((2 + 4 + 2 + 4) / 4 * line_s(SIZE))


@needs_engine
def test_repetitions_that_are_not_followed_go_on_alike() -> None:
    """A batch of a thousand has the mean of one of eight, where all repetitions are alike; a lead
    is not counted."""
    of = planned(4, name="allreduce", algorithm="ring", bytes=SIZE)
    one = predicted(of).mean_s
    assert predicted(of, batch=1000).mean_s == pytest.approx(one)
    assert predicted(of, batch=5, lead=50).mean_s == pytest.approx(one)


@needs_engine
def test_repetitions_that_differ_are_followed() -> None:
    """Leaves of a reduction are ahead of its root, by more and more: a long batch is followed as
    far as a short one is."""
    of = planned(8, name="reduce", algorithm="binomial", bytes=1 << 16)
    rates = sharing(star(8), of, "max-min")
    ends = Execution(of, COSTS, rates, 300).run()
    found = repetition(of, COSTS, rates, batch=300)
    assert found is not None
    assert found.mean_s == pytest.approx(sum(each[-1] for each in ends) / 8 / 300)


@needs_engine
def test_too_much_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up, and what is kept of rates stays small."""
    of = planned(8, name="alltoall", algorithm="linear", bytes=1 << 16)
    rates = sharing(star(8), of, "max-min")
    late = StepCosts(T0, late_s=1e-3)
    as_it_is = repetition(of, late, rates, batch=4)
    monkeypatch.setattr(stepwise, "_MOST_KNOWN", 100)
    assert repetition(of, late, rates, batch=4) == as_it_is
    monkeypatch.setattr(stepwise, "_MOST_DIVIDED", 1000)
    assert repetition(of, late, rates, batch=4) is None


def test_nobody_has_messages() -> None:
    assert repetition(program({0: []}), COSTS, lambda which: np.empty(0), batch=1) is None
