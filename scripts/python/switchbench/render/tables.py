# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a run, each declared once in tables.toml, for terminal, report, CSV and JSON.

The functions that tables.toml names make values of columns, and rows that the summary lacks.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from ..analysis import measures as m
from ..analysis.tester import NO_LOSS, in_network
from ..base.format import pattern, size
from ..base.measures import COUNT, PERCENT
from ..records.summary_form import Entry, SummaryDocument, at
from ..search.suites import SUITES
from ..search.suites.declaration import Subtest, Suite
from . import first_screen
from .printer import BOTH, PAGE, SHOWN, TERMINAL, Column, Spec, measured

__all__ = ["NO_LOSS", "in_network", "pattern", "size"]

KINDS = {
    "one_way": "one way",
    "round_trip": "round trip",
    "pingpong": "ping-pong",
}

# --- values ---------------------------------------------------------------------------------------


def plan_title(plan: Entry) -> str:
    """Return a trial's description, such as `pairs neighbours, tcp, 64 KiB messages, 50 %`."""
    load = "" if plan["intended_load"] is None else f", {plan['intended_load']:g} %"
    return f"{pattern(plan)}, {plan['transport']}, {size(plan)}{load}"


def phase_name(entry: Entry) -> str:
    """Return the name of a phase, or its number if the pattern gives no name."""
    return str(entry["phase_name"] or entry["phase"])


def ppm(entry: Entry) -> float | None:
    """Return the lost frames of an entry per million offered frames."""
    return m.ratio(entry.get("lost_frames"), entry.get("offered_frames"), m.MEGA)


def frames(entry: Entry) -> int | None:
    """Return the frames per second of all flows."""
    per_s = first_screen.frames_per_s(entry)
    return None if per_s is None else round(per_s)


def per_gb(entry: Entry) -> float | None:
    """Return the CPU seconds per 10^9 bytes of delivered payload."""
    return m.ratio(entry.get("cpu_s"), entry.get("delivered_bytes"), m.GIGA)


def bound(row: Entry) -> float | None:
    """Return the bound on the clocks' difference; None if clocks do not differ."""
    return row["times"].get("bound") or None


def first_port(entry: Entry) -> list[str]:
    """Return the port with the most frames lost in its host or damaged, or an empty list."""
    return [port["port"] for port in (at(entry, "loss_location.ports") or ())[:1]]


def slowest_count(port: Entry) -> int:
    """Return the number of phases in which a port was the slowest."""
    return len(port.get("slowest_phases") or [])


def sure(entry: Entry) -> float:
    """Return the confidence in a suspect in percent, at most 99.9."""
    return float(100 * min(entry["confidence"], 0.999))


def alike(entry: Entry) -> list[str]:
    """Return the other elements that a suspect's flows pass: no traffic tells them apart."""
    others = (one for one in entry["alike"] if one != entry["element"])
    return [" ".join((one["name"], one["direction"])).rstrip() for one in others]


def transport_words(one: Entry) -> str:
    """Return a transport with its swept options, such as `tcp` or `verbs depth 16`."""
    options = (f"{k.partition('.')[2].replace('_', ' ')} {v}" for k, v in one["options"].items())
    return " ".join([one["transport"], *options])


def repeat_count(entry: Entry) -> int:
    """Return the number of repeats that a mean is computed from."""
    return len(entry["statistics"]["values"])


def program(entry: Entry) -> str:
    """Return the name of the measuring program with its version."""
    return f"{entry['tool']} {entry['version']}" if entry["version"] else str(entry["tool"])


def own_unit(entry: Entry) -> str:
    """Return the unit of an imported figure, with `µs` for `us`."""
    return str(entry["unit"]).replace("us", "µs")


def our_unit(entry: Entry) -> str | None:
    """Return the unit of an imported figure by the shared definition; None without a definition."""
    return own_unit(entry["comparable"]) if entry["comparable"] else None


# --- rows -----------------------------------------------------------------------------------------

Rows = Iterator[Entry]


def _place(entry: Entry) -> tuple[int, str]:
    return entry["trial"], entry["network"]


def _limited(summary: SummaryDocument) -> set[tuple[int, str]]:
    return {_place(e) for e in summary.get("trials") or [] if e["tester_limited"]}


def plans(summary: SummaryDocument) -> Rows:
    """Yield the pattern totals, with the phase of the slowest flow, and the tester's limit."""
    keys = ("trial", "repeat", "network", "phase")
    names = {tuple(e[k] for k in keys): phase_name(e) for e in summary.get("trials") or []}
    limited = _limited(summary)
    for plan in summary.get("plans") or []:
        worst = (plan["trial"], plan["repeat"], plan["network"], plan.get("worst_phase"))
        in_phase = names.get(worst) if plan["phases"] > 1 else None
        yield {**plan, "in_phase": in_phase, "tester_limited": _place(plan) in limited}


