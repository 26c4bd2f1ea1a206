#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What it costs to go from one phase of a plan to the next.

AAPC of 16 ranks (shift, 15 phases), one process each, in an unshaped lab; each flow moves 64 KiB
over tcp. `switchbench run` as a person starts it, so everything is in it that a run does. From the
records: a transfer takes from the agreed start until the last byte is in anywhere; between that
moment and the next agreed start lies the turn-round. It is compared with the barrier of as many
processes in namespaces (barrier_node, p50), measured in turn with it. The whole plan's time is
printed, too: what is done while a transfer runs makes the transfers longer.

    tests/bench/turnround.py [--node build/engine/switchbench-node] [--rounds 5]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from barrier_mpi import ours
from common import ROOT, Figures, arguments, built, medians_in_turn, need, verdict
from spaces import spaces

RANKS = 16
BARRIERS = 500
REACH_BARRIERS = 2.0
SKEW_MOST_US = 5000.0
RUN_TIMEOUT_S = 60

TOPOLOGY = f"""\
topology: 1
description: {RANKS} nodes, not shaped
rate: unlimited
modules: [switch]
nodes:
  node[1-{RANKS}]: {{}}
"""
CONFIGURATION = """\
switchbench: 1
site: {lab: sixteen.yaml}
transports: [tcp]
load: 100%
tests:
- {pattern: aapc, order: shift, traffic: transfer, transfer_size: 64KiB}
"""


def turns_of(results: Path) -> Figures:
    """The figures of one run; all nodes agree on what is read here of each phase."""
    rows = pq.read_table(results / "phases.parquet").to_pylist()
    phases = list({row["phase"]: row for row in rows if row["phase"] >= 0}.values())
    if len(phases) != RANKS - 1:
        raise SystemExit(f"{len(phases)} phases instead of {RANKS - 1}: see {results}")
    ends = [phase["start_run_ns"] + phase["elapsed_ns"] for phase in phases]
    starts = [phase["start_run_ns"] for phase in phases]
    gaps = [(start - end) / 1e3 for end, start in zip(ends, starts[1:], strict=False)]
    return {
        "turn-round us": statistics.fmean(gaps),
        "longest us": max(gaps),
        "transfers us": sum(phase["elapsed_ns"] for phase in phases) / 1e3,
        "plan us": (ends[-1] - starts[0]) / 1e3,
        "start skew us": max(phase["start_skew_us"] for phase in phases),
    }


def run(node: Path, folder: Path) -> Figures:
    """One run of the command."""
    results = Path(tempfile.mkdtemp(dir=folder)) / "results"
    command = [str(ROOT / "scripts/switchbench"), "run", str(folder / "turnround.yaml")]
    done = subprocess.run(
        [*command, "--out", str(results)],
        env={**os.environ, "SWITCHBENCH_NODE": str(node)},
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise SystemExit(f"the run failed:\n{done.stdout}{done.stderr}")
    return turns_of(results)


def barrier(program: Path) -> Figures:
    """One run of the barrier."""
    with spaces(RANKS) as names:
        return ours(program, names, BARRIERS)


def main() -> int:
    """Runs and barriers in turn, then the verdicts."""
    parser = arguments(__doc__, node=True)
    parser.add_argument("--program", type=Path, default=built("barrier_node"))
    options = parser.parse_args()
    need("ip", root=True)
    with tempfile.TemporaryDirectory(prefix="switchbench-turnround-") as name:
        folder = Path(name)
        (folder / "sixteen.yaml").write_text(TOPOLOGY)
        (folder / "turnround.yaml").write_text(CONFIGURATION)
        found = medians_in_turn(
            options.rounds,
            {"run": lambda: run(options.node, folder), "barrier": lambda: barrier(options.program)},
        )
    turns = found["run"]["turn-round us"] / found["barrier"]["p50 us"]
    verdict("turn-round, in barriers", turns, REACH_BARRIERS, at_most=True)
    skew_us = found["run"]["start skew us"]
    verdict("start skew", skew_us, SKEW_MOST_US, unit="us", at_most=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
