#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The estimated offset between two namespaces of one machine, where the truth is 0.

Two nodes a run (`clock: estimated`), each in a namespace, on one bridge. What they say when they
are ready is judged: 16 exchanges, 80 ms. Then the same with one way made slower, so that the middle
of the two ways must be wrong by half of that, and only the bound can be right.

    tests/bench/clock_offset.py [--node build/engine/switchbench-node] [--runs 100]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from common import need, skip, verdict
from spaces import NETWORK, spaces

ROOT = Path(__file__).resolve().parents[2]
OFFSET_REACH_US = 10.0
COVER_REACH = 95  # of 100
TIMEOUT_S = 20
LONGEST_S = 85  # of each half: a quiet run has 200 s
SLOWER_US = 400
UDP_PORT = 7600


@dataclass(frozen=True)
class Estimate:
    """Of the second node's offset to the first one's clock, in microseconds."""

    offset: float
    bound: float

    @property
    def covers(self) -> bool:
        """Whether the truth, 0, is within the bound."""
        return abs(self.offset) <= self.bound


def documents(run: int) -> str:
    """All that both nodes read: they meet, and end."""
    names = ("one", "two")
    addresses = [f"{NETWORK.rsplit('.', 1)[0]}.{i + 1}:{UDP_PORT}" for i in range(len(names))]
    job = {
        "protocol": 1,
        "run": f"offset-{os.getpid()}-{run}",
        "controlled": False,
        "deadman_ms": 5000,
        "barrier_timeout_ms": 5000,
        "clock": {"mode": "estimated"},
        "nodes": [
            {"name": name, "control": {"address": address}}
            for name, address in zip(names, addresses, strict=True)
        ],
    }
    parts: list[dict[str, Any]] = [
        {"job": job},
        {"peers": {"addresses": addresses, "key": os.urandom(32).hex()}},
        {"quit": True},
    ]
    return "".join(yaml.safe_dump(part, explicit_start=True, explicit_end=True) for part in parts)


def estimate(node: Path, names: list[str], run: int) -> Estimate:
    """One run."""
    text = documents(run)
    processes = [
        subprocess.Popen(
            ["ip", "netns", "exec", space, str(node), "--name", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for space, name in zip(names, ("one", "two"), strict=True)
    ]
    try:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(text)
            process.stdin.flush()
        said = [process.communicate(timeout=TIMEOUT_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
    records = [json.loads(line) for line in said[1][0].splitlines()]
    ready = [record for record in records if record["type"] == "ready"]
    if not ready or ready[0]["clock_bound_ns"] is None:
        raise SystemExit(f"a node failed:\n{said[0][1]}{said[1][1]}")
    return Estimate(ready[0]["clock_offset_ns"] / 1e3, ready[0]["clock_bound_ns"] / 1e3)


def runs(node: Path, names: list[str], count: int) -> list[Estimate]:
    """Many runs, as many as there is time for."""
    found: list[Estimate] = []
    until_s = time.monotonic() + LONGEST_S
    while len(found) < count and time.monotonic() < until_s:
        found.append(estimate(node, names, len(found)))
    return found


def show(title: str, found: list[Estimate]) -> float:
    """Prints what the runs came to; the 95th of 100 offsets, by magnitude."""
    offsets = sorted(abs(one.offset) for one in found)
    bounds = sorted(one.bound for one in found)
    high = offsets[min(len(offsets) - 1, len(offsets) * 95 // 100)]
    print(
        f"{title}, {len(found)} runs: offset p50 {offsets[len(offsets) // 2]:.2f}, p95 {high:.2f}, "
        f"greatest {offsets[-1]:.2f} us; bound p50 {bounds[len(bounds) // 2]:.2f}, "
        f"greatest {bounds[-1]:.2f} us",
        flush=True,
    )
    share = 100 * sum(one.covers for one in found) / len(found)
    verdict(f"  {title}: the bound covers the truth", share, COVER_REACH, unit="of 100 runs")
    return high


def slow_down(space: str) -> bool:
    """One way takes longer from now on; False: the kernel can't."""
    command = ["ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", "ctl0", "root", "netem"]
    done = subprocess.run(
        [*command, "delay", f"{SLOWER_US}us"], check=False, stderr=subprocess.DEVNULL
    )
    return done.returncode == 0


def main() -> int:
    """Symmetric, then asymmetric."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--node", type=Path, default=ROOT / "build/engine/switchbench-node")
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    need("ip", "tc")
    if os.geteuid() != 0:
        skip("network namespaces need root")
    with spaces(2) as names:
        estimate(options.node, names, -1)  # addresses are resolved, the programs in memory
        high = show("unloaded", runs(options.node, names, options.runs))
        verdict("  offset, 95 of 100 runs", high, OFFSET_REACH_US, unit="us", at_most=True)
        if slow_down(names[1]):
            show(f"one way {SLOWER_US} us slower", runs(options.node, names, options.runs))
        else:
            print("no netem here: asymmetry was not tried")
    return 0


if __name__ == "__main__":
    sys.exit(main())
