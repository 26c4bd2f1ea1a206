# SPDX-License-Identifier: BSD-3-Clause
"""Entries of the summary for phases, plans, clocks and ports.

records/summary_form.toml declares their keys, doc/reference/measures.md has the formulas. A key
without an observation is None.

A phase runs with the clock offsets that were known at its start. Later `clock` records report the
error of each node's offset in the phase, and the bound of this error (doc/reference/latency.md,
"Clocks").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from operator import mul
from typing import NamedTuple

import numpy as np

from ..base import transports
from ..base.measures import ANY, FRAMES, MEASURES, MESSAGES, RDMA, REDUCED, Reduce
from ..base.model import ONE_WAY, SCHEDULE, Device, Part, Run, Site, Trial
from ..records.rows import (
    NS_PER_US,
    Bools,
    Floats,
    Moment,
    NameIndex,
    Numbers,
    Pair,
    PhaseFlows,
    PhaseKey,
    PhaseRows,
    Rows,
    Times,
    phase_latency,
)
from ..records.schema import Record
from ..records.summary_form import Entry, PhaseEntry, PlanEntry, counts, filled
from . import measures as m
from .tester import (
    SHORT_SHARE_LAB,
    SHORT_SHARE_SITE,
    displaced_frames,
    host_limits,
    loss_location,
    starved,
    windows_off,
)

LOWEST_SHOWN = 5  # flows listed with the lowest interval relative to their mean

# States of a phase that nodes report; of several, the first one in this list counts.
_STATES: tuple[str, ...] = ("flooded", "stopped", "unreachable")


@cache
def _counted() -> list[tuple[str, str, str, Reduce, str]]:
    """Return the rule to compute each count of a phase: key, columns, reduction, transports.

    A rule is (key, column of flows, column of ports, reduction, transports that have the count).
    Measures declare the counts that clauses can judge, the form of the summary all other counts.
    """
    measures = [one for one in MEASURES.values() if one.reduce and "." not in one.entry]
    return [
        *((one.entry, one.flow, one.port, one.reduce, one.seen) for one in measures),
        *((key, column, "", "sum", seen) if table == "flow"
          else (key, "", column, "known" if table == "known" else "sum", seen)
          for key, table, column, seen in counts()),
    ]  # fmt: skip


class PhaseResults:
    """Builder of the results of each phase, from its rows and the run's nodes and ports."""

    def __init__(self, run: Run) -> None:
        """Prepare the results of a run, before its first record."""
        self.clocks = ClockTable(
            {port.name: node.name for node in run.site.processes for port in node.ports}
        )
        self._hellos: list[Entry] = []
        self._in_lab = run.site.launcher.in_lab
        self._order = {process.name: i for i, process in enumerate(run.site.processes)}
        self.opened: dict[tuple[str, str], Record] = {}  # `port-open` records by port and transport
        self._machines: dict[str, str] = {}  # machine by node
        self._lines: dict[tuple[int, int, str], dict[str, int]] = {}  # line rates of ports

    def greet(self, record: Record) -> None:
        """Store a node's `hello` record."""
        self._hellos.append(filled("NodeEntry", record))
        machine = record.get("boot") or record.get("host") or record["node"]
        self._machines[record["node"]] = machine

    def nodes(self) -> list[Entry]:
        """Return the nodes for the summary, in the site's order."""
        return sorted(self._hellos, key=lambda hello: self._order[hello["node"]])

    def open_port(self, record: Record) -> None:
        """Store a node's `port-open` record."""
        self.opened[record["port"], record["transport"]] = record
        self._lines.clear()

    @np.errstate(all="ignore")  # a value beyond the range of floats was not observed
    def result(
        self,
        trial: Trial,
        part: Part,
        key: PhaseKey,
        rows: PhaseRows,
        misdelivered: m.MisdeliveredFrames,
    ) -> m.PhaseResult:
        """Return the result of a phase in one network, with the phase's entry for the summary."""
        lines, every = self._line_rates(trial, part, key), rows.flows()
        nodes, ports = rows.rows("phases"), rows.rows("ports")
        self.clocks.correct(rows.moment, every.times)
        states, reported_by = set(nodes.texts("state")), set(nodes.texts("node"))
        whole = "complete" if every.whole.all() and self._order.keys() <= reported_by else "partial"
        how = next((state for state in _STATES if state in states), whole)
        window_ns = m.greatest(nodes.floats("window_ns"))
        length_s = trial.window_s if window_ns is None else window_ns / 1e9
        window_s = length_s if trial.traffic == "stream" else None
        transport = transports.of(trial.transport)
        every = replace(
            every,
            settled=how not in m.UNSETTLED,
            window_off=windows_off(every, window_s),
            packets=m.packets_of(trial.options, self.opened, trial.transport, every)
            if transport.rdma
            else None,
        )
        busy = ~every.idle
        only_busy = trial.traffic == SCHEDULE and how == "complete" and busy.any()
        flows = every.select(busy) if only_busy and not busy.all() else every
        off = {pair for pair, is_off in zip(flows.pairs, flows.window_off, strict=True) if is_off}
        intervals = Intervals.of(rows.rows("intervals"), off, trial.traffic == "stream")
        shares = m.port_shares(flows, lines)
        starts = nodes.floats("start_run_ns")
        starts = starts[~np.isnan(starts)]  # agreed starts, in run time
        short = SHORT_SHARE_LAB if self._in_lab else SHORT_SHARE_SITE
        limits = host_limits(every, ports, nodes, short, window_s, lines)
        entry = filled(
            "PhaseEntry",
            setting(trial, part, key.phase, lines),
            _timing(nodes),
            _rates(flows, shares),
            _counts(flows, ports, transport),
            self._cpu(nodes, flows),
            window_s=length_s,
            started=self.clocks.utc(m.as_int(starts[0]) if len(starts) else None),
            reduced=reduced(flows),
            latency=phase_latency(flows.times),
            flows=len(flows),
            flows_observed=int(flows.whole.sum()),
            loss_location=filled("LossLocationEntry", ports=[]),  # filled in below
            intervals=interval_entry(intervals, off),
            state=how,
            tester_limited=limits,
        )
        result = m.PhaseResult(
            key, entry, flows, shares, lines, every, ports, misdelivered,
            burst_bps=burst_line_bps(trial, key.network, flows, lines), intervals=intervals,
        )  # fmt: skip
        alone = trial.traffic == "stream" and not trial.own
        if self._in_lab and alone and transport.reliable:
            named = {limit["port"] for limit in limits}
            found = starved(flows, shares, entry["intended_load"], nodes)
            entry["tester_limited"] += [limit for limit in found if limit["port"] not in named]
        result.displaced.update(displaced_frames(result))
        entry["loss_location"] = loss_location(result)
        return result

    def _cpu(self, nodes: Rows, flows: PhaseFlows) -> dict[str, float | bool | None]:
        """Return a phase's CPU times, and whether its workers polled."""
        names = set(nodes.texts("node"))
        workers = {hello["worker"] for hello in self._hellos if hello["node"] in names}
        cpu_s = m.machine_cpu_s(nodes, self._machines)
        delivered = m.total(flows["received_payload_bytes"])
        return {
            "cpu_s": cpu_s,
            "cpu_process_s": m.total(nodes.floats("cpu_s")),  # without the kernel's own CPU time
            "cpu_s_per_gb": m.ratio(cpu_s, delivered, m.GIGA),
            "polling": None if workers <= {None} else "poll" in workers,
        }

    def _line_rates(self, trial: Trial, part: Part, key: PhaseKey) -> dict[str, int]:
        """Return the layer-1 rates of a network's ports: as nodes report them, else the site's."""
        place = (key.trial, key.repeat, key.network)
        if place not in self._lines:
            lines = {}
            for port in part.ranks:
                opened = self.opened.get((port.name, trial.transport), {})
                lines[port.name] = opened.get("line_rate_bps") or port.line_rate_bps
            self._lines = {place: lines}
        return self._lines[place]


