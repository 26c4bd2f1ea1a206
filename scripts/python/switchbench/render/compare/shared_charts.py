# SPDX-License-Identifier: BSD-3-Clause
"""Several programs' figures of one definition, drawn together: against the size where there are
several, else as ratios to the first program's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from ...base import format
from ...compare.shared import Shared, SharedRow
from ..report.figure import LEGEND, Figure, line_style, marker, named_rows
from .tables import size_words

_LEAST_SIZES = 3  # of a line

_SIZES = (
    "What several programs measured by one definition (doc/compare.md), against the message's size."
)
_RATIOS = (
    "Figures that several programs have by one definition, each as a multiple of the first "
    "program's that has it. More is better of rates, less of times."
)


def charts(shared: Shared, section: str) -> Iterator[Figure]:
    """A figure for each measure and number of ranks with sizes, and one for all others."""
    rest: list[SharedRow] = []
    for (measure, ranks), group in groupby(shared.rows, lambda row: row.key[:2]):
        rows = list(group)
        sized = [row for row in rows if row.key.size]
        if len(sized) >= _LEAST_SIZES:
            yield _by_size(f"shared-{measure}-{ranks}", shared, sized, section)
        else:
            rest += rows
    if rest:
        yield _ratios(shared, rest, section)


def _by_size(name: str, shared: Shared, rows: Sequence[SharedRow], section: str) -> Figure:
    common = rows[0].key.common
    written = {"type": "log", "exponentformat": "none", "separatethousands": True}
    unit = common.unit.replace("us", "µs")
    traces = []
    for number, voice in enumerate(shared.voices):
        known = [(row, v) for row in rows if (v := row.values[number]) is not None]
        traces.append(
            line_style(number, len(known))
            | {
                "type": "scatter",
                "name": escape(voice, quote=False),
                "x": [row.key.size for row, _ in known],
                "y": [value for _, value in known],
                "customdata": [[size_words(row.key.size)] for row, _ in known],
                "hovertemplate": f"%{{customdata[0]}}<br>%{{y:.4g}} {unit}",
            }
        )
    return Figure(
        name=name,
        title=f"{common.title}, {format.of(rows[0].key.ranks, 'rank')}",
        definition=_SIZES,
        data=[trace for trace in traces if trace["x"]],
        layout={
            "xaxis": {"title": {"text": "Message, bytes"}, **written},
            "yaxis": {"title": {"text": unit}, **written, "automargin": True},
            "legend": LEGEND,
        },
        section=section,
    )


def _ratios(shared: Shared, rows: Sequence[SharedRow], section: str) -> Figure:
    names = [_name(row) for row in rows]
    traces = []
    for number, voice in enumerate(shared.voices):
        known = [(name, row) for name, row in zip(names, rows, strict=True) if row.values[number]]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": escape(voice, quote=False),
                "marker": marker(number, 9),
                "x": [row.ratios[number] for _, row in known],
                "y": [name for name, _ in known],
                "customdata": [[_said(row, number)] for _, row in known],
                "hovertemplate": "%{y}<br>%{x:.3f}: %{customdata[0]}",
            }
        )
    axis = {"type": "log", "exponentformat": "none", "title": {"text": "Of the first program's"}}
    return Figure(
        name="shared-ratios",
        title="By several programs, as ratios",
        definition=_RATIOS,
        data=[trace for trace in traces if trace["x"]],
        layout={"xaxis": axis, "yaxis": named_rows(names), "legend": LEGEND},
        section=section,
        height=160 + 32 * len(rows),
    )


def _name(row: SharedRow) -> str:
    size = "" if row.key.size is None else f", {size_words(row.key.size)}"
    return f"{row.key.common.title}, {row.key.ranks}{size}"


def _said(row: SharedRow, number: int) -> str:
    unit = row.key.common.unit.replace("us", "µs")
    return f"{format.scientific(row.values[number])} {unit}"
