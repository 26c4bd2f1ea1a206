# SPDX-License-Identifier: BSD-3-Clause
"""The printed result: what each trial gave, the paper's figures, bad ports, the verdict.

Made of the summary alone, so that a finished run's table can be printed again. What is the same
in all rows is said once above them; a count that is 0 in all rows is said once below.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from ...analysis import clocks
from ...analysis import measures as m
from ...analysis.loss_location import in_network
from ...analysis.ports import BELOW_MEDIAN
from ...analysis.statistics import MEASURE
from ...base import format
from ...base.format import Unit, unit_for
from ...base.model import SCHEDULE
from .. import first_screen
from . import latency_table, messages, side_by_side, steps_table, verdict_table

WORST_PHASES = 5
PLAIN_WIDTH = 120  # where there is no terminal to ask

Entry = dict[str, Any]


@dataclass(frozen=True)
class _Row:
    """One line: a phase, or a whole plan above its phases."""

    entry: Entry
    phase: str
    slowest: str
    of_plan: bool = False


@dataclass(frozen=True)
class _Column:
    """A column; `drop` says how soon it goes when the terminal is narrow, 0 never."""

    title: str
    show: Callable[[_Row, Unit], str]
    drop: int = 0
    zero: str | None = None  # how to say below that it is 0 in all rows
    unseen: bool = False  # say so below when it is unknown in all rows
    right: bool = True
    option: str | None = None  # shown only when asked for


def _rate(name: str) -> Callable[[_Row, Unit], str]:
    return lambda row, unit: unit.show(row.entry["throughput"][name])


def _share(name: str) -> Callable[[_Row, Unit], str]:
    return lambda row, _unit: format.percent(row.entry["throughput"][name])


def _count(name: str) -> Callable[[_Row, Unit], str]:
    return lambda row, _unit: format.count(row.entry.get(name))


def _load(row: _Row, _unit: Unit) -> str:
    return format.percent(row.entry.get("offered_load"))


def _lowest(row: _Row) -> Entry | None:
    lowest: list[Entry] = row.entry.get("intervals", {}).get("lowest", [])
    return lowest[0] if lowest else None


def _interval_least(row: _Row, unit: Unit) -> str:
    low = _lowest(row)
    return unit.show(None if low is None else low["mbps"])


def _interval_share(row: _Row, _unit: Unit) -> str:
    low = _lowest(row)
    return format.percent(None if low is None else low["percent_of_mean"])


def _interval_when(row: _Row, _unit: Unit) -> str:
    low = _lowest(row)
    return format.UNKNOWN if low is None else f"{low['from_s']:.2f}"


def _digits(name: str) -> Callable[[_Row, Unit], str]:
    return lambda row, _unit: format.digits(row.entry.get(name))


def _time(name: str) -> Callable[[_Row, Unit], str]:
    """Of the round trip, in microseconds; `_widest` has none: a plan's phases have their own."""

    def show(row: _Row, _unit: Unit) -> str:
        trip = (row.entry.get("latency") or {}).get("round_trip") or {}
        return format.digits(trip.get(name))

    return show