# --- parts of a phase's entry --------------------------------------------------------------------


def setting(trial: Trial, part: Part, phase: int, lines: Mapping[str, int]) -> Entry:
    """Return the settings of a phase for its entry in the summary: pattern, size, load, ranks."""
    size: int | list[int] = trial.sizes[0] if len(trial.sizes) == 1 else list(trial.sizes)
    networks = [one.network for one in trial.parts]
    return filled(
        "Setting",
        trial,
        trial=trial.id,
        pattern=trial.pattern["name"],
        parameters=dict(trial.parameters),
        network=part.network,
        concurrent_networks=networks if len(networks) > 1 else None,
        ranks=len(part.ranks),
        phase=phase,
        size=size,
        frame_bytes=size if trial.size_unit == "frame" else None,
        load=trial.load.given,
        intended_load=_asked_percent(trial, lines),
        load_unit="percent_of_line",
    )


def _asked_percent(trial: Trial, lines: Mapping[str, int]) -> float | None:
    """Return the intended load in percent of line; None if the trial has none.

    The result is the mean over the network's ports, whose line rates may differ.
    """
    load = trial.load
    if trial.traffic == SCHEDULE:
        return None  # dependent steps have no load
    if load.percent is not None:
        return load.percent
    bps = load.bps
    if load.fps is not None and trial.size_unit == "frame":
        frame = sum(trial.sizes) / len(trial.sizes)
        bps = load.fps * 8 * (frame + m.FRAME_OVERHEAD_L1)
    return m.mean(100.0 * bps / line for line in lines.values() if bps is not None and line)


