# SPDX-License-Identifier: BSD-3-Clause
"""Transports side by side, and means over repeats."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from .forms import Free, Size, SizeUnit, Traffic


class ComparedThroughput(TypedDict):
    """Mean over the plan's flows, one way, verified by the receivers."""

    layer: Annotated[Literal["payload"], "The bytes that an application would call its data"]
    unit: Annotated[Literal["Mbit/s"], "Decimal"]
    mean: Annotated[float | None, "Mean over the repetitions"]
    min: Annotated[float | None, "The slowest repetition"]
    max: Annotated[float | None, "The fastest repetition"]


class RatioEntry(TypedDict):
    """Ratios to the baseline's: throughput above 1 is faster, CPU above 1 costs more."""

    throughput: Annotated[float | None, "Of the means over the repetitions"]
    throughput_min: Annotated[
        float | None, "The lowest of one repetition by the baseline's same repetition"
    ]
    throughput_max: Annotated[float | None, "The highest of these"]
    cpu_s_per_gb: Annotated[float | None, "Of CPU seconds by GB"]


class ComparedEntry(TypedDict):
    """One transport at one setting in a comparison, over all its repetitions."""

    transport: Annotated[str, "dpdk, packet, tcp, udp or verbs"]
    options: Annotated[Free, "What the sweep chose of its own options"]
    size: Annotated[Size, "Bytes of a frame or a message, or the sizes of a mix"]
    size_unit: Annotated[SizeUnit, "What `size` is of"]
    message_bytes: Annotated[int | None, "Payload of one message, or of one frame"]
    equal_size: Annotated[bool, "false: frames whose payload is not the message's stand beside it"]
    load: Annotated[Free, "The load as asked: percent of line rate, bps at layer 1, or fps"]
    intended_load: Annotated[
        float | None, "The load as asked in percent of line rate, mean over the ports"
    ]
    repeats: Annotated[int, "How many repetitions were measured"]
    trials: Annotated[list[int], "Their numbers"]
    throughput: Annotated[
        ComparedThroughput, "Mean over the plan's flows, one way, verified by the receivers"
    ]
    percent_of_line: Annotated[float | None, "Mean over the repetitions; layer 1"]
    cpu_s_per_gb: Annotated[
        float | None,
        "CPU seconds of all machines by 10^9 bytes of payload, kernel and softirq included",
    ]
    cpu_process_s_per_gb: Annotated[float | None, "Of it what the node processes used"]
    polling: Annotated[
        bool | None, "Whether workers polled: each then burns a core, whatever comes"
    ]
    ratio: Annotated[
        RatioEntry, "This by the baseline's: throughput above 1 is faster, CPU above 1 costs more"
    ]


class ComparisonEntry(TypedDict):
    """One matrix at one message size over several transports, on the same ports."""

    pattern: Annotated[str, "chain, pairs, aapc or ring"]
    parameters: Annotated[Free, "The pattern's, as the configuration gives them"]
    network: Annotated[str, "The ports that can reach each other"]
    concurrent_networks: Annotated[
        list[str] | None, "All networks of the trial, when several run at the same time"
    ]
    ranks: Annotated[int, Field(ge=2), "Endpoints of traffic in this network"]
    traffic: Annotated[
        Traffic, "stream: a rate for a time; transfer: a number of bytes; pingpong: round trips"
    ]
    message_bytes: Annotated[int, Field(ge=1), "Payload of one message"]
    baseline: Annotated[
        str,
        "The transport that the others are divided by: tcp where it ran; of several settings its "
        "fastest",
    ]
    alternated: Annotated[
        bool | None,
        "Whether each repetition of all was over before the next of any; null: there was only one",
    ]
    reason: Annotated[str | None, "Why they did not alternate"]
    transports: Annotated[
        list[ComparedEntry],
        Field(min_length=2),
        "Each transport's settings: tcp, dpdk, verbs, and of one transport as they ran",
    ]


class StatisticEntry(TypedDict):
    """The mean over the repeats of one setting."""

    point: Annotated[int, "Number of the setting: what its repeats have in common"]
    test: Annotated[int, "Which entry of `tests`"]
    trials: Annotated[list[int], "Its repeats' trials, in order"]
    network: Annotated[str, "The ports that the plan ran on"]
    measure: Annotated[
        Literal["throughput", "repetition_us"],
        "Over the pattern's phases; repetition_us: of dependent steps, mean over ranks of a "
        "repetition's time",
    ]
    unit: Annotated[str, "Of the values"]
    values: Annotated[list[float | None], "One for each repeat; null: not measured whole"]
    min_repeats: Annotated[int, "Made in any case"]
    max_repeats: Annotated[int, "Made at most"]
    target_ci_width_percent: Annotated[
        float | None, "Full width of the interval that was asked for, of the mean; null: none was"
    ]
    confidence_percent: Annotated[
        float, "That the interval covers the true mean, if repeats are independent"
    ]
    mean: Annotated[float | None, "Of the values that are known"]
    standard_deviation: Annotated[float | None, "Standard deviation of the sample"]
    ci_half_width: Annotated[
        float | None, "Of the interval; wider than Student's where repeats depend on each other"
    ]
    ci_low: Annotated[float | None, "Lower end of the interval"]
    ci_high: Annotated[float | None, "Upper end of the interval"]
    ci_width_percent: Annotated[float | None, "Its full width, of the mean"]
    autocorrelation: Annotated[float | None, "Of each repeat with the next; null with less than 5"]
    dependent: Annotated[
        bool | None, "Autocorrelation is beyond chance: Student's interval would be too narrow"
    ]
    verdict: Annotated[Literal["conclusive", "inconclusive"] | None, "null: no width was asked for"]
    reason: Annotated[str | None, "Why it is inconclusive"]
