# SPDX-License-Identifier: BSD-3-Clause
"""The documents that nodes read (doc/reference/node-protocol.md), built from a run."""

from __future__ import annotations

import os
import secrets
import socket
import stat
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import ClockChoice, Load, Part, Port, Process, Run, Site, Trial
from . import cores

PROTOCOL = 2
KEY_BYTES = 32
BY_HAND_UDP_PORT = 7600
PRIVATE_MODE = 0o600


def to_yaml(name: str, value: Any) -> str:
    """Return one document as a node reads it, with its end mark."""
    text: str = yaml.dump(
        {name: value},
        Dumper=_Dumper,
        explicit_start=True,
        explicit_end=True,
        default_flow_style=None,
        sort_keys=False,
        width=4096,
    )
    return text


class _Dumper(yaml.SafeDumper):
    """Writes every value out: a reader of job files needs no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def job_document(
    run: Run, run_id: str, dealt: cores.Deal | None = None, controlled: bool = True
) -> dict[str, object]:
    """Return what exists: the nodes with the ports that the run's trials use, and their cores."""
    used, stamped = _transports_used(run), _ports_probed(run)
    dealt = dealt or cores.deal(run)
    bind = {"bind": True} if "bind" in run.site.effective else {}
    return bind | {
        "protocol": PROTOCOL,
        "run": run_id,
        "controlled": controlled,
        "heartbeat_timeout_ms": run.site.heartbeat_timeout_ms,
        "barrier_timeout_ms": run.site.barrier_timeout_ms,
        "worker": dealt.worker,
        "log": run.log,
        "clock": _clock(run.clock),
        "nodes": [
            _node(_placed(process, run.site), used, stamped)
            | _cores(dealt.cores.get(process.name, ()))
            for process in run.site.processes
        ],
    }


def peers_document(addresses: Sequence[str], sealed_keys: Sequence[str]) -> dict[str, object]:
    """Who is where, with the run's key sealed to each node; both by node index."""
    return {"addresses": list(addresses), "sealed_keys": list(sealed_keys)}


def _transports_used(run: Run) -> dict[str, list[str]]:
    """Return which transports the trials use on each port, in the order of first use."""
    used: dict[str, list[str]] = {}
    for trial in run.planned:
        for part in trial.parts:
            for port in part.ranks:
                names = used.setdefault(port.name, [])
                if (transport := trial.of(part.network).transport) not in names:
                    names.append(transport)
    return used


def _ports_probed(run: Run) -> set[str]:
    """Return the ports that dpdk probes for latency: their drivers have to stamp frames."""
    return {
        port.name
        for trial in run.planned
        for part in trial.parts
        if transports.of(trial.of(part.network).transport).raw
        and trial.traffic == "stream"
        and trial.probe_fps != 0
        for port in part.ranks
    }


def _node(
    process: Process, used: dict[str, list[str]], stamped: Container[str]
) -> dict[str, object]:
    return {
        "name": process.name,
        "control": process.control,
        "ports": [
            _port(port, used[port.name], port.name in stamped)
            for port in process.ports
            if port.name in used
        ],
    }


def _clock(clock: ClockChoice) -> dict[str, object]:
    return {"mode": clock.mode} | ({"error_ns": clock.error_ns} if clock.error_ns else {})


def _cores(named: Sequence[int]) -> dict[str, object]:
    return {"cores": list(named)} if named else {}


def _port(port: Port, names: list[str], stamped: bool) -> dict[str, object]:
    return {
        "name": port.name,
        "network": port.network,
        **port.engine,
        **({"timestamps": True} if stamped else {}),
        "transports": names,
    }


