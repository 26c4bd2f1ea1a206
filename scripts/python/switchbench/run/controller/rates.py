# SPDX-License-Identifier: BSD-3-Clause
"""Rates that no core can send are refused before there is any traffic.

Each node says how many workers it has, and of each port how many queues it has and how many frames
a second one core can send there at the very best (engine/transport/dpdk/port.c). The nodes check
each phase themselves; here all trials are checked before the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...base.errors import ConfigurationError
from ...base.model import Load, Run, Trial
from ...records.records import Record

_LAYER1_OVERHEAD = 20  # preamble, start delimiter and gap of a frame (IEEE 802.3)


def check_rates(run: Run, hellos: Iterable[Record], opened: Iterable[Record]) -> None:
    """ConfigurationError with what is possible."""
    workers = {hello["node"]: int(hello.get("workers") or 1) for hello in hellos}
    ports = {(record["port"], record["transport"]): record for record in opened}
    for trial in run.trials:
        busy: dict[str, float] = {}
        for part in trial.parts:
            for port in part.ranks:
                record = ports.get((port.name, trial.transport))
                if record is not None:
                    _check(trial, record, workers, busy)


def _check(trial: Trial, port: Record, workers: Mapping[str, int], busy: dict[str, float]) -> None:
    core_fps, node = port.get("core_fps"), port["node"]
    fps = frames_per_s(trial.load, trial.sizes, port.get("line_rate_bps") or 0)
    if not core_fps or trial.size_unit != "frame":
        return
    lent = workers.get(node, 1)
    cores = min(int(port.get("queues") or 1), lent)
    if fps > cores * core_fps:
        raise ConfigurationError(
            f"{port['port']}: {fps:.6g} frames/s (trial {trial.id}) are more than {cores} core(s) "
            f"can send with {port['driver']}: {cores * core_fps:.6g} at the very best; ask for "
            "less, or give it more queues and cores"
        )
    busy[node] = busy.get(node, 0.0) + fps / core_fps
    if busy[node] > lent:
        raise ConfigurationError(
            f"{node}: the frames of its ports (trial {trial.id}) need {busy[node]:.1f} cores at "
            f"the very best, and {lent} worker(s) send them: ask for less, give it more cores, or "
            "pack fewer ports into a process"
        )


def frames_per_s(load: Load, sizes: tuple[int, ...], line_rate_bps: int) -> float:
    """What a port is asked for; 0 where nobody can say."""
    if load.fps is not None:
        return load.fps
    bits = 8 * (sum(sizes) / len(sizes) + _LAYER1_OVERHEAD)
    bps = load.bps if load.bps is not None else line_rate_bps * (load.percent or 0.0) / 100
    return bps / bits
