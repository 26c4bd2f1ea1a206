#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The barrier of 2 to 16 node processes against MPI_Barrier of Open MPI over TCP.

One process a namespace, all on one bridge, nothing shaped; both in turn. Ours waits as
switchbench-node does in a lab (node_barrier, workers that sleep). Open MPI's ranks yield when idle:
without that they burn the cores that their partners need. Every barrier of every process counts;
p50 and p99 are those of one run, and the medians of the runs are compared. With `sleep` on fewer
cores than processes the figures are of a machine, not of a network.

    tests/bench/barrier_mpi.py [--program build/tests/bench/barrier_node] [--rounds 5]
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import Figures, arguments, beside_peer, built, inside, need, spaces

from switchbench.labs import LabNode

TIMEOUT_S = 60
NETWORK = "100.64.0.0"  # of the control network: node i has its (i + 1)-th address
SOURCE = Path(__file__).with_name("mpi_peer.c")

# mpirun's remote shell: the host's name is the namespace's. A host name of its own keeps Open MPI
# from taking all ranks for neighbours on one host.
AGENT = """#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
"""


def figures(lines: str) -> Figures:
    """Return percentiles of nanoseconds, one a line."""
    times = sorted(int(word) for word in lines.split())
    if not times:
        raise SystemExit("a run measured nothing")
    return {f"p{part} us": times[len(times) * part // 100] / 1e3 for part in (50, 99)}


def ours(program: Path, nodes: Sequence[LabNode], barriers: int) -> Figures:
    """Run our processes once."""
    processes = [
        subprocess.Popen(
            inside(node, str(program), str(index), str(len(nodes)), str(barriers), NETWORK),
            stdout=subprocess.PIPE,
            text=True,
        )
        for index, node in enumerate(nodes)
    ]
    try:
        outputs = [process.communicate(timeout=TIMEOUT_S)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    if any(process.returncode != 0 for process in processes):
        raise SystemExit("a node failed")
    return figures("".join(outputs))


def theirs(folder: Path, nodes: Sequence[LabNode], barriers: int) -> Figures:
    """Run the peer once, below mpirun, which sits in the first namespace."""
    settings = {
        "plm_rsh_agent": str(folder / "agent"),
        "plm_rsh_no_tree_spawn": "1",
        "pml": "ob1",
        "btl": "tcp,self",
        "btl_tcp_if_include": f"{NETWORK}/16",
        "oob_tcp_if_include": f"{NETWORK}/16",
        "mpi_yield_when_idle": "1",
    }
    command = inside(nodes[0], "mpirun", "--allow-run-as-root")
    for key, value in settings.items():
        command += ["--mca", key, value]
    command += ["--host", ",".join(node.namespace.name for node in nodes), "-np", str(len(nodes))]
    command += [str(folder / "mpi_peer"), str(barriers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=5 * TIMEOUT_S)
    if done.returncode != 0:
        raise SystemExit(f"mpirun failed:\n{done.stderr}")
    return figures(done.stdout)


def main() -> None:
    """Compare with 2 to 16 processes."""
    options = arguments(
        __doc__, program=built("barrier_node"), barriers=1000, counts=[2, 4, 8, 16]
    ).parse_args()
    need("mpicc", "mpirun", "ip", "unshare", root=True)
    barriers = options.barriers
    with tempfile.TemporaryDirectory(prefix="switchbench-barrier-") as name:
        folder = Path(name)
        (folder / "agent").write_text(AGENT)
        (folder / "agent").chmod(0o755)
        subprocess.run(["mpicc", "-O2", "-o", str(folder / "mpi_peer"), str(SOURCE)], check=True)
        for count in options.counts:
            with spaces(count) as nodes:
                subjects = {
                    "ours": lambda nodes=nodes: ours(options.program, nodes, barriers),
                    "MPI_Barrier": lambda nodes=nodes: theirs(folder, nodes, barriers),
                }
                row, at_most = f"{count} processes", {"p50 us": 0.7, "p99 us": 1.0}
                beside_peer(row, options.rounds, subjects, {}, at_most)


if __name__ == "__main__":
    main()
