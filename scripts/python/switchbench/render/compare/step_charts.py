# SPDX-License-Identifier: BSD-3-Clause
"""Times of steps of several results against the message's size, a line for each result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from ...base import format
from ...compare.comparison import Compared
from ...compare.differences import DifferenceRow
from ...compare.match import Pair
from ...compare.settings import SIZE
from ..report.figure import LEGEND, Figure, line_style

_LEAST_SIZES = 2  # of a line
_DEFINITION = (
    "IMB's t_avg of each result against the message's size: mean over ranks of a repetition, mean "
    "over repeats (of PingPong half of it). Less is better. Both axes are logarithmic; messages of "
    "0 bytes are in the table alone."
)

_Curve = dict[int, float]  # time in microseconds by size


def charts(every: Sequence[Compared], section: str) -> Iterator[Figure]:
    """A figure for each function at one setting that has several sizes, of all results."""
    titles: dict[tuple[Any, ...], str] = {}
    curves: dict[tuple[Any, ...], dict[str, _Curve]] = {}
    for one in every:
        names = (one.match.base.name, one.match.other.name)
        for row in (row for row in one.plans if row.measure.name == "t_avg"):
            pair = one.match.pairs[row.pair]
            size = pair.base.plans[0]["size"]
            key = _key(pair)
            titles.setdefault(key, f"{pair.base.matrix}, {pair.base.ranks}")
            for name, value in zip(names, _values(row), strict=True):
                if size and value is not None:
                    curves.setdefault(key, {}).setdefault(name, {})[size] = value
    drawn = [key for key in curves if max(map(len, curves[key].values())) >= _LEAST_SIZES]
    for number, key in enumerate(drawn):
        yield _figure(f"steps-{number}", titles[key], curves[key], section)


def _key(pair: Pair) -> tuple[Any, ...]:
    """The baseline's case without its size."""
    return tuple((name, word) for name, word in pair.base.settings.items() if name != SIZE)


def _values(row: DifferenceRow) -> tuple[float | None, float | None]:
    return row.base, row.other


def _figure(name: str, title: str, curves: dict[str, _Curve], section: str) -> Figure:
    written = {"type": "log", "exponentformat": "none", "separatethousands": True}
    traces = [
        line_style(number, len(curve))
        | {
            "type": "scatter",
            "name": escape(result, quote=False),
            "x": sorted(curve),
            "y": [curve[size] for size in sorted(curve)],
            "customdata": [[format.binary(size)] for size in sorted(curve)],
            "hovertemplate": "%{customdata[0]}<br>%{y:.4g} µs",
        }
        for number, (result, curve) in enumerate(curves.items())
    ]
    return Figure(
        name=name,
        title=f"Time of {title}",
        definition=_DEFINITION,
        data=traces,
        layout={
            "xaxis": {"title": {"text": "Message, bytes"}, **written},
            "yaxis": {"title": {"text": "µs"}, **written, "automargin": True},
            "legend": LEGEND,
        },
        section=section,
    )
