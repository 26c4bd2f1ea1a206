# SPDX-License-Identifier: BSD-3-Clause
"""Computation of summary.json in one pass over the tables, with one phase's rows in memory.

records/summary_form.toml defines the form, doc/reference/measures.md the formulas.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..base.errors import ConfigurationError
from ..base.format import of
from ..base.model import SCHEDULE, Run, Trial
from ..records.collector import Expected
from ..records.directory import PLAN
from ..records.rows import Moment, PhaseKey, PhaseRows, TrialKey
from ..records.schema import DamagedRecord, Record, checked
from ..records.store import Tables, cut_streams, finish
from ..records.summary_form import (
    SCHEMA,
    Entry,
    FindingEntry,
    PhaseEntry,
    PlanEntry,
    SummaryDocument,
    by,
    filled,
)
from ..search.suites.declaration import TrialFacts
from . import series
from .judge import clause_judges, exit_status, left_out, overall
from .located import Locator
from .measures import MisdeliveredFrames, PhaseResult, or_zero, surplus_frames
from .phases import PhaseResults, PortTable, chain_entries, plan_entry
from .statistics import RepeatTable
from .suite import (
    nothing_judged,
    replayed,
    search_entries,
    suite_summary,
    suite_verdict,
    trial_facts,
)
from .tester import contradicted, explains_all, windows_above_line


@dataclass
class OpenTrial:
    """Trial that some node has not ended, with the results of its phases so far."""

    ended: dict[str, Record] = field(default_factory=dict)  # `trial` record of each node
    entries: list[PhaseEntry] = field(default_factory=list)
    alarms: list[tuple[int, int, list[str]]] = field(default_factory=list)  # part, phase, sentences
    results: list[PhaseResult] = field(default_factory=list)  # kept for searches only


REFUSED_RUN: Final = 2  # exit status if a node rejects the configuration
_ORDER = itemgetter("trial", "repeat", "phase")
EndedPhase = tuple[Moment, list[PhaseResult]]
"""Trial, repeat and phase number of a phase, and its results, one for each network."""

NOT_ENDED = (
    "this run has not ended, or its command was killed: `switchbench table DIR --again` rebuilds "
    "the summary from the tables"
)

_EVENTS_MOST = 256  # distinct sentences kept; a faulty port reports thousands

_TAKEN = {
    *("hello", "port-open", "trial", "unreachable", "misdelivered-flow"),
    *("ready", "event", "bye"),
}


class Summary:
    """Summary of a run in progress, computed from events and phases as they arrive."""

    def __init__(self, run: Run, brief: bool = False) -> None:
        """Prepare the summary of a run; raise ConfigurationError for an invalid clause.

        `brief`: support only `needed`, `findings` and `ended_phase`, so that ended trials take no
        memory.
        """
        self._brief = brief
        self._run = run
        self._expected = Expected(run)
        self._trials = self._expected.trials
        judged = [trial for trial in run.trials if not trial.locating]
        self._judges = clause_judges(() if brief or run.suite else run.expectations, judged)
        self._repeats = RepeatTable(run.trials)
        self._results = PhaseResults(run)
        self.locator = Locator(run)
        self._open: defaultdict[TrialKey, OpenTrial] = defaultdict(OpenTrial)
        # trials and phases with anomalies that the tester's limit does not explain
        self._unexplained: set[tuple[int, int]] = set()
        self._nodes = {process.name for process in run.site.processes}
        self.ended_phase: EndedPhase = (-1, -1, -1), []  # last ended phase
        self.facts: dict[int, TrialFacts] = {}  # of each ended trial of a search
        self._flows_seen: Counter[TrialKey] = Counter()
        self._misdelivered: defaultdict[tuple[Moment, str], MisdeliveredFrames] = defaultdict(
            Counter
        )
        self._begin()

    def _begin(self) -> None:
        """Empty the collections from which `finish` makes the summary."""
        self._sweep = series.SweepTable(self._trials)
        self._executions = series.ExecutionTable()
        self._ports = PortTable(self._run.site, self._results.opened)
        self._other_traffic: Counter[str] = Counter()  # frames of senders outside the run, by port
        self._entries: list[PhaseEntry] = []
        self._plans: list[PlanEntry] = []
        self._alarms: list[str] = []
        self._events: Counter[str] = Counter()
        self._notes: list[str] = []

    def take(self, event: Record) -> None:
        """Process one event; raise DamagedRecord if it does not belong to this run."""
        kind, repeat = event["type"], event.get("repeat") or 0
        if kind not in _TAKEN:
            return
        self._expected.check(event)
        match kind:
            case "hello":
                self._results.greet(event)
            case "ready":
                self._results.clocks.take_ready(event)
            case "port-open":
                self._results.open_port(event)
            case "misdelivered-flow":
                place = (event["trial"], repeat, event["phase"]), event["network"]
                flow = event.get("src"), event.get("dst"), event["port"]
                self._misdelivered[place][flow] += event["frames"]
            case "trial":
                self._open[event["trial"], repeat].ended[event["node"]] = event
            case "unreachable":
                self.locator.unreachable(event, self._trials[event["trial"], repeat])
                got = f"{event.get('received')} of {event.get('sent')} probes arrived"
                ends = f"{event['dst']} can't be reached from {event['src']}"
                self._notes.append(f"trial {event['trial']}: {ends}: {got}")
            case "event":
                if event.get("kind") == "link-down" and event.get("port"):
                    self._ports.downs[event["port"]] += 1
                words = (event.get("port"), event.get("kind"), event.get("text"))
                sentence = ": ".join(str(word) for word in words if word)
                full = sentence not in self._events and len(self._events) >= _EVENTS_MOST
                self._events[f"{event.get('node')}: further events" if full else sentence] += 1
            case "bye" if refused := event.get("dropped_datagrams"):
                came = "was" if refused == 1 else "were"
                self._alarms.append(
                    f"{event['node']}: {of(refused, 'control datagram')} {came} dropped: another "
                    "run or program sent to the control address, or the network changed them"
                )

    def take_phase(self, phase: PhaseRows) -> None:
        """Process the rows of an ended phase; raise DamagedRecord if they belong to another run."""
        self._expected.check_phase(phase)
        number, repeat, own = phase.moment
        trial = self._trials[number, repeat]
        open_trial = self._open[number, repeat]
        if own < 0:  # rows of the connectivity check
            return
        networks = phase.by_network()
        self._results.clocks.take(phase.moment, phase.rows("phases"))
        results: list[PhaseResult] = []
        self.ended_phase = phase.moment, results
        for place, part in enumerate(trial.parts):
            rows = networks.get(part.network)
            if rows is None:
                continue
            key, own_trial = PhaseKey(number, repeat, part.network, own), trial.of(part.network)
            strays = self._misdelivered.pop((phase.moment, part.network), Counter())
            self._sweep.add(key, rows.times)
            has_flows = len(rows.rows("flows")) or rows.times
            if trial.traffic == SCHEDULE and (has_flows or rows.executions):
                self._executions.add(trial, part.network, rows)
            if not has_flows:
                continue
            result = self._results.result(own_trial, part, key, rows, strays)
            results.append(result)
            with np.errstate(all="ignore"):  # a value beyond the range of floats was not observed
                self._ports.add(result, own_trial.transport)
                self.locator.add(result, own_trial)
                for judge in () if trial.locating else self._judges:
                    judge.add(result)
                if trial.search is not None:
                    open_trial.results.append(result)
                alarms = [*_contradictions(result), *windows_above_line(result, self._run.site)]
            if result.entry["tester_limited"] and not explains_all(result):
                self._unexplained.add((number, own))
            self._other_traffic.update(dict(other_traffic(result)))
            open_trial.alarms.append((place, own, alarms))
            open_trial.entries.append(result.entry)
            self._entries.append(result.entry)
            self._flows_seen[number, repeat] += len(result.every)
        self._results.clocks.forget(phase.moment)

    def grow(self, trial: Trial) -> None:
        """Add a trial that a search chose, as the next trial of the run."""
        self._run = replace(self._run, trials=(*self._run.trials, trial))
        self._expected.add(trial)
        self._repeats.expect(trial)

    def remeasurable(self, trial: Trial) -> list[int]:
        """Return the tester-limited phases of an ended trial that can be measured again.

        Phases with anomalies that the tester's limit does not explain are left out.
        """
        mine = [entry for entry in self._entries if entry["trial"] == trial.id]
        limited = {entry["phase"] for entry in mine if entry["tester_limited"]}
        return sorted(phase for phase in limited if (trial.id, phase) not in self._unexplained)

    def needed(self, trial: Trial) -> bool:
        """Return whether the repeat `trial` has to be measured, given the repeats before it."""
        return self._repeats.needed(trial)

    def findings(self) -> list[FindingEntry]:
        """Return the findings of all trials that have ended so far."""
        return self.locator.findings()

    def finish(self, about: Entry, faults: Iterable[str], refused: bool = False) -> SummaryDocument:
        """Return the whole summary of the run, after the last record.

        `about`: the summary's `run`. `faults`: sentences, each of which makes the run partial.

        `refused`: true if a node rejected the configuration.
        """
        for key in sorted(self._open):
            self._close_trial(key)
        reasons = list(faults)
        trials = self._trials.items()
        doubts = {key: why for key, trial in trials if (why := self._repeats.doubt(trial))}
        # Repeats that were skipped because enough were measured before them.
        not_needed = {
            key
            for key, trial in trials
            if key not in self._flows_seen and not self._repeats.needed(trial)
        }
        missing = self._missing(not_needed)
        expectations = [judge.verdict(doubts, not_needed) for judge in self._judges]
        self.locator.explain(expectations)
        status: str = "partial" if reasons or missing else "complete"
        if not self._entries:
            status = "failed"
        course = None if self._run.suite is None else replayed(self._run, self.facts)
        if course is not None:
            expectations += [suite_verdict(spec, course) for spec in self._run.expectations]
        unjudged = nothing_judged(self._entries, expectations, course)
        result: SummaryDocument = {
            "schema": SCHEMA,
            "status": status,
            "exit_status": REFUSED_RUN
            if refused
            else exit_status(status, expectations, judged=unjudged is None),
            "errors": reasons,
            "run": self._about(about),
            "trials": sorted(self._entries, key=_ORDER),
            "plans": self._plans,
            "statistics": self._repeats.summary(),
            "comparisons": series.compare(self._trials, self._plans),
            "messages": {"curves": list(self._sweep.curves())},
            "steps": self._executions.summary(),
            "ports": self._ports.summary(self.locator.suspects_by_port()),
            "clocks": self._results.clocks.summary(),
            "expectations": expectations,
            "verdict": overall(self._run, about, expectations, status) if expectations else None,
            "location": self.locator.location(),
            "findings": self.locator.findings(),
            "warnings": [
                *self._alarms,
                *(f"{said} ({n:,} times)" if n > 1 else said for said, n in self._events.items()),
                *(
                    f"{port}: received {of(frames, 'frame')} of senders outside this run"
                    for port, frames in self._other_traffic.items()
                ),
            ],
            "not_measured": [
                *missing, *self._notes, *left_out(about), *([unjudged] if unjudged else [])
            ],
        }  # fmt: skip
        device = self._run.site.device
        if device is not None and device.chain:
            result["chain"] = list(chain_entries(device, self._trials, result["trials"]))
        if course is not None:
            result["searches"] = search_entries(course)
            result["suite"] = suite_summary(self._run, course)
        whole: SummaryDocument = _rounded(result)
        return whole

    def _about(self, about: Entry) -> Entry:
        nodes = self._results.nodes()
        engine = nodes[0]["version"] if nodes else None
        found: Entry = {
            **about,
            "versions": about["versions"] | {"engine": engine},
            "seed": self._run.seed,
            "nodes": nodes,
        }
        if self._run.about:
            found["about"] = self._run.about
        if self._run.site.device is not None:
            found["device"] = filled("DeviceEntry", self._run.site.device)
        if self._run.remeasured:
            found["remeasured_phases"] = self._run.remeasured
        return found

    # --- records ---------------------------------------------------------------------------

    def close_ended(self) -> None:
        """Close the trials that all nodes have ended."""
        for key in [key for key, one in self._open.items() if one.ended.keys() >= self._nodes]:
            self._close_trial(key)

    def _close_trial(self, key: TrialKey) -> None:
        open_trial = self._open.pop(key)
        trial = self._trials[key]
        by_network = by(sorted(open_trial.entries, key=_ORDER), "network")
        for part in trial.parts:
            if entries := by_network.get(part.network):
                plan = plan_entry(trial, entries, open_trial.ended)
                self._plans.append(plan)
                for judge in self._judges:
                    judge.add_plan(key, plan, entries)
                is_whole = plan["phases_measured"] == plan["phases"]
                is_whole &= all(entry["state"] == "complete" for entry in entries)
                value = plan["throughput"]["mean"] if is_whole else None
                if trial.traffic == SCHEDULE and value is not None:
                    value = self._executions.average_us(trial, part.network)
                self._repeats.add(trial, part.network, value)
        if trial.search is not None:
            self.facts[trial.id] = trial_facts(open_trial.results)
        for _, _, alarms in sorted(open_trial.alarms):
            self._alarms += alarms
        if self._brief:
            self._begin()
            self.locator.forget_clean()

    def _missing(self, not_needed: set[TrialKey]) -> list[str]:
        """Return a sentence for each trial or flow without complete records."""
        sentences = []
        for key, trial in self._trials.items():
            seen = self._flows_seen[key]
            if seen < trial.flows and key not in not_needed:
                share = "nothing" if seen == 0 else f"only {seen} of {trial.flows} flows"
                networks = " + ".join(part.network for part in trial.parts)
                ranks = max(len(part.ranks) for part in trial.parts)
                sentences.append(
                    f"trial {trial.id} ({trial.pattern['name']}, {trial.transport}, {networks}, "
                    f"{ranks} ranks): {share} measured"
                )
        lost = sum(entry["flows"] - entry["flows_observed"] for entry in self._entries)
        if lost:
            have = "has" if lost == 1 else "have"
            sentences.append(f"{of(lost, 'flow')} {have} the record of one end only")
        return sentences


def _contradictions(result: PhaseResult) -> Iterator[str]:
    """Yield a sentence for each contradiction between the counts of a phase.

    Flows and port counters may disagree on the phase's loss, and a flow may have delivered more
    frames than were offered to it.
    """
    found, surplus = result.entry["loss_location"], surplus_frames(result.flows)
    if contradicted(found):
        yield (
            f"{result.label}: {found['lost_frames']:,} frames are lost by the flows' counts, "
            f"{found['counted_in_network']:,} in the network by the ports' counters: one of them "
            "is wrong, so that the loss in the network is unknown"
        )
    for flow in surplus.nonzero()[0].tolist():
        more = f"{of(int(surplus[flow]), 'frame')} more delivered than offered in {result.label}"
        yield f"{' -> '.join(result.flows.pairs[flow])}: {more}"


def _rounded(value: Any) -> Any:
    """Round all floats in a value to six decimals; replace infinity and NaN by None."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


