# SPDX-License-Identifier: BSD-3-Clause
"""Documents that the command sends to nodes (doc/developer/node-protocol.md), made from a run."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ClusterShell.RangeSet import RangeSet

from ..base.errors import ConfigurationError
from ..base.model import Process, Run, Trial


@dataclass(frozen=True)
class Deal:
    """Kind of the nodes' workers, and the workers' cores, for the `job` document."""

    worker: str  # auto | sleep | poll
    cores: dict[str, tuple[int, ...]] = field(default_factory=dict)  # by process

    @property
    def polled(self) -> frozenset[int]:
        """Return the cores that polling workers occupy during the run."""
        every = (core for cores in self.cores.values() for core in cores)
        return frozenset(every) if self.worker == "poll" else frozenset()


def deal(run: Run) -> Deal:
    """Choose the kind of a run's workers and their cores; ConfigurationError if impossible."""
    processes, named = run.site.processes, run.site.cores
    if not run.site.launcher.in_lab:
        return Deal(run.worker, {one.name: one.cores for one in processes if one.cores})
    may_use = frozenset(os.sched_getaffinity(0))
    present = frozenset(range(os.cpu_count() or 1)) | may_use
    if named:
        cores, enough = list(named), len(named) >= len(processes)
        there = f"cores names {len(named)}"
    else:
        lanes, usable = sum(map(queues, processes)), sorted(may_use)
        cores, enough = usable[1:][-lanes:], len(usable) > lanes + 1
        there = f"this machine has {len(usable)} to use, one of them for the command"
    absent = [core for core in named if core not in present]
    if absent:
        raise ConfigurationError(
            f"cores: {written(absent)}: no such cores: this machine has only {written(present)}"
        )
    if run.worker == "sleep" or (run.worker == "auto" and not enough):
        return Deal("sleep", _spread(processes, named))
    if len(cores) < len(processes):
        raise ConfigurationError(
            f"worker: poll: {len(processes)} node processes need a core each, and {there}: pack "
            "more nodes into a process, or set worker: sleep"
        )
    # The command, its heartbeats and the main threads need a core without a polling worker.
    if not may_use - frozenset(named):
        raise ConfigurationError(
            f"cores: {written(named)}: no core is left for the command itself, which may use "
            f"{written(may_use)}: take one of these out of `cores`, or set worker: sleep"
        )
    return Deal("poll", _spread(processes, cores))


def queues(process: Process) -> int:
    """Return the number of lanes of a process: the queues of all its ports."""
    return sum(int(port.engine.get("queues", 1)) for port in process.ports)


def written(cores: Iterable[int]) -> str:
    """Return core numbers as a cpuset, such as `0,2-5`."""
    return str(RangeSet.fromlist(map(str, cores)))


