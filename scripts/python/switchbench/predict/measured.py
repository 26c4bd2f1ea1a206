# SPDX-License-Identifier: BSD-3-Clause
"""What was predicted beside what a run's receivers saw."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ..analysis import measures
from ..analysis.statistics import intervals
from ..base import transports
from ..base.model import Trial
from ..records.directory import RECORDS
from ..records.flows import PhaseFlows, PhaseRecords
from ..records.reader import RecordReader, taking
from ..records.record_forms import Record
from ..records.rows import PhaseKey, columns_of
from ..topology.fabric.routes import Rates
from .predictor import PhasePrediction
from .recorded import Pair, Place
from .results import Number

CLOSE = 0.10
"""The paper's margin: an error of at most 10 %."""


@dataclass(frozen=True)
class ModelAccuracy:
    """How near a model came, over the flows that were measured and predicted."""

    model: str
    errors: Rates
    """Of the time: (predicted - measured) / measured; by rates, measured / predicted - 1."""
    offered_errors: Rates | None = None
    """The same, were it told what the sources really sent; None where that is not known."""

    @property
    def close(self) -> float:
        """The share of flows within the paper's margin."""
        return share_close(self.errors)

    @property
    def mean(self) -> float:
        """The mean of the errors' sizes."""
        return float(np.mean(np.abs(self.errors)))

    @property
    def worst(self) -> float:
        """The error of the greatest size."""
        return float(self.errors[np.abs(self.errors).argmax()])


def share_close(errors: Rates) -> float:
    """The share of errors within the paper's margin."""
    return float(np.mean(np.abs(errors) <= CLOSE))


_CONFIDENCE = 0.95
_Repeats = dict[Place, dict[Pair, list[float]]]


@dataclass
class Seen:
    """Layer-1 rates of a run's flows."""

    repeats: _Repeats = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    """What destinations saw, repeat by repeat."""
    sent: _Repeats = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    """What sources sent, where frames are counted: TCP sends what it is allowed to."""
    pairs: dict[Place, set[Pair]] = field(default_factory=lambda: defaultdict(set))
    """All flows that there are records of."""

    @cached_property
    def delivered(self) -> dict[Place, dict[Pair, float]]:
        """Of what destinations saw the median over repeats."""
        return _medians(self.repeats)

    @cached_property
    def offered(self) -> dict[Place, dict[Pair, float]]:
        """Of what sources sent the median over repeats."""
        return _medians(self.sent)

    @cached_property
    def widths(self) -> dict[Place, dict[Pair, float]]:
        """The 95 % interval of what was delivered, by its mean, where anything was repeated."""
        return {
            place: {
                pair: found.width
                for pair, found in zip(
                    flows, intervals(list(flows.values()), _CONFIDENCE), strict=True
                )
                if found is not None and found.mean
            }
            for place, flows in self.repeats.items()
        }


def measured_bps(trials: Mapping[Number, Trial], directory: Path) -> Seen:
    """What both ends of each flow counted; `trials`: by their numbers in the records."""
    seen = Seen()
    for key, flows, opened in _phases(directory):
        trial = trials.get((key.trial, key.repeat))
        if trial is None:
            continue
        place = (trial.point, key.network, key.phase)
        seen.pairs[place].update(flows.pairs)
        kind = transports.of(trial.transport)
        if kind.rdma:
            options = trial.options
            shapes = measures.packets_of(options, opened, trial.transport, flows)
            flows = replace(flows, packets=shapes)
        _add(seen.repeats[place], flows, measures.delivered_line_bps(flows))
        if kind.frames:
            _add(seen.sent[place], flows, measures.offered_line_bps(flows))
    return seen


def _medians(rates: _Repeats) -> dict[Place, dict[Pair, float]]:
    return {
        place: {pair: statistics.median(seen) for pair, seen in flows.items()}
        for place, flows in rates.items()
    }


def _add(rates: dict[Pair, list[float]], flows: PhaseFlows, bps: Rates) -> None:
    """Of each flow that has one, one more repeat's."""
    for pair, rate in zip(flows.pairs, bps.tolist(), strict=True):
        if not np.isnan(rate):
            rates[pair].append(rate)


def _phases(
    directory: Path,
) -> Iterable[tuple[PhaseKey, PhaseFlows, dict[tuple[str, str], Record]]]:
    """All phases of a run with their flows, and what was said of ports by transport."""
    phases: dict[PhaseKey, PhaseRecords] = defaultdict(PhaseRecords)
    opened: dict[tuple[str, str], Record] = {}
    path = directory / RECORDS
    wanted = {"flow": columns_of("flow"), "port-open": ()}
    for batch in RecordReader(path, wanted).batches():
        for kind, rows in batch.rows.items():
            for key, mine in rows.by_phase():
                with taking(path, 0):
                    phases[key].add(kind, mine)
        opened |= {(record["port"], record["transport"]): record for _, record in batch.records}
    return ((key, phase.flows(), opened) for key, phase in phases.items())


def fits(
    trial: Trial,
    predictions: Iterable[PhasePrediction],
    delivered: Mapping[Place, Mapping[Pair, float]],
) -> list[ModelAccuracy]:
    """Each model's errors over all phases of a trial, best first."""
    errors: dict[str, list[Rates]] = defaultdict(list)
    offered: dict[str, list[Rates]] = defaultdict(list)
    for prediction in predictions:
        rates = rates_of(trial, prediction, delivered)
        known = ~np.isnan(rates)  # of 0, the time was predicted as nothing of what it took
        for model, predicted in prediction.rates.items():
            errors[model].append(rates[known] / predicted[known] - 1.0)
            if model in prediction.offered_rates:
                offered[model].append(rates[known] / prediction.offered_rates[model][known] - 1.0)
    found = [
        ModelAccuracy(
            model,
            np.concatenate(parts),
            np.concatenate(sent) if len(sent := offered[model]) == len(parts) else None,
        )
        for model, parts in errors.items()
    ]
    return sorted((fit for fit in found if fit.errors.size), key=lambda fit: (-fit.close, fit.mean))


def offered_shares(
    trial: Trial,
    predictions: Iterable[PhasePrediction],
    offered: Mapping[Place, Mapping[Pair, float]],
) -> Rates:
    """What each flow's source sent, as a share of what it was to send."""
    shares = [np.empty(0)]
    for prediction in predictions:
        share = rates_of(trial, prediction, offered) / prediction.demand_bps
        shares.append(share[np.isfinite(share)])
    return np.concatenate(shares)


def rates_of(
    trial: Trial, prediction: PhasePrediction, seen: Mapping[Place, Mapping[Pair, float]]
) -> Rates:
    """What was seen of each flow; NaN where nothing was. The flows' names, which take
    longer than a model, are asked for where there is something."""
    flows = seen.get((trial.point, prediction.part.network, prediction.phase))
    if flows is None:
        return np.full(len(prediction.ranks), np.nan)
    return np.array([flows.get(pair, np.nan) for pair in prediction.pairs()])
