# SPDX-License-Identifier: BSD-3-Clause
"""Messages one at a time: curves over sizes, scatter, concurrent computation."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from .forms import Free


class CurveLatency(TypedDict):
    """Half the round trip."""

    min: float | None
    mean: float | None
    p50: float | None
    p99: float | None
    max: float | None


class SlowestPair(TypedDict):
    """The pair with the longest times."""

    src: str
    dst: str
    mean_us: float | None
    bandwidth_mbps: float | None


class CurvePoint(TypedDict):
    """One size of a curve."""

    size: Annotated[int, Field(description="Bytes of a message")]
    round_trips: Annotated[int, Field(description="Measured, of all flows and repeats")]
    lost: Annotated[int | None, Field(description="Messages that did not come back")]
    flows: int
    latency_us: Annotated[CurveLatency, Field(description="Half the round trip")]
    bandwidth_mbps: Annotated[
        float | None, Field(description="Mbit/s: the size by half the mean round trip")
    ]
    slowest: Annotated[SlowestPair | None, Field(description="The flow with the largest mean")]


class Curve(TypedDict):
    """Times and bandwidth over the size of messages."""

    transport: str
    network: str
    ranks: int
    pattern: str
    parameters: Free
    points: Annotated[list[CurvePoint], Field(description="By size")]
    peak_mbps: Annotated[float | None, Field(description="The largest bandwidth")]
    peak_size: int | None
    peak_at_end: Annotated[
        bool, Field(description="The largest size has it: beyond, it may be higher")
    ]
    half_peak_size: Annotated[
        float | None,
        Field(description="The size that reaches half the peak, between two points in logarithms"),
    ]
    ninety_peak_size: float | None


# Sizes at which one path is the fastest; `from` can be no name of a class's.
CrossingRange = TypedDict(
    "CrossingRange",
    {
        "use": Annotated[
            str | None, Field(description="The faster path; null: they differ by less than 5 %")
        ],
        "from": int,
        "to": int,
        "crossed_at": float | None,
    },
)


class Crossing(TypedDict):
    """Where one path becomes faster than another."""

    paths: Annotated[list[str], Field(description="Transport and network, two")]
    ranks: int
    pattern: str
    parameters: Free
    ranges: Annotated[list[CrossingRange], Field(description="By size, in bytes")]


class Outlier(TypedDict):
    """A message whose time is far from the fit."""

    size: int
    src: str
    dst: str
    time_us: float | None
    times_the_fit: float | None
    begun_s: float | None


class Scatter(TypedDict):
    """Times of single messages against a linear fit."""

    trial: int
    repeat: int
    transport: str
    network: str
    ranks: int
    pattern: str
    parameters: Free
    messages: int
    least_size: int
    greatest_size: int
    latency_us: Annotated[
        float | None,
        Field(description="Of the fit: half a round trip = latency + size / bandwidth"),
    ]
    bandwidth_mbps: float | None
    residual_percent: Annotated[
        float | None, Field(description="Robust scale of (time - fit) / fit")
    ]
    residual_p1_percent: float | None
    residual_p50_percent: float | None
    residual_p99_percent: float | None
    outliers: Annotated[int, Field(description="Beyond six scales and twice the fit")]
    lost: Annotated[
        int | None,
        Field(description="Messages that never came back, and so have no time; null: not known"),
    ]
    worst: Annotated[list[Outlier], Field(description="The worst twenty outliers")]


class PieceTimes(TypedDict):
    """Times of pieces of computation."""

    p50: float | None
    p99: float | None
    most: float | None


class Pieces(TypedDict):
    """Of single pieces, the worst node's."""

    alone: PieceTimes
    beside: PieceTimes


class Computing(TypedDict):
    """Computation alone, and beside messages."""

    trial: int
    repeat: int
    transport: str
    parameters: Free
    nodes: int
    share: float | None
    alone_mflops: Annotated[float | None, Field(description="Of one thread, the mean")]
    beside_mflops: float | None
    slower_percent: Annotated[
        float | None,
        Field(
            description="By so much the rate beside messages was below the one alone; negative: it "
            "was above"
        ),
    ]
    slower_half_width_percent: Annotated[
        float | None,
        Field(description="Of the 95 % confidence interval of the nodes' mean; null: one node"),
    ]
    slowest_node: str | None
    slowest_percent: float | None
    piece_us: Annotated[Pieces, Field(description="Of single pieces, the worst node's")]


class Messages(TypedDict):
    """Messages there and back (doc/messages.md)."""

    curves: Annotated[list[Curve], Field(description="Latency and bandwidth against size")]
    crossings: Annotated[list[Crossing], Field(description="Which of two paths to use")]
    scatter: Annotated[list[Scatter], Field(description="Fits to single times")]
    computing: Annotated[list[Computing], Field(description="What nodes computed beside them")]