_COLUMNS = (
    _Column("pattern", lambda row, _: format.pattern(row.entry), right=False),
    _Column("ranks", lambda row, _: str(row.entry["ranks"]), drop=8),
    _Column("phase", lambda row, _: row.phase, right=False),
    _Column("repeat", lambda row, _: str(row.entry["repeat"]), zero=""),
    _Column("offered\n%", _load, drop=4),
    _Column("min", _rate("min")),
    _Column("mean", _rate("mean")),
    _Column("max", _rate("max"), drop=7),
    _Column("total", _rate("total"), drop=6),
    _Column("frames/s", lambda row, _: _frame_rate(row.entry), drop=3),
    _Column("least in\nan interval", _interval_least, option="intervals"),
    _Column("of its\nmean %", _interval_share, option="intervals"),
    _Column("at s", _interval_when, option="intervals"),
    _Column("least\n%", _share("min_percent_of_line")),
    _Column("lost", _count("lost_frames"), zero="lost in the network"),
    _Column("in\nhost", _count("host_dropped_frames"), zero="dropped in a host", unseen=True),
    _Column("out of\norder", _count("reordered_frames"), drop=5, zero="reordered"),
    _Column("dup.", _count("duplicated_frames"), drop=5, zero="duplicated"),
    _Column("corr.", _count("corrupted_frames"), zero="corrupted"),
    _Column("misd.", _count("misdelivered_frames"), zero="misdelivered"),
    _Column("retr.", _count("retransmitted_segments"), drop=5, zero="retransmitted"),
    _Column("lost\nmsgs", _count("lost_messages"), zero="lost as messages"),
    _Column("retr.\npackets", _count("retransmitted_packets"), drop=5, zero="retransmitted"),
    _Column("rtt p50\nµs", _time("p50"), drop=4),
    _Column("p99\nµs", _time("p99"), drop=4),
    _Column("max\nµs", _time("max"), drop=4),
    _Column("skew\nµs", _digits("start_skew_us"), drop=2),
    _Column("CPU\ns/GB", _digits("cpu_s_per_gb"), drop=1),
    _Column("slowest flow", lambda row, _: row.slowest, drop=9, right=False),
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
        self._columns = [c for c in _COLUMNS if c.option is None or c.option in options]
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
                sections.setdefault(_section_key(entry), []).append(entry)
        for entries in sections.values():
            rows = list(self._rows(entries))
            unit = unit_for(entry["throughput"]["max"] for entry in entries)
            self._heading(f"{self._title_of(entries)}, payload in {unit.name}, one way")
            self._print_rows(rows, unit)

    def _rows(self, entries: Sequence[Entry]) -> Iterator[_Row]:
        for _key, group in groupby(entries, key=_plan_key):
            phases = list(group)
            plan = self._plan_of(phases[0])
            if plan is None or plan["phases"] == 1:
                yield from (_Row(entry, _ended(entry), self._flow(entry)) for entry in phases)
                continue
            whole = _widest(plan, phases)
            every = len(phases)
            if not self._every_phase and every > WORST_PHASES:
                phases = _worst(phases)
            named = f"all {every}" if len(phases) == every else f"all {every}, worst {len(phases)}:"
            yield _Row(whole, named, self._flow(whole), of_plan=True)
            for entry in phases:
                name = f"{_phase_name(entry)} {_ended(entry)}".rstrip()
                yield _Row(entry, name, self._flow(entry))

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
        return next((plan for plan in plans if _plan_key(plan) == _plan_key(entry)), None)

    def _print_rows(self, rows: Sequence[_Row], unit: Unit) -> None:
        cells = {column: [column.show(row, unit) for row in rows] for column in self._columns}
        known = [column for column in self._columns if set(cells[column]) - {format.UNKNOWN, ""}]
        none = [column for column in known if column.zero is not None and _all_zero(cells[column])]
        columns = [column for column in known if column not in none]
        table = _table(columns, rows, cells)
        while self._width_of(table) > self._console.width and any(c.drop for c in columns):
            first = min((c for c in columns if c.drop), key=lambda column: column.drop)
            columns.remove(first)
            table = _table(columns, rows, cells)
        self._console.print(table)
        words = [column.zero for column in none if column.zero]
        unseen = [column.zero for column in self._columns if column.unseen and column not in known]
        notes = [f"none {_listed(words)}"] if words else []
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
        table = _plain_table("", *(str(ranks) for ranks in counts))
        for (title, _), group in groupby(sorted(plans, key=_series_key), key=_series_key):
            rates = {plan["ranks"]: plan["throughput"]["min"] for plan in group}
            table.add_row(escape(title), *(unit.show(rates.get(ranks)) for ranks in counts))
        self._console.print(table)

    def _pairs_figure(self, plans: Sequence[Entry]) -> None:
        if not plans:
            return
        unit = unit_for(plan["throughput"]["max"] for plan in plans)
        self._heading(f"Pairs, full duplex, {unit.name} each way")
        table = _plain_table("", "ranks", "min", "mean", "max", "% of line")
        for plan in plans:
            rates = plan["throughput"]
            table.add_row(
                escape(_title(plan)),
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
        table = _plain_table("", "ranks", "time", "mean", "least", "in phase")
        table.add_column("by phase, of line", overflow="fold")
        for plan in plans:
            rates = plan["throughput"]
            table.add_row(
                escape(_title(plan)),
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
            if _plan_key(entry) == _plan_key(plan) and entry["phase"] == plan["worst_phase"]:
                return _phase_name(entry)
        return format.UNKNOWN

    def _spark(self, plan: Entry) -> str:
        entries = [e for e in self._summary["trials"] if _plan_key(e) == _plan_key(plan)]
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
        for _key, group in groupby(self._summary["trials"], key=_plan_key):
            blocks += self._time_blocks(list(group))
        for note in latency_table.show(blocks, self._console):
            self._say(f"  {note}", "dim")

    def _time_blocks(self, phases: Sequence[Entry]) -> Iterator[latency_table.Block]:
        """A plan's phases; of many only those with the longest times."""
        timed = [entry for entry in phases if any((entry.get("latency") or {}).values())]
        several = len(timed) > 1
        if not self._every_phase and len(timed) > WORST_PHASES:
            kept = sorted(timed, key=_longest, reverse=True)[:WORST_PHASES]
            timed = [entry for entry in timed if entry in kept]
        for entry in timed:
            name = f", {_phase_name(entry)}" if several else ""
            again = f", repeat {entry['repeat']}" if entry["repeat"] else ""
            title = f"{_title(entry)}, {format.of(entry['ranks'], 'rank')}{name}{again}"
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
            behind = sum(_is_behind(port) for port in self._summary["ports"])
            words = "No port is more than 3 % below the median port."
            if behind:
                ports = f"{format.of(behind, 'port')} {'is' if behind == 1 else 'are'}"
                words = f"{ports} more than 3 % below the median port, but only on shared paths or "
                words += "with some partners."
            self._say(f"\n{words}")
            return
        self._heading("Ports more than 3 % below the median port, percent of line")
        table = _plain_table("port", "transport", "sent", "received", "of median", "lost")
        table.add_column("slowest in", justify="right")
        for port in bad:
            ends = [port["as_source"], port["as_destination"]]
            table.add_row(
                escape(_port_name(port)),
                port["transport"],
                *(format.percent(end["median_percent_of_line"]) for end in ends),
                _least_relative(ends),
                format.count(_sum(end["lost_frames"] for end in ends)),
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
        table = _plain_table("", "ranks", "repeats", "mean", "from", "to", "width %", "asked %")
        table.add_column("verdict")
        for entry, plan in rows:
            if plan is None:
                continue
            table.add_row(
                escape(_title(plan)),
                str(plan["ranks"]),
                str(len(entry["values"])),
                *(unit.show(entry[name]) for name in ("mean", "ci_low", "ci_high")),
                *(
                    format.percent(entry[f"{name}_percent"])
                    for name in ("ci_width", "target_ci_width")
                ),
                _sureness(entry),
                style="yellow" if entry["verdict"] == "inconclusive" else None,
            )
        self._console.print(table)

    def _whereabouts(self) -> None:
        """Where frames went missing, of the phases that lost the most."""
        lossy = [entry for entry in self._summary["trials"] if _went_missing(entry)]
        if not lossy:
            return
        lossy.sort(key=lambda entry: -(entry["loss_location"]["lost_frames"] or 0))
        self._heading("Where frames went missing")
        others = any(_displaced(entry) for entry in lossy)
        places = ["sender's host", "network", "receiver's host", *["other traffic"] * others]
        table = _plain_table("", "phase", "lost", *places)
        table.add_column("first port")
        for entry in lossy if self._every_phase else lossy[:WORST_PHASES]:
            found = entry["loss_location"]
            counts = (found["lost_frames"], *_places_of(entry), *[_displaced(entry)] * others)
            table.add_row(
                escape(_title(entry)),
                escape(_phase_name(entry)),
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
            ("A host, not the network, may have been the limit", self._limits(), "yellow"),
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

    def _limits(self) -> list[str]:
        """A sentence for each port whose host is doubted, over all phases."""
        limits: dict[str, list[Entry]] = {}
        for entry in self._summary["trials"]:
            for limit in entry["tester_limited"]:
                limits.setdefault(limit["port"], []).append(limit)
        sentences = []
        for port, found in sorted(limits.items()):
            words = []
            short = [limit["shortfall_percent"] for limit in found if limit["shortfall_percent"]]
            if short:
                words.append(f"offered up to {max(short):.1f} % less than intended")
            drops = sum(limit["dropped_frames"] or 0 for limit in found)
            if drops:
                words.append(f"{format.of(drops, 'frame')} dropped in the host")
            late = m.greatest(limit.get("start_delay_ms") for limit in found)
            if late:
                words.append(f"started up to {late:.1f} ms late")
            off = m.greatest(limit.get("window_error_percent") for limit in found)
            if off:
                words.append(f"its window was up to {off:.1f} % off its length")
            sentences.append(f"{port}: {', '.join(words)}, in {format.of(len(found), 'phase')}")
        return sentences

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


def make_console() -> Console:
    """Standard output: its own width on a terminal, else 120 columns and nothing but text."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=PLAIN_WIDTH, no_color=True)


def make_canvas() -> Console:
    """For a picture of the table: with colours, on no terminal."""
    return Console(width=PLAIN_WIDTH, record=True, file=io.StringIO(), force_terminal=True)


def _places_of(entry: Entry) -> tuple[int | None, int | None, int | None]:
    """What went missing in the sender's host, the network, the receiver's host."""
    found = entry["loss_location"]
    return found["sender_host"], in_network(entry), found["receiver_host"]


def _displaced(entry: Entry) -> int | None:
    """What went missing while other traffic took its place; older summaries do not say."""
    count: int | None = entry["loss_location"].get("other_traffic")
    return count


def _went_missing(entry: Entry) -> bool:
    if entry["traffic"] == SCHEDULE:  # its phases end while acknowledgements are under way
        return False
    return any((count or 0) > 0 for count in (*_places_of(entry), _displaced(entry)))


def _sureness(entry: Entry) -> str:
    words = [entry["verdict"] or ""]
    if entry["dependent"]:
        words.append("repeats depend on each other")
    return ", ".join(word for word in words if word)


# --- keys and titles ---------------------------------------------------------------------------


def _section_key(entry: Entry) -> tuple[Any, ...]:
    return entry["transport"], str(entry["size"]), entry["network"], entry["intended_load"]


def _plan_key(entry: Entry) -> tuple[Any, ...]:
    return entry["trial"], entry["repeat"], entry["network"]


def _title(plan: Entry) -> str:
    load = "" if plan["intended_load"] is None else f", {plan['intended_load']:g} %"
    return f"{format.pattern(plan)}, {plan['transport']}, {format.size(plan)}{load}"


def _series_key(plan: Entry) -> tuple[str, str]:
    return _title(plan), plan["network"]


def _phase_name(entry: Entry) -> str:
    return str(entry["phase_name"] or entry["phase"])


def _worst(phases: Sequence[Entry]) -> list[Entry]:
    """The slowest, and the one that lost the most where it is not among them."""
    worst = sorted(phases, key=_least)[:WORST_PHASES]
    leakiest = max(phases, key=lambda entry: entry["lost_frames"] or 0)
    if leakiest["lost_frames"] and leakiest not in worst:
        worst.append(leakiest)
    return worst


def _ended(entry: Entry) -> str:
    """How the phase ended, where that was not as it should; T: the tester was the limit."""
    state = "" if entry["state"] == "complete" else str(entry["state"])
    return " ".join(filter(None, (state, "T" if entry["tester_limited"] else "")))


def _frame_rate(entry: Entry) -> str:
    rate = first_screen.frames_per_s(entry)
    return format.UNKNOWN if rate is None else f"{rate:,.0f}"


def _least(entry: Entry) -> float:
    rate = entry["throughput"]["min"]
    return float("inf") if rate is None else rate


def _longest(entry: Entry) -> float:
    """The greatest of a phase's times, of whatever kind."""
    kinds = (entry.get("latency") or {}).values()
    return max((times["max"] or 0.0 for times in kinds if times), default=0.0)


def _port_name(port: Entry) -> str:
    wired = " ".join(word for word in (port["switch"], port["switch_port"]) if word)
    return f"{port['port']} ({wired})" if wired else str(port["port"])


def _is_behind(port: Entry) -> bool:
    ends = (port["as_source"], port["as_destination"])
    return any((end["relative_to_median"] or 1.0) < BELOW_MEDIAN for end in ends)


def _least_relative(ends: Sequence[Entry]) -> str:
    known = [e["relative_to_median"] for e in ends if e["relative_to_median"] is not None]
    return format.UNKNOWN if not known else f"{100 * min(known):.1f} %"


def _widest(plan: Entry, phases: Sequence[Entry]) -> Entry:
    """A plan's line has the sums and worst figures of its phases where the plan has none."""
    sums = ("reordered_frames", "duplicated_frames", "corrupted_frames", "misdelivered_frames",
            "retransmitted_segments", "retransmitted_packets", "lost_messages")  # fmt: skip
    loads = [entry["offered_load"] for entry in phases if entry["offered_load"] is not None]
    skews = [entry["start_skew_us"] for entry in phases if entry["start_skew_us"] is not None]
    cpu = _sum(entry["cpu_s"] for entry in phases)
    delivered = plan["delivered_bytes"]
    return (
        plan
        | {name: _sum(entry.get(name) for entry in phases) for name in sums}
        | {
            "offered_load": sum(loads) / len(loads) if loads else None,
            "start_skew_us": max(skews, default=None),
            "intervals": {"lowest": _lowest_of(phases)},
            "cpu_s_per_gb": cpu / (delivered / 1e9) if cpu is not None and delivered else None,
        }
    )


def _lowest_of(phases: Sequence[Entry]) -> list[Entry]:
    lows: list[Entry] = [low for entry in phases for low in entry["intervals"]["lowest"]]
    return sorted(lows, key=lambda low: float(low["percent_of_mean"]))[:1]


def _sum(values: Any) -> Any:
    parts = list(values)
    return None if None in parts else sum(parts)


# --- rich ----------------------------------------------------------------------------------------


def _all_zero(cells: Sequence[str]) -> bool:
    return all(cell in ("0", format.UNKNOWN) for cell in cells)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _table(columns: Sequence[_Column], rows: Sequence[_Row], cells: Any) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=True)
    for number, row in enumerate(rows):
        table.add_row(
            *(escape(cells[column][number]) for column in columns),
            style="bold" if row.of_plan else None,
        )
    return table


def _plain_table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for number, title in enumerate(titles):
        table.add_column(title, justify="left" if number == 0 else "right")
    return table
