# SPDX-License-Identifier: BSD-3-Clause
"""What a suite found: its searches, and the tables of its document."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from .forms import Free


class SuiteSetting(TypedDict):
    """What a suite sent."""

    pattern: Annotated[str, Field(description="What was sent")]
    parameters: Annotated[Free, Field(description="The pattern's, by name")]
    transport: Annotated[str, Field(description="That carried it")]
    networks: Annotated[list[str], Field(description="Networks that were loaded together")]
    size: Annotated[int | list[int], Field(description="Of a frame, or an IMIX")]
    size_unit: Annotated[str, Field(description="frame")]


class SearchEntry(SuiteSetting):
    """One goal of one search (RFC 9971, Goal Result)."""

    search: Annotated[int, Field(description="Number of the search in the run")]
    goal: Annotated[str, Field(description="Its goal: ndr, pdr, rfc2544 or tst009")]
    load_unit: Annotated[str, Field(description="Of the bounds, each port's: % of line, ...")]
    relevant_lower_bound: Annotated[
        float | None, Field(description="Highest load that met the goal; null: none did")
    ]
    relevant_upper_bound: Annotated[
        float | None, Field(description="Lowest load that did not; null: all did")
    ]
    conditional_throughput: Annotated[
        float | None, Field(description="Of the lower bound, less what its trials lost")
    ]
    relative_width: Annotated[
        float | None, Field(description="Difference of the bounds by the upper one")
    ]
    trials: Annotated[int, Field(description="Of the whole search, for all of its goals")]
    regular: Annotated[bool, Field(description="Both bounds are there and near enough")]
    outcome: Annotated[str, Field(description="How the search ended, a sentence")]


class SubtestEntry(SuiteSetting):
    """One subtest of a suite at one size, with the rows of its table."""

    subtest: Annotated[str, Field(description="Its name in the suite")]
    variant: Annotated[str | None, Field(description="Which of its matrices; null: the only one")]
    rows: Annotated[
        list[dict[str, float | None]],
        Field(description="Values by the keys of doc/reference/standards.md; null: not observed"),
    ]
    trials: Annotated[int, Field(description="That were measured, tester-limited ones too")]
    complete: Annotated[bool, Field(description="Nothing that was asked for is missing")]
    outcome: Annotated[str, Field(description="How it ended, a sentence")]


class SuiteEntry(TypedDict):
    """A document's suite: what each of its subtests found."""

    name: Annotated[str, Field(description="ndr-pdr, rfc2544, rfc9004, rfc2889 or rfc8239")]
    parameters: Annotated[dict[str, float], Field(description="Durations, widths, repeats, limits")]
    subtests: Annotated[list[SubtestEntry], Field(description="In the order of the document")]
