# SPDX-License-Identifier: BSD-3-Clause
"""Results directories of runs that never were: any number of ranks, records as nodes write them.

The network is a formula: modules of ports, and between each module and the others a trunk of half
its ports' rate. So a shift is at line rate where few flows leave a module, and at half of it where
all do. Draws are seeded: the same call writes the same bytes.

    simulated.py DIR --ranks 64
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from switchbench.analysis.entries import plan_entry
from switchbench.analysis.summary import Summary
from switchbench.analysis.transports import compare
from switchbench.base.model import Part, Port, Process, Run, Site, Trial
from switchbench.records.directory import RECORDS, RunDirectory
from switchbench.records.latency import Histogram
from switchbench.records.plan_file import write_plan
from synthetic import about, hello, make_trial

LINE_BPS = 1_000_000_000
FRAME = 1518
PAYLOAD = 1500
LAYER1 = 1538
MESSAGE = 65536
WINDOW_NS = 1_000_000_000
SPANS = 4  # interval results of a window
LOAD = 0.95
TCP_SHARE = 0.94  # payload of a full TCP stream by the line rate
FEW = 128  # ranks whose records are written and summarized whole unless something else is said
_BATCH = 32  # phases that are summarized at a time: their records are in memory together

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
    modules: int = 4
    transports: tuple[str, ...] = ("dpdk", "tcp")
    patterns: tuple[str, ...] = ("chain", "pairs", "aapc", "ring")
    times_every: int | None = None  # in how many phases one has histograms; 0: none has
    summary_every: int | None = None  # of how many batches of phases one is summarized: _Writer
    repeats: int = 1
    seed: int = 1

    @property
    def timed(self) -> int:
        """`times_every`; unless said, each phase of few ranks has histograms, one in 16 of many."""
        return (1 if self.ranks <= FEW else 16) if self.times_every is None else self.times_every

    @property
    def summarized(self) -> int:
        """`summary_every`; unless said, all of few ranks, and the first phases of many."""
        every = self.summary_every
        return (1 if self.ranks <= FEW else 1 << 20) if every is None else every


@dataclass
class _Clock:
    """Run time goes on from phase to phase."""

    now_ns: int = 1_000_000_000_000
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))


# --- the run -----------------------------------------------------------------------------------


def site_of(choice: Choice) -> Site:
    """One port a host, module after module."""
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
    """The flows of a pattern (patterns/), phase by phase."""
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
    """Every pattern over every transport, a chain of several lengths; transports take turns."""
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
    effective = {"switchbench": 1, "site": {"lab": "simulated"}}
    return Run(site, tuple(trials), seed=choice.seed, effective=effective)


# --- records -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Result:
    """What a phase's flows came to."""

    names: list[str]  # by rank
    phase: Phase
    number: int
    trial: Trial
    offered: Ints  # frames or bytes in the window
    delivered: Ints
    start_ns: int

    @property
    def place(self) -> str:
        """The keys that say where a record belongs."""
        trial = self.trial
        return f'"trial":{trial.id},"repeat":{trial.repeat},"phase":{self.number},"network":"lab"'

    @property
    def ends(self) -> list[tuple[str, str]]:
        """Sources and destinations by name."""
        return [
            (self.names[s], self.names[d])
            for s, d in zip(self.phase.src.tolist(), self.phase.dst.tolist(), strict=True)
        ]


