# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI with one rank a namespace, for the benchmarks that have it as a peer.

Its ranks yield when idle: without that they burn the cores that their partners need, and where
cores are fewer than ranks everything takes many milliseconds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# mpirun's remote shell: the host's name is the namespace's. A host name of its own keeps Open MPI
# from taking all ranks for neighbours on one host.
AGENT = """#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
"""


@dataclass(frozen=True)
class Mpi:
    """Ranks in these namespaces, whose messages go by one subnet and mpirun's own by another."""

    folder: Path  # for its agent and the programs that are compiled for it
    spaces: Sequence[str]
    messages: str
    control: str

    def compile(self, source: str) -> str:
        """The program of a C file of this folder."""
        program = self.folder / Path(source).stem
        path = str(HERE / source)
        subprocess.run(["mpicc", "-O2", "-o", str(program), path], check=True)
        return str(program)

    def run(self, *program: str, timeout_s: float) -> str:
        """Runs a program on all ranks, below mpirun in the first namespace: what it prints."""
        settings = {
            "plm_rsh_agent": self._agent(),
            "plm_rsh_no_tree_spawn": "1",
            "pml": "ob1",
            "btl": "tcp,self",
            "btl_tcp_if_include": self.messages,
            "oob_tcp_if_include": self.control,
            "mpi_yield_when_idle": "1",
        }
        command = ["ip", "netns", "exec", self.spaces[0], "mpirun", "--allow-run-as-root"]
        for key, value in settings.items():
            command += ["--mca", key, value]
        command += ["--host", ",".join(self.spaces), "-np", str(len(self.spaces)), *program]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, cwd=self.folder
        )
        if done.returncode != 0:
            raise SystemExit(f"mpirun failed:\n{done.stderr}")
        return done.stdout

    def _agent(self) -> str:
        agent = self.folder / "agent"
        if not agent.exists():
            agent.write_text(AGENT)
            agent.chmod(0o755)
        return str(agent)
