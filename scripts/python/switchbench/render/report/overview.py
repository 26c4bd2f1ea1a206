# SPDX-License-Identifier: BSD-3-Clause
"""What a reader sees before any figure: verdict, the run at a glance, the set-up, what was found,
and what was not measured. Made of the summary; where it lacks something, nothing is said."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...base import format
from ...base.model import SCHEDULE
from ...records.document.definitions import at, definition
from .. import first_screen
from ..tables.table import Summary
from ..terminal.rows import limit_sentences
from .figure import Figure
from .frame import Facts, Glance, Part, Sentences, Tile, Words

_SIGNS = {"accepted": "✓", "refused": "✗", "inconclusive": "?"}
_MOODS = {"green": "good", "yellow": "doubt", "bold red": "bad", None: ""}
_AT_LOAD_IS = (
    "Ports that receive at least 97 % of the load that was asked for, in every phase of each "
    "transport; the load is all of the line where nothing else was asked"
)
_SLOWEST_IS = (
    "The flow that is the furthest below the mean of its own plan's flows, by payload in the "
    "window. Flows of different patterns share their ports with different numbers of others: only "
    "those of one plan are like each other"
)
_ABOUT = {
    "Worst port": definition("throughput.min_percent_of_line"),
    "Lost": definition("lost_frames"),
    "Round trip": "Median of the phases' medians, of the fastest transport, and the longest",
    "Tester": definition("tester_limited"),
    "Findings": definition("warnings"),
    "Rate": definition("throughput.total"),
}


# --- the first screen ----------------------------------------------------------------------------


def glance(summary: Summary, figure: Figure | None = None) -> Glance:
    """The verdict, or how many ports run at the load asked; the run in tiles."""
    result, *lines = first_screen.lines(summary)
    tiles = [
        Tile(line.label, line.value, line.said, _ABOUT[line.label], _MOODS[line.style])
        for line in sorted(lines, key=lambda line: list(_ABOUT).index(line.label))
    ]
    tiles += _slowest(summary)
    found, verdict = first_screen.ports_at_load(summary), summary.get("verdict")
    count = f"{found.every} of {format.of(found.ports, 'port')}" if found else ""
    rate = f"at {_load(summary)}"
    median = f"{found.median} in the median phase" if found else ""
    if verdict:
        word = verdict["verdict"]
        said = f"{verdict['sentence'].rstrip('.')}. {result.said}."
        if found:
            words = f"{rate} in every phase, {median}"
            tiles.insert(0, Tile("Ports at the load asked", count, words, _AT_LOAD_IS))
        return Glance(result.value, said, tiles, word, _SIGNS[word], figure)
    said = f"No verdict: no clause is required (expect). {result.said}."
    if found is None:
        return Glance(str(summary["status"]).capitalize(), said, tiles, figure=figure)
    return Glance(f"{count} {rate}", f"In every phase; {median}. {said}", tiles, figure=figure)


def _load(summary: Summary) -> str:
    """What ports are to receive."""
    loads = {plan["intended_load"] for plan in summary["plans"]} - {None, 100.0}
    if not loads:
        return "line rate"
    return f"{loads.pop():g} % of line" if len(loads) == 1 else "the load asked"


def _slowest(summary: Summary) -> Iterator[Tile]:
    """The slowest flow beside the others of its plan."""
    plans = [plan for plan in summary.get("plans") or [] if plan["traffic"] != SCHEDULE]
    known = [plan for plan in plans if _share_of_mean(plan) < math.inf]
    if not known:
        return
    plan = min(known, key=_share_of_mean)
    rate = at(plan, "throughput.min")
    unit = format.unit_for([rate])
    flow = format.flow(plan["slowest"]) if plan["slowest"] else "a flow"
    what = f"{format.pattern(plan)}, {plan['transport']}, {format.of(plan['ranks'], 'rank')}"
    words = f"{flow}: {unit.show(rate)} {unit.name}, {what}, {format.size(plan)}"
    yield Tile("Slowest flow", f"{100 * _share_of_mean(plan):.1f} % of mean", words, _SLOWEST_IS)


def _share_of_mean(plan: Mapping[str, Any]) -> float:
    """How much of its plan's mean the slowest flow has: flows of other patterns share their ports
    with fewer or more others, and are not like it."""
    least, mean = at(plan, "throughput.min"), at(plan, "throughput.mean")
    return math.inf if least is None or not mean else float(least / mean)


def verdict(summary: Summary) -> list[Part | None]:
    """What the verdict does not say."""
    found = summary.get("verdict")
    if not found:
        return []
    return [
        sentences("Warnings of the verdict", found["warnings"], "doubt"),
        Words(f"{found['scope']} Clauses, SHA-256: {found['clauses_sha256']}", "about"),
    ]


# --- the set-up ----------------------------------------------------------------------------------


def set_up(summary: Summary) -> list[Part | None]:
    """Switch, nodes, versions: what a reader needs to do it again."""
    about = at(summary, "run.about") or {}
    rows = [("switch under test", _words(switch)) for switch in about.get("switches", [])]
    rows += [(key, _words(value)) for key, value in about.items() if key != "switches"]
    return [Facts(rows) if rows else None, Facts(list(_facts(summary)))]


def _facts(summary: Summary) -> Iterator[tuple[str, str]]:
    run = summary.get("run") or {}
    ports = summary.get("ports") or []
    switches = sorted({port["switch"] for port in ports if port["switch"]})
    lab = run.get("lab")
    if lab:
        yield "switch", f"the lab {lab}, on one machine"
    elif switches:
        yield "switches", ", ".join(switches)
    nodes = len(run.get("nodes") or [])
    names = {port["port"] for port in ports}
    networks = sorted({port["network"] for port in ports})
    yield (
        "network",
        f"{format.of(nodes, 'node')}, {format.of(len(names), 'port')}, "
        f"{'network' if len(networks) == 1 else 'networks'} {', '.join(networks)}",
    )
    yield "launched by", str(run.get("launch"))
    yield "began", _words(run.get("started"))
    yield "took", format.seconds(run.get("elapsed_s"))
    versions = run.get("versions") or {}
    yield "versions", ", ".join(f"{name} {value}" for name, value in versions.items() if value)
    yield "controller", _machine(run.get("machine") or {})
    yield "random seed", _words(run.get("seed"))
    yield "run", _words(run.get("id"))
    yield "rerun", " ".join(run.get("command") or [])


def _machine(machine: Mapping[str, Any]) -> str:
    memory = machine.get("memory_bytes")
    words = [
        machine.get("host"),
        machine.get("system"),
        machine.get("cpu"),
        format.of(machine["cpus"], "CPU") if machine.get("cpus") else None,
        f"{memory / 2**30:.1f} GiB" if memory else None,
    ]
    return ", ".join(str(word) for word in words if word)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(one)}" for key, one in value.items() if one)
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    return format.UNKNOWN if value is None else str(value)


# --- what was found, and what was not measured ----------------------------------------------------


def found(summary: Summary) -> list[Part | None]:
    """Alarms, faults, hosts in doubt."""
    limits = limit_sentences(summary.get("trials") or [])
    parts: list[Part | None] = [
        sentences("What went wrong", summary.get("errors"), "bad"),
        sentences("Warnings", summary.get("warnings"), "bad"),
        sentences("A host, not the network, may have been the limit", limits, "doubt"),
    ]
    if not any(parts) and not summary.get("findings"):
        return [Words("Nothing: no warning, no finding, no host that was the limit.")]
    return parts


def not_measured(summary: Summary) -> list[Part | None]:
    """What was asked for and is not here."""
    absent = [
        f"{host['host']} was left out: {host['reason']}"
        for host in at(summary, "run.excluded_hosts") or []
    ]
    parts: list[Part | None] = [
        sentences("", summary.get("not_measured"), "doubt"),
        sentences("Hosts left out", absent, "doubt"),
        sentences("Times that could not be told", list(_reasons(summary)), "doubt"),
    ]
    return parts if any(parts) else [Words("Nothing: all that was asked for was measured.")]


def _reasons(summary: Summary) -> Iterator[str]:
    """Why times are missing: of reasons that differ in numbers alone the first, and how many."""
    alike: dict[str, list[str]] = {}
    for entry in summary.get("trials") or []:
        for times in (entry.get("latency") or {}).values():
            for reason in ((times or {}).get("reasons") or {}).values():
                kind = re.sub(r"there are [\d,]+", "there are", reason)
                alike.setdefault(kind, []).append(reason)
    for said in alike.values():
        yield said[0] if len(said) == 1 else f"{said[0]}, and {len(said) - 1:,} times the like"


def sentences(title: str, lines: Sequence[str] | None, mark: str = "") -> Sentences | None:
    """None where there are none."""
    return Sentences(title, lines, mark) if lines else None
