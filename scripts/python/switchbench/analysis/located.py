# SPDX-License-Identifier: BSD-3-Clause
"""Computation of the summary's `location` and `findings`.

Tables, screens, report and clauses take their words from these entries (doc/reference/measures.md,
"Location" and "Findings"). Suspects come from one inference over all flows and their paths
(`location`). Other findings are losses by hosts, by foreign traffic and by oversubscription, and
losses that no element explains.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import nan
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base import format, transports
from ..base.measures import MEASURES
from ..base.model import SCHEDULE, WAITING, Run, Site, Trial
from ..records.collector import PROBE
from ..records.rows import Pair, PhaseKey
from ..records.schema import Record
from ..records.summary_form import (
    SEVERITIES,
    ClauseEntry,
    Entry,
    FindingEntry,
    LocationEntry,
    PhaseEntry,
    filled,
)
from . import measures as m
from .location.facts import (
    Element,
    Floats,
    IntervalRows,
    Ints,
    Misdelivered,
    Observations,
    PhaseFacts,
    Suspect,
)
from .location.inference import locate
from .location.wired import paths_of
from .tester import without_hosts

MOST_FLOWS = 100  # flows or ports with a finding of one kind
MOST_UNTESTED = 100
NOISE = 0.01  # share of lost frames that may stay unexplained by chance
UNITS = {"capacity": ("Mbit/s", 1e-6), "size": ("bytes", 1.0)}
TIMES = ("s", "us", "s/GB")  # no suspect explains measures in these units
WARNINGS = ("duplication", "reordering")  # suspects of these kinds are only warnings
CAUSES = {
    "sender_host": "{count} of its flows never left its host",
    "receiver_host": "{count} for it were dropped in its host",
    "other_traffic": "{count} for it were lost while frames of other senders took its line",
    "late_sender": "{count} for it may have met a full queue: senders fell behind and then sent "
    "all overdue frames at once",
}
ODD = {  # unit of the count, and sentence, by kind
    "unfinished": ("byte", "{count} of its transfer had not arrived when the transfer stalled"),
    "forged": ("frame", "{count} with sequence numbers above their sender's: not counted"),
    "misdelivered": ("frame", "{count} for other ports arrived here"),
}


class _Odd(NamedTuple):
    """Key of an anomaly: its kind, and the flow or port that has it."""

    kind: str
    ends: tuple[str, ...]


KEPT_CLEAN = 8  # phases without loss that stay in memory during a run
FALLS = 0.7  # intervals are kept of flows that fell below this share of their mean
_RATES = ("intended_bps", "offered_bps", "delivered_bps")
_JUDGED = ("duplicated", "reordered", "corrupted")
# Columns of Observations, each with the value that stands for a missing column.
_NONE: Mapping[str, float] = {
    **dict.fromkeys(("sent", "delivered", "lost", *_RATES, "retransmitted"), nan),
    **dict.fromkeys(_JUDGED, 0.0),
}  # fmt: skip
_KINDS = dict.fromkeys(_NONE, float) | {"src": int, "dst": int, "limited": bool}
Columns = dict[str, NDArray[Any]]


@dataclass
class _ObservedPhase:
    """Facts of one phase, and columns with one row for each of its flows."""

    facts: PhaseFacts
    columns: Columns
    # misdelivered frames: flow's row, port, count
    misdelivered: list[tuple[int, int, int]] = field(default_factory=list)
    # columns of IntervalRows
    spans: Floats = field(default_factory=lambda: np.zeros((4, 0)))

    @property
    def is_bad(self) -> bool:
        """Return whether frames were lost, misdelivered, duplicated or corrupted."""
        odd = any(self.columns[name].any() for name in ("duplicated", "corrupted"))
        return bool(np.nansum(self.columns["lost"]) > 0 or self.misdelivered or odd)


def _columns(flows: int, **known: NDArray[Any]) -> Columns:
    """Return a phase's columns of observations; a missing column repeats one default value."""
    return {name: np.broadcast_to(none, flows) for name, none in _NONE.items()} | known


