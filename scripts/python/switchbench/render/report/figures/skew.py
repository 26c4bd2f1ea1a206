# SPDX-License-Identifier: BSD-3-Clause
"""How far apart the ranks began and ended each phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....analysis.data import Measured
from ....base import format
from ....records.document.trials import PhaseEntry
from ...tables.sections import SKEW
from ..chart import ChartAxis, ChartSpec, Panel, Trace
from ..figure import LOGARITHMIC, Figure, Plotly, gaps, marker, titled
from .series import load_words

Floats = NDArray[np.float64]

DEFINITION = (
    "Start skew: the latest real start of all ranks of a phase less the earliest, in microseconds, "
    "on the run's clock. Stop skew: the same of their real stops. Both are uncertain by at most "
    "twice the bound within which the nodes' clocks were known. Phases are in the order in which "
    "they ran; 0 is not on a logarithmic axis."
)
FOLDED = " Of some phases that follow each other only the worst is drawn."
_POINTS = 3000  # of a curve
_LARGE = 400  # markers that have room to be seen
_NAMED = 24  # names below the axis, at the most
_NAMED_NARROW = 8  # in a narrow window
_LETTERS = 26  # of a line of a name
_HEIGHT, _LETTER = 340, 7  # pixels of all else, and of a letter
_WIDE = 100.0  # times the least: then the axis is logarithmic


@dataclass(frozen=True)
class _Stretch:
    """Phases that follow each other and are called the same."""

    name: str
    first: int
    phases: int

    @property
    def lines(self) -> str:
        """Its name on lines that are short enough to stand upright below the axis."""
        return "<br>".join(wrap(self.name.replace(" nodes", "\N{NO-BREAK SPACE}nodes"), _LETTERS))


_SKEW = ChartSpec(
    "skew", "skew of starts and stops by phase", DEFINITION, SKEW, "points",
    ChartAxis("", "place", "linear"), ChartAxis("Latest less earliest rank, µs", "skew"),
    "{skew} µs<br>{name}<br>clocks known within {bound:,.3~r} µs",
)  # fmt: skip


def figures(measured: Measured) -> Iterator[Figure]:
    """One for the whole run."""
    phases = [p for p in measured.summary["trials"] if p["start_skew_us"] is not None]
    if not phases:
        return
    stretches = _stretches(phases)
    places = _places(phases, stretches)
    traces = [_trace(number, end, phases, places) for number, end in enumerate(("start", "stop"))]
    said = np.concatenate([trace.columns["skew"] for trace in traces])
    positive = said[said > 0]
    wide = len(positive) > 0 and positive.max() > _WIDE * positive.min()
    layout = _axis(stretches, places)
    if wide:
        layout["yaxis"] = LOGARITHMIC | titled(_SKEW.y.title)
    words = FOLDED if len(phases) > _POINTS else ""
    height = _HEIGHT + _LETTER * _longest(stretches)
    yield _SKEW.draw(Panel("", traces, words=words, height=height, layout=layout))


def _trace(number: int, end: str, phases: Sequence[PhaseEntry], places: Floats) -> Trace:
    """Of many phases only the worst of some that follow each other."""
    each = -(-len(phases) // _POINTS)
    skews = [p["start_skew_us"] if end == "start" else p["stop_skew_us"] for p in phases]
    said = gaps(skews)
    known = np.nan_to_num(said, nan=-1.0)
    firsts = range(0, len(phases), each)
    worst = [first + int(np.argmax(known[first : first + each])) for first in firsts]
    columns = {
        "place": places[worst],
        "skew": said[worst],
        "name": [_label(phases[place]) for place in worst],
        "bound": gaps([phases[place]["skew_bound_us"] for place in worst]),
    }
    size = 8 if len(worst) <= _LARGE else 4
    return Trace(f"{end} skew", columns, more={"marker": marker(number, size)})


# --- where phases stand --------------------------------------------------------------------------


def _stretches(phases: Sequence[PhaseEntry]) -> list[_Stretch]:
    """What ran without a change of name, in order."""
    name = _naming(phases)
    found: list[_Stretch] = []
    for place, phase in enumerate(phases):
        words_of = name(phase)
        if found and found[-1].name == words_of:
            found[-1] = replace(found[-1], phases=found[-1].phases + 1)
        else:
            found.append(_Stretch(words_of, place, 1))
    return found


def _places(phases: Sequence[PhaseEntry], stretches: Sequence[_Stretch]) -> Floats:
    """Along the axis: one phase after the other, in stretches that have room for their names."""
    places = np.empty(len(phases))
    begin = 0.0
    for one, width in zip(stretches, _widths(stretches), strict=True):
        steps = (np.arange(one.phases) + 0.5) * width / one.phases
        places[one.first : one.first + one.phases] = begin + steps
        begin += width
    return places


def _widths(stretches: Sequence[_Stretch]) -> Floats:
    """As many as there are phases; where all can be named, a name's share of the axis at least."""
    widths = np.array([float(one.phases) for one in stretches])
    small = np.zeros(len(widths), dtype=bool)
    while len(widths) <= _NAMED and not small.all():
        least = widths[~small].sum() / (_NAMED - np.count_nonzero(small))
        if not (widths[~small] < least).any():
            return np.where(small, least, widths)
        small |= widths < least
    return widths


