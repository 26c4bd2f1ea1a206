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

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from barrier_mpi import ours
from common import skip, verdict
from spaces import spaces

ROOT = Path(__file__).resolve().parents[2]
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


@dataclass(frozen=True)
class Turns:
    """One run, in microseconds."""

    turn_us: float  # mean turn-round of a phase
    worst_us: float
    transfers_us: float  # sum of the transfers
    plan_us: float  # from the first start to the last byte
    skew_us: float  # the largest start skew


def turns_of(results: Path) -> Turns:
    """The figures of one run; all nodes agree on what is read here of each phase."""
    rows = pq.read_table(results / "phases.parquet").to_pylist()
    phases = list({row["phase"]: row for row in rows if row["phase"] >= 0}.values())
    if len(phases) != RANKS - 1:
        raise SystemExit(f"{len(phases)} phases instead of {RANKS - 1}: see {results}")
    ends = [phase["start_run_ns"] + phase["elapsed_ns"] for phase in phases]
    starts = [phase["start_run_ns"] for phase in phases]
    gaps = [(start - end) / 1e3 for end, start in zip(ends, starts[1:], strict=False)]
    return Turns(
        turn_us=statistics.fmean(gaps),
        worst_us=max(gaps),
        transfers_us=sum(phase["elapsed_ns"] for phase in phases) / 1e3,
        plan_us=(ends[-1] - starts[0]) / 1e3,
        skew_us=max(phase["start_skew_us"] for phase in phases),
    )


def run(node: Path, folder: Path, number: int) -> Turns:
    """One run of the command."""
    results = folder / f"results{number}"
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


def main() -> int:
    """Runs and barriers in turn, then the verdicts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--node", type=Path, default=ROOT / "build/engine/switchbench-node")
    parser.add_argument("--program", type=Path, default=ROOT / "build/tests/bench/barrier_node")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if os.geteuid() != 0:
        skip("a lab of unshaped nodes needs root")
    turns: list[Turns] = []
    barriers_us: list[float] = []
    with tempfile.TemporaryDirectory(prefix="switchbench-turnround-") as name:
        folder = Path(name)
        (folder / "sixteen.yaml").write_text(TOPOLOGY)
        (folder / "turnround.yaml").write_text(CONFIGURATION)
        for number in range(options.rounds):
            turns.append(run(options.node, folder, number))
            with spaces(RANKS) as names:
                barriers_us.append(ours(options.program, names, BARRIERS).p50)
            print(f"  {turns[-1]}, barrier {barriers_us[-1]:.0f} us", flush=True)
    turn_us = statistics.median(one.turn_us for one in turns)
    barrier_us = statistics.median(barriers_us)
    print(
        f"{RANKS} ranks, {RANKS - 1} phases, medians of {options.rounds}: a turn-round "
        f"{turn_us:.0f} us, a barrier {barrier_us:.0f} us; the plan "
        f"{statistics.median(one.plan_us for one in turns) / 1e3:.1f} ms, its transfers "
        f"{statistics.median(one.transfers_us for one in turns) / 1e3:.1f} ms"
    )
    verdict("turn-round, in barriers", turn_us / barrier_us, REACH_BARRIERS, at_most=True)
    skew_us = max(one.skew_us for one in turns)
    verdict("largest start skew", skew_us, SKEW_MOST_US, unit="us", at_most=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
