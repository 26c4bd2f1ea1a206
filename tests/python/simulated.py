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

from switchbench.analysis.summary import gather
from switchbench.base.model import Part, Port, Process, Run, Site, Trial
from switchbench.records.collector import PhaseData
from switchbench.records.directory import RunDirectory, write_plan
from switchbench.records.schema import record_batch
from switchbench.records.store import TableWriter, finish
from synthetic import about, hello, make_trial

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


Row = dict[str, Any]


def _flows(result: _Result) -> Iterator[Row]:
    frames = result.trial.transport == "dpdk"
    judged = dict.fromkeys(("duplicated", "reordered", "late", "forged", "corrupted"), 0)
    times = {
        f"{verb}_{name}": value
        for verb in ("sent", "received")
        for name, value in (
            ("window_ns", WINDOW_NS),
            ("first_run_ns", result.start_ns),
            ("last_run_ns", result.start_ns + WINDOW_NS),
        )
    }
    ends = zip(result.ends, result.offered.tolist(), result.delivered.tolist(), strict=True)
    for (src, dst), sent, came in ends:
        yield {
            "src": src,
            "dst": dst,
            "source_reported": True,
            "destination_reported": True,
            "role": "generate",
            "intended": sent,
            **_counts("sent", sent, frames),
            **_counts("received", came, frames),
            **times,
            **judged,
        }