def _spread(processes: Sequence[Process], cores: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Assign cores to processes in rotation; with too few cores, processes share a core."""
    return {
        process.name: tuple(cores[i :: len(processes)]) or (cores[i % len(cores)],)
        for i, process in enumerate(processes)
        if cores
    }


def keep_off(polled: Collection[int]) -> None:
    """Keep this thread, and threads that it starts, off the cores of polling workers."""
    others = os.sched_getaffinity(0) - frozenset(polled)
    if polled and others:
        os.sched_setaffinity(0, others)


# --- documents ------------------------------------------------------------------------------------
# Documents that nodes read (doc/developer/node-protocol.md), built from a run.


PROTOCOL = 2
KEY_BYTES = 32
BY_HAND_UDP_PORT = 7600


def to_line(name: str, value: object) -> str:
    """Return a named document for nodes as a line of JSON."""
    return json.dumps({name: value}, ensure_ascii=False) + "\n"


def job_document(
    run: Run, run_id: str, dealt: Deal | None = None, controlled: bool = True
) -> dict[str, object]:
    """Return the `job` document: nodes, the ports that the run's trials use, and cores."""
    used: dict[str, list[str]] = {}  # transports by port, in the order of first use
    for trial in run.planned:
        for part in trial.parts:
            transport = trial.of(part.network).transport
            for port in part.ranks:
                if transport not in used.setdefault(port.name, []):
                    used[port.name].append(transport)
    dealt = dealt or deal(run)
    nodes = []
    for process in run.site.processes:
        control = process.control
        if run.site.launcher.is_far:  # nodes resolve no names (platform/address.h)
            control = {**control, "address": numeric_address(process.name, control["address"])}
        ports = [
            {
                "name": port.name,
                "network": port.network,
                **port.engine,
                "transports": used[port.name],
            }
            for port in process.ports
            if port.name in used
        ]
        node: dict[str, object] = {"name": process.name, "control": control, "ports": ports}
        if cores := dealt.cores.get(process.name):
            node["cores"] = list(cores)
        nodes.append(node)
    clock = {"mode": run.clock.mode}
    return {
        "protocol": PROTOCOL,
        "run": run_id,
        "controlled": controlled,
        "heartbeat_timeout_ms": run.site.heartbeat_timeout_ms,
        "barrier_timeout_ms": run.site.barrier_timeout_ms,
        "worker": dealt.worker,
        "clock": clock | ({"error_ns": run.clock.error_ns} if run.clock.error_ns else {}),
        "nodes": nodes,
    }


def trial_document(trial: Trial) -> dict[str, Any]:
    """Return a trial as the `trial` document that nodes read (doc/developer/node-protocol.md)."""
    options = trial.options
    times_s = {
        "warmup_ns": trial.warmup_s,
        "window_ns": trial.window_s,
        "cooldown_ns": trial.cooldown_s,
        "drain_timeout_ns": trial.drain_s,
        "drain_max_ns": trial.drain_max_s,
        "interval_ns": trial.interval_s or None,
    }
    # With `listen`, ports without a flow receive too: a device may flood frames to all ports.
    listen = options.get("addresses", 1) > 1 or options.get("destination", "port") != "port"
    parts = []
    for part in trial.parts:
        ranks = [port.name for port in part.ranks]
        named: dict[str, object] = {"network": part.network, "ranks": ranks}
        if own := trial.own.get(part.network):
            named |= {"transport": own.transport, "sizes": list(own.sizes), "load": own.load.given}
        parts.append(named)
    document: dict[str, object] = {
        "id": trial.id,
        "repeat": trial.repeat,
        "transport": trial.transport,
        "parts": parts,
        "pattern": trial.pattern,
        "seed": trial.seed,
        "connectivity_check": trial.connectivity_check,
        "traffic": trial.traffic,
        "load": trial.load.given,
        "latency": {"stamps": trial.latency_stamps}
        | ({} if trial.probe_fps is None else {"probe_fps": trial.probe_fps}),
        trial.transport: options,
    }
    document |= {key: round(1e9 * time_s) for key, time_s in times_s.items() if time_s is not None}
    given = {
        "sizes": list(trial.sizes) if trial.schedule is None else None,
        "phases": trial.chosen and list(trial.chosen),
        "connectivity_check_sizes": list(trial.check_sizes) or None,
        "schedule": trial.schedule and asdict(trial.schedule),
        "transfer_bytes": trial.transfer_bytes,
        "burst": trial.burst and asdict(trial.burst),
        "listen": listen or None,
        "flood_limit": trial.flood_limit,
    }
    document |= {key: value for key, value in given.items() if value is not None}
    return document


def hand_job(run: Run, run_id: str) -> str:
    """Return all documents for nodes that users start by hand, with the key in clear text."""
    processes = []
    for process in run.site.processes:  # addresses must be known before the nodes start
        host, _, port = process.control["address"].rpartition(":")
        number = int(port)
        if number == 0 and run.site.launcher.in_lab:
            number = BY_HAND_UDP_PORT  # the same port for all: each node has its own namespace
        if number == 0:
            raise ConfigurationError(
                "control.udp_port: 0 chooses a free port, but nodes that are started by hand need "
                "a fixed one"
            )
        address = numeric_address(process.name, f"{host}:{number}")
        processes.append(replace(process, control={**process.control, "address": address}))
    run = replace(run, site=replace(run.site, processes=tuple(processes)))
    addresses = [process.control["address"] for process in processes]
    peers = {"addresses": addresses, "key": secrets.token_hex(KEY_BYTES)}
    job = job_document(run, run_id, controlled=False)
    # Only the min number of repeats, because no controller evaluates their mean.
    trials = [trial_document(trial) for trial in run.trials if not trial.optional]
    documents = [to_line("job", job), to_line("peers", peers)]
    return "".join([*documents, *(to_line("trial", one) for one in trials), to_line("quit", True)])


def numeric_address(node: str, address: str) -> str:
    """Return `host:port` with the host's numeric address, as this machine resolves the name."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    except OSError as error:
        raise ConfigurationError(
            f"control.address: cannot resolve {host} of {node} ({error.strerror}): set "
            f"control.addresses.{node}"
        ) from None
    numeric = str(found[4][0])
    return f"[{numeric}]:{port}" if ":" in numeric else f"{numeric}:{port}"
