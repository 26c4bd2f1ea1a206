#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tables, summary, check and report of a simulated all-to-all of 1,024 ranks: size, time, memory.

The tables are simulated first (tests/python/simulated.py): 1,023 phases of 1,024 flows over dpdk.
Then `switchbench table --again`, which makes the summary of the tables, `switchbench verify` and
`switchbench report`, as a user starts them. There is no peer.

    tests/bench/report.py [--ranks 1024]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from common import ROOT, arguments, switchbench, verdict

sys.path[:0] = [str(ROOT / "tests" / name) for name in ("python", "system")]

from simulated import Choice, simulate  # noqa: E402 (it lies where this file's place says)

TABLES_MB, REPORT_MB, MEMORY_GIB = 120.0, 40.0, 1.0
REACHES_S = {"summary": 15.0, "verify": 10.0, "report": 20.0}


def main() -> None:
    """Measure each command once."""
    asked = arguments(__doc__, ranks=1024).parse_args()
    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as temporary:
        choice = Choice(asked.ranks, transports=("dpdk",), patterns=("aapc",))
        directory = simulate(Path(temporary) / "run", choice)
        held = sum(file.stat().st_size for file in directory.glob("*.parquet")) / 1e6
        name = str(directory)
        words = {"summary": ("table", name, "--again")}
        words |= {verb: (verb, name) for verb in ("verify", "report")}
        taken = {part: switchbench(*command)[1] for part, command in words.items()}
        report = (directory / "report.html").stat().st_size / 1e6
    verdict("tables", held, TABLES_MB, unit="MB", at_most=True)
    verdict("report in size", report, REPORT_MB, unit="MB", at_most=True)
    for part, reach in REACHES_S.items():
        verdict(part, taken[part]["s"], reach, unit="s", at_most=True)
    most = max(figures["GiB"] for figures in taken.values())
    verdict("memory", most, MEMORY_GIB, unit="GiB", at_most=True)


if __name__ == "__main__":
    main()
