# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of times."""

from __future__ import annotations

from typing import Annotated, Literal

from typing_extensions import TypedDict

from .forms import measured


class WorstFlow(TypedDict):
    """The flow with the highest p99."""

    src: Annotated[str, "Port"]
    dst: Annotated[str, "Port"]
    p99: Annotated[float, "Its p99"]


class Figures(TypedDict):
    """Figures of a distribution of times."""

    unit: Annotated[Literal["us"], "Of all figures: microseconds"]
    count: Annotated[int, "Times measured"]
    lost: Annotated[int | None, measured("lost_probes")]
    bound: Annotated[float | None, "one_way: what the two ends' clocks may differ by"]
    min: Annotated[float | None, "Minimum"]
    mean: Annotated[float | None, "Arithmetic mean"]
    p50: Annotated[float | None, "Median"]
    p90: Annotated[float | None, "90 % are no greater"]
    p99: Annotated[float | None, "99 % are no greater"]
    p99_9: Annotated[float | None, "99.9 % are no greater"]
    p99_99: Annotated[float | None, "99.99 % are no greater"]
    max: Annotated[float | None, "Maximum"]
    pdv: Annotated[float | None, "RFC 5481: D(99.9 %) - D(min); null for ipdv"]
    reasons: Annotated[dict[str, str], "Why a figure is null, by its name; all: why all are"]


class TimesEntry(Figures):
    """Times of one kind, of all flows together (doc/reference/latency.md)."""

    worst: Annotated[WorstFlow | None, "The flow with the highest p99"]


class Latency(TypedDict):
    """Times of this phase's flows by kind; null: not measured."""

    one_way: Annotated[TimesEntry | None, "From a frame's stamp to its arrival"]
    ipdv: Annotated[TimesEntry | None, "How that differs between frames that follow each other"]
    round_trip: Annotated[TimesEntry | None, "Of probes that the destination sends back"]
    pingpong: Annotated[TimesEntry | None, "Of ping-pong messages"]
