# SPDX-License-Identifier: BSD-3-Clause
"""What the records of one phase in one network amount to, with what nodes said of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from ..base import transports
from ..base.model import SCHEDULE, Run, Trial
from ..records.document.summary import NodeEntry
from ..records.document.trials import (
    IntervalsEntry,
    Lowest,
    MostDisordered,
    PhaseEntry,
    ReorderingEntry,
)
from ..records.flows import Packets, Pair, PhaseFlows, PhaseRecords, Places
from ..records.latency import phase_latency
from ..records.record_forms import Record
from ..records.rows import Bools, Floats, Numbers, Rows
from . import measures as m
from .clocks import ClockTable
from .entries import (
    Cpu,
    PhaseContext,
    counts,
    cpu,
    rdma,
    setting,
    start_of,
    state,
    throughput,
    timing,
)
from .judge import reduced
from .loss_location import NOT_LOCATED, contradicted, displaced_frames, loss_location
from .oversubscribed import burst_line_bps
from .tester import SHORT_SHARE_LAB, SHORT_SHARE_SITE, host_limits, starved, windows_off

LOWEST_SHOWN = 5  # flows of a phase that fell the furthest below their own mean


@dataclass(frozen=True)
class Intervals:
    """The spans of a phase's flows, from one mark to the next."""

    pairs: Sequence[Pair]  # flows, in the order in which they were first heard of
    flow: Numbers  # of each span: its place in `pairs`
    spans: Rows
    mbps: Floats  # of each span

    @classmethod
    def of(cls, spans: Rows, off: Set[Pair], is_stream: bool) -> Intervals:
        """Return them without the last span in which something came and the empty ones behind it.

        Of a flow that is done: a transfer's, or one whose window was off (`off`).
        """
        places = Places.of([*spans.pairs()])
        pairs, flow = places.names, places.place
        done = np.array([not is_stream or pair in off for pair in pairs], dtype=bool)
        kept = ~done[flow] | _before_last(flow, spans.floats("payload_bytes") > 0, len(pairs))
        flow, spans = flow[kept], spans.taken(kept)
        length_ms = spans.floats("to_ms") - spans.floats("from_ms")
        mbps = 8.0 * spans.floats("payload_bytes") / length_ms / 1e3
        return cls(pairs, flow, spans, mbps)

    @property
    def lowest(self) -> dict[Pair, int]:
        """By flow: the span in which least came, of several the first."""
        order = np.lexsort((np.arange(len(self.flow)), self.mbps, self.flow))
        flows, first = np.unique(self.flow[order], return_index=True)
        spans = order[first].tolist()
        return {self.pairs[flow]: span for flow, span in zip(flows.tolist(), spans, strict=True)}


def _before_last(flow: Numbers, something: Bools, flows: int) -> Bools:
    """Return the spans before the last one of their flow in which something came."""
    last = np.full(flows, -1)
    last[flow[something]] = np.flatnonzero(something)
    found: Bools = np.arange(len(flow)) < last[flow]
    return found


def interval_entry(
    intervals: Intervals, lowest: Mapping[Pair, int], off: Set[Pair]
) -> IntervalsEntry:
    """Return the `intervals` of a phase's entry in the summary.

    Without flows whose window was off.
    """
    size = len(intervals.pairs)
    length_ms = intervals.spans.floats("to_ms") - intervals.spans.floats("from_ms")
    count = np.bincount(intervals.flow, minlength=size)
    payload = np.bincount(intervals.flow, intervals.spans.floats("payload_bytes"), size)
    span_ms = np.bincount(intervals.flow, length_ms, size)
    in_it = np.array([pair not in off for pair in intervals.pairs], dtype=bool) & (count > 0)
    mean = 8.0 * payload / np.where(span_ms > 0, span_ms, np.nan) / 1e3
    low = np.full(size, np.nan)
    for place, pair in enumerate(intervals.pairs):
        if pair in lowest:
            low[place] = intervals.mbps[lowest[pair]]
    percent = np.where(mean > 0, 100.0 * low / np.where(mean > 0, mean, 1.0), 100.0)

    def entry(place: int) -> Lowest:
        src, dst = intervals.pairs[place]
        span = lowest[src, dst]
        from_s, to_s = (
            float(intervals.spans.floats(name)[span] / 1e3) for name in ("from_ms", "to_ms")
        )
        return {
            "src": src,
            "dst": dst,
            "mbps": float(low[place]),
            "percent_of_mean": float(percent[place]),
            "from_s": from_s,
            "to_s": to_s,
        }

    known = np.flatnonzero(in_it)
    slowest = entry(int(known[low[known].argmin()])) if len(known) else None
    furthest = known[np.argsort(percent[known], kind="stable")][:LOWEST_SHOWN]
    return {
        "count": int(count[known].max()) if len(known) else 0,
        "length_s": m.median(span_ms[known] / count[known] / 1e3),
        "min": None if slowest is None else slowest["mbps"],
        "slowest": slowest,
        "lowest": [entry(place) for place in furthest.tolist()],
    }


