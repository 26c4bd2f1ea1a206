# SPDX-License-Identifier: BSD-3-Clause
"""What a reader sees before any figure.

Verdict, the run at a glance, the set-up, what was found, and what was not measured. Made of the
summary; where it lacks something, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...base import format
from ...base.model import SCHEDULE
from ...records.document.schema import definition
from ...records.document.summary import SummaryDocument
from ...records.document.trials import PlanEntry
from ...search.suites.declaration import Suite
from .. import first_screen
from ..findings import ERROR, INFO, WARNING, findings
from ..suite_notes import headline, not_run, performance, suite_notes, suite_of
from .figure import Figure
from .frame import Details, Facts, Glance, Part, Sentences, Tile, Words

_SIGNS = {"PASS": "✓", "FAIL": "✗", "INCONCLUSIVE": "?"}
_MOODS = {"green": "good", "yellow": "warn", "bold red": "bad", None: ""}
_AT_LOAD_IS = (
    "Ports that receive at least 97 % of the intended load, in every phase of each transport that "
    "is not tester-limited; the load is all of the line where nothing else was asked"
)
_SLOWEST_IS = (
    "The flow that is the furthest below the mean of its own plan's flows, by payload in the "
    "window. Flows of different patterns share their ports with different numbers of others: only "
    "those of one plan are like each other"
)
_ABOUT = {
    "Fault": "What all flows and their paths show to be at fault, the most certain first",
    "Ports": "Percent of line that ports receive, medians over the phases; alike: within 3 %",
    "Lost": definition("lost_frames"),
    "RTT p50/p99": "Median of the phases' medians, of the fastest transport; below, of each "
    "transport and the longest p99, or (≤) the longest time",
    "Tester": definition("tester_limited"),
    "Findings": "Errors, warnings and what else is to be known, counts of one kind together",
    "Max rate": definition("throughput.total"),
}


# --- the first screen ----------------------------------------------------------------------------


def glance(summary: SummaryDocument, figure: Figure | None = None) -> Glance:
    """Return the verdict, or how many ports run at the load asked; the run in tiles."""
    result, *lines = first_screen.lines(summary)
    tiles = [
        Tile(line.label, line.value, line.said, _ABOUT[line.label], _MOODS[line.style])
        for line in sorted(lines, key=lambda line: list(_ABOUT).index(line.label))
    ]
    every = findings(summary)
    tiles = [
        replace(t, text=every[0].text) if every and t.label == "Findings" else t for t in tiles
    ]
    suite, verdict = headline(summary), summary.get("verdict")
    # The trials of a suite have any load: no port is to hold one in all of them.
    found = None if suite else first_screen.ports_at_load(summary)
    tiles += [] if suite else _slowest(summary)
    count = f"{found.every} of {format.of(found.ports, 'port')}" if found else ""
    rate = f"at {_load(summary)}"
    median = f"{found.median} in the median phase" if found else ""
    if verdict:
        word = verdict["verdict"]
        said = f"{verdict['sentence'].rstrip('.')}. {result.said}."
        if found:
            words = f"{rate} in every phase, {median}"
            tiles.insert(0, Tile("Ports at the intended load", count, words, _AT_LOAD_IS))
        return Glance(result.value, said, tiles, word, _SIGNS[word], figure)
    said = f"No verdict: no clause is required (expect). {result.said}."
    if found is None:
        title = suite or str(summary["status"]).capitalize()
        return Glance(
            title, " ".join(filter(None, (performance(summary), said))), tiles, figure=figure
        )
    return Glance(f"{count} {rate}", f"In every phase; {median}. {said}", tiles, figure=figure)


def _load(summary: SummaryDocument) -> str:
    """Return what ports are to receive."""
    loads = {plan["intended_load"] for plan in summary["plans"]} - {None, 100.0}
    if not loads:
        return "line rate"
    return f"{loads.pop():g} % of line" if len(loads) == 1 else "the intended load"


def _slowest(summary: SummaryDocument) -> Iterator[Tile]:
    """Yield the slowest flow beside the others of its plan."""
    limited = {(e["trial"], e["network"]) for e in summary["trials"] if e["tester_limited"]}
    known = [
        (share, plan)
        for plan in summary["plans"]
        if plan["traffic"] != SCHEDULE and (plan["trial"], plan["network"]) not in limited
        if (share := _share_of_mean(plan)) is not None
    ]
    if not known:
        return
    share, plan = min(known, key=lambda one: one[0])
    rate = plan["throughput"]["min"] or 0.0
    unit = format.unit_for([rate])
    flow = format.flow(plan["slowest"]) if plan["slowest"] else "a flow"
    what = f"{format.pattern(plan)}, {plan['transport']}, {format.of(plan['ranks'], 'rank')}"
    words = f"{flow}: {unit.show(rate)} {unit.name}, {what}, {format.size(plan)}"
    yield Tile("Slowest flow", f"{100 * share:.1f} % of mean", words, _SLOWEST_IS)


def _share_of_mean(plan: PlanEntry) -> float | None:
    """Return how much of its plan's mean the slowest flow has.

    Flows of other patterns share their ports with fewer or more others, and are not like it.
    """
    rate, mean = plan["throughput"]["min"], plan["throughput"]["mean"]
    return None if rate is None or not mean else rate / mean


def verdict(summary: SummaryDocument) -> list[Part | None]:
    """Return what the verdict does not say."""
    found = summary.get("verdict")
    if not found:
        return []
    return [
        sentences("Warnings of the verdict", found["warnings"], "warn"),
        Words(f"{found['scope']} Clauses, SHA-256: {found['clauses_sha256']}", "about"),
    ]


# --- the set-up ----------------------------------------------------------------------------------


def set_up(summary: SummaryDocument) -> list[Part | None]:
    """Return switch, nodes, versions: what a reader needs to do it again.

    Of a damaged summary `run` lacks what is not known.
    """
    about: Mapping[str, Any] = summary["run"].get("about") or {}
    rows = [("switch under test", _words(switch)) for switch in about.get("switches", [])]
    rows += [(key, _words(value)) for key, value in about.items() if key != "switches"]
    return [Facts(rows) if rows else None, Facts(list(_facts(summary)))]


def _facts(summary: SummaryDocument) -> Iterator[tuple[str, str]]:
    run, ports = summary["run"], summary["ports"]
    switches = sorted({port["switch"] for port in ports if port["switch"]})
    if lab := run.get("lab"):
        yield "switch", f"the lab {lab}, on one machine"
    elif switches:
        yield "switches", ", ".join(switches)
    names = {port["port"] for port in ports}
    networks = sorted({port["network"] for port in ports})
    yield (
        "network",
        f"{format.of(len(run.get('nodes', [])), 'node')}, {format.of(len(names), 'port')}, "
        f"{'network' if len(networks) == 1 else 'networks'} {', '.join(networks)}",
    )
    yield "launched by", _words(run.get("launch"))
    yield "began", _words(run.get("started"))
    yield "took", format.seconds(run.get("elapsed_s"))
    yield "versions", _words(run.get("versions"))
    yield "controller", _machine(run.get("machine") or {})
    yield "random seed", _words(run.get("seed"))
    yield "run", _words(run.get("id"))
    yield "rerun", " ".join(run.get("command", []))


def _machine(machine: Mapping[str, Any]) -> str:
    memory, cpus = machine.get("memory_bytes"), machine.get("cpus")
    words = [machine.get(key) for key in ("host", "system", "cpu")]
    words += [format.of(cpus, "CPU")] if cpus else []
    words += [f"{memory / 2**30:.1f} GiB"] if memory else []
    return ", ".join(word for word in words if word)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(one)}" for key, one in value.items() if one)
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    return format.UNKNOWN if value is None else str(value)


# --- what was found, and what was not measured ----------------------------------------------------


_TITLES = ((ERROR, "Errors", "bad"), (WARNING, "Warnings", "warn"), (INFO, "Info", ""))


def found(summary: SummaryDocument) -> list[Part | None]:
    """Return the findings by severity; what several of one kind are made of is folded."""
    every = findings(summary)
    parts: list[Part | None] = []
    for severity, title, mark in _TITLES:
        some = [one for one in every if one.severity == severity]
        parts.append(sentences(title, [one.text for one in some], mark))
        parts += [
            Details(f"One by one ({len(one.parts):,})", "\n".join(one.parts))
            for one in some
            if len(one.parts) > 1
        ]
    return parts if every else [Words("Nothing: no error, no warning, nothing tester-limited.")]


def suite(summary: SummaryDocument) -> list[Part | None]:
    """Return what a suite's document asks to be said beside its tables."""
    found = suite_of(summary)
    if found is None:
        return []
    notes = [sentences(title, lines) for title, lines, _ in suite_notes(summary)]
    left_out = {f"`{found.name}-{name}`" for name in not_run(summary, found)}
    asked = [
        f"{one.word} ({one.section}): {one.asks}: {one.where}"
        for one in found.statements
        if not any(name in one.where for name in left_out)
    ]
    return [
        Words(
            f"{found.title}: what each table is, and the measures' names in clauses, are in "
            "doc/reference/standards.md."
        ),
        *notes,
        sentences("Deviations from the document", _quoted(found, found.deviations)),
        sentences(
            "What the document's reporting sections ask for, and where it is", _quoted(found, asked)
        ),
    ]


