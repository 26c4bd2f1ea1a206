# SPDX-License-Identifier: BSD-3-Clause
"""The models of contention by name: each gives every flow's rate, from the flows' paths and the
rates that their sources intend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..topology.fabric.routes import Paths, Ranks, Rates, Routes
from .constrained import constrained_bps
from .folded import Folded, fold

_ROUNDS = 200
_STILL = 1e-9


def arriving(flows: Folded, sent_bps: Rates) -> Rates:
    """What arrives of each flow at layer 1; `sent_bps`: what each row's flows send.

    Each resource passes the same share of all that enters it. What enters depends on what was
    passed before; in a tree the shares are found after as many rounds as the longest path has
    links, and with a ring of full links they converge.
    """
    capacity = flows.capacity_bps
    passed = np.ones(capacity.size)
    sent = flows.counts * sent_bps
    for _ in range(_ROUNDS):
        entering = np.zeros(capacity.size)
        rate = sent
        for resources in flows.paths.T:
            entering += np.bincount(resources, rate, minlength=capacity.size)
            rate = rate * passed[resources]
        new = np.minimum(1.0, capacity / np.maximum(entering, 1.0))
        new[flows.nothing] = 1.0
        still = bool(np.abs(new - passed).max() <= _STILL)
        passed = new
        if still:
            break
    arrived: Rates = sent_bps * passed[flows.paths].prod(axis=1)
    return arrived[flows.row]


_EQUAL = 1e-9  # what rounding may make of two rates that are one


def max_min_bps(flows: Folded) -> Rates:
    """The rate of each flow at layer 1, one for each flow that the rows stand for."""
    left = flows.capacity_bps.copy()
    rates = np.zeros(len(flows.paths))
    going = np.arange(len(flows.paths))
    while going.size:
        there, wanted = flows.paths[going], flows.demand_bps[going]
        load = flows.load(there, going)
        share = np.full(left.size, np.inf)
        np.divide(left, load, out=share, where=load > 0)
        share[flows.nothing] = np.inf
        level = min(share.min(), wanted.min())
        stopped = (share[there] <= level * (1 + _EQUAL)).any(axis=1)
        stopped |= wanted <= level * (1 + _EQUAL)
        rates[going[stopped]] = level
        taken = flows.load(there[stopped], going[stopped])
        left = np.maximum(left - taken * level, 0.0)
        left[flows.nothing] = np.inf
        going = going[~stopped]
    return rates[flows.row]


@dataclass(frozen=True)
class Flows:
    """The flows of one phase in one network."""

    routes: Routes
    sources: Ranks
    demand_bps: Rates
    """At layer 1, as offered."""
    paths: Paths

    @classmethod
    def of(cls, routes: Routes, ranks: Ranks, demand_bps: Rates) -> Flows:
        """From rows of source and destination."""
        sources, destinations = ranks[:, 0], ranks[:, 1]
        return cls(routes, sources, demand_bps, routes.paths(sources, destinations))

    @cached_property
    def folded(self) -> Folded:
        """Those that differ: what most models look at."""
        return fold(self.routes, self.paths, self.demand_bps)

    @cached_property
    def ends(self) -> tuple[Ranks, Ranks]:
        """The columns of the first and the last resource of each folded path."""
        there = self.folded.paths != self.folded.nothing
        return there.argmax(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1)

    def offering(self, demand_bps: Rates) -> Flows:
        """The same flows with other demands."""
        return replace(self, demand_bps=demand_bps)


Model = Callable[[Flows], Rates]


def proportional(flows: Flows) -> Rates:
    """Drop-tail queues; who has always something to send sends what its port carries."""
    folded = flows.folded
    first = folded.paths[np.arange(len(folded.paths)), flows.ends[0]]
    load = folded.load(first)
    sent = np.minimum(folded.demand_bps, folded.capacity_bps[first] / load[first])
    return arriving(folded, sent)


def _constrained(flows: Flows, asymmetric: bool) -> Rates:
    """Algorithm 1 of Zhu et al. 2012."""
    found = constrained_bps(flows.routes, flows.paths, asymmetric)
    return np.minimum(found, flows.demand_bps)


MODELS: dict[str, Model] = {
    "max-min": lambda flows: max_min_bps(flows.folded),
    "proportional": proportional,
    "constrained": lambda flows: _constrained(flows, asymmetric=True),
    "constrained-fair": lambda flows: _constrained(flows, asymmetric=False),
}
"""In the order of print."""

SLOW = ("constrained", "constrained-fair")
"""They cost a step in Python for each flow."""
