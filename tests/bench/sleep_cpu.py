#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""CPU time of 16 sleeping nodes at 100M on the lab: less than one core in all.

A whole run of the command: 16 node processes, one port each, 1,518-byte frames at the line rate
of 100 Mbit/s both ways, paired across the switch. What is counted is the CPU time of the nodes
(cpu_s of the phase records) by the time in which it was spent. AF_PACKET's send carries each frame
through the whole switch (bridge, shapers, the ring of the receiver) before it returns, so three
quarters of this time are the lab's, not the engine's; offered load stands beside it, for a node
that starves is cheap.

    tests/bench/sleep_cpu.py [--rounds 5] [--nodes 16]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "bin" / "python"
SKIPPED = 77
REACH_CORES = 1.0
REACH_OFFERED = 99.0  # percent of what was asked for


def configuration(nodes: int) -> dict[str, Any]:
    """Pairs across a switch of so many nodes at 100M."""
    return {
        "switchbench": 1,
        "site": {"lab": "one-switch", "nodes": nodes},
        "transport": "dpdk",
        "worker": "sleep",
        "frame_size": 1518,
        "load": "100%",
        "warmup": "500ms",
        "window": "3s",
        "tests": [{"pattern": "pairs", "partners": "halves"}],
    }


def run_once(conf: Path, out: Path) -> tuple[float, float, float]:
    """Cores of all nodes, percent offered of what was intended, and cores of the whole machine."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts" / "python")}
    command = [str(PYTHON), "-m", "switchbench", "run", str(conf), "--quiet", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the run failed:\n{done.stdout[-1500:]}{done.stderr[-500:]}")
    records = [json.loads(line) for line in (out / "records.ndjson").open()]
    phases = [r for r in records if r["type"] == "phase" and r["phase"] >= 0]
    sources = [r for r in records if r["type"] == "flow" and r["side"] == "source"]
    cores = sum(r["cpu_s"] / r["cpu_span_s"] for r in phases)
    offered = 100 * sum(r["frames"] for r in sources) / sum(r["intended"] for r in sources)
    first = phases[0]
    machine = first["cpus"] - first["cpu_idle_s"] / first["cpu_span_s"]
    return cores, offered, machine


def verdict(what: str, value: float, reach: str, good: bool) -> None:
    """One line in the benches' form."""
    print(f"{what}: {value:.4g} (reach: {reach}): {'PASS' if good else 'RED'}")


def main() -> int:
    """Runs it some times and prints the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=16)
    asked = parser.parse_args()
    if os.geteuid() != 0 or not PYTHON.exists():
        print("skipped: needs root and the project's environment (scripts/setup)")
        return SKIPPED
    found = []
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder) / "conf.yaml"
        conf.write_text(json.dumps(configuration(asked.nodes)))
        for i in range(asked.rounds):
            found.append(run_once(conf, Path(folder) / f"out{i}"))
            cores, offered, machine = found[-1]
            print(f"nodes {cores:.3f} cores, offered {offered:.2f} %, machine {machine:.2f} cores")
    cores, offered, _ = (statistics.median(values) for values in zip(*found, strict=True))
    verdict(f"{asked.nodes} nodes at 100M asleep, cores", cores, "below 1", cores < REACH_CORES)
    verdict("offered of intended, %", offered, "at least 99", offered >= REACH_OFFERED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