class Locator:
    """Collector of the summary's `location` and `findings`, phase by phase."""

    def __init__(self, run: Run) -> None:
        """Create a collector for a run, before its first phase."""
        self._site = run.site
        self._lab = run.site.lab is not None  # in a lab all hosts share one machine
        self._names = [port.name for port in run.site.ports]
        self._number = {name: number for number, name in enumerate(self._names)}
        self._odd: Counter[_Odd] = Counter()
        self._odd_first: dict[_Odd, PhaseEntry] = {}  # first phase with each anomaly
        self._made: tuple[LocationEntry, list[FindingEntry]] | None = None
        self._phases: list[_ObservedPhase] = []
        # `unreachable` records of connectivity checks, by trial and repeat.
        self._unreachable: dict[tuple[int, int], tuple[Trial, list[Record]]] = {}
        # Pairs of each phase, by the trial's flows (_flows_key), then by network and phase.
        self._pairs: defaultdict[str, dict[tuple[str, int], Ints]] = defaultdict(dict)
        self.lines: dict[str, int] = {}  # layer-1 rates of ports, as nodes reported them
        # Lost frames due to hosts, and the phases with such losses, by port and cause.
        self.host_frames: Counter[tuple[str, str]] = Counter()
        self.host_phases: Counter[tuple[str, str]] = Counter()

    def add(self, result: m.PhaseResult, trial: Trial) -> None:
        """Add the flows and anomalies of one phase; skip losses that a suite's search provokes.

        A search provokes loss by bursts, or by more addresses than a table holds. This is no fault.
        """
        self._made = None
        # Flows with forged sequence numbers, or transfers that did not complete.
        flows, entry = result.flows, result.entry
        kind, counts = "forged", np.zeros(len(flows))
        if transports.of(entry["transport"]).frames:
            counts = m.or_zero(flows["forged"])
        # an incomplete transfer has no valid duration
        elif entry["traffic"] == "transfer" and entry["drained"] is False:
            sent, came = (m.or_zero(flows[f"{end}_payload_bytes"]) for end in ("sent", "received"))
            kind, counts = "unfinished", np.where(flows.whole, sent - came, 0.0)
        some = np.flatnonzero(counts > 0).tolist()
        odd = {_Odd(kind, flows.pairs[flow]): int(counts[flow]) for flow in some}
        searched = trial.search is not None and (
            trial.traffic != "stream" or "addresses" in trial.options
        )
        if trial.traffic != SCHEDULE and not searched:
            misdelivered = self._observe(result, trial).items()
            odd |= {_Odd("misdelivered", (port,)): frames for port, frames in misdelivered}
        self._odd.update(odd)
        self._odd_first = dict.fromkeys(odd, entry) | self._odd_first

    def unreachable(self, record: Record, trial: Trial) -> None:
        """Store a pair of ports between which probes of the connectivity check were lost."""
        self._made = None
        self._unreachable.setdefault((trial.id, trial.repeat), (trial, []))[1].append(record)

    def forget_clean(self) -> None:
        """Drop all phases without loss except the last few, to bound the memory of a long run."""
        clean = [phase for phase in self._phases if not phase.is_bad]
        if len(clean) > 2 * KEPT_CLEAN:
            bad = [phase for phase in self._phases if phase.is_bad]
            self._phases = [*clean[-KEPT_CLEAN:], *bad]

    def location(self) -> LocationEntry:
        """Return the summary's `location`: suspects, losses by cause, and the next test."""
        return self._make()[0]

    def findings(self) -> list[FindingEntry]:
        """Return the summary's `findings`, errors first."""
        return self._make()[1]

    def suspects_by_port(self) -> dict[str, str]:
        """Return for each suspected port a description of its most certain fault."""
        suspects = reversed(self.location()["suspects"])
        return {port: one["brief"] for one in suspects for port in one["ports"]}

    def explain(self, clauses: Sequence[ClauseEntry]) -> None:
        """Give a suspected fault as the reason of each failed clause, except clauses on times.

        A suspect at the ports of the clause's worst value comes first.
        """
        suspects = self.location()["suspects"]
        for clause in clauses:
            measure = MEASURES.get(clause["measure"])
            if clause["verdict"] != "FAIL" or clause["reason"] or not suspects:
                continue
            if measure is not None and measure.unit not in TIMES:
                at = clause.get("at")
                ends = {at["src"], at["dst"], at["port"]} if at else set()
                one = next((one for one in suspects if ends & {*one["ports"]}), suspects[0])
                clause["reason"] = f"suspect: {one['brief']}"

    @np.errstate(all="ignore")
    def _make(self) -> tuple[LocationEntry, list[FindingEntry]]:
        if self._made is not None:
            return self._made
        observations, paths = self.observations(), paths_of(self._site, self.lines)
        found = locate(observations, paths)
        test = found.next_test
        lost = float(np.nansum(observations.lost))
        explained = sum(one.frames for one in found.suspects)
        explained += sum(one.frames for one in found.expected)
        left = lost  # all losses count, also small ones
        if explained:
            left = min(found.unexplained, lost - explained)
            left = left if left > NOISE * lost else 0.0
        location: LocationEntry = {
            "paths": paths.source,
            "phases": len(observations.phases),
            "limited_phases": sum(bool(facts.tester_limited) for facts in observations.phases),
            "suspects": [_suspect(one, self._site) for one in found.suspects],
            "hosts": [
                {"port": port, "cause": cause, "frames": count,
                 "phases": self.host_phases[port, cause]}
                for (port, cause), count in self.host_frames.most_common()
            ],
            "expected": [
                filled(
                    "OversubscriptionEntry", one, element=filled("ElementEntry", one.element),
                    ports=_ports_at(one.element, self._site),
                    offered_mbps=one.offered_bps / m.MEGA, line_mbps=one.element.line_bps / m.MEGA,
                )
                for one in found.expected
            ],
            "unexplained_frames": round(max(left, 0.0)),
            "untested": [filled("ElementEntry", one) for one in found.untested[:MOST_UNTESTED]],
            "next_test": test and filled(
                "NextTestEntry", test, flows=[[*pair] for pair in test.flows], load=100 * test.load
            ),
            "problems": list(dict.fromkeys([*paths.problems, *found.problems])),
        }  # fmt: skip
        findings = [*map(_of_suspect, location["suspects"])]
        findings += _of_odd(self._odd, self._odd_first)
        if count := location["unexplained_frames"]:
            beside = " in addition to the suspects' losses" if location["suspects"] else ""
            words = f"{format.of(count, 'frame')} lost{beside}: no element explains them"
            findings.append(_finding("unexplained", "warning", count, words))
        findings += map(_of_host, location["hosts"])
        findings += map(_of_expected, location["expected"])
        findings.sort(key=lambda one: SEVERITIES.index(one["severity"]))
        self._made = location, findings
        return self._made

    def _observe(self, result: m.PhaseResult, trial: Trial) -> dict[str, int]:
        """Store the rows of a phase; return by port the misdelivered frames of unknown flows."""
        flows = result.flows
        self.lines |= result.lines
        frames = transports.of(result.entry["transport"]).frames
        ends = [flows.ends(end) for end in ("src", "dst")]
        numbers = [np.array([*map(self._number.get, end.names)], np.int64) for end in ends]
        src, dst = (of[end.place] for of, end in zip(numbers, ends, strict=True))
        if trial.again is None:
            place = result.key.network, result.key.phase
            self._pairs[_flows_key(trial)][place] = src * len(self._names) + dst
        columns = _columns(len(flows), src=src.astype(np.int32), dst=dst.astype(np.int32))
        if frames:  # counts are NaN if the two ends of a flow contradict each other
            lost, explained = without_hosts(result)
            self.host_frames.update(explained)
            self.host_phases.update(explained.keys())
            wrong = np.isnan(lost) | (m.surplus_frames(flows) > 0) | ~flows.whole
            counts = {"sent": flows["sent_frames"], "delivered": flows["received_frames"]}
            counts["lost"] = lost
            columns |= {name: np.where(wrong, nan, column) for name, column in counts.items()}
            judged = {name: m.or_zero(flows[name]) for name in _JUDGED}
            columns |= {name: column for name, column in judged.items() if column.any()}
        columns |= _rates(result, trial)
        limited = {limit["port"] for limit in result.entry["tester_limited"]}
        every = bool(limited) and self._lab and not frames
        hosts = [self._number[name] for name in limited if name in self._number]
        columns["limited"] = np.isin(src, hosts) | np.isin(dst, hosts) | every | flows.window_off
        if not np.isnan(retransmitted := flows["retransmitted_segments"]).all():
            columns["retransmitted"] = retransmitted
        load, size = result.entry["intended_load"], result.entry["frame_bytes"]
        facts = PhaseFacts(
            result.key,
            result.label + ("" if load is None else f" at {load:g} %"),
            result.entry["transport"],
            frames,
            float(np.mean(size)) if frames and size else nan,
            result.entry["window_s"] or nan,
            nan if load is None else load / 100,
            trial.traffic == "burst",
            frozenset(limited),
        )
        wanted = result.misdelivered or result.intervals is not None
        row_of = {pair: row for row, pair in enumerate(flows.pairs)} if wanted else {}
        phase = _ObservedPhase(facts, columns, spans=_spans(result, columns, row_of))
        self._phases.append(phase)
        if not frames:
            return {}
        came = zip(result.ports.texts("port"), result.ports.floats("misdelivered"), strict=True)
        left = {port: int(count) for port, count in came if count > 0}
        for (source, destination, at), count in result.misdelivered.items():
            row = row_of.get((source or "", destination or ""))
            if row is not None and at in self._number:
                phase.misdelivered.append((row, self._number[at], count))
                left[at] = left.get(at, 0) - count
        return {port: count for port, count in left.items() if count > 0}

    def observations(self) -> Observations:
        """Return the observations of all phases, joined in common arrays."""
        phases = [*self._phases, *self._checks()]
        sizes = [len(phase.columns["src"]) for phase in phases]
        begins = np.cumsum([0, *sizes]).tolist()
        columns = {
            name: np.concatenate([np.zeros(0, kind), *(one.columns[name] for one in phases)])
            for name, kind in _KINDS.items()
        }
        strays = []
        spans = [np.zeros((4, 0))]
        for phase, begin, size in zip(phases, begins, sizes, strict=False):
            # Each column exists once in memory: a run has millions of rows.
            phase.columns = {name: column[begin : begin + size] for name, column in columns.items()}
            strays += [(begin + row, at, frames) for row, at, frames in phase.misdelivered]
            spans.append(phase.spans + np.array([[begin], [0], [0], [0]]))
        row, at_port, frames = np.array(strays, np.int64).reshape(-1, 3).T
        flow, *times = np.concatenate(spans, axis=1)
        return Observations(
            phases=[phase.facts for phase in phases],
            phase=np.repeat(np.arange(len(phases)), sizes),
            **columns,
            misdelivered=Misdelivered(row, at_port, frames.astype(float)),
            intervals=IntervalRows(flow.astype(np.int64), *times),
        )

    def _checks(self) -> Iterator[_ObservedPhase]:
        """Yield connectivity checks with lost probes, with one row for each pair of the trial."""
        for key, (trial, records) in self._unreachable.items():
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
                lost_frames, limited = np.maximum(sent - came, 0.0), np.zeros(len(pairs), bool)
                mean_bytes = fmean(trial.sizes) if framed and trial.sizes else nan
                place, label = (*key, part.network, PROBE), f"trial {trial.id}'s connectivity check"
                facts = PhaseFacts(PhaseKey(*place), label, trial.transport, True, mean_bytes)
                columns = _columns(
                    len(pairs), src=src, dst=dst, sent=sent, delivered=came, lost=lost_frames,
                    limited=limited,
                )  # fmt: skip
                yield _ObservedPhase(facts, columns)

    def _pairs_of(self, trial: Trial, names: Sequence[str]) -> set[Pair]:
        """Return the pairs of ports of a trial, taken from phases of a trial with the same flows.

        If there is no such trial, return all pairs of ports, provided that the trial has as many
        flows.
        """
        known = self._pairs.get(_flows_key(trial), {})
        if not known and trial.flows == len(names) * (len(names) - 1):
            return set(permutations(names, 2))
        every = np.unique(np.concatenate([*known.values(), np.zeros(0, np.int64)]))
        ends = np.array(self._names)[np.stack(np.divmod(every, len(self._names)), axis=1)]
        return {(src, dst) for src, dst in ends.tolist() if {src, dst} <= set(names)}


