#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long models take for an all-to-all of 4,096 ranks on a tree of three levels.

Processor time of the command as a user runs it, with all models that it asks of so many flows, and
of its engine. There is no peer.

    tests/bench/predict.py [--rounds 5]
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from common import Figures, arguments, medians_in_turn, switchbench, verdict

REACH_S = 10.0
HOSTS, LEAF, MIDDLE = 4096, 16, 16  # hosts of a leaf switch, leaf switches of a middle one


def tree() -> dict[str, Any]:
    """Return a topology: hosts on leaf switches, these on middle ones, these on one."""
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
    head = {"topology": 1, "kind": "site", "rate": "1G", "modules": [*leaves, *middles, "top"]}
    return head | {"nodes": nodes, "trunks": trunks}


def predict() -> Figures:
    """Run the command once."""
    ports = {"e0": {"network": "lab", "iface": "eth0", "transports": ["tcp"]}}
    site = {"launch": "ssh", "hosts": f"h[1-{HOSTS}]", "ports": ports}
    what = {"transport": "tcp", "traffic": "transfer", "message_size": "64KiB"}
    conf = {"switchbench": 1, "site": site, "tests": [{"pattern": "aapc", "order": "shift"}]}
    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as folder:
        topology, file = Path(folder, "tree.yaml"), Path(folder, "conf.yaml")
        topology.write_text(json.dumps(tree()))  # JSON is YAML, too
        file.write_text(json.dumps(conf | what))
        found, taken = switchbench("predict", str(file), "--topology", str(topology), "--json")
    (trial,) = json.loads(found)["trials"]
    if trial["phases"] != HOSTS - 1:
        raise SystemExit(f"{trial['phases']} phases of {HOSTS - 1}")
    return {"s of CPU": taken["CPU s"]}


def main() -> None:
    """Measure so many rounds."""
    asked = arguments(__doc__).parse_args()
    found = medians_in_turn(asked.rounds, {"predict": predict})["predict"]["s of CPU"]
    what = f"an all-to-all of {HOSTS} ranks predicted, processor time, median of {asked.rounds}"
    verdict(what, found, REACH_S, unit="s", at_most=True)


if __name__ == "__main__":
    main()
