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
from types import FrameType, TracebackType
from typing import Any, Self

from ..errors import ConfigurationError, RunError
from ..model import Process, Site
from ..signals import Handled
from .base import FarProcess, popen_options
from .nodesets import folded

JOB = "SLURM_JOB_ID"
_PROGRAMS = ("srun", "salloc", "scancel")
_ALLOCATION = re.compile(r"(Pending|Granted) job allocation (\d+)")
_GIVE_BACK_LIMIT_S = 60.0
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
            _give_back(self._job)

    def start(self, process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts the node on its host."""
        place = [f"--jobid={self._job}", f"--nodelist={process.name}", "--chdir=/"]
        words = ["srun", *place, *_STEP, self._engine, *command[1:]]
        return SlurmProcess(words, **popen_options())


class _Waiting(Handled):
    """While entered, a signal also ends the wait for Slurm: salloc takes its request back."""

    def __init__(self) -> None:
        """Nothing is changed before it is entered."""
        super().__init__(self._pass_on)
        self.signal: str | None = None
        self._salloc: subprocess.Popen[str] | None = None

    def watch(self, salloc: subprocess.Popen[str]) -> None:
        """Signals are for this one; also one that came while it was being started."""
        self._salloc = salloc
        if self.signal is not None:
            salloc.send_signal(signal.SIGINT)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self.signal = signal.Signals(number).name
        if self._salloc is not None:
            self._salloc.send_signal(signal.SIGINT)
        self.previous(number, frame)


def _allocate(hosts: Sequence[str], options: Sequence[str]) -> str:
    """A job on all of these hosts; waits for it as long as Slurm does, and says so."""
    words = ["salloc", "--no-shell", "--exclusive", "--job-name=switchbench", *options]
    words += [f"--nodelist={folded(hosts)}", f"--nodes={len(hosts)}"]
    with _Waiting() as waiting:
        status, job, last = _request(words, waiting)
    if status == 0 and job is not None:
        return job
    if job is not None:
        _give_back(job)
    if waiting.signal is not None:
        raise RunError(f"interrupted ({waiting.signal})")
    raise ConfigurationError(f"launch: slurm: no allocation of {folded(hosts)}: {last}")


def _request(words: Sequence[str], waiting: _Waiting) -> tuple[int, str | None, str]:
    """salloc's status, the job's number once it was said, and its last line."""
    job, last = None, "without a word"
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as salloc:
        waiting.watch(salloc)
        for line in salloc.stderr or ():
            last = _bare(line)
            said = _ALLOCATION.search(line)
            if said:
                job = said[2]
            if not said or said[1] == "Pending":
                print(f"slurm: {last}", file=sys.stderr)
    return salloc.returncode, job, last


def _give_back(job: str) -> None:
    """Cancels it, whatever a person's Ctrl-C is for meanwhile; says so where that fails."""
    words = ["scancel", "--quiet", job]
    try:
        subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            timeout=_GIVE_BACK_LIMIT_S,
            check=True,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError):
        print(f"slurm: job {job} could not be given back: scancel {job}", file=sys.stderr)


def _bare(line: str) -> str:
    """Without the program that says it."""
    return re.sub(r"^(\w[\w-]*: )?(error: )?", "", line.strip())


def _signal(status: int) -> str:
    return signal.strsignal(status - _SIGNALLED) or "unknown"