def _flows_key(trial: Trial) -> str:
    """Return a key that is equal for trials of the same flows."""
    return str((trial.pattern, [[port.name for port in part.ranks] for part in trial.parts]))


def _spans(result: m.PhaseResult, columns: Columns, row_of: Mapping[Pair, int]) -> Floats:
    """Return the intervals of flows that lost frames or fell far below their mean rate."""
    spans = result.intervals
    if spans is None or not len(spans.flow):
        return np.zeros((4, 0))
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


def _rates(result: m.PhaseResult, trial: Trial) -> dict[str, Floats]:
    """Return the flows' layer-1 rates in the window; NaN if flows have no set rate or duration."""
    flows = result.flows
    if trial.traffic in WAITING or trial.traffic == "transfer":
        return dict.fromkeys(_RATES, np.full(len(flows), nan))
    offered, delivered = m.offered_line_bps(flows), m.delivered_line_bps(flows)
    intended = m.intended_line_bps(flows)
    if not transports.of(result.entry["transport"]).frames:
        # For closed-loop transports, a flow's intended rate is an equal share of its port's load.
        ports = flows.ends("dst" if trial.pattern.get("load_of") == "receivers" else "src")
        percent, bps = trial.load.percent, trial.load.bps
        lines = m.lines_of(ports, result.lines)
        loads = np.full(len(lines), bps or nan) if percent is None else lines * percent / 100
        share = loads / np.maximum(np.bincount(ports.place, minlength=len(lines)), 1)
        intended = share[ports.place]
    if result.burst_bps is not None:  # the intended rate applies within bursts
        intended = offered = result.burst_bps
    off = flows.window_off | flows.has_role("copy")
    return {
        name: np.where(off, nan, rates)
        for name, rates in zip(_RATES, (intended, offered, delivered), strict=True)
    }


