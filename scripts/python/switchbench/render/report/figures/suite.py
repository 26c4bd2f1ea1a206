# SPDX-License-Identifier: BSD-3-Clause
"""The graphs that the documents of suites ask for: rates over frame sizes, losses over loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ....analysis.data import Measured
from ....search.suites.declaration import OVERHEAD_BYTES, Subtest
from ...suite_notes import suite_of
from ...tables import sections
from ..chart import ChartAxis, ChartSpec, Columns, Panel, Trace
from ..figure import Figure
from .series import Entry, by

_CURVE = 200  # points
_ROUND = [digit * 10**power for power in range(10) for digit in (1, 2, 5)]  # frames/s
_SPAN = {"range": [0, 100], "rangemode": "normal"}
_RATES = ChartSpec(
    "suite", "frame rate over frame size",
    "Rate of a port by frame size: what was measured, and the theoretical max of the medium, line "
    "rate / (8 x (size + 20)).",
    sections.SUITE, "line",
    ChartAxis("Frame size, bytes", "size", "log"),
    ChartAxis("Frames/s", "rate", "log", {"tickvals": _ROUND}), "{size:d} B: {rate} frames/s",
)  # fmt: skip
_OF_ONE_SIZE = ChartAxis("Frames/s", "rate", "counts")  # rates between two round ones have no tick
_LOSSES = ChartSpec(
    "suite", "frame loss rate over load",
    "Lost frames of 100 offered ones by intended load, which is in percent of the theoretical rate "
    "of the size.",
    sections.SUITE, "line",
    ChartAxis("Load, % of line rate", "load", "linear", _SPAN),
    ChartAxis("Lost frames, %", "loss", "linear", _SPAN), "{load} %: {loss} % lost",
)  # fmt: skip


def figures(measured: Measured) -> Iterator[Figure]:
    """Of each subtest that has a rate by size or a loss by load."""
    suite = suite_of(measured.summary)
    if suite is None:
        return
    for subtest in suite.subtests:
        keys = {value.key for value in subtest.values}
        every = measured.summary["suite"]["subtests"]
        entries = [one for one in every if one["subtest"] == subtest.name]
        where, name = f"{suite.document}, {subtest.section}", f"{suite.name}-{subtest.name}"
        if "theoretical_max" in keys and entries:
            sizes = sorted({entry["size"] for entry in entries})
            axis = replace(_RATES.x, more={"tickvals": sizes})
            title = f"{subtest.title} over frame size"
            rates = replace(_RATES, name=name, title=title, x=axis)
            if len(sizes) == 1:
                rates = replace(rates, y=_OF_ONE_SIZE)
            yield rates.draw(Panel(where, list(_rates(subtest, entries))))
        elif {"load_percent", "loss"} <= keys and entries:
            losses = replace(_LOSSES, name=name, title=f"{subtest.title} over load")
            yield losses.draw(Panel(where, list(_losses(entries))))


def _rates(subtest: Subtest, entries: Sequence[Entry]) -> Iterator[Trace]:
    yield Trace("theoretical max", _theoretical(entries))
    ordered = sorted(entries, key=lambda entry: str(entry["variant"]))
    for variant, some in by(ordered, "variant").items():
        for value in subtest.values:
            if value.title == "throughput":
                yield Trace(f"{value.title}, {variant}", _column(some, value.key))


def _column(entries: Sequence[Entry], key: str) -> Columns:
    points = {entry["size"]: entry["rows"][0].get(key) for entry in entries}
    return {"size": sorted(points), "rate": [points[size] for size in sorted(points)]}


def _theoretical(entries: Sequence[Entry]) -> Columns:
    """Return a curve: between two sizes the max is above a straight line on logarithmic axes.

    Where a line through results does not cross it.
    """
    max_fps = _column(entries, "theoretical_max")
    (low, *_), (*_, high) = max_fps["size"], max_fps["size"]
    known = [(size, fps) for size, fps in zip(*max_fps.values(), strict=True) if fps]
    if low == high or not known:
        return max_fps
    size, fps = known[0]
    sizes = np.geomspace(low, high, _CURVE)
    return {"size": sizes, "rate": fps * (size + OVERHEAD_BYTES) / (sizes + OVERHEAD_BYTES)}


def _losses(entries: Sequence[Entry]) -> Iterator[Trace]:
    for entry in entries:
        rows = sorted(entry["rows"], key=lambda row: row["load_percent"] or 0.0)
        columns = {
            "load": [row["load_percent"] for row in rows],
            "loss": [row["loss"] for row in rows],
        }
        # At 100 % a marker is whole.
        yield Trace(f"{entry['size']} B, {entry['variant']}", columns, more={"cliponaxis": False})
