# SPDX-License-Identifier: BSD-3-Clause
"""Clauses and what they were judged to be."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from .forms import Free, Outcome, Sha256


class ValueLocationEntry(TypedDict):
    """Where a value was seen."""

    trial: Annotated[int | None, Field(description="As in trials")]
    repeat: Annotated[int | None, Field(description="As in trials")]
    pattern: Annotated[str | None, Field(description="Its name")]
    network: Annotated[str | None, Field(description="Of the phase")]
    phase: Annotated[int | None, Field(description="Its number, as in trials")]
    src: Annotated[str | None, Field(description="Over flow: its source")]
    dst: Annotated[str | None, Field(description="Over flow: its destination")]
    port: Annotated[str | None, Field(description="Over port: its name")]


class FailureEntry(TypedDict):
    """A value for which the clause does not hold."""

    value: Annotated[float, Field(description="As seen")]
    margin: Annotated[float, Field(description="As the clause's")]
    of: Annotated[str, Field(description="What it is of")]
    at: Annotated[ValueLocationEntry | None, Field(description="Where the value was measured")]


class StatedClause(TypedDict):
    """A clause of `expect`."""

    id: Annotated[Any, Field(description="As stated")]
    clause: Annotated[
        str | None, Field(description="Its wording in contract or standard, as stated")
    ]
    source: NotRequired[
        Annotated[
            str | None,
            Field(description="Where the wording stands: contract or standard, and section"),
        ]
    ]
    where: Annotated[Free | None, Field(description="As stated")]
    measure: Annotated[str, Field(description="As stated")]
    over: Annotated[str | None, Field(description="As stated")]
    require: Annotated[Any, Field(description="As stated")]


class ClauseEntry(StatedClause):
    """A clause of `expect` and its verdict."""

    limit: NotRequired[Annotated[float, Field(description="The number that is required")]]
    unit: NotRequired[Annotated[str, Field(description="Of limit, value and margin")]]
    verdict: Annotated[Outcome, Field(description="What the clause was judged to be")]
    judged: Annotated[int, Field(description="Values looked at")]
    failed: Annotated[int, Field(description="Values for which it does not hold")]
    unobserved: NotRequired[Annotated[int, Field(description="Values that could not be observed")]]
    trials: NotRequired[Annotated[int, Field(description="How many it is about, repeats included")]]
    trials_measured: NotRequired[
        Annotated[int, Field(description="How many of those were measured")]
    ]
    value: Annotated[float | None, Field(description="The worst value")]
    margin: NotRequired[
        Annotated[
            float | None,
            Field(description="From the limit to the worst value; below 0 on the wrong side"),
        ]
    ]
    margin_percent: NotRequired[
        Annotated[
            float | None,
            Field(description="The margin in percent of the limit; null: the limit is 0"),
        ]
    ]
    of: Annotated[str | None, Field(description="What the worst value is of")]
    at: NotRequired[
        Annotated[
            ValueLocationEntry | None, Field(description="Where the worst value was measured")
        ]
    ]
    failures: NotRequired[
        Annotated[
            list[FailureEntry],
            Field(description="Values for which it does not hold, the worst first, 20 at most"),
        ]
    ]
    reason: Annotated[str | None, Field(description="Why it is INCONCLUSIVE")]


class VerdictEntry(TypedDict):
    """Of all clauses together; null: there are none."""

    verdict: Annotated[
        Outcome,
        Field(
            description="FAIL: a clause failed; INCONCLUSIVE: none did, but one is INCONCLUSIVE, "
            "or the run is not complete"
        ),
    ]
    sentence: Annotated[str, Field(description="For people, with what was tested")]
    scope: Annotated[str, Field(description="What the verdict does not say")]
    passed: Annotated[int, Field(description="Clauses that hold")]
    failed: Annotated[int, Field(description="Clauses that do not hold")]
    inconclusive: Annotated[int, Field(description="Clauses that could not be judged")]
    warnings: Annotated[
        list[str],
        Field(
            description="What it has to be read with, a sentence each: in what tests are less than "
            "profile acceptance asks, hosts that were left out"
        ),
    ]
    clauses_sha256: Annotated[
        Sha256, Field(description="SHA-256 of the clauses in canonical form (clauses.json)")
    ]
