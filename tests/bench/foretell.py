#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How near models come to what is measured, and how long they take.

A sixth of the patterns of conf/paper-zhu.yaml (Zhu et al. 2012), some 90 links in each of its nine
sets, once in a window of 1.7 s: the share of links that the best model foretells within 10 %. Then
an all-to-all of 4,096 ranks on a tree of three levels, each phase made by the engine and filled
max-min. About two and a half minutes; there is no peer.

    tests/bench/foretell.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import skip, verdict

ROOT = Path(__file__).resolve().parents[2]
COUNTS = (18, 9, 6, 9, 5, 3, 6, 3, 2)  # patterns of each set
CLOSE_PERCENT = 85.0
AAPC_S = 10.0
HOSTS, LEAF, MIDDLE = 4096, 16, 16  # hosts of a leaf switch, leaf switches of a middle one


def switchbench(*arguments: str) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "switchbench", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def patterns() -> None:
    """Runs the patterns and prints each set's best model."""
    counts = [f"tests.{number}.count={count}" for number, count in enumerate(COUNTS)]
    settings = [*counts, "repeat=1", "window=1.7s"]
    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as temporary:
        out = str(Path(temporary) / "zhu")
        assignments = [part for setting in settings for part in ("--set", setting)]
        conf = str(ROOT / "conf" / "paper-zhu.yaml")
        switchbench("run", conf, "--out", out, "--quiet", *assignments)
        found = json.loads(switchbench("predict", out, "--json"))
    for trial in found["trials"]:
        show(trial)


def show(trial: dict[str, Any]) -> None:
    """One set: the models that have most, and whether hosts were the limit."""
    fits = {fit["model"]: fit for fit in trial["fits"]}
    most = max(fit["close"] for fit in fits.values())
    best = [model for model, fit in fits.items() if fit["close"] == most]
    offered = trial["offered"]
    print(
        f"  sources sent {100 * offered['mean']:.1f} % of their load, {100 * offered['least']:.1f} "
        f"% the least; as offered {100 * fits[best[0]]['close_as_offered']:.1f} %"
    )
    nodes, degree = 10 * (trial["trial"] // 3 + 1), trial["trial"] % 3 + 1
    verdict(
        f"{nodes} nodes, d = {degree}, {trial['flows']} links within 10 % by {', '.join(best)}",
        100 * most,
        CLOSE_PERCENT,
        unit="%",
    )


def tree() -> Any:
    """Routes of hosts on leaf switches, these on middle ones, these on one."""
    from switchbench.fabric import Fabric, Link, Routes

    hosts = [f"h{number}" for number in range(HOSTS)]
    leaves = [f"leaf{number}" for number in range(HOSTS // LEAF)]
    middles = [f"middle{number}" for number in range(len(leaves) // MIDDLE)]
    rate = 10**9
    links = [Link(host, leaves[number // LEAF], rate) for number, host in enumerate(hosts)]
    links += [Link(leaf, middles[number // MIDDLE], 8 * rate) for number, leaf in enumerate(leaves)]
    links += [Link(middle, "top", 64 * rate) for middle in middles]
    switches = (*leaves, *middles, "top")
    return Routes(Fabric("three levels", tuple(hosts), switches, tuple(links)))


def all_to_all() -> float:
    """Seconds from nothing to the rate of every flow of every phase."""
    from switchbench.engine import PlanRequest, plan_flows
    from switchbench.predict.models import MODELS, Flows

    begun = time.monotonic()
    routes = tree()
    phases = 0
    for _, ranks in plan_flows(PlanRequest.of(HOSTS, {"name": "aapc", "order": "shift"}, 1)):
        MODELS["max-min"](Flows.of(routes, ranks, np.full(len(ranks), np.inf)))
        phases += 1
    if phases != HOSTS - 1:
        raise SystemExit(f"{phases} phases of {HOSTS - 1}")
    return time.monotonic() - begun


def main() -> None:
    """Measures both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    taken = [all_to_all() for _ in range(args.rounds)]
    what = f"an all-to-all of {HOSTS} ranks foretold, median of {args.rounds}"
    verdict(what, statistics.median(taken), AAPC_S, unit="s", at_most=True)
    if os.geteuid() != 0:
        skip("the lab of thirty nodes needs root")
    patterns()


if __name__ == "__main__":
    main()
