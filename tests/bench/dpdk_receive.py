#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cycles of receiving a 64-byte frame on ring ports, of one flow and of many.

The frames are IPv4/UDP. Without and with reading their stamps, and for how long flows are accounted
without a look at the ring.

    tests/bench/dpdk_receive.py [--program build/tests/bench/bench_dpdk]
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import common
from common import Figures

FLOWS = (1, 8, 1024, 16384, 65535)  # the last: all others
EVERY_MOST = 8  # of so many flows every frame is timed ...
TIMED_MOST = 4096  # ... of so many some, beyond none (engine/traffic/frame_setup.c)


def judged(core: int, program: Path, flows: int) -> Figures:
    """Run it once; figures in cycles a frame, but for the pause in microseconds."""
    command = common.pinned(core, program, "judge", flows)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = ("cycles", "with times", "pause us")
    return dict(zip(names, map(float, re.findall(r"\d+\.\d+", done.stdout)), strict=True))


def main() -> None:
    """Measure each number of flows."""
    asked = common.arguments(__doc__, program=common.built("bench_dpdk")).parse_args()
    core = common.two_cores()[1]
    subjects = {
        str(flows): lambda flows=flows: judged(core, asked.program, flows) for flows in FLOWS
    }
    for flows, found in zip(
        FLOWS, common.medians_in_turn(asked.rounds, subjects).values(), strict=True
    ):
        what = f"receive, {flows} flows"
        reach = 25 if flows <= 1024 else 40
        common.verdict(what, found["cycles"], reach, unit="cycles a frame", at_most=True)
        times = "every frame's time" if flows <= EVERY_MOST else "time of 2 frames in 128"
        more = 100 * (found["with times"] / found["cycles"] - 1)
        if flows <= TIMED_MOST:
            common.verdict(f"{what}, with {times}", more, 20, unit="% more", at_most=True)
        what = f"accounting of {flows} flows, longest pause"
        common.verdict(what, found["pause us"], 50, unit="us", at_most=True)


if __name__ == "__main__":
    main()
