# SPDX-License-Identifier: BSD-3-Clause
"""Results directories made by hand, for the tests of the report."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from recorded import results
from switchbench.analysis.sealing import MANIFEST
from switchbench.base.model import Part, Run
from switchbench.records.directory import SUMMARY
from synthetic import (
    frame_side,
    hello,
    make_run,
    make_site,
    make_trial,
    phase_record,
    port_record,
    tcp_side,
    trial_record,
)

RANKS = 12
SITE = make_site(RANKS)
PORTS = [f"node{number}:e0" for number in range(1, RANKS + 1)]
LOST = (3, "node4:e0")  # phase and destination of the flow that loses frames
LOST_FRAMES = 1000
CHAINS = {2: 2, 3: RANKS}  # trial: ranks
PHASES = 2 * (RANKS - 1) + len(CHAINS)
FLOWS = 2 * RANKS * (RANKS - 1) + sum(ranks - 1 for ranks in CHAINS.values())


def _phase(trial: int, phase: int) -> list[dict[str, Any]]:
    """Everybody to the one `phase` + 1 places further; a rate that falls with the distance."""
    place = {"trial": trial, "phase": phase}
    sent = 8000 - 10 * phase
    made = frame_side if trial == 0 else tcp_side
    unit = 1 if trial == 0 else 1500
    records = []
    for number, src in enumerate(PORTS):
        dst = PORTS[(number + phase + 1) % RANKS]
        lost = LOST_FRAMES if trial == 0 and (phase, dst) == LOST else 0
        came = sent - lost
        records += [
            made("source", src, dst, sent * unit, sent * unit, **place),
            made("destination", src, dst, came * unit, came * unit, **place),
        ]
    for number, port in enumerate(PORTS):
        node = port.partition(":")[0]
        name = f"distance {phase + 1}"
        skew = 100.0 + 7 * phase + number
        if trial == 0:
            records.append(port_record(port, **place))
        records.append(phase_record(node, name=name, start_skew_us=skew, **place))
    return records


def _chain(trial: int, ranks: int) -> list[dict[str, Any]]:
    """Each of the first ranks to the next one."""
    place = {"trial": trial}
    found = []
    for src, dst in pairwise(PORTS[:ranks]):
        for side in ("source", "destination"):
            found.append(frame_side(side, src, dst, 8000, 8000 - 10 * ranks, **place))
    for process in SITE.processes:
        found.append(phase_record(process.name, name="chain", **place))
        found.append(trial_record(process.name, **place))
    return found


def records() -> list[dict[str, Any]]:
    """An all-to-all of twelve ranks over both transports, eleven phases each; two chains."""
    found = [hello(f"node{number}") for number in range(1, RANKS + 1)]
    for trial in (0, 1):
        for phase in range(RANKS - 1):
            found += _phase(trial, phase)
        found += [
            trial_record(process.name, trial=trial, phases=RANKS - 1) for process in SITE.processes
        ]
    for trial, ranks in CHAINS.items():
        found += _chain(trial, ranks)
    return found


def _run(**more: Any) -> Run:
    plan = {
        "pattern": {"name": "aapc", "order": "shift"},
        "parameters": {"order": "shift"},
        "phases": RANKS - 1,
        "flows": RANKS * (RANKS - 1),
    }
    tcp = {"transport": "tcp", "sizes": (65536,), "size_unit": "message"}
    trials = [make_trial(SITE, **plan), make_trial(SITE, 1, **plan, **tcp)]
    for trial, ranks in CHAINS.items():
        parts = (Part("lab", SITE.ports[:ranks]),)
        chain = {"pattern": {"name": "chain"}, "parameters": {}, "flows": ranks - 1}
        trials.append(make_trial(SITE, trial, parts=parts, **chain))
    return make_run(SITE, *trials, **more)


def make_directory(path: Path, state: str = "complete", **more: Any) -> Path:
    """A whole results directory of that run; `state`: of all phases, `more` goes into make_run."""
    every = [one | {"state": state} if one["type"] == "phase" else one for one in records()]
    run = replace(_run(**more), effective={"switchbench": 1, "note": "<b>&amp;"})
    results(path, run, every)
    (path / MANIFEST).unlink()  # tests change what is in it
    return path


def change_summary(path: Path, **changes: Any) -> None:
    """Writes other values into a directory's summary."""
    summary = json.loads((path / SUMMARY).read_text())
    (path / SUMMARY).write_text(json.dumps(summary | changes))
