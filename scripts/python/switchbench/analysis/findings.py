# SPDX-License-Identifier: BSD-3-Clause
"""What went wrong, by name: kind, flow or port, count, and a sentence (doc/reference/measures.md).

Counts of frames say what happened to each flow; a finding says what that means. Each rests on
counts alone and is made only where they allow no other reading: what they leave open is said as
open (a loss stays a loss). What TCP repeats is not a finding; what it never brought is.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base import transports
from ..base.model import Trial
from ..records.document.findings import FindingEntry
from ..records.flows import Pair, PhaseFlows, Places
from ..records.record_forms import Record
from . import measures as m
from .bottleneck import LOSING, Shares, group_of_port, locate, shares_of
from .finding import MOST_FLOWS, ORDER, STEP, Finding, LoadPoint, by_flow, finding
from .loss_location import without_hosts
from .oversubscribed import by_port, expected_losses
from .strays import FlowOutcome, read_strays

SLOW = 0.8  # a port is slow that takes less than this, and gives less, of what was intended
CLEAN = 0.002  # a load that loses a smaller one is carried
COLLAPSED = 0.8  # of what a smaller load got through that was carried
HALVED = 0.55  # of what a smaller load got through, whatever that lost


@dataclass
class _Reach:
    """Whether anything comes through a port, over all phases."""

    tried: Counter[str] = field(default_factory=Counter)  # flows measured, by port
    failed: Counter[Pair] = field(default_factory=Counter)  # times nothing came
    lost: Counter[Pair] = field(default_factory=Counter)
    probed: int = 0  # flows of the largest trial of which a probe failed

    def dead(self) -> dict[str, set[Pair]]:
        """The ports without which every failed flow is explained, by the flows each explains.

        A flow has two ends, so of several ports whose flows all failed those count that explain
        the most; two that explain the same are not told apart, and not named.
        """
        fails = Counter(port for pair, times in self.failed.items() for port in pair * times)
        if sum(fails.values()) >= max(sum(self.tried.values()), 2 * self.probed):
            return {}  # nothing came through anywhere: not one port's doing
        explained: dict[str, set[Pair]] = {
            port: set() for port, times in fails.items() if times >= self.tried[port]
        }
        for pair in self.failed:
            for port in explained.keys() & set(pair):
                explained[port].add(pair)
        dead: dict[str, set[Pair]] = {}
        while any(explained.values()):
            best = max(explained, key=lambda port: (len(explained[port]), port))
            taken = explained.pop(best)
            if taken not in explained.values():
                dead[best] = taken
            explained = {port: pairs - taken for port, pairs in explained.items()}
        return dead


class FindingTable:
    """Gathers, phase by phase, what the summary's `findings` says."""

    def __init__(self, groups: Mapping[str, Iterable[str]]) -> None:
        """Nothing found yet. `groups`: names of ports, as the site has them."""
        self._groups = group_of_port(groups)
        self._points: list[LoadPoint] = []
        self._numbers: dict[str, int] = {}  # of ports
        self._reach: dict[str, _Reach] = {}  # by transport
        self._unfinished: list[Finding] = []

    def add(self, result: m.PhaseResult) -> None:
        """Takes one measured phase."""
        if not transports.of(result.entry["transport"]).frames:
            self._unfinished += _unfinished(result)
            return
        flows, pairs = result.flows, result.flows.pairs
        count = m.lost_frames(flows)
        losing = np.flatnonzero(count > 0).tolist()
        lost = dict(zip((pairs[flow] for flow in losing), map(int, count[losing]), strict=True))
        astray = _Astray(result, lost)
        left = astray.less(lost)
        expected = expected_losses(result, left)
        left = {pair: n for pair, count in left.items() if (n := count - expected.get(pair, 0))}
        point = _point(result, left)
        src, dst = (self._numbers_of(flows.ends(end)) for end in ("src", "dst"))
        point.flows = array("Q", (src << 32 | dst).tolist())
        point.lowest = {pair: at for pair in left if (at := result.lowest_s.get(pair))}
        point.shares = shares_of(flows, left, self._groups)
        if not np.isnan(count).any():
            self._note_reach(point.transport, flows, lost)
        point.found += astray.findings(point)
        point.found += [
            finding(point, "oversubscribed", count, port=port)
            for port, count in by_port(expected).items()
            if count
        ]
        for kind, name in _OF_ENDS.items():
            said = m.or_zero(flows.destination.floats(name))
            some = np.flatnonzero(said).tolist()
            point.found += by_flow(point, kind, {pairs[flow]: int(said[flow]) for flow in some})
        self._points.append(point)

    def unreachable(self, record: Record, trial: Trial) -> None:
        """Takes a flow whose probe did not arrive: of the trial's others it did."""
        if record.get("received"):
            return
        reach = self._reach.setdefault(trial.transport, _Reach())
        pair = (record["src"], record["dst"])
        reach.failed[pair] += 1
        reach.lost[pair] += record.get("sent") or 0
        reach.probed = max(reach.probed, trial.flows)

    def forget_clean(self) -> None:
        """Of the phases in which nothing went wrong keeps the best of each load of the same flows:
        with these the others are compared."""
        kept: list[LoadPoint] = []
        best: dict[tuple[Any, ...], LoadPoint] = {}
        for point in self._points:
            if point.lost or point.found:
                kept.append(point)
                continue
            step = round(math.log(max(1.0, point.intended_bps), STEP))
            key = (point.setting, frozenset(point.flows), step)
            if key not in best or best[key].delivered_bps < point.delivered_bps:
                best[key] = point
        self._points = [*best.values(), *kept]

    def summary(self) -> list[FindingEntry]:
        """All findings, those that explain others first, then by count."""
        found, explained = self._dead()
        found += self._unfinished
        for point in self._points:
            found += point.found + self._losses(point, explained)
        found.sort(key=lambda finding: (ORDER[finding.kind], -finding.count))
        return [finding.entry() for finding in found]

    def _numbers_of(self, ports: Places[str]) -> NDArray[np.int64]:
        known = self._numbers
        numbers = [known.setdefault(port, len(known)) for port in ports.names]
        found: NDArray[np.int64] = np.array(numbers, dtype=np.int64)[ports.place]
        return found

    def _note_reach(self, transport: str, flows: PhaseFlows, lost: Mapping[Pair, int]) -> None:
        reach = self._reach.setdefault(transport, _Reach())
        sent, came = (end.floats("frames") for end in (flows.source, flows.destination))
        tried = flows.destination.seen & (m.or_zero(sent) > 0)
        reach.tried.update(
            chain.from_iterable(flows.pairs[flow] for flow in np.flatnonzero(tried).tolist())
        )
        for flow in np.flatnonzero(tried & (m.or_zero(came) == 0)).tolist():
            pair = flows.pairs[flow]
            if lost.get(pair):
                reach.failed[pair] += 1
                reach.lost[pair] += lost[pair]

    def _dead(self) -> tuple[list[Finding], set[tuple[str, Pair]]]:
        found: list[Finding] = []
        explained: set[tuple[str, Pair]] = set()
        for transport, reach in self._reach.items():
            for port, pairs in reach.dead().items():
                count = sum(reach.lost[pair] for pair in pairs)
                found.append(Finding("dead-port", count, port=port, transport=transport))
                explained |= {(transport, pair) for pair in pairs}
        return found, explained

    def _losses(self, point: LoadPoint, explained: set[tuple[str, Pair]]) -> list[Finding]:
        """What was lost in a phase: to the network's limit, to slow ports, else by flow."""
        limits = self._limits(point)
        if limits:
            return limits
        suspects = {} if point.overloaded else point.suspects
        found = [finding(point, "slow-port", n, port=port) for port, n in suspects.items()]
        rest = {
            pair: count
            for pair, count in point.lost.items()
            if (point.transport, pair) not in explained and pair[1] not in suspects
        }
        return found + by_flow(point, "loss", rest)

    def _limits(self, point: LoadPoint) -> list[Finding]:
        """Saturation or collapse, where a smaller load of the same flows was carried; and where, if
        it is in a group or between two."""
        if not point.overloaded:
            return []
        smaller = [other for other in self._points if point.is_larger_than(other)]
        carried = [other.delivered_bps for other in smaller if other.lost_share < CLEAN]
        lost = sum(point.lost.values())
        if point.delivered_bps < max(
            COLLAPSED * max(carried, default=0.0),
            HALVED * max((other.delivered_bps for other in smaller), default=0.0),
        ):
            return [finding(point, "collapse", lost)]
        if not carried:
            return []
        places = locate(point.shares, [other.shares for other in self._points])
        return [
            finding(point, "trunk" if len(groups) > 1 else "module-capacity", n, groups=groups)
            for groups, n in places.items()
        ] or [finding(point, "saturation", lost)]


