# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of times."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from .forms import measured


class WorstFlow(TypedDict):
    """The flow with the highest p99."""

    src: Annotated[str, Field(description="Port")]
    dst: Annotated[str, Field(description="Port")]
    p99: Annotated[float, Field(description="Its p99")]


class Figures(TypedDict):
    """Figures of a distribution of times."""

    unit: Annotated[Literal["us"], Field(description="Of all figures: microseconds")]
    count: Annotated[int, Field(description="Times measured")]
    lost: Annotated[int | None, measured("lost_probes")]
    bound: Annotated[
        float | None, Field(description="one_way: what the two ends' clocks may differ by")
    ]
    min: Annotated[float | None, Field(description="Minimum")]
    mean: Annotated[float | None, Field(description="Arithmetic mean")]
    p50: Annotated[float | None, Field(description="Median")]
    p90: Annotated[float | None, Field(description="90 % are no greater")]
    p99: Annotated[float | None, Field(description="99 % are no greater")]
    p99_9: Annotated[float | None, Field(description="99.9 % are no greater")]
    p99_99: Annotated[float | None, Field(description="99.99 % are no greater")]
    max: Annotated[float | None, Field(description="Maximum")]
    pdv: Annotated[float | None, Field(description="RFC 5481: D(99.9 %) - D(min); null for ipdv")]
    reasons: Annotated[
        dict[str, str], Field(description="Why a figure is null, by its name; all: why all are")
    ]


class TimesEntry(Figures):
    """Times of one kind, of all flows together (doc/reference/latency.md)."""

    worst: Annotated[WorstFlow | None, Field(description="The flow with the highest p99")]


class Latency(TypedDict):
    """Times of this phase's flows by kind; null: not measured."""

    one_way: Annotated[TimesEntry | None, Field(description="From a frame's stamp to its arrival")]
    ipdv: Annotated[
        TimesEntry | None,
        Field(description="How that differs between frames that follow each other"),
    ]
    round_trip: Annotated[
        TimesEntry | None, Field(description="Of probes that the destination sends back")
    ]
    pingpong: Annotated[TimesEntry | None, Field(description="Of ping-pong messages")]


class LoopbackBaselineEntry(Figures):
    """What a time comes to on a loopback in this node: the software's own path."""

    node: Annotated[str, Field(description="Who measured it")]
    transport: Annotated[str, Field(description="Whose path it is")]
    kind: Annotated[str, Field(description="one_way, ipdv or round_trip")]
