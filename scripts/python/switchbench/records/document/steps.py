# SPDX-License-Identifier: BSD-3-Clause
"""Dependent steps: collectives, kernels and HPCC's tests."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from .forms import (
    CurveSetting,
    Destination,
    Free,
    Network,
    Parameters,
    Pattern,
    Ranks,
    Source,
    Transport,
)

HpccMeasure = Literal["latency", "bandwidth"]


class ImbFigures(TypedDict):
    """By IMB's definitions."""

    t_min_us: Annotated[
        float | None,
        Field(
            description="IMB's t_min: minimum over ranks of the mean time of a repetition, "
            "microseconds"
        ),
    ]
    t_avg_us: Annotated[
        float | None,
        Field(
            description="IMB's t_avg: mean over ranks of the mean time of a repetition, "
            "microseconds"
        ),
    ]
    t_max_us: Annotated[
        float | None,
        Field(
            description="IMB's t_max: maximum over ranks of the mean time of a repetition, "
            "microseconds"
        ),
    ]
    mbytes_s: Annotated[
        float | None,
        Field(description="IMB's Mbytes/sec, 10^6 bytes; null: IMB gives none for this function"),
    ]


class RepetitionTimes(TypedDict):
    """Times of single repetitions."""

    min: Annotated[float | None, Field(description="Shortest batch of any rank")]
    mean: Annotated[float | None, Field(description="Mean over ranks and repeats")]
    p50: Annotated[float | None, Field(description="Median")]
    p99: Annotated[float | None, Field(description="99 %; null: fewer than 100 batches")]
    max: Annotated[float | None, Field(description="Longest batch of any rank")]


class ConfidenceIntervalEntry(TypedDict):
    """Of confidence."""

    low: Annotated[float | None, Field(description="Lower limit")]
    high: Annotated[float | None, Field(description="Upper limit")]


class FunctionPoint(TypedDict):
    """One size of a function."""

    size: Annotated[int, Field(description="Bytes of a message")]
    trials: Annotated[list[int], Field(description="Its repeats' trials, in order")]
    repetitions: Annotated[int, Field(description="Timed by a rank in a repeat")]
    batch: Annotated[
        int, Field(description="So many repetitions follow each other with nothing between")
    ]
    imb: Annotated[ImbFigures, Field(description="By IMB's definitions")]
    by_repeat: NotRequired[
        Annotated[
            list[ImbFigures],
            Field(
                description="The same of each repeat, in the order of `trials`; null: not "
                "measured whole"
            ),
        ]
    ]
    repetition_us: Annotated[
        RepetitionTimes,
        Field(
            description="Time of a repetition, microseconds, over all ranks and repeats; of batches"
            " their means"
        ),
    ]
    ci_us: Annotated[
        ConfidenceIntervalEntry | None,
        Field(
            description="95 % confidence interval of the mean over repeats; null: fewer than two"
        ),
    ]
    port_mbps: Annotated[
        float | None,
        Field(
            description="Payload that reached a port, Mbit/s: mean over the ports that received "
            "any, as the receivers saw it"
        ),
    ]
    verified: Annotated[
        int | None,
        Field(description="Results that were computed and found right; null: nothing was computed"),
    ]
    lost_messages: Annotated[int | None, Field(description="Messages that did not come in time")]
    timeouts: Annotated[int | None, Field(description="Receives that were given up")]


class Function(CurveSetting):
    """A collective over its sizes."""

    points: Annotated[list[FunctionPoint], Field(description="By size")]


class HpccOutputs(TypedDict):
    """By the names of hpccoutf.txt; null: not measured whole."""

    MaxPingPongLatency_usec: Annotated[
        float | None, Field(description="HPCC's name; microseconds, one way")
    ]
    MaxPingPongBandwidth_GBytes: Annotated[
        float | None, Field(description="HPCC's name; 10^9 bytes/s")
    ]
    MinPingPongLatency_usec: Annotated[
        float | None, Field(description="HPCC's name; microseconds, one way")
    ]
    MinPingPongBandwidth_GBytes: Annotated[
        float | None, Field(description="HPCC's name; 10^9 bytes/s")
    ]
    AvgPingPongLatency_usec: Annotated[
        float | None, Field(description="HPCC's name; microseconds, one way")
    ]
    AvgPingPongBandwidth_GBytes: Annotated[
        float | None, Field(description="HPCC's name; 10^9 bytes/s")
    ]
    NaturallyOrderedRingLatency_usec: Annotated[
        float | None, Field(description="HPCC's name; microseconds of one send of a process")
    ]
    NaturallyOrderedRingBandwidth_GBytes: Annotated[
        float | None, Field(description="HPCC's name; 10^9 bytes/s of a process")
    ]
    RandomlyOrderedRingLatency_usec: Annotated[
        float | None, Field(description="HPCC's name; microseconds of one send of a process")
    ]
    RandomlyOrderedRingBandwidth_GBytes: Annotated[
        float | None, Field(description="HPCC's name; 10^9 bytes/s of a process")
    ]


