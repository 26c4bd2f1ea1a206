# SPDX-License-Identifier: BSD-3-Clause
"""Plans of several phases (Rauch 2005, Figures 2 and 3): how long, how fast, and phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap

import numpy as np

from ....analysis import measures as m
from ....analysis.data import Measured
from ....base import format
from ....base.format import Unit, unit_for
from ....base.model import WAITING
from ....records.document.trials import PhaseEntry, PlanEntry
from ...tables.sections import ALL_TO_ALL
from ..chart import ChartAxis, ChartSpec, Columns, Panel, Trace
from ..figure import PALETTE, Figure, Plotly, gaps, named_rows, titled
from .series import Series, by, columns, group, in_parts

WHOLE = (
    "Time: of all phases, from the first barrier to the last, probes, warm-up and drain "
    "included, in seconds; of a transfer it is what the exchange took. Throughput: payload that "
    "receivers verified in the windows, one way, per flow, the mean of the phases' means. Bars at "
    "their ends reach over repeats. (Rauch 2005, Figure 2)"
)
BY_PHASE = (
    "Payload that receivers verified in the phase's window, one way: of the slowest flow (min), "
    "the mean over flows, and of the fastest (max); over repeats the lowest min and the highest "
    "max. In a shift the phase's number is the distance between source and destination. "
    "(Rauch 2005, Figure 3)"
)
_OVERLAID = 4  # series in one figure by phase: more hide each other
_BAR = 34  # pixels: two lines of a name
_LETTERS = 24  # of a line
_VALUE = 1.22  # of the longest bar: where the axis ends


def figures(measured: Measured) -> Iterator[Figure]:
    """Whole plans of all patterns first, then each pattern by phase."""
    plans = [
        plan
        for plan in measured.summary["plans"]
        if plan["phases"] > 1
        and plan["traffic"] not in WAITING
        and plan["throughput"]["mean"] is not None
    ]
    if plans:
        yield from _whole(plans)
    for number, series, common in _by_phase(plans):
        yield _phases(measured, number, series, common)


# --- whole plans -------------------------------------------------------------------------------


def _totals(name: str, title: str, axis: str, words: str) -> ChartSpec:
    return ChartSpec(
        name, title, WHOLE, ALL_TO_ALL, "bars",
        ChartAxis(axis, "mean"), ChartAxis(column="of", kind="names"),
        f"{{of}}<br>{words}<extra>{{label}}</extra>",
        spread=("low", "high"), values="outside",
        layout={"barmode": "overlay", "bargap": 0.35},
    )  # fmt: skip


_RATE = _totals(
    "plans", "pattern totals: throughput", "Payload per flow, {unit}", "mean {mean} {unit} per flow"
)
_TIME = _totals("plan-times", "pattern totals: time", "Time of the plan, s", "{mean} s")


def _whole(plans: Sequence[PlanEntry]) -> Iterator[Figure]:
    # What is compared stands next to each other: the same pattern by several paths.
    patterns = list(dict.fromkeys(format.pattern(plan) for plan in plans))
    found = group(sorted(plans, key=lambda plan: patterns.index(format.pattern(plan))))
    unit = unit_for(plan["throughput"]["mean"] for plan in plans)
    labels = [one.label or one.entries[0]["transport"] for one in found.series]
    names = ["<br>".join(wrap(label, _LETTERS)) for label in labels]
    values: tuple[tuple[ChartSpec, Callable[[PlanEntry], float | None], float], ...] = (
        (_RATE, lambda plan: plan["throughput"]["mean"], unit.scale),
        (_TIME, lambda plan: plan["elapsed_s"], 1.0),
    )
    for spec, value, scale in values:
        traces = []
        for transport in by(plans, "transport"):
            mine = [(name, [value(plan) for plan in one.entries])
                    for name, one in zip(names, found.series, strict=True)
                    if one.entries[0]["transport"] == transport]  # fmt: skip
            columns: Columns = {"of": [name for name, _ in mine]}
            for key, choose in (("mean", m.mean), ("low", m.least), ("high", m.greatest)):
                columns[key] = gaps([choose(some) for _, some in mine]) * scale
            traces.append(Trace(transport, columns, more={"cliponaxis": False}))
        ends = [end for trace in traces for end in trace.columns["mean"].tolist() if end == end]
        # An axis with room for the value behind the longest bar, and all names in their order.
        layout = {
            "yaxis": named_rows(names),
            "xaxis": titled(
                spec.x.title.replace("{unit}", unit.name),
                range=[0, _VALUE * max(ends, default=0.0) or 1.0], automargin=True,
            ),
        }  # fmt: skip
        height = 150 + _BAR * len(names)
        yield spec.draw(Panel(found.common, traces, unit=unit.name, height=height, layout=layout))


# --- by phase ----------------------------------------------------------------------------------


def _by_phase(plans: Sequence[PlanEntry]) -> Iterator[tuple[int, Sequence[Series[PlanEntry]], str]]:
    """Yield what is overlaid: the same pattern over the same nodes, some series at a time."""
    number = 0
    for some in by(plans, _matrix).values():
        found = group(some)
        for _, series in in_parts(found.series, _OVERLAID):
            number += 1
            yield number, series, found.common


def _matrix(plan: PlanEntry) -> str:
    return repr((plan["pattern"], plan["parameters"].get("order"), plan["ranks"], plan["network"]))


_PHASES = ChartSpec(
    "phases", "min, mean and max by phase", BY_PHASE, ALL_TO_ALL, "line",
    ChartAxis("Phase", "phase", "phases"), ChartAxis("Payload per flow, {unit}", "rate"),
    "{rate} {unit}", legend=True, layout={"hovermode": "x unified"},
)  # fmt: skip


def _phases(
    measured: Measured, number: int, series: Sequence[Series[PlanEntry]], common: str
) -> Figure:
    phases = [
        [phase for plan in one.entries for phase in measured.phases_of(plan)] for one in series
    ]
    unit = unit_for(phase["throughput"]["max"] for some in phases for phase in some)
    traces = [
        trace
        for place, (one, some) in enumerate(zip(series, phases, strict=True))
        for trace in _band(place, one.label, some, unit)
    ]
    return _PHASES.draw(Panel(common, traces, f"-{number}", unit.name))


def _band(number: int, label: str, phases: Sequence[PhaseEntry], unit: Unit) -> Iterator[Trace]:
    """Maximum, minimum filled up to it, and the mean above both."""
    points = dict(sorted(by(phases, "phase").items()))
    shown = columns(points.values(), unit.scale)
    place = {
        "phase": np.array(list(points), dtype=np.int32) + 1,
        "name": [str(p["phase_name"] or f"phase {p['phase'] + 1}") for p, *_ in points.values()],
    }
    color = PALETTE[number % len(PALETTE)]
    faint = ",".join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))
    styles: tuple[tuple[str, str, Plotly, str], ...] = (
        ("max", "max", {"mode": "lines", "line": {"color": color, "width": 0.8}}, ""),
        ("min", "min", {"fill": "tonexty", "fillcolor": f"rgba({faint},0.15)"}, " ({name})"),
        ("mean", "mean", {"mode": "lines", "line": {"color": color, "dash": "dot", "width": 1.5}},
         ", together {total} {unit}, {share:.2f} % of line"),
    )  # fmt: skip
    for key, what, style, hover in styles:
        named = f"{label}, {what}" if label else what
        if "mode" in style:
            style |= {"marker": None}
        yield Trace(
            named, place | shown | {"rate": shown[key]}, style=number,
            hover="{rate} {unit}" + hover, more=style | {"legendgroup": label},
        )  # fmt: skip
