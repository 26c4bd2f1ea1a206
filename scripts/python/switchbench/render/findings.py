# SPDX-License-Identifier: BSD-3-Clause
"""What was found, by severity, with the counts of one kind together: for the end of the printed
result, the first screen and the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..analysis import measures as m
from ..base import format
from ..records.document.findings import FindingEntry
from ..records.document.summary import SummaryDocument
from ..records.document.trials import PhaseEntry, TesterLimitEntry

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)

# Kinds that count frames of flows: how bad they are, and what became of the frames.
_FRAMES = {
    "flood": (ERROR, "flooded to all ports"),
    "wrong-port": (ERROR, "delivered to a wrong port"),
    "misdelivered": (ERROR, "misdelivered"),
    "forged": (ERROR, "with a forged number"),
    "corrupt": (ERROR, "corrupted"),
    "loss": (WARNING, "lost"),
    "duplicate": (WARNING, "duplicated"),
    "reorder": (WARNING, "reordered"),
}
# Others are each for itself, and warnings where nothing is said here.
_OF_KIND = {"dead-port": ERROR, "collapse": ERROR, "unfinished": ERROR, "oversubscribed": INFO}


@dataclass(frozen=True)
class Said:
    """One finding for people; `parts`: what it is made of, a sentence each, the worst first."""

    severity: str
    text: str
    parts: tuple[str, ...] = ()


def findings(summary: SummaryDocument) -> list[Said]:
    """All of them, errors first."""
    found = [Said(ERROR, sentence) for sentence in summary["errors"]]
    found += _of_network(summary)
    found += [Said(WARNING, sentence) for sentence in summary["warnings"]]
    found += [Said(WARNING, f"not measured: {sentence}") for sentence in summary["not_measured"]]
    found += _tester_limited(summary["trials"])
    return sorted(_together(found), key=lambda one: SEVERITIES.index(one.severity))


def _together(found: Sequence[Said]) -> Iterator[Said]:
    """Sentences on one port that differ in numbers alone, as those of a search's trials, are one
    finding."""
    alike: dict[tuple[str, str, str], list[Said]] = {}
    for one in found:
        name, _, rest = one.text.partition(": ")
        words = re.sub(r"\d[\d.,]*(?: ([a-z]+?)s?\b)?", r"0 \1", rest)  # 1 frame, 2 frames
        alike.setdefault((one.severity, name, words), []).append(one)
    for some in alike.values():
        if len(some) == 1:
            yield some[0]
        else:
            text = f"{some[0].text} (and {len(some) - 1:,} more of this kind)"
            yield Said(some[0].severity, text, tuple(one.text for one in some))


def counts(found: Sequence[Said]) -> str:
    """`1 error, 2 warnings`."""
    words = []
    for severity in SEVERITIES:
        number = sum(one.severity == severity for one in found)
        if number:
            words.append(f"{number} info" if severity == INFO else format.of(number, severity))
    return ", ".join(words)


def _of_network(summary: SummaryDocument) -> Iterator[Said]:
    """Frames of one kind over one transport are one finding."""
    alike: dict[tuple[str, str], list[FindingEntry]] = {}
    for entry in summary["findings"]:
        if entry["kind"] in _FRAMES:
            alike.setdefault((entry["kind"], entry["transport"]), []).append(entry)
        else:
            severity = _OF_KIND.get(entry["kind"], WARNING)
            yield Said(severity, entry["sentence"])
    for (kind, transport), some in alike.items():
        severity, became = _FRAMES[kind]
        where = f" over {transport}"
        if kind == "reorder" and (shared := _shared_cores(summary)):
            severity, where = INFO, f"{where}, {shared}"
        some.sort(key=lambda entry: -entry["count"])
        count = sum(entry["count"] for entry in some)
        sent = m.total_known(
            e["offered_frames"] for e in summary["trials"] if e["transport"] == transport
        )
        many = "" if not sent else f"{int(sent):,}" if sent < 1e6 else f"{sent / 1e6:.1f} M"
        of = f" of {many}" if sent else ""
        share = f", {ppm(count, sent)}" if sent else ""
        text = f"{count:,}{of} frames {became}{share}{where}"
        if len(some) > 1:
            text = f"{text}; most: {some[0]['sentence']}"
        else:
            text = f"{some[0]['sentence']} ({text})"
        yield Said(severity, text, tuple(entry["sentence"] for entry in some))


def ppm(count: float, of: float) -> str:
    """A share for people: `12 ppm`; from a thousandth on, `0.34 %`."""
    share = 1e6 * count / of
    return f"{share:.3g} ppm" if share < 999.5 else f"{share / 10_000:.3g} %"


def _shared_cores(summary: SummaryDocument) -> str:
    """Nodes that wait for each other's core reorder what they receive; empty: none do."""
    run = summary["run"]
    machine: Mapping[str, Any] = run.get("machine") or {}
    nodes, cores = len(run.get("nodes", [])), machine.get("cpus")
    if not run.get("lab") or not cores or nodes <= cores:
        return ""
    return f"in a lab whose {nodes} nodes share {format.of(cores, 'core')}"


def _tester_limited(trials: Sequence[PhaseEntry]) -> Iterator[Said]:
    """One finding, and a sentence for each port."""
    limits: dict[str, list[TesterLimitEntry]] = {}
    for entry in trials:
        for limit in entry["tester_limited"]:
            limits.setdefault(limit["port"], []).append(limit)
    if not limits:
        return
    phases = sum(bool(entry["tester_limited"]) for entry in trials)
    every = [limit for some in limits.values() for limit in some]
    text = f"tester-limited: {phases} of {format.of(len(trials), 'phase')}: {_limit_words(every)}"
    parts = [
        f"{port}: {_limit_words(some)}, in {format.of(len(some), 'phase')}"
        for port, some in sorted(limits.items())
    ]
    yield Said(INFO, text, tuple(parts))


def _limit_words(limits: Sequence[TesterLimitEntry]) -> str:
    """The worst of each kind of limit."""
    words = []
    if short := m.greatest(limit["shortfall_percent"] for limit in limits):
        words.append(f"offered load up to {short:.1f} % below intended")
    if drops := sum(limit["dropped_frames"] or 0 for limit in limits):
        words.append(f"{format.of(drops, 'frame')} dropped in the host")
    if late := m.greatest(limit.get("start_delay_ms") for limit in limits):
        words.append(f"start up to {late:.1f} ms late")
    if off := m.greatest(limit.get("window_error_percent") for limit in limits):
        words.append(f"window up to {off:.1f} % off its length")
    if (idle := m.least(limit.get("cpu_idle_percent") for limit in limits)) is not None:
        words.append(f"the lab's CPUs idle {idle:.1f} % of the time")
    return ", ".join(words)
