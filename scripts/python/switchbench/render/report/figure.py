# SPDX-License-Identifier: BSD-3-Clause
"""One figure of a report as plain values, and what all figures share: sections, colours, arrays.

A figure knows nothing of the page: its layout has no fonts, background or colours of axes, so that
the same figure is drawn light, dark and on paper. Everything in it can be written as JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base import format

Plotly = dict[str, Any]
"""JSON as Plotly takes it: made here and in chart.py; figures say what is theirs alone."""

# Okabe and Ito (2008): told apart by all kinds of colour vision; black is left to the page.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
# Eight each, to seven colours: series of one colour differ in both.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "12px,3px", "2px,6px")
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")
# Of equal steps to the eye, with and without colour vision, and in grey (Nunez et al., 2018).
SCALE = "Cividis"
# Below the drawing, so that long names take nothing from its width, nor a title's room above it.
LEGEND = {
    "orientation": "h",
    "x": 0,
    "y": 0,
    "yref": "container",
    "yanchor": "bottom",
    "traceorder": "normal",
}


def titled(text: str, **more: Any) -> Plotly:
    """Return an axis with a title."""
    return {"title": {"text": text}, **more}


def named_rows(names: list[str]) -> Plotly:
    """Return a vertical axis of names, the first one at the top."""
    return {
        "type": "category",
        "autorange": "reversed",
        "automargin": True,
        "categoryorder": "array",
        "categoryarray": names,
    }


@dataclass(frozen=True)
class Figure:
    """What is drawn, and what its numbers are."""

    name: str  # anchor and file name: "heat-map-3"; unique in a report
    title: str
    definition: str  # what each number is, its unit, how it was measured; plain text
    data: list[Plotly]  # traces
    layout: Plotly  # without a theme
    section: str  # of sections.py
    height: int = 420  # pixels, at the page's full width
    disagrees: bool = False  # a prediction with what was measured
    scale: str = ""  # of a map's colours, a sentence of the definition


def heat_map(
    values: NDArray[Any], x: Any, y: list[str], measure: str, unit: str, hover: str, **more: Any
) -> tuple[Plotly, str]:
    """Return the trace of a map, and a sentence of its colours.

    These reach from the least to the greatest value: a map whose colours begin at 0 looks the same
    whatever its ports do. Values within 2 % have nearly one colour.
    """
    top = float(np.nanmax(values))
    low = min(float(np.nanmin(values)), 0.98 * top)
    trace = {
        "type": "heatmap",
        "z": packed(coarse(values)),
        "x": x,
        "y": y,
        "colorscale": SCALE,
        "hoverongaps": False,
        "colorbar": {"title": {"text": f"{measure}, {unit}", "side": "right"}},
        "hovertemplate": f"{hover}<extra></extra>",
        "zmin": low,
        "zmax": top,
    }
    said = f"Colours reach from {format.digits(low)} to {format.digits(top)} {unit}. "
    return trace | more, said


def line_style(number: int, points: int = 0) -> Plotly:
    """Return how the `number`th series of a figure is drawn: colour, dash and marker all differ.

    `points`: how many it has; many are drawn without markers, which would hide the line.
    """
    style: Plotly = {
        "line": {"color": PALETTE[number % len(PALETTE)], "dash": DASHES[number % len(DASHES)]},
        "mode": "lines",
    }
    if points <= 80:
        style["mode"] = "lines+markers"
        style["marker"] = marker(number)
    return style


def marker(number: int, size: int = 8) -> Plotly:
    """Return the marker of a figure's `number`th series."""
    return {
        "color": PALETTE[number % len(PALETTE)],
        "symbol": MARKERS[number % len(MARKERS)],
        "size": size,
    }


# Plotly's names of the types of numbers that it takes as they lie in memory.
_TYPES = {"float64": "f8", "float32": "f4", "int32": "i4", "uint32": "u4"} | {
    "int16": "i2", "uint16": "u2", "int8": "i1", "uint8": "u1"
}  # fmt: skip
_PLAIN = 24  # shorter ones are smaller, and easier to read, as lists


def packed(values: ArrayLike) -> Any:
    """Numbers for a trace: base64 of little-endian memory (Plotly's `bdata`), or a short list.

    NaN is what was not observed: null in a list, a gap in the drawing.
    """
    array: NDArray[Any] = np.asarray(values)
    if array.size <= _PLAIN:
        return _nulls(array.tolist())
    if array.dtype.name not in _TYPES:  # JavaScript has no whole numbers of 64 bits
        array = array.astype(np.float64 if abs(array).max() >= 1 << 31 else np.int32)
    kind = _TYPES[array.dtype.name]
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    found = {"dtype": kind, "bdata": base64.b64encode(little.tobytes()).decode("ascii")}
    if array.ndim > 1:
        found["shape"] = ", ".join(map(str, array.shape))
    return found


def coarse(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return the numbers of a map to 14 bits, 0.003 %.

    Which no eye and no hover tells from all of them, and which take half the room once they are
    compressed.
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = np.where(np.isnan(values), bits, (bits + 0x100) & 0xFFFFFE00)
    return rounded.astype(np.uint32).view(np.float32)


def unpacked(values: Any) -> NDArray[np.float64]:
    """Return what `packed` was given, as numbers; null and a gap are NaN."""
    if not isinstance(values, Mapping):
        return np.asarray(values, dtype=np.float64)
    array = np.frombuffer(base64.b64decode(values["bdata"]), dtype="<" + values["dtype"])
    shape = [int(part) for part in values.get("shape", str(len(array))).split(",")]
    return array.reshape(shape).astype(np.float64)


def gaps(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Numbers of which some were not observed, as an array with NaN."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def rows(*columns: NDArray[Any]) -> list[list[Any]]:
    """Return what a point's hover says beside its place.

    One list a point, null where nothing is known.
    """
    return [list(row) for row in zip(*(_nulls(column.tolist()) for column in columns), strict=True)]


def _nulls(values: Any) -> Any:
    if isinstance(values, list):
        return [_nulls(value) for value in values]
    return None if isinstance(values, float) and values != values else values
