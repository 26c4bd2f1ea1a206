# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a report as plain values, and the helpers that all figures share.

A figure is independent of the page: its layout has no fonts, background or colours of axes, so that
the same figure is drawn light, dark and on paper. All its values can be written as JSON.
"""

from __future__ import annotations

import base64
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base import format
from ..tables import Heading

Plotly = dict[str, Any]
"""JSON object that Plotly reads; only chart.py and the makers of figures write such objects."""

# Colours of Okabe and Ito (2008), distinct in all kinds of colour vision; black is left to the
# page.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
# Eight dashes and markers to seven colours: series of one colour differ in both.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "12px,3px", "2px,6px")
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")
# Colours of perceptually equal steps, with and without colour vision and in grey (Nunez, 2018).
SCALE = "Cividis"
# Legend below the drawing, so that long names take neither width nor the title's room.
LEGEND = {
    "orientation": "h",
    "x": 0,
    "y": 0,
    "yref": "container",
    "yanchor": "bottom",
    "traceorder": "normal",
}


def titled(text: str, **more: Any) -> Plotly:
    """Return the properties of a chart's axis with a title, for Plotly."""
    return {"title": {"text": text}, **more}


def named_rows(names: list[str]) -> Plotly:
    """Return a vertical axis of names, the first name at the top."""
    return {
        "type": "category",
        "autorange": "reversed",
        "automargin": True,
        "categoryorder": "array",
        "categoryarray": names,
    }


@dataclass(frozen=True)
class Figure:
    """Figure of a report: traces and layout for Plotly, with a definition of the numbers."""

    name: str  # anchor and file name, unique in a report, such as "heat-map-3"
    title: str
    definition: str  # plain text: what each number is, its unit, how it was measured
    data: list[Plotly]  # traces of Plotly
    layout: Plotly  # layout of Plotly, without a theme
    section: str  # heading of tables.Heading
    height: int = 420  # pixels, at the page's full width
    scale: str = ""  # sentence on a map's colours, added to the definition


# Plotly's names of the number types that it reads in their memory layout.
_TYPES = {"float64": "f8", "float32": "f4", "int32": "i4", "uint32": "u4"} | {
    "int16": "i2", "uint16": "u2", "int8": "i1", "uint8": "u1"
}  # fmt: skip
_PLAIN = 24  # values up to which a plain list is smaller than base64, and easier to read


def packed(values: ArrayLike) -> Any:
    """Return numbers for a trace as base64 of little-endian memory (Plotly's `bdata`) or as a list.

    NaN stands for a value that was not observed: null in a list, a gap in the drawing.
    """
    array: NDArray[Any] = np.asarray(values)
    if array.size <= _PLAIN:
        return _nulls(array.tolist())
    if array.dtype.name not in _TYPES:  # JavaScript has no 64-bit integers
        array = array.astype(np.float64 if abs(array).max() >= 1 << 31 else np.int32)
    kind = _TYPES[array.dtype.name]
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    found = {"dtype": kind, "bdata": base64.b64encode(little.tobytes()).decode("ascii")}
    if array.ndim > 1:
        found["shape"] = ", ".join(map(str, array.shape))
    return found


