# SPDX-License-Identifier: BSD-3-Clause
"""Dependent steps: the time of each function against size."""

from __future__ import annotations

from collections.abc import Iterator

from ....analysis.data import Measured
from ....base import format
from ....records.document.schema import at
from ...tables import sections
from ..chart import ChartAxis, ChartSpec, Panel, Trace
from ..figure import gaps
from .series import Entry, by

TIME_IS = (
    "Time of one repetition: the mean over ranks and repeats, each rank's own from a barrier until "
    "its last step is complete. The cursor shows IMB's t_min and t_max over ranks (of PingPong IMB "
    "halves them), median and 99 % of single repetitions. Messages of 0 bytes are in the table "
    "alone. Both axes are logarithmic. (Saini et al. 2005, Figures 7 to 15)"
)


def _functions(measured: Measured) -> Iterator[Panel]:
    """Yield times by size of each path and number of ranks."""
    drawn = (_drawn(entry) for entry in at(measured.summary, "steps.functions") or ())
    kinds = by([curve for curve in drawn if len(curve["points"]) > 1], _path)
    for number, (path, some) in enumerate(kinds.items(), start=1):
        yield Panel(path, [_curve(curve) for curve in some], f"-{number}")


def _path(entry: Entry) -> str:
    return f"{format.of(entry['ranks'], 'rank')}, {entry['transport']} in {entry['network']}"


def _drawn(entry: Entry) -> Entry:
    """Return what of a function can stand on logarithmic axes."""
    points = [
        point
        for point in entry["points"]
        if point["size"] and point["repetition_us"]["mean"] is not None
    ]
    return {**entry, "points": points}


def _curve(curve: Entry) -> Trace:
    points = curve["points"]
    shown = {
        name: gaps([point[part][key] for point in points])
        for name, part, key in (
            ("mean", "repetition_us", "mean"), ("t_min", "imb", "t_min_us"),
            ("t_max", "imb", "t_max_us"), ("p50", "repetition_us", "p50"),
            ("p99", "repetition_us", "p99"),
        )
    }  # fmt: skip
    sizes = [point["size"] for point in points]
    words = {"size": sizes, "words": list(map(format.size_words, sizes))}
    return Trace(format.pattern(curve), words | shown)


figures = ChartSpec(
    "steps", "time by message size", TIME_IS, sections.STEPS, "line",
    ChartAxis("Message size", "size", "sizes"), ChartAxis("Repetition, µs", "mean", "log"),
    "{words}: mean {mean} µs<br>over ranks {t_min} to {t_max} µs<br>median {p50}, 99 % {p99} µs",
    _functions, height=460, legend=True,
)  # fmt: skip
