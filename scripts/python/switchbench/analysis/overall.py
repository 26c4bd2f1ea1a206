# SPDX-License-Identifier: BSD-3-Clause
"""The verdict of a whole run: its words, and the exit status that goes with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .judge import ACCEPTED, INCONCLUSIVE, REFUSED

SCOPE = (
    "The verdict is about these clauses and what was measured in this run, nothing else. A clause "
    "may cite a standard, and a suite may follow one; conformance to a standard is not claimed."
)


def overall(
    expectations: Sequence[Mapping[str, Any]], status: str, about: Mapping[str, Any]
) -> dict[str, Any]:
    """The verdict and its sentence. What was refused stays so in a run that is partial; what was
    accepted in one is inconclusive."""
    counts = Counter(clause["verdict"] for clause in expectations)
    if counts[REFUSED]:
        verdict = REFUSED
    elif counts[INCONCLUSIVE] or status != "complete":
        verdict = INCONCLUSIVE
    else:
        verdict = ACCEPTED
    return {
        "verdict": verdict,
        "sentence": _sentence(verdict, counts, _tested(about)),
        "scope": SCOPE,
        **{word: counts[word] for word in (ACCEPTED, REFUSED, INCONCLUSIVE)},
    }


def _sentence(verdict: str, counts: Mapping[str, int], tested: str) -> str:
    every, failed, open_ = sum(counts.values()), counts[REFUSED], counts[INCONCLUSIVE]
    one = every == 1
    if verdict == ACCEPTED:
        how = "its one clause holds" if one else f"all {every} clauses hold"
    elif verdict == REFUSED:
        do = "do" if failed > 1 else "does"
        how = f"{'its one clause' if one else f'{failed} of {every} clauses'} {do} not hold"
    elif open_:
        of = "its one clause" if one else f"{open_} of {every} clauses"
        how = f"{of} could not be concluded, none was refused"
    else:
        how = "the run is not complete, though no clause was refused"
    words = "neither accepted nor refused" if verdict == INCONCLUSIVE else verdict
    return f"{tested} is {words}: {how}"


def _tested(about: Mapping[str, Any]) -> str:
    """What the verdict is about, by its model, serial number and firmware."""
    switches = about.get("switches", [])
    if not switches:
        return "What was tested"
    names = []
    for switch in switches:
        model = " ".join(switch[key] for key in ("vendor", "model") if key in switch)
        more = [f"{key} {switch[key]}" for key in ("serial", "firmware") if key in switch]
        names.append(f"{model or switch.get('name') or 'a switch'} ({', '.join(more)})")
    return " with ".join(name.removesuffix(" ()") for name in names)


def exit_status(status: str, expectations: Iterable[Mapping[str, Any]]) -> int:
    """DESIGN's precedence: (2,) 3, 1, 4, 0."""
    if status != "complete":
        return 3
    verdicts = {clause["verdict"] for clause in expectations}
    if REFUSED in verdicts:
        return 1
    return 4 if INCONCLUSIVE in verdicts else 0