def coarse(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return the numbers of a map rounded to 14 bits, 0.003 %.

    No reader can see the difference, and the rounded numbers compress to half the size.
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = np.where(np.isnan(values), bits, (bits + 0x100) & 0xFFFFFE00)
    return rounded.astype(np.uint32).view(np.float32)


def gaps(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Return numbers as an array, with NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def rows(*columns: NDArray[Any]) -> list[list[Any]]:
    """Return the hover data of points: a list of column values for each point.

    NaN becomes null.
    """
    return [list(row) for row in zip(*(_nulls(column.tolist()) for column in columns), strict=True)]


def _nulls(values: Any) -> Any:
    if isinstance(values, list):
        return [_nulls(value) for value in values]
    return None if isinstance(values, float) and values != values else values


# --- specifications -------------------------------------------------------------------------------


_MARKED = 80  # max points of a line with markers: more markers would hide the line
HATCHES = ("", "/", "x", "-", ".")  # patterns of bars, which tell them apart without colour
_WRITTEN_OUT = {"exponentformat": "none", "separatethousands": True, "automargin": True}
_KINDS: dict[str, Plotly] = {
    "zero": {"rangemode": "tozero", "automargin": True}, "linear": {}, "sizes": {}, "names": {},
    "log": {"type": "log", "dtick": 1} | _WRITTEN_OUT, "phases": {},
    "counts": {"rangemode": "tozero"} | _WRITTEN_OUT,
}  # fmt: skip


Columns = dict[str, Any]
"""Columns of a figure: a name to a sequence or an array with a number or a word for each point."""


@dataclass(frozen=True)
class ChartAxis:
    """Axis of a figure, which shows a column of the curves."""

    title: str = ""  # title, in which {unit} is the panel's unit
    column: str = ""
    kind: str = "zero"  # key of _KINDS
    more: Plotly = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """Curve of a chart, with the columns that it is drawn from."""

    label: str
    columns: Columns
    # further properties for Plotly; None removes a property
    more: Plotly = field(default_factory=dict)
    # number of colour, dash and marker; None: the curve's place in the figure
    style: int | None = None
    shape: str = ""  # shape of a line between two points: hv, vh
    hover: str = ""  # hover text; empty: the specification's


@dataclass(frozen=True)
class Panel:
    """Contents of one figure: curves, unit and texts, which a ChartSpec draws."""

    common: str  # properties that all curves share, for the title
    curves: Sequence[Trace]
    key: str = ""  # end of the figure's name
    unit: str = ""
    words: str = ""  # text added to the definition
    height: int | None = None
    layout: Plotly = field(default_factory=dict)


@dataclass(frozen=True)
class ChartSpec:
    """Kind of figure: the properties that all figures of the kind share."""

    name: str
    title: str
    definition: str
    section: str
    mark: str  # line or bars
    x: ChartAxis
    y: ChartAxis
    # hover text with columns by name: "{label}, {ranks} nodes: {mean} {unit}, {share:.2f} %"
    hover: str
    # columns of the lower and upper end of a point's error bar
    spread: tuple[str, str] | None = None
    values: str = ""  # column of values that are written beside their marks
    height: int = 420
    legend: bool | None = None  # whether a legend is drawn; None: if there are several curves
    layout: Plotly = field(default_factory=dict)

    def draw(self, panel: Panel) -> Figure:
        """Return the figure with the curves and texts of a panel."""
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
            # logarithmic, with ticks at powers of 4
            least, most = min(found) / 2, max(found) * 2
            ticks = [4**power for power in range(24) if least <= 4**power <= most]
            made = {"type": "log", **titled("Message size", tickvals=ticks)}
            made |= {"ticktext": list(map(format.binary, ticks))}
            made |= {"tickangle": 0 if len(ticks) <= 12 else -45}
        elif axis.kind == "phases":
            # Phases are counted from 1, as the plan lists them.
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
        color = PALETTE[place % len(PALETTE)]
        if mark == "line":  # series differ in colour, dash and marker
            dash, symbol = DASHES[place % len(DASHES)], MARKERS[place % len(MARKERS)]
            made |= {"line": {"color": color, "dash": dash}, "mode": "lines"}
            if points <= _MARKED:
                made["mode"] = "lines+markers"
                made["marker"] = {"color": color, "symbol": symbol, "size": 8}
        else:
            shape = {"shape": HATCHES[place % len(HATCHES)]}
            made |= {"orientation": "h", "marker": {"color": color, "pattern": shape}}
        made["name"] = curve.label
        made |= {"x": _values(columns[self.x.column]), "y": _values(columns[self.y.column])}
        made |= self._hover(curve, panel)
        if self.spread:
            middle, low, high = (
                np.asarray(columns[name])
                for name in (self.x.column if along == "x" else self.y.column, *self.spread)
            )
            made[f"error_{along}"] = {  # hidden if no value has a spread
                "type": "data",
                "visible": bool((np.nan_to_num(high - low) > 0).any()),
                "symmetric": False,
                "array": packed(high - middle),
                "arrayminus": packed(middle - low),
                "thickness": 1,
            }
        if self.values:
            said = columns[self.x.column if along == "x" else self.y.column]
            made["text"] = [format.digits(value) for (value,) in rows(gaps(list(said)))]
            made["textposition"] = self.values
        if curve.shape:
            made["line"] |= {"shape": curve.shape}
        return {key: value for key, value in (made | curve.more).items() if value is not None}

    def _hover(self, curve: Trace, panel: Panel) -> Plotly:
        """Return Plotly's hover template, and the data columns that it needs beside x and y."""
        columns, beside = curve.columns, list[str]()

        def place(found: re.Match[str]) -> str:
            name, how = found.groups()
            if name in ("unit", "label"):
                return panel.unit if name == "unit" else curve.label
            words = any(isinstance(value, str) for value in columns[name])
            shown = "" if words else f":{how or ',.4~r'}"
            if name in (self.x.column, self.y.column):
                return f"%{{{'x' if name == self.x.column else 'y'}{shown}}}"
            if name not in beside:
                beside.append(name)
            return f"%{{customdata[{beside.index(name)}]{shown}}}"

        template = re.sub(r"\{(\w+)(?::([^}]*))?\}", place, curve.hover or self.hover)
        data = rows(*(np.asarray(columns[name]) for name in beside))
        return {"hovertemplate": template} | ({"customdata": data} if beside else {})


def _values(values: Any) -> Any:
    """Return words unchanged and numbers packed."""
    some = list(values) if isinstance(values, list | tuple) else values
    if isinstance(some, list) and any(isinstance(value, str) for value in some):
        return some
    return packed(gaps(some) if isinstance(some, list) else some)


_DECLARED = tomllib.loads(Path(__file__).with_name("figures.toml").read_text("utf-8"))
WORDS = _DECLARED.pop("words")
"""Definitions of maps, names and definitions of kinds of times, and advice on suspects."""
SPECS = {
    name: ChartSpec(
        **{"name": name, "section": Heading[declared.pop("section")]}
        | {axis: ChartAxis(**declared.pop(axis)) for axis in "xy"}
        | declared
    )
    for name, declared in _DECLARED.items()
}


def sentence(*parts: str) -> str:
    """Return a title of the parts that are not empty, such as `Chain, 8 nodes, tcp`."""
    text = ", ".join(part for part in parts if part)
    return text[:1].upper() + text[1:]
