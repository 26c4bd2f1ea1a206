#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How well faults are located in simulated networks, and how fast.

Precision, recall of what can be told apart, and calibration over seeds with 0 to 3 faults; false
suspects in healthy networks; time for 64 ports and for an AAPC of 1,024 ranks. There is no peer.

    tests/bench/location.py [--seeds 1000] [--first 0] [--healthy 300]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from common import verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from location_sim import (
    Planted,
    Score,
    make_phases,
    network,
    random_case,
    score,
    simulate,
    table_route,
)
from switchbench.analysis.location.facts import Observations, Paths, PhaseFacts
from switchbench.analysis.location.inference import locate
from switchbench.records.rows import PhaseKey

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
    verdict(
        "healthy networks without suspect", 100 * (1 - wrong / max(len(seeds), 1)), 100.0, unit="%"
    )


def aapc(ranks: int, per_leaf: int) -> tuple[Observations, Paths]:
    """Return an AAPC of two tiers in which one port loses 0.5 %, another carries half."""
    src, dst = (x.ravel() for x in np.indices((ranks, ranks)))
    keep = src != dst
    src, dst = src[keep], dst[keep]
    leaves = ranks // per_leaf
    hosts = network([0, *[per_leaf] * leaves], [(0, i + 1, 1) for i in range(leaves)])
    number = {(e.name, e.direction): i for i, e in enumerate(hosts.elements)}
    trunks = {d: i for (_, d), i in number.items() if d.startswith("from sw")}
    ends = np.array(
        [
            [number[f"node{p + 1}", "send"],
             number[f"sw{p // per_leaf + 2}:p{p % per_leaf + 1}", "in"],
             number[f"sw{p // per_leaf + 2}", ""], trunks[f"from sw{p // per_leaf + 2} to sw1"],
             trunks[f"from sw1 to sw{p // per_leaf + 2}"],
             number[f"sw{p // per_leaf + 2}:p{p % per_leaf + 1}", "out"],
             number[f"node{p + 1}", "receive"]]
            for p in range(ranks)
        ]
    )  # fmt: skip
    local = src // per_leaf == dst // per_leaf
    near = np.stack([ends[src, 0], ends[src, 1], ends[src, 2], ends[dst, 5], ends[dst, 6]], 1)
    far = np.stack(
        [ends[src, 0], ends[src, 1], ends[src, 2], ends[src, 3], ends[dst, 4], ends[dst, 2],
         ends[dst, 5], ends[dst, 6]], 1,
    )  # fmt: skip
    length = np.where(local, near.shape[1], far.shape[1])
    indptr = np.concatenate([[0], np.cumsum(length)])
    members = np.zeros(indptr[-1], np.int64)
    for rows, part in ((np.flatnonzero(local), near), (np.flatnonzero(~local), far)):
        for hop in range(part.shape[1]):
            members[indptr[rows] + hop] = part[rows, hop]
    elements = [
        e if e.kind != "trunk" else type(e)(e.name, e.kind, e.direction) for e in hosts.elements
    ]
    paths = Paths(elements, hosts.ports, table_route(ranks, src, dst, indptr, members), "file")
    rng = np.random.default_rng(1)
    phase = (dst - src) % ranks - 1
    phases = [
        PhaseFacts(PhaseKey(0, 0, "net", k), f"phase {k}", "dpdk", True, 1518.0, 1.0, 0.9)
        for k in range(ranks - 1)
    ]
    count = len(src)
    sent = np.full(count, 70_000.0)
    lost = np.where(rng.random(count) < 0.02, rng.geometric(0.3, count), 0).astype(np.float64)
    lost += np.where(src == 5, rng.binomial(70_000, 0.005, count), 0)
    lost += np.where(dst == 77, rng.binomial(70_000, 0.44, count), 0)
    rate = np.full(count, 0.9e9)
    return Observations(
        phases, phase, src, dst, sent, sent - lost, lost, rate, rate, rate * (1 - lost / sent),
        np.zeros(count, np.bool_),
    ), paths  # fmt: skip


def times() -> None:
    """Print how long the largest networks take."""
    net = network([0, *[16] * 4], [(0, i + 1, 16) for i in range(4)])
    rng = np.random.default_rng(1)
    faults = [Planted(20, "loss", 0.01), Planted(40, "capacity", 0.5)]
    case = simulate(net, make_phases(["aapc"], [0.9], ["dpdk"], [1518], 64, rng), faults, rng)
    start = time.process_time()
    locate(case.observations, case.paths)
    verdict("64 ports", time.process_time() - start, 1.0, unit="s", at_most=True)
    observations, paths = aapc(1024, 32)
    start = time.process_time()
    found = locate(observations, paths)
    verdict("AAPC of 1,024 ranks", time.process_time() - start, 20.0, unit="s", at_most=True)
    for suspect in found.suspects:
        print(f"  {suspect.sentence()}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    verdict("its memory", peak, 4.0, unit="GiB", at_most=True)


def main() -> None:
    """Run all parts, or those that the options leave."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--healthy", type=int, default=300)
    options = parser.parse_args()
    times()
    shares(range(options.first, options.first + options.seeds))
    healthy(range(options.healthy))


if __name__ == "__main__":
    main()
