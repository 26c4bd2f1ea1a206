# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI with one rank a namespace, for the benchmarks that have it as a peer.

Its ranks yield when idle: without that they burn the cores that their partners need, and where
cores are fewer than ranks everything takes many milliseconds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).with_name("mpi_peer.c")
TIMEOUT_S = 300

# mpirun's remote shell: the host's name is the namespace's. A host name of its own keeps Open MPI
# from taking all ranks for neighbours on one host.
AGENT = """#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
"""


class Mpi:
    """`mpi_peer` on ranks in namespaces; its messages go by one subnet, mpirun's by another."""

    def __init__(self, folder: Path) -> None:
        """Compile the peer into a folder."""
        self._agent, self._program = folder / "agent", folder / "mpi_peer"
        self._agent.write_text(AGENT)
        self._agent.chmod(0o755)
        subprocess.run(["mpicc", "-O2", "-o", str(self._program), str(SOURCE)], check=True)

    def run(self, spaces: Sequence[str], messages: str, control: str, *words: str) -> str:
        """Run the peer below mpirun, which sits in the first namespace; return what it prints."""
        settings = {
            "plm_rsh_agent": str(self._agent),
            "plm_rsh_no_tree_spawn": "1",
            "pml": "ob1",
            "btl": "tcp,self",
            "btl_tcp_if_include": messages,
            "oob_tcp_if_include": control,
            "mpi_yield_when_idle": "1",
        }
        command = ["ip", "netns", "exec", spaces[0], "mpirun", "--allow-run-as-root"]
        for key, value in settings.items():
            command += ["--mca", key, value]
        command += ["--host", ",".join(spaces), "-np", str(len(spaces)), str(self._program), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        if done.returncode != 0:
            raise SystemExit(f"mpirun failed:\n{done.stderr}")
        return done.stdout
