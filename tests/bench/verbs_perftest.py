#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`verbs` between two guests against perftest: one way, same depth, path MTU and message size.

Both run in the same two guests, in turn. Ours are nodes that run a chain of two with as much load
as goes; its figure is payload that arrived and was verified in a window after a warm-up. perftest
has its window after a warm-up, too; it looks at no byte. Its figure is what its client saw
completed, with UD what its server received.

    tests/bench/verbs_perftest.py [--rows write-64KiB send-1MiB ud ...] [--rounds 5]
"""

from __future__ import annotations

import sys

from common import arguments, in_turn, verdict
from verbs_bed import PATH_MTU, Crew, Load, booted, crew, delivered, perftest, timed

import guests

REACH = 1.0
WARMUP_S = 1.0  # perftest's; ours is shorter, as ours needs no second to be in step
OPERATIONS = ("write", "send")
ROWS = {
    **{f"{operation}-64KiB": Load(operation, 64 << 10) for operation in OPERATIONS},
    **{f"{operation}-1MiB": Load(operation, 1 << 20, window_s=2.0) for operation in OPERATIONS},
    "ud": Load("send", PATH_MTU, service="ud"),
}


def compare(rig: guests.Rig, nodes: Crew, load: Load, rounds: int) -> None:
    """One row."""
    source, destination = rig.guests
    words = timed(load.window_s, WARMUP_S)
    print(load.name, flush=True)
    medians = in_turn(
        rounds,
        {
            "ours": lambda: delivered(nodes.run(load, {"name": "chain"})),
            "perftest": lambda: perftest(source, destination, load, words),
        },
        unit="MB/s",
    )
    verdict(f"{load.name}: ours by perftest's", medians["ours"] / medians["perftest"], REACH)


def main() -> int:
    """All rows, or those asked for."""
    parser = arguments(__doc__, node=True)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    asked = parser.parse_args()
    with booted(2, asked.node) as rig, crew(rig, asked.node) as nodes:
        for name in asked.rows:
            compare(rig, nodes, ROWS[name], asked.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
