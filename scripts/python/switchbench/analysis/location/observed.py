# SPDX-License-Identifier: BSD-3-Clause
"""Observations of a run for the location of faults, gathered phase by phase as columns.

What the hosts or foreign traffic explain of a loss is taken off and kept by port (`HostLoss`). A
flow and phase takes about 100 bytes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import nan
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base import transports
from ...base.model import WAITING, Trial
from ...records.record_forms import Record
from ...records.rows import Pair, PhaseKey
from .. import measures as m
from ..tester import SOME_RANK, HostLoss, without_hosts
from .facts import Floats, IntervalRows, Ints, Misdelivered, Observations, PhaseFacts

PROBE = -1  # phase of a trial's connectivity check
KEPT_CLEAN = 8  # phases without loss that a run that goes on keeps
FALLS = 0.7  # a flow whose lowest interval is below this share of its mean keeps its intervals
_RATES = ("intended_bps", "offered_bps", "delivered_bps")
_SPARSE = ("duplicated", "reordered", "corrupted", "retransmitted")
Columns = dict[str, NDArray[Any]]  # without those of which no flow has any
_DENSE = ("src", "dst", "sent", "delivered", "lost", "limited", *_RATES)
_COLUMNS = (*_DENSE, *_SPARSE)


@dataclass(frozen=True)
class PortFrames:
    """Frames counted at a port in one phase."""

    key: PhaseKey
    label: str
    transport: str
    port: str
    frames: int


@dataclass
class _Phase:
    """Rows of one phase."""

    facts: PhaseFacts
    columns: Columns
    misdelivered: list[tuple[int, int, int, int]] = field(default_factory=list)
    intervals: tuple[Ints, Floats, Floats, Floats] | None = None  # row within the phase, ...


class ObservationTable:
    """Gathers, phase by phase, what `locate` is asked about."""

    def __init__(self, ports: Sequence[str], lab: bool) -> None:
        """Start empty. `lab`: all hosts share one machine."""
        self._names, self._lab = list(ports), lab
        self._number = {name: number for number, name in enumerate(ports)}
        self._phases: list[_Phase] = []
        self._unreachable: dict[tuple[int, int], list[Record]] = defaultdict(list)
        self._trials: dict[tuple[int, int], Trial] = {}
        # By pattern and parts, then by network and phase: pairs, numbered.
        self._pairs: dict[str, dict[tuple[str, int], Ints]] = defaultdict(dict)
        self.lines: dict[str, int] = {}  # layer-1 rates of ports as nodes resolved them
        self.host_losses: list[tuple[PhaseKey, HostLoss]] = []
        self.unread: list[PortFrames] = []  # misdelivered frames whose flow is not known

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(len(phase.columns["src"]) for phase in self._phases)

    def add(self, result: m.PhaseResult, trial: Trial) -> None:
        """Take one measured phase."""
        flows = result.flows
        self.lines |= result.lines
        transport = transports.of(result.entry["transport"])
        src, dst = (self._numbers(flows.ends(end)) for end in ("src", "dst"))
        columns: Columns = {"src": src.astype(np.int32), "dst": dst.astype(np.int32)}
        if trial.again is None:
            place = result.key.network, result.key.phase
            self._pairs[_flows_key(trial)][place] = src * len(self._names) + dst
        none = dict.fromkeys(("sent", "delivered", "lost"), np.full(len(flows), np.nan))
        columns |= self._counts(result) if transport.frames else none
        columns |= self._rates(result, trial)
        limited = {limit["port"] for limit in result.entry["tester_limited"]}
        every = bool(limited) and (SOME_RANK in limited or (self._lab and not transport.frames))
        hosts = [self._number[name] for name in limited if name in self._number]
        ends = [np.isin(end, hosts) for end in (src, dst)]
        columns["limited"] = ends[0] | ends[1] | every | flows.window_off
        retransmitted = flows["retransmitted_segments"]
        if not np.isnan(retransmitted).all():
            columns["retransmitted"] = retransmitted
        phase = _Phase(self._facts(result, trial, transport.frames, limited), columns)
        if transport.frames:
            self._take_misdelivered(result, phase)
        self._take_intervals(result, phase)
        self._phases.append(phase)

    def unreachable(self, record: Record, trial: Trial) -> None:
        """Take a pair of which a connectivity check's probes did not all arrive."""
        self._trials[trial.id, trial.repeat] = trial
        self._unreachable[trial.id, trial.repeat].append(record)

    def forget_clean(self) -> None:
        """Of the phases in which nothing was lost keep the last few: for a run that goes on."""
        bad = [phase for phase in self._phases if _is_bad(phase)]
        if len(self._phases) - len(bad) > 2 * KEPT_CLEAN:
            clean = [phase for phase in self._phases if not _is_bad(phase)][-KEPT_CLEAN:]
            self._phases = [*clean, *bad]

    def observations(self) -> Observations:
        """Return all rows."""
        phases = [*self._phases, *self._checks()]
        sizes = [len(phase.columns["src"]) for phase in phases]
        begins = np.cumsum([0, *sizes])
        columns = {name: _column(name, phases, sizes) for name in _COLUMNS}
        for phase, begin, size in zip(self._phases, begins, sizes, strict=False):
            # Held once: a run has millions of rows.
            phase.columns |= {name: columns[name][begin : begin + size] for name in _DENSE}
        misdelivered = [
            (number, *row) for number, phase in enumerate(phases) for row in phase.misdelivered
        ]
        found = np.array(misdelivered, np.int64).reshape(-1, 5).T
        timed = [
            (phase, phase.intervals, begin)
            for phase, begin in zip(phases, begins, strict=False)
            if phase.intervals is not None
        ]
        rows = [spans[0] + begin for _, spans, begin in timed]
        intervals = IntervalRows()
        if timed:
            times = [np.concatenate([spans[i] for _, spans, _ in timed]) for i in (1, 2, 3)]
            intervals = IntervalRows(np.concatenate(rows), *times)
            ends = np.cumsum([0, *map(len, rows)])
            for (phase, spans, _), begin, end in zip(timed, ends[:-1], ends[1:], strict=True):
                from_s, to_s, share = (column[begin:end] for column in times)
                phase.intervals = spans[0], from_s, to_s, share
        return Observations(
            phases=[phase.facts for phase in phases],
            phase=np.repeat(np.arange(len(phases)), sizes),
            **columns,
            misdelivered=Misdelivered(
                phase=found[0],
                src=found[1],
                dst=found[2],
                at_port=found[3],
                frames=found[4].astype(np.float64),
            ),
            intervals=intervals,
        )

    def _numbers(self, ports: Any) -> Ints:
        numbers = np.array([self._number[port] for port in ports.names], np.int64)
        found: Ints = numbers[ports.place] if len(numbers) else numbers
        return found

    def _facts(
        self, result: m.PhaseResult, trial: Trial, frames: bool, limited: set[str]
    ) -> PhaseFacts:
        load = result.entry["intended_load"]
        words = f" at {load:g} %" if load is not None else ""
        return PhaseFacts(
            result.key,
            f"{result.label}{words}",
            result.entry["transport"],
            frames,
            fmean(result.frame_bytes) if frames and result.entry["frame_bytes"] else nan,
            result.entry["window_s"] or nan,
            nan if load is None else load / 100,
            trial.traffic == "burst",
            frozenset(limited),
        )

    def _counts(self, result: m.PhaseResult) -> Columns:
        """Return frames of each flow; NaN where its two ends contradict each other."""
        flows = result.flows
        lost, losses = without_hosts(result)
        self.host_losses += [(result.key, loss) for loss in losses]
        sent, delivered = flows["sent_frames"].copy(), flows["received_frames"].copy()
        wrong = np.isnan(lost) | (m.surplus_frames(flows) > 0) | ~flows.whole
        for column in (sent, delivered, lost):
            column[wrong] = np.nan
        found: Columns = {"sent": sent, "delivered": delivered, "lost": lost}
        for name in ("duplicated", "reordered", "corrupted"):
            said = m.or_zero(flows[name])
            if said.any():
                found[name] = said
        return found

    def _rates(self, result: m.PhaseResult, trial: Trial) -> dict[str, Floats]:
        """Return layer-1 rates in the window; NaN where flows wait for each other or for an end."""
        flows = result.flows
        if trial.traffic in WAITING or trial.traffic == "transfer":
            return dict.fromkeys(_RATES, np.full(len(flows), np.nan))
        offered, delivered = m.offered_line_bps(flows), m.delivered_line_bps(flows)
        intended = m.intended_line_bps(flows)
        if not transports.of(result.entry["transport"]).frames:
            intended = _asked_bps(result, trial)
        if result.burst_bps is not None:  # while a burst lasts
            intended = offered = result.burst_bps
        off = flows.window_off | flows.has_role("copy")
        return {
            name: np.where(off, np.nan, rates)
            for name, rates in zip(_RATES, (intended, offered, delivered), strict=True)
        }

    def _take_misdelivered(self, result: m.PhaseResult, phase: _Phase) -> None:
        left = Counter[str]()
        came = zip(result.ports.texts("port"), result.ports.floats("misdelivered"), strict=True)
        left.update({port: int(frames) for port, frames in came if frames > 0})
        for (src, dst, at), frames in result.misdelivered.items():
            if src in self._number and dst in self._number and at in self._number:
                row = (self._number[src], self._number[dst], self._number[at], frames)
                phase.misdelivered.append(row)
                left[at] -= frames
        facts = phase.facts
        self.unread += [
            PortFrames(facts.key, facts.label, facts.transport, port, frames)
            for port, frames in left.items()
            if frames > 0
        ]

    def _take_intervals(self, result: m.PhaseResult, phase: _Phase) -> None:
        """Keep the intervals of flows that lost frames or fell far below their mean."""
        spans = result.intervals
        if spans is None or not len(spans.flow):
            return
        row_of = {pair: row for row, pair in enumerate(result.flows.pairs)}
        rows = np.array([row_of.get(pair, -1) for pair in spans.pairs], np.int64)
        count = np.maximum(np.bincount(spans.flow, minlength=len(rows)), 1)
        mean = np.bincount(spans.flow, spans.mbps, len(rows)) / count
        low = np.full(len(rows), np.inf)
        np.minimum.at(low, spans.flow, spans.mbps)
        lost = phase.columns["lost"][rows] > 0
        kept = (rows >= 0) & (lost | (low < FALLS * mean))
        which = np.flatnonzero(kept[spans.flow])
        if not len(which):
            return
        flow = spans.flow[which]
        with np.errstate(all="ignore"):
            share = phase.columns["delivered_bps"] / phase.columns["intended_bps"]
            each = spans.mbps[which] / mean[flow] * share[rows[flow]]
        from_s, to_s = (spans.spans.floats(name)[which] / 1e3 for name in ("from_ms", "to_ms"))
        phase.intervals = (rows[flow].astype(np.int32), from_s, to_s, each)

    def _checks(self) -> Iterator[_Phase]:
        """Yield the connectivity checks in which probes were lost: all pairs of the trial."""
        for key, records in self._unreachable.items():
            trial = self._trials[key]
            counts = {
                (r["src"], r["dst"]): (r.get("sent") or 0, r.get("received") or 0) for r in records
            }
            probes = max(sent for sent, _ in counts.values())
            for part in trial.parts:
                names = [port.name for port in part.ranks]
                lost = {p: c for p, c in counts.items() if p[0] in names and p[1] in names}
                if not lost:
                    continue
                pairs = sorted(lost.keys() | self._pairs_of(trial, names))
                sent, came = np.array(
                    [lost.get(pair, (probes, probes)) for pair in pairs], np.float64
                ).T
                framed = transports.of(trial.transport).frames
                sizes = trial.sizes if framed and trial.size_unit == "frame" else ()
                facts = PhaseFacts(
                    PhaseKey(*key, part.network, PROBE),
                    f"trial {trial.id}'s connectivity check",
                    trial.transport,
                    True,
                    fmean(sizes) if sizes else nan,
                )
                src, dst = np.array([[self._number[end] for end in pair] for pair in pairs]).T
                none = np.full(len(pairs), np.nan)
                yield _Phase(
                    facts,
                    {
                        **dict.fromkeys(_RATES, none),
                        "src": src,
                        "dst": dst,
                        "sent": sent,
                        "delivered": came,
                        "lost": np.maximum(sent - came, 0.0),
                        "limited": np.zeros(len(pairs), bool),
                    },
                )

    def _pairs_of(self, trial: Trial, names: Sequence[str]) -> set[Pair]:
        """Return the pairs of a trial as far as other trials of its pattern tell.

        Or as all pairs are its flows.
        """
        known = self._pairs.get(_flows_key(trial), {})
        if not known and trial.flows == len(names) * (len(names) - 1):
            return set(permutations(names, 2))
        numbers = [self._number[name] for name in names]
        every = np.concatenate([*known.values(), np.zeros(0, np.int64)])
        src, dst = np.divmod(np.unique(every), len(self._names))
        here = np.isin(src, numbers) & np.isin(dst, numbers)
        ends = zip(src[here].tolist(), dst[here].tolist(), strict=True)
        return {(self._names[s], self._names[d]) for s, d in ends}


