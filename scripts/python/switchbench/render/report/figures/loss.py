# SPDX-License-Identifier: BSD-3-Clause
"""Lost frames by phase; where they were lost is in the table of losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....analysis import measures as m
from ....analysis.data import Measured
from ....base.model import WAITING
from ....records.document.trials import PhaseEntry, PlanEntry
from ...tables import sections
from ..chart import ChartAxis, ChartSpec, Columns, Panel, Trace
from ..figure import Figure
from .series import Series, by, group, in_parts

PHASES_ARE = (
    "Frames of a phase that were offered and did not arrive, after the drain, in percent of those "
    "offered: of all flows and of the worst flow (thin line, open marker); of repeats the "
    "max."
)
_OVERLAID = 6


_LOSS = ChartSpec(
    "worst-loss-percent", "loss by phase", PHASES_ARE, sections.LOSS, "line",
    ChartAxis("Phase", "phase", "phases"), ChartAxis("Lost frames, %", "value", "counts"),
    "phase {phase:d} ({name}): {value} %",
)  # fmt: skip


def figures(measured: Measured) -> Iterator[Figure]:
    """Yield losses by phase, of settings of several phases that lost anything."""
    streams = [plan for plan in measured.summary["plans"] if plan["traffic"] not in WAITING]
    lossy = [one for one in group(streams).series if _lost(one)]
    yield from map(_LOSS.draw, _panels(measured, lossy))


def _lost(series: Series[PlanEntry]) -> int:
    return int(m.total_known(plan["lost_frames"] for plan in series.entries) or 0)


def _of(measured: Measured, series: Series[PlanEntry]) -> list[PhaseEntry]:
    return [phase for plan in series.entries for phase in measured.phases_of(plan)]


def _panels(measured: Measured, series: Sequence[Series[PlanEntry]]) -> Iterator[Panel]:
    """Of plans of several phases."""
    several = [one for one in series if one.entries[0]["phases"] > 1]
    plans = group(plan for one in several for plan in one.entries)
    for number, some in in_parts(plans.series, _OVERLAID):
        drawn = [
            curve
            for place, one in enumerate(some)
            for curve in _both_losses(one.label, _of(measured, one), place)
        ]
        yield Panel(plans.common, drawn, number)


def _both_losses(label: str, phases: Sequence[PhaseEntry], place: int) -> list[Trace]:
    """Of all flows, and of the worst flow."""
    worst = f"{label}, worst flow" if label else "worst flow"
    return [
        Trace(label or "all flows", _columns(phases, "loss_percent"), style=place),
        Trace(worst, _columns(phases, "worst_loss_percent"), style=place, thin=True),
    ]


def _columns(phases: Sequence[PhaseEntry], measure: str) -> Columns:
    points = dict(sorted(by(phases, "phase").items()))
    return {
        "phase": [phase + 1 for phase in points],
        "name": [some[0]["phase_name"] or "" for some in points.values()],
        "value": [m.greatest(phase[measure] for phase in some) for some in points.values()],
    }
