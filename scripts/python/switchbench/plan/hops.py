# SPDX-License-Identifier: BSD-3-Clause
"""How many hops the flows of a routed lab take."""

from __future__ import annotations

from functools import cache
from typing import Self

import numpy as np

from ..base.model import Site
from ..topology import topology as topologies
from ..topology.fabric import Fabric, Routes
from ..topology.file_form import ROUTED
from ..topology.graph import from_topology


class Hops:
    """Between hosts that forward; a hop leads over one link, or through switches."""

    def __init__(self, fabric: Fabric) -> None:
        self._rank = {host: rank for rank, host in enumerate(fabric.hosts)}
        self._routes = Routes(fabric)
        self.between = cache(self._between)

    @classmethod
    def of(cls, site: Site) -> Self | None:
        """A routed lab's; None of any other site, where a flow has one hop."""
        if site.lab is None:
            return None
        topology = topologies.load(site.lab, site.lab_overrides)
        if topology.kind != ROUTED:
            return None
        return cls(from_topology(topology, unlimited_bps=1))

    def _between(self, source: str, destination: str) -> int:
        ends = (np.array([self._rank[host]]) for host in (source, destination))
        return int(self._routes.host_hops(*ends)[0])
