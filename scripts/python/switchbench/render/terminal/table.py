# SPDX-License-Identifier: BSD-3-Clause
"""The printed result: the first screen, what each trial gave, bad ports, the verdict, findings.

Made of the summary alone, so that a finished run's table can be printed again. The tables are
those of the report (tables/); which of their rows a terminal shows is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from rich.console import Console

from ...analysis import clocks
from ...analysis.loss_location import in_network
from ...analysis.statistics import MEASURE
from ...base import format
from ...base.model import SCHEDULE
from .. import first_screen
from ..findings import ERROR, INFO, WARNING, findings
from ..suite_notes import has_values, suite_notes, suite_of
from ..tables import judged, ports, results, suite
from ..tables.columns import phase_name, plan_title
from . import parts
from .grid import heading, listed, say, show

Entry = Mapping[str, Any]

WORST_PHASES = 5  # of a plan, without --all
MOST_FINDINGS = 10
T_MEANS = "T: tester-limited, no figure of the network, and in no mean of its pattern"
STYLES = {ERROR: "bold red", WARNING: "yellow", INFO: ""}
VERDICT_STYLES = {"PASS": "green", "FAIL": "bold red", "INCONCLUSIVE": "yellow"}


class SummaryPrinter:
    """Prints one summary."""

    def __init__(
        self,
        summary: Mapping[str, Any],
        console: Console,
        every_phase: bool = False,
        every_time: bool = False,
    ) -> None:
        """`every_phase`: all phases of a plan instead of its five worst.

        `every_time`: all times that were measured.
        """
        self._summary = first_screen.named(summary)
        self._console = console
        self._every_phase = every_phase
        self._every_time = every_time
        names = {port["port"].partition(":")[2] for port in summary["ports"]}
        self._one_port_a_host = len(names) == 1

    def print(self, directory: str) -> None:
        """Print all of it."""
        say(self._console, "")
        for line in first_screen.lines(self._summary):
            room = max(self._console.width, 80) - 12
            say(self._console, f"{line.label:<12}{line.fitted(room)}", line.style or "", hang=12)
        self._suite()
        self._searches()
        if self._every_phase or not self._summary.get("suite"):
            self._phases()
            self._plans()
        self._times()
        parts.show_messages(self._summary["messages"], self._console)
        parts.show_steps(self._summary.get("steps") or {}, self._console)
        parts.show_transports(self._summary, self._console)
        self._faults()
        self._repeats()
        self._losses()
        self._verdict()
        self._found()
        self._ending(directory)

    # --- results -----------------------------------------------------------------------------

    def _suite(self) -> None:
        """Print the tables of a document's suite, and what they lack."""
        for spec in suite.TABLES:
            # A row without values is among the notes, with the reason.
            rows = [row for row in spec.entries(self._summary) if has_values(row)]
            show(spec.on_terminal(rows), self._console, spec.title)
        for title, lines, style in suite_notes(self._summary):
            listed(self._console, title, lines, style)

    def _searches(self) -> None:
        """Print what a suite's searches found; their trials are shown with --all."""
        suite = suite_of(self._summary)
        found = self._summary.get("searches") or [] if suite is None or suite.is_free else []
        show(results.searches.on_terminal(found), self._console, results.searches.title)
        ends = list(dict.fromkeys(entry["outcome"] for entry in found if not entry["regular"]))
        listed(self._console, "Searches without two bounds", ends, "yellow")

    def _phases(self) -> None:
        """Print a table for each transport, size, network and load."""
        sections: dict[str, list[Entry]] = {}
        for entry in self._summary["trials"]:
            if entry["traffic"] != SCHEDULE:  # which has tables of its own
                load = entry["intended_load"]
                asked = "" if load is None else f" at {load:g} % of line"
                title = f"{entry['transport']}, {format.size(entry)}{asked}"
                sections.setdefault(f"{title}, network {entry['network']}", []).append(entry)
        for title, entries in sections.items():
            rows = list(self._rows(entries))
            table = results.phases.on_terminal(rows)
            hidden = len(entries) - sum(not row["of_plan"] for row in rows)
            notes = [T_MEANS] if any(row["tester_limited"] for row in rows) else []
            if hidden:
                notes.append(f"{format.of(hidden, 'more phase')} of these patterns: --all")
            show(
                table,
                self._console,
                f"{title}, payload, one way",
                styles=["bold" if row["of_plan"] else "" for row in rows],
                notes=notes,
            )

    def _rows(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """Yield a row for each plan; below those of several phases the worst of them."""
        for key, group in groupby(entries, key=plan_key):
            phases = list(group)
            plans = (plan for plan in self._summary["plans"] if plan_key(plan) == key)
            plan = next(plans, None)
            ranks = format.of(phases[0]["ranks"], "rank")
            again = f", repeat {phases[0]['repeat']}" if phases[0]["repeat"] else ""
            name = f"{format.pattern(phases[0])}, {ranks}{again}"
            if plan is None or plan["phases"] == 1:
                yield from (self._row(entry, name) for entry in phases)
                continue
            name = f"{name}, {format.of(len(phases), 'phase')}"
            yield {**self._row(_whole(plan, phases), name), "of_plan": True}
            several = not self._every_phase and len(phases) > WORST_PHASES
            for entry in _worst(phases) if several else phases:
                yield self._row(entry, f"  {phase_name(entry)}")

    def _row(self, entry: Entry, name: str) -> Entry:
        """Return an entry as a row: named.

        And its slowest flow by hosts where each has the same port.
        """
        ends = entry["slowest"]
        if ends is not None and self._one_port_a_host:
            ends = {end: port.partition(":")[0] for end, port in ends.items()}
        state = "" if entry["state"] == "complete" else f" {entry['state']}"
        return {
            **entry,
            "row": f"{name}{state}",
            "of_plan": False,
            "slowest": ends,
        }

    def _plans(self) -> None:
        """Of plans of several phases: how long, and the slowest flow of each phase."""
        plans = [
            {**plan, "spark": self._spark(plan)}
            for plan in results.plans.entries(self._summary)
            if plan["traffic"] != SCHEDULE and plan["phases"] > 1
        ]
        if plans:
            table = results.plans.on_terminal(plans)
            show(table, self._console, "Pattern totals, payload, one way")

    def _spark(self, plan: Mapping[str, Any]) -> str:
        entries = [e for e in self._summary["trials"] if plan_key(e) == plan_key(plan)]
        shares = [entry["throughput"]["min_percent_of_line"] for entry in entries]
        return format.spark(shares, 100.0, self._console.options.ascii_only)

    def _times(self) -> None:
        nodes = self._summary["clocks"]
        words = clocks.sentence(nodes)
        if words and (self._every_time or any(node["clock"] != "shared" for node in nodes)):
            say(self._console, f"  {words}", "dim")
        if self._every_time:
            plans = groupby(self._summary["trials"], key=plan_key)
            phases = [phase for _, group in plans for phase in self._timed(list(group))]
            parts.show_times(self._summary, phases, self._console)

    def _timed(self, phases: Sequence[Entry]) -> Iterator[tuple[str, Entry]]:
        """Yield a plan's phases with titles; of many only those with the longest times."""
        timed = [entry for entry in phases if any((entry.get("latency") or {}).values())]
        several = len(timed) > 1
        if not self._every_phase and len(timed) > WORST_PHASES:
            kept = sorted(timed, key=_longest, reverse=True)[:WORST_PHASES]
            timed = [entry for entry in timed if entry in kept]
        for entry in timed:
            name = f", {phase_name(entry)}" if several else ""
            again = f", repeat {entry['repeat']}" if entry["repeat"] else ""
            yield f"{plan_title(entry)}, {format.of(entry['ranks'], 'rank')}{name}{again}", entry

    # --- ports, repeats, losses ----------------------------------------------------------------

    def _faults(self) -> None:
        """Suspects with their evidence, the ports that they are at, and what would decide."""
        found = list(judged.suspects.entries(self._summary))
        if not found:
            return
        test = self._summary["location"]["next_test"]
        notes = [f"next test (switchbench locate): {test['why']}"] if test else []
        show(judged.suspects.on_terminal(found), self._console, judged.suspects.title, notes=notes)
        bad = [port for port in self._summary["ports"] if port["suspect"]]
        show(ports.ports.on_terminal(bad), self._console, "Ports of suspects")

    def _repeats(self) -> None:
        """Print how sure the means are of what was repeated."""
        entries = [
            row
            for row in results.repeats.entries(self._summary)
            if row["statistics"]["measure"] == MEASURE
        ]
        table = results.repeats.on_terminal(entries)
        unsure = [row["statistics"]["verdict"] == "inconclusive" for row in entries]
        show(
            table,
            self._console,
            results.repeats.title,
            styles=["yellow" if one else "" for one in unsure],
        )

    def _losses(self) -> None:
        """Print where frames were lost, of the phases that lost the most."""
        if self._summary.get("suite") and not self._every_phase:
            return  # a search goes where frames are lost
        lossy = [entry for entry in self._summary["trials"] if _is_lossy(entry)]
        lossy.sort(key=lambda entry: -(entry["loss_location"]["lost_frames"] or 0))
        shown = lossy if self._every_phase else lossy[:WORST_PHASES]
        unseen = any(entry["lost_frames"] is None for entry in shown)
        notes = (
            ["by the ports' counters: what tcp and verbs lose they retransmit"] if unseen else []
        )
        title = "Where frames were lost"
        show(results.losses.on_terminal(shown), self._console, title, notes=notes)

    def _verdict(self) -> None:
        """Each clause and the worst value that was measured, then all of them together."""
        clauses = list(judged.clauses.entries(self._summary))
        styles = [VERDICT_STYLES[clause["verdict"]] for clause in clauses]
        said = []
        for clause in clauses:
            words = [clause[key] for key in ("clause", "source", "reason") if clause[key]]
            said += [f"{clause['id'] or clause['measure']}: {'; '.join(words)}"] if words else []
        table = judged.clauses.on_terminal(clauses)
        show(table, self._console, "Verdict", styles=styles, notes=said)
        verdict = self._summary.get("verdict")
        if not verdict:
            return
        word = verdict["verdict"]
        say(self._console, f"\n{word}: {verdict['sentence']}.", VERDICT_STYLES[word], hang=2)
        for sentence in verdict["warnings"]:
            say(self._console, f"Warning: {sentence}.", "yellow", hang=2)
        say(self._console, verdict["scope"], hang=2)
        say(self._console, f"clauses SHA-256 {verdict['clauses_sha256']}")

    # --- findings ------------------------------------------------------------------------------

    def _found(self) -> None:
        """By severity; what each is made of with --all."""
        found = findings(self._summary)
        if not found:
            return
        heading(self._console, "Findings")
        shown = found if self._every_phase else found[:MOST_FINDINGS]
        for one in shown:
            say(self._console, f"  {one.severity:<9}{one.text}", STYLES[one.severity], hang=11)
            for part in one.parts if self._every_phase else ():
                say(self._console, f"           {part}", hang=13)
        if len(shown) < len(found):
            say(self._console, f"  and {len(found) - len(shown)} more (--all)")

    def _ending(self, directory: str) -> None:
        status = self._summary["status"]
        style = {"complete": "green", "partial": "yellow", "failed": "bold red"}[status]
        run = self._summary["run"]
        say(self._console, f"\n{status} in {format.seconds(run.get('elapsed_s'))}", style)
        say(self._console, f"results    {directory}")
        say(self._console, f"rerun      {' '.join(run.get('command', []))}")


def _is_lossy(entry: Entry) -> bool:
    if entry["traffic"] == SCHEDULE:  # its phases end while acknowledgements are in flight
        return False
    found = entry["loss_location"]
    counts = (found["sender_host"], in_network(entry), found["receiver_host"])
    return any((count or 0) > 0 for count in (*counts, found.get("other_traffic")))


# --- what a plan's row has of its phases ----------------------------------------------------------


def plan_key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells a plan's entries from others."""
    return entry["trial"], entry["repeat"], entry["network"]


def _worst(phases: Sequence[Entry]) -> list[Entry]:
    """Return the slowest, and the one that lost the most where it is not among them."""
    rates = ((math.inf if (rate := p["throughput"]["min"]) is None else rate, p) for p in phases)
    worst = [phase for _, phase in sorted(rates, key=itemgetter(0))[:WORST_PHASES]]
    leakiest = max(phases, key=lambda entry: entry["lost_frames"] or 0)
    if leakiest["lost_frames"] and leakiest not in worst:
        worst.append(leakiest)
    return worst


def _longest(entry: Entry) -> float:
    """Return the greatest of a phase's times, of whatever kind."""
    kinds = (entry.get("latency") or {}).values()
    return max((times["max"] or 0.0 for times in kinds if times), default=0.0)


def _whole(plan: Entry, phases: Sequence[Entry]) -> Entry:
    """Return a plan's line has the sums and worst figures of its phases where the plan has none."""
    sums = ("reordered_frames", "duplicated_frames", "corrupted_frames", "misdelivered_frames",
            "retransmitted_segments", "retransmitted_packets", "lost_messages")  # fmt: skip
    loads = [entry["offered_load"] for entry in phases if entry["offered_load"] is not None]
    skews = [entry["start_skew_us"] for entry in phases if entry["start_skew_us"] is not None]
    cpu = _sum_of_known(entry["cpu_s"] for entry in phases)
    delivered = plan["delivered_bytes"]
    return {
        **plan,
        **{name: _sum_of_known(entry.get(name) for entry in phases) for name in sums},
        "offered_load": sum(loads) / len(loads) if loads else None,
        "start_skew_us": max(skews, default=None),
        "tester_limited": any(entry["tester_limited"] for entry in phases),
        "state": "complete",
        "cpu_s_per_gb": cpu / (delivered / 1e9) if cpu is not None and delivered else None,
    }


def _sum_of_known(values: Any) -> Any:
    parts = list(values)
    return None if None in parts else sum(parts)
