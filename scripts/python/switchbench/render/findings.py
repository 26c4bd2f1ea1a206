# SPDX-License-Identifier: BSD-3-Clause
"""What was found, by severity, with the counts of one kind together.

For the end of the printed result, the first screen and the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..analysis import measures as m
from ..base import format
from ..records.document.summary import SEVERITIES, Severity, SummaryDocument
from ..records.document.trials import PhaseEntry, TesterLimitEntry

ERROR: Severity = "error"
WARNING: Severity = "warning"
INFO: Severity = "info"


@dataclass(frozen=True)
class Said:
    """One finding for people; `parts`: what it is made of, a sentence each, the worst first."""

    severity: Severity
    text: str
    parts: tuple[str, ...] = ()


def findings(summary: SummaryDocument) -> list[Said]:
    """Return all of them, errors first."""
    found = [Said(ERROR, sentence) for sentence in summary["errors"]]
    found += [Said(one["severity"], one["sentence"]) for one in summary["findings"]]
    found += [Said(WARNING, sentence) for sentence in summary["location"]["problems"]]
    found += [Said(WARNING, sentence) for sentence in summary["warnings"]]
    found += [Said(WARNING, f"not measured: {sentence}") for sentence in summary["not_measured"]]
    found += _tester_limited(summary["trials"])
    return sorted(_together(found), key=lambda one: SEVERITIES.index(one.severity))


def _together(found: Sequence[Said]) -> Iterator[Said]:
    """Yield one finding for sentences on one port that differ in numbers alone.

    Are one finding.
    """
    alike: dict[tuple[Severity, str, str], list[Said]] = {}
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


def ppm(count: float, of: float) -> str:
    """Return a share for people: `12 ppm`; from a thousandth on, `0.34 %`."""
    share = 1e6 * count / of
    return f"{share:.3g} ppm" if share < 999.5 else f"{share / 10_000:.3g} %"


def _tester_limited(trials: Sequence[PhaseEntry]) -> Iterator[Said]:
    """Yield the finding on tester-limited phases, and a sentence for each port."""
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
    """Return the worst of each kind of limit."""
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
