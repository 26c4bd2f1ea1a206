# SPDX-License-Identifier: BSD-3-Clause
"""What `switchbench plan` prints: tests with their time, then each plan's phases by names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..base import format, quantities, timing
from ..base.model import SCHEDULE, WAITING, Part, Port, Run, Trial
from ..config.clauses import clauses_sha256, selected
from ..config.steps import COMPOSITE, KERNELS, SIZELESS
from .engine import Phase, PlanRequest, plan_phases
from .hops import Hops

PHASES_SHOWN = 12
FLOWS_SHOWN = 16
PORTS_SHOWN = 24

_OF_CLASS = frozenset(name for name in KERNELS if name in SIZELESS)  # who say their own sizes
_SUITE_KEYS = (COMPOSITE, "pair", "among")  # what tells a suite's own trials apart


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
    pattern: dict[str, Any]
    seed: int
    phases: int
    trials: list[Trial] = field(default_factory=list)

    def listing(self, numbers: Sequence[int] | None) -> list[list[Phase]]:
        """The phases of each part."""
        return [
            plan_phases(PlanRequest.of(len(part.ranks), self.pattern, self.seed), numbers)
            for part in self.parts
        ]


def plans_of(run: Run) -> list[ListedPlan]:
    """The run's different plans, in the order of their first trial."""
    found: dict[str, ListedPlan] = {}
    for trial in run.trials:
        # Of a suite's pairs one stands for all; sizes change no flows.
        flows = {name: value for name, value in trial.pattern.items() if name != "bytes"}
        where = (
            trial.parameters[COMPOSITE] if "pair" in trial.parameters else trial.document["parts"]
        )
        key = json.dumps([where, flows, trial.document["seed"]])
        plan = found.get(key)
        if plan is None:
            plan = found[key] = ListedPlan(
                len(found), trial.parts, trial.pattern, trial.document["seed"], trial.phases
            )
        plan.trials.append(trial)
    return list(found.values())


# --- for people ----------------------------------------------------------------------------------


def show(run: Run, choice: ListingOptions, console: Console) -> None:
    """Prints the plan of a run."""
    console.print(Text(_site_line(run)))
    console.print(_tests_table(run))
    longest = f" to {timing.human(run.longest_s)}" if run.longest_s > run.expected_s else ""
    console.print(
        f"expected time {timing.human(run.expected_s)}{longest}, of it "
        f"{timing.human(run.start_s)} to start"
    )
    for note in _notes(run):
        console.print(Text(f"note: {note}"))
    for name in run.unbuilt:
        console.print(Text(f"not built yet, so this can't be run: {name}"))
    if run.expectations:
        console.print(_clauses_table(run))
        console.print(Text(f"clauses: SHA-256 {clauses_sha256(run.expectations)}\n"))
    if any(port.switch for port in run.site.ports):
        console.print(_ports_table(run, choice))
    hops = Hops.of(run.site)
    if hops is not None:
        console.print(Text("(n): hops of a flow, over links or switches from node to node\n"))
    if any(trial.traffic == SCHEDULE for trial in run.trials):
        console.print(
            "Of plans by steps, flows are all who send to each other: their messages, and the "
            "barrier between batches.\n"
        )
    for plan in plans_of(run):
        _show_plan(plan, choice, hops, console)


def _notes(run: Run) -> list[str]:
    return [*run.reservations, *([run.not_alternated] if run.not_alternated else [])]


def _site_line(run: Run) -> str:
    site = run.site
    what = f"lab {site.lab}" if site.lab else f"site of {len(site.processes)} hosts ({site.launch})"
    networks = ", ".join(f"{name}: {len(ports)} ports" for name, ports in site.networks.items())
    return f"{what}; {networks}; {len(site.processes)} node processes; seed {run.seed}"


