# SPDX-License-Identifier: BSD-3-Clause
"""Contents of a run's plan for `switchbench plan`, as plain values.

`--json` writes these values unchanged; render/terminal.py prints them on a terminal.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from typing import TypeVar

import numpy as np
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ..base import quantities, transports
from ..base.errors import some
from ..base.model import SCHEDULE, WAITING, Part, Run, Trial
from ..config.clauses import clauses_sha256, selected
from ..config.schema import PATTERNS
from .engine import MOST_FLOWS, Phase, oversubscribed, plan_phases

T = TypeVar("T")

PHASES_SHOWN = 12
FLOWS_SHOWN = 16

PROBES_PERCENT = 0.1  # max % of line for automatic probes and replies (engine/traffic/prober.h)
PORTS_NAMED = 4  # max number of ports named in a sentence


def listing(run: Run, everything: bool = True, in_words: bool = False) -> dict[str, object]:
    """Return the plan of a run as plain values (format: `switchbench plan --help`).

    `everything`: list all phases and flows. `in_words`: list the flows of a phase as one text for
    users.
    """
    plans, site, said = _plans(run), run.site, notes(run)

    def listed(number: int, trials: list[Trial]) -> dict[str, object]:
        first = trials[0]
        chosen = range(first.phases if everything else min(first.phases, PHASES_SHOWN))
        names: dict[int, str] = {}
        networks: dict[int, list[dict[str, object]]] = {}
        for part in first.parts:
            ranks, seed = len(part.ranks), first.seed
            for phase in plan_phases(ranks, first.pattern, seed, list(chosen)):
                names.setdefault(phase.number, phase.name)
                entry = {"network": part.network, **_flows(phase, part, everything, in_words)}
                networks.setdefault(phase.number, []).append(entry)
        return {
            "plan": number,
            "networks": [part.network for part in first.parts],
            "ranks": {part.network: [port.name for port in part.ranks] for part in first.parts},
            "seed": first.seed,
            "pattern": first.pattern,
            "total_phases": first.phases,
            "phases": [
                {"phase": number, "name": name, "networks": networks[number]}
                for number, name in names.items()
            ],
        }

    what = f"lab {site.lab}" if site.lab else f"site of {len(site.processes)} hosts ({site.launch})"
    networks = ", ".join(f"{name}: {len(ports)} ports" for name, ports in site.networks.items())
    if any(trial.traffic == SCHEDULE for trial in run.trials):
        said.append(
            "for collectives, all communicating pairs are listed: messages, and the barrier "
            "between batches"
        )
    number = {trial.id: i for i, trials in enumerate(plans) for trial in trials}
    return {
        "switchbench": 1,
        "site": f"{what}; {networks}; {len(site.processes)} node processes; seed {run.seed}",
        "ports": [
            {
                "network": network,
                "rank": rank,
                "port": port.name,
                "switch": port.switch,
                "switch_port": port.switch_port,
                "line_rate_bps": port.line_rate_bps or None,
            }
            for network, members in site.networks.items()
            for rank, port in enumerate(members)
        ],
        "seed": run.seed,
        "expected_s": round(run.expected_s, 3),
        "longest_s": round(run.longest_s, 3),
        "start_s": round(run.start_s, 3),
        "tests": _tests(run),
        "trials": [
            {
                "trial": trial.id,
                "test": trial.test,
                "repeat": trial.repeat,
                "plan": number[trial.id],
                "size": _size_of(trial),
                "load": _load_of(trial),
                "parameters": trial.parameters,
                "steps": None if trial.steps is None else asdict(trial.steps),
                "expected_s": round(trial.expected_s, 3),
            }
            for trial in run.trials
        ],
        "plans": [listed(i, trials) for i, trials in enumerate(plans)],
        "configuration": run.effective,
        "about": run.about,
        "clauses": [
            {"over": "run", **clause,
             "trials": [trial.id for trial in selected(clause["where"], run.trials)]}
            for clause in run.expectations
        ],
        "clauses_sha256": clauses_sha256(run.expectations) if run.expectations else None,
        "warnings": list(run.reservations),
        "notes": said,
    }  # fmt: skip


def _plans(run: Run) -> list[list[Trial]]:
    """Return the run's trials grouped by plan, in the order of each plan's first trial."""
    found: dict[str, list[Trial]] = {}
    for trial in run.trials:
        # Trials that differ in size have the same flows.
        flows = {name: value for name, value in trial.pattern.items() if name != "bytes"}
        ranks = [[part.network, *(port.name for port in part.ranks)] for part in trial.parts]
        found.setdefault(json.dumps([ranks, flows, trial.seed]), []).append(trial)
    return list(found.values())


def notes(run: Run) -> list[str]:
    """Return sentences on the plan that users should know, such as oversubscribed ports."""
    found = [*run.reservations]
    plans = _plans(run)
    # By plan: for each oversubscribed port the max offered load in percent of its line. Transports
    # that wait for acknowledgements do not oversubscribe.
    offered: dict[int, dict[str, float]] = defaultdict(dict)
    for i, trials in enumerate(plans):
        small = (trial for trial in trials if trial.flows <= MOST_FLOWS)
        for trial in {(trial.transport, trial.load): trial for trial in small}.values():
            for part in trial.parts if trial.traffic in ("stream", "burst") else ():
                own = trial.of(part.network)
                if not transports.of(own.transport).reliable:
                    for port, percent in oversubscribed(own, part):
                        offered[i][port] = max(percent, offered[i].get(port, 0.0))
    if offered:  # one sentence on oversubscribed ports of all plans
        number = max(offered, key=lambda number: max(offered[number].values()))
        ports = [f"{port} ({percent:.4g} %)" for port, percent in offered[number].items()]
        named = some(ports, PORTS_NAMED)
        words = f"plan {number} offers more than the line of {named}"
        if len(offered) > 1:
            count = f"{len(offered)} of {len(plans)} plans"
            words = f"{count} offer a port more than its line, plan {number} the most: {named}"
        found.append(f"{words}: the excess is lost by design")
    loads = dict.fromkeys(
        quantities.load_text(trial.load)
        for trial in run.trials
        if trial.traffic == "stream" and trial.probe_fps != 0
        if transports.of(trial.transport).frames
        if (trial.load.percent or 0.0) > 100.0 - PROBES_PERCENT
    )
    if loads:
        found.append(
            f"at {' and '.join(loads)} the line can't carry both the load and latency probes: the "
            "load is lowered"
        )
    return found


def _tests(run: Run) -> list[dict[str, object]]:
    """Return the run's tests in order, each with all sizes, loads and parameters of its trials."""
    tests = []
    in_order = sorted(run.trials, key=lambda trial: trial.test)
    for number, group in groupby(in_order, key=lambda trial: trial.test):
        trials = list(group)
        first = trials[0]
        sure = [trial for trial in trials if not trial.optional]
        keys = unique(key for trial in trials for key in trial.parameters)
        tests.append(
            {
                "test": number,
                "pattern": first.pattern["name"],
                "parameters": {
                    key: unique(t.parameters[key] for t in trials if key in t.parameters)
                    for key in keys
                },
                "transport": first.transport,
                "networks": [part.network for part in first.parts],
                "ranks": unique(len(trial.parts[0].ranks) for trial in trials),
                "sizes": unique(size for trial in trials if (size := _size_of(trial)) is not None),
                "size_unit": first.size_unit,
                "loads": unique(load for trial in trials if (load := _load_of(trial)) is not None),
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
    """Return a trial's sizes; None for an application kernel, whose problem class sets them."""
    return None if PATTERNS[trial.pattern["name"]].of_class else list(trial.sizes)


def _load_of(trial: Trial) -> str | None:
    """Return a trial's load as text; None for dependent messages, which have no load."""
    return None if trial.traffic in WAITING else quantities.load_text(trial.load)


def unique(values: Iterable[T]) -> list[T]:
    """Return the distinct values of a sequence in order of first appearance."""
    found: list[T] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _flows(phase: Phase, part: Part, everything: bool, in_words: bool) -> dict[str, object]:
    """Return the flows of a phase by port names, and the ports without any flow.

    In words, `a⇄b` is a flow in each direction, `a→b` a flow from a to b, and `a⇒b` a flow that a
    forwards. A flow contains no spaces, so that lines break between flows.
    """
    names = [port.name for port in part.ranks]
    busy = np.bincount(phase.flows.ravel(), minlength=len(names))
    idle = [names[rank] for rank in np.flatnonzero(busy == 0)]
    if not in_words:
        pairs = phase.flows.tolist()
        roles = ["forward" if forwards else "generate" for forwards in phase.forwards.tolist()]
        flows = [[names[a], names[b], role] for (a, b), role in zip(pairs, roles, strict=True)]
        return {"flows": flows, "idle": idle}
    sources, destinations = phase.flows.T
    count = len(names)
    meets = np.isin(destinations * count + sources, sources * count + destinations)
    kept = np.flatnonzero((sources < destinations) | ~meets)
    words = []
    for flow in kept if everything else kept[:FLOWS_SHOWN]:
        a, b = phase.flows[flow].tolist()
        arrow = "⇄" if meets[flow] else "⇒" if phase.forwards[flow] else "→"
        words.append(f"{names[a]}{arrow}{names[b]}")
    more = f" … {len(kept) - len(words)} more" if len(words) < len(kept) else ""
    if idle:
        more += f"; idle: {NodeSet.fromlist(idle, resolver=RESOLVER_NOGROUP)}"
    return {"flows": ", ".join(words) + more}
