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

import common
from common import RATE, TESTPMD, Testpmd

RINGS = ("net_ring0", "net_ring1")
BURSTS_A_PORT = 4  # of 64 frames: 512 in all
OPTIONS = ("--burst=64", "--txpkts=60", "--total-num-mbufs=2048")


def main() -> None:
    """Run both in turn."""
    asked = common.arguments(__doc__, program=common.built("bench_dpdk")).parse_args()
    console, core = common.two_cores()
    common.need(TESTPMD)
    chunks = max(1000, int(asked.seconds * 40000))
    start = f"start tx_first {BURSTS_A_PORT}"
    testpmd = Testpmd("forward", RINGS, "mac", core, console, OPTIONS, start=start)
    medians = common.medians_in_turn(
        asked.rounds,
        {
            "ours": lambda: common.frame_rate(core, asked.program, "forward", chunks),
            "testpmd mac": lambda: testpmd.rate(asked.seconds),
        },
    )
    common.show_cycles(medians)
    ratio = medians["ours"][RATE] / medians["testpmd mac"][RATE]
    common.verdict("forward / testpmd mac", ratio, 1.0)


if __name__ == "__main__":
    main()