def _counts(verb: str, count: int, frames: bool) -> Row:
    if frames:
        counts = {"frames": count, "frame_bytes": count * FRAME, "payload_bytes": count * PAYLOAD}
    else:
        counts = {"payload_bytes": count, "messages": count // MESSAGE}
    return {f"{verb}_{part}{name}": n for part in ("", "window_") for name, n in counts.items()}


def _intervals(result: _Result) -> Iterator[Row]:
    """Return each flow's bytes, evenly over the spans but for the last one."""
    payload = result.delivered * (PAYLOAD if result.trial.transport == "dpdk" else 1)
    for (src, dst), count in zip(result.ends, payload.tolist(), strict=True):
        least = count // SPANS * 9 // 10
        parts = [(count - least) // (SPANS - 1)] * (SPANS - 1) + [least]
        for number, part in enumerate(parts):
            begin, end = (1000.0 * (number + more) / SPANS for more in (0, 1))
            yield {"src": src, "dst": dst, "from_ms": begin, "to_ms": end, "payload_bytes": part}


# Buckets that times fall into: about 8 us in the middle, a tail to 1 ms.
_BUCKETS = {400: 6, 430: 40, 460: 200, 490: 400, 520: 300, 560: 40, 600: 10, 700: 3, 800: 1}


def _times(result: _Result) -> Iterator[Row]:
    frames = result.trial.transport == "dpdk"
    times = {"sum_ns": 8_000_000, "min_ns": 2_300, "max_ns": 200_000, "overflow": 0}
    times |= {"count": 1000, "bucket": list(_BUCKETS), "bucket_count": list(_BUCKETS.values())}
    for src, dst in result.ends:
        for kind in ("one_way", "ipdv", "round_trip") if frames else ("round_trip",):
            row = {"src": src, "dst": dst, "kind": kind, **times}
            yield row | ({"bound_ns": 0} if kind == "one_way" else {})


def _ports(result: _Result) -> Iterator[Row]:
    size = len(result.names)
    out = np.bincount(result.phase.src, weights=result.offered, minlength=size)
    came = np.bincount(result.phase.dst, weights=result.delivered, minlength=size)
    zeros = dict.fromkeys(
        ("misdelivered", "unexpected", "arp_nd_sent", "arp_nd_received", "send_refused",
         "probes_sent", "probes_received", "dropped_receive", "dropped_send", "errors"), 0
    )  # fmt: skip
    for place, port in enumerate(result.trial.parts[0].ranks):
        counts = {}
        if result.trial.transport == "dpdk":
            sent, got = int(out[place]), int(came[place])
            counts = {"sent_frames": sent, "hardware_sent": sent}
            counts |= {"received_frames": got, "hardware_received": got}
        times = {"start_run_ns": result.start_ns, "stop_run_ns": result.start_ns + WINDOW_NS}
        yield {"port": port.name, "variant": "send many"} | counts | zeros | times


def _nodes(result: _Result, nodes: Sequence[str], state: str) -> Iterator[Row]:
    """Yield the record of each node: the same skew, and its own CPU time."""
    start = round(20 + 30 * np.sin(result.number) ** 2, 3)
    cpu_s = 0.05 if result.trial.transport == "dpdk" else 0.4
    for node in nodes:
        yield {
            "node": node, "name": result.phase.name, "start_run_ns": result.start_ns,
            "window_ns": WINDOW_NS, "elapsed_ns": WINDOW_NS + 600_000_000,
            "start_skew_us": start, "stop_skew_us": 3 * start, "skew_bound_us": 0.5,
            "state": state, "drained": True, "cpu_span_s": 1.6, "cpu_s": cpu_s,
            "cpu_idle_s": 3.2 - 2 * cpu_s, "cpus": 2,
        }  # fmt: skip


def _tables(result: _Result, choice: Choice, nodes: Sequence[str]) -> PhaseData:
    """Return the rows of a phase, as the controller appends them."""
    timed = choice.timed and result.number % choice.timed == 0
    found = {
        "flows": _flows(result),
        "ports": _ports(result),
        "histograms": _times(result) if timed else (),
        "intervals": _intervals(result),
        "phases": _nodes(result, nodes, choice.state),
    }
    trial = result.trial
    place = {"trial": trial.id, "repeat": trial.repeat, "phase": result.number, "network": "lab"}
    tables = {name: [row | place for row in rows] for name, rows in found.items()}
    return {name: record_batch(name, rows) for name, rows in tables.items() if rows}


# --- the directory -----------------------------------------------------------------------------


def _events(nodes: Sequence[str], ports: Sequence[Port]) -> Iterator[Row]:
    """Return what nodes say before the first trial."""
    for number, node in enumerate(nodes):
        yield hello(node, host=node, boot=f"{number:016x}")
    opened = {"link_bps": LINE_BPS, "line_rate_bps": LINE_BPS, "driver": "simulated"}
    for port in ports:
        place = {"type": "port-open", "node": port.host, "port": port.name, "network": "lab"}
        yield from (place | {"transport": name} | opened for name in port.transports)
    ready = {"clock": "shared", "clock_reason": "boot ids are equal", "clock_id": "one"}
    yield from ({"type": "ready", "node": node} | ready for node in nodes)


def simulate(path: Path, choice: Choice) -> Path:
    """Makes a results directory, and returns it."""
    run = run_of(choice)
    directory = RunDirectory(path)
    directory.write_configuration(run.effective)
    write_plan(path, run)
    nodes = [process.name for process in run.site.processes]
    draw, now_ns = np.random.default_rng(choice.seed), 1_000_000_000_000
    with TableWriter(path) as tables:
        for event in _events(nodes, run.site.ports):
            tables.add_event(event)
        for trial in run.trials:
            ranks = len(trial.parts[0].ranks)
            phases = phases_of(trial.pattern["name"], ranks, choice.seed)
            for number, phase in enumerate(phases):
                now_ns += 2_000_000_000  # run time goes on from phase to phase
                result = _result(choice, trial, number, phase, now_ns, draw)
                tables.add_phase(_tables(result, choice, nodes))
            end = {"type": "trial", "trial": trial.id, "repeat": trial.repeat, "state": "complete"}
            end |= {"phases": trial.phases, "elapsed_ns": trial.phases * 2_000_000_000}
            for node in nodes:
                tables.add_event(end | {"node": node})
    finish(path, run)
    summary = gather(run, path).finish(about(), [])
    directory.write_summary({**summary, "warnings": [], "not_measured": []})
    return path
