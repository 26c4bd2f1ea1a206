# SPDX-License-Identifier: BSD-3-Clause
"""Rates that models predict for a run, compared with rates that receivers measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ..analysis import measures
from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import Part, Run, Trial
from ..plan.engine import plan_phases
from ..records.directory import SUMMARY, load_summary
from ..records.store import Tables
from ..records.summary_form import checked
from ..topology import topology as topologies
from ..topology.fabric import Fabric, Ranks, Rates, Routes, from_topology
from .models import MODELS, SLOW, rates

CLOSE = 0.10  # margin of Zhu et al. 2012: an error of at most 10 %
MOST_SLOW_FLOWS = 200_000  # max flows for slow models, which compute flow by flow

Pair = tuple[str, str]
# Key of a phase: number of the trial's point (setting), network, number of the phase.
Place = tuple[int, str, int]
# Layer-1 rates that the destination of each flow measured, one rate for each repeat.
Seen = Mapping[Place, Mapping[Pair, Sequence[float]]]


@dataclass(frozen=True)
class PhasePrediction:
    """Predicted rates of the flows of one phase in one network."""

    part: Part
    phase: int
    ranks: Ranks  # one row per flow: rank numbers of source and destination
    rates: dict[str, Rates]  # by model, at layer 1

    def pairs(self) -> list[Pair]:
        """Return the flows as pairs of port names."""
        names = [port.name for port in self.part.ranks]
        return [(names[source], names[destination]) for source, destination in self.ranks]


def fabric_of(run: Run, topology: Path | None) -> Fabric:
    """Return the network graph (fabric) of a run's lab, or of a topology file."""
    if topology is None and run.site.lab is None:
        raise ConfigurationError(
            "the switches between real hosts are unknown: give --topology FILE "
            "(doc/reference/topology.md)"
        )
    overrides = run.site.lab_overrides if topology is None else {}
    return from_topology(topologies.load(str(topology or run.site.lab), overrides))


def points(run: Run) -> list[Trial]:
    """Return one trial of a run for each setting: all repeats have the same prediction."""
    found: dict[int, Trial] = {}
    for trial in run.trials:
        found.setdefault(trial.point, trial)
    return list(found.values())


class Predictor:
    """Predictor of the rates of trials on one fabric."""

    def __init__(self, fabric: Fabric, models: Sequence[str] = tuple(MODELS)) -> None:
        """Compute routes between a fabric's hosts, and select models by name."""
        self.fabric = fabric
        self._models = models
        self._routes = Routes(fabric)
        self._rank = {host: rank for rank, host in enumerate(fabric.hosts)}

    def predict(self, trial: Trial) -> Iterator[PhasePrediction]:
        """Yield the predicted rates of each phase of a trial, in each network.

        Raise ConfigurationError for a host that is not in the fabric, or that has several ports.
        """
        models = [n for n in self._models if n not in SLOW or trial.flows <= MOST_SLOW_FLOWS]
        for part in trial.parts:
            hosts = [port.host for port in part.ranks]
            if unknown := [host for host in hosts if host not in self._rank]:
                known = NodeSet.fromlist(list(self.fabric.hosts), resolver=RESOLVER_NOGROUP)
                raise ConfigurationError(
                    f"topology {self.fabric.name} has no host {unknown[0]}, which belongs to "
                    f"network {part.network}; the topology's hosts are {known}: "
                    "give the topology file of this configuration's network with --topology"
                )
            if twice := [host for host, ports in Counter(hosts).items() if ports > 1]:
                raise ConfigurationError(
                    f"{twice[0]} has several ports in network {part.network}; a topology "
                    "describes one port per host: exclude the other ports"
                )
            places = np.array([self._rank[host] for host in hosts], dtype=np.int64)
            for phase in plan_phases(len(part.ranks), trial.pattern, trial.seed):
                if len(ranks := phase.flows):
                    demand = demand_bps(trial, part, ranks)
                    found = rates(self._routes, places[ranks], demand, models)
                    yield PhasePrediction(part, phase.number, ranks, found)


def demand_bps(trial: Trial, part: Part, ranks: Ranks) -> Rates:
    """Return each flow's offered layer-1 rate: the load of its port divided by the port's flows.

    The engine does not pace messages at 100 % (engine/trial/lanes.c), so only the ports' line
    rates limit messages; frames are paced at any load.
    """
    lines = np.array([port.line_rate_bps or np.inf for port in part.ranks])
    unpaced = trial.size_unit == "message" and trial.load.percent == 100.0
    if unpaced or trial.traffic not in ("stream", "transfer"):
        limits: Rates = lines[ranks].min(axis=1)
        return limits
    offered = np.array([trial.layer1_bps(line) for line in lines])
    if trial.load.fps is not None and trial.size_unit == "message":
        # By the payload's share of layer-1 bits, for full frames or RDMA packets.
        payload, overhead = measures.TCP_SEGMENT_PAYLOAD, measures.TCP_SEGMENT_OVERHEAD
        if transports.of(trial.transport).rdma:
            shape = measures.packet_shape(trial.options, {}, None)
            payload, overhead = shape.path_mtu_bytes, shape.packet_bytes
        offered = offered / (payload / (payload + overhead))
    sources = ranks[:, 0]
    shared = np.bincount(sources, minlength=len(lines))
    demand: Rates = (np.minimum(offered, lines) / np.maximum(shared, 1))[sources]
    return demand


