# SPDX-License-Identifier: BSD-3-Clause
"""Launcher of nodes by srun (doc/how-to/cluster.md): one step per host, in one allocation.

The allocation is the one in which the command runs, or one that salloc makes and the launcher
releases. A step's streams are its srun's. They are passed unlabelled as they arrive; srun cuts at
1,024 bytes, and no record is so long.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...base.errors import ConfigurationError, RunError
from ...base.model import Process, Site
from ...base.programs import Handled
from .far import Answer, FarLauncher, folded, is_readable, pipe_of, piped
from .ssh import lack

JOB = "SLURM_JOB_ID"
_PROGRAMS = ("srun", "salloc", "scancel", "sinfo")
_ALLOCATION = re.compile(r"(Pending|Granted) job allocation (\d+)")
_GIVE_BACK_LIMIT_S = 60.0
_SIGNALLED = 128  # srun's status for a task that a signal ended, less the signal

# A node is alone on its host: it places its workers itself, and the step gets all of the job's
# resources.
_STEP = ("--nodes=1", "--ntasks=1", "--overlap", "--mem=0", "--cpu-bind=none", "--unbuffered")


class SlurmLauncher(FarLauncher):
    """Launcher of nodes by srun."""

    def __init__(self, site: Site) -> None:
        """Read the site's options without calling Slurm."""
        for program in _PROGRAMS:
            if shutil.which(program) is None:
                raise ConfigurationError(
                    f"launch: slurm: there is no {program} here: run where Slurm's commands are"
                )
        keys: Mapping[str, Any] = site.effective["slurm"]
        self._options: list[str] = keys.get("options", [])
        self._job = os.environ.get(JOB)
        self._asked = False  # true while an allocation of our own exists
        super().__init__(keys["engine"])

    def gather(self, processes: Sequence[Process]) -> dict[str, str]:
        """Make an allocation with these hosts, and start a step on each.

        Return the hosts that Slurm cannot allocate or that cannot take part, with the reason.
        """
        missing: dict[str, str] = {}
        if self._job is None:
            missing = _down([process.name for process in processes])
            processes = [process for process in processes if process.name not in missing]
            if not processes:
                return missing
            self._job = _allocate([process.name for process in processes], self._options)
            self._asked = True
        return missing | super().gather(processes)

    def close(self) -> None:
        """End unused nodes, and release an allocation of our own."""
        super().close()
        if self._asked and self._job is not None:
            _give_back(self._job)
            self._job, self._asked = None, False

    def run(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a program as a step on a host."""
        place = [f"--jobid={self._job}", f"--nodelist={process.name}", "--chdir=/"]
        return piped(["srun", *place, *_STEP, *words])

    def lost(self, _host: str, status: int | None, log: Sequence[str]) -> str | None:
        """Return why a node was lost, from srun's status and messages."""
        if (status or 0) > _SIGNALLED:
            number = (status or 0) - _SIGNALLED
            return f"was ended by signal {number} there ({signal.strsignal(number) or 'unknown'})"
        said = [line for line in log if line.startswith("srun: error:") and " task " not in line]
        return f"is out of reach: {_bare(said[-1])}" if said and status == 1 else None

    def lack(self, host: str, answer: Answer) -> str | None:
        """Return srun's message, or what the host lacks; None for success."""
        own = [line for line in answer.errors if line.startswith("srun: ")]
        theirs = [line for line in answer.errors if line not in own]
        if answer.status == 1 and own and not theirs:
            return f"Slurm starts nothing there ({_bare(own[-1])})"
        return lack(host, Answer(answer.status, answer.output, theirs), self.engine)


# Beginnings of the states, in sinfo's long form, of a node that accepts no job.
_DOWN = ("down", "drain", "fail", "unk", "inval", "power", "maint", "future", "reboot")


def _down(hosts: Sequence[str]) -> dict[str, str]:
    """Return the hosts for which salloc would wait until they are repaired, with the reason."""
    words = ["sinfo", "--noheader", "--Node", f"--nodes={folded(hosts)}", "--format=%N|%T|%E"]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    states = {}
    for line in said.stdout.splitlines():
        host, _, state = line.strip().partition("|")
        states[host] = state
    found = {}
    for host in hosts:
        state, _, reason = states.get(host, "").partition("|")
        if state.startswith(_DOWN) or state.endswith("*"):  # `*`: the node does not answer
            why = f": {reason}" if reason and reason != "none" else ""
            found[host] = f"Slurm can't give it (it is {state}{why})"
    return found


def _allocate(hosts: Sequence[str], options: Sequence[str]) -> str:
    """Return a job on all of these hosts, waiting as long as Slurm does.

    A signal ends the wait: salloc withdraws its request.
    """
    words = ["salloc", "--no-shell", "--exclusive", "--job-name=switchbench", *options]
    words += [f"--nodelist={folded(hosts)}", f"--nodes={len(hosts)}"]
    caught: list[int] = []
    job, last = None, "without a word"
    with Handled(lambda number, _frame: caught.append(number)), piped(words) as salloc:
        log, text = pipe_of(salloc.stderr), b""
        while True:
            if caught:  # each second again: salloc ignores a signal while it sends its request
                salloc.send_signal(signal.SIGINT)
            if not is_readable(log, time.monotonic() + 1.0):
                continue
            chunk = os.read(log.fileno(), 1 << 12)
            if not chunk:
                break
            *lines, text = (text + chunk).split(b"\n")
            for line in lines:
                last = _bare(line.decode(errors="replace"))
                said = _ALLOCATION.search(last)
                if said:
                    job = said[2]
                if not said or said[1] == "Pending":
                    print(f"slurm: {last}", file=sys.stderr)
    if salloc.returncode == 0 and job is not None and not caught:
        return job
    if job is not None:
        _give_back(job)
    if caught:
        raise RunError(f"interrupted ({signal.Signals(caught[0]).name})")
    raise ConfigurationError(f"launch: slurm: no allocation of {folded(hosts)}: {last}")


def _give_back(job: str) -> None:
    """Cancel a job, ignoring Ctrl-C meanwhile; print a message where that fails."""
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
    """Return a message without the leading name of its program."""
    return re.sub(r"^(\w[\w-]*: )?(error: )?", "", line.strip())
