# SPDX-License-Identifier: BSD-3-Clause
"""How many of the messages under way in a lab meet on its busiest link."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from ..base.documents import PatternDocument
from ..base.model import Part, Site
from ..base.timing import UNKNOWN_LINE_BPS
from ..topology import topology as topologies
from ..topology.fabric import Fabric, Routes
from ..topology.graph import from_topology
from .engine import plan_flows

MOST_FLOWS = 20_000  # of a plan; beyond, it takes longer to find out than it is worth


class Busiest:
    """The links of a lab. A message goes over those of its flow, and its answer back."""

    def __init__(self, fabric: Fabric) -> None:
        self._rank = {host: rank for rank, host in enumerate(fabric.hosts)}
        self._routes = Routes(fabric)

    @classmethod
    def of(cls, site: Site) -> Self | None:
        """A lab's; None of any other site, whose links are not known here."""
        if site.lab is None:
            return None
        topology = topologies.load(site.lab, site.lab_overrides)
        return cls(from_topology(topology, unlimited_bps=round(UNKNOWN_LINE_BPS)))

    def byte_s(self, part: Part, pattern: PatternDocument, seed: int, a_flow: bool) -> float:
        """Seconds that the busiest link takes if each flow (else each rank, by one of its flows)
        sends a byte and gets it back: the mean over phases."""
        places = np.array([self._rank[port.host] for port in part.ranks])
        phases = [
            self._phase_byte_s(places, ranks, a_flow)
            for _, ranks in plan_flows(len(part.ranks), pattern, seed)
            if len(ranks)
        ]
        return sum(phases) / len(phases)

    def _phase_byte_s(
        self, places: npt.NDArray[np.int64], ranks: npt.NDArray[np.int64], a_flow: bool
    ) -> float:
        sources = ranks[:, 0]
        weight = 1.0 if a_flow else 1 / np.bincount(sources)[sources]
        there = self._routes.paths(*places[ranks].T)
        load = np.zeros(self._routes.nothing + 1)
        for paths in (there, self._routes.opposite(there)):
            np.add.at(load, paths, np.broadcast_to(weight, len(ranks))[:, None])
        return float(np.max(8 * load[:-1] / self._routes.capacity_bps))
