# SPDX-License-Identifier: BSD-3-Clause
"""What models of contention predict against what was measured.

The network is that of the results' own lab; a site of real hosts says nothing of its switches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ....analysis.data import Measured
from ....base.errors import ConfigurationError, SwitchbenchError
from ....base.format import unit_for
from ....base.model import Run
from ....predict.measured import CLOSE, PredictedTrial, measured_bps, predicted, share_close
from ....predict.models import MODELS, SLOW
from ....predict.predictor import Predictor, fabric_of, points
from ....records.plan_file import read_plan
from ...tables.sections import PREDICTED
from ..chart import ChartAxis, ChartSpec, Panel, Trace
from ..figure import Figure, marker

RATES_ARE = (
    "Each point is one flow in one phase: the layer-1 rate that a model predicts, and the one that "
    "its destination saw (the median of its repeats). In the band the error of the time, "
    "measured / predicted - 1, is at most 10 %, the margin of Zhu et al. 2012. The legend says how "
    "many flows are in it; a click there shows the other models. "
)
_AGREES = 0.9  # share of flows within the margin of the best model
_DRAWN = 4_000  # points of a model
_MOST_FLOWS = 400_000  # of a run: some seconds
_MOST_SLOW_FLOWS = 10_000  # for the models that go through flows one by one


def figures(measured: Measured) -> Iterator[Figure]:
    """Yield the rates of each transport."""
    if not any(plan["traffic"] == "stream" for plan in measured.summary["plans"]):
        return
    try:
        run = read_plan(measured.directory)
    except ConfigurationError as error:
        measured.damage.append(f"what models predict is not drawn: {error}")
        return
    try:
        found = _predicted(measured, run)
    except SwitchbenchError as error:
        measured.notes.append(f"What models predict is not drawn: {error}")
        return
    for transport in dict.fromkeys(one.trial.transport for one in found):
        yield _rates(transport, [one for one in found if one.trial.transport == transport])


def _predicted(measured: Measured, run: Run) -> list[PredictedTrial]:
    """Return each setting of streams of which anything was measured; none of too many flows."""
    streams = [trial for trial in points(run) if trial.traffic == "stream"]
    fabric = fabric_of(run, None)
    flows = sum(trial.flows for trial in streams)
    if flows > _MOST_FLOWS:
        measured.notes.append(
            f"What models predict is not drawn of {flows:,} flows; `switchbench predict` says it."
        )
        return []
    models = [name for name in MODELS if name not in SLOW or flows <= _MOST_SLOW_FLOWS]
    predictor = Predictor(fabric, models)
    seen = measured_bps({(one.id, one.repeat): one for one in run.trials}, measured.directory)
    return [one for trial in streams if (one := predicted(trial, predictor, seen)).known]


_RATES = ChartSpec(
    "predicted-", "rates predicted and measured", RATES_ARE, PREDICTED, "points",
    ChartAxis("Predicted, {unit}", "predicted"), ChartAxis("Measured, {unit}", "measured"),
    "predicted {predicted}, measured {measured} {unit}", height=560, legend=True,
    layout={"hovermode": "closest"},
)  # fmt: skip


def _rates(transport: str, found: Sequence[PredictedTrial]) -> Figure:
    """Return the points of each model, the best shown at first."""
    known = [~np.isnan(one.measured) for one in found]
    measured = np.concatenate([o.measured[k] for o, k in zip(found, known, strict=True)]) / 1e6
    unit = unit_for(measured.tolist())
    chosen = np.linspace(0, measured.size, min(_DRAWN, measured.size), endpoint=False).astype(int)
    names = list(found[0].rates)
    close = {m: share_close(np.concatenate([one.errors(m) for one in found])) for m in names}
    ranked = sorted(names, key=lambda model: -close[model])
    traces = list(_band(float(measured.max()) * unit.scale))
    for model in ranked:
        rates = [o.rates[model][k] for o, k in zip(found, known, strict=True)]
        columns = {
            "predicted": (np.concatenate(rates)[chosen] / 1e6 * unit.scale).astype(np.float32),
            "measured": (measured[chosen] * unit.scale).astype(np.float32),
        }
        more = {
            "marker": marker(names.index(model), 5) | {"opacity": 0.6},
            "visible": True if model == ranked[0] else "legendonly",
        }
        traces.append(Trace(f"{model}: {close[model]:.1%}", columns, more=more))
    few = f"Drawn are {chosen.size:,} of {measured.size:,} flows."
    words = few if chosen.size < measured.size else ""
    drawn = _RATES.draw(Panel(transport, traces, transport, unit.name, words))
    return replace(drawn, disagrees=close[ranked[0]] < _AGREES)


def _band(most: float) -> Iterator[Trace]:
    """Yield where the error is within the margin, and its middle."""
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
