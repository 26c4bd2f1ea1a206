# SPDX-License-Identifier: BSD-3-Clause
"""Nodes by srun (doc/cluster.md): a step for each host, in one allocation.

The allocation is the one in which the command runs, or one that it asks salloc for and gives back.
A step's streams are its srun's. Unlabelled they are passed on as they come; where srun cuts them
(1,024 bytes) no record is that long.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ..errors import ConfigurationError
from ..model import Process, Site
from .base import FarProcess, popen_options
from .nodesets import folded

JOB = "SLURM_JOB_ID"
_PROGRAMS = ("srun", "salloc", "scancel")
_GRANTED = re.compile(r"Granted job allocation (\d+)")
_SIGNALLED = 128  # srun's status for a task that a signal ended, plus the signal

# A node has its host to itself: it binds its workers, and the step gets what the job has.
_STEP = ("--nodes=1", "--ntasks=1", "--overlap", "--mem=0", "--cpu-bind=none", "--unbuffered")


class SlurmProcess(FarProcess):
    """A step's srun."""

    def lost(self, log: Sequence[str]) -> str | None:
        """srun says of a step that never ran, of a node that failed and of a signal's work."""
        status = self.returncode or 0
        missing = next((line for line in log if "execve():" in line), None)
        if missing is not None:
            return f"could not start the engine ({_bare(missing)}); see `slurm: {{engine: PATH}}`"
        if status > _SIGNALLED:
            return f"was ended by signal {status - _SIGNALLED} there ({_signal(status)})"
        said = [line for line in log if line.startswith("srun: error:") and " task " not in line]
        return f"is out of reach: {_bare(said[-1])}" if said and status == 1 else None


class SlurmLauncher:
    """Starts nodes by srun."""

    def __init__(self, site: Site) -> None:
        """Reads what the site says; asks nobody."""
        keys: Mapping[str, Any] = site.effective["slurm"]
        self._hosts = [process.name for process in site.processes]
        self._engine: str = keys["engine"]
        self._options: list[str] = keys.get("options", [])
        self._job = os.environ.get(JOB)
        self._asked = False  # for an allocation of our own

    def __enter__(self) -> Self:
        """Has an allocation with these hosts, or refuses."""
        for program in _PROGRAMS:
            if shutil.which(program) is None:
                raise ConfigurationError(
                    f"launch: slurm: there is no {program} here: run where Slurm's commands are"
                )
        if self._job is None:
            self._job = _allocate(self._hosts, self._options)
            self._asked = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Gives the allocation back, if it is ours."""
        if self._asked and self._job is not None:
            subprocess.run(["scancel", "--quiet", self._job], check=False)

    def start(self, process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts the node on its host."""
        place = [f"--jobid={self._job}", f"--nodelist={process.name}", "--chdir=/"]
        words = ["srun", *place, *_STEP, self._engine, *command[1:]]
        return SlurmProcess(words, **popen_options())


def _allocate(hosts: Sequence[str], options: Sequence[str]) -> str:
    """A job on all of these hosts; waits for it as long as Slurm does, and says so."""
    words = ["salloc", "--no-shell", "--exclusive", "--job-name=switchbench", *options]
    words += [f"--nodelist={folded(hosts)}", f"--nodes={len(hosts)}"]
    job, last = None, "without a word"
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as salloc:
        for line in salloc.stderr or ():
            last = _bare(line)
            granted = _GRANTED.search(line)
            if granted:
                job = granted[1]
            else:
                print(f"slurm: {last}", file=sys.stderr)
    if salloc.returncode != 0 or job is None:
        raise ConfigurationError(f"launch: slurm: no allocation of {folded(hosts)}: {last}")
    return job


def _bare(line: str) -> str:
    """Without the program that says it."""
    return re.sub(r"^(\w[\w-]*: )?(error: )?", "", line.strip())


def _signal(status: int) -> str:
    return signal.strsignal(status - _SIGNALLED) or "unknown"
