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

import subprocess
import sys
import tempfile
from pathlib import Path

from common import Figures, arguments, built, medians_in_turn, need, verdict
from mpi import Mpi
from spaces import NETWORK, PREFIX_BITS, inside, spaces

REACHES = {"p50 us": 0.7, "p99 us": 1.0}
TIMEOUT_S = 60
PEER = "mpi_peer"


def figures(lines: str) -> Figures:
    """Percentiles of nanoseconds, one a line."""
    times = sorted(int(word) for word in lines.split())
    if not times:
        raise SystemExit("a run measured nothing")
    return {f"p{part} us": times[len(times) * part // 100] / 1e3 for part in (50, 99)}


def ours(program: Path, names: list[str], barriers: int) -> Figures:
    """One run of our processes."""
    processes = [
        subprocess.Popen(
            inside(name, str(program), str(index), str(len(names)), str(barriers), NETWORK),
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


def main() -> int:
    """All numbers of processes: both in turn, then the verdicts."""
    parser = arguments(__doc__)
    parser.add_argument("--program", type=Path, default=built("barrier_node"))
    parser.add_argument("--barriers", type=int, default=1000)
    parser.add_argument("--counts", type=int, nargs="+", default=(2, 4, 8, 16))
    options = parser.parse_args()
    need("mpicc", "mpirun", "ip", "unshare", root=True)
    with tempfile.TemporaryDirectory(prefix="switchbench-barrier-") as name:
        folder = Path(name)
        Mpi(folder, [], "", "").compile(f"{PEER}.c")
        for count in options.counts:
            print(f"{count} processes", flush=True)
            with spaces(count) as names:
                subjects = {
                    "ours": lambda names=names: ours(options.program, names, options.barriers),
                    "MPI_Barrier": lambda names=names: theirs(folder, names, options.barriers),
                }
                found = medians_in_turn(options.rounds, subjects)
            for figure, reach in REACHES.items():
                ratio = found["ours"][figure] / found["MPI_Barrier"][figure]
                verdict(f"  {count} processes, {figure}, ours by MPI's", ratio, reach, at_most=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