def repeated(summary: SummaryDocument) -> Rows:
    """Yield the totals of each repeated setting's first trial, with the setting's statistics."""
    plan_of = {_place(plan): plan for plan in summary.get("plans", [])}
    for entry in summary.get("statistics", []):
        plan = plan_of.get((entry["trials"][0], entry["network"]))
        if plan is not None:
            yield {**plan, "statistics": entry}


def compared(summary: SummaryDocument) -> Rows:
    """Yield a row per transport for each setting that several transports measured.

    Ratios are omitted for tester-limited trials, and if no transport bypasses the kernel. The
    number of repeats and the min and max throughput are omitted if there is one repeat only.
    """
    limits = _limited(summary)
    for entry in summary.get("comparisons", []):
        sides = [
            one | {"tester_limited": any((t, entry["network"]) in limits for t in one["trials"])}
            for one in entry["transports"]
        ]
        fast = any(first_screen.bypasses(one["transport"]) for one in sides)
        base = any(s["tester_limited"] for s in sides if s["transport"] == entry["baseline"])
        for one in sides:
            kept = fast and not base and not one["tester_limited"]
            ratio = one["ratio"] if kept else dict.fromkeys(one["ratio"])
            several = one["repeats"] > 1
            ends = {} if several else {"min": None, "max": None}
            yield {
                **entry,
                **one,
                "ratio": ratio,
                "baseline": entry["baseline"],
                "throughput": one["throughput"] | ends,
                "repeats": one["repeats"] if several else None,
                "polling": one["polling"] or None,
            }


def lowest_intervals(summary: SummaryDocument) -> Rows:
    """Yield the flows whose rate in an interval fell the furthest below their mean rate."""
    for entry in summary.get("trials", ()):
        for low in at(entry, "intervals.lowest") or ():
            yield {**entry, "low": low, "slowest": low}


def of_phase(entry: Entry) -> Rows:
    """Yield a row for each kind of times that a phase has."""
    for kind, times in (entry.get("latency") or {}).items():
        if times:
            yield {**entry, "kind": KINDS.get(kind, kind), "times": times}


def timed(summary: SummaryDocument) -> Rows:
    """Yield a row for each kind of times of each phase."""
    return (row for entry in summary.get("trials", ()) for row in of_phase(entry))


def nodes(summary: SummaryDocument) -> Rows:
    """Yield a row per node, with its clock."""
    clocks = {clock["node"]: clock for clock in summary.get("clocks", [])}
    for node in at(summary, "run.nodes") or []:
        yield {**node, "how": clocks.get(node["node"], {})}


def failures(summary: SummaryDocument) -> Rows:
    """Yield the values that violate clauses."""
    for clause in summary.get("expectations", []):
        named = clause | {"id": clause["id"] or clause["clause"]}
        yield from (named | failure for failure in clause.get("failures", []))


def curve_points(curve: Entry) -> Rows:
    """Yield a row for each message size of a ping-pong."""
    for point in curve["points"]:
        yield {**curve, **point, "worst": point["slowest"]}


def curves(summary: SummaryDocument) -> Rows:
    """Yield a row for each message size of all ping-pongs."""
    return (p for curve in at(summary, "messages.curves") or () for p in curve_points(curve))


def function_points(entry: Entry) -> Rows:
    """Yield a row for each message size of a collective operation."""
    return ({**entry, **point} for point in entry["points"])


def functions(summary: SummaryDocument) -> Rows:
    """Yield a row for each message size of all collective operations."""
    return (p for entry in at(summary, "steps.functions") or () for p in function_points(entry))


def suite_trials(summary: SummaryDocument) -> Rows:
    """Yield the trials of a suite in the order of their searches."""
    for entry in (summary.get("suite") or {}).get("subtests", []):
        for number, trial in enumerate(entry["trials"], 1):
            yield {**entry, "number": number, **trial}


def each_search(entry: Entry) -> str | None:
    """Return the longest burst of each search, in order; None without searches."""
    return ", ".join(map(str, entry["iterations"])) or None


# --- the declared tables --------------------------------------------------------------------------


