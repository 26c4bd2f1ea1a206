# SPDX-License-Identifier: BSD-3-Clause
"""The flows of each setting of a run: what models predict, and what their destinations saw.

The network is that of the results' own lab; a site of real hosts says nothing of its switches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..analysis.data import Measured
from ..base import format
from ..base.model import Run, Trial
from ..topology.fabric.routes import Rates
from .measured import Seen, measured_bps, rates_of
from .models import MODELS, SLOW
from .predictor import Predictor, fabric_of, points
from .recorded import recorded_flows

_MOST_FLOWS = 400_000  # of a run: some seconds
_MOST_SLOW_FLOWS = 10_000  # for the models that go through flows one by one


@dataclass(frozen=True)
class PredictedSetting:
    """The flows of one setting that were predicted and measured."""

    trial: Trial
    measured: Rates
    predicted: dict[str, Rates]

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
        """Of the flows' times by a model."""
        return self.measured / self.predicted[model] - 1.0


def settings_of(measured: Measured, run: Run) -> Iterator[PredictedSetting]:
    """Each setting of streams of which anything was measured; none of too many flows."""
    streams = [trial for trial in points(run) if trial.traffic == "stream"]
    fabric = fabric_of(run, None)
    flows = sum(trial.flows for trial in streams)
    if flows > _MOST_FLOWS:
        measured.notes.append(
            f"What models predict is not drawn of {flows:,} flows; `switchbench predict` says it."
        )
        return
    models = [name for name in MODELS if name not in SLOW or flows <= _MOST_SLOW_FLOWS]
    predictor = Predictor(fabric, models)
    seen = measured_bps({(one.id, one.repeat): one for one in run.trials}, measured.directory)
    for trial in streams:
        found = _setting(trial, seen, predictor)
        if found is not None:
            yield found


def _setting(trial: Trial, seen: Seen, predictor: Predictor) -> PredictedSetting | None:
    """None where nothing of the setting was measured."""
    every: list[Rates] = []
    told: dict[str, list[Rates]] = {name: [] for name in predictor.models_for(trial)}
    for prediction in predictor.predict(trial, recorded=recorded_flows(trial, seen.pairs)):
        rates = rates_of(trial, prediction, seen.delivered)
        known = ~np.isnan(rates)
        every.append(rates[known])
        for model, predicted in prediction.rates.items():
            told[model].append(predicted[known])
    if not any(part.size for part in every):
        return None
    together = {model: np.concatenate(parts) for model, parts in told.items()}
    return PredictedSetting(trial, np.concatenate(every), together)
