# SPDX-License-Identifier: BSD-3-Clause
"""Runs that something happens to: started like a person's, watched, hurt, and waited for."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

import counters
import runs
from labkit import PREFIX, own
from switchbench import labs
from switchbench.labs import Lab, namespaces
from switchbench.topology import lab_addresses
from told import records_in

SAMPLE_S = 0.01
NODES = ("node1", "node2", "node3", "node4")
"""Of the fixture `topology`."""


def write_topology(directory: Path, *nodes: str, rate: str = "20M") -> Path:
    """A small switch whose name no other run of the tests has: slow, so that cores don't matter."""
    path = directory / f"{PREFIX}-{directory.name[:20]}.yaml"
    topology = {
        "topology": 1,
        "rate": rate,
        "modules": ["switch"],
        "nodes": {name: {} for name in nodes},
    }
    path.write_text(yaml.safe_dump(topology))
    return path


@contextmanager
def kept(topology: Path | str) -> Iterator[Lab]:
    """A lab that stays up around a run, so that it can be watched and hurt."""
    lab = labs.up(labs.load(own(str(topology))))
    try:
        yield lab
    finally:
        labs.down(lab.name)


def wait_until(done: Callable[[], object], what: str, limit_s: float) -> None:
    """Looks often; an assertion with `what` when it takes too long."""
    deadline = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < deadline, f"waited {limit_s} s until {what}"
        time.sleep(SAMPLE_S)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, zombies left out."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def node_pid(lab_name: str, node: str) -> int:
    """The only process in a node's namespace."""
    (pid,) = namespaces.processes([lab_addresses.namespace_name(lab_name, node)])
    return pid


def main_thread_s(pid: int) -> float:
    """CPU time of a process's main thread so far; 0 when it has gone."""
    try:
        fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


class Underway:
    """A `switchbench run` that has been started."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        self.process = process
        self.directory = directory

    def records(self) -> list[runs.Record]:
        """What nodes told so far."""
        return list(records_in(self.directory))

    def wait_for_load(self, phase: int = 0, limit_s: float = 60) -> None:
        """Until some node says that this phase is in its window."""

        def loaded() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            return any(
                record["type"] == "progress"
                and record["phase"] == phase
                and record["step"] == "window"
                for record in self.records()
            )

        wait_until(loaded, f"phase {phase} is loaded", limit_s)

    def node_pids(self) -> list[int]:
        """Of every node that has said hello."""
        return [record["pid"] for record in self.records() if record["type"] == "hello"]

    def end(self, limit_s: float = 60) -> runs.Result:
        """Waits for its end. No node may outlive it."""
        output, errors = self.process.communicate(timeout=limit_s)
        left = [pid for pid in self.node_pids() if is_alive(pid)]
        assert not left, f"nodes {left} outlive their run"
        return runs.Result(self.process.returncode, output, errors, self.directory)


@contextmanager
def started(directory: Path, configuration: runs.Record, *words: str) -> Iterator[Underway]:
    """Starts a run, with more words; whatever the block leaves of it is killed."""
    directory.mkdir(exist_ok=True)
    conf = directory / "conf.yaml"
    conf.write_text(yaml.safe_dump({"switchbench": 1, **configuration}, sort_keys=False))
    out = directory / "results"
    process = subprocess.Popen(
        runs.command("run", str(conf), "--out", str(out), *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    run = Underway(process, out)
    try:
        yield run
    finally:
        for pid in [process.pid, *run.node_pids()] if process.poll() is None else []:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # What the run has started may hold its outputs still: a test fails then, and ends.
        process.communicate(timeout=60)


class Trace:
    """What the nodes send into the switch, by its own counters, before and after a fault."""

    def __init__(self, lab: Lab, fault: Callable[[], object], for_s: float) -> None:
        """Samples for a moment, does what `fault` does, and samples for `for_s` seconds."""
        earlier = frames_from_nodes(lab)
        time.sleep(10 * SAMPLE_S)
        self.frames_before = frames_from_nodes(lab) - earlier
        fault()
        fault_s = time.monotonic()
        self._samples: list[tuple[float, int]] = []
        while not self._samples or self._samples[-1][0] < for_s:
            self._samples.append((time.monotonic() - fault_s, frames_from_nodes(lab)))
            time.sleep(SAMPLE_S)

    @property
    def stopped_after_s(self) -> float:
        """When the last frame had been counted, as seen from the fault."""
        last = self._samples[-1][1]
        return next(at_s for at_s, frames in self._samples if frames == last)

    def frames_after(self, after_s: float) -> int:
        """Frames sent later than this."""
        return self._samples[-1][1] - next(n for at_s, n in self._samples if at_s >= after_s)


def frames_from_nodes(lab: Lab) -> int:
    """All frames that the switch's ports got from the nodes so far."""
    return sum(node.frames_from_node for node in counters.read(lab).nodes.values())


def command(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """`switchbench WORDS`, done."""
    return subprocess.run(
        runs.command(*words), capture_output=True, text=True, timeout=120, check=False, **options
    )


def sentences(errors: str) -> list[str]:
    """What a command says on standard error, without the codes; each has one."""
    lines = [line for line in errors.splitlines() if line.startswith("switchbench: ")]
    found = [re.fullmatch(r"switchbench: (.*) \[SB-[A-Z]+\]", line) for line in lines]
    return [
        one[1] if one else f"{line}: has no code" for one, line in zip(found, lines, strict=True)
    ]


def sentence(errors: str) -> str:
    """The one sentence with which a command ends on standard error."""
    (line,) = sentences(errors)
    return line
