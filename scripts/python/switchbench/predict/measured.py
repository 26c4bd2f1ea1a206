# SPDX-License-Identifier: BSD-3-Clause
"""What was foretold beside what a run's receivers saw."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..fabric.routes import Rates
from ..model import Run, Trial
from ..results import measures
from ..results.directory import RECORDS
from ..results.records import PhaseKey, PhaseRecords, add_flow, key_of, read_records
from .outlook import Outlook

CLOSE = 0.10
"""The paper's margin: an error of at most 10 %."""

Pair = tuple[str, str]
Place = tuple[int, str, int]
"""A trial's point, the network, the phase."""


@dataclass(frozen=True)
class Fit:
    """How near a model came, over the flows that were measured and foretold."""

    model: str
    errors: Rates
    """Of the time: (foretold - measured) / measured; by rates, measured / foretold - 1."""

    @property
    def close(self) -> float:
        """The share of flows within the paper's margin."""
        return float(np.mean(np.abs(self.errors) <= CLOSE))

    @property
    def mean(self) -> float:
        """The mean of the errors' sizes."""
        return float(np.mean(np.abs(self.errors)))

    @property
    def worst(self) -> float:
        """The error of the greatest size."""
        return float(self.errors[np.abs(self.errors).argmax()])


def measured_bps(run: Run, directory: Path) -> dict[Place, dict[Pair, float]]:
    """Layer-1 rates that destinations saw: of each flow the median over its repeats."""
    trials = {(trial.id, trial.repeat): trial for trial in run.trials}
    rates: dict[Place, dict[Pair, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, phase, opened in _phases(directory):
        trial = trials.get((key.trial, key.repeat))
        if trial is None:
            continue
        place = rates[trial.point, key.network, key.phase]
        for pair, flow in phase.flows.items():
            if trial.transport == "verbs":
                options = trial.document.get("verbs", {})
                flow.packet = measures.packet_shape(options, opened.get(flow.src, {}), None)
            bps = measures.delivered_line_bps(flow)
            if bps is not None:
                place[pair].append(bps)
    return {
        place: {pair: statistics.median(seen) for pair, seen in flows.items()}
        for place, flows in rates.items()
    }


def _phases(
    directory: Path,
) -> Iterable[tuple[PhaseKey, PhaseRecords, dict[str, dict[str, Any]]]]:
    """All phases of a run with their flows, and what was said of verbs' ports."""
    phases: dict[PhaseKey, PhaseRecords] = defaultdict(PhaseRecords)
    opened: dict[str, dict[str, Any]] = {}
    for _, record in read_records(directory / RECORDS):
        if record["type"] == "flow":
            add_flow(phases[key_of(record)], record)
        elif record["type"] == "port-open" and record.get("transport") == "verbs":
            opened[record["port"]] = record
    return ((key, phase, opened) for key, phase in phases.items())


def fits(
    trial: Trial, outlooks: Iterable[Outlook], seen: Mapping[Place, Mapping[Pair, float]]
) -> list[Fit]:
    """Each model's errors over all phases of a trial, best first."""
    errors: dict[str, list[Rates]] = defaultdict(list)
    for outlook in outlooks:
        flows = seen.get((trial.point, outlook.part.network, outlook.phase), {})
        rates = np.array([flows.get(pair, np.nan) for pair in outlook.pairs()])
        known = rates > 0
        for model, foretold in outlook.rates.items():
            errors[model].append(rates[known] / foretold[known] - 1.0)
    found = [Fit(model, np.concatenate(parts)) for model, parts in errors.items()]
    return sorted((fit for fit in found if fit.errors.size), key=lambda fit: (-fit.close, fit.mean))
