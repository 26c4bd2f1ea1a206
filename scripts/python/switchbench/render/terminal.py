# SPDX-License-Identifier: BSD-3-Clause
"""The printed result: first screen, results of each trial, bad ports, verdict, findings.

Everything is made from the summary, so that the table of a finished run can be printed again. The
tables are the report's (tables/); this module decides which of their rows a terminal shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console

from ..analysis import measures as m
from ..analysis.phases import clock_sentence
from ..analysis.statistics import MEASURE
from ..analysis.tester import in_network
from ..base import format, quantities
from ..base.model import SCHEDULE
from ..records.summary_form import Entry, SummaryDocument, at, plan_key
from . import first_screen
from .first_screen import ERROR, INFO, WARNING, findings, has_values, suite_notes, suite_of
from .printer import Spec, heading, listed, note_lines, say, show
from .tables import TABLES, curve_points, function_points, per_gb, phase_name, plan_title, subtests

WORST_PHASES = 5  # phases of a plan shown without --all
MOST_FINDINGS = 10
# Counts that a plan of several phases sums up.
_SUMMED = (
    "reordered_frames", "duplicated_frames", "corrupted_frames", "misdelivered_frames",
    "retransmitted_segments", "retransmitted_packets", "lost_messages",
)  # fmt: skip
T_MEANS = "T: tester-limited; excluded from means"
STYLES = {ERROR: "bold red", WARNING: "yellow", INFO: ""}
VERDICT_STYLES = {"PASS": "green", "FAIL": "bold red", "INCONCLUSIVE": "yellow"}


def show_imported(summary: Entry, console: Console, everything: bool = False) -> None:
    """Print imported figures with a shared definition; with `everything` all imported figures."""
    entries = summary.get("imported") or []
    shared = [entry for entry in entries if entry["comparable"]]
    if entries:
        show(TABLES["imported"].on_terminal(entries if everything else shared), console)
        rest = "" if everything else "; --all shows all"
        count = format.of(len(entries), "figure")
        say(console, f"{count}, {len(shared)} with a definition that several programs share{rest}")


class SummaryPrinter:
    """Printer of one run's summary on the terminal."""

    def __init__(
        self,
        summary: SummaryDocument,
        console: Console,
        every_phase: bool = False,
    ) -> None:
        """Set up the printer without printing.

        `every_phase` shows all phases of a plan instead of its five worst, and all measured times.
        """
        self._summary = first_screen.named(summary)
        self._console = console
        self._every_phase = every_phase
        names = {port["port"].partition(":")[2] for port in summary["ports"]}
        self._one_port_a_host = len(names) == 1

    def print(self, directory: str, trials: bool = True) -> None:
        """Print the summary; without `trials` omit the tables of trials."""
        console, run = self._console, self._summary["run"]
        say(console, "")
        for line in first_screen.lines(self._summary):
            say(console, f"{line.label:<12}{line.text}", line.style or "", hang=12)
        for spec in subtests() if self._summary.get("suite") else ():
            # A row without values is among the notes, with its reason.
            self._show(spec, [row for row in spec.entries(self._summary) if has_values(row)])
        for title, lines, style in suite_notes(self._summary):
            listed(self._console, title, lines, style)
        declared = suite_of(self._summary)
        if declared is None or declared.is_free:  # trials of a free suite are shown with --all
            found = self._summary.get("searches") or []
            self._show("searches", found)
            ends = list(dict.fromkeys(entry["outcome"] for entry in found if not entry["regular"]))
            listed(self._console, "Searches without both bounds", ends, "yellow")
        if trials and (self._every_phase or not self._summary.get("suite")):
            self._phases()
        if trials:
            nodes = self._summary["clocks"]
            words = clock_sentence(nodes)
            if words and (self._every_phase or any(node["clock"] != "shared" for node in nodes)):
                say(self._console, f"  {words}", "dim")
            rows = list(TABLES["times"].entries(self._summary)) if self._every_phase else []
            phases = {plan_key(plan): plan["phases"] for plan in self._summary["plans"]}
            groups = []
            for row in rows:
                name = f", {phase_name(row)}" if phases.get(plan_key(row)) != 1 else ""
                again = f", repeat {row['repeat']}" if row["repeat"] else ""
                groups.append(f"{plan_title(row)}, {format.of(row['ranks'], 'rank')}{name}{again}")
            self._show("times", rows, "Times in µs (doc/reference/latency.md)", groups=groups)
        self._compared()
        self._located()
        self._judged()
        status = self._summary["status"]
        style = {"complete": "green", "partial": "yellow", "failed": "bold red"}[status]
        say(console, f"\n{status} in {format.seconds(run.get('elapsed_s'))}", style)
        say(console, f"results    {directory}")
        say(console, f"rerun      {' '.join(run.get('command', []))}")

    def _show(
        self, of: Spec | str, rows: Iterable[Any] | None = None, title: str = "", **more: Any
    ) -> None:
        """Print chosen rows of a table, or all its rows."""
        spec = TABLES[of] if isinstance(of, str) else of
        chosen = spec.entries(self._summary) if rows is None else rows
        show(spec.on_terminal(chosen), self._console, title or spec.title, **more)

    # --- results -----------------------------------------------------------------------------

    def _phases(self) -> None:
        """Print the results of phases by transport, size, load and network, then pattern totals.

        Pattern totals have the duration of a trial, and the rate of the slowest port in each phase.
        """
        sections: dict[str, list[Entry]] = {}
        for entry in self._summary["trials"]:
            if entry["traffic"] != SCHEDULE:  # dependent steps have tables of their own
                load = entry["intended_load"]
                asked = "" if load is None else f" at {load:g} % of line"
                title = f"{entry['transport']}, {format.size(entry)}{asked}"
                sections.setdefault(f"{title}, network {entry['network']}", []).append(entry)
        for title, entries in sections.items():
            rows = list(self._rows(entries))
            hidden = len(entries) - sum(not row["of_plan"] for row in rows)
            notes = [T_MEANS] if any(row["tester_limited"] for row in rows) else []
            if hidden:
                notes.append(f"{format.of(hidden, 'more phase')} of these patterns: --all")
            styles = ["bold" if row["of_plan"] else "" for row in rows]
            self._show("phases", rows, f"{title}, payload, one way", styles=styles, notes=notes)
        several = []
        for plan in TABLES["plans"].entries(self._summary):
            if plan["traffic"] != SCHEDULE and plan["phases"] > 1:
                phases = [e for e in self._summary["trials"] if plan_key(e) == plan_key(plan)]
                shares = [phase["throughput"]["min_percent_of_line"] for phase in phases]
                spark = format.spark(shares, self._console.options.ascii_only, (0.0, 100.0))
                several.append({**plan, "spark": spark})
        self._show("plans", several, "Pattern totals, payload, one way")

    def _rows(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """Yield a row for each plan (a trial in one network), then rows for its worst phases.

        Where the summary has no value of a plan, the row has a sum or the worst value over its
        phases. The worst phases are the slowest phases, and the phase that lost the most frames. A
        plan of one phase has the phase's row only.
        """
        for key, group in groupby(entries, key=plan_key):
            phases = list(group)
            plan = next((p for p in self._summary["plans"] if plan_key(p) == key), None)
            ranks = format.of(phases[0]["ranks"], "rank")
            again = f", repeat {phases[0]['repeat']}" if phases[0]["repeat"] else ""
            name = f"{format.pattern(phases[0])}, {ranks}{again}"
            if plan is None or plan["phases"] == 1:
                yield from (self._row(entry, name) for entry in phases)
                continue
            whole = {
                **plan,
                **{key: m.total(entry.get(key) for entry in phases) for key in _SUMMED},
                "offered_load": m.mean(entry["offered_load"] for entry in phases),
                "start_skew_us": m.greatest(entry["start_skew_us"] for entry in phases),
                "tester_limited": any(entry["tester_limited"] for entry in phases),
                "state": "complete",
                "cpu_s_per_gb": per_gb(plan),
            }
            name = f"{name}, {format.of(len(phases), 'phase')}"
            yield {**self._row(whole, name), "of_plan": True}
            worst = phases
            if not self._every_phase and len(phases) > WORST_PHASES:
                rates = [math.inf if p["throughput"]["min"] is None else p["throughput"]["min"]
                         for p in phases]  # fmt: skip
                order = sorted(range(len(phases)), key=rates.__getitem__)
                worst = [phases[place] for place in order[:WORST_PHASES]]
                leakiest = max(phases, key=lambda entry: entry["lost_frames"] or 0)
                if leakiest["lost_frames"] and leakiest not in worst:
                    worst.append(leakiest)
            for entry in worst:
                yield self._row(entry, f"  {phase_name(entry)}")

    def _row(self, entry: Entry, name: str) -> Entry:
        """Return a phase's entry as a named row; ports become hosts if each host has one port."""
        ends = entry["slowest"]
        if ends is not None and self._one_port_a_host:
            ends = {end: port.partition(":")[0] for end, port in ends.items()}
        state = "" if entry["state"] == "complete" else f" {entry['state']}"
        return {**entry, "row": f"{name}{state}", "of_plan": False, "slowest": ends}

    def _compared(self) -> None:
        """Print ping-pongs, collective operations, application kernels, and compared transports.

        Transports stand side by side, in a table for each baseline.
        """
        table = TABLES["messages"]
        for curve in self._summary["messages"]["curves"]:
            points = list(curve_points(curve))
            notes = []
            if short := [point for point in points if point["lost"]]:
                lost = sum(point["lost"] for point in short)
                total = format.of(lost + sum(point["round_trips"] for point in short), "message")
                sizes = ", ".join(f"{p['lost']} of {format.size_words(p['size'])}" for p in short)
                notes = [f"{lost} of {total} of these sizes had no reply: {sizes}"]
            title = f"{table.title}, {_path(curve)}: half the round trip"
            self._show(table, points, title, notes=notes)
        functions = at(self._summary, "steps.functions") or []
        for entry in functions:
            self._show("steps", function_points(entry), _path(entry))
        if functions:
            note_lines(self._console, TABLES["steps"].about)
        kernels = TABLES["kernels"]
        self._show(kernels, title=f"{kernels.title}. {kernels.about}".rstrip("."))
        compared = self._summary["comparisons"]
        for base, group in groupby(compared, key=lambda entry: entry["baseline"]):
            some = list(group)
            shown = list(TABLES["transports"].entries({**self._summary, "comparisons": some}))
            divided = any(one["ratio"]["throughput"] is not None for one in shown)
            title = f"{TABLES['transports'].title}, payload, one way"
            said = "no ratios: no transport here bypasses the kernel, or the tester was the limit"
            if divided:
                title += f"; ÷ is by {base}'s"
                said = f"÷ baseline: payload above 1 is faster than {base}, CPU above 1 costs more"
            notes = [said, "CPU is that of the whole machines, kernel and softirq included"]
            every = [one for entry in some for one in entry["transports"]]
            if any(one["polling"] for one in every):
                notes.append("polling: each worker uses a whole core, even without frames")
            unequal = {one["message_bytes"] for one in every if not one["equal_size"]} - {None}
            if unequal:
                payloads = ", ".join(map(str, sorted(unequal)))
                notes.append(f"sizes differ: a frame carries {payloads} B of payload")
            if any(entry["alternated"] is None for entry in some):
                notes.append("each transport was measured once, one after the other")
            notes += dict.fromkeys(str(e["reason"]) for e in some if e["alternated"] is False)
            self._show("transports", shown, title, notes=notes)

    def _located(self) -> None:
        """Print suspects with their evidence, suspected ports, and the next test that would decide.

        The phases of a chain and the ports of a campaign are printed even without a suspect. Below
        are confidence intervals of repeated settings, and the phases that lost the most frames.
        """
        suspects = list(TABLES["suspects"].entries(self._summary))
        test = self._summary["location"]["next_test"]
        notes = [f"next test (switchbench locate): {test['why']}"] if test else []
        self._show("suspects", suspects, notes=notes if suspects else [])
        chain, ports = self._summary.get("chain") or [], self._summary["ports"]
        self._show("chain", chain)
        rounds = [port for port in ports if port.get("rounds") and not chain]
        bad = [port for port in ports if port["suspect"]]
        self._show("ports", rounds or bad, "The device's ports" if rounds else "Ports of suspects")
        rows = TABLES["repeats"].entries(self._summary)
        rows = [row for row in rows if row["statistics"]["measure"] == MEASURE]
        unsure = [row["statistics"]["verdict"] == "inconclusive" for row in rows]
        self._show("repeats", rows, styles=["yellow" if one else "" for one in unsure])
        if self._summary.get("suite") and not self._every_phase:
            return  # a search loses frames on purpose
        lossy = []
        for entry in self._summary["trials"]:
            found = entry["loss_location"]
            counts = (found["sender_host"], in_network(entry), found["receiver_host"])
            # phases of dependent steps end while acknowledgements are in flight
            if entry["traffic"] != SCHEDULE and any(
                (count or 0) > 0 for count in (*counts, found.get("other_traffic"))
            ):
                lossy.append(entry)
        lossy.sort(key=lambda entry: -(entry["loss_location"]["lost_frames"] or 0))
        shown = lossy if self._every_phase else lossy[:WORST_PHASES]
        unseen = any(entry["lost_frames"] is None for entry in shown)
        note = "port counters; TCP and RDMA retransmit these"
        self._show("losses", shown, "Where frames were lost", notes=[note] if unseen else [])

    def _judged(self) -> None:
        """Print each clause with the worst measured value, the verdict, and findings by severity.

        With --all the sentences that each finding sums up are printed too.
        """
        clauses = list(TABLES["clauses"].entries(self._summary))
        styles = [VERDICT_STYLES[clause["verdict"]] for clause in clauses]
        said = []
        for clause in clauses:
            words = [clause[key] for key in ("clause", "source", "reason") if clause[key]]
            said += [f"{clause['id'] or clause['measure']}: {'; '.join(words)}"] if words else []
        self._show("clauses", clauses, "Verdict", styles=styles, notes=said)
        if verdict := self._summary.get("verdict"):
            word = verdict["verdict"]
            say(self._console, f"\n{word}: {verdict['sentence']}.", VERDICT_STYLES[word], hang=2)
            for sentence in verdict["warnings"]:
                say(self._console, f"Warning: {sentence}.", "yellow", hang=2)
            say(self._console, verdict["scope"], hang=2)
            say(self._console, f"clauses SHA-256 {verdict['clauses_sha256']}")
        found = findings(self._summary)
        shown = found if self._every_phase else found[:MOST_FINDINGS]
        if found:
            heading(self._console, "Findings")
        for one in shown:
            say(self._console, f"  {one.severity:<9}{one.text}", STYLES[one.severity], hang=11)
            for part in one.parts if self._every_phase else ():
                say(self._console, f"           {part}", hang=13)
        if len(shown) < len(found):
            say(self._console, f"  and {len(found) - len(shown)} more (--all)")


def _path(entry: Entry) -> str:
    """Return an entry's pattern, ranks and path in words, such as `pairs, 2 ranks, tcp in lab`."""
    ranks = format.of(entry["ranks"], "rank")
    return f"{format.pattern(entry)}, {ranks}, {entry['transport']} in {entry['network']}"


# --- the plan of a run ----------------------------------------------------------------------------


PORTS_SHOWN = 24


def show_plan(plan: Entry, console: Console, everything: bool) -> None:
    """Print the plan of a run: its tests, expected time, clauses, ports and phases."""

    def table(name: str, rows: Sequence[Entry], more: str = "") -> None:
        if rows:
            say(console, "")
            show(TABLES[name].listed(rows), console, notes=(more,))

    say(console, plan["site"])
    table("plan_tests", [
        test | {
            "pattern": _pattern(test["pattern"], test["parameters"]),
            "networks": " + ".join(test["networks"]),
            "ranks": _few(test["ranks"]),
            "sizes": _few(_sizes(test)),
            "loads": _few(test["loads"]) or None,
            "repeat": " to ".join(map(str, sorted({test["repeat"], test["repeat_most"]}))),
            "expected": format.human(test["expected_s"]),
        }
        for test in plan["tests"]
    ])  # fmt: skip
    expected_s, longest_s = plan["expected_s"], plan["longest_s"]
    longest = f" to {format.human(longest_s)}" if longest_s > expected_s else ""
    say(
        console,
        f"\nexpected time {format.human(expected_s)}{longest}, of it "
        f"{format.human(plan['start_s'])} to start",
    )
    for line in plan["notes"]:
        say(console, f"note: {line}", hang=2)
    table("plan_clauses", [
        {
            "clause": " ".join(clause[key] for key in ("id", "clause") if key in clause) or None,
            "require": f"{clause['measure']} of "
            f"{'the run' if clause['over'] == 'run' else 'each ' + clause['over']} "
            f"{clause['require']}",
            "trials": len(clause["trials"]),
        }
        for clause in plan["clauses"]
    ])  # fmt: skip
    if plan["clauses"]:
        say(console, f"clauses: SHA-256 {plan['clauses_sha256']}")
    ports = plan["ports"]
    if any(port["switch"] for port in ports):
        most = len(ports) if everything else PORTS_SHOWN
        more = f"… {len(ports) - most} more (--all)" if len(ports) > most else ""
        table("plan_ports", [
            port | {
                "switch": port["switch"] or "",
                "switch_port": port["switch_port"] or "",
                "line_rate": quantities.RATE.text(port["line_rate_bps"])
                if port["line_rate_bps"] else "unknown",
            }
            for port in ports[:most]
        ], more)  # fmt: skip
    for one in plan["plans"]:
        heading(console, _title(one, [t for t in plan["trials"] if t["plan"] == one["plan"]]))
        rows = [{**phase, **network} for phase in one["phases"] for network in phase["networks"]]
        left = one["total_phases"] - len(one["phases"])
        more = f"… {left} more phases (--all)" if left else ""
        without = () if len(one["networks"]) > 1 else ("network",)
        show(TABLES["plan_phases"].listed(rows, without), console, notes=(more,))


def _pattern(name: str, parameters: Mapping[str, list[Any]]) -> str:
    """Return a pattern with its parameters: `aapc forward partners=across count=7,8,9`."""
    words = [name]
    for key, values in parameters.items():
        texts = [_word(value) for value in values]
        if texts == ["true"]:
            words.append(key)
        elif texts != ["false"]:
            words.append(f"{key}={','.join(texts)}")
    return " ".join(words)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + " ".join(_word(item) for item in value[:4]) + ("…" * (len(value) > 4)) + "]"
    return str(value)


def _few(values: Sequence[Any], most: int = 7) -> str:
    texts = [str(value) for value in values]
    return ", ".join(texts[:most]) + (f" … {texts[-1]}" if len(texts) > most else "")


def _sizes(test: Entry) -> list[str]:
    """Return the sizes of a test in words; for an application kernel its class or matrix."""
    parameters = test["parameters"]
    if not test["sizes"]:
        kinds = {"problem_class": "class", "matrix": "matrix"}
        return [f"{word} {one}" for key, word in kinds.items() for one in parameters.get(key, ())]
    words = []
    for sizes in test["sizes"]:
        if len(sizes) > 1:
            runs = [(size, len(list(group))) for size, group in groupby(sizes)]
            words.append("IMIX " + " ".join(f"{times}x{size}" for size, times in runs))
        else:
            is_frame = test["size_unit"] == "frame"
            words.append(str(sizes[0]) if is_frame else quantities.SIZE.text(sizes[0]))
    return words


def _title(plan: Entry, trials: Sequence[Entry]) -> str:
    """Return a title: pattern, ranks, phases, and the steps and messages of dependent steps."""
    tests = list(dict.fromkeys(trial["test"] for trial in trials))
    ranks = " + ".join(f"{len(names)} ranks of {name}" for name, names in plan["ranks"].items())
    parameters = {key: [value] for key, value in trials[0]["parameters"].items()}
    steps, said = trials[0]["steps"], ""
    if steps is not None:
        said = f", {format.of(steps['steps'], 'step')} and "
        said += f"{format.of(steps['messages'], 'message')} of all ranks"
        said += " in all phases" if plan["total_phases"] > 1 else ""
        if trials[0]["size"] is None:
            said += f", {format.decimal_size(steps['payload_bytes'])} together"
        if steps["iterations"]:
            said += f"; {format.of(steps['iterations'], 'iteration')} in total"
    return (
        f"plan {plan['plan']}: {_pattern(plan['pattern']['name'], parameters)}, {ranks}, "
        f"{format.of(plan['total_phases'], 'phase')}{said} "
        f"(test{'s' * (len(tests) > 1)} {', '.join(map(str, tests))})"
    )
