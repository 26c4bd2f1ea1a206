#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The report of 64 and of 1,024 ranks: how long it takes to build, and how large it is.

Results directories are simulated first (tests/python/simulated.py): 64 ranks with every pattern
over both transports, and the all-to-all of 1,024 ranks over both, 4.3 GB of records in a temporary
folder (TMPDIR). Of the latter one phase in 16 has histograms, and its summary repeats that of a
few phases, which changes neither size nor time by much. Measured is what `switchbench report` does.

    tests/bench/report.py [--rounds 5] [--many 1024]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from common import in_turn, verdict

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "scripts/python")]

from simulated import Choice, simulate  # noqa: E402
from switchbench.report.build import write  # noqa: E402

FEW = 64
FEW_REACH = (10.0, 10.0)  # seconds, MB
MANY_REACH = (60.0, 40.0)
MB = 1e6


def seconds(directory: Path) -> float:
    """How long the report takes."""
    begun = time.monotonic()
    write(directory)
    return time.monotonic() - begun


def main() -> None:
    """Prints time and size of both, and the reach."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--many", type=int, default=1024, help="ranks of the larger one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="report-") as folder:
        few = simulate(Path(folder) / "few", Choice(FEW))
        large = Choice(args.many, patterns=("aapc",), times_every=16, summary_every=64)
        many = simulate(Path(folder) / "many", large)
        names = {f"{FEW} ranks": few, f"{args.many} ranks": many}
        subjects = {name: lambda path=path: seconds(path) for name, path in names.items()}
        medians = in_turn(args.rounds, subjects, unit="s")
        reaches = (FEW_REACH, MANY_REACH)
        for (name, path), (most_s, most_mb) in zip(names.items(), reaches, strict=True):
            size = (path / "report.html").stat().st_size / MB
            verdict(f"report of {name}, built", medians[name], most_s, unit="s", at_most=True)
            verdict(f"report of {name}, size", size, most_mb, unit="MB", at_most=True)


if __name__ == "__main__":
    main()
