# SPDX-License-Identifier: BSD-3-Clause
"""The whole summary, and its parts that belong to no phase."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from .clauses import ClauseEntry, VerdictEntry
from .comparisons import ComparisonEntry, StatisticEntry
from .findings import FindingEntry
from .messages import Messages
from .ports import PortEntry
from .run import RunEntry
from .searches import SearchEntry, SuiteEntry
from .steps import Steps
from .times import LoopbackBaselineEntry
from .trials import PhaseEntry, PlanEntry

ExitStatus = Literal[0, 1, 2, 3, 4]
Status = Literal["complete", "partial", "failed"]


class ComparableEntry(TypedDict):
    """The same quantity as a run of this program measured it."""

    measure: Annotated[str, Field(description="What is measured (doc/how-to/compare.md)")]
    ranks: Annotated[int, Field(description="That communicate at the same time")]
    size: Annotated[
        int | None,
        Field(description="Bytes of a message; null: it has none, or it does not matter"),
    ]
    value: Annotated[float, Field(description="Brought to that definition")]
    conversion: Annotated[str, Field(description="The conversion")]
    unit: Annotated[str, Field(description="Of value")]


class ImportedEntry(TypedDict):
    """A figure that another program measured."""

    tool: Annotated[str, Field(description="hpcc, imb, osu, iperf3 or perftest")]
    version: Annotated[str | None, Field(description="Of the tool; null: its output does not say")]
    benchmark: Annotated[str, Field(description="In the tool's words")]
    ranks: Annotated[
        int | None, Field(description="Processes, or hosts; null: its output does not say")
    ]
    size: Annotated[int | None, Field(description="Bytes of a message, by the tool's count")]
    name: Annotated[str, Field(description="The figure's own name")]
    value: Annotated[float, Field(description="As the tool printed it")]
    unit: Annotated[str, Field(description="Of value; us: microseconds")]
    definition: Annotated[str, Field(description="What the tool counts")]
    comparable: Annotated[
        ComparableEntry | None,
        Field(description="The same by a definition that programs share; null: there is none"),
    ]
    file: Annotated[str, Field(description="Where it stood, in the results directory")]


class SwitchCountersEntry(TypedDict):
    """The switch's own counters, before and after."""

    command: Annotated[list[str], Field(description="That printed them")]
    before: Annotated[str | None, Field(description="File with its output before the first trial")]
    after: Annotated[str | None, Field(description="File with its output after the last")]
    compared: Annotated[int, Field(description="Counters that both have")]
    differences: Annotated[
        dict[str, int] | None,
        Field(description="Of counters that changed; null: one of the outputs is missing"),
    ]


class ClockEntry(TypedDict):
    """A node's clock against node 0's."""

    node: Annotated[str, Field(description="Its name")]
    clock: Annotated[str | None, Field(description="shared, ptp or estimated")]
    reason: Annotated[str | None, Field(description="asked for, or what made it so")]
    bound_us: Annotated[
        float | None,
        Field(
            description="Its clock was known within this in all phases' windows; null: in some it "
            "was not"
        ),
    ]
    rate_ppm: Annotated[
        float | None,
        Field(description="estimated: by how much run time goes faster than its clock, at the end"),
    ]
    rate_bound_ppm: Annotated[float | None, Field(description="Uncertainty of that")]


class SummaryDocument(TypedDict):
    """What a run amounts to. Formulas: doc/reference/measures.md. null: not observed."""

    schema: Annotated[
        Literal["switchbench-summary/2"], Field(description="Form and version of this file")
    ]
    status: Annotated[
        Status,
        Field(description="partial: something asked for was not measured; failed: nothing was"),
    ]
    exit_status: Annotated[
        ExitStatus,
        Field(
            description="Of the command: 0 PASS or no clause, 1 FAIL, 2 configuration invalid on a "
            "node, 3 not completed, 4 INCONCLUSIVE"
        ),
    ]
    errors: Annotated[list[str], Field(description="What ended the run early, a sentence each")]
    run: Annotated[RunEntry, Field(description="What was run")]
    trials: Annotated[
        list[PhaseEntry], Field(description="Each phase of each trial in each network")
    ]
    plans: Annotated[list[PlanEntry], Field(description="Pattern totals in each network")]
    statistics: Annotated[
        list[StatisticEntry],
        Field(
            description="How sure the means over repeats are: one entry for each setting and "
            "network that was repeated"
        ),
    ]
    comparisons: Annotated[
        list[ComparisonEntry],
        Field(description="Transports side by side, where several carried the same matrix"),
    ]
    messages: Annotated[
        Messages, Field(description="Ping-pong of messages (doc/reference/messages.md)")
    ]
    steps: NotRequired[
        Annotated[Steps, Field(description="Collective operations (doc/how-to/hpcc-imb.md)")]
    ]
    searches: NotRequired[
        Annotated[list[SearchEntry], Field(description="What a suite's searches found, by goal")]
    ]
    suite: NotRequired[
        Annotated[SuiteEntry, Field(description="What a suite found (doc/reference/standards.md)")]
    ]
    ports: Annotated[list[PortEntry], Field(description="Each port with each transport")]
    expectations: Annotated[list[ClauseEntry], Field(description="Each clause with its verdict")]
    verdict: NotRequired[
        Annotated[
            VerdictEntry | None, Field(description="Of all clauses together; null: there are none")
        ]
    ]
    findings: Annotated[
        list[FindingEntry],
        Field(
            description="What went wrong, by name: those that explain others first, then by count"
        ),
    ]
    warnings: Annotated[
        list[str],
        Field(
            description="What can't be or should not be: above line rate, links that fell, surplus "
            "frames"
        ),
    ]
    not_measured: Annotated[list[str], Field(description="What was asked for and is not here")]
    switch_counters: Annotated[
        SwitchCountersEntry | None,
        Field(description="The switch's own counters; null: no command was configured"),
    ]
    imported: NotRequired[
        Annotated[
            list[ImportedEntry],
            Field(
                description="Figures of other programs, as they printed them (switchbench import;"
                " doc/how-to/compare.md)"
            ),
        ]
    ]
    clocks: Annotated[
        list[ClockEntry],
        Field(description="How each node knows run time (doc/reference/latency.md, Clocks)"),
    ]
    loopback_baselines: Annotated[
        list[LoopbackBaselineEntry],
        Field(
            description="The tester's own overhead by node and transport, measured on a loopback; "
            "not subtracted from anything"
        ),
    ]


# Not in the class, where mypy takes it for a key.
SummaryDocument.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[attr-defined]