def _timing(nodes: Rows) -> dict[str, object]:
    """Return the duration of a phase, and by how much its ranks' starts and stops differ."""
    elapsed_ns = m.greatest(nodes.floats("elapsed_ns"))
    drained = set(nodes.texts("drained"))
    skews = ("start_skew_us", "stop_skew_us", "skew_bound_us")
    return {
        "phase_name": next((name for name in nodes.texts("name") if name), None),
        "elapsed_s": None if elapsed_ns is None else elapsed_ns / 1e9,
        **{name: m.greatest(nodes.floats(name)) for name in skews},
        "drained": False if False in drained else (True if True in drained else None),
    }


def _rates(flows: PhaseFlows, shares: m.PortShares) -> dict[str, object]:
    """Return a phase's rates; flows with a wrong window count in the total only."""
    rates = m.flow_column(flows, "throughput")
    # The flows of a transfer share one window: the slowest flow is the last one to finish.
    order = np.lexsort((-m.or_zero(flows["received_last_run_ns"]), rates))
    known = order[: len(rates) - int(np.isnan(rates).sum())]
    received = shares.destination.values()
    figures = {
        one.entry.removeprefix("throughput."): m.reduced(m.flow_column(flows, one.flow), one.reduce)
        for one in MEASURES.values()
        if one.reduce and one.entry.startswith("throughput.")
    }
    return {
        "offered_load": m.mean(shares.offered.values()),
        "throughput": filled(
            "Throughput",
            figures,
            layer="payload",
            unit="Mbit/s",
            percent_of_line=m.mean(received),
            min_percent_of_line=m.least(received),
        ),
        "slowest": dict(zip(("src", "dst"), flows.pairs[known[0]], strict=True))
        if len(known)
        else None,
    }


def _counts(
    flows: PhaseFlows, ports: Rows, transport: transports.Transport
) -> dict[str, float | None]:
    """Return a phase's counts of frames, messages and bytes."""
    has = {ANY: True, FRAMES: transport.frames, MESSAGES: not transport.frames,
           RDMA: transport.rdma}  # fmt: skip
    found: dict[str, float | None] = {}
    for key, flow, port, reduce, seen in _counted():
        value = None
        if has[seen]:
            column = m.flow_column(flows, flow) if flow else m.port_column(ports, port)
            value = m.reduced(column, reduce)
        found[key] = None if value is None else int(value)
    found["loss_percent"] = m.ratio(found["lost_frames"], found["offered_frames"], 100)
    found["worst_loss_percent"] = m.greatest(m.loss_percent(flows)) if transport.frames else None
    return found


