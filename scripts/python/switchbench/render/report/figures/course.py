# SPDX-License-Identifier: BSD-3-Clause
"""Throughput over time by flow, from the interval results: who starves, and when."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ....analysis.data import Measured, Spans, plan_key
from ....base.format import Unit, unit_for
from ....base.model import WAITING
from ....records.document.trials import PlanEntry
from ....records.rows import Floats
from ...tables.sections import COURSE
from ..chart import ChartAxis, ChartSpec, Panel, Trace, sentence
from ..figure import Figure, heat_map, named_rows, packed, titled
from .series import group

SPANS_ARE = (
    "Payload that a flow's destination verified from one interval result to the next, by the real "
    "length of that span, one way. Of repeats the one in which a flow fell the furthest. "
)
LINES = "One line a flow; time is counted from the opening of the window."
MAP = (
    "One row a receiving port, and its slowest flow in that span; the phases' windows follow each "
    "other. Empty: nothing was to come."
)
FLOWS_MAP = "One row a flow; time is counted from the opening of the window."
FOLDED = " Neighbouring spans share a column, which shows the worst of them."

_FIGURES = 6  # settings shown: those that fell the furthest
_LINES = 10  # flows as lines: more can't be told apart
_COLUMNS = 400  # of a map


def figures(measured: Measured) -> Iterator[Figure]:
    """Yield one for each setting, those in which a flow fell the furthest below its own mean."""
    streams = [plan for plan in measured.summary["plans"] if plan["traffic"] not in WAITING]
    found = group(streams)
    falls = []
    for one in found.series:
        plan = min(one.entries, key=lambda plan: _fall(measured, plan))
        if _fall(measured, plan) < np.inf:
            falls.append((_fall(measured, plan), plan))
    deepest = sorted(falls, key=lambda pair: pair[0])[:_FIGURES]
    left = len(falls) - len(deepest)
    number = 0
    for plan in [plan for pair in falls if pair in deepest for plan in pair[1:]]:
        spans = _spans(measured, plan)
        if spans is not None:
            number += 1
            yield _figure(measured, number, plan, spans, left)


def _fall(measured: Measured, plan: PlanEntry) -> float:
    """Return how low a flow fell, in percent of its own mean; infinite: there are no two spans."""
    shares = [
        phase["intervals"]["lowest"][0]["percent_of_mean"]
        for phase in measured.phases_of(plan)
        if phase["intervals"]["count"] > 1
    ]
    return min(shares, default=np.inf)


def _spans(measured: Measured, plan: PlanEntry) -> Spans | None:
    """Of a transfer without the end of each flow: what is done has nothing more to deliver."""
    spans = measured.records.spans(plan_key(plan))
    if spans is None or plan["traffic"] == "stream":
        return spans
    spans = spans.until_done()
    return spans if len(spans.src) else None


_LINES_OF = ChartSpec(
    "course", "throughput over time", SPANS_ARE, COURSE, "line",
    ChartAxis("Time in the window, s", "at"), ChartAxis("Payload, {unit}", "rate"),
    "{rate} {unit} until {at:.3f} s", legend=True,
)  # fmt: skip


def _figure(measured: Measured, number: int, plan: PlanEntry, spans: Spans, left: int) -> Figure:
    """Of few flows lines, of many a map."""
    size = len(measured.ports)
    ends = np.unique(spans.src.astype(np.int64) * size + spans.dst)
    unit = unit_for([float(spans.mbps.max())])
    common = group([plan]).common
    words = f"{left} settings in which no flow fell as far are omitted. " if left else ""
    one_phase = plan["phases"] == 1
    if one_phase and len(ends) <= _LINES:
        traces = list(_lines(measured, spans, np.divmod(ends, size), unit))
        return _LINES_OF.draw(Panel(common, traces, f"-{number}", unit.name, words + LINES))
    rows, columns, mbps, folded = _cells(measured, spans, one_phase)
    when = "at %{x:.2f} s" if one_phase else "in phase %{x:.2f}"
    trace, said = heat_map(
        mbps * unit.scale, packed(columns.astype(np.float32)), rows, "Payload", unit.name,
        f"%{{y}}: %{{z:,.4~r}} {unit.name} {when}",
    )  # fmt: skip
    words += said + (FLOWS_MAP if one_phase else MAP) + folded
    axes = {
        "xaxis": titled("Time in the window, s" if one_phase else "Phase", showgrid=False),
        "yaxis": named_rows(rows) | {"showgrid": False},
    }
    return Figure(
        f"course-{number}", sentence("throughput over time", common), SPANS_ARE + words,
        [trace], axes, COURSE, 480,
    )  # fmt: skip


def _lines(
    measured: Measured, spans: Spans, ends: tuple[NDArray[np.int64], ...], unit: Unit
) -> Iterator[Trace]:
    for src, dst in zip(*ends, strict=True):
        mine = (spans.src == src) & (spans.dst == dst)
        # A span's rate holds from the mark before it up to its own.
        columns = {
            "at": np.concatenate([spans.from_ms[mine][:1], spans.to_ms[mine]]) / 1e3,
            "rate": np.concatenate([spans.mbps[mine][:1], spans.mbps[mine]]) * unit.scale,
        }
        name = f"{measured.names[src]} → {measured.names[dst]}"
        yield Trace(name, columns, shape="vh")


# --- many: a map -------------------------------------------------------------------------------


def _numbered(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct codes in order, and for each code its place among them.

    Codes are small.
    """
    known = np.zeros(int(codes.max()) + 1, dtype=bool)
    known[codes] = True
    return np.flatnonzero(known), (np.cumsum(known) - 1)[codes]


def _cells(
    measured: Measured, spans: Spans, one_phase: bool
) -> tuple[list[str], Floats, Floats, str]:
    """Return the names of rows, the places of columns, the cells, and a sentence where they fold.

    Rows are ports or flows, columns spans one after the other; the least of each cell.
    """
    step = float(np.median(spans.to_ms - spans.from_ms))
    place = np.floor((spans.from_ms + spans.to_ms) / 2 / step).astype(np.int64)
    number = spans.phase.astype(np.int64) * (int(place.max()) + 1) + place
    spans_at, column = _numbered(number)
    ends = spans.src.astype(np.int64) * len(measured.ports) if one_phase else 0
    codes, row = _numbered(ends + spans.dst.astype(np.int64))
    cells = np.full(len(codes) * len(spans_at), np.inf)
    np.minimum.at(cells, row * len(spans_at) + column, spans.mbps)
    cells[np.isinf(cells)] = np.nan
    whole, part = np.divmod(spans_at, int(place.max()) + 1)
    if one_phase:
        at = (part + 0.5) * step / 1e3
    else:  # a phase's spans lie around its number
        at = whole + 0.5 + (part + 0.5) / (int(place.max()) + 1)
    names = [measured.names[code % len(measured.ports)] for code in codes]
    if one_phase:
        sources = [measured.names[code // len(measured.ports)] for code in codes]
        names = [f"{src} → {dst}" for src, dst in zip(sources, names, strict=True)]
    columns, mbps, folded = at.astype(np.float64), cells.reshape(len(codes), -1), ""
    if len(columns) > _COLUMNS:
        starts = np.linspace(0, len(columns), _COLUMNS, endpoint=False).astype(np.int64)
        columns, mbps, folded = columns[starts], np.fmin.reduceat(mbps, starts, axis=1), FOLDED
    return names, columns, mbps, folded
