# SPDX-License-Identifier: BSD-3-Clause
"""The printed result: the first screen, what each trial gave, bad ports, the verdict, findings.

Made of the summary alone, so that a finished run's table can be printed again. The tables are
those of the report (tables/); which of their rows a terminal shows is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console

from ...analysis import clocks
from ...analysis.loss_location import in_network
from ...analysis.statistics import MEASURE
from ...base import format
from ...base.model import SCHEDULE
from .. import first_screen
from ..tables import ports, results
from ..tables.columns import phase_name, plan_title
from . import parts, verdict_table
from .grid import heading, listed, say, show
from .rows import (
    WORST_PHASES,
    Entry,
    ended,
    is_behind,
    limit_sentences,
    longest,
    plan_key,
    widest,
    worst,
)


class SummaryPrinter:
    """Prints one summary."""

    def __init__(
        self,
        summary: Entry,
        console: Console,
        every_phase: bool = False,
        options: Sequence[str] = (),
    ) -> None:
        """`every_phase`: all phases of a plan instead of its five worst. `options`: further
        columns, `intervals`, or all times that were measured, `latency`."""
        self._summary = summary
        self._console = console
        self._every_phase = every_phase
        self._intervals = "intervals" in options
        self._every_time = "latency" in options
        names = {port["port"].partition(":")[2] for port in summary["ports"]}
        self._one_port_a_host = len(names) == 1

    def print(self, directory: str) -> None:
        """The whole report."""
        say(self._console, "")
        for line in first_screen.lines(self._summary):
            say(self._console, f"{line.label:<11}{line.text}", line.style or "")
        self._searches()
        if self._every_phase or not self._summary.get("searches"):
            self._phases()
            self._plans()
        self._times()
        if "messages" in self._summary:  # older summaries have none
            parts.show_messages(self._summary["messages"], self._console)
        parts.show_steps(self._summary.get("steps") or {}, self._console)
        parts.show_transports(self._summary, self._console)
        self._ports()
        self._repeats()
        self._losses()
        if self._summary["expectations"]:
            heading(self._console, "Verdict")
            verdict_table.show(self._summary, self._console)
        self._found()
        self._ending(directory)

    # --- results -----------------------------------------------------------------------------

    def _searches(self) -> None:
        """What a suite's searches found; their trials are shown with --all."""
        found = self._summary.get("searches") or []
        show(results.searches.on_terminal(found), self._console, results.searches.title)
        ends = list(dict.fromkeys(entry["outcome"] for entry in found if not entry["regular"]))
        listed(self._console, "Searches without two bounds", ends, "yellow")

    def _phases(self) -> None:
        """A table for each transport, size, network and load."""
        sections: dict[str, list[Entry]] = {}
        for entry in self._summary["trials"]:
            if entry["traffic"] != SCHEDULE:  # which has tables of its own
                sections.setdefault(self._section(entry), []).append(entry)
        for title, entries in sections.items():
            rows = list(self._rows(entries))
            if not any(entry["repeat"] for entry in entries):
                rows = [row | {"repeat": None} for row in rows]
            table = results.phases.on_terminal(rows)
            notes = []
            if any(row["row"].endswith("T") for row in rows):
                notes.append("T: the tester, not the network, was the limit")
            if any("worst" in row["row"] for row in rows):
                notes.append("all phases: --all")
            unit = table.unit if table else ""
            show(
                table,
                self._console,
                f"{title}, payload in {unit}, one way",
                styles=["bold" if row.get("of_plan") else "" for row in rows],
                notes=notes,
            )

    def _section(self, entry: Entry) -> str:
        load = entry["intended_load"]
        asked = "" if load is None else f" at {load:g} % of line"
        transport = first_screen.transport_name(self._summary, entry["transport"])
        return f"{transport}, {format.size(entry)}{asked}, network {entry['network']}"

    def _rows(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        for _key, group in groupby(entries, key=plan_key):
            phases = list(group)
            plan = self._plan_of(phases[0])
            if plan is None or plan["phases"] == 1:
                yield from (self._row(entry, ended(entry)) for entry in phases)
                continue
            whole, every = widest(plan, phases), len(phases)
            if not self._every_phase and every > WORST_PHASES:
                phases = worst(phases)
            named = f"all {every}" if len(phases) == every else f"all {every}, worst {len(phases)}:"
            yield self._row(whole, named) | {"of_plan": True}
            for entry in phases:
                yield self._row(entry, f"{phase_name(entry)} {ended(entry)}".rstrip())

    def _row(self, entry: Entry, name: str) -> Entry:
        """An entry as a row: named, and its slowest flow by hosts where each has the same port."""
        ends = entry["slowest"]
        if ends is not None and self._one_port_a_host:
            ends = {end: port.partition(":")[0] for end, port in ends.items()}
        lowest = entry.get("intervals", {}).get("lowest", []) if self._intervals else []
        return entry | {
            "row": name,
            "slowest": ends,
            "low": lowest[0] if lowest else None,
        }

    def _plan_of(self, entry: Entry) -> Entry | None:
        plans: list[Entry] = self._summary["plans"]
        return next((plan for plan in plans if plan_key(plan) == plan_key(entry)), None)

    def _plans(self) -> None:
        """Of plans of several phases: how long, and the slowest flow of each phase."""
        plans = [
            {**plan, "spark": self._spark(plan)}
            for plan in results.plans.entries(self._summary)
            if plan["traffic"] != SCHEDULE and plan["phases"] > 1
        ]
        if plans:
            table = results.plans.on_terminal(plans)
            unit = table.unit if table else ""
            show(table, self._console, f"Pattern totals, payload in {unit}, one way")

    def _spark(self, plan: Mapping[str, Any]) -> str:
        entries = [e for e in self._summary["trials"] if plan_key(e) == plan_key(plan)]
        shares = [entry["throughput"]["min_percent_of_line"] for entry in entries]
        return format.spark(shares, 100.0, self._console.options.ascii_only)

    def _times(self) -> None:
        nodes = self._summary.get("clocks", [])  # older summaries have none
        words = clocks.sentence(nodes)
        if words and (self._every_time or any(node["clock"] != "shared" for node in nodes)):
            say(self._console, f"  {words}", "dim")
        floor = parts.floor_words(self._summary)
        if floor is not None:
            say(self._console, f"  {floor}", "dim")
        if self._every_time:
            plans = groupby(self._summary["trials"], key=plan_key)
            phases = [phase for _, group in plans for phase in self._timed(list(group))]
            parts.show_times(self._summary, phases, self._console)

    def _timed(self, phases: Sequence[Entry]) -> Iterator[tuple[str, Entry]]:
        """A plan's phases with titles; of many only those with the longest times."""
        timed = [entry for entry in phases if any((entry.get("latency") or {}).values())]
        several = len(timed) > 1
        if not self._every_phase and len(timed) > WORST_PHASES:
            kept = sorted(timed, key=longest, reverse=True)[:WORST_PHASES]
            timed = [entry for entry in timed if entry in kept]
        for entry in timed:
            name = f", {phase_name(entry)}" if several else ""
            again = f", repeat {entry['repeat']}" if entry["repeat"] else ""
            yield f"{plan_title(entry)}, {format.of(entry['ranks'], 'rank')}{name}{again}", entry

    # --- ports, repeats, losses ----------------------------------------------------------------

    def _ports(self) -> None:
        every = self._summary["ports"]
        bad = [port for port in every if port["below_median"]]
        behind = sum(is_behind(port) for port in every)
        if bad:
            title = "Ports more than 3 % below the median port"
            show(ports.ports.on_terminal(bad), self._console, title)
        elif behind:
            some = f"{format.of(behind, 'port')} {'is' if behind == 1 else 'are'}"
            words = f"{some} more than 3 % below the median port, but only on shared paths or with "
            say(self._console, f"\n{words}some partners.")
        elif every:
            say(self._console, "\nNo port is more than 3 % below the median port.")

    def _repeats(self) -> None:
        """How sure the means are of what was repeated."""
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
            f"{results.repeats.title} in {table.unit if table else ''}",
            styles=["yellow" if one else "" for one in unsure],
        )

    def _losses(self) -> None:
        """Where frames were lost, of the phases that lost the most."""
        if self._summary.get("searches") and not self._every_phase:
            return  # a search goes where frames are lost
        lossy = [entry for entry in self._summary["trials"] if _is_lossy(entry)]
        lossy.sort(key=lambda entry: -(entry["loss_location"]["lost_frames"] or 0))
        shown = lossy if self._every_phase else lossy[:WORST_PHASES]
        show(results.losses.on_terminal(shown), self._console, "Where frames were lost")

    # --- findings ------------------------------------------------------------------------------

    def _found(self) -> None:
        found = self._summary
        sentences = [finding["sentence"] for finding in found.get("findings", [])]
        limits = limit_sentences(found["trials"])
        for title, lines, style in (
            ("A host, not the network, may have been the limit", limits, "yellow"),
            ("Found", sentences, "bold red"),
            ("Warnings", found["warnings"], "bold red"),
            ("Not measured", found["not_measured"], "yellow"),
            ("What went wrong", found["errors"], "bold red"),
        ):
            listed(self._console, title, lines, style, None if self._every_phase else 10)

    def _ending(self, directory: str) -> None:
        status = self._summary["status"]
        style = {"complete": "green", "partial": "yellow", "failed": "bold red"}[status]
        run = self._summary["run"]
        say(self._console, f"\n{status} in {format.seconds(run['elapsed_s'])}", style)
        say(self._console, f"results    {directory}")
        say(self._console, f"again      {' '.join(run['command'])}")


def _is_lossy(entry: Entry) -> bool:
    if entry["traffic"] == SCHEDULE:  # its phases end while acknowledgements are in flight
        return False
    found = entry["loss_location"]
    counts = (found["sender_host"], in_network(entry), found["receiver_host"])
    return any((count or 0) > 0 for count in (*counts, found.get("other_traffic")))
