# SPDX-License-Identifier: BSD-3-Clause
"""Launcher of nodes by srun (doc/how-to/cluster.md): one step per host of an allocation.

The command runs in the allocation. A step's streams are its srun's. They are passed unlabelled as
they arrive; srun cuts at 1,024 bytes, and no record is so long.
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

_SIGNALLED = 128  # srun's status for a task that a signal ended, less the signal

# A node is alone on its host: it places its workers itself, and the step gets all of the job's
# resources.
_STEP = (
    "--nodes=1", "--ntasks=1", "--overlap", "--mem=0", "--cpu-bind=none", "--unbuffered",
    "--chdir=/",
)  # fmt: skip


class SlurmLauncher(FarLauncher):
    """Launcher of nodes by srun."""

    def __init__(self, site: Site) -> None:
        """Find srun and the allocation without calling Slurm."""
        if shutil.which("srun") is None:
            raise ConfigurationError(
                "launch: slurm: there is no srun here: run where Slurm's commands are"
            )
        if "SLURM_JOB_ID" not in os.environ:
            raise ConfigurationError(
                "launch: slurm: the command needs an allocation: start it with `salloc --exclusive`"
            )
        super().__init__(site.effective["slurm"]["engine"])

    def run(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a program as a step on a host."""
        return piped(["srun", f"--nodelist={process.name}", *_STEP, *words])

    def lost(self, _host: str, status: int | None, log: Sequence[str]) -> str | None:
        """Return why a node was lost, from srun's status and messages."""
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
    """Return a message without the leading name of its program."""
    return re.sub(r"^(\w[\w-]*: )?(error: )?", "", line.strip())
