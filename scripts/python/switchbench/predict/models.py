# SPDX-License-Identifier: BSD-3-Clause
"""The models by name: each says every flow's rate, given paths and what each would like to send.

Two know nothing of a network's inside and are the measure of the others: Hockney's sees a single
message on an empty network, LogGP's sees the end points, for whose gap all flows of a port wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..fabric.routes import Paths, Ranks, Rates, Routes
from .constrained import constrained_bps
from .fair import max_min_bps
from .proportional import proportional_bps


@dataclass(frozen=True)
class Flows:
    """The flows of one phase in one network."""

    routes: Routes
    sources: Ranks
    destinations: Ranks
    demand_bps: Rates
    """At layer 1, as offered."""
    paths: Paths

    @classmethod
    def of(cls, routes: Routes, ranks: Ranks, demand_bps: Rates) -> Flows:
        """From rows of source and destination."""
        sources, destinations = ranks[:, 0], ranks[:, 1]
        return cls(routes, sources, destinations, demand_bps, routes.paths(sources, destinations))

    def only(self, which: Ranks) -> Flows:
        """Some of them, by number."""
        return Flows(
            self.routes,
            self.sources[which],
            self.destinations[which],
            self.demand_bps[which],
            self.paths[which],
        )

    def offering(self, demand_bps: Rates) -> Flows:
        """The same flows with other demands."""
        return replace(self, demand_bps=demand_bps)


Model = Callable[[Flows], Rates]


def hockney(flows: Flows) -> Rates:
    """The narrowest link of its path, as if nothing else were sent (Hockney 1994)."""
    capacity = np.append(flows.routes.capacity_bps, np.inf)
    rate: Rates = np.minimum(capacity[flows.paths].min(axis=1), flows.demand_bps)
    return rate


def loggp(flows: Flows) -> Rates:
    """The end points' gap a byte, shared by the flows of a port (Alexandrov et al. 1995)."""
    routes, paths = flows.routes, flows.paths
    capacity = np.append(routes.capacity_bps, np.inf)
    first, last = paths[np.arange(len(paths)), _ends(routes, paths)]
    # A cable between two hosts is a flow's first link and its last.
    ends = np.concatenate([first, last[last != first]])
    load = np.bincount(ends, minlength=capacity.size)
    rate: Rates = np.minimum(capacity[first] / load[first], capacity[last] / load[last])
    return np.minimum(rate, flows.demand_bps)


def proportional(flows: Flows) -> Rates:
    """Drop-tail queues; who has always something to send sends what its port carries."""
    capacity = np.append(flows.routes.capacity_bps, np.inf)
    first = flows.paths[np.arange(len(flows.paths)), _ends(flows.routes, flows.paths)[0]]
    load = np.bincount(first, minlength=capacity.size)
    sent = np.minimum(flows.demand_bps, capacity[first] / load[first])
    return proportional_bps(flows.routes, flows.paths, sent)


def _ends(routes: Routes, paths: Paths) -> tuple[Ranks, Ranks]:
    """The columns of each path's first and last resource."""
    there = paths != routes.nothing
    return there.argmax(axis=1), paths.shape[1] - 1 - there[:, ::-1].argmax(axis=1)


MODELS: dict[str, Model] = {
    "hockney": hockney,
    "loggp": loggp,
    "max-min": lambda flows: max_min_bps(flows.routes, flows.paths, flows.demand_bps),
    "proportional": proportional,
    "constrained": lambda flows: np.minimum(
        constrained_bps(flows.routes, flows.paths), flows.demand_bps
    ),
    "constrained-fair": lambda flows: np.minimum(
        constrained_bps(flows.routes, flows.paths, asymmetric=False), flows.demand_bps
    ),
}
"""In the order of print. The last two cost a step in Python for each flow."""

SLOW = ("constrained", "constrained-fair")
