# SPDX-License-Identifier: BSD-3-Clause
"""The flows of each setting of a run: what models predict, and what their destinations saw.

The network is that of the results' own lab; a site of real hosts says nothing of its switches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..analysis.columns import FlowColumns, PlanKey
from ..analysis.data import Measured
from ..base import format
from ..base.model import Part, Run, Trial
from ..topology.fabric.routes import Ranks, Rates
from .models import MODELS, SLOW
from .predictor import PhasePrediction, Predictor, fabric_of, points, stream_share
from .recorded import by_phase

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
    for trial in streams:
        found = _setting(measured, run, trial, predictor)
        if found is not None:
            yield found


def _setting(
    measured: Measured, run: Run, trial: Trial, predictor: Predictor
) -> PredictedSetting | None:
    """None where nothing of the setting was measured."""
    repeats = [other for other in run.trials if other.point == trial.point]
    place = {name: number for number, name in enumerate(measured.ports)}
    recorded: dict[str, dict[int, Ranks]] = {}
    by_network: dict[str, _Seen] = {}
    for part in trial.parts:
        keys = (PlanKey(other.id, other.repeat, part.network) for other in repeats)
        flows = [some for key in keys if (some := measured.records.flows(key)) is not None]
        ports = np.array([place.get(port.name, -1) for port in part.ranks])
        recorded[part.network] = _recorded(flows, part, measured.ports)
        by_network[part.network] = _Seen.of(flows, ports, len(place))
    seen: list[Rates] = []
    told: dict[str, list[Rates]] = {name: [] for name in predictor.models_for(trial)}
    for prediction in predictor.predict(trial, recorded=recorded):
        rates = by_network[prediction.part.network].rates(prediction)
        known = ~np.isnan(rates)
        seen.append(rates[known])
        for model, predicted in prediction.rates.items():
            told[model].append(predicted[known])
    if not any(part.size for part in seen):
        return None
    share = stream_share(trial)
    together = {model: np.concatenate(parts) for model, parts in told.items()}
    return PredictedSetting(trial, 1e6 * np.concatenate(seen) / share, together)


def _recorded(flows: Sequence[FlowColumns], part: Part, ports: Sequence[str]) -> dict[int, Ranks]:
    """The flows of a setting in a network that there are records of, of any of its repeats."""
    numbers = {port.name: number for number, port in enumerate(part.ranks)}
    rank = np.array([numbers.get(name, -1) for name in ports], dtype=np.int64)
    rows = [np.column_stack([some.phase, rank[some.src], rank[some.dst]]) for some in flows]
    together = np.concatenate(rows) if rows else np.empty((0, 3), dtype=np.int64)
    return by_phase(together[(together >= 0).all(axis=1)])


@dataclass(frozen=True)
class _Seen:
    """The median payload rate of each flow over repeats, by code of phase and ends."""

    codes: Any  # ascending
    mbps: Rates
    ports: Ranks  # the place of each rank's port; -1: it has none
    size: int  # of the list of ports

    @classmethod
    def of(cls, flows: Sequence[FlowColumns], ports: Ranks, size: int) -> _Seen:
        codes = [(f.phase.astype(np.int64) * size + f.src) * size + f.dst for f in flows]
        if not codes:
            return cls(np.empty(0, dtype=np.int64), np.empty(0), ports, size)
        code, mbps = np.concatenate(codes), np.concatenate([f.mbps for f in flows])
        known = ~np.isnan(mbps)
        code, mbps = code[known], mbps[known]
        order = np.lexsort((mbps, code))
        distinct, first, count = np.unique(code[order], return_index=True, return_counts=True)
        ordered = mbps[order]
        middle = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
        return cls(distinct, middle, ports, size)

    def rates(self, prediction: PhasePrediction) -> Rates:
        """Of the flows of one phase; NaN: not observed."""
        if not self.codes.size:
            return np.full(len(prediction.ranks), np.nan)
        ends = self.ports[prediction.ranks]
        wanted = (prediction.phase * self.size + ends[:, 0]) * self.size + ends[:, 1]
        at = np.minimum(np.searchsorted(self.codes, wanted), len(self.codes) - 1)
        there = (self.codes[at] == wanted) & (ends >= 0).all(axis=1)
        return np.where(there, self.mbps[at], np.nan)
