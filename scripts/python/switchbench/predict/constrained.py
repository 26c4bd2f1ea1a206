# SPDX-License-Identifier: BSD-3-Clause
"""The resource-constrained model of Zhu, Lastovetsky, Ali and Riesen 2012 (Algorithm 1).

Equation numbers are the paper's. Its vectors of three resources (rack, sender's NIC, receiver's
NIC) become the whole path of a flow: the same for two racks, and any tree or routed network else.
A resource is one direction of a link; what crosses it is the flow's with-flow set S (1), and what
crosses the other direction of the same link its contra-flow set (3).

The paper prints lines 23 and 24 of the algorithm, and the sets E' and E'' of its function, with
the roles of calculated and not yet calculated flows changed in places; here they are as its text
says: E' are calculated, E'' are not. As published, a flow's rate comes from its most congested
resources alone; so the sum over another one can come out above what that can carry.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..topology.fabric.routes import Paths, Rates, Routes

_EQUAL = 1e-9

_Key = tuple[float, float, float, int]


@dataclass
class _Flow:
    """A logical link e with what the algorithm asks of it."""

    number: int
    along: list[int]
    """The resources of its path."""
    against: list[int]
    """Their other directions in the order of (3): inside of the network, the sender's, the
    receiver's. One is dropped when it turns out not to hold the flow back."""


@dataclass
class _State:
    routes: Routes
    crossing: dict[int, list[int]]
    """The flows over each resource."""
    bps: dict[int, float] = field(default_factory=dict)
    """Of those that are calculated."""

    def congestion(self, resources: list[int]) -> float:
        """Return k of (2) and (4): the time that each flow's bit would need where most share."""
        times = (self._beta(r) * len(self.crossing[r]) for r in resources)
        return max(times, default=0.0)

    def _beta(self, resource: int) -> float:
        return 1.0 / float(self.routes.capacity_bps[resource])

    def key(self, flow: _Flow) -> _Key:
        """(7), greatest first as heapq has it; the flow's number makes it unique."""
        k, contra = self.congestion(flow.along), self.congestion(flow.against)
        return (-max(k, contra), -k, -contra, flow.number)

    def rate(self, flow: _Flow) -> float | None:
        """Lines 6 to 20; None when the flow has to be looked at again without a resource."""
        if self.congestion(flow.along) >= self.congestion(flow.against) * (1 - _EQUAL):
            return self._fairly(flow)
        return self._asymmetrically(flow)

    def _fairly(self, flow: _Flow) -> float:
        """Lines 7 to 10: what the most congested resources of its path leave to the flow."""
        k = self.congestion(flow.along)
        full = [r for r in flow.along if _same(self._beta(r) * len(self.crossing[r]), k)]
        return min(self._share(r, flow) for r in full)

    def _share(self, resource: int, flow: _Flow) -> float:
        """`inverseBandwidth`, lines 26 to 32, as a bandwidth."""
        flows = self.crossing[resource]
        capacity = float(self.routes.capacity_bps[resource])
        left = capacity - sum(self.bps[f] for f in flows if f in self.bps)
        waiting = sum(f not in self.bps for f in flows)
        alone = min(float(self.routes.capacity_bps[r]) for r in flow.along)
        share = left / waiting if left > capacity * _EQUAL else capacity / len(flows)
        return min(alone, share)

    def _asymmetrically(self, flow: _Flow) -> float | None:
        """Follow lines 12 to 20: of contra-flow resources as congested the last one counts.

        As line 17 is printed.
        """
        contra = self.congestion(flow.against)
        full = [r for r in flow.against if _same(self._beta(r) * len(self.crossing[r]), contra)]
        rate = None
        for resource in full:
            known = [self.bps[f] for f in self.crossing[resource] if f in self.bps]
            if _same(sum(known), float(self.routes.capacity_bps[resource])):
                rate = max(known)
            else:
                flow.against.remove(resource)
        return rate


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= _EQUAL * max(abs(a), abs(b))


def _most_congested(queue: list[_Key]) -> Iterator[int]:
    """Take the flows with the greatest key from the queue."""
    first = heapq.heappop(queue)
    yield first[-1]
    while queue and all(_same(a, b) for a, b in zip(first[:-1], queue[0][:-1], strict=True)):
        yield heapq.heappop(queue)[-1]


def constrained_bps(routes: Routes, paths: Paths) -> Rates:
    """Return the rate of each flow at layer 1."""
    state = _State(routes, defaultdict(list))
    flows = []
    for number, (along, against) in enumerate(zip(paths, routes.opposite(paths), strict=True)):
        ways = [[int(r) for r in way if r != routes.nothing] for way in (along, against)]
        contra = [*ways[1][1:-1], *ways[1][:1], *ways[1][1:][-1:]]
        flows.append(_Flow(number, ways[0], contra))
        for resource in ways[0]:
            state.crossing[resource].append(number)
    queue = [state.key(flow) for flow in flows]
    heapq.heapify(queue)
    while queue:
        found = {number: state.rate(flows[number]) for number in _most_congested(queue)}
        for number, bps in found.items():
            if bps is None:
                heapq.heappush(queue, state.key(flows[number]))
            else:
                state.bps[number] = bps
    return np.array([state.bps[number] for number in range(len(flows))])
