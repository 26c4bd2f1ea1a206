# SPDX-License-Identifier: BSD-3-Clause
"""Results directories of simulated runs: any number of ranks, tables as a run writes them.

The network is a formula: modules of ports, and between each module and the others a trunk of
half its ports' rate. So a shift is at line rate where few flows leave a module, and at half of
it where all do. Draws are seeded: the same call writes the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from recorded import write_tables
from switchbench.analysis.summary import gather
from switchbench.base.model import Part, Port, Process, Run, Site, Trial
from switchbench.records.directory import CONFIGURATION, RunDirectory, write_plan
from switchbench.records.store import finish
from synthetic import (
    about,
    frame_side,
    hello,
    make_trial,
    phase_record,
    port_record,
    tcp_side,
    times_record,
    trial_record,
)

MODULES = 4  # of ports
LINE_BPS = 1_000_000_000
FRAME = 1518
PAYLOAD = 1500
LAYER1 = 1538
MESSAGE = 65536
WINDOW_NS = 1_000_000_000
SPANS = 4  # interval results of a window
LOAD = 0.95
TCP_SHARE = 0.94  # payload of a full TCP stream by the line rate
FEW = 128  # ranks of which each phase has histograms unless something else is said

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Json = dict[str, Any]


@dataclass(frozen=True)
class Phase:
    """Flows that run together, by rank."""

    name: str
    src: Ints
    dst: Ints


@dataclass(frozen=True)
class Choice:
    """What to simulate."""

    ranks: int
    transports: tuple[str, ...] = ("dpdk", "tcp")
    patterns: tuple[str, ...] = ("chain", "pairs", "aapc", "ring")
    times_every: int | None = None  # in how many phases one has histograms; 0: none has
    repeats: int = 1
    seed: int = 1
    modules: int = MODULES
    jitter: float = 0.004  # of rates
    lost: tuple[int, int, int] | None = None  # of the first trial: phase, destination, frames
    state: str = "complete"  # of phases

    @property
    def timed(self) -> int:
        """Return `times_every`; without it 1 for few ranks, and 16 for many."""
        return (1 if self.ranks <= FEW else 16) if self.times_every is None else self.times_every


# An all-to-all of twelve ranks over both transports, eleven phases each, and chains of 3, 6 and 12;
# one flow loses frames.
LOSSY = Choice(
    12, patterns=("aapc", "chain"), times_every=0, modules=1, jitter=0, lost=(3, 3, 1000)
)
LOSSY_PHASES = 2 * (11 + 3)

# --- the run -----------------------------------------------------------------------------------


def site_of(choice: Choice) -> Site:
    """Return a site of one port a host, module after module."""
    each = -(-choice.ranks // choice.modules)
    processes = []
    for number in range(choice.ranks):
        host, module = f"node{number + 1}", f"module{1 + number // each}"
        port = Port(
            f"{host}:e0", host, "lab", choice.transports, {}, line_rate_bps=LINE_BPS,
            switch=module, switch_port=f"p{1 + number % each}",
        )  # fmt: skip
        processes.append(Process(host, (port,), {}))
    return Site("lab", tuple(processes), lab="simulated")


def phases_of(pattern: str, ranks: int, seed: int) -> list[Phase]:
    """Return the flows of a pattern (patterns/), phase by phase."""
    all_ranks = np.arange(ranks)
    if pattern == "chain":
        return [Phase("chain", all_ranks[:-1], all_ranks[1:])]
    if pattern == "pairs":
        return [Phase("neighbours", all_ranks, all_ranks ^ 1)]
    if pattern == "aapc":
        shifts = range(1, ranks)
        return [Phase(f"distance {k}", all_ranks, (all_ranks + k) % ranks) for k in shifts]
    random = np.random.default_rng(seed)
    orders = [all_ranks, *(random.permutation(ranks) for _ in range(10))]
    return [
        Phase("natural" if not i else f"random {i}", *_both_ways(order))
        for i, order in enumerate(orders)
    ]


def _both_ways(order: Ints) -> tuple[Ints, Ints]:
    behind = np.roll(order, -1)
    return np.concatenate([order, behind]), np.concatenate([behind, order])


_PARAMETERS: dict[str, Json] = {
    "chain": {},
    "pairs": {"partners": "neighbours"},
    "aapc": {"order": "shift", "sync": "barrier"},
    "ring": {"count": 10},
}


def run_of(choice: Choice) -> Run:
    """Return a run of all patterns over transports in turn, chains of several lengths."""
    site = site_of(choice)
    trials: list[Trial] = []
    for test, pattern in enumerate(choice.patterns):
        lengths = [choice.ranks // 4, choice.ranks // 2] if pattern == "chain" else []
        for ranks in (*lengths, choice.ranks):
            phases = phases_of(pattern, ranks, choice.seed)
            for repeat in range(choice.repeats):
                for transport in choice.transports:
                    frames = transport == "dpdk"
                    trials.append(
                        make_trial(
                            site,
                            len(trials),
                            test=test,
                            repeat=repeat,
                            transport=transport,
                            parts=(Part("lab", site.ports[:ranks]),),
                            pattern={"name": pattern, **_PARAMETERS[pattern]},
                            parameters=_PARAMETERS[pattern],
                            sizes=(FRAME if frames else MESSAGE,),
                            size_unit="frame" if frames else "message",
                            phases=len(phases),
                            flows=sum(len(phase.src) for phase in phases),
                        )
                    )
    effective = {"switchbench": 1, "site": {"lab": "simulated"}, "note": "<b>&amp;"}
    return Run(site, tuple(trials), seed=choice.seed, effective=effective)


# --- records -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Result:
    """The counts of a phase's flows."""

    names: list[str]  # by rank
    phase: Phase
    number: int
    trial: Trial
    offered: Ints  # frames or bytes in the window
    delivered: Ints
    start_ns: int

    @property
    def ends(self) -> list[tuple[str, str]]:
        """Return sources and destinations by name."""
        return [
            (self.names[s], self.names[d])
            for s, d in zip(self.phase.src.tolist(), self.phase.dst.tolist(), strict=True)
        ]