# What a flow's destination counts.
_OF_ENDS = {
    "duplicate": "duplicated",
    "reorder": "reordered",
    "corrupt": "corrupted",
    "forged": "forged",
}


def _unfinished(result: m.PhaseResult) -> list[Finding]:
    """The flows of a transfer that were cut off: its time is not theirs."""
    if result.entry["traffic"] != "transfer" or result.entry["drained"] is not False:
        return []
    flows = result.flows
    sent, came = (
        m.or_zero(end.floats("payload_bytes")) for end in (flows.source, flows.destination)
    )
    missing = [
        (int(sent[flow] - came[flow]), flows.pairs[flow])
        for flow in np.flatnonzero(flows.whole).tolist()
    ]
    how = (result.key, result.label, result.entry["started"], None, result.entry["transport"])
    return [
        Finding("unfinished", count, pair, None, (), *how)
        for count, pair in sorted(missing, reverse=True)[:MOST_FLOWS]
        if count > 0
    ]


def _point(result: m.PhaseResult, lost: dict[Pair, int]) -> LoadPoint:
    """`lost`: without frames that came to another port. What of the losses hosts or other traffic
    may explain is not the network's."""
    entry, flows = result.entry, result.flows
    offered = m.offered_line_bps(flows)
    ports = flows.ends("dst")
    rates = offered if result.burst_bps is None else result.burst_bps
    asked = np.bincount(ports.place, rates, len(ports.names))
    fits = asked <= m.lines_of(ports, result.lines)
    counts = m.or_zero(np.array([*map(lost.get, flows.pairs)], dtype=np.float64))
    sent = m.or_zero(flows.source.floats("frames"))
    losing = fits[ports.place] & (counts > 0)
    if losing.any():
        losing &= without_hosts(result)[0] > LOSING * sent
    return LoadPoint(
        key=result.key,
        transport=entry["transport"],
        setting=(result.key.network, entry["transport"], entry["pattern"], str(entry["size"])),
        where=result.label,
        started=entry["started"],
        lowest={},
        flows=array("Q"),
        intended_bps=m.total(m.intended_line_bps(flows)) or 0.0,
        offered_bps=m.total(offered) or 0.0,
        delivered_bps=m.total(m.delivered_line_bps(flows)) or 0.0,
        shares=Shares(),
        lost=lost,
        lost_share=sum(lost.values()) / float(sent.sum()) if sent.any() else 0.0,
        overloaded=2 * int(losing.sum()) > len(flows),
        suspects=_slow(flows, counts, losing),
    )