def reduced(flows: PhaseFlows) -> dict[str, float | None]:
    """Return by key the measures that reduce all flows to one value; None if a value is unknown."""
    return {one.key: m.reduced(m.flow_column(flows, one.flow), one.reduce) for one in REDUCED}


def burst_line_bps(
    trial: Trial, network: str | None, flows: PhaseFlows, lines: Mapping[str, int]
) -> Floats | None:
    """Return each flow's layer-1 rate during a burst; None if the traffic has no bursts.

    Bursts may offer ports more than their line rate. The rate is infinite in a network that
    shares its lines with byte streams, since these fill a line at any rate.
    """
    if trial.own and network not in trial.own:
        return np.full(len(flows), np.inf)
    if trial.traffic != "burst" or trial.load.percent is None:
        return None
    sources, places = flows.ends("src"), flows.ends("dst").place
    rates = (m.lines_of(sources, lines) * trial.load.percent / 100)[sources.place]
    if trial.pattern.get("load_of") == "receivers":
        return np.asarray(rates / np.bincount(places)[places])
    sent = m.or_zero(flows["sent_frames"])
    by_port = np.bincount(sources.place, np.where(flows.has_role("copy"), 0.0, sent))
    frames = trial.burst.frames if trial.burst else 1
    return np.asarray(rates * sent / (frames * np.ceil(by_port.max(initial=1.0) / frames)))


# --- interval results ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Intervals:
    """Interval results of a phase: the payload of each flow in each of its intervals."""

    pairs: Sequence[Pair]  # flows in order of first appearance
    flow: Numbers  # index into `pairs`, by interval (row of `spans`)
    spans: Rows
    mbps: Floats  # payload rate, by interval

    @classmethod
    def of(cls, spans: Rows, off: Set[Pair], is_stream: bool) -> Intervals:
        """Return a phase's interval results, without the last intervals of finished flows.

        A flow is finished in a transfer, and if its window was not as agreed (`off`). Its last
        interval with payload and all later intervals are left out.
        """
        places = NameIndex.of(spans.pairs())
        pairs, flow = places.names, places.place
        done = np.array([not is_stream or pair in off for pair in pairs], dtype=bool)
        kept = ~done[flow] | before_last(flow, spans.floats("payload_bytes") > 0)
        flow, spans = flow[kept], spans.select(kept)
        length_ms = spans.floats("to_ms") - spans.floats("from_ms")
        mbps = 8.0 * spans.floats("payload_bytes") / length_ms / 1e3
        return cls(pairs, flow, spans, mbps)

    @property
    def lowest(self) -> tuple[Numbers, Numbers]:
        """Return the numbers of flows, and the index of each flow's slowest interval."""
        order = np.lexsort((np.arange(len(self.flow)), self.mbps, self.flow))
        flows, first = np.unique(self.flow[order], return_index=True)
        return flows, order[first]


def before_last(flow: Numbers, something: Bools) -> Bools:
    """Return True for each interval before its flow's last interval with `something` true."""
    last = np.full(int(flow.max(initial=-1)) + 1, -1)
    last[flow[something]] = np.flatnonzero(something)
    return np.arange(len(flow)) < last[flow]


