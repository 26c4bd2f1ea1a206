# SPDX-License-Identifier: BSD-3-Clause
"""summary.json from records.ndjson: one pass, one trial's flows in memory at a time.

Its form is records/document, its formulas are in doc/reference/measures.md.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base import transports
from ..base.format import of
from ..base.model import SCHEDULE, Run, Trial
from ..config.clauses import clauses_sha256
from ..records.directory import RECORDS, SCHEMA
from ..records.expected import Expected
from ..records.latency import Histogram, PhaseLatency, figures
from ..records.record_forms import DamagedRecord
from ..records.records import (
    Flow,
    NodePhase,
    PacketShape,
    PhaseKey,
    PhaseRecords,
    Record,
    add_flow,
    add_histogram,
    add_stray,
    key_of,
    node_phase_of,
    port_of,
    read_records,
    taking,
)
from ..records.switch_counters import compare_counters
from . import measures as m
from . import scatter, sweep
from .above_line import above_line, windows_above_line
from .clocks import ClockTable
from .entries import (
    Cpu,
    PhaseContext,
    counts,
    cpu,
    plan_entry,
    rdma,
    repeat_value,
    rounded,
    setting,
    start_of,
    state,
    throughput,
    timing,
    trial_words,
    where,
)
from .executions import ExecutionTable
from .findings import FindingTable
from .intervals import add_interval, interval_entry
from .judge import Judge
from .loss_location import contradicted, displaced_frames, loss_location
from .other_traffic import OtherTraffic
from .overall import exit_status, overall
from .ports import PortTable
from .reordering import add_disorder, disorder_entry
from .searches import search_entries
from .statistics import RepeatTable
from .tester import SHORT_SHARE_LAB, SHORT_SHARE_SITE, host_limits, mark_windows
from .transports import compare

REFUSED_RUN = 2  # the exit status
PROBE = -1  # as a phase's number
NOT_ENDED = (
    "this run has not ended, or its command was killed: `switchbench table DIR --again` makes "
    "the summary of what was measured"
)

# Events that are as they should be: nothing to be alarmed at.
_EXPECTED = ("bound", "restored")


@dataclass
class _OpenTrial:
    """A trial whose records still come."""

    phases: dict[PhaseKey, PhaseRecords] = field(default_factory=dict)
    nodes: dict[int, dict[str, NodePhase]] = field(default_factory=dict)  # by phase, node
    ended: dict[str, Record] = field(default_factory=dict)  # `trial` records by node


class Summary:
    """Takes records as they come and says, at any moment, what they amount to."""

    def __init__(self, run: Run, brief: bool = False) -> None:
        """Refuses, as Judge does, a clause that no trial of the run can answer. `brief`: only
        `needed` and `findings` are asked of it, and it does not grow with trials that end."""
        self._brief = brief
        self.switch: dict[str, Any] | None = None  # its counters, compared
        self._run = run
        self._expected = Expected(run)
        self._trials = {(trial.id, trial.repeat): trial for trial in run.trials}
        self._judge = Judge(() if brief else run.expectations, run.trials)
        self._repeats = RepeatTable(run.trials)
        self._sweep = sweep.SweepTable(self._trials)
        self._computing = scatter.ComputeTable()
        self._executions = ExecutionTable(self._trials)
        self._scatter: list[dict[str, Any]] = []
        self._ports = PortTable(run.site.ports, run.site.groups)
        self._clocks = ClockTable(run.site)
        self._findings = FindingTable(run.site.groups)
        self._other_traffic = OtherTraffic()
        self._open: dict[tuple[int, int], _OpenTrial] = {}
        self._closed: set[tuple[int, int]] = set()
        self._lines: dict[tuple[str, str], int] = {}  # line rate by port and transport
        self._opened: dict[tuple[str, str], Record] = {}  # the same: what the node said
        self._machines: dict[str, str] = {}  # by node
        self._nodes = {process.name for process in run.site.processes}
        self._entries: list[dict[str, Any]] = []
        self._plans: list[dict[str, Any]] = []
        self._flows_seen: dict[tuple[int, int], int] = {}
        self._floors: dict[tuple[str, str, str], Histogram] = {}  # by node, transport and kind
        self._alarms: list[str] = []
        self._notes: list[str] = []
        self._hellos: list[dict[str, Any]] = []
        self._takers: dict[str, Callable[[int, Record], None]] = {
            "hello": self._take_hello,
            "ready": lambda _line, record: self._clocks.take_ready(record),
            "clock": lambda _line, record: self._clocks.take(record),
            "port-open": self._take_port_open,
            "flow": self._take_flow,
            "histogram": self._take_histogram,
            "loopback-baseline": self._take_floor,
            "port": self._take_port,
            "interval": self._take_interval,
            "reorder": self._take_reorder,
            "misdelivered-flow": self._take_stray,
            "phase": self._take_phase,
            "trial": self._take_trial,
            "unreachable": self._take_unreachable,
            "event": self._take_event,
            "bye": self._take_bye,
            "compute": self._take_compute,
            "execution": lambda _line, record: self._executions.feed(record),
        }

    def feed(self, line: int, record: Record) -> None:
        """Takes one record, the `line`th of the file; DamagedRecord where it can't be the run's."""
        taker = self._takers.get(record["type"])
        if taker is not None:
            self._expected.check(record)
            taker(line, record)

    def grow(self, trial: Trial) -> None:
        """One more trial, which a search chose."""
        self._run = replace(self._run, trials=(*self._run.trials, trial))
        self._expected.add(trial)
        self._trials[trial.id, trial.repeat] = trial
        self._repeats.expect(trial)

    def phases_of(self, trial: Trial) -> list[dict[str, Any]]:
        """Of a trial that has ended: its phases in all networks."""
        return [entry for entry in self._entries if entry["trial"] == trial.id]

    def needed(self, trial: Trial) -> bool:
        """Whether the trial is to be run, as far as the repeats before it tell."""
        return self._repeats.needed(trial)

    def findings(self) -> list[dict[str, Any]]:
        """What went wrong in the trials that have ended so far."""
        return self._findings.summary()

    def take_scatter(self, entries: list[dict[str, Any]]) -> None:
        """What single times amount to; they do not come as records."""
        self._scatter = entries

    def finish(
        self, about: Mapping[str, Any], faults: Iterable[str], refused: bool = False
    ) -> dict[str, Any]:
        """The summary. `about` is its `run`; each fault is a sentence that made it partial.

        `refused`: a node found the configuration impossible.
        """
        for key in list(self._open):
            self._close_trial(key)
        reasons = list(faults)
        missing = self._missing()
        expectations = self._judge.verdicts(self._doubts(), self._not_needed())
        gaps = "partial" if reasons or missing else "complete"
        status = gaps if self._entries else "failed"
        steps = self._executions.summary()
        result = {
            "schema": SCHEMA,
            "status": status,
            "exit_status": REFUSED_RUN if refused else exit_status(status, expectations),
            "errors": reasons,
            "run": self._about(about),
            "trials": sorted(self._entries, key=_order),
            "plans": self._plans,
            "statistics": self._repeats.summary(),
            "switch_counters": self.switch,
            "comparisons": compare(self._trials, self._plans, self._run.not_alternated),
            "messages": self._sweep.summary()
            | {"scatter": self._with_lost()}
            | {"concurrent_computation": self._computing.summary(self._run.trials)},
            "steps": steps,
            "ports": self._ports.summary(),
            "clocks": self._clocks.summary(),
            "loopback_baselines": [
                {"node": node, "transport": transport, "kind": kind} | figures(kind, times)
                for (node, transport, kind), times in self._floors.items()
            ],
            "expectations": expectations,
            "verdict": self._verdict(expectations, status, about),
            "findings": self._findings.summary(),
            "warnings": [
                *self._alarms,
                *self._other_traffic.sentences(),
                *above_line(steps, self._run.site),
            ],
            "not_measured": missing + self._notes + list(_left_out(about)),
        }
        if self._run.searches:
            result["searches"] = search_entries(self._run, self._entries)
        whole: dict[str, Any] = rounded(result)
        return whole

    def _verdict(
        self, expectations: list[dict[str, Any]], status: str, about: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        if not expectations:
            return None
        words = overall(expectations, status, self._run.about)
        return words | {
            "warnings": [*self._run.reservations, *_left_out(about)],
            "clauses_sha256": clauses_sha256(self._run.expectations),
        }

    def _with_lost(self) -> list[dict[str, Any]]:
        """The scatters' fits, with how many messages have no time because they never came back."""
        return [entry | {"lost": self._sweep.lost(entry)} for entry in self._scatter]

    def _about(self, about: Mapping[str, Any]) -> dict[str, Any]:
        order = {process.name: i for i, process in enumerate(self._run.site.processes)}
        nodes = sorted(self._hellos, key=lambda hello: order.get(hello["node"], len(order)))
        versions = dict(about["versions"]) | {"engine": nodes[0]["version"] if nodes else None}
        return (
            dict(about)
            | {"versions": versions, "seed": self._run.seed, "nodes": nodes}
            | ({"about": self._run.about} if self._run.about else {})
            | ({"remeasured_phases": self._run.remeasured} if self._run.remeasured else {})
        )

    # --- records ---------------------------------------------------------------------------

    def _take_hello(self, _line: int, record: Record) -> None:
        names = ("node", "host", "version", "protocol", "cpus", "workers", "worker", "cores")
        self._hellos.append({name: record.get(name) for name in names} | {"tsc_drift_ppm": None})
        machine = record.get("boot") or record.get("host") or record["node"]
        self._machines[record["node"]] = machine

    def _take_port_open(self, _line: int, record: Record) -> None:
        rate = record.get("line_rate_bps") or 0
        self._lines[record["port"], record["transport"]] = rate
        self._opened[record["port"], record["transport"]] = record
        self._ports.open(record)

    def _take_flow(self, line: int, record: Record) -> None:
        phase = self._phase(record, line)
        add_flow(phase, record)

    def _take_interval(self, line: int, record: Record) -> None:
        add_interval(self._phase(record, line), record)

    def _take_reorder(self, line: int, record: Record) -> None:
        add_disorder(self._phase(record, line), record)

    def _take_stray(self, line: int, record: Record) -> None:
        add_stray(self._phase(record, line), record)

    def _take_histogram(self, line: int, record: Record) -> None:
        add_histogram(self._phase(record, line), record)
        self._sweep.feed(record)

    def _take_floor(self, _line: int, record: Record) -> None:
        """The parts of one floor follow each other."""
        ends = (record["node"], record["transport"], record["kind"])
        self._floors.setdefault(ends, Histogram()).add_record(record)

    def _take_port(self, line: int, record: Record) -> None:
        self._phase(record, line).ports[record["port"]] = port_of(record)
        transport = self._trials[record["trial"], record.get("repeat") or 0].transport
        self._ports.use(record, transport)

    def _take_phase(self, _line: int, record: Record) -> None:
        if record["phase"] == PROBE:
            return
        nodes = self._trial(record).nodes.setdefault(record["phase"], {})
        nodes[record["node"]] = node_phase_of(record)

    def _take_trial(self, _line: int, record: Record) -> None:
        open_trial = self._trial(record)
        open_trial.ended[record["node"]] = record
        if open_trial.ended.keys() >= self._nodes:
            self._close_trial((record["trial"], record.get("repeat") or 0))

    def _take_unreachable(self, _line: int, record: Record) -> None:
        self._findings.unreachable(record, self._trials[record["trial"], record.get("repeat") or 0])
        got = f"{record.get('received')} of {record.get('sent')} probes arrived"
        self._notes.append(
            f"trial {record['trial']}: {record['dst']} can't be reached from {record['src']}: {got}"
        )

    def _take_event(self, _line: int, record: Record) -> None:
        if record.get("kind") in _EXPECTED:
            return
        if record.get("kind") == "link-down" and record.get("port"):
            self._ports.lose_link(record["port"])
        words = (record.get("port"), record.get("kind"), record.get("text"))
        self._alarms.append(": ".join(str(word) for word in words if word))

    def _take_compute(self, _line: int, record: Record) -> None:
        self._computing.feed(record)

    def _take_bye(self, _line: int, record: Record) -> None:
        refused = record.get("dropped_datagrams")
        if refused:
            came = "was" if refused == 1 else "were"
            self._alarms.append(
                f"{record['node']}: {of(refused, 'control datagram')} {came} refused: none of this "
                "run's, or changed on the way; another program sends to the control address"
            )
        for hello in self._hellos:
            if hello["node"] == record["node"]:
                hello["tsc_drift_ppm"] = record.get("tsc_drift_ppm")

    def _trial(self, record: Record) -> _OpenTrial:
        key = (record["trial"], record.get("repeat") or 0)
        if key in self._closed:
            raise DamagedRecord(f"it comes after all nodes have ended trial {key[0]}")
        return self._open.setdefault((record["trial"], record.get("repeat") or 0), _OpenTrial())

    def _phase(self, record: Record, line: int) -> PhaseRecords:
        phase = self._trial(record).phases.setdefault(key_of(record), PhaseRecords())
        phase.add_line(line)
        return phase

    # --- what they amount to ---------------------------------------------------------------

    def _close_trial(self, key: tuple[int, int]) -> None:
        open_trial = self._open.pop(key)
        self._closed.add(key)
        trial = self._trials[key]
        for part in trial.parts:
            entries = []
            for phase_key in sorted(open_trial.phases):
                phase = open_trial.phases[phase_key]
                if phase_key.network != part.network or not phase.flows:
                    continue
                nodes = open_trial.nodes.get(phase_key.phase, {})
                entries.append(self._add_phase(PhaseContext(trial, part, phase_key), phase, nodes))
                seen = self._flows_seen.get(key, 0)
                self._flows_seen[key] = seen + len(phase.flows)
            if entries:
                plan = plan_entry(trial, part, entries, open_trial.ended)
                self._plans.append(plan)
                self._repeats.add(trial, part.network, self._value(trial, plan, entries))
        for phase_key in open_trial.phases:
            self._clocks.forget((phase_key.trial, phase_key.repeat, phase_key.phase))
        if self._brief:
            self._release(key)

    def _release(self, key: tuple[int, int]) -> None:
        """Drops what only `finish` would say of a trial."""
        for said in (self._entries, self._plans, self._alarms, self._notes):
            said.clear()
        for table in (self._sweep, self._computing, self._executions):
            table.forget(key)
        self._ports = PortTable(self._run.site.ports, self._run.site.groups)
        self._other_traffic = OtherTraffic()
        self._findings.forget_clean()

    def _value(
        self, trial: Trial, plan: dict[str, Any], entries: list[dict[str, Any]]
    ) -> float | None:
        """What this repeat adds to the mean over repeats."""
        rate = repeat_value(plan, entries)
        if trial.traffic != SCHEDULE or rate is None:
            return rate
        return self._executions.average_us(trial, plan["network"])

    def _add_phase(
        self, place: PhaseContext, phase: PhaseRecords, nodes: dict[str, NodePhase]
    ) -> dict[str, Any]:
        lines = self._line_rates(place)
        flows = list(phase.flows.values())
        moment = (place.key.trial, place.key.repeat, place.key.phase)
        self._clocks.correct(moment, ((flow.src, flow.dst, flow.times) for flow in flows))
        how = state(flows, nodes, self._nodes)
        if place.trial.traffic == SCHEDULE and how == "complete":
            flows = [flow for flow in flows if not flow.idle] or flows
        for flow in flows:
            flow.settled = how not in m.UNSETTLED
            flow.packet = self._packet(place.trial, flow)
        times = timing(place, nodes) | {"started": self._clocks.utc(start_of(nodes))}
        window_s = times["window_s"] if place.trial.traffic == "stream" else None
        mark_windows(flows, window_s)
        shares = m.port_shares(flows, lines)
        in_lab = self._run.site.launch == "lab"
        limits = host_limits(
            phase, nodes, SHORT_SHARE_LAB if in_lab else SHORT_SHARE_SITE, window_s
        )
        entry = (
            setting(place, lines)
            | times
            | throughput(flows, shares)
            | counts(flows, phase, place.trial.transport)
            | rdma(flows, phase, place.trial.transport)
            | cpu(flows, self._cpu(nodes))
            | {
                "latency": PhaseLatency(
                    {(flow.src, flow.dst): flow.times for flow in flows}
                ).entry()
            }
            | {
                "flows": len(flows),
                "flows_observed": sum(1 for flow in flows if flow.source and flow.destination),
                "loss_location": None,
                "reordering": disorder_entry(flows, phase.disorders, place.trial.transport),
                "intervals": interval_entry(_whole(phase.courses, flows), place.trial.traffic),
                "state": how,
                "tester_limited": [asdict(limit) | {"reason": limit.reason} for limit in limits],
                "records": where(place.key, phase),
            }
        )
        result = m.PhaseResult(place.key, entry, flows, shares)
        displaced = displaced_frames(phase, lines)
        entry["loss_location"] = loss_location(phase, entry["lost_frames"], displaced)
        if contradicted(entry["loss_location"]):
            self._alarms.append(
                f"{result.label}: {entry['lost_frames']:,} frames are lost by the flows' counts, "
                f"{entry['loss_location']['counted_in_network']:,} in the network by the ports' "
                "counters: one of them is wrong, and no loss of this phase is sure to be the "
                "network's"
            )
        self._other_traffic.add(result, phase, displaced)
        self._alarms += windows_above_line(result, lines, self._run.site)
        self._watch_surplus(result)
        self._ports.add(result, place.trial.transport)
        self._findings.add(result, phase, lines, displaced)
        self._judge.add(result)
        if place.trial.traffic == SCHEDULE:
            self._executions.add_flows(place.trial, place.key.network, place.key.phase, flows)
        self._entries.append(entry)
        return entry

    def _packet(self, trial: Trial, flow: Flow) -> PacketShape | None:
        if not transports.of(trial.transport).rdma:
            return None
        opened = self._opened.get((flow.src, trial.transport), {})
        side = flow.source or flow.destination
        mtu = side.measures.get("path_mtu_bytes") if side else None
        return m.packet_shape(trial.document.get(trial.transport, {}), opened, mtu)

    def _cpu(self, nodes: dict[str, NodePhase]) -> Cpu:
        workers = {hello["worker"] for hello in self._hellos if hello["node"] in nodes}
        polling = None if workers <= {None} else "poll" in workers
        return Cpu(m.machine_cpu_s(nodes, self._machines), m.process_cpu_s(nodes), polling)

    def _line_rates(self, place: PhaseContext) -> dict[str, int]:
        """Layer-1 rates: what the node resolved, else what the site says."""
        transport = place.trial.transport
        return {
            port.name: self._lines.get((port.name, transport)) or port.line_rate_bps
            for port in place.part.ranks
        }

    def _watch_surplus(self, result: m.PhaseResult) -> None:
        for flow in result.flows:
            surplus = m.surplus_frames(flow)
            if surplus:
                frames = "frame" if surplus == 1 else "frames"
                self._alarms.append(
                    f"{flow.src} -> {flow.dst}: {surplus} {frames} more delivered than offered in "
                    f"{result.label}"
                )

    def _not_needed(self) -> set[tuple[int, int]]:
        """Repeats that were not run because those before them were enough."""
        return {
            key
            for key, trial in self._trials.items()
            if key not in self._flows_seen and not self._repeats.needed(trial)
        }

    def _doubts(self) -> dict[tuple[int, int], str]:
        """Trials of which the mean over their repeats is not sure enough, and why."""
        doubts = {key: self._repeats.doubt(trial) for key, trial in self._trials.items()}
        return {key: doubt for key, doubt in doubts.items() if doubt}

    def _missing(self) -> list[str]:
        """What was asked for and left no record, a sentence each."""
        sentences = []
        not_needed = self._not_needed()
        for key, trial in self._trials.items():
            seen = self._flows_seen.get(key, 0)
            if seen < trial.flows and key not in not_needed:
                share = "nothing" if seen == 0 else f"only {seen} of {trial.flows} flows"
                sentences.append(f"{trial_words(trial)}: {share} measured")
        lost = sum(entry["flows"] - entry["flows_observed"] for entry in self._entries)
        if lost:
            words = f"{lost} flows have" if lost > 1 else "1 flow has"
            sentences.append(f"{words} the record of one side only")
        return sentences


def _whole(courses: Mapping[tuple[str, str], Any], flows: list[Flow]) -> dict[Any, Any]:
    """Without those of flows whose window was off."""
    off = {(flow.src, flow.dst) for flow in flows if flow.window_off}
    return {ends: course for ends, course in courses.items() if ends not in off}


def _left_out(about: Mapping[str, Any]) -> Iterator[str]:
    for host in about.get("excluded_hosts", []):
        yield f"{host['host']} was left out: {host['reason']}"


def gather(run: Run, directory: Path) -> Summary:
    """All of a results directory's records, ready to be finished."""
    summary = Summary(run)
    records = directory / RECORDS
    if records.exists():
        with _no_collector():
            for line, record in read_records(records):
                with taking(records, line):
                    summary.feed(line, record)
    scatter.store(directory)
    summary.take_scatter(scatter.summarize(directory, run.trials))
    summary.switch = compare_counters(run.switch_counters, directory)
    return summary


@contextmanager
def _no_collector() -> Iterator[None]:
    """Records have no circles: to look for some among millions takes a sixth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _order(entry: Mapping[str, Any]) -> tuple[int, int, int]:
    return entry["trial"], entry["repeat"], entry["phase"]
