#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The estimated offset between two namespaces of one machine, where the truth is 0.

Two nodes a run (`clock: estimated`), each in a namespace, on one bridge. What they say when they
are ready is judged: 16 exchanges, 80 ms. Then the same with one way made slower, so that the middle
of the two ways must be wrong by half of that, and only the bound can be right.

    tests/bench/clock_offset.py [--node build/engine/switchbench-node] [--runs 100]
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common import NODE, ROOT, arguments, need, verdict
from spaces import address, inside, spaces

sys.path.insert(0, str(ROOT / "tests/system"))

import nodekit

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
        """Return whether the truth, 0, is within the bound."""
        return abs(self.offset) <= self.bound


def estimate(node: Path, names: list[str], relayed: bool = False) -> Estimate:
    """Run once; `relayed`: the first node reaches the second by the relay."""
    clock = {"mode": "estimated"}
    bound = [f"{host}:{UDP_PORT}" for host in HOSTS]
    reached = [bound, [bound[0], f"{HOSTS[1]}:{RELAY_PORT}"] if relayed else bound]
    texts = [nodekit.meeting(clock, bound, each) for each in reversed(reached)]
    processes = [
        nodekit.start(inside(space, str(node), "--name", f"n{index}"))
        for index, space in enumerate(names)
    ]
    said = nodekit.conduct(processes, texts, limit_s=TIMEOUT_S)
    ready = said[1].of("ready")
    if not ready or ready[0]["clock_bound_ns"] is None:
        raise SystemExit(f"a node failed:\n{said.text}")
    return Estimate(ready[0]["clock_offset_ns"] / 1e3, ready[0]["clock_bound_ns"] / 1e3)


def runs(node: Path, names: list[str], count: int, relayed: bool = False) -> list[Estimate]:
    """Return the estimates of many runs, as many as there is time for."""
    found: list[Estimate] = []
    until_s = time.monotonic() + LONGEST_S
    while len(found) < count and time.monotonic() < until_s:
        found.append(estimate(node, names, relayed))
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
    """Yield one way takes longer meanwhile."""
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
    options = arguments(__doc__, runs=100, node=NODE).parse_args()
    need("ip", root=True)
    with spaces(2) as names:
        estimate(options.node, names)  # addresses resolved, programs in memory
        high = show("unloaded", runs(options.node, names, options.runs))
        verdict("  offset, 95 of 100 runs", high, OFFSET_REACH_US, unit="us", at_most=True)
        with relay(names[1]):
            slower = runs(options.node, names, options.runs, relayed=True)
        show(f"one way {SLOWER_US} us slower", slower)
    return 0


if __name__ == "__main__":
    sys.exit(main())