# --- the summary's `location` --------------------------------------------------------------------


def _ports_at(element: Element, site: Site) -> list[str]:
    """Return the ports that belong to an element; [] for an element between switches.

    In a campaign, a host port becomes several ports, so that its host and cable have several.
    """
    if element.kind == "pair":
        return element.name.split(" -> ")
    at = element.peer or element.name
    names = {"host": element.name, "port": at, "cable": element.name.split(" - ")[0]}
    name = names.get(element.kind)
    return [
        port.name
        for port in site.ports
        if name and name in (port.name, port.tester, f"{port.switch}:{port.switch_port}")
    ]


def _suspect(one: Suspect, site: Site) -> Entry:
    unit, scale = UNITS.get(one.kind, ("%", 100.0))
    sizes = [None if math.isnan(size) else size * scale for size in (one.value, one.low, one.high)]
    first = min(one.phases, default=None)
    return filled(
        "SuspectEntry",
        one,
        element=filled("ElementEntry", one.element),
        alike=[filled("ElementEntry", other) for other in one.alike],
        ports=_ports_at(one.element, site),
        **dict(zip(("value", "low", "high"), sizes, strict=True)),
        unit="" if sizes[0] is None else unit,
        phases=len(one.phases),
        trial=first and first.trial,
        phase=None if first is None or first.phase < 0 else first.phase,
        transports=list(one.transports),
        **dict(zip(("from_s", "to_s"), one.when or (None, None), strict=True)),
        brief=one.brief(),
        evidence=one.evidence(),
        sentence=one.sentence(),
    )


