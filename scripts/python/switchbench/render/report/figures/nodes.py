# SPDX-License-Identifier: BSD-3-Clause
"""Throughput against number of nodes (Rauch 2005, Figure 1): how the switch scales.

And pairs, full duplex (Table 1): within a module, between two, more and more of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....analysis.data import Measured
from ....base.format import unit_for
from ....base.model import WAITING
from ....records.document.trials import PlanEntry
from ...tables import sections
from ..chart import ChartAxis, ChartSpec, Panel, Trace
from ..figure import named_rows, titled
from .series import by, columns, group

_NODES = (
    "Payload that receivers verified in the window, one way, per flow: the mean over all flows of "
    "a plan (and over repeats); bars reach from the slowest to the fastest flow. "
    "Percent of line is layer 1, the mean over receiving ports. A switch that scales keeps its "
    "line level; where it falls, the switch met a limit (Rauch 2005, Figure 1)."
)
_PAIRS = (
    "Payload that receivers verified in the window, each way: the mean over all flows of the pairs "
    "(and over repeats); bars reach from the slowest to the fastest flow. Percent of line is layer "
    "1, the mean over receiving ports. Both directions of a pair run at the same time "
    "(Rauch 2005, Table 1)."
)


def _streams(measured: Measured) -> list[PlanEntry]:
    plans = (plan for plan in measured.summary["plans"] if plan["traffic"] not in WAITING)
    return [plan for plan in plans if plan["throughput"]["mean"] is not None]


def _by_nodes(measured: Measured) -> Iterator[Panel]:
    """Yield one for each pattern that ran with more than one number of nodes."""
    for pattern, plans in by(_streams(measured), "pattern").items():
        found = group(plans, "ranks")
        series = [one for one in found.series if len(by(one.entries, "ranks")) > 1]
        unit = unit_for(p["throughput"]["max"] for one in series for p in one.entries)
        curves = []
        for one in series:
            points = dict(sorted(by(one.entries, "ranks").items()))
            shown = columns(points.values(), unit.scale)
            curves.append(Trace(one.label, {"ranks": list(points)} | shown))
        if curves:
            counts = sorted({plan["ranks"] for one in series for plan in one.entries})
            axis = titled("Nodes", tickvals=counts, rangemode="tozero")
            yield Panel(found.common, curves, f"-{pattern}", unit.name, layout={"xaxis": axis})


def _by_pairs(measured: Measured) -> Iterator[Panel]:
    """Yield one for all pairs of the run."""
    plans = [plan for plan in _streams(measured) if plan["pattern"] == "pairs"]
    if not plans:
        return
    found = group(plans)
    unit = unit_for(plan["throughput"]["max"] for plan in plans)
    named = [replace(s, label=s.label or s.entries[0]["transport"]) for s in found.series]
    curves = []
    for transport in by(plans, "transport"):
        mine = [one for one in named if one.entries[0]["transport"] == transport]
        shown = columns((one.entries for one in mine), unit.scale)
        curves.append(Trace(transport, {"of": [one.label for one in mine]} | shown))
    labels = {"yaxis": named_rows([one.label for one in named])}
    height = 130 + 30 * len(found.series)
    yield Panel(found.common, curves, unit=unit.name, height=height, layout=labels)


figures = ChartSpec(
    "nodes", "throughput by number of nodes", _NODES, sections.NODES, "line",
    ChartAxis("Nodes", "ranks"), ChartAxis("Payload per flow, {unit}", "mean"),
    "{ranks:d} nodes: mean {mean} {unit} per flow<br>slowest {min}, fastest {max} {unit}<br>"
    "all flows together {total} {unit}<br>{share:.2f} % of line",
    _by_nodes, spread=("min", "max"),
)  # fmt: skip

pairs = ChartSpec(
    "pairs", "pairs, each way", _PAIRS, sections.PAIRS, "points",
    ChartAxis("Payload per flow, {unit}", "mean"), ChartAxis(column="of", kind="names"),
    "mean {mean} {unit} each way<br>slowest {min}, fastest {max} {unit}<br>{share:.2f} % of line",
    _by_pairs, spread=("min", "max"), values="top center",
)  # fmt: skip
