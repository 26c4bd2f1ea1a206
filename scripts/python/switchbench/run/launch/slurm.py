# SPDX-License-Identifier: BSD-3-Clause
"""Nodes by srun (doc/how-to/cluster.md): a step for each host, in one allocation.

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
import threading
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from ...base.errors import ConfigurationError, RunError
from ...base.model import Process, Site
from ...base.programs import Handled
from .far import Answer, FarLauncher, FarProcess, Unreached, folded, popen_options
from .ssh import lack

JOB = "SLURM_JOB_ID"
_PROGRAMS = ("srun", "salloc", "scancel", "sinfo")
_ALLOCATION = re.compile(r"(Pending|Granted) job allocation (\d+)")
_GIVE_BACK_LIMIT_S = 60.0
_SIGNALLED = 128  # srun's status for a task that a signal ended, plus the signal

# A node has its host to itself: it binds its workers, and the step gets what the job has.
_STEP = ("--nodes=1", "--ntasks=1", "--overlap", "--mem=0", "--cpu-bind=none", "--unbuffered")


class SlurmProcess(FarProcess):
    """A step's srun."""

    def lost(self, log: Sequence[str]) -> str | None:
        """Return why it was lost: srun says of a node that failed and of a signal's work."""
        status = self.returncode or 0
        if status > _SIGNALLED:
            number = status - _SIGNALLED
            return f"was ended by signal {number} there ({signal.strsignal(number) or 'unknown'})"
        said = [line for line in log if line.startswith("srun: error:") and " task " not in line]
        return f"is out of reach: {_bare(said[-1])}" if said and status == 1 else None


class SlurmLauncher(FarLauncher):
    """Starts nodes by srun."""

    def __init__(self, site: Site) -> None:
        """Read what the site says; ask nobody."""
        keys: Mapping[str, Any] = site.effective["slurm"]
        self._options: list[str] = keys.get("options", [])
        self._job = os.environ.get(JOB)
        self._asked = False  # for an allocation of our own
        super().__init__(keys["engine"])

    def gather(self, processes: Sequence[Process]) -> list[Unreached]:
        """Have an allocation with these hosts, but for those that Slurm can't give.

        And starts a step on each.
        """
        for program in _PROGRAMS:
            if shutil.which(program) is None:
                raise ConfigurationError(
                    f"launch: slurm: there is no {program} here: run where Slurm's commands are"
                )
        missing: list[Unreached] = []
        if self._job is None:
            missing = _down([process.name for process in processes])
            gone = {host.host for host in missing}
            processes = [process for process in processes if process.name not in gone]
            if not processes:
                return missing
            self._job = _allocate([process.name for process in processes], self._options)
            self._asked = True
        return missing + super().gather(processes)

    def close(self) -> None:
        """End the nodes that were not taken, and give the allocation back, if it is ours."""
        super().close()
        if self._asked and self._job is not None:
            _give_back(self._job)
            self._job, self._asked = None, False

    def run(self, process: Process, words: Sequence[str]) -> SlurmProcess:
        """Start a step on the host."""
        place = [f"--jobid={self._job}", f"--nodelist={process.name}", "--chdir=/"]
        return SlurmProcess(["srun", *place, *_STEP, *words], **popen_options())

    def lack(self, host: str, answer: Answer) -> str | None:
        """Return what srun says, or what the host lacks."""
        own = [line for line in answer.errors if line.startswith("srun: ")]
        theirs = [line for line in answer.errors if line not in own]
        if answer.status == 1 and own and not theirs:
            return f"Slurm starts nothing there ({_bare(own[-1])})"
        return lack(host, Answer(answer.status, answer.output, theirs), self.engine)


# Of a node that takes no job, as sinfo has them in a long list.
_DOWN = ("down", "drain", "fail", "unk", "inval", "power", "maint", "future", "reboot")


def _down(hosts: Sequence[str]) -> list[Unreached]:
    """Return the hosts for which salloc would wait until somebody repairs them."""
    words = ["sinfo", "--noheader", "--Node", f"--nodes={folded(hosts)}", "--format=%N|%T|%E"]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    states = {}
    for line in said.stdout.splitlines():
        host, _, state = line.strip().partition("|")
        states[host] = state
    found = []
    for host in hosts:
        state, _, reason = states.get(host, "").partition("|")
        if state.startswith(_DOWN) or state.endswith("*"):  # `*`: it does not answer
            why = f": {reason}" if reason and reason != "none" else ""
            found.append(Unreached(host, f"Slurm can't give it (it is {state}{why})"))
    return found


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
            _insist(salloc)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        self.signal = signal.Signals(number).name
        if self._salloc is not None:
            _insist(self._salloc)


def _insist(salloc: subprocess.Popen[str]) -> None:
    """Interrupts it, again each second: it may overlook a signal while it sends its request."""
    if salloc.poll() is not None:
        return
    salloc.send_signal(signal.SIGINT)
    again = threading.Timer(1, _insist, [salloc])
    again.daemon = True
    again.start()


def _allocate(hosts: Sequence[str], options: Sequence[str]) -> str:
    """Return a job on all of these hosts; wait for it as long as Slurm does, and say so."""
    words = ["salloc", "--no-shell", "--exclusive", "--job-name=switchbench", *options]
    words += [f"--nodelist={folded(hosts)}", f"--nodes={len(hosts)}"]
    with _Waiting() as waiting:
        status, job, last = _request(words, waiting)
    if status == 0 and job is not None and waiting.signal is None:
        return job
    if job is not None:
        _give_back(job)
    if waiting.signal is not None:
        raise RunError(f"interrupted ({waiting.signal})")
    raise ConfigurationError(f"launch: slurm: no allocation of {folded(hosts)}: {last}")


def _request(words: Sequence[str], waiting: _Waiting) -> tuple[int, str | None, str]:
    """Salloc's status, the job's number once it was said, and its last line."""
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
    """Cancel it, whatever a person's Ctrl-C is for meanwhile; say so where that fails."""
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
        print(f"slurm: job {job} could not be ended: scancel {job}", file=sys.stderr)


def _bare(line: str) -> str:
    """Without the program that says it."""
    return re.sub(r"^(\w[\w-]*: )?(error: )?", "", line.strip())
