# SPDX-License-Identifier: BSD-3-Clause
"""Rates that no core can send are refused before there is any traffic.

Each node says how many workers it has, and of each port how many queues it has and how many frames
a second one core can send there at the very best (engine/transport/dpdk/port.c). The nodes check
each phase themselves; here all trials are checked before the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...base import transports
from ...base.errors import ConfigurationError
from ...base.model import Load, Run, Trial
from ...records.record_forms import Record

_LAYER1_OVERHEAD = 20  # preamble, start delimiter and gap of a frame (IEEE 802.3)


CORE_FPS = {"af_packet": 1e6, "af_xdp": 25e6}
"""Frames/s that one core can send at best by a lab's drivers (engine/transport/dpdk/port.c)."""


class RateError(ConfigurationError):
    """A trial asks for more frames than cores can send."""

    def __init__(self, text: str, trial: Trial) -> None:
        """The sentence, and the trial."""
        super().__init__(text)
        self.trial = trial


def check_lab_rates(run: Run) -> None:
    """The same before any node is started, where all ports are known: in a lab of this machine."""
    if run.site.launch != "lab":
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
    """What a port is asked for; 0 where nobody can say."""
    if load.fps is not None:
        return load.fps
    bits = 8 * (sum(sizes) / len(sizes) + _LAYER1_OVERHEAD)
    bps = load.bps if load.bps is not None else line_rate_bps * (load.percent or 0.0) / 100
    return bps / bits
