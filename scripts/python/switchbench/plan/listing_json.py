# SPDX-License-Identifier: BSD-3-Clause
"""The plan for programs: one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, TypeVar

from ..base import quantities, transports
from ..base.documents import PatternDocument
from ..base.model import WAITING, Part, Run, Trial
from ..config.clauses import Spec, clauses_sha256, selected
from ..config.steps import KERNELS, SIZELESS
from .engine import Phase, PlanRequest, plan_phases
from .hops import Hops
from .shares import MOST_FLOWS, oversubscribed

T = TypeVar("T")

PHASES_SHOWN = 12

OF_CLASS = frozenset(name for name in KERNELS if name in SIZELESS)  # who say their own sizes

PROBES_PERCENT = 0.1  # of line, by automatic probes and answers (engine/traffic/probe_frames.h)
PORTS_NAMED = 4  # in a sentence


@dataclass(frozen=True)
class ListingOptions:
    """How much is wanted."""

    phases: Sequence[int] | None = None  # only these
    everything: bool = False


@dataclass
class ListedPlan:
    """A plan that one or more trials follow."""

    number: int
    parts: tuple[Part, ...]
    pattern: PatternDocument
    seed: int
    phases: int
    trials: list[Trial] = field(default_factory=list)

    def listing(self, numbers: Sequence[int] | None) -> list[list[Phase]]:
        """The phases of each part."""
        return [
            plan_phases(PlanRequest.of(len(part.ranks), self.pattern, self.seed), numbers)
            for part in self.parts
        ]


@dataclass(frozen=True)
class ListedTest:
    """A test, its axes collected from its trials."""

    test: int
    pattern: str
    parameters: dict[str, list[Any]]  # every value that one has in some trial
    transport: str
    networks: list[str]
    ranks: list[int]
    sizes: list[list[int]]  # of an IMIX several in one
    size_unit: str  # frame | message
    loads: list[str]
    repeat: int
    repeat_most: int
    trials: int
    phases: int
    flows: int
    expected_s: float


def plans_of(run: Run) -> list[ListedPlan]:
    """The run's different plans, in the order of their first trial."""
    found: dict[str, ListedPlan] = {}
    for trial in run.trials:
        # Sizes change no flows.
        flows = {name: value for name, value in trial.pattern.items() if name != "bytes"}
        key = json.dumps([trial.document["parts"], flows, trial.document["seed"]])
        plan = found.get(key)
        if plan is None:
            plan = found[key] = ListedPlan(
                len(found), trial.parts, trial.pattern, trial.document["seed"], trial.phases
            )
        plan.trials.append(trial)
    return list(found.values())


def notes(run: Run) -> list[str]:
    alternated = [run.not_alternated] if run.not_alternated else []
    return [*run.reservations, *alternated, *_oversubscribed(run)]


def offered(run: Run) -> list[str]:
    """Return sentences on the intended load: of each transport of a pattern, and beside probes."""
    paced = [trial for trial in run.trials if trial.traffic not in WAITING]
    by_pattern: dict[str, dict[str, dict[str, None]]] = {}
    for trial in paced:
        loads = by_pattern.setdefault(trial.pattern["name"], {}).setdefault(trial.transport, {})
        loads[quantities.load_text(trial.load)] = None
    sentences: dict[str, None] = {}
    for pattern, loads_of in by_pattern.items():
        texts = {transport: " and ".join(loads) for transport, loads in loads_of.items()}
        if len(texts) > 1 and len(set(texts.values())) == 1:
            sentences[f"{next(iter(texts.values()))} over {' and '.join(texts)} alike"] = None
        elif len(texts) > 1:
            each = ", ".join(f"{text} over {transport}" for transport, text in texts.items())
            sentences[f"{pattern} differ: {each}"] = None
    probed = [trial for trial in paced if trial.traffic == "stream" and _probe_rate(trial) != 0]
    for rate in unique(map(_probe_rate, probed)):
        most = "at most 0.1 % of line" if rate is None else f"{rate:g}/s per flow"
        full = unique(
            quantities.load_text(trial.load)
            for trial in probed
            if _probe_rate(trial) == rate and _fills_line(trial)
        )
        yields = (
            f"; at {' and '.join(full)} the line has no room for both, and the load yields to them"
            if full
            else ""
        )
        sentences[f"latency probes are on top of the load, {most}{yields}"] = None
    return list(sentences)


def _probe_rate(trial: Trial) -> float | None:
    """Return the latency probes per second and flow; None: chosen by the engine."""
    latency: dict[str, Any] = trial.document.get("latency", {})
    rate: float | None = latency.get("probe_fps")
    return rate


def _fills_line(trial: Trial) -> bool:
    """Return whether frames leave less of the line than the probes may take."""
    percent = trial.load.percent or 0.0
    return transports.of(trial.transport).frames and percent > 100.0 - PROBES_PERCENT


def _oversubscribed(run: Run) -> Iterator[str]:
    """Ports that are offered more than their lines: a sentence for all plans."""
    plans = plans_of(run)
    offered = {plan.number: percents for plan in plans if (percents := _offered_percents(plan))}
    if not offered:
        return
    number = max(offered, key=lambda number: max(offered[number].values()))
    ports = [f"{port} ({percent:.4g} %)" for port, percent in offered[number].items()]
    named = ", ".join(ports[:PORTS_NAMED])
    if len(ports) > PORTS_NAMED:
        named += f" and {len(ports) - PORTS_NAMED} more"
    words = f"plan {number} offers more than the line of {named}"
    if len(offered) > 1:
        count = f"{len(offered)} of {len(plans)} plans"
        words = f"{count} offer a port more than its line, plan {number} the most: {named}"
    yield f"{words}: what a line has no room for is lost by design"


