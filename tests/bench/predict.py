#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How near models come to what is measured, and how long they take.

A sixth of the patterns of conf/paper-zhu.yaml (Zhu et al. 2012), some 90 links in each of its nine
sets, once in a window of 1.7 s: the share of links that the best model predicts within 10 %. And
an all-to-all of 4,096 ranks on a tree of three levels: processor time of the command as a user runs
it, with all models that it asks of so many flows, and of its engine. About three minutes; there is
no peer.

    tests/bench/predict.py [--rounds 5]
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import yaml
from common import ROOT, arguments, in_turn, need, switchbench, verdict

COUNTS = (18, 9, 6, 9, 5, 3, 6, 3, 2)  # patterns of each set
CLOSE_PERCENT = 85.0
AAPC_S = 10.0
HOSTS, LEAF, MIDDLE = 4096, 16, 16  # hosts of a leaf switch, leaf switches of a middle one


def patterns() -> None:
    """Runs the patterns and prints each set's best model."""
    counts = [f"tests.{number}.count={count}" for number, count in enumerate(COUNTS)]
    settings = [*counts, "repeat=1", "window=1.7s"]
    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as temporary:
        out = str(Path(temporary) / "zhu")
        assignments = [part for setting in settings for part in ("--set", setting)]
        conf = str(ROOT / "conf" / "paper-zhu.yaml")
        switchbench("run", conf, "--out", out, "--quiet", *assignments)
        found = json.loads(switchbench("predict", out, "--json")[0])
    for trial in found["trials"]:
        show(trial)


def show(trial: dict[str, Any]) -> None:
    """One set: the models that have most."""
    fits = {fit["model"]: fit for fit in trial["fits"]}
    most = max(fit["close"] for fit in fits.values())
    best = [model for model, fit in fits.items() if fit["close"] == most]
    nodes, degree = 10 * (trial["trial"] // 3 + 1), trial["trial"] % 3 + 1
    verdict(
        f"{nodes} nodes, d = {degree}, {trial['flows']} links within 10 % by {', '.join(best)}",
        100 * most,
        CLOSE_PERCENT,
        unit="%",
    )


def tree() -> dict[str, Any]:
    """A topology file: hosts on leaf switches, these on middle ones, these on one."""
    leaves = [f"leaf{number}" for number in range(HOSTS // LEAF)]
    middles = [f"middle{number}" for number in range(len(leaves) // MIDDLE)]
    nodes = {
        f"h[{LEAF * number + 1}-{LEAF * (number + 1)}]": {"module": leaf}
        for number, leaf in enumerate(leaves)
    }
    trunks = [
        {"between": [leaf, middles[number // MIDDLE]], "rate": "8G"}
        for number, leaf in enumerate(leaves)
    ]
    trunks += [{"between": [middle, "top"], "rate": "64G"} for middle in middles]
    modules = [*leaves, *middles, "top"]
    head = {"topology": 1, "kind": "site", "rate": "1G"}
    return head | {"modules": modules, "nodes": nodes, "trunks": trunks}


def all_to_all(folder: Path) -> float:
    """Processor seconds of the command, with its engine's, from start to end."""
    topology, conf = folder / "tree.yaml", folder / "conf.yaml"
    topology.write_text(yaml.safe_dump(tree()))
    ports = {"e0": {"network": "lab", "iface": "eth0", "transports": ["tcp"]}}
    site = {"launch": "ssh", "hosts": f"h[1-{HOSTS}]", "ports": ports}
    tests = [{"pattern": "aapc", "order": "shift"}]
    what = {"transport": "tcp", "traffic": "transfer", "message_size": "64KiB"}
    conf.write_text(yaml.safe_dump({"switchbench": 1, "site": site, "tests": tests} | what))
    found, taken = switchbench("predict", str(conf), "--topology", str(topology), "--json")
    (trial,) = json.loads(found)["trials"]
    if trial["phases"] != HOSTS - 1:
        raise SystemExit(f"{trial['phases']} phases of {HOSTS - 1}")
    return taken["CPU s"]


def main() -> None:
    """Measures both."""
    args = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as temporary:
        parts = {"predict": lambda: all_to_all(Path(temporary))}
        seconds = in_turn(args.rounds, parts, unit="s of CPU")["predict"]
    what = f"an all-to-all of {HOSTS} ranks predicted, processor time, median of {args.rounds}"
    verdict(what, seconds, AAPC_S, unit="s", at_most=True)
    need("ip", root=True)
    patterns()


if __name__ == "__main__":
    main()
