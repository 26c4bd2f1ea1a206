# SPDX-License-Identifier: BSD-3-Clause
"""`run --fit`: a lab asks no more of this machine than its cores carry.

One short run, with all ports sending and receiving at once at several loads, says what gets out of
the nodes. The lab then has half of the highest rate that did: its nodes share cores with whatever
else the machine does, and what is measured lasts much longer than this.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..base.errors import ConfigurationError, RunError
from ..base.format import bit_rate
from ..base.model import Run
from ..records.directory import SUMMARY, load_summary

STEPS = (1.0, 0.5, 0.25, 0.1)  # of the lab's rate, from which one is chosen
MARGIN = 2.0  # a rate is chosen when so many times as much was carried
LOAD = 80.0  # percent of the line that the highest step takes: shapers must not be the limit
CARRIED = 0.98  # of the intended load, offered by all ports together
FEWER_NODES = 4  # where the machine does not carry the lowest rate
WINDOW = "300ms"
REPEATS = 2  # of each load; the better one counts


@dataclass(frozen=True)
class FittedLab:
    """What this machine carries: `rate_bps` and `nodes` of the lab. `sure`: with the margin."""

    rate_bps: int
    nodes: int
    sure: bool


def choose(line_bps: int, nodes: int, offered: Mapping[float, float]) -> FittedLab:
    """Return the highest rate that leaves the margin.

    `line_bps`: the lab's rate, bit/s of layer 1; `offered`: of each of STEPS the offered part of
    the intended load, that of MARGIN times the step.
    """
    for step in sorted(offered, reverse=True):
        if offered[step] >= CARRIED:
            return FittedLab(round(step * line_bps), nodes, True)
    return FittedLab(round(min(STEPS) * line_bps), min(nodes, FEWER_NODES), False)


def offered_by_step(trials: Iterable[Mapping[str, Any]]) -> dict[float, float]:
    """Of each step the smaller part among transports, of each transport that of its better repeat.

    `trials`: of the summary; the intended load of a step is that part of LOAD.
    """
    best: dict[tuple[str, float], float] = {}
    for trial in trials:
        step = min(STEPS, key=lambda step: abs(LOAD * step - trial["intended_load"]))
        part = (trial["offered_load"] or 0.0) / trial["intended_load"]
        place = trial["transport"], step
        best[place] = max(best.get(place, 0.0), part)
    return {
        step: min(part for (_, other), part in best.items() if other == step)
        for step in {step for _, step in best}
    }


def fit(run: Run, tests: Sequence[Mapping[str, Any]], quiet: bool) -> list[str]:
    """Measure for some seconds; return the assignments (`--set`) that make the run's lab fit.

    `tests`: the configuration's, as written: their `ranks` must exist in a lab of fewer nodes.
    Raises ConfigurationError where the run is not of a lab whose ports all have one rate, and
    RunError where nothing could be measured.
    """
    rates = {port.line_rate_bps for port in run.site.ports}
    if not run.site.launcher.in_lab or len(rates) != 1 or 0 in rates:
        raise ConfigurationError("--fit is for a lab of namespaces whose ports all have one rate")
    [line_bps] = rates
    if not quiet:
        print("measuring what this machine carries", file=sys.stderr)
    ports = len(run.site.ports)
    found = choose(line_bps, ports, offered_by_step(_measure(run, line_bps)))
    if not quiet:
        print(_sentence(found, line_bps, ports), file=sys.stderr)
    assignments = []
    if found.rate_bps != line_bps:
        assignments.append(f"site.rate={found.rate_bps}bit")
    if found.nodes != ports:
        assignments.append(f"site.nodes={found.nodes}")
        assignments += _fewer_ranks(tests, found.nodes)
    return assignments


def _fewer_ranks(tests: Sequence[Mapping[str, Any]], nodes: int) -> Iterator[str]:
    """Without those numbers of ranks that are more than the nodes."""
    for number, test in enumerate(tests):
        asked = test.get("ranks")
        if isinstance(asked, list):
            yield f"tests.{number}.ranks={[ranks for ranks in asked if ranks <= nodes] or [nodes]}"
        elif isinstance(asked, int) and asked > nodes:
            yield f"tests.{number}.ranks={nodes}"


def _sentence(found: FittedLab, line_bps: int, ports: int) -> str:
    carried = f"{ports} ports at {bit_rate(MARGIN * found.rate_bps)} both ways"
    lab = f"{found.nodes} ports of {bit_rate(found.rate_bps)}"
    if not found.sure:
        return f"fit: this machine does not even carry {carried}; the lab has {lab}"
    reason = "half of it" if found.rate_bps != line_bps else "as asked for"
    return f"fit: this machine carries {carried}; the lab has {lab}, {reason}"


def _measure(run: Run, line_bps: int) -> list[dict[str, Any]]:
    """Entries of a short run's trials: pairs at every step, over the run's transports."""
    settings = {
        "site": json.dumps({**run.site.lab_overrides, "lab": run.site.lab}),
        "site.rate": f"{round(MARGIN * line_bps * 100 / LOAD)}bit",
        "transports": json.dumps(sorted({trial.transport for trial in run.planned})),
        "loads": json.dumps([f"{LOAD * step:g}%" for step in STEPS]),
        "window": WINDOW,
        "warmup": "100ms",
        "repeat": str(REPEATS),
    }
    with TemporaryDirectory(prefix="sb-fit-") as folder:
        out = Path(folder) / "results"
        command = [sys.executable, "-m", "switchbench", "run", "--pattern", "pairs", "--quiet"]
        command += ["--out", str(out), "--lab", str(run.site.lab)]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not (out / SUMMARY).exists():
            why = (done.stderr.strip().splitlines() or ["no result"])[-1]
            raise RunError(f"--fit: nothing could be measured: {why}")
        return list(load_summary(out)["trials"])
