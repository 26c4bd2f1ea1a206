# SPDX-License-Identifier: BSD-3-Clause
"""What a suite found: its searches, and the tables of its document."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

from .forms import Free


class SuiteSetting(TypedDict):
    """What a suite sent."""

    pattern: Annotated[str, "What was sent"]
    parameters: Annotated[Free, "The pattern's, by name"]
    transport: Annotated[str, "That carried it"]
    networks: Annotated[list[str], "Networks that were loaded together"]
    size: Annotated[int | list[int], "Of a frame, or an IMIX"]
    size_unit: Annotated[str, "frame"]


class SearchEntry(SuiteSetting):
    """One goal of one search (RFC 9971, Goal Result)."""

    search: Annotated[int, "Number of the search in the run"]
    goal: Annotated[str, "Its goal: ndr, pdr, rfc2544 or tst009"]
    load_unit: Annotated[str, "Of the bounds, each port's: % of line, ..."]
    relevant_lower_bound: Annotated[float | None, "Highest load that met the goal; null: none did"]
    relevant_upper_bound: Annotated[float | None, "Lowest load that did not; null: all did"]
    conditional_throughput: Annotated[float | None, "Of the lower bound, less what its trials lost"]
    relative_width: Annotated[float | None, "Difference of the bounds by the upper one"]
    trials: Annotated[int, "Of the whole search, for all of its goals"]
    regular: Annotated[bool, "Both bounds are there and near enough"]
    outcome: Annotated[str, "How the search ended, a sentence"]
    goal_loss_ratio: Annotated[float, "Of a trial, that the goal allows: 0 to 1"]
    goal_exceed_ratio: Annotated[float, "Of the sum of durations, of trials that may lose more"]
    goal_initial_trial_s: Annotated[float, "Of the first, short trials"]
    goal_final_trial_s: Annotated[float, "Of a trial that decides"]
    goal_duration_sum_s: Annotated[float, "Of the trials that decide a load, together"]
    goal_width: Annotated[float, "Largest relative_width that ends the search"]
    min_load: Annotated[float, "Of the range that is searched, in load_unit"]
    max_load: Annotated[float, "Of the range that is searched, in load_unit"]


class TrialEntry(TypedDict):
    """One trial of a subtest, as its search was told of it."""

    value: Annotated[float, "What the search varied, in the subtest's unit"]
    duration_s: Annotated[float, "Asked for; 0: the value says how long"]
    learning_rate: Annotated[float | None, "Addresses announced per second; null: none were"]
    offered: Annotated[int, "Test frames that were sent, all ports"]
    forwarded: Annotated[int, "That came to their destinations, all ports"]
    lost: Annotated[int, "Of the offered ones"]
    flooded: Annotated[int, "Frames that came to other ports than their destinations"]
    tester_limited: Annotated[bool, "It decided nothing"]


class SubtestEntry(SuiteSetting):
    """One subtest of a suite at one size, with the rows of its table."""

    subtest: Annotated[str, "Its name in the suite"]
    variant: Annotated[str | None, "Which of its matrices; null: the only one"]
    rows: Annotated[
        list[dict[str, float | None]],
        "Values by the keys of doc/reference/standards.md; null: not observed",
    ]
    iterations: Annotated[list[int], "The longest burst of each search, in frames, in order"]
    unit: Annotated[str, "Of what its trials vary"]
    trials: Annotated[list[TrialEntry], "That were measured, in order"]
    complete: Annotated[bool, "Nothing that was asked for is missing"]
    outcome: Annotated[str, "How it ended, a sentence"]


class SuiteEntry(TypedDict):
    """A document's suite: what each of its subtests found."""

    name: Annotated[str, "ndr-pdr, rfc2544, rfc9004, rfc2889 or rfc8239"]
    parameters: Annotated[dict[str, float], "Durations, widths, repeats, limits"]
    media: Annotated[str, "Of the ports, with their line rates"]
    traffic_classes: Annotated[list[str], "DSCP and PCP (CoS) of its frames; []: they have none"]
    subtests: Annotated[list[SubtestEntry], "In the order of the document"]