class PhaseResults:
    """Makes results of phases, and knows the nodes and ports of the run for it."""

    def __init__(self, run: Run) -> None:
        """Nothing was said yet."""
        self.clocks = ClockTable(run.site)
        self._hellos: list[NodeEntry] = []
        self._in_lab = run.site.launcher.in_lab
        self._order = {process.name: i for i, process in enumerate(run.site.processes)}
        self._opened: dict[tuple[str, str], Record] = {}  # by port and transport
        self._machines: dict[str, str] = {}  # by node
        self._lines: dict[tuple[int, int, str], dict[str, int]] = {}  # of the last trial's part

    def greet(self, record: Record) -> None:
        """Take a `hello`."""
        self._hellos.append(
            {
                "node": record["node"],
                "host": record.get("host"),
                "version": record.get("version"),
                "protocol": record.get("protocol"),
                "cpus": record.get("cpus"),
                "workers": record.get("workers"),
                "worker": record.get("worker"),
                "cores": record.get("cores"),
            }
        )
        machine = record.get("boot") or record.get("host") or record["node"]
        self._machines[record["node"]] = machine

    def nodes(self) -> list[NodeEntry]:
        """Return the summary's nodes, in the site's order."""
        return sorted(self._hellos, key=lambda hello: self._order[hello["node"]])

    def open_port(self, record: Record) -> None:
        """Take a `port-open`."""
        self._opened[record["port"], record["transport"]] = record
        self._lines.clear()

    def result(self, place: PhaseContext, records: PhaseRecords, nodes: Rows) -> m.PhaseResult:
        """Return the phase's result with its entry of the summary."""
        trial, transport = place.trial, place.trial.transport
        moment = (place.key.trial, place.key.repeat, place.key.phase)
        lines, every = self._line_rates(place), records.flows()
        self.clocks.correct(moment, ((*pair, times) for pair, times in every.times.items()))
        how = state(every, nodes, self._order.keys())
        times = timing(place, nodes)
        window_s = times["window_s"] if trial.traffic == "stream" else None
        every = replace(
            every,
            settled=how not in m.UNSETTLED,
            window_off=windows_off(every, window_s),
            packets=self._packets(trial, every),
        )
        busy = ~every.idle
        only_busy = trial.traffic == SCHEDULE and how == "complete" and busy.any()
        flows = every.taken(busy) if only_busy and not busy.all() else every
        off = {pair for pair, is_off in zip(flows.pairs, flows.window_off, strict=True) if is_off}
        intervals = Intervals.of(records.spans, off, trial.traffic == "stream")
        lowest = intervals.lowest
        ports = records.ports
        shares = m.port_shares(flows, lines)
        short = SHORT_SHARE_LAB if self._in_lab else SHORT_SHARE_SITE
        computes = trial.scatter is not None and trial.scatter.compute > 0
        limits = host_limits(every, ports, nodes, short, window_s, lines, computes)
        entry: PhaseEntry = {
            **setting(place, lines),
            **times,
            "started": self.clocks.utc(start_of(nodes)),
            **throughput(flows, shares),
            **counts(flows, ports, transport),
            **rdma(flows, ports, transport),
            **cpu(flows, self._cpu(nodes)),
            "reduced": reduced(flows),
            "latency": phase_latency(flows.times),
            "flows": len(flows),
            "flows_observed": int(flows.whole.sum()),
            "loss_location": NOT_LOCATED,
            "reordering": disorder_entry(flows, transport),
            "intervals": interval_entry(intervals, lowest, off),
            "state": how,
            "tester_limited": [limit.entry() for limit in limits],
        }
        result = m.PhaseResult(
            place.key, entry, flows, shares, lines, every, ports, records.misdelivered,
            burst_bps=burst_line_bps(trial, place.key.network, flows, lines), intervals=intervals,
        )  # fmt: skip
        alone = trial.traffic == "stream" and not trial.own
        if self._in_lab and alone and transports.of(transport).reliable:
            named = {limit.port for limit in limits}
            found = starved(flows, shares, entry["intended_load"], nodes)
            entry["tester_limited"] += [x.entry() for x in found if x.port not in named]
        result.displaced.update(displaced_frames(result))
        entry["loss_location"] = loss_location(result)
        return result

    def _packets(self, trial: Trial, flows: PhaseFlows) -> Packets | None:
        if not transports.of(trial.transport).rdma:
            return None
        options = trial.options
        return m.packets_of(options, self._opened, trial.transport, flows)

    def _cpu(self, nodes: Rows) -> Cpu:
        names = set(nodes.texts("node"))
        workers = {hello["worker"] for hello in self._hellos if hello["node"] in names}
        polling = None if workers <= {None} else "poll" in workers
        return Cpu(m.machine_cpu_s(nodes, self._machines), m.process_cpu_s(nodes), polling)

    def _line_rates(self, place: PhaseContext) -> dict[str, int]:
        """Layer-1 rates: what the node resolved, else what the site says."""
        transport = place.trial.transport
        key = (place.key.trial, place.key.repeat, place.key.network)
        if key not in self._lines:
            self._lines = {
                key: {
                    port.name: self._opened.get((port.name, transport), {}).get("line_rate_bps")
                    or port.line_rate_bps
                    for port in place.part.ranks
                }
            }
        return self._lines[key]


