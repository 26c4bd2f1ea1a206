#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The estimated offset between two namespaces of one machine, where the truth is 0.

Two nodes a run (`clock: estimated`), each in a namespace, on one bridge. What they say when they
are ready is judged: 16 exchanges, 80 ms. Then the same with one way made slower, so that the middle
of the two ways must be wrong by half of that, and only the bound can be right.

    tests/bench/clock_offset.py [--node build/engine/switchbench-node] [--runs 100]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from common import arguments, need, verdict
from spaces import address, inside, spaces

OFFSET_REACH_US = 10.0
COVER_REACH = 100  # of 100
TIMEOUT_S = 20
LONGEST_S = 85  # of each half: a quiet run has 200 s
SLOWER_US = 400
UDP_PORT = 7600
RELAY_PORT = 7601
HOSTS = [address(0), address(1)]

# Passes on what comes, later: in the second node's namespace, for it.
RELAY = f"""
import socket, time
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("{HOSTS[1]}", {RELAY_PORT}))
print(flush=True)
while True:
    data = here.recv(2048)
    until = time.monotonic() + {SLOWER_US} / 1e6
    while time.monotonic() < until:
        pass
    here.sendto(data, ("{HOSTS[1]}", {UDP_PORT}))
"""


@dataclass(frozen=True)
class Estimate:
    """Of the second node's offset to the first one's clock, in microseconds."""

    offset: float
    bound: float

    @property
    def covers(self) -> bool:
        """Whether the truth, 0, is within the bound."""
        return abs(self.offset) <= self.bound


def documents(run: int, port_of_two: int) -> str:
    """All that a node reads: they meet, and end."""
    names = ("one", "two")
    addresses = [f"{HOSTS[0]}:{UDP_PORT}", f"{HOSTS[1]}:{port_of_two}"]
    bound = [f"{host}:{UDP_PORT}" for host in HOSTS]
    job = {
        "protocol": 2,
        "run": f"offset-{os.getpid()}-{run}",
        "controlled": False,
        "heartbeat_timeout_ms": 5000,
        "barrier_timeout_ms": 5000,
        "clock": {"mode": "estimated"},
        "nodes": [
            {"name": name, "control": {"address": address}}
            for name, address in zip(names, bound, strict=True)
        ],
    }
    parts: list[dict[str, Any]] = [
        {"job": job},
        {"peers": {"addresses": addresses, "key": "5b" * 32}},
        {"quit": True},
    ]
    return "".join(yaml.safe_dump(part, explicit_start=True, explicit_end=True) for part in parts)


def estimate(node: Path, names: list[str], run: int, relayed: bool) -> Estimate:
    """One run; `relayed`: the first node reaches the second by the relay."""
    texts = [documents(run, RELAY_PORT if relayed else UDP_PORT), documents(run, UDP_PORT)]
    processes = [
        subprocess.Popen(
            inside(space, str(node), "--name", name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for space, name in zip(names, ("one", "two"), strict=True)
    ]
    try:
        for process, text in zip(processes, texts, strict=True):
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


def runs(node: Path, names: list[str], count: int, relayed: bool = False) -> list[Estimate]:
    """Many runs, as many as there is time for."""
    found: list[Estimate] = []
    until_s = time.monotonic() + LONGEST_S
    while len(found) < count and time.monotonic() < until_s:
        found.append(estimate(node, names, len(found), relayed))
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


@contextmanager
def relay(space: str) -> Iterator[None]:
    """One way takes longer meanwhile."""
    command = inside(space, sys.executable, "-c", RELAY)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


def main() -> int:
    """Symmetric, then asymmetric."""
    parser = arguments(__doc__, node=True)
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    need("ip", root=True)
    with spaces(2) as names:
        estimate(options.node, names, -1, False)  # addresses resolved, programs in memory
        high = show("unloaded", runs(options.node, names, options.runs))
        verdict("  offset, 95 of 100 runs", high, OFFSET_REACH_US, unit="us", at_most=True)
        with relay(names[1]):
            slower = runs(options.node, names, options.runs, relayed=True)
        show(f"one way {SLOWER_US} us slower", slower)
    return 0


if __name__ == "__main__":
    sys.exit(main())
