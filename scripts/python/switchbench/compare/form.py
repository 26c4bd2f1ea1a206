# SPDX-License-Identifier: BSD-3-Clause
"""The form of a comparison as one value for other programs, as types; its JSON Schema is made of
them."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from ..records.document.schema import schema_of
from .differences import Verdict

Better = Literal["more", "less"]
Settings = Annotated[dict[str, str], "Flat settings and their words"]
Trials = Annotated[list[int], "One for each repeat"]
Mean = Annotated[float | None, "Mean over its repeats"]
Count = Annotated[int, Field(ge=0)]
InOrder = "In the results' order"


class ResultValue(TypedDict):
    """One of the results."""

    name: str
    directory: str
    id: str | None
    started: str | None
    status: str | None
    settings: Settings


class DifferingValue(TypedDict):
    """A setting that differs."""

    of: Annotated[str | None, "Whose; null: of the whole run"]
    setting: str
    values: Annotated[list[str], Field(min_length=2), "In the results' order; `-`: it has none"]


class CaseValue(TypedDict):
    """What was measured at one setting."""

    title: str
    settings: Settings
    trials: Trials


class PairValue(TypedDict):
    """Two cases beside each other."""

    baseline: CaseValue
    other: CaseValue


class RowValue(TypedDict):
    """One measure of one thing in two results."""

    pair: Annotated[Count, "Place of its pair in `pairs`"]
    of: Annotated[str | None, "The phase or flow; null: all phases together"]
    measure: str
    unit: str
    better: Better
    baseline: Mean
    other: Mean
    repeats: Annotated[
        list[Count],
        Field(min_length=2, max_length=2),
        "Repeats, or runs where a side has several, in which it was observed: the baseline's, the "
        "other's",
    ]
    difference: Annotated[float | None, "Other less baseline"]
    percent: Annotated[float | None, "The same in percent of the baseline"]
    ci_low: Annotated[
        float | None,
        "Lower end of the difference's confidence interval (Welch); null: there is none, see "
        "`reason`",
    ]
    ci_high: Annotated[float | None, "Upper end"]
    degrees_of_freedom: Annotated[float | None, "Welch and Satterthwaite's"]
    p: Annotated[float | None, "Probability of so large a difference if there were none"]
    p_adjusted: Annotated[
        float | None, "The same, corrected by Holm for all that the comparison asks at once"
    ]
    dependent: Annotated[
        bool, "Repeats followed each other beyond chance; the interval is wider for it"
    ]
    verdict: Annotated[Verdict, "better, worse: surely, after correction; same: equal means"]
    reason: Annotated[str | None, "Why there is no interval"]


class ComparedValue(TypedDict):
    """One result beside the baseline."""

    result: str
    pairs: Annotated[list[PairValue], "Which cases stand beside each other"]
    plans: list[RowValue]
    phases: list[RowValue]
    flows: Annotated[list[RowValue], "The surest and largest differences first"]
    flows_compared: Count
    differing: Annotated[list[DifferingValue], "Settings that make them other measurements"]
    alone: Annotated[list[str], "What only one of them has, a sentence each"]
    notes: list[str]


class SharedRowValue(TypedDict):
    """One measure of several programs."""

    measure: Annotated[str, "By one definition (doc/how-to/compare.md)"]
    ranks: int
    size: Annotated[int | None, "Bytes of a message; null: it does not matter"]
    unit: str
    better: Better
    values: Annotated[list[float | None], "Of each of `programs`"]
    ratios: Annotated[list[float | None], "To the first value that there is"]


class SharedValue(TypedDict):
    """The same measured by several programs."""

    programs: Annotated[list[str], "Results, with the program or transport where there are several"]
    rows: list[SharedRowValue]
    alone: Annotated[int, "Figures that one program alone has"]


@with_config(ConfigDict(extra="forbid", strict=True))
class ComparisonDocument(TypedDict):
    """What differs between results (doc/how-to/compare.md). null: not observed, or not known."""

    schema: Annotated[Literal["switchbench-comparison/2"], "Form and version of this file"]
    exit_status: Annotated[Literal[0, 2], "Of the command: 2 when not all could be compared"]
    confidence_percent: float
    baseline: Annotated[str, "Name of the result that the others are compared with"]
    results: Annotated[list[ResultValue], Field(min_length=1)]
    question: Annotated[
        list[DifferingValue],
        "What differs and is what was to be compared: switch, firmware, site, transport",
    ]
    comparisons: list[ComparedValue]
    shared: Annotated[
        SharedValue,
        "The same measured by several programs; empty without another program's results",
    ]
    damage: Annotated[list[str], "What could not be read, a sentence each"]


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the document."""
    return schema_of(TypeAdapter(ComparisonDocument), ComparisonDocument, "Switchbench comparison")
