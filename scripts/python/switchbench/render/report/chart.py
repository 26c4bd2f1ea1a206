# SPDX-License-Identifier: BSD-3-Clause
"""Figures as specifications: which numbers of a run, by which mark, along which axes.

A specification asks what was measured for panels, of which each is one figure; a panel has curves,
of which each has columns by name. The drawer makes Plotly's traces and layout of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...base import format
from .figure import (
    LEGEND,
    PALETTE,
    Figure,
    Plotly,
    gaps,
    line_style,
    marker,
    named_rows,
    packed,
    rows,
    titled,
)

HATCHES = ("", "/", "x", "-", ".")  # bars are told apart without colour
_ZERO = {"rangemode": "tozero", "automargin": True}
_WRITTEN_OUT = {"exponentformat": "none", "separatethousands": True, "automargin": True}
_KINDS: dict[str, Plotly] = {
    "zero": _ZERO, "linear": {}, "log": {"type": "log", "dtick": 1} | _WRITTEN_OUT,
    "counts": {"rangemode": "tozero"} | _WRITTEN_OUT, "sizes": {}, "names": {},
    "phases": {},
}  # fmt: skip


Columns = dict[str, Any]
"""By name a sequence or an array: a number or a word for each point."""


@dataclass(frozen=True)
class ChartAxis:
    """What stands along an axis: a column of the curves."""

    title: str = ""  # {unit} is the panel's
    column: str = ""
    kind: str = "zero"  # of _KINDS
    more: Plotly = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """One trace."""

    label: str
    columns: Columns
    more: Plotly = field(default_factory=dict)  # None: without it
    style: int | None = None  # which colour, dash and marker; None: by its place
    shape: str = ""  # of a line between two points: hv, vh
    hover: str = ""  # where it is not the specification's
    thin: bool = False  # beside a curve of the same style: a thin line, open markers


@dataclass(frozen=True)
class Panel:
    """What one figure shows."""

    common: str  # what all curves have in common, for the title
    curves: Sequence[Trace]
    key: str = ""  # the end of the figure's name
    unit: str = ""
    words: str = ""  # behind the definition
    height: int | None = None
    layout: Plotly = field(default_factory=dict)


@dataclass(frozen=True)
class ChartSpec:
    """A kind of figure."""

    name: str
    title: str
    definition: str
    section: str
    mark: str  # line, points, bars
    x: ChartAxis
    y: ChartAxis
    hover: str  # "{label}, {ranks} nodes: {mean} {unit}, {share:.2f} %": columns by name
    query: Callable[[Any], Iterable[Panel]] | None = None  # None: panels are drawn one by one
    spread: tuple[str, str] | None = None  # columns of the ends of a point's bar
    values: str = ""  # where values are written beside their marks
    height: int = 420
    legend: bool | None = None  # None: where there are several curves
    layout: Plotly = field(default_factory=dict)

    def __call__(self, measured: Any) -> Iterator[Figure]:
        """Yield a figure of each panel."""
        for panel in self.query(measured) if self.query else ():
            yield self.draw(panel)

    def draw(self, panel: Panel) -> Figure:
        """Return one figure."""
        legend = len(panel.curves) > 1 if self.legend is None else self.legend
        return Figure(
            name=f"{self.name}{panel.key}",
            title=sentence(self.title, panel.common),
            definition=self.definition + panel.words,
            data=[self._trace(number, curve, panel) for number, curve in enumerate(panel.curves)],
            layout={
                "xaxis": self._axis(self.x, panel),
                "yaxis": self._axis(self.y, panel),
                "showlegend": legend,
                "legend": LEGEND,
                **self.layout,
                **panel.layout,
            },
            section=self.section,
            height=panel.height or self.height,
        )

    def _axis(self, axis: ChartAxis, panel: Panel) -> Plotly:
        found: list[Any] = [v for c in panel.curves for v in c.columns.get(axis.column, ())]
        made = dict(_KINDS[axis.kind])
        if axis.kind == "names":
            made = named_rows(list(dict.fromkeys(found)))
        elif axis.kind == "sizes":
            made = size_axis(min(found), max(found))
        elif axis.kind == "phases":
            # Phases are counted from 1, as in the plan's listing.
            made = titled("Phase", range=[0.5, int(max(found)) + 0.5])
        if axis.title:
            made |= titled(axis.title.replace("{unit}", panel.unit))
        return made | axis.more

    def _trace(self, number: int, curve: Trace, panel: Panel) -> Plotly:
        columns, mark = curve.columns, self.mark
        place = number if curve.style is None else curve.style
        points = len(columns[self.x.column])
        along = "x" if self.y.kind == "names" else "y"  # the axis of values
        made: Plotly = {"type": "bar" if mark == "bars" else "scatter"}
        if mark == "line":
            made |= line_style(place, points)
        elif mark == "points":
            made |= {"mode": "markers", "marker": marker(place, 9)}
        else:
            shape = {"shape": HATCHES[place % len(HATCHES)]}
            color = PALETTE[place % len(PALETTE)]
            made |= {"orientation": "h", "marker": {"color": color, "pattern": shape}}
        made["name"] = curve.label
        made |= {"x": _values(columns[self.x.column]), "y": _values(columns[self.y.column])}
        made |= self._hover(curve, panel)
        if self.spread:
            middle, low, high = (
                np.asarray(columns[name])
                for name in (self.x.column if along == "x" else self.y.column, *self.spread)
            )
            made[f"error_{along}"] = between(low, middle, high)
        if self.values:
            said = columns[self.x.column if along == "x" else self.y.column]
            made["text"] = [format.digits(value) for (value,) in rows(gaps(list(said)))]
            made["textposition"] = self.values
            if mark == "points":
                made |= {"mode": "markers+text", "cliponaxis": False}
        if curve.shape:
            made["line"] |= {"shape": curve.shape}
        if curve.thin:
            made["line"] |= {"width": 1}
            if "marker" in made:
                made["marker"]["symbol"] += "-open"
        found = made | curve.more
        return {key: value for key, value in found.items() if value is not None}

    def _hover(self, curve: Trace, panel: Panel) -> Plotly:
        """Return Plotly's template, and the columns that it has beside x and y."""
        columns, beside = curve.columns, list[str]()

        def place(found: re.Match[str]) -> str:
            name, how = found[1], found[2]
            if name in ("unit", "label"):
                return panel.unit if name == "unit" else curve.label
            words = any(isinstance(value, str) for value in columns[name])
            shown = "" if words else f":{how or ',.4~r'}"
            if name in (self.x.column, self.y.column):
                return f"%{{{'x' if name == self.x.column else 'y'}{shown}}}"
            if name not in beside:
                beside.append(name)
            return f"%{{customdata[{beside.index(name)}]{shown}}}"

        made = {
            "hovertemplate": re.sub(r"\{(\w+)(?::([^}]*))?\}", place, curve.hover or self.hover)
        }
        if not beside:
            return made
        arrays = (np.asarray(columns[name]) for name in beside)
        return made | {"customdata": rows(*arrays)}


