#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Forwarding in a chain over ring ports, against testpmd's `mac` forwarding over the same.

64-byte frames, bursts of 64, one core. A frame costs one dequeue and one enqueue in both; testpmd
writes two MAC addresses between them, we verify the frame, judge its sequence and write the next
hop's headers and signature. In testpmd 512 frames circle through two ring ports, ours are filled
in and taken out beside the measurement, 512 at a time.

    tests/bench/dpdk_forward.py [--program build/tests/bench/bench_dpdk]
"""

from __future__ import annotations

import re
import subprocess
import sys

import common

RINGS = ("net_ring0", "net_ring1")
BURSTS_A_PORT = 4  # of 64 frames: 512 in all


def ours(program: str, core: int, seconds: float) -> float:
    """One run of our program: million frames a second."""
    chunks = max(1000, int(seconds * 40000))
    command = common.pinned(core, program, "forward", str(chunks))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.match(r"(\d+) frames/s", done.stdout)
    if found is None:
        raise SystemExit(f"{program} said: {done.stdout}{done.stderr}")
    return float(found[1]) / 1e6


def peer(core: int, console: int, seconds: float) -> float:
    """One run of testpmd: million frames a second."""
    testpmd = common.Testpmd(
        common.prefix("forward"),
        RINGS,
        "mac",
        core,
        console,
        ("--burst=64", "--txpkts=60", "--total-num-mbufs=2048"),
        start=f"start tx_first {BURSTS_A_PORT}",
    )
    return testpmd.rate(seconds)


def main() -> int:
    """Run both in turn."""
    parser = common.arguments(__doc__)
    parser.add_argument("--program", default=common.built("bench_dpdk"))
    asked = parser.parse_args()
    console, core = common.two_cores()
    common.need(common.TESTPMD)
    medians = common.in_turn(
        asked.rounds,
        {
            "ours": lambda: ours(asked.program, core, asked.seconds),
            "testpmd mac": lambda: peer(core, console, asked.seconds),
        },
    )
    ghz = common.tsc_ghz()
    for name, rate in medians.items():
        print(f"{name}: {ghz * 1e3 / rate:.1f} cycles a frame at {ghz:.2f} GHz (TSC)")
    common.verdict("forward / testpmd mac", medians["ours"] / medians["testpmd mac"], 1.0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
