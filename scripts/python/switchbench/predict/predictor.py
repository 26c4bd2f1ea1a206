# SPDX-License-Identifier: BSD-3-Clause
"""Predicts a run: the flows of its patterns, on its network, by each model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ..analysis import measures
from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import Part, Run, Trial
from ..plan.engine import plan_phases
from ..topology import topology as topologies
from ..topology.fabric import Fabric, Routes
from ..topology.fabric.routes import Ranks, Rates
from ..topology.file_form import TopologyError
from ..topology.graph import from_topology
from .models import MODELS, SLOW, Flows
from .recorded import Pair, Place, Recorded, is_whole

ByFlow = Mapping[Place, Mapping[Pair, float]]

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
    offered_rates: dict[str, Rates] = field(default_factory=dict)
    """The same, of what the sources really sent; empty where that is not known."""

    def pairs(self) -> list[Pair]:
        """The flows by their ports' names."""
        return pairs_of(self.part, self.ranks)


def pairs_of(part: Part, ranks: Ranks) -> list[Pair]:
    """Flows by their ports' names."""
    names = [port.name for port in part.ranks]
    return [(names[source], names[destination]) for source, destination in ranks]


def fabric_of(run: Run, topology: str | None) -> Fabric:
    """The network of a run: its lab's, or the topology file that describes a site."""
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
    """One trial of each setting: repeats are predicted alike."""
    found: dict[int, Trial] = {}
    for trial in run.trials:
        found.setdefault(trial.point, trial)
    return list(found.values())


class Predictor:
    """Predicts trials on one network."""

    def __init__(self, fabric: Fabric, models: Sequence[str] = tuple(MODELS)) -> None:
        """Route between the hosts of a fabric, for models by their names."""
        self.fabric = fabric
        self._models = models
        self._routes = Routes(fabric)
        self._rank = {host: rank for rank, host in enumerate(fabric.hosts)}

    def models_for(self, trial: Trial) -> list[str]:
        """Those that can be asked for a plan of this size."""
        fast = trial.flows > MOST_SLOW_FLOWS
        return [name for name in self._models if not (fast and name in SLOW)]

    def predict(
        self, trial: Trial, offered: ByFlow | None = None, recorded: Recorded | None = None
    ) -> Iterator[PhasePrediction]:
        """Each phase of each network of a trial; `offered`: what sources were seen to send.
        `recorded`: the flows that there are records of."""
        models = self.models_for(trial)
        whole = is_whole(trial, recorded)
        for part in trial.parts:
            places = self._places(part)
            planned: Iterable[tuple[int, Ranks]]
            if whole:
                planned = (recorded or {})[part.network].items()
            else:
                phases = plan_phases(len(part.ranks), trial.pattern, trial.seed)
                planned = ((each.number, each.flows) for each in phases)
            for phase, ranks in planned:
                if not len(ranks):
                    continue
                demand = demand_bps(trial, part, ranks)
                flows = Flows.of(self._routes, places[ranks], demand)
                known = (offered or {}).get((trial.point, part.network, phase))
                sent = None if known is None else _sent(flows, part, ranks, known)
                yield PhasePrediction(
                    part,
                    phase,
                    ranks,
                    demand,
                    {name: MODELS[name](flows) for name in models},
                    {name: MODELS[name](sent) for name in models} if sent else {},
                )

    def _places(self, part: Part) -> Ranks:
        """Where in the fabric each rank is; refused where the two don't fit together."""
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


def _sent(flows: Flows, part: Part, ranks: Ranks, offered: Mapping[Pair, float]) -> Flows | None:
    """The flows with what their sources sent; None where that is not known of each."""
    seen = np.array([offered.get(pair, np.nan) for pair in pairs_of(part, ranks)])
    return flows.offering(seen) if np.all(seen > 0) else None


def _payload_share(trial: Trial) -> float:
    """Return payload by layer-1 bits of large messages: full frames of MTU 1500, or packets."""
    if not transports.of(trial.transport).rdma:
        payload = measures.TCP_SEGMENT_PAYLOAD
        return payload / (payload + measures.TCP_SEGMENT_OVERHEAD)
    shape = measures.packet_shape(trial.options, {}, None)
    return shape.path_mtu_bytes / (shape.path_mtu_bytes + shape.packet_bytes)


def demand_bps(trial: Trial, part: Part, ranks: Ranks) -> Rates:
    """What each flow is offered at layer 1: the load of its port, shared by the port's flows.

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
