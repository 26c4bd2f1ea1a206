# SPDX-License-Identifier: BSD-3-Clause
"""What was lost: how much in which phase, and where: in a host or in the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....analysis import measures as m
from ....analysis.data import Measured
from ....base import format
from ....base.model import WAITING
from ....records.document.definitions import at
from ....records.document.trials import PhaseEntry, PlanEntry
from ...tables import sections
from ..chart import ChartAxis, ChartSpec, Columns, Panel, Trace
from ..figure import PALETTE, Figure, gaps
from .series import Series, by, group, in_parts

PLACES_ARE = (
    "Frames that sources offered and that did not arrive, over all phases and repeats of a "
    "setting, by where they were lost, as the ports' own counters before and after each phase "
    "say: in the sender's host (sent by our worker, never left by the port), in the network, in "
    "the receiver's host (reached the port, not our worker), in the network while other senders' "
    "frames took their place at the port. On hover: percent of those offered."
)
PHASES_ARE = (
    "Frames of a phase that were offered and did not arrive, after the drain, in percent of those "
    "offered: of all flows and of the worst flow (thin line, open marker); of repeats the "
    "max."
)
_PLACES = (
    ("sender_host", "sender's host", "/"),
    ("network", "network", ""),
    ("receiver_host", "receiver's host", "x"),
    ("other_traffic", "network, beside other traffic", "."),
)
_SHOWN = 30  # settings, those that lost the most
_OVERLAID = 6


_LOSS = ChartSpec(
    "worst-loss-percent", "loss by phase", PHASES_ARE, sections.LOSS, "line",
    ChartAxis("Phase", "phase", "phases"), ChartAxis("Lost frames, %", "value", "counts"),
    "phase {phase:d} ({name}): {value} %",
)  # fmt: skip
_BY_PLACE = ChartSpec(
    "loss-by-place", "where frames were lost", PLACES_ARE, sections.LOSS, "bars",
    ChartAxis("Lost frames", "count", "counts"), ChartAxis(column="of", kind="names"),
    "{frames} in the {label}: {share:,.3~r} % of those offered<extra></extra>",
    legend=True, layout={"barmode": "stack"},
)  # fmt: skip


def figures(measured: Measured) -> Iterator[Figure]:
    """By place and by phase, where anything was lost."""
    streams = [plan for plan in measured.summary["plans"] if plan["traffic"] not in WAITING]
    found = group(streams)
    lossy = [one for one in found.series if _lost(one)]
    if lossy:
        yield _BY_PLACE.draw(_places(measured, lossy, found.common))
    yield from map(_LOSS.draw, _panels(measured, lossy))


def _lost(series: Series[PlanEntry]) -> int:
    return int(m.total_known(plan["lost_frames"] for plan in series.entries) or 0)


def _of(measured: Measured, series: Series[PlanEntry]) -> list[PhaseEntry]:
    return [phase for plan in series.entries for phase in measured.phases_of(plan)]


def _places(measured: Measured, lossy: Sequence[Series[PlanEntry]], common: str) -> Panel:
    shown = sorted(lossy, key=_lost, reverse=True)[:_SHOWN]
    phases = [
        [phase for phase in _of(measured, one) if phase["lost_frames"] is not None] for one in shown
    ]
    offered = [m.total_int(phase["offered_frames"] for phase in some) for some in phases]
    curves = []
    for number, (key, name, hatch) in enumerate(_PLACES):
        counts = [
            m.total_known(at(phase, f"loss_location.{key}") for phase in some) for some in phases
        ]
        if key == "other_traffic" and not any(counts):
            continue
        shares = [
            100 * count / sent if count is not None and sent else None
            for count, sent in zip(counts, offered, strict=True)
        ]
        columns = {
            "of": [one.label or "all" for one in shown],
            "count": counts,
            "frames": [format.of(count or 0, "frame") for count in counts],
            "share": gaps(shares),
        }
        style = {"color": PALETTE[number], "pattern": {"shape": hatch}}
        curves.append(Trace(name, columns, more={"marker": style}))
    return Panel(common, curves, height=170 + 28 * len(shown))


# --- by phase ------------------------------------------------------------------------------------


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