def _tests_table(run: Run) -> Table:
    table = _table("test", "pattern", "transport", "network", "ranks", "size", "load")
    for column in ("repeat", "trials", "phases", "expected"):
        table.add_column(column, justify="right")
    for test in tests_of(run):
        cells = (
            str(test["test"]),
            " ".join([test["pattern"], *_words(test["parameters"])]),
            test["transport"],
            " + ".join(test["networks"]),
            _few(test["ranks"]),
            _few(_sizes(test)),
            _few(test["loads"]) or format.UNKNOWN,
            _repeats(test),
            str(test["trials"]),
            str(test["phases"]),
            timing.human(test["expected_s"]),
        )
        # As plain text: rich would take [left right] for its own markup.
        table.add_row(*map(Text, cells))
    return table


def _clauses_table(run: Run) -> Table:
    """What will be judged, and in how many trials."""
    table = _table("clause", "what it requires")
    table.add_column("trials", justify="right")
    for clause in run.expectations:
        over = clause.get("over", "run")
        of = "the run" if over == "run" else f"each {over}"
        words = " ".join(clause[key] for key in ("id", "clause") if key in clause)
        required = f"{clause['measure']} of {of} {clause['require']}"
        trials = sum(1 for _ in selected(clause["where"], run.trials))
        table.add_row(*map(Text, (words or "-", required, str(trials))))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table


def _words(parameters: dict[str, list[Any]]) -> Iterator[str]:
    """Parameters in few words: `forward`, `partners=across`, `count=7,8,9`."""
    for key, values in parameters.items():
        if key == "scatter":
            yield from _scatter_words(values)
            continue
        texts = [_word(value) for value in values]
        if texts == ["true"]:
            yield key
        elif texts != ["false"]:
            yield f"{key}={','.join(texts)}"