def interval_entry(intervals: Intervals, off: Set[Pair]) -> Entry:
    """Return a phase's slowest intervals for the summary; omit flows with a wrong window."""
    spans, size = intervals.spans, len(intervals.pairs)
    flows, first = intervals.lowest
    in_it = np.array([intervals.pairs[flow] not in off for flow in flows.tolist()], dtype=bool)
    flows, first = flows[in_it], first[in_it]
    lengths = spans.floats("to_ms") - spans.floats("from_ms")
    count, payload, span_ms = (
        np.bincount(intervals.flow, weights, size)[flows]
        for weights in (None, spans.floats("payload_bytes"), lengths)
    )
    low, mean = intervals.mbps[first], 8.0 * payload / span_ms / 1e3
    percent = np.where(mean > 0, 100.0 * low / mean, 100.0)

    def entry(place: int) -> Entry:
        src, dst = intervals.pairs[flows[place]]
        from_s, to_s = (float(spans.floats(n)[first[place]] / 1e3) for n in ("from_ms", "to_ms"))
        return {
            "src": src, "dst": dst, "mbps": float(low[place]),
            "percent_of_mean": float(percent[place]), "from_s": from_s, "to_s": to_s,
        }  # fmt: skip

    slowest = entry(int(low.argmin())) if len(flows) else None
    furthest = np.argsort(percent, kind="stable")[:LOWEST_SHOWN]
    return {
        "count": int(count.max(initial=0)),
        "min": None if slowest is None else slowest["mbps"],
        "slowest": slowest,
        "lowest": [entry(place) for place in furthest.tolist()],
    }


# --- plans ---------------------------------------------------------------------------------------

_OVER_PHASES: dict[str, Callable[[m.Values], float | None]] = {
    "min": m.least, "mean": m.mean, "max": m.greatest, "percent_of_line": m.mean,
    "min_percent_of_line": m.least, "total": m.total,
}  # fmt: skip
_SUMS = ("offered_frames", "delivered_frames", "offered_bytes", "delivered_bytes",
         "lost_frames", "host_dropped_frames")  # fmt: skip


def plan_entry(
    trial: Trial, entries: Sequence[PhaseEntry], ended: Mapping[str, Record]
) -> PlanEntry:
    """Return the entry of a plan: the totals of a trial in one network, over all its phases.

    Throughput counts only phases that are not tester-limited.
    """
    fair = [entry for entry in entries if not entry["tester_limited"]]
    known = [entry for entry in fair if entry["throughput"]["min"] is not None]
    worst = min(known, key=lambda entry: entry["throughput"]["min"], default=None)
    elapsed_ns = m.greatest(record.get("elapsed_ns") for record in ended.values())
    rates = {name: [entry["throughput"][name] for entry in fair] for name in _OVER_PHASES}
    throughput = {name: by(rates[name]) for name, by in _OVER_PHASES.items()}
    windows = [entry["window_s"] or 0.0 for entry in fair]
    if throughput["total"] is not None:  # the total is weighted by the windows
        weighted = sum(map(mul, rates["total"], windows))
        throughput["total"] = weighted / sum(windows) if any(windows) else None
    return filled(
        "PlanEntry",
        {name: m.total_int(entry[name] for entry in entries) for name in _SUMS},
        {name: m.total(entry[name] for entry in entries) for name in ("cpu_s", "cpu_process_s")},
        {"worst_phase": worst and worst["phase"], "slowest": worst and worst["slowest"]},
        entries[0],
        phases=trial.phases,
        phases_measured=len(entries),
        elapsed_s=None if elapsed_ns is None else elapsed_ns / 1e9,
        window_s=m.total(entry["window_s"] for entry in entries),
        throughput=filled("Throughput", throughput, layer="payload", unit="Mbit/s"),
    )


# --- clocks ---------------------------------------------------------------------------------------

ASKED = "asked for"


class NodeClock(NamedTuple):
    """Clock of a node in one phase, by its offset to run time (the run's common clock).

    The phase used the offset `used_ns`.
    """

    shift_ns: int  # offset found later less the offset used
    used_ns: int
    bound_ns: int