def _values(values: Any) -> Any:
    """Words as they are, numbers packed."""
    some = list(values) if isinstance(values, list | tuple) else values
    if isinstance(some, list) and any(isinstance(value, str) for value in some):
        return some
    return packed(gaps(some) if isinstance(some, list) else some)


def between(low: Any, middle: Any, high: Any) -> Plotly:
    """Return an error bar between two values; none is drawn where all are points."""
    return {
        "type": "data",
        "visible": bool((np.nan_to_num(high - low) > 0).any()),
        "symmetric": False,
        "array": packed(high - middle),
        "arrayminus": packed(middle - low),
        "thickness": 1,
    }


def size_axis(least: float, most: float) -> Plotly:
    """Return a logarithmic axis of sizes, whose ticks are powers of two that people know."""
    ticks = [4**power for power in range(24) if least / 2 <= 4**power <= most * 2]
    return {
        "type": "log",
        "title": {"text": "Message size"},
        "tickvals": ticks,
        "ticktext": [format.binary(tick) for tick in ticks],
        "tickangle": 0 if len(ticks) <= 12 else -45,
    }


def sentence(*parts: str) -> str:
    """Return a title of what is known: `Chain, 8 nodes, tcp`."""
    text = ", ".join(part for part in parts if part)
    return text[:1].upper() + text[1:]