def _scatter_words(values: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Messages of drawn sizes, which have their own column: `scatter=random messages=250`."""
    for name, key in (("scatter", "partners"), ("messages", "count"), ("compute", "compute")):
        found = _unique(value[key] for value in values)
        if found != [0.0]:
            yield f"{name}={','.join(str(value) for value in found)}"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + " ".join(_word(item) for item in value[:4]) + ("…" * (len(value) > 4)) + "]"
    return str(value)


def _few(values: Sequence[Any], most: int = 7) -> str:
    texts = [str(value) for value in values]
    return ", ".join(texts[:most]) + (f" … {texts[-1]}" if len(texts) > most else "")


def _sizes(test: dict[str, Any]) -> list[str]:
    """In words; an application kernel's are its class's, or its matrix's."""
    parameters = test["parameters"]
    if "scatter" in parameters:
        spans = (value["sizes"] for value in parameters["scatter"])
        return _unique(" to ".join(map(quantities.SIZE.text, span)) for span in spans)
    if test["sizes"]:
        return [_size(sizes, test["size_unit"]) for sizes in test["sizes"]]
    kinds = {"problem_class": "class", "matrix": "matrix"}
    return [f"{word} {value}" for key, word in kinds.items() for value in parameters.get(key, ())]


def _size(sizes: Sequence[int], unit: str) -> str:
    if len(sizes) == 1:
        return str(sizes[0]) if unit == "frame" else quantities.SIZE.text(sizes[0])
    runs = [(size, len(list(group))) for size, group in groupby(sizes)]
    return "IMIX " + " ".join(f"{count}x{size}" for size, count in runs)


def _ports_table(run: Run, choice: ListingOptions) -> Table:
    table = _table("network", "rank", "port", "switch", "switch port", "line rate")
    ports = [
        (network, rank, port)
        for network, members in run.site.networks.items()
        for rank, port in enumerate(members)
    ]
    most = len(ports) if choice.everything else PORTS_SHOWN
    for network, rank, port in ports[:most]:
        rate = quantities.RATE.text(port.line_rate_bps) if port.line_rate_bps else "unknown"
        where = (port.switch or "", port.switch_port or "")
        table.add_row(*map(Text, (network, str(rank), port.name, *where, rate)))
    if len(ports) > most:
        table.add_row("", "", f"… {len(ports) - most} more (--all)", "", "", "")
    return table


def _show_plan(
    plan: ListedPlan, choice: ListingOptions, hops: Hops | None, console: Console
) -> None:
    console.print(Text(_title(plan), style="bold"))
    numbers = _phases_shown(plan, choice)
    table = _table("phase", "name", "network") if len(plan.parts) > 1 else _table("phase", "name")
    table.add_column("flows", overflow="fold")
    for part, phases in zip(plan.parts, plan.listing(numbers), strict=True):
        for phase in phases:
            where = [Text(part.network)] if len(plan.parts) > 1 else []
            flows = _flows(phase, part, choice, hops)
            table.add_row(str(phase.number), phase.name, *where, flows)
    console.print(table)
    if len(numbers) < plan.phases and choice.phases is None:
        console.print(f"… {plan.phases - len(numbers)} more phases (--all, or --phases RANGES)\n")


def _title(plan: ListedPlan) -> str:
    tests = list(dict.fromkeys(trial.test for trial in plan.trials))
    ranks = " + ".join(f"{len(part.ranks)} ranks of {part.network}" for part in plan.parts)
    first = plan.trials[0]
    parameters = {key: [value] for key, value in first.parameters.items() if key not in _SUITE_KEYS}
    suite = [f"{COMPOSITE} {first.parameters[COMPOSITE]}:"] if COMPOSITE in first.parameters else []
    words = " ".join([*suite, plan.pattern["name"], *_words(parameters)])
    pairs = len({trial.parameters.get("pair") for trial in plan.trials})
    others = f" ({format.of(pairs, 'pair')} in turn, of which this is the first)" * (pairs > 1)
    return (
        f"plan {plan.number}: {words}, {ranks}{others}, {format.of(plan.phases, 'phase')}"
        f"{_steps_words(first)} "
        f"(test{'s' * (len(tests) > 1)} {', '.join(map(str, tests))})"
    )


def _steps_words(trial: Trial) -> str:
    """What one repetition is of what goes by steps."""
    steps = trial.steps
    if steps is None:
        return ""
    told = [format.of(steps[f"{what}s"] or 0, what) for what in ("step", "message")]
    together = ""
    if trial.pattern["name"] in _OF_CLASS:
        together = f", {format.decimal_size(steps['payload_bytes'] or 0)} together"
    iterations = steps["iterations"]
    in_all = f"; {format.of(iterations, 'iteration')} in all" if iterations else ""
    where = " in all phases" if trial.phases > 1 else ""
    return f", {' and '.join(told)} of all ranks{where}{together}{in_all}"


def _phases_shown(plan: ListedPlan, choice: ListingOptions) -> list[int]:
    numbers = range(plan.phases)
    if choice.phases is not None:
        return [number for number in choice.phases if number in numbers]
    return list(numbers if choice.everything else numbers[:PHASES_SHOWN])


def _flows(phase: Phase, part: Part, choice: ListingOptions, hops: Hops | None) -> Text:
    """Flows by names: `a⇄b` both ways, `a→b`, `a⇒b` where a forwards; then who idles."""
    arrows = _arrows(phase)
    most = len(arrows) if choice.everything else FLOWS_SHOWN
    lines = ", ".join(_arrow_text(*arrow, part.ranks, hops) for arrow in arrows[:most])
    if len(arrows) > most:
        lines += f" … {len(arrows) - most} more"
    if phase.idle:
        idle = [part.ranks[rank].name for rank in phase.idle]
        lines += f"; idle: {NodeSet.fromlist(idle, resolver=RESOLVER_NOGROUP)}"
    return Text(lines)


def _arrows(phase: Phase) -> list[tuple[int, int, str]]:
    """Source, destination and the arrow between them; two flows that meet are one."""
    pairs = {flow[:2] for flow in phase.flows}
    return [
        (src, dst, "⇄" if (dst, src) in pairs else "⇒" if forwards else "→")
        for src, dst, forwards in phase.flows
        if src < dst or (dst, src) not in pairs
    ]


def _arrow_text(src: int, dst: int, arrow: str, ranks: Sequence[Port], hops: Hops | None) -> str:
    """Without spaces, so that lines break between flows and not inside of one."""
    far = f"({hops.between(ranks[src].host, ranks[dst].host)})" if hops is not None else ""
    return f"{ranks[src].name}{arrow}{ranks[dst].name}{far}"


# --- for programs --------------------------------------------------------------------------------


def tests_of(run: Run) -> list[dict[str, Any]]:
    """One entry for each test, its axes collected from its trials."""
    tests = []
    in_order = sorted(run.trials, key=lambda trial: trial.test)
    for number, group in groupby(in_order, key=lambda trial: trial.test):
        trials = list(group)
        first = trials[0]
        sure = [trial for trial in trials if not trial.optional]
        suite = COMPOSITE in first.parameters
        tests.append(
            {
                "test": number,
                "pattern": COMPOSITE if suite else first.pattern["name"],
                "parameters": _collected(trials, without=_SUITE_KEYS),
                "transport": first.transport,
                "networks": [part.network for part in first.parts],
                "ranks": _unique(
                    trial.parameters.get("among", len(trial.parts[0].ranks)) for trial in trials
                ),
                "sizes": _unique(size for trial in trials if (size := _size_of(trial)) is not None),
                "size_unit": first.size_unit,
                "loads": _unique(load for trial in trials if (load := _load_of(trial)) is not None),
                "repeat": first.repeats.least,
                "repeat_most": first.repeats.most,
                "trials": len(sure),
                "phases": sum(trial.phases for trial in sure),
                "flows": sum(trial.flows for trial in sure),
                "expected_s": round(sum(trial.expected_s for trial in sure), 3),
            }
        )
    return tests


def _size_of(trial: Trial) -> list[int] | None:
    """None of an application kernel, whose class says the sizes."""
    return None if trial.pattern["name"] in _OF_CLASS else list(trial.sizes)


def _load_of(trial: Trial) -> str | None:
    """None where messages wait for each other: nothing is offered at any rate."""
    return None if trial.traffic in WAITING else quantities.load_text(trial.load)


def _repeats(test: dict[str, Any]) -> str:
    if test["pattern"] == COMPOSITE:
        return "as HPCC"
    least, most = test["repeat"], test["repeat_most"]
    return str(least) if least == most else f"{least} to {most}"


def _collected(trials: Iterable[Trial], without: Sequence[str]) -> dict[str, list[Any]]:
    """Every value that a parameter has in some trial."""
    found: dict[str, list[Any]] = {}
    for trial in trials:
        for key, value in trial.parameters.items():
            if key in without:
                continue
            values = found.setdefault(key, [])
            if value not in values:
                values.append(value)
    return found


def _unique(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def as_json(run: Run, choice: ListingOptions) -> dict[str, Any]:
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
        "tests": tests_of(run),
        "trials": [_trial(trial, number[trial.id]) for trial in run.trials],
        "plans": [_plan(plan, choice, hops) for plan in plans],
        "configuration": run.effective,
        "about": run.about,
        "clauses": [_clause(clause, run) for clause in run.expectations],
        "clauses_sha256": clauses_sha256(run.expectations) if run.expectations else None,
        "warnings": list(run.reservations),
        "notes": _notes(run),
        "not_built": list(run.unbuilt),
    }


def _clause(clause: dict[str, Any], run: Run) -> dict[str, Any]:
    trials = [trial.id for trial in selected(clause["where"], run.trials)]
    return {"over": "run", **clause, "trials": trials}


def _trial(trial: Trial, plan: int) -> dict[str, Any]:
    return {
        "trial": trial.id,
        "test": trial.test,
        "repeat": trial.repeat,
        "plan": plan,
        "size": _size_of(trial),
        "load": _load_of(trial),
        "parameters": trial.parameters,
        "steps": trial.steps,
        "expected_s": round(trial.expected_s, 3),
    }


def _plan(plan: ListedPlan, choice: ListingOptions, hops: Hops | None) -> dict[str, Any]:
    listing = plan.listing(_phases_shown(plan, choice))
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


def _named(phase: Phase, part: Part, hops: Hops | None) -> dict[str, Any]:
    names = [port.name for port in part.ranks]
    hosts = [port.host for port in part.ranks]
    named: dict[str, Any] = {
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