# --- the summary's `findings` --------------------------------------------------------------------


def _finding(kind: str, severity: str, count: int, sentence: str, **more: object) -> FindingEntry:
    at = {"kind": kind, "severity": severity, "count": count, "sentence": sentence}
    return filled("FindingEntry", more, at, {"transport": ""})


def _of_suspect(one: Entry) -> FindingEntry:
    severity: str = "warning" if one["kind"] in WARNINGS else "error"
    names = ("src", "dst") if one["element"]["kind"] == "pair" else ("port",)
    ports = dict(zip(names, one["ports"], strict=False))
    return _finding(
        one["kind"], severity, one["frames"], one["sentence"], trial=one["trial"],
        transport=next(iter(one["transports"]), ""), phase=one["phase"], **ports,
        element=one["element"]["name"],
    )  # fmt: skip


def _of_odd(counts: Counter[_Odd], first: Mapping[_Odd, PhaseEntry]) -> Iterator[FindingEntry]:
    """Yield findings by kind of anomaly: the highest counts first, then one for all others."""
    for kind, (noun, words) in ODD.items():
        some = [one for one in counts.most_common() if one[0].kind == kind]
        for odd, count in some[:MOST_FLOWS]:
            entry, names = first[odd], ("src", "dst") if len(odd.ends) == 2 else ("port",)
            found = words.format(count=format.of(count, noun))
            yield _finding(
                kind, "error", count,
                f"{' -> '.join(odd.ends)}: {found}, in {m.phase_label(entry)}",
                **{name: entry[name] for name in ("transport", "trial", "phase")},
                **dict(zip(names, odd.ends, strict=True)),
            )  # fmt: skip
        if rest := sum(count for _, count in some[MOST_FLOWS:]):
            left = words.format(count=format.of(rest, noun))
            yield _finding(kind, "error", rest, f"{len(some) - MOST_FLOWS} more: {left}")


def _of_host(one: Entry) -> FindingEntry:
    cause = CAUSES[one["cause"]].format(count=format.of(one["frames"], "lost frame"))
    phases = format.of(one["phases"], "phase")
    sentence = f"{one['port']}: {cause}, in {phases}: no fault of the network"
    return _finding("host", "warning", one["frames"], sentence, port=one["port"])


def _of_expected(one: Entry) -> FindingEntry:
    name = " ".join((one["element"]["name"], one["element"]["direction"])).rstrip()
    rates = [format.bit_rate(m.MEGA * one[key]) for key in ("offered_mbps", "line_mbps")]
    sentence = (
        f"{name}: up to {rates[0]} offered to a line of {rates[1]}, "
        f"{format.of(one['frames'], 'frame')} lost as expected"
    )
    port = one["ports"][0] if len(one["ports"]) == 1 else None
    return _finding(
        "oversubscribed", "info", one["frames"], sentence, transport=one["transport"], port=port,
        element=one["element"]["name"],
    )  # fmt: skip
