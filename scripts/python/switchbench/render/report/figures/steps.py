# SPDX-License-Identifier: BSD-3-Clause
"""What goes by steps: the time of each function against size, and HPCC's measures by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....analysis.data import Measured
from ....base import format
from ...tables.sections import STEPS
from ..figure import (
    COUNTS,
    LEGEND,
    LOGARITHMIC,
    PALETTE,
    Figure,
    gaps,
    line_style,
    named_rows,
    packed,
    rows,
)
from .messages import size_axis
from .series import Entry, by, sentence

TIME_IS = (
    "Time of one repetition: the mean over ranks and repeats, each rank's own from a barrier until "
    "its last step is complete. The cursor shows IMB's least and greatest over ranks (t_min, "
    "t_max; of PingPong IMB halves them), median and 99 % of single repetitions. Messages of 0 "
    "bytes are in the table alone. Both axes are logarithmic. (Saini et al. 2005, Figures 7 to 15)"
)
LATENCY_IS = (
    "HPCC's latencies under its own names: 8 bytes, microseconds. Ping-pong: half the round trip "
    "of one pair at a time; rings: all processes to both neighbours at the same time, of one send. "
    "(doc/hpcc-imb.md)"
)
BANDWIDTH_IS = (
    "HPCC's bandwidths under its own names: 2,000,000 bytes, 10^9 bytes a second. Ping-pong: one "
    "pair at a time, one way; rings: what each process sends while all do. (doc/hpcc-imb.md)"
)

KERNELS_IS = (
    "Time of the whole benchmark: its iterations times the mean of one, of the slowest rank. "
    "(doc/kernels.md)"
)


def figures(measured: Measured) -> Iterator[Figure]:
    """Times by size of each path and number of ranks, and HPCC's measures."""
    steps = measured.summary.get("steps") or {}
    curves = [_drawn(entry) for entry in steps.get("functions", [])]
    kinds = by([curve for curve in curves if len(curve["points"]) > 1], "_path")
    for number, (path, some) in enumerate(kinds.items(), start=1):
        yield _times(number, path, some)
    suites = steps.get("hpcc", [])
    for unit, title, definition in (
        ("usec", "Latency, µs", LATENCY_IS),
        ("GBytes", "GB/s", BANDWIDTH_IS),
    ):
        if suites:
            yield _measures(suites, unit, title, definition)
    kernels = [entry for entry in steps.get("kernels", []) if entry["total_s"] is not None]
    if kernels:
        yield _kernels(kernels)


def _drawn(entry: Entry) -> Entry:
    """What of a function can stand on logarithmic axes."""
    points = [
        point
        for point in entry["points"]
        if point["size"] and point["repetition_us"]["mean"] is not None
    ]
    path = f"{format.of(entry['ranks'], 'rank')}, {entry['transport']} in {entry['network']}"
    return entry | {"points": points, "_path": path}


def _times(number: int, path: str, curves: Sequence[Entry]) -> Figure:
    sizes = [point["size"] for curve in curves for point in curve["points"]]
    return Figure(
        name=f"steps-{number}",
        title=sentence("time by message size", path),
        definition=TIME_IS,
        data=[_curve(place, curve) for place, curve in enumerate(curves)],
        layout={
            "xaxis": size_axis(min(sizes), max(sizes)),
            "yaxis": LOGARITHMIC | {"title": {"text": "Repetition, µs"}},
            "showlegend": True,
            "legend": LEGEND,
        },
        section=STEPS,
        height=460,
    )


def _curve(place: int, curve: Entry) -> dict[str, Any]:
    points = curve["points"]
    columns = [
        gaps([point[part][name] for point in points])
        for part, name in (
            ("imb", "t_min_us"), ("imb", "t_max_us"),
            ("repetition_us", "p50"), ("repetition_us", "p99"),
        )
    ]  # fmt: skip
    return (
        {"type": "scatter", "name": format.pattern(curve)}
        | line_style(place)
        | {
            "x": packed(gaps([point["size"] for point in points])),
            "y": packed(gaps([point["repetition_us"]["mean"] for point in points])),
            "customdata": [
                [format.size_words(point["size"]), *row]
                for point, row in zip(points, rows(*columns), strict=True)
            ],
            "hovertemplate": (
                "%{customdata[0]}: mean %{y:,.4~r} µs<br>"
                "over ranks %{customdata[1]:,.4~r} to %{customdata[2]:,.4~r} µs<br>"
                "median %{customdata[3]:,.4~r}, 99 % %{customdata[4]:,.4~r} µs"
            ),
        }
    )


def _measures(suites: Sequence[Entry], unit: str, title: str, definition: str) -> Figure:
    """A group of bars for each of HPCC's names of this unit, a bar for each run of the suite."""
    names = [name for name in suites[0]["outputs"] if name.endswith(unit)]
    labels = [name.removesuffix(f"_{unit}") for name in names]
    data = [
        {
            "type": "bar",
            "name": f"{suite['transport']} in {suite['network']}, "
            f"{format.of(suite['ranks'], 'rank')}",
            "orientation": "h",
            "x": packed(gaps([suite["outputs"][name] for name in names])),
            "y": labels,
            "text": [format.digits(suite["outputs"][name]) for name in names],
            "textposition": "auto",
            "marker": {"color": PALETTE[place % len(PALETTE)]},
            "hovertemplate": f"%{{y}}: %{{x:,.4~r}} {unit}",
        }
        for place, suite in enumerate(suites)
    ]
    return Figure(
        name=f"hpcc-{unit.lower()}",
        title=f"HPCC's {'latencies' if unit == 'usec' else 'bandwidths'}",
        definition=definition,
        data=data,
        layout={
            "xaxis": {"title": {"text": title}} | COUNTS,
            "yaxis": named_rows(labels),
            "barmode": "group",
            "showlegend": True,
            "legend": LEGEND,
        },
        section=STEPS,
    )


def _kernels(kernels: Sequence[Entry]) -> Figure:
    """A bar for each kernel on each path."""
    named = [entry | {"_path": f"{entry['transport']} in {entry['network']}"} for entry in kernels]
    labels = list(dict.fromkeys(_kernel(entry) for entry in named))
    data = [
        {
            "type": "bar",
            "name": path,
            "orientation": "h",
            "x": packed(gaps([entry["total_s"] for entry in some])),
            "y": [_kernel(entry) for entry in some],
            "text": [format.digits(entry["total_s"]) for entry in some],
            "textposition": "auto",
            "marker": {"color": PALETTE[place % len(PALETTE)]},
            "hovertemplate": "%{y}: %{x:,.4~r} s",
        }
        for place, (path, some) in enumerate(by(named, "_path").items())
    ]
    return Figure(
        name="kernels",
        title="Application kernels: the whole benchmark",
        definition=KERNELS_IS,
        data=data,
        layout={
            "xaxis": {"title": {"text": "Time, s"}} | COUNTS,
            "yaxis": named_rows(labels),
            "barmode": "group",
            "showlegend": True,
            "legend": LEGEND,
        },
        section=STEPS,
        height=160 + 34 * len(labels) * len(data),
    )


def _kernel(entry: Entry) -> str:
    return f"{format.pattern(entry)}, {format.of(entry['ranks'], 'rank')}"
