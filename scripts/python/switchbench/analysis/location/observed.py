# SPDX-License-Identifier: BSD-3-Clause
"""Observations of a run for the location of faults, collected phase by phase as columns.

Losses that hosts or foreign traffic explain are subtracted, and counted by port. Each flow and
phase takes about 100 bytes.
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
from ..tester import SOME_RANK, without_hosts
from .facts import Floats, IntervalRows, Ints, Misdelivered, Observations, PhaseFacts

PROBE = -1  # phase of a trial's connectivity check
KEPT_CLEAN = 8  # phases without loss that are kept during a run
FALLS = 0.7  # a flow whose lowest interval is below this share of its mean keeps its intervals
_RATES = ("intended_bps", "offered_bps", "delivered_bps")
_JUDGED = ("duplicated", "reordered", "corrupted")
_SPARSE = (*_JUDGED, "retransmitted")
Columns = dict[str, NDArray[Any]]  # columns in which some flow has a value
_DENSE = ("src", "dst", "sent", "delivered", "lost", "limited", *_RATES)


@dataclass
class _Phase:
    """Rows of one phase."""

    facts: PhaseFacts
    columns: Columns
    misdelivered: list[tuple[int, int, int, int]] = field(default_factory=list)
    # values of IntervalRows for these rows
    spans: Floats = field(default_factory=lambda: np.zeros((4, 0)))

    @property
    def is_bad(self) -> bool:
        """Return whether the counts of the phase show a fault."""
        wrong = self.columns.keys() & {"duplicated", "corrupted"}
        return bool(np.nansum(self.columns["lost"]) > 0 or self.misdelivered or wrong)


class ObservationTable:
    """Collector of the observations for `locate`, phase by phase."""

    def __init__(self, ports: Sequence[str], lab: bool) -> None:
        """Set up an empty collector; `lab`: all hosts share one machine."""
        self._names, self._lab = list(ports), lab
        self._number = {name: number for number, name in enumerate(ports)}
        self._phases: list[_Phase] = []
        self._unreachable: defaultdict[tuple[int, int], list[Record]] = defaultdict(list)
        self._trials: dict[tuple[int, int], Trial] = {}
        # Numbered pairs, by pattern and parts, then by network and phase.
        self._pairs: defaultdict[str, dict[tuple[str, int], Ints]] = defaultdict(dict)
        self.lines: dict[str, int] = {}  # layer-1 rates of ports, as nodes reported them
        # Lost frames that hosts explain and their phases, by port and cause.
        self.host_frames: Counter[tuple[str, str]] = Counter()
        self.host_phases: Counter[tuple[str, str]] = Counter()

    def add(self, result: m.PhaseResult, trial: Trial) -> dict[str, int]:
        """Add one measured phase; return by port the misdelivered frames of unknown flows."""
        flows = result.flows
        self.lines |= result.lines
        frames = transports.of(result.entry["transport"]).frames
        ends = [flows.ends(end) for end in ("src", "dst")]
        numbers = [np.array([*map(self._number.get, end.names)], np.int64) for end in ends]
        src, dst = (of[end.place] for of, end in zip(numbers, ends, strict=True))
        if trial.again is None:
            place = result.key.network, result.key.phase
            self._pairs[_flows_key(trial)][place] = src * len(self._names) + dst
        columns: Columns = {"src": src.astype(np.int32), "dst": dst.astype(np.int32)}
        columns |= dict.fromkeys(("sent", "delivered", "lost"), np.full(len(flows), nan))
        columns |= self._counts(result) if frames else {}
        columns |= _rates(result, trial)
        limited = {limit["port"] for limit in result.entry["tester_limited"]}
        every = bool(limited) and (SOME_RANK in limited or (self._lab and not frames))
        hosts = [self._number[name] for name in limited if name in self._number]
        columns["limited"] = np.isin(src, hosts) | np.isin(dst, hosts) | every | flows.window_off
        if not np.isnan(retransmitted := flows["retransmitted_segments"]).all():
            columns["retransmitted"] = retransmitted
        load = result.entry["intended_load"]
        facts = PhaseFacts(
            result.key,
            result.label + ("" if load is None else f" at {load:g} %"),
            result.entry["transport"],
            frames,
            fmean(result.frame_bytes) if frames and result.entry["frame_bytes"] else nan,
            result.entry["window_s"] or nan,
            nan if load is None else load / 100,
            trial.traffic == "burst",
            frozenset(limited),
        )
        phase = _Phase(facts, columns, spans=self._spans(result, columns))
        self._phases.append(phase)
        return self._unread(result, phase) if frames else {}

    def unreachable(self, record: Record, trial: Trial) -> None:
        """Record a pair whose probes in a connectivity check did not all arrive."""
        self._trials[trial.id, trial.repeat] = trial
        self._unreachable[trial.id, trial.repeat].append(record)

    def forget_clean(self) -> None:
        """Keep only the last few phases without loss, for a run that continues."""
        clean = [phase for phase in self._phases if not phase.is_bad]
        if len(clean) > 2 * KEPT_CLEAN:
            bad = [phase for phase in self._phases if phase.is_bad]
            self._phases = [*clean[-KEPT_CLEAN:], *bad]

    def observations(self) -> Observations:
        """Return the observations of all phases."""
        phases = [*self._phases, *self._checks()]
        sizes = [len(phase.columns["src"]) for phase in phases]
        begins = np.cumsum([0, *sizes]).tolist()
        columns = {name: _column(name, phases, sizes) for name in (*_DENSE, *_SPARSE)}
        for phase, begin, size in zip(self._phases, begins, sizes, strict=False):
            # Columns are kept once: a run has millions of rows.
            phase.columns |= {name: columns[name][begin : begin + size] for name in _DENSE}
        strays = [(number, *row) for number, one in enumerate(phases) for row in one.misdelivered]
        number, src, dst, at_port, frames = np.array(strays, np.int64).reshape(-1, 5).T
        spans = [np.zeros((4, 0))]
        spans += [
            phase.spans + np.array([[begin], [0], [0], [0]])
            for phase, begin in zip(phases, begins, strict=False)
        ]
        row, *times = np.concatenate(spans, axis=1)
        return Observations(
            phases=[phase.facts for phase in phases],
            phase=np.repeat(np.arange(len(phases)), sizes),
            **columns,
            misdelivered=Misdelivered(number, src, dst, at_port, frames.astype(float)),
            intervals=IntervalRows(row.astype(np.int64), *times),
        )

    def _counts(self, result: m.PhaseResult) -> Columns:
        """Return frames of each flow; NaN if its two ends contradict each other."""
        flows = result.flows
        lost, hosts = without_hosts(result)
        self.host_frames.update(hosts)
        self.host_phases.update(hosts.keys())
        wrong = np.isnan(lost) | (m.surplus_frames(flows) > 0) | ~flows.whole
        counts = {"sent": flows["sent_frames"], "delivered": flows["received_frames"], "lost": lost}
        found = {name: np.where(wrong, nan, column) for name, column in counts.items()}
        judged = {name: m.or_zero(flows[name]) for name in _JUDGED}
        return found | {name: column for name, column in judged.items() if column.any()}

    def _unread(self, result: m.PhaseResult, phase: _Phase) -> dict[str, int]:
        """Record misdelivered frames; return the frames of unknown flows by port."""
        came = zip(result.ports.texts("port"), result.ports.floats("misdelivered"), strict=True)
        left = {port: int(frames) for port, frames in came if frames > 0}
        for ends, frames in result.misdelivered.items():
            if all(end in self._number for end in ends):
                src, dst, at = (self._number[end or ""] for end in ends)
                phase.misdelivered.append((src, dst, at, frames))
                left[ends[2]] = left.get(ends[2], 0) - frames
        return {port: frames for port, frames in left.items() if frames > 0}

    def _spans(self, result: m.PhaseResult, columns: Columns) -> Floats:
        """Return the intervals of flows that lost frames or fell far below their mean."""
        spans = result.intervals
        if spans is None or not len(spans.flow):
            return np.zeros((4, 0))
        row_of = {pair: row for row, pair in enumerate(result.flows.pairs)}
        rows = np.array([row_of.get(pair, -1) for pair in spans.pairs], np.int64)
        count = np.maximum(np.bincount(spans.flow, minlength=len(rows)), 1)
        mean = np.bincount(spans.flow, spans.mbps, len(rows)) / count
        low = np.full(len(rows), np.inf)
        np.minimum.at(low, spans.flow, spans.mbps)
        kept = (rows >= 0) & ((columns["lost"][rows] > 0) | (low < FALLS * mean))
        which = np.flatnonzero(kept[spans.flow])
        flow = spans.flow[which]
        with np.errstate(all="ignore"):
            share = columns["delivered_bps"] / columns["intended_bps"]
            each = spans.mbps[which] / mean[flow] * share[rows[flow]]
        from_s, to_s = (spans.spans.floats(name)[which] / 1e3 for name in ("from_ms", "to_ms"))
        return np.array([rows[flow], from_s, to_s, each])

    def _checks(self) -> Iterator[_Phase]:
        """Yield the connectivity checks with lost probes, as rows of all pairs of the trial."""
        for key, records in self._unreachable.items():
            trial = self._trials[key]
            counts = {
                (r["src"], r["dst"]): (r.get("sent") or 0, r.get("received") or 0) for r in records
            }
            probes = max(sent for sent, _ in counts.values())
            framed = transports.of(trial.transport).frames and trial.size_unit == "frame"
            for part in trial.parts:
                names = [port.name for port in part.ranks]
                lost = {p: c for p, c in counts.items() if p[0] in names and p[1] in names}
                if not lost:
                    continue
                pairs = sorted(lost.keys() | self._pairs_of(trial, names))
                sent, came = np.array([lost.get(pair, (probes, probes)) for pair in pairs], float).T
                src, dst = np.array([[self._number[end] for end in pair] for pair in pairs]).T
                columns = {"src": src, "dst": dst, "sent": sent, "delivered": came}
                columns |= {"lost": np.maximum(sent - came, 0.0), "limited": sent < 0}
                facts = PhaseFacts(
                    PhaseKey(*key, part.network, PROBE),
                    f"trial {trial.id}'s connectivity check",
                    trial.transport,
                    True,
                    fmean(trial.sizes) if framed and trial.sizes else nan,
                )
                yield _Phase(facts, columns | dict.fromkeys(_RATES, np.full(len(pairs), nan)))

    def _pairs_of(self, trial: Trial, names: Sequence[str]) -> set[Pair]:
        """Return the pairs of a trial, as known from other trials of its pattern.

        Otherwise all pairs, if the trial has as many flows.
        """
        known = self._pairs.get(_flows_key(trial), {})
        if not known and trial.flows == len(names) * (len(names) - 1):
            return set(permutations(names, 2))
        every = np.concatenate([*known.values(), np.zeros(0, np.int64)])
        ends = zip(
            *(end.tolist() for end in np.divmod(np.unique(every), len(self._names))), strict=True
        )
        pairs = ((self._names[src], self._names[dst]) for src, dst in ends)
        return {pair for pair in pairs if set(pair) <= set(names)}


def _flows_key(trial: Trial) -> str:
    """Return a key that is equal for trials with the same flows."""
    return str((trial.pattern, [[port.name for port in part.ranks] for part in trial.parts]))


def _rates(result: m.PhaseResult, trial: Trial) -> dict[str, Floats]:
    """Return layer-1 rates in the window; NaN if flows wait for each other or end by themselves."""
    flows = result.flows
    if trial.traffic in WAITING or trial.traffic == "transfer":
        return dict.fromkeys(_RATES, np.full(len(flows), nan))
    offered, delivered = m.offered_line_bps(flows), m.delivered_line_bps(flows)
    intended = m.intended_line_bps(flows)
    if not transports.of(result.entry["transport"]).frames:
        # With closed load each flow asked for its share of its port's load.
        ports = flows.ends("dst" if trial.pattern.get("load_of") == "receivers" else "src")
        percent, bps = trial.load.percent, trial.load.bps
        lines = m.lines_of(ports, result.lines)
        asked = (
            np.full(len(lines), nan if bps is None else bps)
            if percent is None
            else lines * percent / 100
        )
        intended = (asked / np.maximum(np.bincount(ports.place, minlength=len(lines)), 1))[
            ports.place
        ]
    if result.burst_bps is not None:  # rate during a burst
        intended = offered = result.burst_bps
    off = flows.window_off | flows.has_role("copy")
    return {
        name: np.where(off, nan, rates)
        for name, rates in zip(_RATES, (intended, offered, delivered), strict=True)
    }


def _column(name: str, phases: Sequence[_Phase], sizes: Sequence[int]) -> Any:
    """Return one column of all phases; empty if no phase observed it."""
    kind = {"src": np.int64, "dst": np.int64, "limited": np.bool_}.get(name, np.float64)
    parts = [phase.columns.get(name) for phase in phases]
    if all(part is None for part in parts):
        return np.zeros(0, kind)
    empty = nan if name == "retransmitted" else 0.0
    filled = [np.full(size, empty) if part is None else part
              for part, size in zip(parts, sizes, strict=True)]  # fmt: skip
    return np.concatenate(filled).astype(kind)
