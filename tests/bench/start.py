#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""From the command to the first phase: 64 ranks in 16 processes on the lab `sixty-four`.

`switchbench run` as a person starts it, with dpdk and with tcp in turn: Python, the plan, a lab of
64 namespaces, 16 node processes, and the connectivity check of all flows. The difference between
the transports is what the EAL and its ports cost: DPDK of Debian loads all its drivers, some
hundred plug-ins, in each process.

    tests/bench/start.py [--node build/engine/switchbench-node] [--rounds 5]
"""

from __future__ import annotations

import json
import tempfile
import time
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from common import NODE, Figures, arguments, medians_in_turn, need, switchbench, verdict

REACH_S = 5.0
DONE = (0, 4)  # its window of 0.2 s is often tester-limited on two cores
CONFIGURATION = {
    "switchbench": 1, "site": {"lab": "sixty-four", "pack": 4}, "load": "50%", "warmup": "0.1s",
    "window": "0.2s", "tests": [{"pattern": "pairs", "partners": "neighbours"}],
}  # fmt: skip


def run(node: Path, transport: str) -> Figures:
    """Run the command once; all nodes are on this machine, so node 0's clock is this one's."""
    with tempfile.TemporaryDirectory(prefix="switchbench-start-") as folder:
        conf, results = Path(folder, "conf.yaml"), Path(folder, "results")
        conf.write_text(json.dumps(CONFIGURATION | {"transport": transport}))
        begun_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        words = ("run", str(conf), "--out", str(results), "--quiet")
        switchbench(*words, node=node, ends=DONE)
        rows = pq.read_table(results / "phases.parquet", columns=["phase", "start_run_ns"])
    start_ns = next(row["start_run_ns"] for row in rows.to_pylist() if row["phase"] == 0)
    return {"s": start_ns / 1e9 - begun_s}


def main() -> None:
    """Run with both transports in turn, then print the verdicts."""
    options = arguments(__doc__, node=NODE).parse_args()
    need("ip", root=True)
    subjects = {one: partial(run, options.node, one) for one in ("dpdk", "tcp")}
    for transport, figures in medians_in_turn(options.rounds, subjects).items():
        verdict(f"  {transport}, to the first phase", figures["s"], REACH_S, unit="s", at_most=True)


if __name__ == "__main__":
    main()
