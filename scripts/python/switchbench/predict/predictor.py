# SPDX-License-Identifier: BSD-3-Clause
"""The rates that models predict for a run: its flows, its network, and what each model says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ..analysis import measures
from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import Part, Run, Trial
from ..base.programs import find_engine
from ..plan.engine import plan_phases
from ..topology import topology as topologies
from ..topology.fabric import Fabric, Routes
from ..topology.fabric.routes import Ranks, Rates
from ..topology.file_form import TopologyError
from ..topology.graph import from_topology
from .models import MODELS, SLOW, rates

Pair = tuple[str, str]
Place = tuple[int, str, int]
"""A trial's point, the network, the phase."""
Recorded = Mapping[str, Mapping[int, Ranks]]
"""By network and phase a row for each flow: its source and destination in the network's part."""

MOST_SLOW_FLOWS = 200_000
"""Models that go through flows one by one are left out of plans with more."""


@dataclass(frozen=True)
class PhasePrediction:
    """What is expected of one phase in one network."""

    part: Part
    phase: int
    ranks: Ranks
    """A row a flow: its source and destination in the part."""
    demand_bps: Rates
    """What each flow was to send."""
    rates: dict[str, Rates]
    """By model, at layer 1."""

    def pairs(self) -> list[Pair]:
        """Return the flows by their ports' names."""
        names = [port.name for port in self.part.ranks]
        return [(names[source], names[destination]) for source, destination in self.ranks]


def fabric_of(run: Run, topology: str | None) -> Fabric:
    """Return the network of a run: its lab's, or the topology file that describes a site."""
    if topology is None and run.site.lab is None:
        raise ConfigurationError(
            "a site of real hosts says nothing of its switches: give --topology FILE "
            "(doc/reference/topology.md)"
        )
    try:
        if topology is not None:
            return from_topology(topologies.load(topology))
        return from_topology(topologies.load(str(run.site.lab), run.site.lab_overrides))
    except TopologyError as error:
        raise ConfigurationError(str(error)) from None


def points(run: Run) -> list[Trial]:
    """Return one trial of each setting: repeats are predicted alike."""
    found: dict[int, Trial] = {}
    for trial in run.trials:
        found.setdefault(trial.point, trial)
    return list(found.values())


def recorded_flows(trial: Trial, pairs: Mapping[Place, Collection[Pair]]) -> Recorded | None:
    """Return a trial's flows as records have them, by their ports' names.

    So that the engine is not asked for its plan again; None where they are not all of the trial's.

    A run that was cut short has not recorded all flows, and a part of a phase's flows is another
    phase. The connectivity check is no phase.
    """
    found: dict[str, dict[int, Ranks]] = {}
    for part in trial.parts:
        rank = {port.name: number for number, port in enumerate(part.ranks)}
        found[part.network] = {
            phase: np.array(
                sorted((rank[a], rank[b]) for a, b in some if a in rank and b in rank),
                dtype=np.int64,
            ).reshape(-1, 2)
            for (point, network, phase), some in sorted(pairs.items())
            if (point, network) == (trial.point, part.network) and phase >= 0
        }
    count = sum(len(ranks) for phases in found.values() for ranks in phases.values())
    if count == trial.flows:
        return found
    try:
        find_engine()
    except ConfigurationError as error:
        raise ConfigurationError(
            f"the records have {count:,} of the {trial.flows:,} flows of trial {trial.id}, and "
            f"only the engine knows the others: {error}"
        ) from None
    return None


class Predictor:
    """Predicts trials on one network."""

    def __init__(self, fabric: Fabric, models: Sequence[str] = tuple(MODELS)) -> None:
        """Route between the hosts of a fabric, for models by their names."""
        self.fabric = fabric
        self._models = models
        self._routes = Routes(fabric)
        self._rank = {host: rank for rank, host in enumerate(fabric.hosts)}

    def predict(self, trial: Trial, recorded: Recorded | None = None) -> Iterator[PhasePrediction]:
        """Yield the prediction of each phase of each network of a trial.

        `recorded`: its flows where records have them all.
        """
        models = [n for n in self._models if n not in SLOW or trial.flows <= MOST_SLOW_FLOWS]
        for part in trial.parts:
            places = self._places(part)
            flows: Iterable[tuple[int, Ranks]]
            if recorded is None:
                phases = plan_phases(len(part.ranks), trial.pattern, trial.seed)
                flows = ((each.number, each.flows) for each in phases)
            else:
                flows = recorded[part.network].items()
            for phase, ranks in flows:
                if len(ranks):
                    demand = demand_bps(trial, part, ranks)
                    found = rates(self._routes, places[ranks], demand, models)
                    yield PhasePrediction(part, phase, ranks, demand, found)

    def _places(self, part: Part) -> Ranks:
        """Return where in the fabric each rank is; refused where the two don't fit together."""
        hosts = [port.host for port in part.ranks]
        unknown = [host for host in hosts if host not in self._rank]
        if unknown:
            known = NodeSet.fromlist(list(self.fabric.hosts), resolver=RESOLVER_NOGROUP)
            raise ConfigurationError(
                f"topology {self.fabric.name} has no host {unknown[0]}, which network "
                f"{part.network} has; it has {known}: "
                "give --topology the file of the network that the configuration is for"
            )
        twice = [host for host, ports in Counter(hosts).items() if ports > 1]
        if twice:
            raise ConfigurationError(
                f"{twice[0]} has several ports in network {part.network}; a topology knows one"
            )
        return np.array([self._rank[host] for host in hosts], dtype=np.int64)


def _payload_share(trial: Trial) -> float:
    """Return payload by layer-1 bits of large messages: full frames of MTU 1500, or packets."""
    if not transports.of(trial.transport).rdma:
        payload = measures.TCP_SEGMENT_PAYLOAD
        return payload / (payload + measures.TCP_SEGMENT_OVERHEAD)
    shape = measures.packet_shape(trial.options, {}, None)
    return shape.path_mtu_bytes / (shape.path_mtu_bytes + shape.packet_bytes)


def demand_bps(trial: Trial, part: Part, ranks: Ranks) -> Rates:
    """Return what each flow is offered at layer 1: its port's load, shared by the port's flows.

    Messages at 100 % have no limit but their ports' lines, as the engine paces none of them
    (offered_load.h); frames are paced at any load.
    """
    lines = np.array([port.line_rate_bps or np.inf for port in part.ranks])
    unpaced = trial.size_unit == "message" and trial.load.percent == 100.0
    if unpaced or trial.traffic not in ("stream", "transfer"):
        limits: Rates = lines[ranks].min(axis=1)
        return limits
    if trial.load.percent is not None:
        offered = lines * trial.load.percent / 100.0
    elif trial.load.bps is not None:
        offered = np.full(len(lines), float(trial.load.bps))
    else:
        mean = sum(trial.sizes) / len(trial.sizes)
        frames = trial.size_unit == "frame"
        line_bytes = mean + measures.FRAME_OVERHEAD_L1 if frames else mean / _payload_share(trial)
        offered = np.full(len(lines), 8.0 * line_bytes * float(trial.load.fps or 0.0))
    sources = ranks[:, 0]
    shared = np.bincount(sources, minlength=len(lines))
    demand: Rates = (np.minimum(offered, lines) / np.maximum(shared, 1))[sources]
    return demand