# A switch's own frames (LLDP, spanning tree) and neighbour discovery stay below these limits.
NOTABLE_FRAMES = 100
NOTABLE_SHARE = 0.001  # foreign frames per frame of the run at the port


def other_traffic(result: PhaseResult) -> Iterator[tuple[str, int]]:
    """Yield each port with much foreign traffic or displaced frames, and its foreign frames.

    Foreign frames come from senders outside the run. Displaced frames are frames of the run that
    may be lost because of foreign frames.
    """
    came = or_zero(result.ports.floats("unexpected"))
    own = or_zero(result.ports.floats("received_frames"))
    notable = came >= np.maximum(NOTABLE_FRAMES, NOTABLE_SHARE * own)
    names = result.ports.texts("port")
    for name, frames, is_notable in zip(names, came.tolist(), notable.tolist(), strict=True):
        if is_notable or name in result.displaced:
            yield name, int(frames)


# --- the summary of a results directory -----------------------------------------------------------

# Exceptions that inconsistent records raise in computations; OSError is pyarrow's.
DAMAGE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError, OSError)
KILLED = (
    "the run's command was killed: what was measured until then is here; a lab that it made stays "
    "until the next run (`switchbench doctor` names it)"
)


def is_begun_only(summary: SummaryDocument) -> bool:
    """Return whether the summary was begun but not completed, as after a killed command.

    The result is false for imported results, which have no trials.
    """
    ours = not summary.get("imported")
    return ours and summary["trials"] == [] and summary["exit_status"] != REFUSED_RUN


