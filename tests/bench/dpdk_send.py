#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames a second that one core sends on net_null, against `dpdk-testpmd`.

All send 64-byte frames (60 without FCS) in bursts of 64, in turn, so that whatever else the machine
does hits all. Ours are IPv4/UDP frames with a signature that differs in each, of 1 and of 1,024
flows; txonly's are all the same, flowgen's of 1,024 flows. testpmd's mempool cache is the one of
several with which it is fastest. Seconds are of the sending thread's CPU time.

    tests/bench/dpdk_send.py [--program build/tests/bench/bench_dpdk]
"""

from __future__ import annotations

from functools import partial

import common
from common import RATE, Figures, Testpmd

DEVICE = "net_null0,no-rx=1"
CACHES = (64, 128, 250, 512)


def peer(mode: str, cache: int, core: int, console: int, seconds: float) -> Figures:
    """Run testpmd once."""
    options = ["--burst=64", "--txpkts=60", f"--mbcache={cache}", "--total-num-mbufs=2048"]
    return Testpmd("send", [DEVICE], mode, core, console, options).rate(seconds)


def main() -> None:
    """Run all in turn."""
    asked = common.arguments(__doc__, program=common.built("bench_dpdk")).parse_args()
    console, core = common.two_cores()
    common.need(common.TESTPMD)
    subjects = {
        "1 flow": partial(common.frame_rate, core, asked.program, "engine", asked.seconds, 1),
        "1,024 flows": partial(
            common.frame_rate, core, asked.program, "engine", asked.seconds, 1024
        ),
    }
    for mode in ("txonly", "flowgen"):
        cache = max(CACHES, key=lambda each, mode=mode: peer(mode, each, core, console, 0.5)[RATE])
        print(f"testpmd {mode}: fastest with mbcache {cache}")
        subjects[mode] = partial(peer, mode, cache, core, console, asked.seconds)
    medians = common.medians_in_turn(asked.rounds, subjects)
    ghz = common.show_cycles(medians)
    rate = {name: figures[RATE] for name, figures in medians.items()}
    cycles = ghz * 1e3 / rate["1 flow"]
    common.verdict("send, 1 flow", cycles, 17.5, unit="cycles a frame", at_most=True)
    for one, other, reach in (
        ("1 flow", "txonly", 2.0),
        ("1,024 flows", "flowgen", 2.0),
        ("1,024 flows", "1 flow", 0.8),
    ):
        common.verdict(f"send, {one} / {other}", rate[one] / rate[other], reach)


if __name__ == "__main__":
    main()
