#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How well faults are located in simulated networks, and how fast.

Precision, recall of what can be told apart, and calibration over seeds with 0 to 3 faults; false
suspects in healthy networks; time for 64 ports. There is no peer.

    tests/bench/location.py [--seeds 1000] [--first 0] [--healthy 300]
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from common import arguments, verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from location_sim import Planted, Score, make_phases, network, random_case, score, simulate
from switchbench.analysis.location.inference import locate

SIZES = ((0.0, 0.003), (0.003, 0.015), (0.015, 0.3), (0.3, 0.6), (0.6, 1.0))


def size_of(fault: Planted) -> str:
    """Return the class of a fault's size."""
    if fault.kind not in ("loss", "capacity"):
        return fault.kind
    low, high = next(s for s in SIZES if s[0] <= fault.value <= s[1])
    return f"{fault.kind} {100 * low:g} to {100 * high:g} %"


def shares(seeds: range) -> None:
    """Locate the faults of all seeds and print precision, recall and calibration."""
    found: dict[str, int] = defaultdict(int)
    missed: dict[str, int] = defaultdict(int)
    sure: list[tuple[float, bool]] = []
    kinds = 0
    for seed in seeds:
        case = random_case(seed)
        result: Score = score(case, locate(case.observations, case.paths))
        kinds += result.kind_right
        sure += [(s.confidence, True) for s in result.right]
        sure += [(s.confidence, False) for s in result.wrong]
        for fault in result.missed:
            missed[size_of(fault)] += 1
        for fault in result.found:
            found[size_of(fault)] += case.tellable[case.faults.index(fault)]
        for suspect in result.wrong:
            print(f"  wrong, seed {seed}: {suspect.sentence()}", flush=True)
        for fault in result.missed:
            print(f"  missed, seed {seed}: {case.net.elements[fault.element]} {fault}", flush=True)
    right = sum(ok for _, ok in sure)
    for name in sorted(found.keys() | missed.keys()):
        print(f"  {name:24} found {found[name]:4} of {found[name] + missed[name]:4}")
    for low, high in ((0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        inside = [ok for confidence, ok in sure if low <= confidence < high]
        if inside:
            print(f"  confidence {low} to {high}: {sum(inside)} of {len(inside)} right")
    print(f"  kind right: {kinds} of {right}")
    called = [ok for confidence, ok in sure if confidence >= 0.95]
    verdict("suspects that are right", 100 * right / max(len(sure), 1), 98.0, unit="%")
    total = sum(found.values()) + sum(missed.values())
    verdict("faults found", 100 * sum(found.values()) / max(total, 1), 95.0, unit="%")
    verdict("right of those 95 % sure", 100 * sum(called) / max(len(called), 1), 93.0, unit="%")


def healthy(seeds: range) -> None:
    """Print the suspects of healthy networks."""
    wrong = 0
    for seed in seeds:
        case = random_case(100_000 + seed, 0)
        for suspect in locate(case.observations, case.paths).suspects:
            wrong += 1
            print(f"  wrong, healthy seed {seed}: {suspect.sentence()}", flush=True)
    share = 100 * (1 - wrong / max(len(seeds), 1))
    verdict("healthy networks without suspect", share, 100.0, unit="%")


def times() -> None:
    """Print how long 64 ports take; an AAPC of 1,024 ranks is in report.py's summary."""
    net = network([0, *[16] * 4], [(0, i + 1, 16) for i in range(4)])
    rng = np.random.default_rng(1)
    faults = [Planted(20, "loss", 0.01), Planted(40, "capacity", 0.5)]
    case = simulate(net, make_phases(["aapc"], [0.9], ["dpdk"], [1518], 64, rng), faults, rng)
    start = time.process_time()
    locate(case.observations, case.paths)
    verdict("64 ports", time.process_time() - start, 1.0, unit="s", at_most=True)


def main() -> None:
    """Run all parts, or those that the options leave."""
    options = arguments(__doc__, seeds=1000, first=0, healthy=300).parse_args()
    times()
    shares(range(options.first, options.first + options.seeds))
    healthy(range(options.healthy))


if __name__ == "__main__":
    main()
