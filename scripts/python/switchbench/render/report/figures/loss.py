# SPDX-License-Identifier: BSD-3-Clause
"""What went missing: how much in which phase, and where: in a host or in the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....analysis import measures as m
from ....analysis.data import Measured
from ....base import format
from ....base.model import WAITING
from ...tables.sections import LOSS
from ..figure import COUNTS, LEGEND, PALETTE, Figure, gaps, line_style, named_rows, packed
from .plans import phase_axis
from .series import Entry, Series, by, group, sentence

PLACES_ARE = (
    "Frames that sources offered and that did not arrive, over all phases and repeats of a "
    "setting, by where they went missing, as the ports' own counters before and after each phase "
    "say: in the sender's host (sent by our worker, never left by the port), in the network, in "
    "the receiver's host (reached the port, not our worker), in the network while other senders' "
    "frames took their place at the port. On hover: percent of those offered."
)
PHASES_ARE = (
    "Frames of a phase that were offered and did not arrive, after the drain, in percent of those "
    "offered: of all flows and of the worst flow (thin line, open marker); of repeats the "
    "greatest."
)
AGAIN_IS = (
    "TCP segments that the senders' kernels sent again in a phase (TCP_INFO): what was lost, or "
    "believed to be. TCP repeats what is lost, so no bytes are missing; the sum over repeats."
)
PACKETS_ARE = (
    "RDMA packets that the devices sent again in a phase, by their own counters; the sum over "
    "ports and repeats."
)
MESSAGES_ARE = (
    "Messages that were offered in a phase and did not arrive, after the drain: services that "
    "repeat nothing (uc, ud) may lose some. The sum over flows and repeats."
)
_PLACES = (
    ("sender_host", "sender's host", "/"),
    ("network", "network", ""),
    ("receiver_host", "receiver's host", "x"),
    ("other_traffic", "network, beside other traffic", "."),
)
_SHOWN = 30  # settings, those that lost the most
_OVERLAID = 6


def figures(measured: Measured) -> Iterator[Figure]:
    """By place and by phase, where anything was lost; segments sent again, where TCP did so."""
    streams = [plan for plan in measured.summary["plans"] if plan["traffic"] not in WAITING]
    lossy = [one for one in group(streams).series if _lost(one)]
    if lossy:
        yield _places(measured, lossy, group(streams).common)
    yield from _by_phase(measured, lossy, "worst_loss_percent")
    for measure in _EVENTS:
        some = [one for one in group(streams).series if _happened(measured, one, measure)]
        yield from _by_phase(measured, some, measure)


def _lost(series: Series) -> int:
    return int(m.total_known(plan["lost_frames"] for plan in series.entries) or 0)


def _happened(measured: Measured, series: Series, measure: str) -> bool:
    return any(phase[measure] for phase in _of(measured, series))


def _of(measured: Measured, series: Series) -> list[Entry]:
    return [phase for plan in series.entries for phase in measured.phases_of(plan)]


def _places(measured: Measured, lossy: Sequence[Series], common: str) -> Figure:
    shown = sorted(lossy, key=_lost, reverse=True)[:_SHOWN]
    phases = [
        [phase for phase in _of(measured, one) if phase["lost_frames"] is not None] for one in shown
    ]
    labels = [one.label or "all" for one in shown]
    offered = [m.total_int(phase["offered_frames"] for phase in some) for some in phases]
    data = []
    for number, (key, name, hatch) in enumerate(_PLACES):
        counts = [
            m.total_known(phase["loss_location"].get(key) for phase in some) for some in phases
        ]
        if key == "other_traffic" and not any(counts):
            continue
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": labels,
                "x": packed(gaps(counts)),
                "marker": {"color": PALETTE[number], "pattern": {"shape": hatch}},
                "customdata": [
                    [
                        format.of(count or 0, "frame"),
                        100 * count / sent if count is not None and sent else None,
                    ]
                    for count, sent in zip(counts, offered, strict=True)
                ],
                "hovertemplate": (
                    f"%{{customdata[0]}} in the {name}: %{{customdata[1]:,.3~r}} % of those offered"
                    "<extra></extra>"
                ),
            }
        )
    return Figure(
        name="loss-by-place",
        title=sentence("where frames went missing", common),
        definition=PLACES_ARE,
        data=data,
        layout={
            "barmode": "stack",
            "xaxis": COUNTS | {"title": {"text": "Lost frames"}},
            "yaxis": named_rows(labels),
            "showlegend": True,
            "legend": LEGEND,
        },
        section=LOSS,
        height=170 + 28 * len(shown),
    )


# --- by phase ----------------------------------------------------------------------------------

_EVENTS = ("retransmitted_segments", "retransmitted_packets", "lost_messages")
_TITLES = {
    "worst_loss_percent": ("loss by phase", "Lost frames, %", PHASES_ARE),
    "retransmitted_segments": ("segments sent again by phase", "Segments sent again", AGAIN_IS),
    "retransmitted_packets": (
        "RDMA packets sent again by phase",
        "Packets sent again",
        PACKETS_ARE,
    ),
    "lost_messages": ("messages lost by phase", "Lost messages", MESSAGES_ARE),
}


def _by_phase(measured: Measured, series: Sequence[Series], measure: str) -> Iterator[Figure]:
    """Of plans of several phases."""
    several = [one for one in series if one.entries[0]["phases"] > 1]
    plans = group(plan for one in several for plan in one.entries)
    for first in range(0, len(plans.series), _OVERLAID):
        some = plans.series[first : first + _OVERLAID]
        number = f"-{1 + first // _OVERLAID}" if len(plans.series) > _OVERLAID else ""
        yield _phases(measured, measure, number, some, plans.common)


def _phases(
    measured: Measured, measure: str, number: str, series: Sequence[Series], common: str
) -> Figure:
    title, axis, definition = _TITLES[measure]
    data: list[dict[str, Any]] = []
    for place, one in enumerate(series):
        phases = _of(measured, one)
        if measure == "worst_loss_percent":
            data.append(_line(place, one.label, phases, "loss_percent", m.greatest))
            data.append(_line(place, one.label, phases, "worst_loss_percent", m.greatest))
            if "marker" in data[-1]:
                data[-1]["marker"]["symbol"] += "-open"
            data[-1]["line"] |= {"width": 1}
            data[-1]["name"] = f"{one.label}, worst flow" if one.label else "worst flow"
            data[-2]["name"] = one.label or "all flows"
        else:
            data.append(_line(place, one.label, phases, measure, m.total_known))
    return Figure(
        name=f"{measure.replace('_', '-')}{number}",
        title=sentence(title, common),
        definition=definition,
        data=data,
        layout={
            "xaxis": phase_axis(
                max(phase["phase"] for one in series for phase in _of(measured, one))
            ),
            "yaxis": COUNTS | {"title": {"text": axis}},
            "showlegend": len(data) > 1,
            "legend": LEGEND,
        },
        section=LOSS,
    )


def _line(
    place: int, label: str, phases: Sequence[Entry], measure: str, over: Any
) -> dict[str, Any]:
    points = dict(sorted(by(phases, "phase").items()))
    unit = " %" if measure.endswith("percent") else ""
    return line_style(place, len(points)) | {
        "type": "scatter",
        "name": label,
        "x": packed([phase + 1 for phase in points]),
        "y": packed(gaps([over(phase[measure] for phase in some) for some in points.values()])),
        "customdata": [[some[0]["phase_name"] or ""] for some in points.values()],
        "hovertemplate": f"phase %{{x}} (%{{customdata[0]}}): %{{y:,.4~r}}{unit}",
    }
