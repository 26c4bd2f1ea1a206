# SPDX-License-Identifier: BSD-3-Clause
"""A comparison's figures: differences with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ...compare.comparison import Compared, Comparison
from ...compare.differences import DifferenceRow
from ..report.chart import ChartAxis, ChartSpec, Panel, Trace
from ..report.figure import Figure, plain
from .tables import said

PATTERNS, PHASES = "By pattern", "By phase"

_DIFFERENCE = (
    "Difference of the means over repeats, in percent of the baseline's. Bars are its confidence "
    "interval (Welch); a point without one has too few repeats to tell. Rates are payload per "
    "flow, one way: the mean of all flows, and the slowest."
)
_TICK_LETTERS = 44  # of a line beside the chart
# Measures of the differences' figure, each so much of a row aside: none hides another's interval.
_DRAWN = {"mean_rate": -0.14, "slowest_rate": 0.14}


def charts(comparison: Comparison) -> Iterator[Figure]:
    """All figures of a comparison, in the page's order."""
    for number, one in enumerate(comparison.compared):
        if _of(one.plans, "mean_rate"):
            yield _by_pattern(f"patterns-{number}", one)


# --- differences ---------------------------------------------------------------------------------

_HOVER = "{of} {verdict}<br>{base} → {other}<br>{percent:+.2f} %"


def _by_pattern(name: str, one: Compared) -> Figure:
    """A row for each pair of cases that has one of these: the mean and the slowest."""
    base, other = one.match.base.name, one.match.other.name
    pairs = list(dict.fromkeys(row.pair for row in _of(one.plans, *_DRAWN)))
    rows = {
        "tickvals": list(range(len(pairs))), "automargin": True,
        "ticktext": [_lines(one.match.pairs[pair].title, _TICK_LETTERS) for pair in pairs],
        "range": [len(pairs) - 0.5, -0.5], "showgrid": False, "zeroline": False,
    }  # fmt: skip
    axis = plain(f"Difference of {other}, % of {base}")
    spec = ChartSpec(
        name, f"{other} against {base}", _DIFFERENCE, PATTERNS, "points",
        ChartAxis(axis, "percent", "linear", {"zeroline": True}),
        ChartAxis("", "place", "linear", rows), _HOVER, half="half", legend=True,
    )  # fmt: skip
    height = 160 + 64 * max(len(pairs), 2)
    return spec.draw(Panel("by pattern", list(_traces(one.plans, pairs)), height=height))


def _of(rows: Sequence[DifferenceRow], *measures: str) -> list[DifferenceRow]:
    """The rows of these measures that have a difference to draw."""
    return [row for row in rows if row.measure.name in measures and row.percent is not None]


def _traces(rows: Sequence[DifferenceRow], pairs: Sequence[int]) -> Iterator[Trace]:
    """Percents at their places, each measure a little aside."""
    for measure, aside in _DRAWN.items():
        if drawn := _of(rows, measure):
            columns = {
                "percent": [row.percent for row in drawn],
                "place": [pairs.index(row.pair) + aside for row in drawn],
                "of": [plain(row.of) for row in drawn],
                "verdict": [row.verdict for row in drawn],
                "base": [said(row.base, row.measure.unit) for row in drawn],
                "other": [said(row.other, row.measure.unit) for row in drawn],
                "half": [_half(row) for row in drawn],
            }
            yield Trace(drawn[0].measure.title, columns)


def _half(row: DifferenceRow) -> float | None:
    """Half the interval, in percent of the baseline."""
    if row.high is None or row.difference is None or not row.base:
        return None
    return 100.0 * (row.high - row.difference) / abs(row.base)


def _lines(text: str, letters: int) -> str:
    """Lines of so many letters at the most, with numbers and their units kept together."""
    for unit in ("%", "B", "KiB", "MiB", "ranks"):
        text = text.replace(f" {unit}", f"\N{NO-BREAK SPACE}{unit}")
    return "<br>".join(wrap(plain(text), letters))