def remade(
    run: Run, directory: Path, summary: SummaryDocument, ended: bool = True, keep: bool = False
) -> SummaryDocument:
    """Rebuild a run's summary from the plan and the tables of the results directory.

    `summary`: the present summary, for values that no record has. `ended`: the run is known to have
    ended. `keep`: convert the directory's tables to their final form; without it nothing is
    written.
    """
    faults = [KILLED if ended and fault == NOT_ENDED else fault for fault in summary["errors"]]
    refused = summary["exit_status"] == REFUSED_RUN
    try:
        gathered = gather(finish(directory, run) if keep else run, directory)
        faults += [fault for fault in cut_streams(directory) if fault not in faults]
        return gathered.finish(summary["run"], faults, refused)
    except DAMAGE as error:
        why = " ".join(str(error).split())
        raise ConfigurationError(
            f"{directory}: the tables do not match {PLAN} ({type(error).__name__}: {why}): "
            "a file is damaged or from another run: copy the whole directory again"
        ) from None


def gather(run: Run, directory: Path) -> Summary:
    """Read all tables of a results directory into a summary.

    Phases that an unfinished run measured again are trials of their own.
    """
    summary = Summary(replace(run, trials=(*run.trials, *run.again)))
    feed(summary, directory)
    return summary


def feed(summary: Summary, directory: Path) -> None:
    """Process all rows of a directory's tables in a summary."""
    tables = Tables(directory)
    try:
        for event in tables.events():
            summary.take(checked(event))
        for phase in tables.phases():
            summary.take_phase(phase)
    except DamagedRecord as error:
        raise ConfigurationError(
            f"{directory}: the tables do not match {PLAN}, so a file is damaged or from another "
            f"run: {error}"
        ) from None
    summary.close_ended()
