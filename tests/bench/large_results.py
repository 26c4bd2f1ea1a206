#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Summary, report and check of an AAPC of many ranks: how long they take, and how much memory.

The tables are simulated (tests/python/simulated.py): 1,024 ranks have 1,023 phases of 1,024 flows.
Then in turn, as a user starts them: `switchbench table --again`, which makes the summary of the
tables; `switchbench report`; `switchbench verify`. There is no peer.

    tests/bench/large_results.py [--ranks 1024] [--rounds 1]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import verdict

ROOT = Path(__file__).resolve().parents[2]
TOGETHER_S, VERIFY_S, MEMORY_GIB, TABLES_MB = 60.0, 10.0, 1.0, 120.0  # of 1,024 ranks

sys.path.insert(0, str(ROOT / "tests" / "python"))


def run(*words: str) -> tuple[float, float, float]:
    """Seconds, CPU seconds and GiB that a command takes."""
    begun = time.monotonic()
    started = subprocess.Popen(
        [sys.executable, "-m", "switchbench", *words], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"switchbench {' '.join(words)}: status {started.returncode}")
    taken = time.monotonic() - begun
    return taken, used.ru_utime + used.ru_stime, used.ru_maxrss / (1 << 20)


def measure(ranks: int) -> None:
    """One round."""
    from simulated import Choice, simulate

    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as temporary:
        choice = Choice(ranks, transports=("dpdk",), patterns=("aapc",))
        directory = str(simulate(Path(temporary) / "run", choice))
        figures = {
            "summary": run("table", directory, "--again"),
            "verify": run("verify", directory),
            "report": run("report", directory),
        }
        held = sum(file.stat().st_size for file in Path(directory).glob("*.parquet")) / 1e6
    verdict("tables", held, TABLES_MB, unit="MB", at_most=True)
    for name, (wall_s, cpu_s, gib) in figures.items():
        print(f"{name} of {ranks} ranks: {wall_s:.1f} s, {cpu_s:.1f} s of CPU, {gib:.2f} GiB")
    together = figures["summary"][0] + figures["report"][0]
    verdict("summary and report", together, TOGETHER_S, unit="s", at_most=True)
    verdict("verify", figures["verify"][0], VERIFY_S, unit="s", at_most=True)
    most = max(gib for _, _, gib in figures.values())
    verdict("memory", most, MEMORY_GIB, unit="GiB", at_most=True)


def main() -> None:
    """Measures so many rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    for _ in range(args.rounds):
        measure(args.ranks)


if __name__ == "__main__":
    main()
