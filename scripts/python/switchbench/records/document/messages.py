# SPDX-License-Identifier: BSD-3-Clause
"""Messages one at a time: curves over sizes, scatter, concurrent computation."""

from __future__ import annotations

from typing import Annotated

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

    min: Annotated[float | None, "Shortest"]
    mean: Annotated[float | None, "Mean"]
    p50: Annotated[float | None, "Median"]
    p99: Annotated[float | None, "99th percentile"]
    max: Annotated[float | None, "Longest"]


class SlowestPair(TypedDict):
    """The pair with the longest times."""

    src: Source
    dst: Destination
    mean_us: Annotated[float | None, "Its mean time"]
    bandwidth_mbps: Annotated[float | None, "Its bandwidth"]


class CurvePoint(TypedDict):
    """One size of a curve."""

    size: Annotated[int, "Bytes of a message"]
    round_trips: Annotated[int, "Measured, of all flows and repeats"]
    lost: Annotated[int | None, "Messages that did not come back"]
    flows: Annotated[int, "Pairs that were measured"]
    latency_us: Annotated[CurveLatency, "Half the round trip"]
    bandwidth_mbps: Annotated[float | None, "Mbit/s: the size by half the mean round trip"]
    slowest: Annotated[SlowestPair | None, "The flow with the largest mean"]


class Peak(TypedDict):
    """The largest bandwidth of a curve."""

    peak_mbps: Annotated[float | None, "The largest bandwidth"]
    peak_size: Annotated[int | None, "Its size, bytes"]
    peak_at_end: Annotated[bool, "The largest size has it: beyond, it may be higher"]
    size_at_half_peak: Annotated[
        float | None, "The size that reaches half the peak, between two points in logarithms"
    ]
    size_at_90_percent_peak: Annotated[float | None, "The same for 90 % of the peak"]


class Curve(CurveSetting, Peak):
    """Times and bandwidth over the size of messages."""

    points: Annotated[list[CurvePoint], "By size"]


# Sizes at which one path is the fastest; `from` can be no name of a class's.
CrossingRange = TypedDict(
    "CrossingRange",
    {
        "use": Annotated[str | None, "The faster path; null: they differ by less than 5 %"],
        "from": Annotated[int, "Smallest size, bytes"],
        "to": Annotated[int, "Largest size, bytes"],
        "crossover_size": Annotated[
            float | None, "Size at which this path becomes the faster one, bytes"
        ],
    },
)


class Crossing(TypedDict):
    """Where one path becomes faster than another."""

    paths: Annotated[list[str], "Transport and network, two"]
    ranks: Ranks
    pattern: Pattern
    parameters: Parameters
    ranges: Annotated[list[CrossingRange], "By size, in bytes"]


class ScatterTimes(CurveSetting):
    """Times of single messages of random sizes: half the round trip."""

    trial: TrialNumber
    repeat: RepeatNumber
    messages: Annotated[int, "Messages with a time"]
    min_size: Annotated[int, "Smallest size, bytes"]
    max_size: Annotated[int, "Largest size, bytes"]
    p50_us: Annotated[float | None, "Median over messages of all sizes, microseconds"]
    p99_us: Annotated[float | None, "99th percentile, likewise"]
    max_us: Annotated[float | None, "Longest, likewise"]


class ScatterEntry(ScatterTimes):
    """Times of single messages, and how many had none."""

    lost: Annotated[
        int | None, "Messages that never came back, and so have no time; null: not known"
    ]


class PieceTimes(TypedDict):
    """Times of pieces of computation."""

    p50: Annotated[float | None, "Median"]
    p99: Annotated[float | None, "99th percentile"]
    max: Annotated[float | None, "Longest"]


class Pieces(TypedDict):
    """Of single pieces, the worst node's."""

    compute_only: Annotated[PieceTimes, "Without messages"]
    concurrent: Annotated[PieceTimes, "While messages are in flight"]


class Computing(TypedDict):
    """Computation alone, and beside messages."""

    trial: TrialNumber
    repeat: RepeatNumber
    transport: Transport
    parameters: Parameters
    nodes: Annotated[int, "Nodes that computed"]
    share: Annotated[float | None, "Part of the time that a node computes, from 0 to 1"]
    compute_only_mflops: Annotated[float | None, "Of one thread, the mean"]
    concurrent_mflops: Annotated[float | None, "The same while messages are in flight"]
    slowdown_percent: Annotated[
        float | None,
        "How far the rate of concurrent computation was below compute_only; negative: it was above",
    ]
    slowdown_ci_half_width_percent: Annotated[
        float | None, "Of the 95 % confidence interval of the nodes' mean; null: one node"
    ]
    slowest_node: Annotated[str | None, "The node that messages slow down most"]
    max_slowdown_percent: Annotated[float | None, "How much slower that node computes"]
    piece_us: Annotated[Pieces, "Of single pieces, the worst node's"]


class Messages(TypedDict):
    """Messages there and back (doc/reference/messages.md)."""

    curves: Annotated[list[Curve], "Latency and bandwidth against size"]
    crossovers: Annotated[list[Crossing], "Which of two paths to use"]
    scatter: Annotated[list[ScatterEntry], "Times of single messages of random sizes"]
    concurrent_computation: Annotated[list[Computing], "What nodes computed beside them"]