def rates_bps(choice: Choice, phase: Phase, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Layer-1 bit/s of each flow: offered, and what the trunks let through."""
    each = -(-choice.ranks // choice.modules)
    offered = LOAD * LINE_BPS / np.bincount(phase.src, minlength=choice.ranks)[phase.src]
    module, other = phase.src // each, phase.dst // each
    crossing = module != other
    load = np.bincount(module[crossing], weights=offered[crossing], minlength=choice.modules)
    back = np.bincount(other[crossing], weights=offered[crossing], minlength=choice.modules)
    trunk = each / 2 * LINE_BPS
    limit = np.minimum(1.0, trunk / np.maximum(np.maximum(load[module], back[other]), 1.0))
    delivered = offered * np.where(crossing, limit, 1.0)
    jitter = 1 - 0.004 * random.random(len(delivered))
    return offered, np.minimum(offered, delivered * jitter)


def _result(choice: Choice, trial: Trial, number: int, phase: Phase, clock: _Clock) -> _Result:
    offered, delivered = rates_bps(choice, phase, clock.random)
    names = [port.name for port in trial.parts[0].ranks]
    if trial.transport == "dpdk":
        counts = [(rate / 8 / LAYER1).astype(np.int64) for rate in (offered, delivered)]
    else:
        sent = (delivered * TCP_SHARE / 8).astype(np.int64)
        counts = [sent, sent]
    clock.now_ns += 2_000_000_000
    return _Result(names, phase, number, trial, counts[0], counts[1], clock.now_ns)


def _node(port: str) -> str:
    return port.partition(":")[0]


def _flow_lines(result: _Result) -> Iterator[str]:
    frames = result.trial.transport == "dpdk"
    judged = '"duplicated":0,"reordered":0,"late":0,"forged":0,"corrupted":0,'
    ends = zip(result.ends, result.offered.tolist(), result.delivered.tolist(), strict=True)
    for (src, dst), sent, came in ends:
        for side, node, count in (("source", src, sent), ("destination", dst, came)):
            yield (
                f'{{"type":"flow","node":"{_node(node)}",{result.place},"side":"{side}",'
                f'"src":"{src}","dst":"{dst}","role":"generate",'
                f"{_counts('', count, frames)}{_counts('window_', count, frames)}"
                f'"window_ns":{WINDOW_NS},"intended":{sent if side == "source" else "null"},'
                f"{judged if side == 'destination' else ''}"
                f'"first_run_ns":{result.start_ns},"last_run_ns":{result.start_ns + WINDOW_NS},'
                f'"measures":{{}}}}\n'
            )


def _counts(prefix: str, count: int, frames: bool) -> str:
    values = (count, count * FRAME, count * PAYLOAD, "null") if frames else (
        "null", "null", count, count // MESSAGE
    )  # fmt: skip
    names = ("frames", "frame_bytes", "payload_bytes", "messages")
    return "".join(f'"{prefix}{n}":{value},' for n, value in zip(names, values, strict=True))


def _interval_lines(result: _Result) -> Iterator[str]:
    """One record a destination, its flows' bytes evenly over the spans but for the last one."""
    payload = result.delivered * (PAYLOAD if result.trial.transport == "dpdk" else 1)
    flows: dict[str, list[str]] = {}
    for (src, dst), count in zip(result.ends, payload.tolist(), strict=True):
        least = count // SPANS * 9 // 10
        parts = [(count - least) // (SPANS - 1)] * (SPANS - 1) + [least]
        flows.setdefault(dst, []).append(f'["{src}",{parts}]')
    marks = [1000.0 * (i + 1) / SPANS for i in range(SPANS)]
    for dst, parts_of in flows.items():
        yield (
            f'{{"type":"interval","node":"{_node(dst)}",{result.place},"side":"destination",'
            f'"dst":"{dst}","from_ms":0.0,"at_ms":{marks},"flows":[{",".join(parts_of)}]}}\n'
        )


# Buckets that times fall into: about 8 µs in the middle, a tail to 1 ms.
_BUCKETS = "400:6 430:40 460:200 490:400 520:300 560:40 600:10 700:3 800:1"
_MODEL = Histogram()
_MODEL.add_record({"buckets": _BUCKETS, "count": 1000, "sum_ns": 0, "lost": 0})


def _time_lines(result: _Result) -> Iterator[str]:
    kinds = ("one_way", "ipdv", "round_trip") if result.trial.transport == "dpdk" else (
        "round_trip",
    )  # fmt: skip
    least, most, total = 2_300, 200_000, 8_000_000
    for src, dst in result.ends:
        for kind in kinds:
            bound = 0 if kind == "one_way" else "null"
            lost = 0 if kind == "round_trip" else "null"
            node = src if kind == "round_trip" else dst
            yield (
                f'{{"type":"histogram","node":"{_node(node)}",{result.place},"src":"{src}",'
                f'"dst":"{dst}","kind":"{kind}","unit":"ns","count":{_MODEL.count},'
                f'"sum_ns":{total},"min_ns":{least},"max_ns":{most},"overflow":0,'
                f'"lost":{lost},"bound_ns":{bound},"buckets":"{_BUCKETS}"}}\n'
            )


def _port_lines(result: _Result) -> Iterator[str]:
    frames = result.trial.transport == "dpdk"
    size = len(result.names)
    out = np.bincount(result.phase.src, weights=result.offered, minlength=size)
    came = np.bincount(result.phase.dst, weights=result.delivered, minlength=size)
    zeros = ",".join(
        f'"{name}":0'
        for name in ("misdelivered", "unexpected", "arp_nd_sent", "arp_nd_received", "send_refused",
                     "probes_sent", "probes_received", "dropped_receive", "dropped_send", "errors")
    )  # fmt: skip
    for port in result.trial.parts[0].ranks:
        place = int(_node(port.name)[4:]) - 1
        sent, got = (int(out[place]), int(came[place])) if frames else ("null", "null")
        yield (
            f'{{"type":"port","node":"{port.host}",{result.place},"port":"{port.name}",'
            f'"sent_frames":{sent},"received_frames":{got},"hardware_sent":{sent},'
            f'"hardware_received":{got},{zeros},"pause":null,"variant":"send many",'
            f'"start_run_ns":{result.start_ns},"stop_run_ns":{result.start_ns + WINDOW_NS}}}\n'
        )


def _phase_lines(result: _Result, nodes: Sequence[str]) -> Iterator[str]:
    """All nodes say the same skew, and each its own CPU time."""
    start = 20 + 30 * np.sin(result.number) ** 2
    trial = result.trial
    cpu_s = 0.05 if trial.transport == "dpdk" else 0.4
    for node in nodes:
        yield (
            f'{{"type":"phase","node":"{node}","trial":{trial.id},"repeat":{trial.repeat},'
            f'"phase":{result.number},"name":"{result.phase.name}","start_run_ns":{result.start_ns},'
            f'"window_ns":{WINDOW_NS},"elapsed_ns":{WINDOW_NS + 600_000_000},'
            f'"start_skew_us":{start:.3f},"stop_skew_us":{3 * start:.3f},"skew_bound_us":0.5,'
            f'"state":"complete","drained":true,"cpu_span_s":1.6,"cpu_s":{cpu_s},'
            f'"cpu_idle_s":{3.2 - 2 * cpu_s},"cpus":2,"cycles_per_frame":null}}\n'
        )


def _lines(result: _Result, choice: Choice, nodes: Sequence[str]) -> Iterator[str]:
    yield from _interval_lines(result)
    yield from _flow_lines(result)
    if choice.timed and result.number % choice.timed == 0:
        yield from _time_lines(result)
    yield from _port_lines(result)
    yield from _phase_lines(result, nodes)


# --- the directory -----------------------------------------------------------------------------


@dataclass
class _Writer:
    """Writes records, and has them summarized some phases at a time: those of 1,024 ranks do not
    fit in memory at once, and take minutes. Where only one batch of several is summarized, the
    summary's entries of the others are those of the last one that was, under other numbers: of the
    right form and size, but not what their records say."""

    run: Run
    file: BinaryIO
    line: int = 0
    head: list[tuple[int, Json]] = field(default_factory=list)
    parts: list[Json] = field(default_factory=list)  # summaries of some phases each
    entries: dict[tuple[int, int], list[Json]] = field(default_factory=dict)  # phases by trial
    ended: dict[tuple[int, int], dict[str, Json]] = field(default_factory=dict)

    def write(self, lines: Iterable[str]) -> None:
        """Writes them."""
        for text in lines:
            self.line += 1
            self.file.write(text.encode())

    def taken(self, lines: Iterable[str]) -> Iterator[tuple[int, Json]]:
        """Writes them, and gives them with their numbers, as the file is read."""
        for text in lines:
            self.write([text])
            yield self.line, json.loads(text)

    def begin(self, nodes: Sequence[str], ports: Sequence[Port]) -> None:
        """What nodes say before the first trial."""
        records: list[Json] = [
            hello(node, host=node, boot=f"{number:016x}") for number, node in enumerate(nodes)
        ]
        for port in ports:
            opened = {"link_bps": LINE_BPS, "line_rate_bps": LINE_BPS, "driver": "simulated"}
            place = {"node": port.host, "port": port.name, "network": "lab"}
            kinds = [{"transport": transport} for transport in port.transports]
            records += [{"type": "port-open"} | place | kind | opened for kind in kinds]
        ready = {"clock": "shared", "clock_reason": "boot ids are equal", "clock_id": "one"}
        records += [{"type": "ready", "node": node} | ready for node in nodes]
        self.head = list(self.taken(_text(record) for record in records))

    def add(self, trial: Trial, lines: Iterable[str]) -> None:
        """Some phases of a trial, summarized."""
        summary = Summary(self.run)
        for line, record in (*self.head, *self.taken(lines)):
            summary.feed(line, record)
        self.parts.append(summary.finish(about(), []))
        self.entries.setdefault((trial.id, trial.repeat), []).extend(self.parts[-1]["trials"])

    def repeat(
        self, trial: Trial, phases: Iterable[tuple[int, Phase]], lines: Iterable[str]
    ) -> None:
        """Some phases of a trial, whose entries repeat those before them."""
        self.write(lines)
        known = self.entries[trial.id, trial.repeat]
        for (number, phase), entry in zip(phases, list(known), strict=False):
            known.append(entry | {"phase": number, "phase_name": phase.name})

    def end(self, trial: Trial, nodes: Sequence[str]) -> None:
        """The trial is over."""
        words = {"repeat": trial.repeat, "phases": trial.phases, "state": "complete"}
        took_ns = trial.phases * 2_000_000_000
        said = [
            {"type": "trial", "node": node, "trial": trial.id, "elapsed_ns": took_ns} | words
            for node in nodes
        ]
        self.ended[trial.id, trial.repeat] = dict(zip(nodes, said, strict=True))
        self.write(map(_text, said))

    def summary(self) -> Json:
        """All parts together; the plans of all their phases."""
        plans = [
            plan_entry(trial, trial.parts[0], self.entries[key], self.ended[key])
            for trial in self.run.trials
            for key in [(trial.id, trial.repeat)]
        ]
        trials = {(trial.id, trial.repeat): trial for trial in self.run.trials}
        return self.parts[-1] | {
            "status": "complete",
            "exit_status": 0,
            "trials": [entry for key in trials for entry in self.entries[key]],
            "plans": plans,
            "comparisons": compare(trials, plans, None),
            "findings": [finding for part in self.parts for finding in part["findings"]][:100],
            "warnings": [],
            "not_measured": [],
        }


def _text(record: Json) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


def simulate(path: Path, choice: Choice) -> Path:
    """Makes a results directory, and returns it."""
    run = run_of(choice)
    directory = RunDirectory(path)
    directory.write_configuration(run.effective)
    write_plan(path, run)
    nodes = [process.name for process in run.site.processes]
    clock = _Clock(random=np.random.default_rng(choice.seed))
    with (path / RECORDS).open("wb", buffering=1 << 20) as file:
        writer = _Writer(run, file)
        writer.begin(nodes, run.site.ports)
        for trial in run.trials:
            ranks = len(trial.parts[0].ranks)
            phases = phases_of(trial.pattern["name"], ranks, choice.seed)
            for batch, first in enumerate(range(0, len(phases), _BATCH)):
                some = list(enumerate(phases))[first : first + _BATCH]
                results = (_result(choice, trial, *numbered, clock) for numbered in some)
                lines = (line for one in results for line in _lines(one, choice, nodes))
                if batch % choice.summarized == 0:
                    writer.add(trial, lines)
                else:
                    writer.repeat(trial, some, lines)
            writer.end(trial, nodes)
    directory.write_summary(writer.summary())
    return path


def main() -> None:
    """Makes one from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--patterns", default="chain,pairs,aapc,ring")
    parser.add_argument("--times-every", type=int)
    parser.add_argument("--summary-every", type=int)
    args = parser.parse_args()
    choice = Choice(
        args.ranks,
        patterns=tuple(args.patterns.split(",")),
        times_every=args.times_every,
        summary_every=args.summary_every,
    )
    simulate(args.directory, choice)


if __name__ == "__main__":
    main()
