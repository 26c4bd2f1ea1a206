#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Summary, report and check of an AAPC of many ranks: how long they take, and how much memory.

The tables are simulated (tests/python/simulated.py): 1,024 ranks have 1,023 phases of 1,024 flows.
Then in turn, as a user starts them: `switchbench table --again`, which makes the summary of the
tables; `switchbench report`; `switchbench verify`. There is no peer.

    tests/bench/large_results.py [--ranks 1024] [--rounds 1]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from common import ROOT, arguments, switchbench, verdict

TOGETHER_S, VERIFY_S, MEMORY_GIB, TABLES_MB = 60.0, 10.0, 1.0, 120.0  # of 1,024 ranks

sys.path.insert(0, str(ROOT / "tests" / "python"))


def measure(ranks: int) -> None:
    """One round."""
    from simulated import Choice, simulate

    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as temporary:
        choice = Choice(ranks, transports=("dpdk",), patterns=("aapc",))
        directory = str(simulate(Path(temporary) / "run", choice))
        figures = {
            "summary": switchbench("table", directory, "--again")[1],
            "verify": switchbench("verify", directory)[1],
            "report": switchbench("report", directory)[1],
        }
        held = sum(file.stat().st_size for file in Path(directory).glob("*.parquet")) / 1e6
    verdict("tables", held, TABLES_MB, unit="MB", at_most=True)
    for name, taken in figures.items():
        words = ", ".join(f"{value:.2f} {unit}" for unit, value in taken.items())
        print(f"{name} of {ranks} ranks: {words}")
    together = figures["summary"]["s"] + figures["report"]["s"]
    verdict("summary and report", together, TOGETHER_S, unit="s", at_most=True)
    verdict("verify", figures["verify"]["s"], VERIFY_S, unit="s", at_most=True)
    most = max(taken["GiB"] for taken in figures.values())
    verdict("memory", most, MEMORY_GIB, unit="GiB", at_most=True)


def main() -> None:
    """Measures so many rounds."""
    parser = arguments(__doc__, rounds=1)
    parser.add_argument("--ranks", type=int, default=1024)
    args = parser.parse_args()
    for _ in range(args.rounds):
        measure(args.ranks)


if __name__ == "__main__":
    main()
