# SPDX-License-Identifier: BSD-3-Clause
"""Latency and bandwidth against message size (Sokolowski and Grosu 2004, Figures 9 and 10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....analysis.data import Measured
from ....base import format
from ....base.format import unit_for
from ...tables.sections import MESSAGES
from ..figure import DASHES, LEGEND, LOGARITHMIC, MARKERS, PALETTE, Figure, gaps, packed, rows
from .series import Entry, by, sentence

LATENCY_IS = (
    "Half the time of a round trip of one message, in microseconds: the mean over all flows and "
    "repeats; the cursor shows median, 99 % and extremes. Both axes are logarithmic. "
    "(Sokolowski and Grosu 2004, Figure 10)"
)
BANDWIDTH_IS = (
    "Message size by half the mean round trip: payload, one way, one message at a time per flow. "
    "Both axes are logarithmic. (Sokolowski and Grosu 2004, Figure 9)"
)


def figures(measured: Measured) -> Iterator[Figure]:
    """Bandwidth and latency of each pattern whose messages had more than one size."""
    curves = [curve for curve in measured.summary["messages"]["curves"] if len(curve["points"]) > 1]
    kinds = by([curve | {"_pattern": format.pattern(curve)} for curve in curves], "_pattern")
    for number, (pattern, some) in enumerate(kinds.items(), start=1):
        yield _bandwidth(number, pattern, some)
        yield _latency(number, pattern, some)


def _bandwidth(number: int, pattern: str, curves: Sequence[Entry]) -> Figure:
    unit = unit_for(curve["peak_mbps"] for curve in curves)
    data = [
        style
        | {
            "x": packed(gaps([point["size"] for point in curve["points"]])),
            "y": packed(gaps([point["bandwidth_mbps"] for point in curve["points"]]) * unit.scale),
            "customdata": [[format.size_words(point["size"])] for point in curve["points"]],
            "hovertemplate": f"%{{customdata[0]}}: %{{y:,.4~r}} {unit.name}",
        }
        for curve, style in _styled(curves)
    ]
    return Figure(
        name=f"bandwidth-{number}",
        title=sentence("bandwidth by message size", pattern),
        definition=BANDWIDTH_IS,
        data=data,
        layout=_layout(f"Payload, {unit.name}", curves),
        section=MESSAGES,
    )


def _latency(number: int, pattern: str, curves: Sequence[Entry]) -> Figure:
    data = []
    for curve, style in _styled(curves):
        times = [point["latency_us"] for point in curve["points"]]
        columns = {
            name: gaps([time[name] for time in times])
            for name in ("mean", "p50", "p99", "min", "max")
        }
        data.append(
            style
            | {
                "x": packed(gaps([point["size"] for point in curve["points"]])),
                "y": packed(columns["mean"]),
                "customdata": [
                    [format.size_words(point["size"]), *row]
                    for point, row in zip(
                        curve["points"],
                        rows(*(columns[name] for name in ("p50", "p99", "min", "max"))),
                        strict=True,
                    )
                ],
                "hovertemplate": (
                    "%{customdata[0]}: mean %{y:,.4~r} µs<br>"
                    "median %{customdata[1]:,.4~r}, 99 % %{customdata[2]:,.4~r} µs<br>"
                    "least %{customdata[3]:,.4~r}, most %{customdata[4]:,.4~r} µs"
                ),
            }
        )
    return Figure(
        name=f"latency-by-size-{number}",
        title=sentence("latency by message size", pattern),
        definition=LATENCY_IS,
        data=data,
        layout=_layout("Half the round trip, µs", curves),
        section=MESSAGES,
    )


def _styled(curves: Sequence[Entry]) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """Colour says the path, dash and marker how many nodes; where one of them is the same in all,
    all three tell the other."""
    paths = list(dict.fromkeys(_path(curve) for curve in curves))
    counts = sorted({curve["ranks"] for curve in curves})
    networks = {curve["network"] for curve in curves}
    for curve in sorted(curves, key=lambda curve: (paths.index(_path(curve)), curve["ranks"])):
        path, ranks = paths.index(_path(curve)), counts.index(curve["ranks"])
        color = path if len(paths) > 1 else ranks
        mark = ranks if len(counts) > 1 else path
        parts = [curve["transport"]] if len(paths) > 1 else []
        parts += [curve["network"]] if len(networks) > 1 else []
        parts += [format.of(curve["ranks"], "node")] if len(counts) > 1 or not parts else []
        yield (
            curve,
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": ", ".join(parts),
                "legendgroup": _path(curve),
                "line": {
                    "color": PALETTE[color % len(PALETTE)],
                    "dash": DASHES[mark % len(DASHES)],
                },
                "marker": {
                    "color": PALETTE[color % len(PALETTE)],
                    "symbol": MARKERS[(path * len(counts) + ranks) % len(MARKERS)],
                    "size": 8,
                },
            },
        )


def _path(curve: Entry) -> str:
    return f"{curve['transport']} in {curve['network']}"


def size_axis(least: float, most: float) -> dict[str, Any]:
    """A logarithmic axis of sizes, whose ticks are powers of two that people know."""
    ticks = [4**power for power in range(24) if least / 2 <= 4**power <= most * 2]
    return {
        "type": "log",
        "title": {"text": "Message size"},
        "tickvals": ticks,
        "ticktext": [format.binary(tick) for tick in ticks],
        "tickangle": 0 if len(ticks) <= 12 else -45,
    }


def _layout(title: str, curves: Sequence[Entry]) -> dict[str, Any]:
    sizes = [point["size"] for curve in curves for point in curve["points"]]
    return {
        "xaxis": size_axis(min(sizes), max(sizes)),
        "yaxis": LOGARITHMIC | {"title": {"text": title}},
        "showlegend": True,
        "legend": LEGEND,
    }
