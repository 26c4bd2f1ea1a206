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
import tempfile
from pathlib import Path

from common import Figures, arguments, beside_peer, built, need
from mpi import Mpi
from spaces import NETWORK, PREFIX_BITS, inside, spaces

TIMEOUT_S = 60


def figures(lines: str) -> Figures:
    """Return percentiles of nanoseconds, one a line."""
    times = sorted(int(word) for word in lines.split())
    if not times:
        raise SystemExit("a run measured nothing")
    return {f"p{part} us": times[len(times) * part // 100] / 1e3 for part in (50, 99)}


def ours(program: Path, names: list[str], barriers: int) -> Figures:
    """Run our processes once."""
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


def main() -> None:
    """Compare with 2 to 16 processes."""
    options = arguments(
        __doc__, program=built("barrier_node"), barriers=1000, counts=[2, 4, 8, 16]
    ).parse_args()
    need("mpicc", "mpirun", "ip", "unshare", root=True)
    subnet, barriers = f"{NETWORK}/{PREFIX_BITS}", options.barriers
    with tempfile.TemporaryDirectory(prefix="switchbench-barrier-") as name:
        mpi = Mpi(Path(name))
        for count in options.counts:
            with spaces(count) as names:
                subjects = {
                    "ours": lambda names=names: ours(options.program, names, barriers),
                    "MPI_Barrier": lambda names=names: figures(
                        mpi.run(names, subnet, subnet, "barrier", str(barriers))
                    ),
                }
                row, at_most = f"{count} processes", {"p50 us": 0.7, "p99 us": 1.0}
                beside_peer(row, options.rounds, subjects, {}, at_most)


if __name__ == "__main__":
    main()
