# SPDX-License-Identifier: BSD-3-Clause
"""Models that predict the rates of flows which share links, by name.

Each model gives every flow's rate at layer 1, from the flows' paths and the intended rates of their
sources. A resource is one direction of a link; the resource `routes.nothing` has no limit.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from ..topology.fabric import Paths, Ranks, Rates, Routes

_ROUNDS = 200
_STILL = 1e-9
_EQUAL = 1e-9  # relative tolerance of rounding between equal rates


def _load(routes: Routes, paths: Paths) -> Rates:
    """Return, for each link direction (resource), the number of flows that cross it."""
    return np.bincount(paths.ravel(), minlength=routes.nothing + 1).astype(np.float64)


def arriving(routes: Routes, paths: Paths, sent_bps: Rates) -> Rates:
    """Return each flow's delivered layer-1 rate, if full links drop an equal share of each flow.

    A resource passes the same share of each flow that enters it. The rate that enters depends on
    the resources before. In a tree, the shares are exact after as many rounds as the longest path
    has links; in a ring of full links they converge.
    """
    capacity = routes.limit_bps
    passed = np.ones(capacity.size)
    for _ in range(_ROUNDS):
        entering = np.zeros(capacity.size)
        rate = sent_bps
        for resources in paths.T:
            entering += np.bincount(resources, rate, minlength=capacity.size)
            rate = rate * passed[resources]
        new = np.minimum(1.0, capacity / np.maximum(entering, 1.0))
        still = bool(np.abs(new - passed).max() <= _STILL)
        passed = new
        if still:
            break
    arrived: Rates = sent_bps * passed[paths].prod(axis=1)
    return arrived


def max_min_bps(routes: Routes, paths: Paths, demand_bps: Rates) -> Rates:
    """Return each flow's rate by max-min fairness.

    All rates grow at the same pace. A flow stops to grow at its demand, or if a resource on its
    path is full.
    """
    left = routes.limit_bps.copy()
    rates = np.zeros(len(paths))
    going = np.arange(len(paths))
    while going.size:
        there, wanted = paths[going], demand_bps[going]
        share = np.full(left.size, np.inf)
        load = _load(routes, there)
        np.divide(left, load, out=share, where=load > 0)
        level = min(share.min(), wanted.min())
        stopped = (share[there] <= level * (1 + _EQUAL)).any(axis=1)
        stopped |= wanted <= level * (1 + _EQUAL)
        rates[going[stopped]] = level
        left = np.maximum(left - _load(routes, there[stopped]) * level, 0.0)
        going = going[~stopped]
    return rates


def proportional_bps(routes: Routes, paths: Paths, demand_bps: Rates) -> Rates:
    """Return each flow's rate if full queues drop in proportion to the arriving rates.

    A source without a set rate fills its port.
    """
    first = paths[np.arange(len(paths)), (paths != routes.nothing).argmax(axis=1)]
    own = routes.limit_bps[first] / _load(routes, first)[first]
    return arriving(routes, paths, np.minimum(demand_bps, own))


def constrained_bps(routes: Routes, paths: Paths, demand_bps: Rates) -> Rates:
    """Return each flow's rate by Algorithm 1 of Zhu, Lastovetsky, Ali and Riesen 2012.

    Equation and line numbers are the paper's. Its vectors of three resources (rack, sender's NIC,
    receiver's NIC) become the whole path of a flow: equal for two racks, and any tree or routed
    network otherwise. The flows that cross a resource are a flow's with-flow set S (1); the flows
    that cross the other direction of the same link are its contra-flow set (3). The paper prints
    lines 23 and 24, and the sets E' and E'' of its function, with calculated and uncalculated flows
    swapped in places. Here they follow its text: E' are calculated, E'' are not. As published, a
    flow's rate comes from its most congested resources alone, so the sum over another resource can
    exceed its capacity.
    """
    return np.minimum(_Constrained(routes, paths).rates(), demand_bps)


_Key = tuple[float, float, float, int]


@dataclass
class _Flow:
    """Flow (logical link e of the paper): its path, and the opposite directions of the path.

    The opposite directions are in the order of (3): inside the network, the sender's, the
    receiver's. A direction that does not limit the flow is removed from the list.
    """

    number: int
    along: list[int]
    against: list[int]


@dataclass
class _Constrained:
    routes: Routes
    paths: Paths
    crossing: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    bps: dict[int, float] = field(default_factory=dict)  # rates of the flows computed so far

    def rates(self) -> Rates:
        """Return the rates of all flows; flows with an equal highest key are computed together."""
        routes, flows = self.routes, []
        both = zip(self.paths, routes.opposite(self.paths), strict=True)
        for number, (path, back) in enumerate(both):
            along, other = ([int(r) for r in way if r != routes.nothing] for way in (path, back))
            flows.append(_Flow(number, along, [*other[1:-1], *other[:1], *other[1:][-1:]]))
            for resource in along:
                self.crossing[resource].append(number)
        queue = [self._key(flow) for flow in flows]
        heapq.heapify(queue)
        while queue:
            first = heapq.heappop(queue)
            alike = [first[-1]]
            while queue and all(_same(a, b) for a, b in zip(first, queue[0][:-1], strict=False)):
                alike.append(heapq.heappop(queue)[-1])
            found = {number: self._rate(flows[number]) for number in alike}
            for number, bps in found.items():
                if bps is None:
                    heapq.heappush(queue, self._key(flows[number]))
                else:
                    self.bps[number] = bps
        return np.array([self.bps[number] for number in range(len(flows))])

    def _time(self, resource: int) -> float:
        """Return the time to send one bit of each flow that crosses a link direction (resource)."""
        return len(self.crossing[resource]) / float(self.routes.capacity_bps[resource])

    def _congestion(self, resources: list[int]) -> float:
        """Return the congestion k, equations (2) and (4): the longest time of the resources."""
        return max(map(self._time, resources), default=0.0)

    def _full(self, resources: list[int]) -> list[int]:
        k = self._congestion(resources)
        return [r for r in resources if _same(self._time(r), k)]

    def _key(self, flow: _Flow) -> _Key:
        """Return the sort key (7) of a flow: its congestion, negated for heapq, and its number."""
        k, contra = self._congestion(flow.along), self._congestion(flow.against)
        return (-max(k, contra), -k, -contra, flow.number)

    def _rate(self, flow: _Flow) -> float | None:
        """Return a flow's rate by lines 6 to 20 of the algorithm; None if the flow must wait."""
        if self._congestion(flow.along) >= self._congestion(flow.against) * (1 - _EQUAL):
            return min(self._share(r, flow) for r in self._full(flow.along))
        rate = None
        # Lines 12 to 20: if several contra-flow resources are equally congested, the last one sets
        # the rate, as line 17 is printed.
        for resource in self._full(flow.against):
            known = [self.bps[f] for f in self.crossing[resource] if f in self.bps]
            if _same(sum(known), float(self.routes.capacity_bps[resource])):
                rate = max(known)
            else:
                flow.against.remove(resource)
        return rate

    def _share(self, resource: int, flow: _Flow) -> float:
        """Return a link direction's bandwidth for one flow: `inverseBandwidth`, lines 26 to 32."""
        flows = self.crossing[resource]
        capacity = float(self.routes.capacity_bps[resource])
        left = capacity - sum(self.bps[f] for f in flows if f in self.bps)
        waiting = sum(f not in self.bps for f in flows)
        alone = min(float(self.routes.capacity_bps[r]) for r in flow.along)
        return min(alone, left / waiting if left > capacity * _EQUAL else capacity / len(flows))


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= _EQUAL * max(abs(a), abs(b))


Model = Callable[[Routes, Paths, Rates], Rates]
# Models in the order of output; demands are offered rates at layer 1.
MODELS: dict[str, Model] = {
    "max-min": max_min_bps,
    "proportional": proportional_bps,
    "constrained": constrained_bps,
}
SLOW = ("constrained",)  # these models need Python code for each flow


def rates(
    routes: Routes, ranks: Ranks, demand_bps: Rates, models: Iterable[str]
) -> dict[str, Rates]:
    """Return each model's predicted rates; `ranks` has a row (source, destination) per flow."""
    paths = routes.paths(ranks[:, 0], ranks[:, 1])
    return {name: MODELS[name](routes, paths, demand_bps) for name in models}
