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

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import ROOT, Figures, arguments, medians_in_turn, need, verdict
from mpi import Mpi

COMMAND = str(ROOT / "scripts/switchbench")
MESSAGES, CONTROL = (
    "198.18.0.0/15",
    "100.64.0.0/10",
)  # a lab's interfaces under test, and the others
RUN_S = 300.0
REACH = 1.0


@dataclass(frozen=True)
class Call:
    """One collective: our algorithm for it, and how many calls in a row are timed."""

    function: str
    size: int
    algorithm: str
    calls: int
    on_lines: str | None = None
    """The algorithm where lines are the limit, if it is another: one that sends less."""

    @property
    def name(self) -> str:
        """For rows."""
        return f"{self.function} {self.size} B"

    def algorithm_at(self, rate: str) -> str:
        """Ours on a lab of this rate."""
        return self.algorithm if rate == "unlimited" else self.on_lines or self.algorithm

    def test(self, rate: str) -> dict[str, Any]:
        """Of our configuration: a batch is IMB's loop."""
        more = {"compute": True} if self.function == "allreduce" else {}
        return {
            "pattern": self.function,
            "algorithm": self.algorithm_at(rate),
            "message_size": self.size,
            "batch": self.calls,
            "repetitions": self.calls,
        } | more


CALLS = (
    Call("allreduce", 8, "recursive-doubling", 1000),
    Call("allreduce", 4096, "recursive-doubling", 500, on_lines="rabenseifner"),
    Call("allreduce", 1 << 20, "ring", 10),
    Call("alltoall", 8, "bruck", 1000),
    Call("alltoall", 256 << 10, "linear", 10),
    Call("bcast", 8, "binomial", 1000),
    Call("bcast", 1 << 20, "pipeline", 10),
)


# --- the lab --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lab:
    """Nodes that stay for many runs."""

    file: Path
    nodes: int
    rate: str

    @property
    def spaces(self) -> list[str]:
        """The nodes' namespaces."""
        return [f"sb-{self.file.stem}-node{number}" for number in range(1, self.nodes + 1)]


@contextmanager
def lab(folder: Path, nodes: int, rate: str) -> Iterator[Lab]:
    """For as long as the block."""
    file = folder / f"mpi{os.getpid()}.yaml"
    burst = {} if rate == "unlimited" else {"burst": "32KiB"}
    topology = {"topology": 1, "rate": rate, "queue": "256KiB", "modules": ["switch"]} | burst
    file.write_text(json.dumps(topology | {"nodes": {f"node[1-{nodes}]": {}}}))
    switchbench("lab", "up", str(file))
    try:
        yield Lab(file, nodes, rate)
    finally:
        switchbench("lab", "down", file.stem)


def switchbench(*words: str) -> None:
    """A command that must succeed."""
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=RUN_S)
    if done.returncode != 0:
        raise SystemExit(f"switchbench {words[0]} failed:\n{done.stdout}{done.stderr}")


# --- ours -----------------------------------------------------------------------------------------


def run(place: Lab, tests: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What went by steps, of the summary of a run of these tests."""
    site = {"lab": str(place.file)}
    configuration = {"switchbench": 1, "site": site, "transport": "tcp", "tests": list(tests)}
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "bench.yaml"), Path(folder, "out")
        file.write_text(json.dumps(configuration))  # JSON is YAML, too
        switchbench("run", str(file), "--out", str(out))
        steps: Mapping[str, Any] = json.loads((out / "summary.json").read_text())["steps"]
    return steps


def our_calls(place: Lab) -> Figures:
    """t_avg of each."""
    found = {
        (one["pattern"], point["size"]): point["imb"]["t_avg_us"]
        for one in run(place, [call.test(place.rate) for call in CALLS])["functions"]
        for point in one["points"]
    }
    return {call.name: found[call.function, call.size] for call in CALLS}


# --- theirs ---------------------------------------------------------------------------------------


def their_calls(mpi: Mpi) -> Figures:
    """t_avg of each."""
    words = [word for c in CALLS for word in (c.function, str(c.size), str(c.calls))]
    printed = mpi.run(str(mpi.folder / "mpi_peer"), *words, timeout_s=RUN_S)
    found = {}
    for line in printed.splitlines():
        function, size, _, mean, _ = line.split()
        found[f"{function} {size} B"] = float(mean)
    return found


# --- the table ------------------------------------------------------------------------------------


def collectives(place: Lab, mpi: Mpi, rounds: int) -> None:
    """Mean time of a call."""
    mpi.compile("mpi_peer.c")
    subjects = {"ours": lambda: our_calls(place), "Open MPI": lambda: their_calls(mpi)}
    found = medians_in_turn(rounds, subjects)
    for call in CALLS:
        mine, peer = (figures[call.name] for figures in found.values())
        row = (
            f"{place.rate}: {call.name}, ours ({call.algorithm_at(place.rate)}) {mine:.1f} us, "
            f"Open MPI {peer:.1f} us; ratio"
        )
        verdict(row, mine / peer, REACH, at_most=True)


def compare(rate: str, asked: argparse.Namespace) -> None:
    """All calls on one lab."""
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="switchbench-mpi-")
        path = Path(stack.enter_context(folder))
        place = stack.enter_context(lab(path, asked.nodes, rate))
        mpi = Mpi(path, place.spaces, MESSAGES, CONTROL)
        print(f"{asked.nodes} ranks, {rate}", flush=True)
        collectives(place, mpi, asked.rounds)


def main() -> int:
    """All that is asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--rates", nargs="+", default=["unlimited", "100M"])
    parser.add_argument("--nodes", type=int, default=4)
    asked = parser.parse_args()
    need("mpicc", "mpirun", "ip", "unshare", root=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the lab goes, too
    for rate in asked.rates:
        compare(rate, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
