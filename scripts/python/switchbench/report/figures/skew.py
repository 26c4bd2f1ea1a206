# SPDX-License-Identifier: BSD-3-Clause
"""How far apart the ranks began and ended each phase."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...results import figures as words
from ..data import Measured
from ..figure import LEGEND, LOGARITHMIC, SKEW, Figure, gaps, marker, packed
from .series import Entry, sentence

DEFINITION = (
    "Start skew: the latest real start of all ranks of a phase less the earliest, in microseconds, "
    "on the run's clock. Stop skew: the same of their real stops. Both are uncertain by at most "
    "twice the bound within which the nodes' clocks were known. Phases are in the order in which "
    "they ran; 0 is not on a logarithmic axis."
)
FOLDED = " Of some phases that follow each other only the worst is drawn."
_POINTS = 3000  # of a curve
_LARGE = 400  # markers that have room to be seen
_NAMED = 24  # trials named below the axis, at the most
_WIDE = 100.0  # times the least: then the axis is logarithmic


def figures(measured: Measured) -> Iterator[Figure]:
    """One for the whole run."""
    phases = [p for p in measured.summary["trials"] if p["start_skew_us"] is not None]
    if phases:
        yield _figure(phases)


def _figure(phases: list[Entry]) -> Figure:
    said = gaps([phase[f"{end}_skew_us"] for end in ("start", "stop") for phase in phases])
    positive = said[said > 0]
    wide = len(positive) > 0 and positive.max() > _WIDE * positive.min()
    folded = FOLDED if len(phases) > _POINTS else ""
    return Figure(
        name="skew",
        title=sentence("skew of starts and stops by phase"),
        definition=DEFINITION + folded,
        data=[_trace(number, end, phases) for number, end in enumerate(("start", "stop"))],
        layout={
            "legend": LEGEND,
            "xaxis": _axis(phases),
            "yaxis": {
                "title": {"text": "Latest less earliest rank, µs"},
                **(LOGARITHMIC if wide else {"rangemode": "tozero"}),
            },
        },
        section=SKEW,
    )


def _trace(number: int, end: str, phases: list[Entry]) -> dict[str, Any]:
    """Of many phases only the worst of some that follow each other."""
    each = -(-len(phases) // _POINTS)
    said = gaps([phase[f"{end}_skew_us"] for phase in phases])
    known = np.nan_to_num(said, nan=-1.0)
    firsts = range(0, len(phases), each)
    worst = [first + int(np.argmax(known[first : first + each])) for first in firsts]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{end} skew",
        "x": packed(np.array(worst, dtype=np.int32) + 1),
        "y": packed(said[worst]),
        "marker": marker(number, 8 if len(worst) <= _LARGE else 4),
        "customdata": [[_label(phases[place]), phases[place]["skew_bound_us"]] for place in worst],
        "hovertemplate": (
            "%{y:,.4~r} µs<br>%{customdata[0]}<br>clocks known within %{customdata[1]:,.3~r} µs"
        ),
    }


def _axis(phases: list[Entry]) -> dict[str, Any]:
    """Phases by number; trials are named where they begin, those that have room for it."""
    title = {"title": {"text": "Phase of the run, in order"}}
    begins = [
        place
        for place, phase in enumerate(phases)
        if not place or _plan(phases[place - 1]) != _plan(phase)
    ]
    if len(begins) < 2:
        return title
    room, named = len(phases) / _NAMED, begins[:1]
    for place in begins:
        if place - named[-1] >= room:
            named.append(place)
    names = [f"{words.pattern(phases[i])}, {phases[i]['transport']}" for i in named]
    return title | {
        "tickvals": [place + 1 for place in named],
        "ticktext": names,
        "tickangle": -45,
        "automargin": True,
    }


def _plan(phase: Entry) -> tuple[Any, ...]:
    return phase["trial"], phase["repeat"], phase["network"]


def _label(phase: Entry) -> str:
    name = phase["phase_name"] or f"phase {phase['phase'] + 1}"
    return f"{words.pattern(phase)}, {phase['transport']}, {words.size(phase)}, {name}"
