# SPDX-License-Identifier: BSD-3-Clause
"""The whole summary, and its parts that belong to no phase."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict

from .clauses import ClauseEntry, VerdictEntry
from .comparisons import ComparisonEntry, StatisticEntry
from .findings import FindingEntry
from .location import LocationEntry
from .messages import Messages
from .ports import PortEntry
from .run import RunEntry
from .searches import SearchEntry, SuiteEntry
from .steps import Steps
from .trials import PhaseEntry, PlanEntry

ExitStatus = Literal[0, 1, 2, 3, 4]
Status = Literal["complete", "partial", "failed"]


class ComparableEntry(TypedDict):
    """The same quantity as a run of this program measured it."""

    measure: Annotated[str, "What is measured (doc/how-to/compare.md)"]
    ranks: Annotated[int, "That communicate at the same time"]
    size: Annotated[int | None, "Bytes of a message; null: it has none, or it does not matter"]
    value: Annotated[float, "Brought to that definition"]
    unit: Annotated[str, "Of value"]


class ImportedEntry(TypedDict):
    """A figure that another program measured."""

    tool: Annotated[str, "hpcc, imb, osu, nccl-tests, iperf3 or perftest"]
    version: Annotated[str | None, "Of the tool; null: its output does not say"]
    benchmark: Annotated[str, "In the tool's words"]
    ranks: Annotated[int | None, "Processes, or hosts; null: its output does not say"]
    size: Annotated[int | None, "Bytes of a message, by the tool's count"]
    name: Annotated[str, "The figure's own name"]
    value: Annotated[float, "As the tool printed it"]
    unit: Annotated[str, "Of value; us: microseconds"]
    memory: Annotated[str, "Of the buffers: host or gpu"]
    comparable: Annotated[
        ComparableEntry | None, "The same by a definition that programs share; null: there is none"
    ]
    file: Annotated[str, "Where it stood, in the results directory"]


class SwitchCountersEntry(TypedDict):
    """The switch's own counters, before and after."""

    command: Annotated[list[str], "That printed them"]
    before: Annotated[str | None, "File with its output before the first trial"]
    after: Annotated[str | None, "File with its output after the last"]
    compared: Annotated[int, "Counters that both have"]
    differences: Annotated[
        dict[str, int] | None, "Of counters that changed; null: one of the outputs is missing"
    ]


class ClockEntry(TypedDict):
    """A node's clock against node 0's."""

    node: Annotated[str, "Its name"]
    clock: Annotated[str | None, "shared, ptp or estimated"]
    reason: Annotated[str | None, "asked for, or what made it so"]
    bound_us: Annotated[
        float | None,
        "Its clock was known within this in all phases' windows; null: in some it was not",
    ]


class SupersededEntry(TypedDict):
    """A phase before it was measured again (remeasure); its tables are in superseded/."""

    trial: Annotated[int, "As in trials"]
    repeat: Annotated[int, "As in trials"]
    network: Annotated[str, "As in trials"]
    phase: Annotated[int, "As in trials"]
    pattern: Annotated[str, "Its name"]
    transport: Annotated[str, "As in trials"]
    offered_load: Annotated[float | None, "Percent of line rate, mean over generating ports"]
    offered_frames: Annotated[int | None, "Of all flows"]
    lost_frames: Annotated[int | None, "Of all flows; none of them in the network"]
    host_dropped_frames: Annotated[int | None, "Dropped in a host, both sides"]
    reason: Annotated[
        str | None, "How the tester was the limit; null: it was not, or the run ended meanwhile"
    ]


class SummaryDocument(TypedDict):
    """What a run amounts to. Formulas: doc/reference/measures.md. null: not observed."""

    schema: Annotated[Literal["switchbench-summary/2"], "Form and version of this file"]
    status: Annotated[Status, "partial: something asked for was not measured; failed: nothing was"]
    exit_status: Annotated[
        ExitStatus,
        "Of the command: 0 PASS or no clause, 1 FAIL, 2 configuration invalid on a node, 3 not "
        "completed, 4 INCONCLUSIVE",
    ]
    errors: Annotated[list[str], "What ended the run early, a sentence each"]
    run: Annotated[RunEntry, "What was run"]
    trials: Annotated[list[PhaseEntry], "Each phase of each trial in each network"]
    plans: Annotated[list[PlanEntry], "Pattern totals in each network"]
    statistics: Annotated[
        list[StatisticEntry],
        "How sure the means over repeats are: one entry for each setting and network that was "
        "repeated",
    ]
    comparisons: Annotated[
        list[ComparisonEntry], "Transports side by side, where several carried the same matrix"
    ]
    messages: Annotated[Messages, "Ping-pong of messages (doc/reference/messages.md)"]
    steps: NotRequired[Annotated[Steps, "Collective operations (doc/how-to/hpcc-imb.md)"]]
    superseded: NotRequired[
        Annotated[list[SupersededEntry], "Phases that were measured again, as they were before"]
    ]
    searches: NotRequired[Annotated[list[SearchEntry], "What a suite's searches found, by goal"]]
    suite: NotRequired[Annotated[SuiteEntry, "What a suite found (doc/reference/standards.md)"]]
    ports: Annotated[list[PortEntry], "Each port with each transport"]
    expectations: Annotated[list[ClauseEntry], "Each clause with its verdict"]
    verdict: NotRequired[
        Annotated[VerdictEntry | None, "Of all clauses together; null: there are none"]
    ]
    location: Annotated[LocationEntry, "Where the network breaks (measures.md, Location)"]
    findings: Annotated[
        list[FindingEntry], "What went wrong, errors first: made from location and counts of flows"
    ]
    warnings: Annotated[
        list[str],
        "What can't be or should not be: above line rate, links that fell, surplus frames",
    ]
    not_measured: Annotated[list[str], "What was asked for and is not here"]
    switch_counters: Annotated[
        SwitchCountersEntry | None, "The switch's own counters; null: no command was configured"
    ]
    imported: NotRequired[
        Annotated[
            list[ImportedEntry],
            "Figures of other programs, as they printed them (switchbench import; "
            "doc/how-to/compare.md)",
        ]
    ]
    clocks: Annotated[
        list[ClockEntry], "How each node knows run time (doc/reference/latency.md, Clocks)"
    ]


# Not in the class, where mypy takes it for a key.
SummaryDocument.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[attr-defined]
