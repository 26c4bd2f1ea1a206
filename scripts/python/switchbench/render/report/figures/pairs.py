# SPDX-License-Identifier: BSD-3-Clause
"""Pairs, full duplex (Rauch 2005, Table 1): within a module, between two, more and more of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....analysis.data import Measured
from ....base import format
from ....base.format import Unit, unit_for
from ....base.model import WAITING
from ...tables.sections import PAIRS
from ..figure import LEGEND, MARKERS, PALETTE, Figure, gaps, named_rows, packed, rows
from .series import Series, by, group, rates, sentence

DEFINITION = (
    "Payload that receivers verified in the window, each way: the mean over all flows of the pairs "
    "(and over repeats); bars reach from the slowest to the fastest flow. Percent of line is layer "
    "1, the mean over receiving ports. Both directions of a pair run at the same time "
    "(Rauch 2005, Table 1)."
)
_ROW = 30  # pixels
_HEAD = 130


def figures(measured: Measured) -> Iterator[Figure]:
    """One for all pairs of the run."""
    plans = [
        plan
        for plan in measured.summary["plans"]
        if plan["pattern"] == "pairs"
        and plan["traffic"] not in WAITING
        and plan["throughput"]["mean"] is not None
    ]
    if plans:
        yield _figure(group(plans).common, plans)


def _figure(common: str, plans: Sequence[dict[str, Any]]) -> Figure:
    found = group(plans)
    unit = unit_for(plan["throughput"]["max"] for plan in plans)
    transports = list(by(plans, "transport"))
    return Figure(
        name="pairs",
        title=sentence("pairs, each way", common),
        definition=DEFINITION,
        data=[_trace(transports.index(name), name, found.series, unit) for name in transports],
        layout={
            "xaxis": {"title": {"text": f"Payload per flow, {unit.name}"}, "rangemode": "tozero"},
            "yaxis": named_rows([one.label or one.entries[0]["transport"] for one in found.series]),
            "showlegend": len(transports) > 1,
            "legend": LEGEND,
        },
        section=PAIRS,
        height=_HEAD + _ROW * len(found.series),
    )


def _trace(number: int, transport: str, series: Sequence[Series], unit: Unit) -> dict[str, Any]:
    mine = [one for one in series if one.entries[0]["transport"] == transport]
    points = [rates(one.entries) for one in mine]

    def column(name: str, scale: float = unit.scale) -> Any:
        return gaps([point[name] for point in points]) * scale

    mean, shares = column("mean"), column("percent_of_line", 1.0)
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": transport,
        "x": packed(mean),
        "y": [one.label or transport for one in mine],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": packed(column("max") - mean),
            "arrayminus": packed(mean - column("min")),
        },
        "marker": {"color": PALETTE[number], "symbol": MARKERS[number], "size": 10},
        "text": [format.digits(value) for (value,) in rows(mean)],
        "textposition": "top center",
        "cliponaxis": False,
        "customdata": rows(column("min"), column("max"), shares),
        "hovertemplate": (
            f"mean %{{x:,.4~r}} {unit.name} each way<br>"
            f"slowest %{{customdata[0]:,.4~r}}, fastest %{{customdata[1]:,.4~r}} {unit.name}<br>"
            "%{customdata[2]:.2f} % of line"
        ),
    }
