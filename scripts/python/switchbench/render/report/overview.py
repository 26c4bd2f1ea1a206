# SPDX-License-Identifier: BSD-3-Clause
"""What a reader sees before any figure: verdict, the run at a glance, the set-up, what was found,
and what was not measured. Made of the summary; where it lacks something, nothing is said."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...base import format
from ..tables.definitions import definition
from ..tables.table import at
from .markup import Html, join, listed, paragraph, tag

Summary = Mapping[str, Any]

_MOST_SENTENCES = 200
_SLOWEST_IS = (
    "The flow that is the furthest below the mean of its own plan's flows, by payload in the "
    "window. Flows of different patterns share their ports with different numbers of others: only "
    "those of one plan are like each other"
)
_SIGNS = {"accepted": "✓", "refused": "✗", "inconclusive": "?"}
_RAN = {
    "complete": "All that was asked for was measured.",
    "partial": "Not all that was asked for was measured: see below.",
    "failed": "Nothing was measured.",
}


# --- verdict -------------------------------------------------------------------------------------


def verdict(summary: Summary) -> Html:
    """The verdict in one word, its sentence, and what it does not say."""
    found = summary.get("verdict")
    ran = _RAN.get(str(summary.get("status")), "")
    if not found:
        words = "The configuration has no clause to judge by (expect)."
        if summary.get("expectations"):
            words = "What was judged can't be read here."
        return tag("div", tag("b", "No verdict"), tag("p", f"{words} {ran}"), class_="verdict")
    word = found["verdict"]
    said = tag("p", f"{found['sentence'].rstrip('.')}. {ran}")
    head = tag("b", f"{_SIGNS[word]} {word.capitalize()}")
    return join(
        [
            tag("div", head, said, class_="verdict", data_verdict=word),
            _sentences("Reservations", found["warnings"], "doubt"),
            paragraph(f"{found['scope']} Clauses, SHA-256: {found['clauses_sha256']}", "about"),
        ]
    )


def tiles(summary: Summary) -> Html:
    """The run at a glance."""
    plans = summary.get("plans") or []
    return tag("div", *_tiles(summary, plans), class_="tiles")


def _tiles(summary: Summary, plans: Sequence[Mapping[str, Any]]) -> Iterator[Html]:
    ranks = max((plan["ranks"] for plan in plans), default=None)
    if ranks is not None:
        yield _tile("Ranks", f"{ranks:,}", "endpoints of traffic, at the most", "ranks")
    least = _least(plans, "throughput.min_percent_of_line")
    if least is not None:
        value = at(least, "throughput.min_percent_of_line")
        key = "throughput.min_percent_of_line"
        yield _tile("Least port", f"{value:.2f} % of line", _what(least), key)
    slowest = min(plans, key=lambda plan: _share_of_mean(plan) or math.inf, default=None)
    share = _share_of_mean(slowest) if slowest is not None else None
    if slowest is not None and share is not None:
        rate = at(slowest, "throughput.min")
        unit = format.unit_for([rate])
        flow = format.flow(slowest["slowest"]) if slowest["slowest"] else "a flow"
        words = f"{flow}: {unit.show(rate)} {unit.name}, {_what(slowest)}"
        yield _tile(
            "Slowest flow", f"{100 * share:.1f} % of mean", words, "throughput.min", _SLOWEST_IS
        )
    lost = [plan for plan in plans if plan["lost_frames"] is not None]
    if lost:
        frames = sum(plan["lost_frames"] for plan in lost)
        offered = sum(plan["offered_frames"] or 0 for plan in lost)
        yield _tile("Lost frames", f"{frames:,}", f"of {offered:,} offered", "lost_frames")
    yield _tile("Alarms", str(len(summary.get("warnings") or [])), "", "warnings")
    missing = len(summary.get("not_measured") or [])
    yield _tile("Not measured", str(missing), "of what was asked for", "not_measured")


def _share_of_mean(plan: Mapping[str, Any]) -> float | None:
    """How much of its plan's mean the slowest flow has: flows of other patterns share their ports
    with fewer or more others, and are not like it."""
    least, mean = at(plan, "throughput.min"), at(plan, "throughput.mean")
    return None if least is None or not mean else float(least / mean)


def _least(plans: Iterable[Mapping[str, Any]], key: str) -> Mapping[str, Any] | None:
    known = [plan for plan in plans if at(plan, key) is not None]
    return min(known, key=lambda plan: float(at(plan, key)), default=None)


def _what(plan: Mapping[str, Any]) -> str:
    ranks = format.of(plan["ranks"], "rank")
    return f"{format.pattern(plan)}, {plan['transport']}, {ranks}, {format.size(plan)}"


def _tile(title: str, value: str, words: str, key: str, about: str = "") -> Html:
    return tag(
        "div", tag("span", title), tag("b", value), tag("div", tag("small", words)),
        class_="tile", data_name=title, data_definition=about or definition(key), tabindex="0",
    )  # fmt: skip


# --- the set-up ----------------------------------------------------------------------------------


def set_up(summary: Summary) -> Html:
    """Switch, nodes, versions: what a reader needs to do it again."""
    return join([_about(summary), _listed(_facts(summary))])


def _about(summary: Summary) -> Html | None:
    """What the user said of the switch under test, and for whom."""
    about = at(summary, "run.about") or {}
    rows = [("switch under test", _words(switch)) for switch in about.get("switches", [])]
    rows += [(key, _words(value)) for key, value in about.items() if key != "switches"]
    return _listed(rows) if rows else None


def _listed(rows: Iterable[tuple[str, str]]) -> Html:
    return tag("dl", *(join([tag("dt", key), tag("dd", value)]) for key, value in rows))


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
    yield "seed of all that is random", _words(run.get("seed"))
    yield "run", _words(run.get("id"))
    yield "to repeat it", " ".join(run.get("command") or [])


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


def found(summary: Summary) -> Html:
    """Alarms, faults, hosts in doubt."""
    faults = _sentences("What went wrong", summary.get("errors"), "bad")
    alarms = _sentences("Alarms", summary.get("warnings"), "bad")
    limits = _sentences(
        "A host, not the network, may have been the limit", list(_limits(summary)), "doubt"
    )
    parts = [part for part in (faults, alarms, limits) if part is not None]
    if not parts and not summary.get("findings"):
        parts = [tag("p", "Nothing: no alarm, no finding, no host in doubt.")]
    return join(parts)


def not_measured(summary: Summary) -> Html:
    """What was asked for and is not here."""
    missing = _sentences(None, summary.get("not_measured"), "doubt")
    absent = [
        f"{host['host']} was left out: {host['reason']}"
        for host in at(summary, "run.excluded_hosts") or []
    ]
    parts = [missing, _sentences("Hosts left out", absent, "doubt"), _reasons(summary)]
    if all(part is None for part in parts):
        return tag("p", "Nothing: all that was asked for was measured.")
    return join(parts)


def not_drawn(notes: Sequence[str]) -> Html | None:
    """What figures lack, though nothing is wrong with the results."""
    return _sentences("Not drawn", notes, "doubt")


def _reasons(summary: Summary) -> Html | None:
    """Why times are missing: of reasons that differ in numbers alone the first, and how many."""
    alike: dict[str, list[str]] = {}
    for entry in summary.get("trials") or []:
        for times in (entry.get("latency") or {}).values():
            for reason in ((times or {}).get("reasons") or {}).values():
                kind = re.sub(r"there are [\d,]+", "there are", reason)
                alike.setdefault(kind, []).append(reason)
    sentences = [
        said[0] if len(said) == 1 else f"{said[0]}, and {len(said) - 1:,} times the like"
        for said in alike.values()
    ]
    return _sentences("Times that could not be told", sentences, "doubt")


def _sentences(title: str | None, sentences: Sequence[str] | None, kind: str) -> Html | None:
    if not sentences:
        return None
    more = len(sentences) - _MOST_SENTENCES
    return join(
        [
            tag("h3", title) if title else None,
            listed(sentences[:_MOST_SENTENCES], f"plain {kind}"),
            paragraph(f"and {more:,} more in summary.json" if more > 0 else ""),
        ]
    )


def _limits(summary: Summary) -> Iterator[str]:
    """A sentence for each port whose host is doubted, over all phases."""
    reasons: dict[str, list[str]] = {}
    for entry in summary.get("trials") or []:
        for limit in entry["tester_limited"]:
            reasons.setdefault(limit["port"], []).append(limit["reason"])
    for port, said in sorted(reasons.items()):
        yield f"{port}: in {format.of(len(said), 'phase')}, first: {said[0]}"