def trial_document(trial: Trial) -> dict[str, Any]:
    """Return the `trial` document (doc/reference/node-protocol.md)."""
    options = trial.options
    times_s = {
        "warmup_ns": trial.warmup_s,
        "window_ns": trial.window_s,
        "cooldown_ns": trial.cooldown_s,
        "drain_timeout_ns": trial.drain_s,
        "drain_max_ns": trial.drain_max_s,
        "interval_ns": trial.interval_s or None,
    }
    # Whether ports without a flow may get frames that are measured there.
    listen = options.get("addresses", 1) > 1 or options.get("destination", "port") != "port"
    document: dict[str, object] = {
        "id": trial.id,
        "repeat": trial.repeat,
        "transport": trial.transport,
        "parts": [_part(trial, part) for part in trial.parts],
        "pattern": trial.pattern,
        "seed": trial.seed,
        "connectivity_check": trial.connectivity_check,
        "sync": trial.sync,
        "traffic": trial.traffic,
        "load": _load(trial.load),
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
    if trial.traffic == "pingpong":
        scatter = {} if trial.scatter is None else {**asdict(trial.scatter), "samples": True}
        document["pingpong"] = {"timeout_ns": document["drain_timeout_ns"], **scatter}
    return document


def _part(trial: Trial, part: Part) -> dict[str, object]:
    ranks = [port.name for port in part.ranks]
    named: dict[str, object] = {"network": part.network, "ranks": ranks}
    own = trial.own.get(part.network)
    if own is None:
        return named
    return named | {"transport": own.transport, "sizes": list(own.sizes), "load": _load(own.load)}


def _load(load: Load) -> dict[str, float]:
    return {key: value for key, value in asdict(load).items() if value is not None}


def hand_job(run: Run, run_id: str) -> str:
    """Return all documents of a run for people to start by hand, the key in clear."""
    run = replace(run, site=replace(run.site, processes=tuple(_fixed(run))))
    addresses = [process.control["address"] for process in run.site.processes]
    peers = {"addresses": addresses, "key": secrets.token_hex(KEY_BYTES)}
    job = job_document(run, run_id, controlled=False)
    documents = [to_yaml("job", job), to_yaml("peers", peers)]
    # Nobody is there to say when the mean is sure: the repeats that are needed in any case.
    documents += [
        to_yaml("trial", trial_document(trial)) for trial in run.trials if not trial.optional
    ]
    return "".join([*documents, to_yaml("quit", True)])


def _placed(process: Process, site: Site) -> Process:
    """On real hosts with its numeric address: a node looks up no names (platform/address.h)."""
    if not site.launcher.is_far:
        return process
    address = numeric_address(process.name, process.control["address"])
    return replace(process, control={**process.control, "address": address})


def _fixed(run: Run) -> Iterator[Process]:
    """Yield the processes, each at an address that all can know before anybody starts."""
    for process in run.site.processes:
        address = _fixed_address(run, process.name, process.control["address"])
        yield replace(process, control={**process.control, "address": address})


def _fixed_address(run: Run, node: str, address: str) -> str:
    """Return a numeric address with a port that all can know before anybody starts."""
    host, _, port = address.rpartition(":")
    number = int(port)
    if number == 0 and run.site.launcher.in_lab:
        number = BY_HAND_UDP_PORT  # one port for all: each node has a namespace of its own
    if number == 0:
        raise ConfigurationError(
            "control.udp_port: 0 leaves the port open, but the nodes of a job that is started by "
            "hand have to know it"
        )
    return numeric_address(node, f"{host}:{number}")


def numeric_address(node: str, address: str) -> str:
    """`name:port` with the address that this machine knows for the name."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    except OSError as error:
        raise ConfigurationError(
            f"control.address: {host} of {node} can't be resolved here ({error.strerror}): give "
            "the address itself (`control.addresses`), or a name that is known here"
        ) from None
    numeric = str(found[4][0])
    return f"[{numeric}]:{port}" if ":" in numeric else f"{numeric}:{port}"


def write_private(path: Path, text: str) -> None:
    """Write a file that holds a key: mode 0600 from its first moment, or not at all."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, PRIVATE_MODE)
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        lack = _exposed(os.fstat(file.fileno()))
        if lack is not None:
            raise ConfigurationError(
                f"{path}: {lack}, and a job holds the run's key: it has to be a file of yours "
                "with mode 0600 and one name; remove it"
            )
        file.truncate()
        file.write(text)


def _exposed(status: os.stat_result) -> str | None:
    """Return what lets others read or replace a file that was there before."""
    if not stat.S_ISREG(status.st_mode):
        return "is no regular file"
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}"
    if status.st_nlink != 1:
        return f"has {status.st_nlink} names (hard links)"
    mode = stat.S_IMODE(status.st_mode)
    return None if mode == PRIVATE_MODE else f"has mode {mode:04o}"
