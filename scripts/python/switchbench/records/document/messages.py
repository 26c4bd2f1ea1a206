# SPDX-License-Identifier: BSD-3-Clause
"""Messages one at a time: curves over sizes, scatter, concurrent computation."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from .forms import (
    CurveSetting,
    Destination,
    Parameters,
    Pattern,
    Ranks,
    RepeatNumber,
    Source,
    Transport,
    TrialNumber,
)


class CurveLatency(TypedDict):
    """Half the round trip."""

    min: Annotated[float | None, Field(description="Shortest")]
    mean: Annotated[float | None, Field(description="Mean")]
    p50: Annotated[float | None, Field(description="Median")]
    p99: Annotated[float | None, Field(description="99th percentile")]
    max: Annotated[float | None, Field(description="Longest")]


class SlowestPair(TypedDict):
    """The pair with the longest times."""

    src: Source
    dst: Destination
    mean_us: Annotated[float | None, Field(description="Its mean time")]
    bandwidth_mbps: Annotated[float | None, Field(description="Its bandwidth")]


class CurvePoint(TypedDict):
    """One size of a curve."""

    size: Annotated[int, Field(description="Bytes of a message")]
    round_trips: Annotated[int, Field(description="Measured, of all flows and repeats")]
    lost: Annotated[int | None, Field(description="Messages that did not come back")]
    flows: Annotated[int, Field(description="Pairs that were measured")]
    latency_us: Annotated[CurveLatency, Field(description="Half the round trip")]
    bandwidth_mbps: Annotated[
        float | None, Field(description="Mbit/s: the size by half the mean round trip")
    ]
    slowest: Annotated[SlowestPair | None, Field(description="The flow with the largest mean")]


class Peak(TypedDict):
    """The largest bandwidth of a curve."""

    peak_mbps: Annotated[float | None, Field(description="The largest bandwidth")]
    peak_size: Annotated[int | None, Field(description="Its size, bytes")]
    peak_at_end: Annotated[
        bool, Field(description="The largest size has it: beyond, it may be higher")
    ]
    size_at_half_peak: Annotated[
        float | None,
        Field(description="The size that reaches half the peak, between two points in logarithms"),
    ]
    size_at_90_percent_peak: Annotated[
        float | None, Field(description="The same for 90 % of the peak")
    ]


class Curve(CurveSetting, Peak):
    """Times and bandwidth over the size of messages."""

    points: Annotated[list[CurvePoint], Field(description="By size")]


# Sizes at which one path is the fastest; `from` can be no name of a class's.
CrossingRange = TypedDict(
    "CrossingRange",
    {
        "use": Annotated[
            str | None, Field(description="The faster path; null: they differ by less than 5 %")
        ],
        "from": Annotated[int, Field(description="Smallest size, bytes")],
        "to": Annotated[int, Field(description="Largest size, bytes")],
        "crossover_size": Annotated[
            float | None, Field(description="Size at which this path becomes the faster one, bytes")
        ],
    },
)


class Crossing(TypedDict):
    """Where one path becomes faster than another."""

    paths: Annotated[list[str], Field(description="Transport and network, two")]
    ranks: Ranks
    pattern: Pattern
    parameters: Parameters
    ranges: Annotated[list[CrossingRange], Field(description="By size, in bytes")]


class Outlier(TypedDict):
    """A message whose time is far from the fit."""

    size: Annotated[int, Field(description="Bytes of the message")]
    src: Source
    dst: Destination
    time_us: Annotated[float | None, Field(description="Half the round trip")]
    ratio_to_fit: Annotated[
        float | None, Field(description="The time divided by the fit's time for this size")
    ]
    started_s: Annotated[
        float | None, Field(description="When it was sent, seconds after the start of the phase")
    ]


class ScatterFit(CurveSetting):
    """Times of single messages against a linear fit."""

    trial: TrialNumber
    repeat: RepeatNumber
    messages: Annotated[int, Field(description="Messages with a time")]
    min_size: Annotated[int, Field(description="Smallest size, bytes")]
    max_size: Annotated[int, Field(description="Largest size, bytes")]
    latency_us: Annotated[
        float | None,
        Field(description="Of the fit: half a round trip = latency + size / bandwidth"),
    ]
    bandwidth_mbps: Annotated[
        float | None, Field(description="Of the fit: what a long message tends to")
    ]
    residual_percent: Annotated[
        float | None, Field(description="Robust scale of (time - fit) / fit")
    ]
    residual_p1_percent: Annotated[
        float | None, Field(description="1st percentile of the residuals")
    ]
    residual_p50_percent: Annotated[float | None, Field(description="Median of the residuals")]
    residual_p99_percent: Annotated[
        float | None, Field(description="99th percentile of the residuals")
    ]
    outliers: Annotated[int, Field(description="Beyond six scales and twice the fit")]
    worst: Annotated[list[Outlier], Field(description="The worst twenty outliers")]


class ScatterEntry(ScatterFit):
    """Times of single messages against a linear fit, and how many had none."""

    lost: Annotated[
        int | None,
        Field(description="Messages that never came back, and so have no time; null: not known"),
    ]


class PieceTimes(TypedDict):
    """Times of pieces of computation."""

    p50: Annotated[float | None, Field(description="Median")]
    p99: Annotated[float | None, Field(description="99th percentile")]
    max: Annotated[float | None, Field(description="Longest")]


class Pieces(TypedDict):
    """Of single pieces, the worst node's."""

    compute_only: Annotated[PieceTimes, Field(description="Without messages")]
    concurrent: Annotated[PieceTimes, Field(description="While messages are in flight")]


class Computing(TypedDict):
    """Computation alone, and beside messages."""

    trial: TrialNumber
    repeat: RepeatNumber
    transport: Transport
    parameters: Parameters
    nodes: Annotated[int, Field(description="Nodes that computed")]
    share: Annotated[
        float | None, Field(description="Part of the time that a node computes, from 0 to 1")
    ]
    compute_only_mflops: Annotated[float | None, Field(description="Of one thread, the mean")]
    concurrent_mflops: Annotated[
        float | None, Field(description="The same while messages are in flight")
    ]
    slowdown_percent: Annotated[
        float | None,
        Field(
            description="How far the rate of concurrent computation was below compute_only; "
            "negative: it was above"
        ),
    ]
    slowdown_ci_half_width_percent: Annotated[
        float | None,
        Field(description="Of the 95 % confidence interval of the nodes' mean; null: one node"),
    ]
    slowest_node: Annotated[str | None, Field(description="The node that messages slow down most")]
    max_slowdown_percent: Annotated[
        float | None, Field(description="How much slower that node computes")
    ]
    piece_us: Annotated[Pieces, Field(description="Of single pieces, the worst node's")]


class Messages(TypedDict):
    """Messages there and back (doc/reference/messages.md)."""

    curves: Annotated[list[Curve], Field(description="Latency and bandwidth against size")]
    crossovers: Annotated[list[Crossing], Field(description="Which of two paths to use")]
    scatter: Annotated[list[ScatterEntry], Field(description="Fits to single times")]
    concurrent_computation: Annotated[
        list[Computing], Field(description="What nodes computed beside them")
    ]
