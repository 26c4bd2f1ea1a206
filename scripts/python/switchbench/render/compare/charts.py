# SPDX-License-Identifier: BSD-3-Clause
"""A comparison's figures: the Kiviat chart of ratios, and differences with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ...compare.balance import Axis
from ...compare.comparison import Compared, Comparison
from ...compare.differences import DifferenceRow
from ...compare.subjects import Subject
from ..report.chart import ChartAxis, ChartSpec, Panel, Trace
from ..report.figure import LEGEND, Figure, line_style, plain
from . import size_charts
from .tables import said

RATIOS, PATTERNS, PHASES = "Ratios", "By pattern", "By phase"
BALANCE, PROGRAMS = "Balance by size of the system", "By several programs"
STEPS = "Dependent steps"

_KIVIAT = (
    "Ratios as in Figure 5 of Saini et al. (2005): on each axis the best result is 1. Of a pattern "
    "the payload of all flows together counts, of a latency the reciprocal. "
)
_DIVIDED = (
    "Throughputs are divided by the system's HPL, so that they say how communication balances "
    "computing; HPL itself and latencies are not."
)
_NOT_DIVIDED = "HPL was not given, so nothing is divided: networks alone are compared."
_DIFFERENCE = (
    "Difference of the means over repeats, in percent of the baseline's. Bars are its confidence "
    "interval (Welch); a point without one has too few repeats to tell. Rates are payload per "
    "flow, one way: the mean of all flows, and the slowest."
)
_LETTERS, _TICK_LETTERS = 26, 44  # of a line around the chart, and beside one
# Measures of the differences' figure, each so much of a row aside: none hides another's interval.
_DRAWN = {"mean_rate": -0.14, "slowest_rate": 0.14}
_MOST_AXES = 24  # of a chart that can be read


def charts(comparison: Comparison) -> Iterator[Figure]:
    """All figures of a comparison, in the page's order."""
    balance = comparison.balance
    yield from size_charts.shared(comparison.shared, PROGRAMS)
    if balance.reason is None:
        yield kiviat(comparison.subjects, balance.axes, balance.divided)
    yield from size_charts.balance(comparison.subjects, comparison.systems, BALANCE)
    yield from size_charts.steps(comparison.compared, STEPS)
    for number, one in enumerate(comparison.compared):
        if _of(one.plans, "mean_rate"):
            yield _by_pattern(f"patterns-{number}", one)


def kiviat(subjects: Sequence[Subject], axes: Sequence[Axis], divided: bool) -> Figure:
    """One closed line for each result."""
    excluded = ""
    if len(axes) > _MOST_AXES:
        excluded = f" Of {len(axes)} ratios the first {_MOST_AXES} are drawn: the table has all."
        axes = axes[:_MOST_AXES]
    spokes = [_lines(axis.title, _LETTERS) for axis in axes]
    around = [*range(len(axes)), 0]  # the line is closed
    traces = [
        line_style(number)
        | {
            "type": "scatterpolar",
            "name": plain(subject.name),
            "r": [round(axes[i].shares[number], 6) for i in around],
            "theta": [spokes[i] for i in around],
            "customdata": [[_worth(axes[i], number)] for i in around],
            "hovertemplate": "%{theta}<br>%{r:.3f} of the best: %{customdata[0]}",
            "fill": "toself",
            "fillcolor": "rgba(127,127,127,0.08)",
        }
        for number, subject in enumerate(subjects)
    ]
    radial = {"range": [0, 1.02], "tickvals": [0.25, 0.5, 0.75, 1.0], "angle": 90, "tickangle": 90}
    angular = {"direction": "clockwise", "rotation": 90}
    return Figure(
        name="ratios",
        title="Ratios, the best of each axis is 1",
        definition=_KIVIAT + (_DIVIDED if divided else _NOT_DIVIDED) + excluded,
        data=traces,
        layout={
            "polar": {"radialaxis": radial, "angularaxis": angular},
            "margin": {"l": 120, "r": 120, "t": 60, "b": 80},
            "legend": LEGEND,
        },
        section=RATIOS,
        height=600,
    )


def _worth(axis: Axis, number: int) -> str:
    worth = said(axis.values[number], axis.unit)
    return worth if axis.basis is None else f"{worth}<br>of {axis.basis.words}"


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
    for unit in ("%", "B", "KiB", "MiB", "ranks", "/ HPL", "HPL"):
        text = text.replace(f" {unit}", f"\N{NO-BREAK SPACE}{unit}")
    return "<br>".join(wrap(plain(text), letters))
