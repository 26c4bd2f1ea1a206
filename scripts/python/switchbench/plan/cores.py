# SPDX-License-Identifier: BSD-3-Clause
"""Which cores the workers of a lab get, and which rates no core can send.

On a site each host has one node, which chooses for itself (engine/platform/cpu_placement.h) or
takes the cores that the site names. In a lab nobody but the command knows of all nodes, so it deals
the cores.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import Load, Process, Run, Trial


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
    """Return the cores of a run's nodes; ConfigurationError with what is possible."""
    processes = run.site.processes
    if not run.site.launcher.in_lab:
        named = {process.name: process.cores for process in processes if process.cores}
        return Deal(run.worker, named)
    machine = machine or LocalCores.here()
    if run.site.cores:
        return _deal_named(run, machine)
    return _deal_free(run, machine)


def queues(process: Process) -> int:
    """Return how many lanes a process has: the queues of all its ports."""
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
    """Refuse to burn every core: the command, its heartbeats and main threads need one."""
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
    """Take this thread, and what it starts, off cores that workers burn."""
    others = os.sched_getaffinity(0) - frozenset(polled)
    if polled and others:
        os.sched_setaffinity(0, others)


# --- rates that no core can send -----------------------------------------------------------------
# Each node says how many workers it has, and of each port how many queues it has and how many
# frames a second one core can send there at best (engine/transport/dpdk/port.c). The nodes check
# each phase themselves; here all trials are checked before the first.

Record = Mapping[str, Any]  # a node's `hello` or `port-open`
_LAYER1_OVERHEAD = 20  # preamble, start delimiter and gap of a frame (IEEE 802.3)


CORE_FPS = {"af_packet": 1e6, "af_xdp": 25e6}
"""Frames/s that one core can send at best by a lab's drivers (engine/transport/dpdk/port.c)."""


class RateError(ConfigurationError):
    """A trial asks for more frames than cores can send."""

    def __init__(self, text: str, trial: Trial) -> None:
        """Take the sentence, and the trial."""
        super().__init__(text)
        self.trial = trial


def check_lab_rates(run: Run) -> None:
    """Check it before any node is started, where all ports are known: in a lab of this machine."""
    if not run.site.launcher.in_lab:
        return
    hellos: list[Record] = []
    opened: list[Record] = []
    for process in run.site.processes:
        queues = [int(port.engine.get("queues", 1)) for port in process.ports]
        hellos.append({"node": process.name, "workers": sum(queues)})
        for port, count in zip(process.ports, queues, strict=True):
            driver = str(port.engine.get("driver", "af_packet"))
            if "vdev" in port.engine:
                driver = "memif"  # to a modelled switch: it has no bound
            opened += [
                {"node": process.name, "port": port.name, "transport": each.name, "driver": driver}
                | {"queues": count, "core_fps": CORE_FPS.get(driver)}
                | {"line_rate_bps": port.line_rate_bps}
                for each in transports.TRANSPORTS
                if each.raw
            ]
    check_rates(run, hellos, opened)


def check_rates(run: Run, hellos: Iterable[Record], opened: Iterable[Record]) -> None:
    """ConfigurationError with what is possible."""
    workers = {hello["node"]: int(hello.get("workers") or 1) for hello in hellos}
    ports = {(record["port"], record["transport"]): record for record in opened}
    for trial in run.planned:
        busy: dict[str, float] = {}
        for part in trial.parts:
            own = trial.of(part.network)
            for port in part.ranks:
                record = ports.get((port.name, own.transport))
                if record is not None:
                    _check(own, record, workers, busy)


def _check(trial: Trial, port: Record, workers: Mapping[str, int], busy: dict[str, float]) -> None:
    core_fps, node = port.get("core_fps"), port["node"]
    fps = frames_per_s(trial.load, trial.sizes, port.get("line_rate_bps") or 0)
    if not core_fps or trial.size_unit != "frame":
        return
    lent = workers.get(node, 1)
    cores = min(int(port.get("queues") or 1), lent)
    if fps > cores * core_fps:
        raise RateError(
            f"{port['port']}: {fps:.6g} frames/s (trial {trial.id}) are more than {cores} core(s) "
            f"can send with {port['driver']}: {cores * core_fps:.6g} at the very best; ask for "
            "less, or give it more queues and cores",
            trial,
        )
    busy[node] = busy.get(node, 0.0) + fps / core_fps
    if busy[node] > lent:
        raise RateError(
            f"{node}: the frames of its ports (trial {trial.id}) need {busy[node]:.1f} cores at "
            f"the very best, and {lent} worker(s) send them: ask for less, give it more cores, or "
            "pack fewer ports into a process",
            trial,
        )


def frames_per_s(load: Load, sizes: tuple[int, ...], line_rate_bps: int) -> float:
    """Return what a port is asked for; 0 where nobody can say."""
    if load.fps is not None:
        return load.fps
    bits = 8 * (sum(sizes) / len(sizes) + _LAYER1_OVERHEAD)
    bps = load.bps if load.bps is not None else line_rate_bps * (load.percent or 0.0) / 100
    return bps / bits