def _quoted(found: Suite, lines: Iterable[str]) -> list[str]:
    """Tables and figures by their titles, keys as they are: as a reader of the page knows them."""
    titles = {f"{found.name}-{each.name}": each.title for each in found.subtests}
    return [
        re.sub("`([^`]+)`", lambda name: f"“{titles.get(name[1], name[1])}”", line)
        for line in lines
    ]


def not_measured(summary: SummaryDocument) -> list[Part | None]:
    """Return what was asked for and is not here."""
    absent = [
        f"{host['host']} was left out: {host['reason']}"
        for host in summary["run"].get("excluded_hosts", [])
    ]
    parts: list[Part | None] = [
        sentences("", summary["not_measured"], "warn"),
        sentences("Hosts excluded", absent, "warn"),
        sentences("Times not known", list(_reasons(summary)), "warn"),
    ]
    return parts if any(parts) else [Words("Nothing: all that was asked for was measured.")]


def _reasons(summary: SummaryDocument) -> Iterator[str]:
    """Yield why times are missing.

    Of reasons that differ in numbers alone the first, and how many.
    """
    alike: dict[str, list[str]] = {}
    for entry in summary["trials"]:
        every: Iterable[Any] = entry["latency"].values()
        for times in every:
            for reason in (times["reasons"] if times else {}).values():
                kind = re.sub(r"there are [\d,]+", "there are", reason)
                alike.setdefault(kind, []).append(reason)
    for said in alike.values():
        yield said[0] if len(said) == 1 else f"{said[0]}, and {len(said) - 1:,} times the like"


def sentences(title: str, lines: Sequence[str] | None, mark: str = "") -> Sentences | None:
    """None where there are none."""
    return Sentences(title, lines, mark) if lines else None
