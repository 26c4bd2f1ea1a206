# SPDX-License-Identifier: BSD-3-Clause
"""Predicted rates beside those that a run's receivers saw."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ..analysis import measures
from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import Run, Trial
from ..records.directory import SUMMARY, load_summary
from ..records.document.schema import checked
from ..records.record_forms import Record
from ..records.rows import PhaseFlows, PhaseKey, by_network
from ..records.store import Tables
from ..topology.fabric.routes import Rates
from .predictor import Pair, Place, Predictor, recorded_flows

CLOSE = 0.10
"""The margin of Zhu et al. 2012: an error of at most 10 %."""


def share_close(errors: Rates) -> float:
    """Return the share of errors within the margin."""
    return float(np.mean(np.abs(errors) <= CLOSE))


@dataclass
class Seen:
    """Layer-1 rates of a run's flows."""

    repeats: dict[Place, dict[Pair, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    """What destinations saw, repeat by repeat."""
    pairs: dict[Place, set[Pair]] = field(default_factory=lambda: defaultdict(set))
    """All flows that there are records of."""

    @cached_property
    def delivered(self) -> dict[Place, dict[Pair, float]]:
        """Return the median over repeats of what destinations saw."""
        return {
            place: {pair: statistics.median(seen) for pair, seen in flows.items()}
            for place, flows in self.repeats.items()
        }


@dataclass(frozen=True)
class PredictedTrial:
    """The flows of one setting, of all its networks and phases: predicted and measured."""

    trial: Trial
    phases: int
    rates: dict[str, Rates]
    """By model, at layer 1."""
    measured: Rates
    """What destinations saw, NaN of a flow without a record."""

    @property
    def known(self) -> int:
        """Return the number of flows that were measured."""
        return int(np.count_nonzero(~np.isnan(self.measured)))

    def errors(self, model: str) -> Rates:
        """Return the errors of the time that a model predicts, of the flows that were measured.

        (predicted - measured) / measured; by rates, measured / predicted - 1.
        """
        known = ~np.isnan(self.measured)  # of 0, the time was predicted as nothing of what it took
        errors: Rates = self.measured[known] / self.rates[model][known] - 1.0
        return errors

    def best_first(self) -> list[str]:
        """Return the models, the one with most flows within the margin first."""
        if not self.known:
            return list(self.rates)
        errors = {model: self.errors(model) for model in self.rates}
        return sorted(errors, key=lambda m: (-share_close(errors[m]), np.abs(errors[m]).mean()))


def predicted(trial: Trial, predictor: Predictor, seen: Seen | None) -> PredictedTrial:
    """Return what is predicted of a trial, beside what was seen of it where it is of streams."""
    recorded = None if seen is None else recorded_flows(trial, seen.pairs)
    rates: dict[str, list[Rates]] = defaultdict(list)
    measured = [np.empty(0)]
    for one in predictor.predict(trial, recorded):
        for model, bps in one.rates.items():
            rates[model].append(bps)
        flows = None
        if seen is not None and trial.traffic == "stream":
            flows = seen.delivered.get((trial.point, one.part.network, one.phase))
        measured.append(
            np.full(len(one.ranks), np.nan)
            if flows is None  # names of flows take longer than a model
            else np.array([flows.get(pair, np.nan) for pair in one.pairs()])
        )
    together = {model: np.concatenate(parts) for model, parts in rates.items()}
    return PredictedTrial(trial, len(measured) - 1, together, np.concatenate(measured))


def measured_trials(run: Run, directory: Path) -> dict[tuple[int, int], Trial]:
    """Return the trials of a run that were measured, by trial and repeat.

    ConfigurationError where none was, or any of the summary is damaged.
    """
    summary = checked(load_summary(directory), directory / SUMMARY)
    measured = {(plan["trial"], plan["repeat"]) for plan in summary["plans"]}
    if not measured:
        raise ConfigurationError(
            f"{directory / SUMMARY} says of no trial that it was measured: `switchbench table "
            f"{directory} --again` rebuilds it from the records, if there are any"
        )
    trials = {(trial.id, trial.repeat): trial for trial in run.trials}
    return {number: trial for number, trial in trials.items() if number in measured}


def measured_bps(trials: Mapping[tuple[int, int], Trial], directory: Path) -> Seen:
    """Return what the destination of each flow counted; `trials`: by their numbers there."""
    seen = Seen()
    for key, flows, opened in _phases(directory):
        trial = trials.get((key.trial, key.repeat))
        if trial is None:
            continue
        place = (trial.point, key.network, key.phase)
        seen.pairs[place].update(flows.pairs)
        if transports.of(trial.transport).rdma:
            shapes = measures.packets_of(trial.options, opened, trial.transport, flows)
            flows = replace(flows, packets=shapes)
        rates, repeats = measures.delivered_line_bps(flows), seen.repeats[place]
        for pair, rate in zip(flows.pairs, rates.tolist(), strict=True):
            if not np.isnan(rate):
                repeats[pair].append(rate)
    return seen


def _phases(
    directory: Path,
) -> Iterator[tuple[PhaseKey, PhaseFlows, dict[tuple[str, str], Record]]]:
    """Yield all phases of a run with their flows, and what was told of ports by transport."""
    tables = Tables(directory, ("flows",))
    opened = {
        (event["port"], event["transport"]): event
        for event in tables.events()
        if event["type"] == "port-open"
    }
    for phase in tables.phases():
        trial, repeat, number = phase.moment
        for network, records in by_network(phase).items():
            yield PhaseKey(trial, repeat, network, number), records.flows(), opened
