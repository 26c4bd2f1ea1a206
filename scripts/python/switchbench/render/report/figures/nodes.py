# SPDX-License-Identifier: BSD-3-Clause
"""Throughput against number of nodes (Rauch 2005, Figure 1): does the switch scale?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....analysis.data import Measured
from ....base.format import Unit, unit_for
from ....base.model import WAITING
from ...tables.sections import NODES
from ..figure import LEGEND, Figure, gaps, line_style, packed, rows
from .series import Series, by, group, rates, sentence

DEFINITION = (
    "Payload that receivers verified in the window, one way, per flow: the mean over all flows of "
    "a plan (and over repeats); bars reach from the slowest to the fastest flow. "
    "Percent of line is layer 1, the mean over receiving ports. A switch that scales keeps its "
    "line level; where it falls, the switch met a limit (Rauch 2005, Figure 1)."
)


def figures(measured: Measured) -> Iterator[Figure]:
    """One for each pattern that ran with more than one number of nodes."""
    streams = [plan for plan in measured.summary["plans"] if plan["traffic"] not in WAITING]
    for pattern, plans in by(streams, "pattern").items():
        known = [plan for plan in plans if plan["throughput"]["mean"] is not None]
        found = group(known, "ranks")
        series = [one for one in found.series if len(by(one.entries, "ranks")) > 1]
        if series:
            yield _figure(pattern, found.common, series)


def _figure(pattern: str, common: str, series: Sequence[Series]) -> Figure:
    plans = [plan for one in series for plan in one.entries]
    unit = unit_for(plan["throughput"]["max"] for plan in plans)
    counts = sorted({plan["ranks"] for plan in plans})
    return Figure(
        name=f"nodes-{pattern}",
        title=sentence("throughput by number of nodes", common),
        definition=DEFINITION,
        data=[_trace(number, one, unit) for number, one in enumerate(series)],
        layout={
            "xaxis": {"title": {"text": "Nodes"}, "tickvals": counts, "rangemode": "tozero"},
            "yaxis": {"title": {"text": f"Payload per flow, {unit.name}"}, "rangemode": "tozero"},
            "showlegend": len(series) > 1,
            "legend": LEGEND,
        },
        section=NODES,
    )


def _trace(number: int, series: Series, unit: Unit) -> dict[str, Any]:
    points = {ranks: rates(some) for ranks, some in sorted(by(series.entries, "ranks").items())}

    def column(name: str, scale: float = unit.scale) -> Any:
        return gaps([point[name] for point in points.values()]) * scale

    mean = column("mean")
    return line_style(number, len(points)) | {
        "type": "scatter",
        "name": series.label,
        "x": list(points),
        "y": packed(mean),
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": packed(column("max") - mean),
            "arrayminus": packed(mean - column("min")),
            "thickness": 1,
        },
        "customdata": rows(
            column("min"), column("max"), column("total"), column("percent_of_line", 1.0)
        ),
        "hovertemplate": (
            f"%{{x}} nodes: mean %{{y:,.4~r}} {unit.name} per flow<br>"
            f"slowest %{{customdata[0]:,.4~r}}, fastest %{{customdata[1]:,.4~r}} {unit.name}<br>"
            f"all flows together %{{customdata[2]:,.4~r}} {unit.name}<br>"
            "%{customdata[3]:.2f} % of line"
        ),
    }
