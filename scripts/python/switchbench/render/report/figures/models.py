# SPDX-License-Identifier: BSD-3-Clause
"""What models of contention foretell against what was measured (Zhu et al. 2012, Figure 2).

The network is that of the results' own lab; a site of real hosts says nothing of its switches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....analysis.data import Measured
from ....analysis.tables import PlanKey
from ....base import format
from ....base.errors import ConfigurationError, SwitchbenchError
from ....base.format import Unit, unit_for
from ....base.model import Run, Trial
from ....predict.measured import CLOSE, share_close
from ....predict.models import SLOW, USUAL
from ....predict.outlook import Oracle, Outlook, fabric_of, points, stream_share
from ....predict.recorded import Recorded, by_phase, ranks_of
from ....records.plan_file import read_plan
from ....topology.fabric.routes import Ranks, Rates
from ...tables.sections import FORETOLD
from ..chart import sentence
from ..figure import LEGEND, PALETTE, Figure, marker, packed

RATES_ARE = (
    "Each point is one flow in one phase: the layer-1 rate that a model foretells it, and the one "
    "that its destination saw (the median of its repeats). In the band the error of the time, "
    "measured / foretold - 1, is at most 10 %, the margin of Zhu et al. 2012. The legend says how "
    "many flows are in it; a click there shows the other models. "
)
ERRORS_ARE = (
    "Shares of flows by the error of their time, (foretold - measured) / measured, in steps of 10 "
    "%; what is beyond is in the outermost. The darker bars are the margin of 10 %, the number "
    "above them the share of flows within it; frames are around the models that have most of "
    "a set. (Zhu et al. 2012, Figure 2) "
)

_AGREES = 0.9  # share of flows within the margin of the best model
_MOST_FLOWS = 400_000  # of a run: some seconds
_MOST_SLOW_FLOWS = 10_000  # for the models that go through flows one by one
_DRAWN = 4_000  # points of a model
_SETS = 9  # side by side
_EDGES = np.arange(-1.0, 1.0 + 1e-9, 0.1)
_ROW = 120  # pixels
_TOP = 0.93  # of the drawing; headings are above


@dataclass(frozen=True)
class _Set:
    """The flows of one setting that were foretold and measured."""

    trial: Trial
    measured: Rates
    foretold: dict[str, Rates]

    @property
    def facets(self) -> list[str]:
        """What tells it apart from other settings, in words."""
        trial = self.trial
        said = [
            format.pattern({"pattern": "", "parameters": {name: value}}).strip()
            for name, value in trial.parameters.items()
        ]
        ranks = sum(len(part.ranks) for part in trial.parts)
        size = format.size({"size": list(trial.sizes), "size_unit": trial.size_unit})
        load = f"{trial.load.percent:g} % of line" if trial.load.percent else ""
        return [trial.pattern["name"], *said, format.of(ranks, "node"), size, load]

    def errors(self, model: str) -> Rates:
        return self.measured / self.foretold[model] - 1.0


def figures(measured: Measured) -> Iterator[Figure]:
    """For each transport the rates, and the errors of up to nine settings side by side."""
    if not any(plan["traffic"] == "stream" for plan in measured.summary["plans"]):
        return
    try:
        run = read_plan(measured.directory)
    except ConfigurationError as error:
        measured.damage.append(f"what models foretell is not drawn: {error}")
        return
    try:
        sets = list(_sets(measured, run))
    except SwitchbenchError as error:
        measured.notes.append(f"What models foretell is not drawn: {error}")
        return
    for transport in dict.fromkeys(one.trial.transport for one in sets):
        mine = [one for one in sets if one.trial.transport == transport]
        yield _rates(transport, mine)
        for first in range(0, len(mine), _SETS):
            yield _histograms(transport, first // _SETS + 1, mine[first : first + _SETS])


def _sets(measured: Measured, run: Run) -> Iterator[_Set]:
    streams = [trial for trial in points(run) if trial.traffic == "stream"]
    fabric = fabric_of(run, None)
    flows = sum(trial.flows for trial in streams)
    if flows > _MOST_FLOWS:
        measured.notes.append(
            f"What models foretell is not drawn of {flows:,} flows; `switchbench predict` says it."
        )
        return
    models = [name for name in USUAL if name not in SLOW or flows <= _MOST_SLOW_FLOWS]
    oracle = Oracle(fabric, models)
    for trial in streams:
        found = _set(measured, run, trial, oracle)
        if found is not None:
            yield found


def _set(measured: Measured, run: Run, trial: Trial, oracle: Oracle) -> _Set | None:
    """None where nothing of the setting was measured."""
    repeats = [other for other in run.trials if other.point == trial.point]
    seen: list[Rates] = []
    told: dict[str, list[Rates]] = {name: [] for name in oracle.models_for(trial)}
    by_network = {part.network: _seen(measured, repeats, part.network) for part in trial.parts}
    for outlook in oracle.foretell(trial, recorded=_recorded(measured, repeats, trial)):
        rates = by_network[outlook.part.network].of(measured, outlook)
        known = ~np.isnan(rates)
        seen.append(rates[known])
        for model, foretold in outlook.rates.items():
            told[model].append(foretold[known])
    if not any(part.size for part in seen):
        return None
    share = stream_share(trial)
    together = {model: np.concatenate(parts) for model, parts in told.items()}
    return _Set(trial, 1e6 * np.concatenate(seen) / share, together)


def _recorded(measured: Measured, repeats: Sequence[Trial], trial: Trial) -> Recorded:
    """The flows of a setting that there are records of, of any of its repeats."""
    found: dict[str, dict[int, Ranks]] = {}
    for part in trial.parts:
        rank = ranks_of(part, measured.ports)
        keys = (PlanKey(other.id, other.repeat, part.network) for other in repeats)
        flows = [some for key in keys if (some := measured.records.flows(key)) is not None]
        rows = [np.column_stack([some.phase, rank[some.src], rank[some.dst]]) for some in flows]
        together = np.concatenate(rows) if rows else np.empty((0, 3), dtype=np.int64)
        found[part.network] = by_phase(together[(together >= 0).all(axis=1)])
    return found


@dataclass(frozen=True)
class _Seen:
    """The median payload rate of each flow over repeats, by code of phase and ends."""

    codes: Any  # ascending
    mbps: Rates

    def of(self, measured: Measured, outlook: Outlook) -> Rates:
        """Of the flows of one phase; NaN: not observed."""
        if not self.codes.size:
            return np.full(len(outlook.ranks), np.nan)
        place = {name: number for number, name in enumerate(measured.ports)}
        ranks = np.array([place.get(port.name, -1) for port in outlook.part.ranks])
        size = len(measured.ports)
        ends = ranks[outlook.ranks]
        wanted = (outlook.phase * size + ends[:, 0]) * size + ends[:, 1]
        at = np.minimum(np.searchsorted(self.codes, wanted), len(self.codes) - 1)
        there = (self.codes[at] == wanted) & (ends >= 0).all(axis=1)
        return np.where(there, self.mbps[at], np.nan)


def _seen(measured: Measured, repeats: Sequence[Trial], network: str) -> _Seen:
    size = len(measured.ports)
    keys = (PlanKey(trial.id, trial.repeat, network) for trial in repeats)
    flows = [found for key in keys if (found := measured.records.flows(key)) is not None]
    codes = [(f.phase.astype(np.int64) * size + f.src) * size + f.dst for f in flows]
    if not codes:
        return _Seen(np.empty(0, dtype=np.int64), np.empty(0))
    code, mbps = np.concatenate(codes), np.concatenate([f.mbps for f in flows])
    known = ~np.isnan(mbps)
    code, mbps = code[known], mbps[known]
    order = np.lexsort((mbps, code))
    distinct, first, count = np.unique(code[order], return_index=True, return_counts=True)
    ordered = mbps[order]
    middle = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    return _Seen(distinct, middle)


# --- drawing -----------------------------------------------------------------------------------


def _ranked(sets: Sequence[_Set]) -> list[tuple[str, float]]:
    """Models with their share of flows within the margin, the best first."""
    errors = {
        model: np.concatenate([one.errors(model) for one in sets]) for model in sets[0].foretold
    }
    found = [(model, share_close(error)) for model, error in errors.items()]
    return sorted(found, key=lambda pair: -pair[1])


def _rates(transport: str, sets: Sequence[_Set]) -> Figure:
    measured = np.concatenate([one.measured for one in sets]) / 1e6
    unit = unit_for(measured.tolist())
    chosen = np.linspace(0, measured.size, min(_DRAWN, measured.size), endpoint=False).astype(int)
    ranked = _ranked(sets)
    data: list[dict[str, Any]] = [*_band(float(measured.max()) * unit.scale)]
    names = list(sets[0].foretold)
    for number, (model, close) in enumerate(ranked):
        foretold = np.concatenate([one.foretold[model] for one in sets]) / 1e6
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"{model}: {close:.1%}",
                "x": packed((foretold[chosen] * unit.scale).astype(np.float32)),
                "y": packed((measured[chosen] * unit.scale).astype(np.float32)),
                "marker": marker(names.index(model), 5) | {"opacity": 0.6},
                "visible": True if number == 0 else "legendonly",
                "hovertemplate": f"foretold %{{x:.4~r}}, measured %{{y:.4~r}} {unit.name}",
            }
        )
    drawn = f"Drawn are {chosen.size:,} of {measured.size:,} flows."
    return Figure(
        name=f"foretold-{transport}",
        title=sentence("rates foretold and measured", transport),
        definition=RATES_ARE + (drawn if chosen.size < measured.size else ""),
        data=data,
        layout={
            "xaxis": _axis(f"Foretold, {unit.name}", unit),
            "yaxis": _axis(f"Measured, {unit.name}", unit),
            "showlegend": True,
            "legend": LEGEND,
            "hovermode": "closest",
        },
        section=FORETOLD,
        height=560,
        disagrees=ranked[0][1] < _AGREES,
    )


def _axis(title: str, unit: Unit) -> dict[str, Any]:
    return {"title": {"text": title}, "rangemode": "tozero", "automargin": True}


def _band(most: float) -> Iterator[dict[str, Any]]:
    """Where the error is within the margin, and its middle."""
    ends = [0.0, 1.15 * most]
    x = [*ends, *reversed(ends)]
    y = [(1 + CLOSE) * end for end in ends] + [(1 - CLOSE) * end for end in reversed(ends)]
    yield {
        "type": "scatter", "mode": "lines", "name": "within 10 %", "x": x, "y": y,
        "fill": "toself", "fillcolor": "rgba(127,127,127,0.25)", "hoverinfo": "skip",
        "line": {"width": 0, "color": "#7F7F7F"},
    }  # fmt: skip
    yield {
        "type": "scatter", "mode": "lines", "name": "as foretold", "x": ends, "y": ends,
        "line": {"width": 1, "color": "#7F7F7F", "dash": "dot"}, "hoverinfo": "skip",
    }  # fmt: skip


def _histograms(transport: str, number: int, sets: Sequence[_Set]) -> Figure:
    """A row a model, the best first; a column a setting."""
    models = [model for model, _ in _ranked(sets)]
    best = [_ranked([one])[0][1] for one in sets]
    labels = _labels(sets)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"showlegend": False, "bargap": 0.05, "annotations": [], "shapes": []}
    for row, model in enumerate(models):
        for column, one in enumerate(sets):
            cell = _Cell(row, column, len(models), len(sets))
            errors = one.errors(model)
            data.append(_bars(cell, errors, f"{model}, {', '.join(labels[column])}"))
            layout |= cell.axes(model)
            layout["annotations"].append(cell.note(f"{share_close(errors):.1%}"))
            if share_close(errors) == best[column]:
                layout["shapes"].append(cell.frame())
    layout["annotations"] += [
        _Cell(0, column, len(models), len(sets)).heading("<br>".join(label))
        for column, label in enumerate(labels)
    ]
    return Figure(
        name=f"errors-{transport}-{number}",
        title=sentence("errors of foretold times", transport),
        definition=ERRORS_ARE,
        data=data,
        layout=layout,
        section=FORETOLD,
        height=170 + _ROW * len(models),
    )


def _labels(sets: Sequence[_Set]) -> list[list[str]]:
    """By setting, the facets that not all of them share; of a single one all."""
    facets = [[facet for facet in one.facets if facet] for one in sets]
    shared = set.intersection(*map(set, facets)) if len(sets) > 1 else set()
    return [[facet for facet in some if facet not in shared] or some for some in facets]


def _bars(cell: _Cell, errors: Rates, name: str) -> dict[str, Any]:
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
        "xaxis": f"x{cell.suffix}",
        "yaxis": f"y{cell.suffix}",
    }


@dataclass(frozen=True)
class _Cell:
    """One of the small figures: where it stands, and its axes."""

    row: int
    column: int
    rows: int
    columns: int

    @property
    def suffix(self) -> str:
        """Plotly's number of its axes; the first has none."""
        number = self.row * self.columns + self.column + 1
        return str(number) if number > 1 else ""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, right, bottom, top, as shares of the drawing."""
        width, height = 1 / self.columns, 1 / self.rows
        left, top = self.column * width, _TOP * (1 - self.row * height)
        return left, left + 0.93 * width, top - 0.78 * _TOP * height, top

    def axes(self, model: str) -> dict[str, Any]:
        """Both of them; words at the left and below alone."""
        left, right, bottom, top = self.box
        below = self.row == self.rows - 1
        x: dict[str, Any] = {
            "domain": [left, right], "anchor": f"y{self.suffix}", "range": [-100, 100],
            "tickvals": [-100, -50, 0, 50, 100], "ticktext": ["", "-50", "0", "50", ""],
            "showticklabels": below, "showgrid": False,
        }  # fmt: skip
        y: dict[str, Any] = {
            "domain": [bottom, top], "anchor": f"x{self.suffix}", "range": [0, 105],
            "tickvals": [0, 50, 100], "showticklabels": self.column == 0, "automargin": True,
        }  # fmt: skip
        if below and self.column == 0:
            x["title"] = {"text": "error, %"}
        if self.column == 0:
            y["title"] = {"text": model, "font": {"size": 11}}
        return {f"xaxis{self.suffix}": x, f"yaxis{self.suffix}": y}

    def note(self, text: str) -> dict[str, Any]:
        """At its upper right."""
        _, right, _, top = self.box
        return _note(text, right, top, "right", "top")

    def heading(self, text: str) -> dict[str, Any]:
        """Above it."""
        left, right, _, top = self.box
        found = _note(text, (left + right) / 2, top, "center", "bottom")
        return found | {"font": {"size": 11}}

    def frame(self) -> dict[str, Any]:
        """Around it."""
        left, right, bottom, top = self.box
        return {
            "type": "rect", "xref": "paper", "yref": "paper", "x0": left, "x1": right,
            "y0": bottom, "y1": top, "line": {"color": PALETTE[1], "width": 2},
        }  # fmt: skip


def _note(text: str, x: float, y: float, xanchor: str, yanchor: str) -> dict[str, Any]:
    return {
        "text": text, "x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": xanchor,
        "yanchor": yanchor, "showarrow": False,
    }  # fmt: skip