def rates_bps(choice: Choice, phase: Phase, random: Generator) -> tuple[Floats, Floats]:
    """Return the layer-1 bit/s of each flow: offered, and what the trunks let through."""
    each = -(-choice.ranks // choice.modules)
    offered = LOAD * LINE_BPS / np.bincount(phase.src, minlength=choice.ranks)[phase.src]
    module, other = phase.src // each, phase.dst // each
    crossing = module != other
    load = np.bincount(module[crossing], weights=offered[crossing], minlength=choice.modules)
    back = np.bincount(other[crossing], weights=offered[crossing], minlength=choice.modules)
    trunk = each / 2 * LINE_BPS
    limit = np.minimum(1.0, trunk / np.maximum(np.maximum(load[module], back[other]), 1.0))
    delivered = offered * np.where(crossing, limit, 1.0)
    jitter = 1 - choice.jitter * random.random(len(delivered))
    return offered, np.minimum(offered, delivered * jitter)


def _result(
    choice: Choice, trial: Trial, number: int, phase: Phase, start_ns: int, draw: Generator
) -> _Result:
    offered, delivered = rates_bps(choice, phase, draw)
    names = [port.name for port in trial.parts[0].ranks]
    if trial.transport == "dpdk":
        counts = [(rate / 8 / LAYER1).astype(np.int64) for rate in (offered, delivered)]
        if choice.lost and (trial.id, number) == (0, choice.lost[0]):
            counts[1][phase.dst == choice.lost[1]] -= choice.lost[2]
    else:
        sent = (delivered * TCP_SHARE / 8).astype(np.int64)
        counts = [sent, sent]
    return _Result(names, phase, number, trial, counts[0], counts[1], start_ns)


# Buckets that times fall into: about 8 us in the middle, a tail to 1 ms.
_BUCKETS = {400: 6, 430: 40, 460: 200, 490: 400, 520: 300, 560: 40, 600: 10, 700: 3, 800: 1}
_TIMES = {
    "count": 1000, "sum_ns": 8_000_000, "min_ns": 2_300, "max_ns": 200_000,
    "buckets": " ".join(f"{bucket}:{count}" for bucket, count in _BUCKETS.items()),
}  # fmt: skip


def _records(result: _Result, choice: Choice, nodes: Sequence[str]) -> Iterator[Json]:
    """Yield the records of a phase: flows, their times and intervals, ports, nodes."""
    trial, start_ns = result.trial, result.start_ns
    place = {"trial": trial.id, "repeat": trial.repeat, "phase": result.number, "network": "lab"}
    is_timed = choice.timed and result.number % choice.timed == 0
    frames = trial.transport == "dpdk"
    made = frame_side if frames else tcp_side
    run_ns = {"first_run_ns": start_ns, "last_run_ns": start_ns + WINDOW_NS}
    ends = zip(result.ends, result.offered.tolist(), result.delivered.tolist(), strict=True)
    for flow, sent, came in ends:
        yield made("source", *flow, sent, sent, intended=sent, **place, **run_ns)
        yield made("destination", *flow, came, came, **place, **run_ns)
        names = dict(zip(("src", "dst"), flow, strict=True))
        for kind in ("one_way", "round_trip")[0 if frames else 1 :] if is_timed else ():
            more = {"kind": kind, "bound_ns": 0 if kind == "one_way" else None}
            yield times_record((), **place, **names, **more, **_TIMES)
        payload = came * (PAYLOAD if frames else 1)
        least = payload // SPANS * 9 // 10  # evenly over the spans but for the last one
        parts = [(payload - least) // (SPANS - 1)] * (SPANS - 1) + [least]
        marks = [1000.0 * number / SPANS for number in range(1, SPANS + 1)]
        spans = {"from_ms": 0.0, "at_ms": marks, "flows": [(flow[0], parts)]}
        yield {"type": "interval", "dst": flow[1]} | place | spans
    size = len(result.names)
    out = np.bincount(result.phase.src, weights=result.offered, minlength=size)
    got = np.bincount(result.phase.dst, weights=result.delivered, minlength=size)
    run_ns = {"start_run_ns": start_ns, "stop_run_ns": start_ns + WINDOW_NS}
    for name, sent, came in zip(result.names, out.tolist(), got.tolist(), strict=True):
        counts: Json = {"probes_sent": 0, "probes_received": 0, "variant": "send many"}
        if frames:
            counts |= dict.fromkeys(("sent_frames", "hardware_sent"), int(sent))
            counts |= dict.fromkeys(("received_frames", "hardware_received"), int(came))
        yield port_record(name, pause=None, **counts, **place, **run_ns)
    skew_us = round(20 + 30 * np.sin(result.number) ** 2, 3)
    cpu_s = 0.05 if frames else 0.4
    for node in nodes:  # the same skew, and its own CPU time
        yield phase_record(
            node, **place, name=result.phase.name, start_run_ns=start_ns,
            elapsed_ns=WINDOW_NS + 600_000_000, start_skew_us=skew_us, stop_skew_us=3 * skew_us,
            state=choice.state, cpu_span_s=1.6, cpu_s=cpu_s, cpu_idle_s=3.2 - 2 * cpu_s,
        )  # fmt: skip


# --- the directory -----------------------------------------------------------------------------


def _run_records(choice: Choice, run: Run) -> Iterator[Json]:
    """Yield the records of a run in their order."""
    nodes = [process.name for process in run.site.processes]
    draw, now_ns = np.random.default_rng(choice.seed), 1_000_000_000_000
    for number, node in enumerate(nodes):
        yield hello(node, host=node, boot=f"{number:016x}")
    opened = {"link_bps": LINE_BPS, "line_rate_bps": LINE_BPS, "driver": "simulated"}
    for port in run.site.ports:
        place = {"type": "port-open", "node": port.host, "port": port.name, "network": "lab"}
        yield from (place | {"transport": name} | opened for name in port.transports)
    ready = {"clock": "shared", "clock_reason": "boot ids are equal", "clock_id": "one"}
    yield from ({"type": "ready", "node": node} | ready for node in nodes)
    for trial in run.trials:
        phases = phases_of(trial.pattern["name"], len(trial.parts[0].ranks), choice.seed)
        for number, phase in enumerate(phases):
            now_ns += 2_000_000_000  # run time goes on from phase to phase
            yield from _records(_result(choice, trial, number, phase, now_ns, draw), choice, nodes)
        elapsed_ns = trial.phases * 2_000_000_000
        own = {"trial": trial.id, "repeat": trial.repeat, "phases": trial.phases}
        yield from (trial_record(node, **own, elapsed_ns=elapsed_ns) for node in nodes)


def simulate(path: Path, choice: Choice) -> Path:
    """Make a results directory, and return it."""
    run = run_of(choice)
    directory = RunDirectory(path)
    directory.write_document(CONFIGURATION, run.effective)
    write_plan(path, run)
    write_tables(path, run, _run_records(choice, run))
    finish(path, run)
    summary = gather(run, path).finish(about(), [])
    directory.write_summary({**summary, "warnings": [], "not_measured": []})
    return path
