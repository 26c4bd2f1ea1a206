# SPDX-License-Identifier: BSD-3-Clause
"""One phase of a trial, and a whole plan, in one network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NotRequired

from typing_extensions import TypedDict

from ...base.measures import REDUCED
from .counts import Counts, PlanCounts, RdmaCounts
from .forms import Count, measured
from .parts import IntervalsEntry, LossLocationEntry, ReorderingEntry
from .setting import PlanSetting, Setting
from .times import Latency

State = Literal["complete", "partial", "stopped", "flooded", "unreachable"]


class Throughput(TypedDict):
    """One way, verified by the receivers, in the window."""

    layer: Annotated[
        Literal["payload"], "What is counted: the bytes that an application would call its data"
    ]
    unit: Annotated[Literal["Mbit/s"], "Decimal"]
    min: Annotated[float | None, measured("throughput_min")]
    mean: Annotated[float | None, measured("throughput")]
    max: Annotated[float | None, measured("throughput_max")]
    total: Annotated[float | None, measured("throughput_total")]
    percent_of_line: Annotated[float | None, measured("percent_of_line")]
    min_percent_of_line: Annotated[float | None, measured("min_percent_of_line")]


class FlowEnds(TypedDict):
    """A flow."""

    src: Annotated[str, "host:port"]
    dst: Annotated[str, "host:port"]


class TesterLimitEntry(TypedDict):
    """Why a host may have been the limit."""

    port: Annotated[str, "host:port"]
    shortfall_percent: Annotated[
        float | None, "Offered so much less than intended; null: it kept up"
    ]
    dropped_frames: Annotated[Count | None, "Dropped in the host; null: none, or not observed"]
    start_delay_ms: NotRequired[
        Annotated[
            float | None, "Began so much after the agreed start; null: in time, or not observed"
        ]
    ]
    window_error_percent: NotRequired[
        Annotated[
            float | None,
            "By what its window differs from the agreed length; null: by no more than 1 %",
        ]
    ]
    cpu_idle_percent: NotRequired[
        Annotated[float, "TCP in a lab: how idle its CPUs were while it fell behind its load"]
    ]
    reason: Annotated[str, "In words"]


class PlanEntry(PlanSetting, PlanCounts):
    """All phases of one trial in one network."""

    polling: Annotated[
        bool | None, "Whether workers polled: each then burns a core, whatever comes"
    ]
    cpu_s: Annotated[float | None, "Sum of its phases'"]
    cpu_process_s: Annotated[float | None, "Sum of its phases'"]
    phases: Annotated[int, "Phases in the plan"]
    phases_measured: Annotated[int, "Phases with records"]
    elapsed_s: Annotated[float | None, "All phases, barriers and drains included"]
    window_s: Annotated[float | None, "Sum of the windows"]
    throughput: Annotated[
        Throughput,
        "Of the phases that are not tester-limited (null: none); mean and percent: mean of the "
        "phases'; total: mean over the windows' time",
    ]
    worst_phase: Annotated[int | None, "Phase of the slowest flow, as in throughput"]
    slowest: Annotated[FlowEnds | None, "The slowest flow of these phases"]


class Timing(TypedDict):
    """When a phase ran."""

    phase_name: Annotated[str | None, "What the pattern calls it"]
    window_s: Annotated[float | None, "Length of the window"]
    elapsed_s: Annotated[float | None, measured("elapsed_s")]
    start_skew_us: Annotated[float | None, measured("start_skew_us")]
    stop_skew_us: Annotated[float | None, measured("stop_skew_us")]
    skew_bound_us: Annotated[float | None, "Uncertainty of both; null without a common clock"]
    drained: Annotated[bool | None, "false: the drain's limit came before silence"]


class Rates(TypedDict):
    """How fast a phase was."""

    offered_load: Annotated[float | None, measured("offered_load")]
    throughput: Annotated[Throughput, "Over the flows, one way, verified by the receivers"]
    slowest: Annotated[FlowEnds | None, "The slowest flow; null: no flow was measured"]


class CpuTime(TypedDict):
    """CPU time of a phase."""

    cpu_s: Annotated[float | None, "CPU seconds of all machines in the phase, kernel included"]
    cpu_process_s: Annotated[
        float | None,
        "Of it what the node processes used; the rest is the kernel's own, softirq included, and "
        "all else that the machines did",
    ]
    cpu_s_per_gb: Annotated[float | None, measured("cpu_s_per_gb")]
    polling: Annotated[
        bool | None, "Whether workers polled: each then burns a core, whatever comes"
    ]


if TYPE_CHECKING:
    Reduced = dict[str, float | None]
else:
    Reduced = TypedDict("Reduced", {m.key: Annotated[float | None, m.definition] for m in REDUCED})
    Reduced.__doc__ = "Measures that are one figure of all flows of the phase."


class PhaseEntry(Setting, Timing, Rates, Counts, RdmaCounts, CpuTime):
    """One phase of one trial in one network."""

    started: Annotated[
        str | None,
        "When it began, by the wall clock of the first node that said it (UTC); null: not known",
    ]
    flows: Annotated[int, "PhaseFlows with a record of at least one side"]
    flows_observed: Annotated[int, "PhaseFlows with the records of both sides"]
    state: Annotated[State, "partial: records are missing"]
    tester_limited: Annotated[
        list[TesterLimitEntry], "Ports whose host, not the network, may have been the limit"
    ]
    intervals: Annotated[IntervalsEntry, "How low flows fell from one interval result to the next"]
    loss_location: Annotated[
        LossLocationEntry, "Where frames were lost, by ports' counters before and after the phase"
    ]
    reordering: Annotated[
        ReorderingEntry, "How frames were out of order; nulls where they are not seen"
    ]
    reduced: Annotated[Reduced, "Measures that are one figure of all flows"]
    latency: Annotated[Latency, "Times of this phase's flows by kind; null: not measured"]