# --- beside what was measured ---------------------------------------------------------------------


def share_close(errors: Rates) -> float:
    """Return the share of predictions with an error within the margin `CLOSE`."""
    return float(np.mean(np.abs(errors) <= CLOSE))


@dataclass(frozen=True)
class PredictedTrial:
    """Predicted and measured rates of all flows of one trial, over its networks and phases."""

    trial: Trial
    phases: int
    rates: dict[str, Rates]  # by model, at layer 1
    measured: Rates  # layer-1 rates at destinations; NaN without a record

    @property
    def known(self) -> int:
        """Return the number of flows with a measured rate."""
        return int(np.count_nonzero(~np.isnan(self.measured)))

    def errors(self, model: str) -> Rates:
        """Return a model's relative errors of transfer time, for all measured flows.

        The error of a time is (predicted - measured) / measured; in rates, measured / predicted -
        1.
        """
        # a measured rate of 0 gives -1
        known = ~np.isnan(self.measured)
        errors: Rates = self.measured[known] / self.rates[model][known] - 1.0
        return errors

    def best_first(self) -> list[str]:
        """Return the models' names, sorted by the share of flows within the error margin."""
        if not self.known:
            return list(self.rates)
        errors = {model: self.errors(model) for model in self.rates}
        return sorted(errors, key=lambda m: (-share_close(errors[m]), np.abs(errors[m]).mean()))


def predicted(trial: Trial, predictor: Predictor, seen: Seen | None) -> PredictedTrial:
    """Return a trial's predicted rates, with the measured rates of streams if there are any."""
    found: dict[str, list[Rates]] = defaultdict(list)
    measured = [np.empty(0)]
    for one in predictor.predict(trial):
        for model, bps in one.rates.items():
            found[model].append(bps)
        line_bps = np.full(len(one.ranks), np.nan)
        if seen is not None and trial.traffic == "stream":
            flows = seen.get((trial.point, one.part.network, one.phase), {})
            for number, pair in enumerate(one.pairs() if flows else ()):
                if repeats := flows.get(pair):
                    line_bps[number] = median(repeats)
        measured.append(line_bps)
    together = {model: np.concatenate(parts) for model, parts in found.items()}
    return PredictedTrial(trial, len(measured) - 1, together, np.concatenate(measured))


def measured_trials(run: Run, directory: Path) -> dict[tuple[int, int], Trial]:
    """Return the measured trials of a run by (trial, repeat).

    Raise ConfigurationError if no trial was measured, or if the summary is damaged.
    """
    summary = checked(load_summary(directory), directory / SUMMARY)
    measured = {(plan["trial"], plan["repeat"]) for plan in summary["plans"]}
    if not measured:
        raise ConfigurationError(
            f"{directory / SUMMARY} has no measured trial: `switchbench table "
            f"{directory} --again` rebuilds it from the tables, if there are any"
        )
    return {
        (trial.id, trial.repeat): trial
        for trial in run.trials
        if (trial.id, trial.repeat) in measured
    }


def measured_bps(trials: Mapping[tuple[int, int], Trial], directory: Path) -> Seen:
    """Return the layer-1 rates that each flow's destination measured, by phase and flow."""
    seen: dict[Place, dict[Pair, list[float]]] = {}
    tables = Tables(directory, ("flows",))
    opened = {
        (event["port"], event["transport"]): event
        for event in tables.events()
        if event["type"] == "port-open"
    }
    for phase in tables.phases():
        number, repeat, place = phase.moment
        trial = trials.get((number, repeat))
        if trial is None:
            continue
        for network, records in phase.by_network().items():
            flows, at = records.flows(), (trial.point, network, place)
            repeats = seen.setdefault(at, {})
            if transports.of(trial.transport).rdma:
                shapes = measures.packets_of(trial.options, opened, trial.transport, flows)
                flows = replace(flows, packets=shapes)
            found = measures.delivered_line_bps(flows).tolist()
            for pair, rate in zip(flows.pairs, found, strict=True):
                repeats.setdefault(pair, []).extend([] if np.isnan(rate) else [rate])
    return seen
