#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What it costs to go from one phase of a plan to the next.

AAPC of 16 ranks (shift, 15 phases), one process each, in an unshaped lab; each flow moves 64 KiB
over tcp. `switchbench run` as a person starts it, so everything is in it that a run does. From the
records: a transfer takes from the agreed start until the last byte is in anywhere; between that
moment and the next agreed start lies the turn-round. The whole plan's time is printed, too: what is
done while a transfer runs makes the transfers longer.

    tests/bench/turnround.py [--node build/engine/switchbench-node] [--rounds 5]
"""

from __future__ import annotations

import json
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
from common import NODE, Figures, arguments, medians_in_turn, need, switchbench, verdict

RANKS = 16
TURN_US, SKEW_US = 10_000.0, 5000.0
LAB = {
    "topology": 1, "rate": "unlimited", "modules": ["switch"], "nodes": {f"node[1-{RANKS}]": {}},
}  # fmt: skip
TEST = {"pattern": "aapc", "order": "shift", "traffic": "transfer", "transfer_size": "64KiB"}


def turns_of(results: Path) -> Figures:
    """Return the figures of one run; all nodes agree on what is read here of each phase."""
    rows = pq.read_table(results / "phases.parquet").to_pylist()
    phases = list({row["phase"]: row for row in rows if row["phase"] >= 0}.values())
    if len(phases) != RANKS - 1:
        raise SystemExit(f"{len(phases)} phases instead of {RANKS - 1}: see {results}")
    ends = [phase["start_run_ns"] + phase["elapsed_ns"] for phase in phases]
    gaps = [
        (after["start_run_ns"] - end) / 1e3
        for end, (_, after) in zip(ends, pairwise(phases), strict=False)
    ]
    return {
        "turn-round us": statistics.fmean(gaps),
        "longest us": max(gaps),
        "transfers us": sum(phase["elapsed_ns"] for phase in phases) / 1e3,
        "plan us": (ends[-1] - phases[0]["start_run_ns"]) / 1e3,
        "start skew us": max(phase["start_skew_us"] for phase in phases),
    }


def run(node: Path, folder: Path) -> Figures:
    """Run the command once."""
    results = Path(tempfile.mkdtemp(dir=folder)) / "results"
    switchbench("run", str(folder / "conf.yaml"), "--out", str(results), "--quiet", node=node)
    return turns_of(results)


def main() -> None:
    """Run, then print the verdicts."""
    options = arguments(__doc__, node=NODE).parse_args()
    need("ip", root=True)
    with tempfile.TemporaryDirectory(prefix="switchbench-turnround-") as name:
        folder = Path(name)
        (folder / "sixteen.yaml").write_text(json.dumps(LAB))  # JSON is YAML, too
        conf = {"switchbench": 1, "site": {"lab": "sixteen.yaml"}, "transport": "tcp"}
        (folder / "conf.yaml").write_text(json.dumps(conf | {"load": "100%", "tests": [TEST]}))
        subjects = {"run": lambda: run(options.node, folder)}
        found = medians_in_turn(options.rounds, subjects)["run"]
    verdict("turn-round", found["turn-round us"], TURN_US, unit="us", at_most=True)
    verdict("start skew", found["start skew us"], SKEW_US, unit="us", at_most=True)


if __name__ == "__main__":
    main()