class HpccRing(TypedDict):
    """A ring of HPCC."""

    measure: Annotated[HpccMeasure, Field(description="Which of HPCC's two messages")]
    ring: Annotated[int, Field(description="0: the natural ring; else a random one's number")]
    natural: Annotated[bool, Field(description="Whether the ranks are in their own order")]
    time_us: Annotated[
        float | None,
        Field(
            description="Of one send: each rank's better method, the slowest rank, the best "
            "measurement"
        ),
    ]
    sendrecv_us: Annotated[float | None, Field(description="By two exchanges one after the other")]
    nonblocking_us: Annotated[float | None, Field(description="By both exchanges at once")]
    better: Annotated[
        Literal["sendrecv", "nonblocking"] | None,
        Field(description="The method with the shorter time; null: not measured whole"),
    ]
    measurements: Annotated[int, Field(description="By both methods")]


class HpccPair(TypedDict):
    """A pair of HPCC."""

    measure: Annotated[HpccMeasure, Field(description="Which of HPCC's two messages")]
    src: Source
    dst: Destination
    time_us: Annotated[float | None, Field(description="Half of the shortest round trip")]


class HpccSetting(TypedDict):
    """What tells a run of HPCC's test from others."""

    transport: Transport
    network: Network
    ranks: Ranks
    parameters: Annotated[Free, Field(description="What the sweep chose")]


class Hpcc(HpccSetting):
    """HPCC's latency and bandwidth test."""

    test: Annotated[int, Field(description="Which entry of `tests`")]
    outputs: Annotated[
        HpccOutputs, Field(description="By the names of hpccoutf.txt; null: not measured whole")
    ]
    rings: Annotated[list[HpccRing], Field(description="Each ring")]
    pairs: Annotated[
        list[HpccPair], Field(description="Each pair that exchanged ping-pong messages")
    ]


class KernelEntry(CurveSetting):
    """A kernel: the same steps repeated."""

    trials: Annotated[list[int], Field(description="Its repeats' trials, in order")]
    repetitions: Annotated[
        int, Field(description="Iterations that were timed by a rank in a repeat")
    ]
    iterations: Annotated[int, Field(description="Of the whole benchmark")]
    iteration_us: Annotated[
        float | None,
        Field(
            description="Time of one iteration, microseconds: the slowest rank's mean, mean over "
            "repeats"
        ),
    ]
    total_s: Annotated[
        float | None, Field(description="Time of the whole benchmark: iterations x iteration_us")
    ]
    by_repeat_s: NotRequired[
        Annotated[
            list[float | None],
            Field(
                description="The same of each repeat, in the order of `trials`; null: not "
                "measured whole"
            ),
        ]
    ]
    ci_s: Annotated[
        ConfidenceIntervalEntry | None,
        Field(description="95 % confidence interval of total_s over repeats; null: fewer than two"),
    ]
    port_mbps: Annotated[
        float | None,
        Field(
            description="Payload that reached a port, Mbit/s: mean over the ports that received any"
        ),
    ]


class RankedPath(TypedDict):
    """A path in a ranking."""

    path: Annotated[str, Field(description="A transport in a network")]
    total_s: Annotated[float | None, Field(description="Time of the whole benchmark")]
    ratio_to_fastest: Annotated[float | None, Field(description="total_s / that of the fastest")]


class Ranking(TypedDict):
    """Paths by the time of a kernel."""

    pattern: Pattern
    parameters: Parameters
    ranks: Ranks
    paths: Annotated[list[RankedPath], Field(description="The fastest first")]


class Steps(TypedDict):
    """What goes by steps (doc/how-to/hpcc-imb.md)."""

    functions: Annotated[list[Function], Field(description="Times and rates against size")]
    hpcc: Annotated[list[Hpcc], Field(description="HPCC's measures")]
    kernels: Annotated[
        list[KernelEntry],
        Field(
            description="Application kernels: the time of the whole benchmark "
            "(doc/reference/patterns.md)"
        ),
    ]
    rankings: Annotated[list[Ranking], Field(description="Kernels that several paths ran")]