class Heading(StrEnum):
    """Sections of a report, in the order of the papers (doc/developer/papers.md).

    A section without contents is left out.
    """

    GLANCE = "At a glance"
    VERDICT = "Verdict"
    SUITE = "Suite"
    FINDINGS = "Findings"
    RESULTS = "Results"
    NODES = "Throughput by number of nodes"
    ALL_TO_ALL = "All to all"
    WHOM = "Traffic matrix"
    COURSE = "Throughput over time"
    MESSAGES = "Ping-pong by message size"
    STEPS = "Dependent steps"
    LATENCY = "Latency"
    LOSS = "Loss"
    SKEW = "Start and stop"
    CPU = "CPU time"
    PORTS = "Ports"
    TRIALS = "Trials"
    SET_UP = "Set-up"
    NOT_MEASURED = "What was not measured"
    CONFIGURATION = "The configuration"
    MEANINGS = "What the numbers mean"


_DECLARED = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))
_SHARED = _DECLARED.pop("shared")
_COLUMN = re.compile(r"(?:\*(\w+)|(.+?))(?: \(([^()]+)\))?(?:: (\S+))?((?: [\w.=]+)*)")


def _column(line: str) -> Column:
    """Return the column that a line of tables.toml declares."""
    written, _, about = line.partition("  ")
    found = _COLUMN.fullmatch(written)
    assert found is not None, line
    measure, title, unit, key, words = found.groups()
    options: dict[str, Any] = {"unit": unit} if unit else {}
    options |= {"about": about} if about else {}
    for word in words.split():
        name, _, value = word.partition("=")
        if name in SHOWN:
            options["kind"] = name
        elif name in (PAGE, TERMINAL, BOTH):
            options["output"] = name
        elif name == "x100":
            options["value"] = lambda entry: (
                None if (ratio := at(entry, key)) is None else 100.0 * ratio
            )
        elif name in ("value", "note"):
            options[name] = globals()[value]
        else:  # the column is a mark
            options[name] = int(value) if name == "drop" else value or True
    return measured(measure, **options) if measure else Column(title, key, **options)


def columns(text: str) -> list[Column]:
    """Return the table columns that a text declares; a line `@name` stands for shared columns."""
    lines = re.sub(r"\n  +", " ", text.strip()).splitlines()
    found = (columns(_SHARED[one[1:]]) if one[0] == "@" else [_column(one)] for one in lines)
    return [column for some in found for column in some]


def _spec(name: str, table: dict[str, str]) -> Spec:
    source, about = table.get("rows", ""), table.get("about", "")
    made: Any = globals()[source[1:]] if source.startswith("=") else source
    some = columns(table["columns"])
    if part := table.get("defined"):  # the part of the summary that has the columns' definitions
        some = [replace(one, defined=f"{part}.{one.defined or one.key}") for one in some]
    return Spec(name, table["title"], about, tuple(some), made)


TABLES = {name: _spec(name, table) for name, table in _DECLARED.items()}
"""Declared tables by name."""


def _subtest(suite: Suite, test: Subtest, before: list[Column], after: list[Column]) -> Spec:
    """Return the table of a subtest: columns `before`, the subtest's own, columns `after`."""

    def rows(summary: SummaryDocument) -> Rows:
        found = summary.get("suite") or {}
        for entry in found["subtests"] if found.get("name") == suite.name else ():
            if entry["subtest"] == test.name:
                yield from ({**entry, "media": found["media"], **row} for row in entry["rows"])

    values = [
        Column(
            value.title,
            value.key,
            value.format if value.format in (PERCENT, COUNT) else "number",
            value.unit.replace("us", "µs"),
            about=value.definition,
            seldom=True,
        )
        for value in test.values
    ]
    return Spec(
        f"{suite.name}-{test.name}",
        f"{test.title} ({', '.join(filter(None, (suite.document, test.section)))})",
        test.about,
        (*before, *values, *after),
        rows,
    )


@cache
def subtests() -> tuple[Spec, ...]:
    """Return the tables of all suites, made from declarations that most commands do not need."""
    matrix, bursts, common = (
        columns(_SHARED[name]) for name in ("suite_matrix", "suite_bursts", "suite")
    )
    found = []
    for suite in SUITES.values():
        for test in (test for test in suite.subtests if test.values):
            before = [common[0], *(matrix if test.variants else ())]
            searches: Any = bursts if test.quantity == "burst" else ()
            found.append(_subtest(suite, test, before, [*searches, *common[1:]]))
    return tuple(found)


def by_section() -> dict[str, tuple[Spec, ...]]:
    """Return the tables of each section of a report."""
    named: dict[str, tuple[Spec, ...]] = {
        heading: tuple(
            TABLES[name] for name, one in _DECLARED.items() if one.get("section") == heading.name
        )
        for heading in Heading
    }
    return named | {Heading.SUITE: subtests()}


def every() -> tuple[Spec, ...]:
    """Return all tables in the order of the report."""
    return tuple(spec for specs in by_section().values() for spec in specs)
