#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The four matrices over `verbs` on four guests, every message verified, against perftest.

What is compared is the sum over all flows of a phase: ours, and as many perftest pairs at the same
time in the same guests, in turn. The pairs are read from our own flow records, so that it is the
same matrix. Messages are RC writes of 64 KiB.

    tests/bench/verbs_matrices.py [--rows verified aapc pairs ring chain] [--rounds 5]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import arguments, in_turn, verdict
from verbs_bed import (
    NODE,
    Crew,
    Load,
    Record,
    booted,
    crew,
    delivered,
    perftest,
    ports,
    timed,
)

import guests

GUESTS = 4
REACH = 0.95
LOAD = Load("write", 64 << 10)
SHORT = Load("write", 64 << 10, window_s=0.3, warmup_s=0.1)
WARMUP_S = 1.0  # perftest's

# name: pattern, phases
COMPARED: Mapping[str, tuple[Record, Sequence[int]]] = {
    "aapc": ({"name": "aapc", "order": "shift"}, [0]),
    "pairs": ({"name": "pairs"}, [0]),
    "ring": ({"name": "ring", "natural": True, "directions": "forward"}, [0]),
    "chain": ({"name": "chain", "forward": True}, [0]),
}
VERIFIED: Sequence[Record] = (
    *({"name": "aapc", "order": order} for order in ("shift", "pairwise", "xor", "naive")),
    {"name": "ring", "natural": True, "count": 2},
    {"name": "pairs"},
    {"name": "chain", "forward": True},
)


@dataclass
class Matrix:
    """A phase's pairs, as our nodes have just run it."""

    rig: guests.Rig
    pairs: Sequence[tuple[guests.Guest, guests.Guest]] = ()

    def take(self, flows: Sequence[Record]) -> None:
        """Who sent to whom."""
        names = ports(len(self.rig.guests))
        self.pairs = [
            (self.rig.guests[names.index(flow["src"])], self.rig.guests[names.index(flow["dst"])])
            for flow in flows
        ]


def verify(nodes: Crew) -> None:
    """All orders and both kinds of rings, shortly; `run` ends the program if a message is bad."""
    for pattern in VERIFIED:
        flows = nodes.run(SHORT, pattern)
        phases = Counter(flow["phase"] for flow in flows)
        messages = sum(flow["messages"] for flow in flows)
        words = " ".join(str(word) for word in pattern.values())
        print(
            f"{words}: {len(phases)} phases, {len(flows)} flows, {messages} messages, all verified"
        )
        sys.stdout.flush()


def compare(rig: guests.Rig, nodes: Crew, name: str, rounds: int) -> None:
    """One row."""
    pattern, phases = COMPARED[name]
    matrix = Matrix(rig)
    words = timed(LOAD.window_s, WARMUP_S)

    def ours() -> float:
        flows = nodes.run(LOAD, pattern, phases=list(phases))
        matrix.take(flows)
        return delivered(flows)

    print(f"{name}, {LOAD.name}", flush=True)
    medians = in_turn(
        rounds,
        {"ours": ours, "perftest": lambda: perftest(matrix.pairs, LOAD, words)},
        unit="MB/s",
    )
    ratio = medians["ours"] / medians["perftest"]
    verdict(f"{name}: sum of {len(matrix.pairs)} flows by perftest's", ratio, REACH)


def main() -> int:
    """All rows, or those asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--node", type=Path, default=NODE)
    rows = ["verified", *COMPARED]
    parser.add_argument("--rows", nargs="+", choices=rows, default=rows)
    asked: Any = parser.parse_args()
    with booted(GUESTS, asked.node) as rig, crew(rig, asked.node) as nodes:
        for name in asked.rows:
            if name == "verified":
                verify(nodes)
            else:
                compare(rig, nodes, name, asked.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
