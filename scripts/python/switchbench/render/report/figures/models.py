# SPDX-License-Identifier: BSD-3-Clause
"""What models of contention predict against what was measured (Zhu et al. 2012, Figure 2).

The network is that of the results' own lab; a site of real hosts says nothing of its switches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ....analysis.data import Measured
from ....base.errors import ConfigurationError, SwitchbenchError
from ....base.format import unit_for
from ....predict.measured import CLOSE, share_close
from ....predict.settings import PredictedSetting, settings_of
from ....records.plan_file import read_plan
from ....topology.fabric.routes import Rates
from ...tables.sections import PREDICTED
from ..chart import ChartAxis, ChartSpec, Panel, Trace, sentence
from ..figure import PALETTE, Figure, Plotly, marker, note, packed, titled
from .series import in_parts

RATES_ARE = (
    "Each point is one flow in one phase: the layer-1 rate that a model predicts, and the one that "
    "its destination saw (the median of its repeats). In the band the error of the time, "
    "measured / predicted - 1, is at most 10 %, the margin of Zhu et al. 2012. The legend says how "
    "many flows are in it; a click there shows the other models. "
)
ERRORS_ARE = (
    "Shares of flows by the error of their time, (predicted - measured) / measured, in steps of 10 "
    "%; what is beyond is in the outermost. The darker bars are the margin of 10 %, the number "
    "above them the share of flows within it; frames are around the models that have most of "
    "a set. (Zhu et al. 2012, Figure 2) "
)

_AGREES = 0.9  # share of flows within the margin of the best model
_DRAWN = 4_000  # points of a model
_SETS = 9  # side by side
_EDGES = np.arange(-1.0, 1.0 + 1e-9, 0.1)
_ROW = 120  # pixels
_TOP = 0.93  # of the drawing; headings are above
_ERROR = {
    "range": [-100, 100], "tickvals": [-100, -50, 0, 50, 100], "showgrid": False,
    "ticktext": ["", "-50", "0", "50", ""],
}  # fmt: skip
_SHARE = {"range": [0, 105], "tickvals": [0, 50, 100], "automargin": True}


def figures(measured: Measured) -> Iterator[Figure]:
    """For each transport the rates, and the errors of up to nine settings side by side."""
    if not any(plan["traffic"] == "stream" for plan in measured.summary["plans"]):
        return
    try:
        run = read_plan(measured.directory)
    except ConfigurationError as error:
        measured.damage.append(f"what models predict is not drawn: {error}")
        return
    try:
        sets = list(settings_of(measured, run))
    except SwitchbenchError as error:
        measured.notes.append(f"What models predict is not drawn: {error}")
        return
    for transport in dict.fromkeys(one.trial.transport for one in sets):
        mine = [one for one in sets if one.trial.transport == transport]
        yield _rates(transport, mine)
        for key, some in in_parts(mine, _SETS):
            yield _histograms(transport, key or "-1", some)


# --- drawing -----------------------------------------------------------------------------------


def _ranked(sets: Sequence[PredictedSetting]) -> list[tuple[str, float]]:
    """Models with their share of flows within the margin, the best first."""
    errors = {
        model: np.concatenate([one.errors(model) for one in sets]) for model in sets[0].predicted
    }
    found = [(model, share_close(error)) for model, error in errors.items()]
    return sorted(found, key=lambda pair: -pair[1])


_RATES = ChartSpec(
    "predicted-", "rates predicted and measured", RATES_ARE, PREDICTED, "points",
    ChartAxis("Predicted, {unit}", "predicted"), ChartAxis("Measured, {unit}", "measured"),
    "predicted {predicted}, measured {measured} {unit}", height=560, legend=True,
    layout={"hovermode": "closest"},
)  # fmt: skip


def _rates(transport: str, sets: Sequence[PredictedSetting]) -> Figure:
    measured = np.concatenate([one.measured for one in sets]) / 1e6
    unit = unit_for(measured.tolist())
    chosen = np.linspace(0, measured.size, min(_DRAWN, measured.size), endpoint=False).astype(int)
    ranked, names = _ranked(sets), list(sets[0].predicted)
    traces = [*_band(float(measured.max()) * unit.scale)]
    for number, (model, close) in enumerate(ranked):
        predicted = np.concatenate([one.predicted[model] for one in sets]) / 1e6
        columns = {
            "predicted": (predicted[chosen] * unit.scale).astype(np.float32),
            "measured": (measured[chosen] * unit.scale).astype(np.float32),
        }
        more = {
            "marker": marker(names.index(model), 5) | {"opacity": 0.6},
            "visible": True if number == 0 else "legendonly",
        }
        traces.append(Trace(f"{model}: {close:.1%}", columns, more=more))
    few = f"Drawn are {chosen.size:,} of {measured.size:,} flows."
    words = few if chosen.size < measured.size else ""
    drawn = _RATES.draw(Panel(transport, traces, transport, unit.name, words))
    return replace(drawn, disagrees=ranked[0][1] < _AGREES)


def _band(most: float) -> Iterator[Trace]:
    """Where the error is within the margin, and its middle."""
    ends = [0.0, 1.15 * most]
    x = [*ends, *reversed(ends)]
    y = [(1 + CLOSE) * end for end in ends] + [(1 - CLOSE) * end for end in reversed(ends)]
    plain = {"mode": "lines", "marker": None, "hoverinfo": "skip", "hovertemplate": None}
    area = {"fill": "toself", "fillcolor": "rgba(127,127,127,0.25)"}
    line = {"width": 0, "color": "#7F7F7F"}
    middle = {"width": 1, "color": "#7F7F7F", "dash": "dot"}
    yield Trace("within 10 %", {"predicted": x, "measured": y}, more=plain | area | {"line": line})
    yield Trace(
        "as predicted", {"predicted": ends, "measured": ends}, more=plain | {"line": middle}
    )


def _histograms(transport: str, key: str, sets: Sequence[PredictedSetting]) -> Figure:
    """A row a model, the best first; a column a setting."""
    models = [model for model, _ in _ranked(sets)]
    best = [_ranked([one])[0][1] for one in sets]
    labels = _labels(sets)
    data: list[Plotly] = []
    layout: Plotly = {
        "showlegend": False, "bargap": 0.05, "annotations": [], "shapes": [],
        "grid": {
            "rows": len(models), "columns": len(sets), "pattern": "coupled", "xgap": 0.07,
            "ygap": 0.2, "domain": {"y": [0, _TOP]},
        },
    }  # fmt: skip
    for column, label in enumerate(labels):
        x = _axis("x", column)
        layout |= {f"xaxis{x[1:]}": _ERROR | (titled("error, %") if column == 0 else {})}
        place = note("<br>".join(label), 0.5, _TOP, "center", "bottom", font={"size": 11})
        layout["annotations"].append(place | {"xref": f"{x} domain"})
    for row, model in enumerate(models):
        y = _axis("y", row)
        layout |= {f"yaxis{y[1:]}": _SHARE | {"title": {"text": model, "font": {"size": 11}}}}
        for column, one in enumerate(sets):
            x, errors = _axis("x", column), one.errors(model)
            name = f"{model}, {', '.join(labels[column])}"
            data.append(_bars(errors, name) | {"xaxis": x, "yaxis": y})
            cell, close = {"xref": f"{x} domain", "yref": f"{y} domain"}, share_close(errors)
            layout["annotations"].append(note(f"{close:.1%}", 1, 1, "right", "top") | cell)
            if close == best[column]:
                frame = {"type": "rect", "x0": 0, "x1": 1, "y0": 0, "y1": 1} | cell
                layout["shapes"].append(frame | {"line": {"color": PALETTE[1], "width": 2}})
    return Figure(
        name=f"errors-{transport}{key}",
        title=sentence("errors of predicted times", transport),
        definition=ERRORS_ARE,
        data=data,
        layout=layout,
        section=PREDICTED,
        height=170 + _ROW * len(models),
    )


def _labels(sets: Sequence[PredictedSetting]) -> list[list[str]]:
    """By setting, the facets that not all of them share; of a single one all."""
    facets = [[facet for facet in one.facets if facet] for one in sets]
    shared = set.intersection(*map(set, facets)) if len(sets) > 1 else set()
    return [[facet for facet in some if facet not in shared] or some for some in facets]


def _axis(letter: str, number: int) -> str:
    """Plotly's name of it; the first has no number."""
    return f"{letter}{number + 1}" if number else letter


def _bars(errors: Rates, name: str) -> Plotly:
    inside = np.clip(errors, _EDGES[0] + 1e-9, _EDGES[-1] - 1e-9)
    counts, _ = np.histogram(inside, _EDGES)
    middles = (_EDGES[:-1] + _EDGES[1:]) / 2
    close = np.abs(middles) < CLOSE
    return {
        "type": "bar",
        "name": name,
        "x": packed(np.round(100 * middles, 6)),
        "y": packed(100 * counts / errors.size),
        "marker": {"color": [PALETTE[0] if near else PALETTE[5] for near in close]},
        "customdata": [[f"{100 * low:+.0f} to {100 * (low + 0.1):+.0f} %"] for low in _EDGES[:-1]],
        "hovertemplate": "error %{customdata[0]}: %{y:.1f} % of flows",
    }