class ClockTable:
    """Table of the nodes' clocks in each phase, which corrects one-way delays."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        """Create a table without clocks; `nodes`: the node of each port."""
        self._nodes = nodes
        self._ready: dict[str, Record] = {}
        self._wall_offset_ns: int | None = None  # UTC - run time
        self._phases: dict[Moment, dict[str, NodeClock]] = {}
        self._bounds: dict[str, float | None] = {}  # max bound over all phases, by node

    def take_ready(self, record: Record) -> None:
        """Store the clock that a node's `ready` record describes."""
        self._ready[record["node"]] = record
        wall_ns, offset_ns = record.get("wall_clock_offset_ns"), record.get("clock_offset_ns")
        if self._wall_offset_ns is None and wall_ns is not None and offset_ns is not None:
            self._wall_offset_ns = wall_ns - offset_ns

    def utc(self, run_ns: int | None) -> str | None:
        """Convert run time (the run's common clock) to UTC, by the wall clock of one node."""
        if run_ns is None or self._wall_offset_ns is None:
            return None
        since_1970_ms = (run_ns + self._wall_offset_ns) // 1_000_000
        try:
            moment = datetime.fromtimestamp(since_1970_ms / 1e3, UTC)
        except (OverflowError, ValueError, OSError):  # a date that the calendar lacks
            return None
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def take(self, moment: Moment, nodes: Rows) -> None:
        """Store each node's clock in a phase, from the rows of `phases`."""
        names = ("clock_bound_ns", "clock_offset_ns", "clock_shift_ns")
        columns = (m.observed(nodes.floats(name)) for name in names)
        for node, bound_ns, offset_ns, shift_ns in zip(nodes.texts("node"), *columns, strict=True):
            worst_us = self._bounds.get(node, 0.0)
            if bound_ns is None or worst_us is None:
                self._bounds[node] = None
            else:
                self._bounds[node] = max(worst_us, bound_ns / NS_PER_US)
            if bound_ns is not None and offset_ns is not None and shift_ns is not None:
                clock = NodeClock(int(shift_ns), int(offset_ns - shift_ns), int(bound_ns))
                self._phases.setdefault(moment, {})[node] = clock

    def correct(self, moment: Moment, flows: Mapping[Pair, Times]) -> None:
        """Correct the one-way delays of each flow by the clocks of its two ends."""
        for pair, times in flows.items():
            if ONE_WAY in times and (shift := self.shift(moment, pair)):
                times[ONE_WAY] = times[ONE_WAY].moved_by(*shift)

    def forget(self, moment: Moment) -> None:
        """Remove the clocks of a phase."""
        self._phases.pop(moment, None)

    def shift(self, moment: Moment, ends: Pair) -> tuple[int, int] | None:
        """Return the correction of a flow's one-way delays and its bound, in ns.

        None if a clock is unknown.
        """
        src, dst = (self._nodes.get(end, "") for end in ends)
        if src == dst:
            return 0, 0
        clocks = self._phases.get(moment, {})
        source, destination = clocks.get(src), clocks.get(dst)
        if source is None or destination is None:
            return None
        ready = [self._ready.get(node, {}) for node in (src, dst)]
        ids = {record.get("clock_id") for record in ready}
        asked = any(record.get("clock_reason") == ASKED for record in ready)
        if len(ids) == 1 and None not in ids and not asked:
            # Both ends have the same clock, whose error cancels out.
            return source.used_ns - destination.used_ns, 0
        shift_ns = destination.shift_ns - source.shift_ns
        return shift_ns, source.bound_ns + destination.bound_ns

    def summary(self) -> list[Entry]:
        """Return the summary's `clocks`, an entry for each node."""
        return [
            filled(
                "ClockEntry",
                record,
                reason=record.get("clock_reason"),
                bound_us=self._bounds.get(node),
            )
            for node, record in self._ready.items()
        ]


def clock_sentence(clocks: Iterable[Entry]) -> str | None:
    """Return a sentence on the nodes' clocks; None if no clock is known."""
    nodes = [entry for entry in clocks if entry["clock"] is not None]
    if not nodes:
        return None
    ways = Counter((entry["clock"], entry["reason"]) for entry in nodes)
    words = [
        f"{clock} ({why})" + (f" in {count} of {len(nodes)} nodes" if len(ways) > 1 else "")
        for (clock, why), count in ways.items()
    ]
    bounds = [bound for entry in nodes if (bound := entry["bound_us"]) is not None]
    if len(bounds) < len(nodes):
        words.append("not known in some phase")
    elif max(bounds) > 0:
        words.append(f"each within {max(bounds):.3g} µs")
    return "clocks: " + "; ".join(words)