def _is_bad(phase: _Phase) -> bool:
    """Return whether something went wrong in a phase, as its counts tell."""
    wrong = phase.columns.keys() & {"duplicated", "corrupted"}
    return bool(np.nansum(phase.columns["lost"]) > 0 or phase.misdelivered or wrong)


def _flows_key(trial: Trial) -> str:
    """Return what trials of the same flows have in common."""
    return str((trial.pattern, [[port.name for port in part.ranks] for part in trial.parts]))


def _asked_bps(result: m.PhaseResult, trial: Trial) -> Floats:
    """Return what was asked of each flow of a closed load: its share of its port's load."""
    flows = result.flows
    ports = flows.ends("dst" if trial.pattern.get("load_of") == "receivers" else "src")
    lines = m.lines_of(ports, result.lines)
    load = trial.load
    if load.percent is not None:
        asked = lines * load.percent / 100
    elif load.bps is not None:
        asked = np.full(len(lines), float(load.bps))
    else:
        return np.full(len(flows), np.nan)
    share = np.bincount(ports.place, minlength=len(lines))
    found: Floats = (asked / np.maximum(share, 1))[ports.place]
    return found


def _column(name: str, phases: Sequence[_Phase], sizes: Sequence[int]) -> Any:
    """Return one column of all phases; empty where no phase observed it."""
    found = [phase.columns.get(name) for phase in phases]
    if name in _SPARSE and all(column is None for column in found):
        return np.zeros(0)
    empty = np.nan if name == "retransmitted" else 0.0
    parts = [
        np.full(size, empty) if column is None else column
        for column, size in zip(found, sizes, strict=True)
    ]
    whole = np.concatenate(parts) if parts else np.zeros(0)
    if name in ("src", "dst"):
        return whole.astype(np.int64)
    return whole.astype(np.bool_) if name == "limited" else whole.astype(np.float64)
