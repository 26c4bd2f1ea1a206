# SPDX-License-Identifier: BSD-3-Clause
"""Clauses and what they were judged to be."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from .forms import Free, Outcome, Sha256


class ValueLocationEntry(TypedDict):
    """Where a value was seen."""

    trial: Annotated[int | None, "As in trials"]
    repeat: Annotated[int | None, "As in trials"]
    pattern: Annotated[str | None, "Its name"]
    network: Annotated[str | None, "Of the phase"]
    phase: Annotated[int | None, "Its number, as in trials"]
    src: Annotated[str | None, "Over flow: its source"]
    dst: Annotated[str | None, "Over flow: its destination"]
    port: Annotated[str | None, "Over port: its name"]


class FailureEntry(TypedDict):
    """A value for which the clause does not hold."""

    value: Annotated[float, "As seen"]
    margin: Annotated[float, "As the clause's"]
    of: Annotated[str, "What it is of"]
    at: Annotated[ValueLocationEntry | None, "Where the value was measured"]


class StatedClause(TypedDict):
    """A clause of `expect`."""

    id: Annotated[Any, "As stated"]
    clause: Annotated[str | None, "Its wording in contract or standard, as stated"]
    source: NotRequired[
        Annotated[str | None, "Where the wording stands: contract or standard, and section"]
    ]
    where: Annotated[Free | None, "As stated"]
    measure: Annotated[str, "As stated"]
    over: Annotated[str | None, "As stated"]
    require: Annotated[Any, "As stated"]


class ClauseEntry(StatedClause):
    """A clause of `expect` and its verdict."""

    limit: NotRequired[Annotated[float, "The number that is required"]]
    unit: NotRequired[Annotated[str, "Of limit, value and margin"]]
    verdict: Annotated[Outcome, "What the clause was judged to be"]
    judged: Annotated[int, "Values looked at"]
    failed: Annotated[int, "Values for which it does not hold"]
    unobserved: NotRequired[Annotated[int, "Values that could not be observed"]]
    limited: NotRequired[
        Annotated[int, "Values of tester-limited phases: they neither hold nor fail"]
    ]
    trials: NotRequired[Annotated[int, "How many it is about, repeats included"]]
    trials_measured: NotRequired[Annotated[int, "How many of those were measured"]]
    value: Annotated[float | None, "The worst of the valid values"]
    margin: NotRequired[
        Annotated[float | None, "From the limit to the worst value; below 0 on the wrong side"]
    ]
    margin_percent: NotRequired[
        Annotated[float | None, "The margin in percent of the limit; null: the limit is 0"]
    ]
    of: Annotated[str | None, "What the worst value is of"]
    at: NotRequired[Annotated[ValueLocationEntry | None, "Where the worst value was measured"]]
    failures: NotRequired[
        Annotated[
            list[FailureEntry], "Values for which it does not hold, the worst first, 20 at most"
        ]
    ]
    reason: Annotated[
        str | None, "Why it is INCONCLUSIVE; of one that fails on the network: what is suspected"
    ]


class VerdictEntry(TypedDict):
    """Of all clauses together; null: there are none."""

    verdict: Annotated[
        Outcome,
        "FAIL: a clause failed; INCONCLUSIVE: none did, but one is INCONCLUSIVE, or the run is "
        "not complete",
    ]
    sentence: Annotated[str, "For people, with what was tested"]
    scope: Annotated[str, "What the verdict does not say"]
    passed: Annotated[int, "Clauses that hold"]
    failed: Annotated[int, "Clauses that do not hold"]
    inconclusive: Annotated[int, "Clauses that could not be judged"]
    warnings: Annotated[
        list[str],
        "What it has to be read with, a sentence each: in what tests are less than profile "
        "acceptance asks, hosts that were left out",
    ]
    clauses_sha256: Annotated[Sha256, "SHA-256 of the clauses in canonical form (clauses.json)"]
