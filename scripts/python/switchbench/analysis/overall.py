# SPDX-License-Identifier: BSD-3-Clause
"""The verdict of a whole run: its words, and the exit status that goes with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base import format
from ..base.model import Run
from ..config.clauses import clauses_sha256
from ..records.document.summary import BegunRun, ClauseEntry, ExitStatus, VerdictEntry
from ..records.document.trials import Outcome, PhaseEntry
from .judge import FAIL, INCONCLUSIVE, PASS
from .suite import SuiteCourse

SCOPE = (
    "The verdict is about these clauses and what was measured in this run, nothing else. A clause "
    "may cite a standard, and a suite may follow one; conformance to a standard is not claimed."
)


def overall(
    run: Run, about: BegunRun, expectations: Iterable[ClauseEntry], status: str
) -> VerdictEntry:
    """Return the verdict and its sentence.

    In a run that is partial FAIL stays FAIL; PASS becomes INCONCLUSIVE.
    """
    verdict: Outcome
    counts = Counter(clause["verdict"] for clause in expectations)
    if counts[FAIL]:
        verdict = FAIL
    elif counts[INCONCLUSIVE] or status != "complete":
        verdict = INCONCLUSIVE
    else:
        verdict = PASS
    return {
        "verdict": verdict,
        "sentence": f"{_tested(run.about)} {_outcome(verdict, counts)}",
        "scope": SCOPE,
        "passed": counts[PASS],
        "failed": counts[FAIL],
        "inconclusive": counts[INCONCLUSIVE],
        "warnings": [*run.reservations, *left_out(about)],
        "clauses_sha256": clauses_sha256(run.expectations),
    }


def left_out(about: BegunRun) -> list[str]:
    """Return a sentence for each host that the run went on without."""
    hosts = about.get("excluded_hosts", [])
    return [f"{host['host']} was left out: {host['reason']}" for host in hosts]


def _outcome(verdict: Outcome, counts: Mapping[Outcome, int]) -> str:
    """Return what is said of the system under test."""
    every, failed, undecided = sum(counts.values()), counts[FAIL], counts[INCONCLUSIVE]
    each = counts_words(failed, undecided, counts[PASS])
    each = "" if every == 1 else f" ({each})"
    if verdict == PASS:
        return "meets its one clause" if every == 1 else f"meets all {every} clauses"
    if verdict == FAIL:
        return f"does not meet {_of_clauses(failed, every)}{each}"
    if undecided:
        return (
            f"neither passes nor fails: {_of_clauses(undecided, every)} could not be judged{each}"
        )
    return "neither passes nor fails: no clause failed, but the run is not complete"


def counts_words(failed: int, inconclusive: int, passed: int) -> str:
    """Return the clauses counted by verdict: "1 failed, 4 inconclusive, 1 passed"."""
    return f"{failed} failed, {inconclusive} inconclusive, {passed} passed"


def _of_clauses(count: int, every: int) -> str:
    return "its one clause" if every == 1 else f"{count} of {every} clauses"


def _tested(about: Mapping[str, Any]) -> str:
    """Return what the verdict is about, by its model, serial number and firmware."""
    switches = about.get("switches", [])
    if not switches:
        return "The system under test"
    names = []
    for switch in switches:
        model = " ".join(switch[key] for key in ("vendor", "model") if key in switch)
        more = [f"{key} {switch[key]}" for key in ("serial", "firmware") if key in switch]
        names.append(f"{model or switch.get('name') or 'a switch'} ({', '.join(more)})")
    return " with ".join(name.removesuffix(" ()") for name in names)


def exit_status(
    status: str, expectations: Iterable[ClauseEntry], judged: bool = True
) -> ExitStatus:
    """Return the precedence of exit statuses: (2,) 3, 1, 4, 0.

    `judged`: anything that was asked for could be judged.
    """
    if status != "complete":
        return 3
    verdicts = {clause["verdict"] for clause in expectations}
    if FAIL in verdicts:
        return 1
    return 4 if INCONCLUSIVE in verdicts or not judged else 0


def nothing_judged(
    entries: Sequence[PhaseEntry], expectations: Iterable[ClauseEntry], course: SuiteCourse | None
) -> str | None:
    """Return why nothing that was asked for could be judged, a sentence; None: something could.

    `course`: a suite's, whose trials alone decide nothing.
    """
    if not entries or any(clause["verdict"] != INCONCLUSIVE for clause in expectations):
        return None
    if course is not None:
        searches = course.every
        if any(measured.is_judged for measured in searches):
            return None
        first = searches[0].outcome()[0] if searches else ""
        return f"nothing could be judged: {format.of(len(searches), 'measurement')}. {first}"
    limited = sum(bool(entry["tester_limited"]) for entry in entries)
    if limited < len(entries):
        return None
    phases = format.of(len(entries), "phase")
    return f"nothing could be judged: the tester was the limit in {limited} of {phases}"