# --- ports over all phases ------------------------------------------------------------------------

ALIKE = 0.97  # two loads with a higher ratio count as equal

# Arrays over the ports of one phase: port numbers, percent of line rate (NaN: tester-limited), this
# rate relative to the phase's median port, and lost frames; NaN: unknown.
Numbered = tuple[Numbers, Floats, Floats, Floats]


def _directions(parts: Sequence[Numbered], size: int) -> Iterator[Entry]:
    """Yield for each port its statistics as source, or as destination, over all phases."""
    numbers, percents, relative, lost = map(np.concatenate, zip(*parts, strict=True))
    columns: list[Floats] = [
        *_medians(numbers, percents, size),
        _medians(numbers, relative, size)[0],
        np.bincount(numbers, lost, size).astype(np.float64),
    ]
    phases = np.bincount(numbers, minlength=size).tolist()
    known = zip(phases, *map(m.observed, columns), strict=True)
    for count, median_percent, least_percent, relative_to_median, frames in known:
        yield filled(
            "Direction",
            phases=count,
            median_percent_of_line=median_percent,
            min_percent_of_line=least_percent,
            relative_to_median=relative_to_median,
            lost_frames=m.as_int(frames) if count else None,
        )


def _medians(numbers: Numbers, values: Floats, ports: int) -> tuple[Floats, Floats]:
    """Return for each port the median and the min of its known values; NaN without values."""
    known = ~np.isnan(values)
    order = np.argsort(values[known])
    small = numbers[known][order].astype(np.min_scalar_type(ports))  # small integers sort faster
    ordered = np.append(values[known][order][np.argsort(small, kind="stable")], np.nan)
    count = np.bincount(numbers[known], minlength=ports)
    first = np.cumsum(count) - count
    middle = (ordered[first + np.maximum(count - 1, 0) // 2] + ordered[first + count // 2]) / 2
    none = np.where(count > 0, 0.0, np.nan)
    return middle + none, ordered[first] + none


class PortTable:
    """Collector of the ports' rates and losses, phase by phase, for the summary's `ports`."""

    def __init__(self, site: Site, opened: Mapping[tuple[str, str], Record]) -> None:
        """Create the table of the site's ports; `opened`: `port-open` records by port, transport.

        Ports have the order of the site, or of the device's ports.
        """
        self._opened = opened
        front = site.device.ports if site.device else ()
        order = {name: place for place, name in enumerate(front)}
        ports = sorted(site.ports, key=lambda port: order.get(port.switch_port or "", 0))
        self._one_host = site.lab is not None  # all ports share one machine's CPUs
        self._ports = {port.name: port for port in ports}
        self._number = {name: number for number, name in enumerate(self._ports)}
        # by transport: for each phase, statistics of sources and of destinations
        self._ends: dict[str, tuple[list[Numbered], list[Numbered]]] = {}
        self._slowest: dict[tuple[str, str], list[Entry]] = {}  # phases by port and transport
        self.downs: Counter[str] = Counter()  # times that a port's link went down

    def add(self, result: m.PhaseResult, transport: str) -> None:
        """Add the ports' rates and losses in one measured phase.

        Ranks in dependent steps have different loads, so that the rates of their ports are not
        compared. A tester-limited rate does not count.
        """
        alike = result.entry["traffic"] != SCHEDULE
        # Ports with a flow that begins or ends at a host that was the limit.
        limited = {limit["port"] for limit in result.entry["tester_limited"]}
        if limited:
            pairs = result.flows.pairs
            limited.update(*[ends for ends in pairs if self._one_host or limited & {*ends}])
        lost = m.lost_frames(result.flows)
        for number, name, shares in (
            (0, "src", result.shares.source),
            (1, "dst", result.shares.destination),
        ):
            lost_by_port = m.sum_by_port(result.flows.ends(name), lost)
            free = np.array([port not in limited for port in shares], dtype=bool)
            percents = np.array(list(shares.values()), dtype=np.float64)
            parts = percents / _intended(result, name, shares)
            middle = m.median(parts) if alike else None
            numbers = np.array([self._number[port] for port in shares], dtype=np.int64)
            self._ends.setdefault(transport, ([], []))[number].append((
                numbers,
                np.where(free, percents, np.nan),
                np.where(free, parts / middle, np.nan) if middle else np.full(len(shares), np.nan),
                np.array([lost_by_port[port] for port in shares], dtype=np.float64),
            ))  # fmt: skip
        slowest = result.entry["slowest"]
        if alike and slowest and slowest["src"] not in limited:
            place: Entry = {"trial": result.key.trial, "phase": result.key.phase}
            for port in {slowest["src"], slowest["dst"]}:
                self._slowest.setdefault((port, transport), []).append(place)

    def summary(self, suspects: Mapping[str, str]) -> list[Entry]:
        """Return an entry for each port and transport that had flows, in the site's order.

        `suspects`: the suspected fault of each port.
        """
        found = []
        for transport, directions in sorted(self._ends.items()):
            ends = (_directions(parts, len(self._ports)) for parts in directions)
            for (name, port), source, destination in zip(self._ports.items(), *ends, strict=True):
                opened = self._opened.get((name, transport), {})
                if source["phases"] or destination["phases"]:
                    found.append(filled(
                        "PortEntry",
                        opened,
                        as_source=source,
                        as_destination=destination,
                        port=name,
                        transport=transport,
                        network=port.network,
                        switch=port.switch,
                        switch_port=port.switch_port,
                        rdma=filled("RdmaPort", opened) if transports.of(transport).rdma else None,
                        link_downs=self.downs[name],
                        suspect=suspects.get(name),
                        slowest_phases=self._slowest.get((name, transport), []),
                        **({"rounds": list(port.rounds)} if port.rounds else {}),
                    ))  # fmt: skip
        return found


def chain_entries(
    device: Device, trials: Mapping[tuple[int, int], Trial], phases: Iterable[Entry]
) -> Iterator[Entry]:
    """Yield loss and delay of each phase through a chain of device ports, in total and per pass."""
    for phase in phases:
        (part,) = trials[phase["trial"], phase["repeat"]].parts
        places = sorted(device.ports.index(str(port.switch_port)) for port in part.ranks)
        passes = (places[-1] - places[0] + 1) // 2
        lost, offered = phase["lost_frames"], phase["offered_frames"]
        kept = None if lost is None or not offered else 1 - min(lost, offered) / offered
        trip = (phase["latency"]["round_trip"] or {}).get("p50")
        yield filled(
            "ChainEntry",
            phase,
            entry=device.ports[places[0]],
            exit=device.ports[places[-1]],
            passes=passes,
            lost_ppm_per_pass=None if kept is None else 1e6 * (1 - kept ** (1 / passes)),
            round_trip_us=trip,
            us_per_pass=None if trip is None else trip / (2 * passes),
        )


def _intended(result: m.PhaseResult, end: str, ports: Iterable[str]) -> Floats:
    """Return each port's intended load as a share of its line rate, at most 1.

    Return a single 1 if all ports had equal loads, or if the load is unknown.
    """
    flows, places = result.flows, result.flows.ends(end)
    rates = np.bincount(places.place, m.intended_line_bps(flows), len(places.names))
    shares = np.minimum(rates / m.lines_of(places, result.lines), 1.0)
    # The intended load of TCP is only what the network lets it send.
    is_load_known = (
        transports.of(result.entry["transport"]).frames and (flows["intended"] > 0).all()
    )
    alike = shares.min(initial=1.0) >= ALIKE * shares.max(initial=0.0)
    if not is_load_known or alike or np.isnan(shares).any():
        return np.ones(1)
    by_name = dict(zip(places.names, shares.tolist(), strict=True))
    return np.array([by_name[port] for port in ports])
