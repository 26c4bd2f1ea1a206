# SPDX-License-Identifier: BSD-3-Clause
"""Launcher of nodes by Slurm's srun (doc/how-to/cluster.md): one job step per allocated host.

`switchbench run` has to be started in the allocation. srun passes the standard streams of its step
without labels, as the data arrive. srun cuts lines after 1,024 bytes; records are shorter.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence

from ...base.errors import ConfigurationError
from ...base.model import Process, Site
from .far import Answer, FarLauncher, piped
from .ssh import lack

_SIGNALLED = 128  # srun's status is 128 + n for a task that signal n ended

# A node is the only task on its host and pins its workers itself. So the job step gets all
# resources that the job has on this host.
_STEP = (
    "--nodes=1", "--ntasks=1", "--overlap", "--mem=0", "--cpu-bind=none", "--unbuffered",
    "--chdir=/",
)  # fmt: skip


class SlurmLauncher(FarLauncher):
    """Launcher that starts each node by one srun process."""

    def __init__(self, site: Site) -> None:
        """Check that srun is installed, and that this process is in a Slurm allocation."""
        if shutil.which("srun") is None:
            raise ConfigurationError(
                "launch: slurm: there is no srun on this machine: start the command where Slurm is "
                "installed"
            )
        if "SLURM_JOB_ID" not in os.environ:
            raise ConfigurationError(
                "launch: slurm: the command needs an allocation of hosts: start it with `salloc "
                "--exclusive`"
            )
        super().__init__(site.effective["slurm"]["engine"])

    def run(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a program as a job step on the host of a node."""
        return piped(["srun", f"--nodelist={process.name}", *_STEP, *words])

    def lost(self, _host: str, status: int | None, log: Sequence[str]) -> str | None:
        """Return why the connection to a node ended, from srun's status and messages."""
        if (status or 0) > _SIGNALLED:
            number = (status or 0) - _SIGNALLED
            return f"was ended by signal {number} there ({signal.strsignal(number) or 'unknown'})"
        said = [line for line in log if line.startswith("srun: error:") and " task " not in line]
        return f"is out of reach: {_bare(said[-1])}" if said and status == 1 else None

    def lack(self, host: str, answer: Answer) -> str | None:
        """Return srun's error message, or why the host cannot run the engine; None for success."""
        own = [line for line in answer.errors if line.startswith("srun: ")]
        theirs = [line for line in answer.errors if line not in own]
        if answer.status == 1 and own and not theirs:
            return f"Slurm can't start a step there ({_bare(own[-1])})"
        return lack(host, Answer(answer.status, answer.output, theirs), self.engine)


def _bare(line: str) -> str:
    """Return an error message without the program's name and `error:` at its begin."""
    return re.sub(r"^(\w[\w-]*: )?(error: )?", "", line.strip())
