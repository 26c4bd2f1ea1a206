#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""From the command to the first phase: 64 ranks in 16 processes on the lab `sixty-four`, by parts.

`switchbench run` as a person starts it, with dpdk and with tcp in turn. The parts:

  command   Python, the configuration, the plan
  lab       64 namespaces, a switch, its shapers
  nodes     16 processes: loading, EAL (dpdk), ports, guard, the first barriers, and the
            connectivity check of all flows, to the first phase's start

The difference between the transports in `nodes` is what the EAL and its ports cost: DPDK of Debian
loads all its drivers, some hundred plug-ins, in each process.

    tests/bench/start.py [--node build/engine/switchbench-node] [--rounds 5]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from common import NODE, Figures, arguments, medians_in_turn, need, verdict

REACH_S = 5.0
# The lines with which the command says that a part begins.
STAGES = {"making the lab": "lab", "starting the nodes": "nodes"}
CONFIGURATION = {
    "switchbench": 1, "site": {"lab": "sixty-four", "pack": 4}, "load": "50%", "warmup": "0.1s",
    "window": "0.2s", "tests": [{"pattern": "pairs", "partners": "neighbours"}],
}  # fmt: skip


def now_s() -> float:
    """Return the clock of node 0's records, too: all nodes are on this machine."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def run(node: Path, transport: str) -> Figures:
    """Run the command once; seconds of each part."""
    with tempfile.TemporaryDirectory(prefix="switchbench-start-") as folder:
        conf, results = Path(folder, "conf.yaml"), Path(folder, "results")
        conf.write_text(json.dumps(CONFIGURATION | {"transport": transport}))
        marks = {"command": now_s()}
        with subprocess.Popen(
            [sys.executable, "-m", "switchbench", "run", str(conf), "--out", str(results)],
            env={**os.environ, "SWITCHBENCH_NODE": str(node), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if part := STAGES.get(line.strip()):
                    marks[part] = now_s()
        # Its window of 0.2 s is often tester-limited on two cores: inconclusive, but started.
        if process.returncode not in (0, 4):
            raise SystemExit(f"the run with {transport} ended with status {process.returncode}")
        rows = pq.read_table(results / "phases.parquet", columns=["phase", "start_run_ns"])
        starts = [row["start_run_ns"] for row in rows.to_pylist() if row["phase"] == 0]
        marks["end"] = starts[0] / 1e9
    begins = list(marks.values())
    parts = zip(marks, begins, begins[1:], strict=False)
    return {part: end - begin for part, begin, end in parts} | {"whole": begins[-1] - begins[0]}


def main() -> None:
    """Run with both transports in turn, then print the verdicts."""
    options = arguments(__doc__, node=NODE).parse_args()
    need("ip", root=True)
    subjects = {one: partial(run, options.node, one) for one in ("dpdk", "tcp")}
    for transport, seconds in medians_in_turn(options.rounds, subjects).items():
        what = f"  {transport}, to the first phase"
        verdict(what, seconds["whole"], REACH_S, unit="s", at_most=True)


if __name__ == "__main__":
    main()