def contradiction(result: m.PhaseResult) -> list[str]:
    """Return a sentence where the flows and the ports' counters contradict each other."""
    found = result.entry["loss_location"]
    if not contradicted(found):
        return []
    return [
        f"{result.label}: {found['lost_frames']:,} frames are lost by the flows' counts, "
        f"{found['counted_in_network']:,} in the network by the ports' counters: one of them is "
        "wrong, and it is unknown which loss of this phase is the network's"
    ]


def surplus(result: m.PhaseResult) -> list[str]:
    """Return a sentence for each flow that delivered more than it was offered."""
    found = m.surplus_frames(result.flows)
    return [
        f"{' -> '.join(result.flows.pairs[flow])}: {int(found[flow])} "
        f"{'frame' if found[flow] == 1 else 'frames'} more delivered than offered in {result.label}"
        for flow in found.nonzero()[0].tolist()
    ]


def disorder_entry(flows: PhaseFlows, transport: str) -> ReorderingEntry:
    """Return the `reordering` of a phase's entry in the summary.

    Nulls where frames are not seen.
    """
    end = flows.destination
    frames, extent = end.floats("frames"), end.floats("extent_max")
    delivered = m.total_int(frames) if transports.of(transport).frames else None
    if not delivered:
        return {
            "reordered_percent": None,
            "three_reordered_percent": None,
            "extent_mean": None,
            "extent_max": None,
            "worst": None,
        }
    counted = [end.floats(name) for name in ("reordered", "extent_sum", "three_reordered")]
    some = ~np.isnan([extent, *counted]).any(axis=0)
    reordered, extents, three = (int(counts[some].sum()) for counts in counted)
    shares = np.where(some, 100.0 * counted[0] / frames, np.nan)
    worst: MostDisordered | None = None
    if (shares > 0).any():
        place = int(np.nanargmax(shares))
        src, dst = flows.pairs[place]
        worst = {
            "src": src,
            "dst": dst,
            "reordered_percent": float(shares[place]),
            "extent_max": int(extent[place]),
        }
    return {
        "reordered_percent": 100.0 * reordered / delivered,
        "three_reordered_percent": 100.0 * three / delivered,
        "extent_mean": extents / reordered if reordered else None,
        "extent_max": int(extent[some].max(initial=0)),
        "worst": worst,
    }