def _offered_percents(plan: ListedPlan) -> dict[str, float]:
    """The most that each of these ports is offered; a transport that waits for acknowledgements
    offers what it gets."""
    small = (trial for trial in plan.trials if trial.flows <= MOST_FLOWS)
    trials = {(trial.transport, trial.load): trial for trial in small}
    most: dict[str, float] = {}
    for trial in trials.values():
        if trial.traffic not in ("stream", "burst"):
            continue
        for part in trial.parts:
            own = trial.of(part.network)
            if transports.of(own.transport).reliable:
                continue
            for found in oversubscribed(own, part, own.load):
                most[found.port] = max(found.percent, most.get(found.port, 0.0))
    return most


def phases_shown(plan: ListedPlan, choice: ListingOptions) -> list[int]:
    numbers = range(plan.phases)
    if choice.phases is not None:
        return [number for number in choice.phases if number in numbers]
    return list(numbers if choice.everything else numbers[:PHASES_SHOWN])


def tests_of(run: Run) -> list[ListedTest]:
    """The run's tests in their order."""
    tests = []
    in_order = sorted(run.trials, key=lambda trial: trial.test)
    for number, group in groupby(in_order, key=lambda trial: trial.test):
        trials = list(group)
        first = trials[0]
        sure = [trial for trial in trials if not trial.optional]
        tests.append(
            ListedTest(
                test=number,
                pattern=first.pattern["name"],
                parameters=_collected(trials),
                transport=first.transport,
                networks=[part.network for part in first.parts],
                ranks=unique(len(trial.parts[0].ranks) for trial in trials),
                sizes=unique(size for trial in trials if (size := _size_of(trial)) is not None),
                size_unit=first.size_unit,
                loads=unique(load for trial in trials if (load := _load_of(trial)) is not None),
                repeat=first.repeats.least,
                repeat_most=first.repeats.most,
                trials=len(sure),
                phases=sum(trial.phases for trial in sure),
                flows=sum(trial.flows for trial in sure),
                expected_s=round(sum(trial.expected_s for trial in sure), 3),
            )
        )
    return tests


def _size_of(trial: Trial) -> list[int] | None:
    """None of an application kernel, whose class says the sizes."""
    return None if trial.pattern["name"] in OF_CLASS else list(trial.sizes)


def _load_of(trial: Trial) -> str | None:
    """None where messages wait for each other: nothing is offered at any rate."""
    return None if trial.traffic in WAITING else quantities.load_text(trial.load)


def _collected(trials: Iterable[Trial]) -> dict[str, list[Any]]:
    """Every value that a parameter has in some trial."""
    found: dict[str, list[Any]] = {}
    for trial in trials:
        for key, value in trial.parameters.items():
            values = found.setdefault(key, [])
            if value not in values:
                values.append(value)
    return found


def unique(values: Iterable[T]) -> list[T]:
    found: list[T] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def as_json(run: Run, choice: ListingOptions) -> dict[str, object]:
    """The whole plan as plain values (documented in `switchbench plan --help`)."""
    plans = plans_of(run)
    hops = Hops.of(run.site)
    number = {trial.id: plan.number for plan in plans for trial in plan.trials}
    return {
        "switchbench": 1,
        "seed": run.seed,
        "expected_s": round(run.expected_s, 3),
        "longest_s": round(run.longest_s, 3),
        "start_s": round(run.start_s, 3),
        "tests": [asdict(test) for test in tests_of(run)],
        "trials": [_trial(trial, number[trial.id]) for trial in run.trials],
        "plans": [_plan(plan, choice, hops) for plan in plans],
        "configuration": run.effective,
        "about": run.about,
        "clauses": [_clause(clause, run) for clause in run.expectations],
        "clauses_sha256": clauses_sha256(run.expectations) if run.expectations else None,
        "warnings": list(run.reservations),
        "notes": notes(run),
        "offered": offered(run),
    }


def _clause(clause: Spec, run: Run) -> dict[str, object]:
    trials = [trial.id for trial in selected(clause["where"], run.trials)]
    return {"over": "run", **clause, "trials": trials}


def _trial(trial: Trial, plan: int) -> dict[str, object]:
    return {
        "trial": trial.id,
        "test": trial.test,
        "repeat": trial.repeat,
        "plan": plan,
        "size": _size_of(trial),
        "load": _load_of(trial),
        "parameters": trial.parameters,
        "steps": None if trial.steps is None else asdict(trial.steps),
        "expected_s": round(trial.expected_s, 3),
    }


def _plan(plan: ListedPlan, choice: ListingOptions, hops: Hops | None) -> dict[str, object]:
    listing = plan.listing(phases_shown(plan, choice))
    longest = max(listing, key=len)
    return {
        "plan": plan.number,
        "networks": [part.network for part in plan.parts],
        "ranks": {part.network: [port.name for port in part.ranks] for part in plan.parts},
        "seed": plan.seed,
        "pattern": plan.pattern,
        "phases": [
            {
                "phase": phase.number,
                "name": phase.name,
                "networks": [
                    _named(phases[i], part, hops)
                    for part, phases in zip(plan.parts, listing, strict=True)
                    if i < len(phases)
                ],
            }
            for i, phase in enumerate(longest)
        ],
    }


def _named(phase: Phase, part: Part, hops: Hops | None) -> dict[str, object]:
    names = [port.name for port in part.ranks]
    hosts = [port.host for port in part.ranks]
    named: dict[str, object] = {
        "network": part.network,
        "flows": [
            [names[src], names[dst], "forward" if forwards else "generate"]
            for src, dst, forwards in phase.flows
        ],
        "idle": [names[rank] for rank in phase.idle],
    }
    if hops is not None:
        named["hops"] = [hops.between(hosts[src], hosts[dst]) for src, dst, _ in phase.flows]
    return named
