# SPDX-License-Identifier: BSD-3-Clause
"""The printed result: what each trial gave, the paper's figures, bad ports, the verdict.

Made of the summary alone, so that a finished run's table can be printed again. What is the same
in all rows is said once above them; a count that is 0 in all rows is said once below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from ...analysis import clocks
from ...analysis.statistics import MEASURE
from ...base import format
from ...base.format import Unit, unit_for
from ...base.model import SCHEDULE
from .. import first_screen
from . import latency_table, messages, side_by_side, steps_table, verdict_table
from .columns import COLUMNS
from .grid import all_zero, listed_words, plain_table, rich_table
from .rows import (
    WORST_PHASES,
    Entry,
    PrintedRow,
    displaced,
    ended,
    is_behind,
    least_relative,
    limit_sentences,
    longest,
    phase_name,
    places_of,
    plan_key,
    plan_title,
    port_name,
    section_key,
    series_key,
    sum_of_known,
    sureness,
    went_missing,
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
        columns, `interval`, or all times that were measured, `latency`."""
        self._columns = [c for c in COLUMNS if c.option is None or c.option in options]
        self._summary = summary
        self._console = console
        self._every_phase = every_phase
        self._every_time = "latency" in options
        names = {port["port"].partition(":")[2] for port in summary["ports"]}
        self._one_port_a_host = len(names) == 1

    def print(self, directory: str) -> None:
        """The whole report."""
        self._first_screen()
        self._results()
        self._figures()
        self._times()
        if "messages" in self._summary:  # older summaries have none
            messages.show(self._summary["messages"], self._console)
        steps_table.show(self._summary.get("steps") or {}, self._console)
        self._transports()
        self._ports()
        self._statistics()
        self._whereabouts()
        self._verdict()
        self._gaps()
        self._ending(directory)

    def _first_screen(self) -> None:
        self._say("")
        for line in first_screen.lines(self._summary):
            self._say(f"{line.label:<11}{line.text}", line.style)

    # --- results -----------------------------------------------------------------------------

    def _results(self) -> None:
        sections: dict[tuple[Any, ...], list[Entry]] = {}
        for entry in self._summary["trials"]:
            if entry["traffic"] != SCHEDULE:  # which has tables of its own
                sections.setdefault(section_key(entry), []).append(entry)
        for entries in sections.values():
            rows = list(self._rows(entries))
            unit = unit_for(entry["throughput"]["max"] for entry in entries)
            self._heading(f"{self._title_of(entries)}, payload in {unit.name}, one way")
            self._print_rows(rows, unit)

    def _rows(self, entries: Sequence[Entry]) -> Iterator[PrintedRow]:
        for _key, group in groupby(entries, key=plan_key):
            phases = list(group)
            plan = self._plan_of(phases[0])
            if plan is None or plan["phases"] == 1:
                yield from (PrintedRow(entry, ended(entry), self._flow(entry)) for entry in phases)
                continue
            whole = widest(plan, phases)
            every = len(phases)
            if not self._every_phase and every > WORST_PHASES:
                phases = worst(phases)
            named = f"all {every}" if len(phases) == every else f"all {every}, worst {len(phases)}:"
            yield PrintedRow(whole, named, self._flow(whole), of_plan=True)
            for entry in phases:
                name = f"{phase_name(entry)} {ended(entry)}".rstrip()
                yield PrintedRow(entry, name, self._flow(entry))

    def _title_of(self, entries: Sequence[Entry]) -> str:
        """What all rows of a section have in common."""
        entry = entries[0]
        load = entry["intended_load"]
        asked = "" if load is None else f" at {load:g} % of line"
        transport = first_screen.transport_name(self._summary, entry["transport"])
        return f"{transport}, {format.size(entry)}{asked}, network {entry['network']}"

    def _flow(self, entry: Entry) -> str:
        """The slowest flow; by hosts where each has the same one port."""
        ends = entry["slowest"]
        if ends is not None and self._one_port_a_host:
            ends = {end: port.partition(":")[0] for end, port in ends.items()}
        return format.flow(ends)

    def _plan_of(self, entry: Entry) -> Entry | None:
        plans: list[Entry] = self._summary["plans"]
        return next((plan for plan in plans if plan_key(plan) == plan_key(entry)), None)

    def _print_rows(self, rows: Sequence[PrintedRow], unit: Unit) -> None:
        cells = {column: [column.show(row, unit) for row in rows] for column in self._columns}
        known = [column for column in self._columns if set(cells[column]) - {format.UNKNOWN, ""}]
        none = [column for column in known if column.zero is not None and all_zero(cells[column])]
        columns = [column for column in known if column not in none]
        table = rich_table(columns, rows, cells)
        while self._width_of(table) > self._console.width and any(c.drop for c in columns):
            first = min((c for c in columns if c.drop), key=lambda column: column.drop)
            columns.remove(first)
            table = rich_table(columns, rows, cells)
        self._console.print(table)
        words = [column.zero for column in none if column.zero]
        unseen = [column.zero for column in self._columns if column.unseen and column not in known]
        notes = [f"none {listed_words(words)}"] if words else []
        notes += [f"not observed: frames {word}" for word in unseen]
        if any(row.phase.endswith("T") for row in rows):
            notes.append("T: the tester, not the network, was the limit")
        if any("worst" in row.phase for row in rows):
            notes.append("all phases: --all")
        if notes:
            self._say(f"  {'; '.join(notes)}", "dim")

    def _width_of(self, table: Table) -> int:
        options = self._console.options.update(max_width=10_000)
        return Measurement.get(self._console, options, table).maximum

    # --- the paper's figures -----------------------------------------------------------------

    def _figures(self) -> None:
        plans = [plan for plan in self._summary["plans"] if plan["traffic"] != SCHEDULE]
        self._chain_figure([plan for plan in plans if plan["pattern"] == "chain"])
        self._pairs_figure([plan for plan in plans if plan["pattern"] == "pairs"])
        self._whole_figure([plan for plan in plans if plan["phases"] > 1])

    def _chain_figure(self, plans: Sequence[Entry]) -> None:
        if len({plan["ranks"] for plan in plans}) < 2:
            return
        unit = unit_for(plan["throughput"]["max"] for plan in plans)
        counts = sorted({plan["ranks"] for plan in plans})
        self._heading(f"Chain by number of nodes, least hop in {unit.name}")
        table = plain_table("", *(str(ranks) for ranks in counts))
        for (title, _), group in groupby(sorted(plans, key=series_key), key=series_key):
            rates = {plan["ranks"]: plan["throughput"]["min"] for plan in group}
            table.add_row(escape(title), *(unit.show(rates.get(ranks)) for ranks in counts))
        self._console.print(table)

    def _pairs_figure(self, plans: Sequence[Entry]) -> None:
        if not plans:
            return
        unit = unit_for(plan["throughput"]["max"] for plan in plans)
        self._heading(f"Pairs, full duplex, {unit.name} each way")
        table = plain_table("", "ranks", "min", "mean", "max", "% of line")
        for plan in plans:
            rates = plan["throughput"]
            table.add_row(
                escape(plan_title(plan)),
                str(plan["ranks"]),
                *(unit.show(rates[name]) for name in ("min", "mean", "max")),
                format.percent(rates["percent_of_line"]),
            )
        self._console.print(table)

    def _whole_figure(self, plans: Sequence[Entry]) -> None:
        if not plans:
            return
        unit = unit_for(plan["throughput"]["max"] for plan in plans)
        self._heading(f"Whole plans: time, and the slowest flow of each phase in {unit.name}")
        table = plain_table("", "ranks", "time", "mean", "least", "in phase")
        table.add_column("by phase, of line", overflow="fold")
        for plan in plans:
            rates = plan["throughput"]
            table.add_row(
                escape(plan_title(plan)),
                str(plan["ranks"]),
                format.seconds(plan["elapsed_s"]),
                unit.show(rates["mean"]),
                unit.show(rates["min"]),
                escape(self._phase_of(plan)),
                self._spark(plan),
            )
        self._console.print(table)

    def _phase_of(self, plan: Entry) -> str:
        """The name of the phase with the slowest flow."""
        for entry in self._summary["trials"]:
            if plan_key(entry) == plan_key(plan) and entry["phase"] == plan["worst_phase"]:
                return phase_name(entry)
        return format.UNKNOWN

    def _spark(self, plan: Entry) -> str:
        entries = [e for e in self._summary["trials"] if plan_key(e) == plan_key(plan)]
        shares = [entry["throughput"]["min_percent_of_line"] for entry in entries]
        return format.spark(shares, 100.0, self._console.options.ascii_only)

    def _times(self) -> None:
        nodes = self._summary.get("clocks", [])  # older summaries have none
        words = clocks.sentence(nodes)
        if words and (self._every_time or any(node["clock"] != "shared" for node in nodes)):
            self._say(f"  {words}", "dim")
        floor = latency_table.floor_words(self._summary)
        if not self._every_time:
            if floor is not None:
                self._say(f"  {floor}", "dim")
            return
        self._heading("Times in µs (doc/latency.md)")
        blocks = latency_table.floor_blocks(self._summary.get("loopback_baselines", []))
        for _key, group in groupby(self._summary["trials"], key=plan_key):
            blocks += self._time_blocks(list(group))
        for note in latency_table.show(blocks, self._console):
            self._say(f"  {note}", "dim")

    def _time_blocks(self, phases: Sequence[Entry]) -> Iterator[latency_table.Block]:
        """A plan's phases; of many only those with the longest times."""
        timed = [entry for entry in phases if any((entry.get("latency") or {}).values())]
        several = len(timed) > 1
        if not self._every_phase and len(timed) > WORST_PHASES:
            kept = sorted(timed, key=longest, reverse=True)[:WORST_PHASES]
            timed = [entry for entry in timed if entry in kept]
        for entry in timed:
            name = f", {phase_name(entry)}" if several else ""
            again = f", repeat {entry['repeat']}" if entry["repeat"] else ""
            title = f"{plan_title(entry)}, {format.of(entry['ranks'], 'rank')}{name}{again}"
            yield latency_table.Block(title, entry["latency"])

    def _transports(self) -> None:
        comparisons = self._summary.get("comparisons", [])  # older summaries have none
        for note in side_by_side.show(comparisons, self._console):
            self._say(f"  {note}", "dim")

    # --- ports, verdict, gaps ----------------------------------------------------------------

    def _ports(self) -> None:
        bad = [port for port in self._summary["ports"] if port["below_median"]]
        if not self._summary["ports"]:
            return
        if not bad:
            behind = sum(is_behind(port) for port in self._summary["ports"])
            words = "No port is more than 3 % below the median port."
            if behind:
                ports = f"{format.of(behind, 'port')} {'is' if behind == 1 else 'are'}"
                words = f"{ports} more than 3 % below the median port, but only on shared paths or "
                words += "with some partners."
            self._say(f"\n{words}")
            return
        self._heading("Ports more than 3 % below the median port, percent of line")
        table = plain_table("port", "transport", "sent", "received", "of median", "lost")
        table.add_column("slowest in", justify="right")
        for port in bad:
            ends = [port["as_source"], port["as_destination"]]
            table.add_row(
                escape(port_name(port)),
                port["transport"],
                *(format.percent(end["median_percent_of_line"]) for end in ends),
                least_relative(ends),
                format.count(sum_of_known(end["lost_frames"] for end in ends)),
                format.of(len(port["slowest_phases"]), "phase"),
            )
        self._console.print(table)

    def _statistics(self) -> None:
        """How sure the means are of what was repeated."""
        entries = [e for e in self._summary["statistics"] if e["measure"] == MEASURE]
        if not entries:
            return
        plans = {(plan["trial"], plan["network"]): plan for plan in self._summary["plans"]}
        rows = [(entry, plans.get((entry["trials"][0], entry["network"]))) for entry in entries]
        unit = unit_for(entry["mean"] for entry in entries)
        self._heading(f"Repeats, mean with its confidence interval in {unit.name}")
        table = plain_table("", "ranks", "repeats", "mean", "from", "to", "width %", "asked %")
        table.add_column("verdict")
        for entry, plan in rows:
            if plan is None:
                continue
            table.add_row(
                escape(plan_title(plan)),
                str(plan["ranks"]),
                str(len(entry["values"])),
                *(unit.show(entry[name]) for name in ("mean", "ci_low", "ci_high")),
                *(
                    format.percent(entry[f"{name}_percent"])
                    for name in ("ci_width", "target_ci_width")
                ),
                sureness(entry),
                style="yellow" if entry["verdict"] == "inconclusive" else None,
            )
        self._console.print(table)

    def _whereabouts(self) -> None:
        """Where frames went missing, of the phases that lost the most."""
        lossy = [entry for entry in self._summary["trials"] if went_missing(entry)]
        if not lossy:
            return
        lossy.sort(key=lambda entry: -(entry["loss_location"]["lost_frames"] or 0))
        self._heading("Where frames went missing")
        others = any(displaced(entry) for entry in lossy)
        places = ["sender's host", "network", "receiver's host", *["other traffic"] * others]
        table = plain_table("", "phase", "lost", *places)
        table.add_column("first port")
        for entry in lossy if self._every_phase else lossy[:WORST_PHASES]:
            found = entry["loss_location"]
            counts = (found["lost_frames"], *places_of(entry), *[displaced(entry)] * others)
            table.add_row(
                escape(plan_title(entry)),
                escape(phase_name(entry)),
                *map(format.count, counts),
                escape(found["ports"][0]["port"] if found["ports"] else ""),
            )
        self._console.print(table)

    def _verdict(self) -> None:
        if self._summary["expectations"]:
            self._heading("Verdict")
            verdict_table.show(self._summary, self._console)

    def _gaps(self) -> None:
        findings = self._summary.get("findings", [])  # older summaries have none
        lists = (
            (
                "A host, not the network, may have been the limit",
                limit_sentences(self._summary["trials"]),
                "yellow",
            ),
            ("Found", [found["sentence"] for found in findings], "bold red"),
            ("Alarms", self._summary["warnings"], "bold red"),
            ("Not measured", self._summary["not_measured"], "yellow"),
            ("What went wrong", self._summary["errors"], "bold red"),
        )
        for title, sentences, style in lists:
            if not sentences:
                continue
            self._heading(title)
            most = len(sentences) if self._every_phase else 10
            for sentence in sentences[:most]:
                self._say(f"  {sentence}", style)
            if len(sentences) > most:
                self._say(f"  and {len(sentences) - most} more in the summary", style)

    def _ending(self, directory: str) -> None:
        status = self._summary["status"]
        style = {"complete": "green", "partial": "yellow", "failed": "bold red"}[status]
        self._say(f"\n{status} in {format.seconds(self._summary['run']['elapsed_s'])}", style)
        self._say(f"results    {directory}")
        self._say(f"again      {' '.join(self._summary['run']['command'])}")

    def _heading(self, text: str) -> None:
        self._say(f"\n{text}", "bold")

    def _say(self, text: str, style: str | None = None) -> None:
        self._console.print(escape(text), style=style, highlight=False, soft_wrap=True)
