# SPDX-License-Identifier: BSD-3-Clause
"""Transports side by side, and means over repeats."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from .forms import Free, Size, SizeUnit, Traffic


class ComparedThroughput(TypedDict):
    """Mean over the plan's flows, one way, verified by the receivers."""

    layer: Annotated[
        Literal["payload"], Field(description="The bytes that an application would call its data")
    ]
    unit: Annotated[Literal["Mbit/s"], Field(description="Decimal")]
    mean: Annotated[float | None, Field(description="Mean over the repetitions")]
    min: Annotated[float | None, Field(description="The slowest repetition")]
    max: Annotated[float | None, Field(description="The fastest repetition")]


class RatioEntry(TypedDict):
    """This by the baseline's: throughput above 1 is faster, CPU above 1 costs more."""

    throughput: Annotated[float | None, Field(description="Of the means over the repetitions")]
    throughput_min: Annotated[
        float | None,
        Field(description="The lowest of one repetition by the baseline's same repetition"),
    ]
    throughput_max: Annotated[float | None, Field(description="The highest of these")]
    cpu_s_per_gb: Annotated[float | None, Field(description="Of CPU seconds by GB")]


class ComparedEntry(TypedDict):
    """One transport at one setting in a comparison, over all its repetitions."""

    transport: Annotated[str, Field(description="dpdk, tcp, udp or verbs")]
    options: Annotated[Free, Field(description="What the sweep chose of its own options")]
    size: Annotated[Size, Field(description="Bytes of a frame or a message, or the sizes of a mix")]
    size_unit: Annotated[SizeUnit, Field(description="What `size` is of")]
    message_bytes: Annotated[
        int | None, Field(description="Payload of one message, or of one frame")
    ]
    equal_size: Annotated[
        bool, Field(description="false: frames whose payload is not the message's stand beside it")
    ]
    load: Annotated[
        Free, Field(description="The load as asked: percent of line rate, bps at layer 1, or fps")
    ]
    intended_load: Annotated[
        float | None,
        Field(description="The load as asked in percent of line rate, mean over the ports"),
    ]
    repeats: Annotated[int, Field(description="How many repetitions were measured")]
    trials: Annotated[list[int], Field(description="Their numbers")]
    throughput: Annotated[
        ComparedThroughput,
        Field(description="Mean over the plan's flows, one way, verified by the receivers"),
    ]
    percent_of_line: Annotated[
        float | None, Field(description="Mean over the repetitions; layer 1")
    ]
    cpu_s_per_gb: Annotated[
        float | None,
        Field(
            description="CPU seconds of all machines by 10^9 bytes of payload, kernel and softirq "
            "included"
        ),
    ]
    cpu_process_s_per_gb: Annotated[
        float | None, Field(description="Of it what the node processes used")
    ]
    polling: Annotated[
        bool | None,
        Field(description="Whether workers polled: each then burns a core, whatever comes"),
    ]
    ratio: Annotated[
        RatioEntry,
        Field(
            description="This by the baseline's: throughput above 1 is faster, CPU above 1 costs "
            "more"
        ),
    ]


class ComparisonEntry(TypedDict):
    """One matrix at one message size over several transports, on the same ports."""

    pattern: Annotated[str, Field(description="chain, pairs, aapc or ring")]
    parameters: Annotated[Free, Field(description="The pattern's, as the configuration gives them")]
    network: Annotated[str, Field(description="The ports that can reach each other")]
    concurrent_networks: Annotated[
        list[str] | None,
        Field(description="All networks of the trial, when several run at the same time"),
    ]
    ranks: Annotated[int, Field(ge=2, description="Endpoints of traffic in this network")]
    traffic: Annotated[
        Traffic,
        Field(
            description="stream: a rate for a time; transfer: a number of bytes; pingpong: round "
            "trips"
        ),
    ]
    message_bytes: Annotated[int, Field(ge=1, description="Payload of one message")]
    baseline: Annotated[
        str,
        Field(
            description="The transport that the others are divided by: tcp where it ran; of several"
            " settings its fastest"
        ),
    ]
    alternated: Annotated[
        bool | None,
        Field(
            description="Whether each repetition of all was over before the next of any; null: "
            "there was only one"
        ),
    ]
    reason: Annotated[str | None, Field(description="Why they did not alternate")]
    transports: Annotated[
        list[ComparedEntry],
        Field(
            min_length=2,
            description="Each transport's settings: tcp, dpdk, verbs, and of one "
            "transport as they ran",
        ),
    ]


class StatisticEntry(TypedDict):
    """The mean over the repeats of one setting."""

    point: Annotated[
        int, Field(description="Number of the setting: what its repeats have in common")
    ]
    test: Annotated[int, Field(description="Which entry of `tests`")]
    trials: Annotated[list[int], Field(description="Its repeats' trials, in order")]
    network: Annotated[str, Field(description="The ports that the plan ran on")]
    measure: Annotated[
        Literal["throughput", "repetition_us"],
        Field(
            description="Over the pattern's phases; repetition_us: of dependent steps, mean over "
            "ranks of a repetition's time"
        ),
    ]
    unit: Annotated[str, Field(description="Of the values")]
    values: Annotated[
        list[float | None], Field(description="One for each repeat; null: not measured whole")
    ]
    min_repeats: Annotated[int, Field(description="Made in any case")]
    max_repeats: Annotated[int, Field(description="Made at most")]
    target_ci_width_percent: Annotated[
        float | None,
        Field(
            description="Full width of the interval that was asked for, of the mean; null: none was"
        ),
    ]
    confidence_percent: Annotated[
        float,
        Field(description="That the interval covers the true mean, if repeats are independent"),
    ]
    mean: Annotated[float | None, Field(description="Of the values that are known")]
    standard_deviation: Annotated[
        float | None, Field(description="Standard deviation of the sample")
    ]
    ci_half_width: Annotated[
        float | None,
        Field(
            description="Of the interval; wider than Student's where repeats depend on each other"
        ),
    ]
    ci_low: Annotated[float | None, Field(description="Lower end of the interval")]
    ci_high: Annotated[float | None, Field(description="Upper end of the interval")]
    ci_width_percent: Annotated[float | None, Field(description="Its full width, of the mean")]
    autocorrelation: Annotated[
        float | None, Field(description="Of each repeat with the next; null with less than 5")
    ]
    dependent: Annotated[
        bool | None,
        Field(
            description="Autocorrelation is beyond chance: Student's interval would be too narrow"
        ),
    ]
    verdict: Annotated[
        Literal["conclusive", "inconclusive"] | None,
        Field(description="null: no width was asked for"),
    ]
    reason: Annotated[str | None, Field(description="Why it is inconclusive")]
