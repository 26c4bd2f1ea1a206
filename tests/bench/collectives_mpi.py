#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives over TCP against Open MPI in the same lab.

A lab of four nodes, shaped or not; ours by `switchbench run`, theirs by mpirun with a rank in each
node's namespace (mpi.py), in turn.

Open MPI's Allreduce, Alltoall and Bcast, with the algorithms that it chooses, are timed as by IMB
(mpi_peer.c) against ours, the algorithm named; t_avg of both. Sums of ours are verified,
outside of the time.

    tests/bench/collectives_mpi.py [--rates unlimited 100M] [--rounds 5]
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from common import Figures, arguments, beside_peer, need, switchbench
from mpi import Mpi

# A lab's interfaces under test, and the others.
MESSAGES, CONTROL = "198.18.0.0/15", "100.64.0.0/10"
# Function, size, our algorithm, and the calls in a row that are timed.
CALLS = (
    ("allreduce", 8, "recursive-doubling", 1000),
    ("allreduce", 4096, "recursive-doubling", 500),
    ("allreduce", 1 << 20, "ring", 10),
    ("alltoall", 8, "bruck", 1000),
    ("alltoall", 256 << 10, "linear", 10),
    ("bcast", 8, "binomial", 1000),
    ("bcast", 1 << 20, "pipeline", 10),
)
# Where lines are the limit, one that sends less.
ON_LINES = {("allreduce", 4096): "rabenseifner"}


def named(function: str, size: int) -> str:
    """Return a collective as rows call it."""
    return f"{function} {size} B us"


def ours(lab: Path, rate: str) -> Figures:
    """Run all calls once; a batch is IMB's loop. Return t_avg of each."""
    tests = []
    for function, size, usual, calls in CALLS:
        algorithm = usual if rate == "unlimited" else ON_LINES.get((function, size), usual)
        test = {"pattern": function, "algorithm": algorithm, "message_size": size}
        more = {"compute": True} if function == "allreduce" else {}
        tests.append(test | {"batch": calls, "repetitions": calls} | more)
    conf = {"switchbench": 1, "site": {"lab": str(lab)}, "transport": "tcp", "tests": tests}
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "bench.yaml"), Path(folder, "out")
        file.write_text(json.dumps(conf))  # JSON is YAML, too
        switchbench("run", str(file), "--out", str(out), "--quiet")
        functions = json.loads((out / "summary.json").read_text())["steps"]["functions"]
    return {
        named(one["pattern"], point["size"]): point["imb"]["t_avg_us"]
        for one in functions
        for point in one["points"]
    }


def theirs(mpi: Mpi, spaces: list[str]) -> Figures:
    """Run all calls of Open MPI once."""
    words = [str(word) for function, size, _, calls in CALLS for word in (function, size, calls)]
    lines = mpi.run(spaces, MESSAGES, CONTROL, *words).splitlines()
    found = (line.split() for line in lines)
    return {named(function, int(size)): float(mean) for function, size, _, mean, _ in found}


def main() -> None:
    """Compare on a lab of each rate."""
    asked = arguments(__doc__, rates=["unlimited", "100M"], nodes=4).parse_args()
    need("mpicc", "mpirun", "ip", "unshare", root=True)
    for rate in asked.rates:
        with tempfile.TemporaryDirectory(prefix="switchbench-mpi-") as name:
            lab, mpi = Path(name, f"mpi{os.getpid()}.yaml"), Mpi(Path(name))
            burst = {} if rate == "unlimited" else {"burst": "32KiB"}
            topology = {"topology": 1, "rate": rate, "queue": "256KiB", "modules": ["switch"]}
            lab.write_text(json.dumps(topology | burst | {"nodes": {f"node[1-{asked.nodes}]": {}}}))
            spaces = [f"sb-{lab.stem}-node{number}" for number in range(1, asked.nodes + 1)]
            switchbench("lab", "up", str(lab))
            try:
                subjects = {
                    "ours": lambda lab=lab, rate=rate: ours(lab, rate),
                    "Open MPI": lambda mpi=mpi, spaces=spaces: theirs(mpi, spaces),
                }
                reaches = {named(function, size): 1.0 for function, size, *_ in CALLS}
                beside_peer(f"{asked.nodes} ranks, {rate}", asked.rounds, subjects, {}, reaches)
            finally:
                switchbench("lab", "down", lab.stem)


if __name__ == "__main__":
    main()
