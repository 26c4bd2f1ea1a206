#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The barrier of 2 to 16 node processes against MPI_Barrier of Open MPI over TCP.

One process a namespace, all on one bridge, nothing shaped; both in turn. Ours waits as
switchbench-node does in a lab (node_barrier, workers that sleep). Open MPI's ranks yield when idle
(mpi.py). Every barrier of every process counts; p50 and p99 are those of one
run, and the medians of the runs are compared. With `sleep` on fewer cores than processes the
figures are of a machine, not of a network.

    tests/bench/barrier_mpi.py [--program build/tests/bench/barrier_node] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from common import need, skip, verdict
from mpi import Mpi
from spaces import NETWORK, PREFIX_BITS, spaces

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COUNTS = (2, 4, 8, 16)
P50_REACH = 0.7
P99_REACH = 1.0
TIMEOUT_S = 60
PEER = "mpi_peer"


@dataclass(frozen=True)
class Figures:
    """Of one run, or the medians of several; in microseconds."""

    p50: float
    p99: float


def figures(lines: str) -> Figures:
    """From nanoseconds, one a line."""
    times = sorted(int(word) for word in lines.split())
    if not times:
        raise SystemExit("a run measured nothing")
    return Figures(times[len(times) // 2] / 1e3, times[len(times) * 99 // 100] / 1e3)


def medians(runs: list[Figures]) -> Figures:
    """Each figure's own median."""
    return Figures(
        statistics.median(run.p50 for run in runs), statistics.median(run.p99 for run in runs)
    )


def ours(program: Path, names: list[str], barriers: int) -> Figures:
    """One run of our processes."""
    command = ["ip", "netns", "exec"]
    count = str(len(names))
    processes = [
        subprocess.Popen(
            [*command, name, str(program), str(index), count, str(barriers), NETWORK],
            stdout=subprocess.PIPE,
            text=True,
        )
        for index, name in enumerate(names)
    ]
    try:
        outputs = [process.communicate(timeout=TIMEOUT_S)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    if any(process.returncode != 0 for process in processes):
        raise SystemExit("a node failed")
    return figures("".join(outputs))


def theirs(folder: Path, names: list[str], barriers: int) -> Figures:
    """One run below mpirun, which sits in the first namespace itself."""
    subnet = f"{NETWORK}/{PREFIX_BITS}"
    mpi = Mpi(folder, names, subnet, subnet)
    return figures(mpi.run(str(folder / PEER), "barrier", str(barriers), timeout_s=TIMEOUT_S))


def compare(program: Path, folder: Path, count: int, options: argparse.Namespace) -> None:
    """One number of processes: both in turn, then the verdicts."""
    own: list[Figures] = []
    other: list[Figures] = []
    with spaces(count) as names:
        for _ in range(options.rounds):
            own.append(ours(program, names, options.barriers))
            other.append(theirs(folder, names, options.barriers))
    mine, peer = medians(own), medians(other)
    print(
        f"{count} processes: ours p50 {mine.p50:.1f} us, p99 {mine.p99:.1f} us; "
        f"MPI_Barrier p50 {peer.p50:.1f} us, p99 {peer.p99:.1f} us (medians of {options.rounds})"
    )
    verdict("  p50, ours by MPI's", mine.p50 / peer.p50, P50_REACH, at_most=True)
    verdict("  p99, ours by MPI's", mine.p99 / peer.p99, P99_REACH, at_most=True)


def main() -> int:
    """All numbers of processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    built = ROOT / "build/tests/bench/barrier_node"
    parser.add_argument("--program", type=Path, default=built)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--barriers", type=int, default=1000)
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    options = parser.parse_args()
    if os.geteuid() != 0:
        skip("namespaces need root")
    need("mpicc", "mpirun", "ip", "unshare")
    with tempfile.TemporaryDirectory(prefix="switchbench-barrier-") as folder:
        Mpi(Path(folder), [], "", "").compile(f"{PEER}.c")
        for count in options.counts:
            compare(options.program, Path(folder), count, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
