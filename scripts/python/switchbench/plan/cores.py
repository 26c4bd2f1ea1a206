# SPDX-License-Identifier: BSD-3-Clause
"""Which cores workers get where the command and its nodes share one machine: in a lab.

On a site each host has one node, which chooses for itself (engine/platform/cpu_placement.h) or
takes the cores that the site names. In a lab nobody but the command knows of all nodes, so it deals
the cores.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from ..base.errors import ConfigurationError
from ..base.model import Process, Run


@dataclass(frozen=True)
class LocalCores:
    """The cores of this machine, and those that this command may use."""

    present: frozenset[int]
    usable: frozenset[int]

    @staticmethod
    def here() -> LocalCores:
        """As the kernel says."""
        usable = frozenset(os.sched_getaffinity(0))
        return LocalCores(frozenset(range(os.cpu_count() or 1)) | usable, usable)


@dataclass(frozen=True)
class Deal:
    """What the `job` document says of workers."""

    worker: str  # auto | sleep | poll
    cores: dict[str, tuple[int, ...]] = field(default_factory=dict)  # by process

    @property
    def polled(self) -> frozenset[int]:
        """Cores that are nobody else's while the run lasts."""
        every = (core for cores in self.cores.values() for core in cores)
        return frozenset(every) if self.worker == "poll" else frozenset()


def deal(run: Run, machine: LocalCores | None = None) -> Deal:
    """The cores of a run's nodes; ConfigurationError with what is possible."""
    processes = run.site.processes
    if run.site.launch != "lab":
        named = {process.name: process.cores for process in processes if process.cores}
        return Deal(run.worker, named)
    machine = machine or LocalCores.here()
    if run.site.cores:
        return _deal_named(run, machine)
    return _deal_free(run, machine)


def queues(process: Process) -> int:
    """How many lanes a process has: the queues of all its ports."""
    return sum(int(port.engine.get("queues", 1)) for port in process.ports)


def written(cores: Iterable[int]) -> str:
    """Cores as a cpuset: `0,2-5`."""
    spans: list[tuple[int, int]] = []
    for core in sorted(cores):
        if spans and spans[-1][1] == core - 1:
            spans[-1] = (spans[-1][0], core)
        else:
            spans.append((core, core))
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def _deal_named(run: Run, machine: LocalCores) -> Deal:
    named, processes = run.site.cores, run.site.processes
    absent = [core for core in named if core not in machine.present]
    if absent:
        raise ConfigurationError(
            f"cores: {written(absent)}: this machine has only {written(machine.present)}"
        )
    enough = len(named) >= len(processes)
    if run.worker == "sleep" or (run.worker == "auto" and not enough):
        return Deal("sleep", _spread(processes, named))
    if not enough:
        raise ConfigurationError(
            f"worker: poll: {len(processes)} node processes need a core each, and cores names "
            f"{len(named)}: name more, pack more nodes into a process, or worker: sleep"
        )
    _refuse_overlap(named, machine)
    return Deal("poll", _spread(processes, named))


def _deal_free(run: Run, machine: LocalCores) -> Deal:
    processes = run.site.processes
    lanes, cores = sum(map(queues, processes)), sorted(machine.usable)
    spare = len(cores) > lanes + 1
    if run.worker == "sleep" or (run.worker == "auto" and not spare):
        return Deal("sleep")
    if len(cores) - 1 < len(processes):
        raise ConfigurationError(
            f"worker: poll: {len(processes)} node processes need a core each besides the "
            f"command's, and this machine has {len(cores)} to use ({written(cores)}): pack the "
            "nodes into fewer processes, or worker: sleep"
        )
    return Deal("poll", _spread(processes, cores[1:][-lanes:]))


def _refuse_overlap(named: Sequence[int], machine: LocalCores) -> None:
    """The command, its heartbeats and the nodes' main threads need a core that nobody burns."""
    narrowed = machine.usable < machine.present
    both = machine.usable & frozenset(named)
    if narrowed and both:
        raise ConfigurationError(
            f"cores: {written(both)}: the command itself was given {written(machine.usable)}: name "
            "others for its nodes, or start it elsewhere (`taskset`)"
        )
    if not machine.present - frozenset(named):
        raise ConfigurationError(
            f"cores: {written(named)} are all that this machine has, and the command needs one: "
            "leave one out, or worker: sleep"
        )


def _spread(processes: Sequence[Process], cores: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Each process its share, in turn; several on one core where there are fewer cores."""
    count = len(processes)
    return {
        process.name: tuple(cores[i::count]) or (cores[i % len(cores)],)
        for i, process in enumerate(processes)
    }


def keep_off(polled: Collection[int]) -> None:
    """Takes this thread, and what it starts, off cores that workers burn."""
    others = os.sched_getaffinity(0) - frozenset(polled)
    if polled and others:
        os.sched_setaffinity(0, others)
