#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames a second that one core sends on net_null, against `dpdk-testpmd` and a bare loop.

All send 64-byte frames (60 without FCS) in bursts of 64, in turn, so that whatever else the machine
does hits all. Ours are IPv4/UDP frames with a signature that differs in each, of 1 and of 1,024
flows; txonly's are all the same, flowgen's of 1,024 flows. testpmd's mempool cache is the one of
several with which it is fastest. Seconds are of the sending thread's CPU time.

    tests/bench/dpdk_send.py [--program build/tests/bench/bench_dpdk]
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys

import common

DEVICE = "net_null0,no-rx=1"
CACHES = (64, 128, 250, 512)


def ours(program: str, core: int, *arguments: str) -> float:
    """One run of our program: million frames a second."""
    command = common.pinned(core, program, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.match(r"(\d+) frames/s", done.stdout)
    if found is None:
        raise SystemExit(f"{program} said: {done.stdout}{done.stderr}")
    return float(found[1]) / 1e6


def peer(mode: str, cache: int, core: int, console: int, seconds: float) -> float:
    """One run of testpmd: million frames a second."""
    options = ["--burst=64", "--txpkts=60", f"--mbcache={cache}", "--total-num-mbufs=2048"]
    testpmd = common.Testpmd(common.prefix("send"), [DEVICE], mode, core, console, options)
    return testpmd.rate(seconds)


def best_cache(mode: str, core: int, console: int) -> int:
    """The mempool cache with which testpmd is fastest here."""
    return max(CACHES, key=lambda cache: peer(mode, cache, core, console, 0.5))


def main() -> int:
    """Run all in turn."""
    parser = common.arguments(__doc__)
    parser.add_argument("--program", default=common.built("bench_dpdk"))
    asked = parser.parse_args()
    console, core = common.two_cores()
    common.need(common.TESTPMD)
    seconds = str(asked.seconds)
    caches = {mode: best_cache(mode, core, console) for mode in ("txonly", "flowgen")}
    names = {mode: f"testpmd {mode} (mbcache {cache})" for mode, cache in caches.items()}
    engine = functools.partial(ours, asked.program, core)
    medians = common.in_turn(
        asked.rounds,
        {
            "1 flow": lambda: engine("engine", seconds, "1"),
            "1,024 flows": lambda: engine("engine", seconds, "1024"),
            "bare loop": lambda: engine("bare", seconds),
            **{
                names[mode]: functools.partial(peer, mode, cache, core, console, asked.seconds)
                for mode, cache in caches.items()
            },
        },
    )
    ghz = common.tsc_ghz()
    for name in ("1 flow", "1,024 flows", "bare loop", *names.values()):
        print(f"{name}: {ghz * 1e3 / medians[name]:.1f} cycles a frame at {ghz:.2f} GHz (TSC)")
    one, many = medians["1 flow"], medians["1,024 flows"]
    common.verdict("send, 1 flow / testpmd txonly", one / medians[names["txonly"]], 2.0)
    common.verdict("send, 1,024 flows / testpmd flowgen", many / medians[names["flowgen"]], 2.0)
    cycles = ghz * 1e3 / one
    common.verdict("send, 1 flow", cycles, 17.5, unit="cycles a frame", at_most=True)
    common.verdict("send, 1,024 flows / 1 flow", many / one, 0.8)
    common.verdict("send, 1 flow / bare loop", one / medians["bare loop"], 0.8)
    return 0


if __name__ == "__main__":
    sys.exit(main())