def _axis(stretches: Sequence[_Stretch], places: Floats) -> Plotly:
    """Each stretch is named in its middle, and parted from the next by a line."""
    axis = titled("Phases of the run, in order")
    if len(stretches) < 2:
        return {"xaxis": axis | {"showticklabels": False, "zeroline": False}}
    middles = [float(places[one.first : one.first + one.phases].mean()) for one in stretches]
    line = {"color": "rgba(127,127,127,0.5)", "width": 1}
    seams = [float(places[[one.first - 1, one.first]].mean()) for one in stretches[1:]]

    def named(most: int) -> Plotly:
        room = 0.99 * float(sum(_widths(stretches))) / most
        chosen = [0]
        for place, middle in enumerate(middles):
            if middle - middles[chosen[-1]] >= room:
                chosen.append(place)
        texts = [stretches[place].lines for place in chosen]
        return {"tickvals": [middles[place] for place in chosen], "ticktext": texts}

    return {
        "xaxis": axis | {
            **named(_NAMED),
            "tickangle": -90,
            "automargin": True,
            "showgrid": False,
            "zeroline": False,
        },
        "meta": {"narrow": {"xaxis": named(_NAMED_NARROW)}},
        "shapes": [
            {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line}
            for at in seams
            if len(seams) < len(places) / 2
        ],
    }  # fmt: skip


def _longest(stretches: Sequence[_Stretch]) -> int:
    """Letters of the longest line below the axis."""
    if len(stretches) < 2:
        return 0
    return max(len(line) for one in stretches for line in one.lines.split("<br>"))


def _naming(phases: Sequence[PhaseEntry]) -> Callable[[PhaseEntry], str]:
    """A trial's name: its pattern, and what tells it from the others of its pattern."""
    ranks = _several(phases, format.pattern, lambda phase: phase["ranks"])
    loads = _several(phases, format.pattern, load_words)
    sizes = _several(phases, lambda phase: (format.pattern(phase), phase["transport"]), format.size)
    transports = len({phase["transport"] for phase in phases}) > 1

    def name(phase: PhaseEntry) -> str:
        pattern = format.pattern(phase)
        parts = [
            pattern,
            format.of(phase["ranks"], "node") if pattern in ranks else "",
            phase["transport"] if transports else "",
            format.size(phase) if (pattern, phase["transport"]) in sizes else "",
            load_words(phase) if pattern in loads else "",
        ]
        return ", ".join(part for part in parts if part)

    return name


def _several(
    phases: Sequence[PhaseEntry], of: Callable[[PhaseEntry], Any], what: Callable[[PhaseEntry], Any]
) -> set[Any]:
    """Of which there is more than one `what`."""
    found: dict[Any, set[Any]] = {}
    for phase in phases:
        found.setdefault(of(phase), set()).add(what(phase))
    return {key for key, some in found.items() if len(some) > 1}


def _label(phase: PhaseEntry) -> str:
    name = phase["phase_name"] or f"phase {phase['phase'] + 1}"
    return f"{format.pattern(phase)}, {phase['transport']}, {format.size(phase)}, {name}"