def _slow(flows: PhaseFlows, lost: m.Floats, losing: m.Bools) -> dict[str, int]:
    """Ports that lose of every flow for them and take less from their hosts than intended."""
    if not losing.any():
        return {}
    sent = m.or_zero(flows.source.floats("frames"))
    intended = m.or_zero(flows.source.floats("intended"))
    held = sent < SLOW * intended
    short: dict[str, bool] = {}
    for flow in np.flatnonzero(flows.source.generates & (intended > 0)).tolist():
        src = flows.pairs[flow][0]
        short[src] = short.get(src, True) and bool(held[flow])
    ports = flows.ends("dst")
    kept = m.sum_by_port(ports, (~losing).astype(np.float64))
    offered = m.sum_by_port(ports, sent)
    return {
        port: int(gone)
        for port, gone in m.sum_by_port(ports, lost).items()
        if gone is not None
        and short.get(port)
        and not kept[port]
        and gone / max(1.0, offered[port] or 0.0) > 1.0 - SLOW
    }


class _Astray:
    """Frames of one phase that came to ports that are not theirs."""

    def __init__(self, result: m.PhaseResult, lost: Mapping[Pair, int]) -> None:
        """`lost`: frames that each flow's destination lacks; a flow may lack none."""
        names = result.ports.texts("port")
        self._read: dict[Pair, FlowOutcome] = {}
        self._open: Counter[str] = Counter()  # at a port, with no reading
        came = m.or_zero(result.ports.floats("misdelivered"))
        for port in np.flatnonzero(came).tolist():
            self._open[names[port]] = int(came[port])
        known = m.lost_frames(result.flows)
        unknown = {result.flows.pairs[flow] for flow in np.flatnonzero(np.isnan(known)).tolist()}
        by_flow: dict[Pair, dict[str, int]] = {}
        for (src, dst, at), count in result.strays.items():
            if src is not None and dst is not None:
                by_flow.setdefault((src, dst), {})[at] = count
        flows = set(result.flows.pairs) if by_flow else set()
        for pair, found in by_flow.items():
            if pair not in flows or pair in unknown:
                continue
            reading = read_strays(found, lost.get(pair, 0), set(names) - set(pair))
            if reading is not None:
                self._read[pair] = reading
                self._open.subtract(found)

    def less(self, lost: Mapping[Pair, int]) -> dict[Pair, int]:
        """The losses without what came to another port."""
        left = {
            pair: n - (self._read[pair].misled if pair in self._read else 0)
            for pair, n in lost.items()
        }
        return {pair: n for pair, n in left.items() if n}

    def findings(self, point: LoadPoint) -> list[Finding]:
        """What became of them."""
        flooded = {pair: reading.flooded for pair, reading in self._read.items()}
        wrong = {
            (*pair, stray.port): stray.frames
            for pair, reading in self._read.items()
            for stray in reading.wrong
        }
        unread = [
            finding(point, "misdelivered", n, port=port) for port, n in self._open.items() if n > 0
        ]
        return by_flow(point, "flood", flooded) + by_flow(point, "wrong-port", wrong) + unread
