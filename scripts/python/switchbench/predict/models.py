# SPDX-License-Identifier: BSD-3-Clause
"""The models of contention by name.

Each gives every flow's rate at layer 1, from the flows' paths and the rates that their sources
intend.

Flows that no model can tell apart are counted once. In a phase of an all-to-all most links at the
hosts carry one flow each, and of such links only the capacity says anything: flows whose paths are
the same but for links that they have to themselves, of the same capacity at the same place, and
that would send as much, get the same rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..topology.fabric.routes import Paths, Ranks, Rates, Routes
from .constrained import constrained_bps

_SEED = 1  # of the numbers that rows are compared by; which, makes no difference


@dataclass(frozen=True)
class Folded:
    """The different flows of a phase; a row stands for `counts` of them."""

    capacity_bps: Rates
    """Of each resource of these paths, `nothing` the last; of what is a row's own, for all of the
    row's flows together, so that each one's share is the link's."""
    nothing: int
    paths: Ranks
    """By resources' numbers here."""
    demand_bps: Rates
    counts: Rates
    row: Ranks
    """Of each flow of the phase, the row that stands for it."""

    def load(self, resources: Ranks, rows: Ranks | slice = slice(None)) -> Rates:
        """Return how many flows cross each resource.

        Some rows' resources, and which rows those are.
        """
        counts = np.broadcast_to(
            self.counts[rows].reshape(-1, *(1,) * (resources.ndim - 1)), resources.shape
        )
        load: Rates = np.bincount(
            resources.ravel(), counts.ravel(), minlength=self.capacity_bps.size
        ).astype(np.float64)
        return load


@lru_cache(maxsize=4)
def _salts(resources: int, places: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Numbers that rows are compared by: of each name of a resource, and of each place in a row."""
    rng = np.random.default_rng(_SEED)
    names = rng.integers(1 << 63, size=2 * resources, dtype=np.uint64)
    return names, rng.integers(1 << 62, size=places, dtype=np.uint64) * 2 + 1


def fold(routes: Routes, paths: Paths, demand_bps: Rates) -> Folded:
    """Return each different flow once, by 64-bit keys.

    That two of 4,096 flows with different paths have the same one has a chance of 10^-12.
    """
    size = routes.nothing + 1
    columns = np.ascontiguousarray(paths.T, dtype=np.intp)
    load = np.bincount(columns.ravel(), minlength=size)
    names, places = _salts(size, len(columns) + 1)
    salted = np.where(load == 1, names[size:].take(routes.kind), names[:size])
    keys = demand_bps.astype(np.float64).view(np.uint64) * places[-1]
    for resources, place in zip(columns, places[:-1], strict=True):
        keys += salted.take(resources) * place
    order = keys.argsort()
    ordered = keys[order]
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    starts = np.concatenate(([0], starts, [len(order)]))
    first, counts = order[starts[:-1]], np.diff(starts)
    row = np.empty_like(order)
    row[order] = np.arange(first.size).repeat(counts)
    rows = columns[:, first]
    own = load[rows] == 1
    used = np.zeros(size, dtype=bool)
    used[rows] = True
    used[routes.nothing] = True  # the last of all, and so of these
    here = np.flatnonzero(used)
    number = np.empty(size, dtype=np.int64)
    number[here] = np.arange(here.size)
    capacity = routes.limit_bps.copy()
    capacity[rows[own]] *= np.broadcast_to(counts, own.shape)[own]
    return Folded(
        capacity[here], here.size - 1, number[rows].T, demand_bps[first],
        counts.astype(np.float64), row,
    )  # fmt: skip


_ROUNDS = 200
_STILL = 1e-9
_EQUAL = 1e-9  # what rounding may make of two rates that are one


def arriving(flows: Folded, sent_bps: Rates) -> Rates:
    """Return what arrives of each flow at layer 1; `sent_bps`: what each row's flows send.

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


def max_min_bps(flows: Folded) -> Rates:
    """Return the rate of each flow at layer 1, one for each flow that the rows stand for."""
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


def proportional_bps(flows: Folded) -> Rates:
    """Return the rate of each flow through drop-tail queues.

    A source that has always something to send sends what its port carries.
    """
    there = flows.paths != flows.nothing
    first = flows.paths[np.arange(len(flows.paths)), there.argmax(axis=1)]
    load = flows.load(first)
    return arriving(flows, np.minimum(flows.demand_bps, flows.capacity_bps[first] / load[first]))


Model = Callable[[Routes, Paths, Rates, Folded], Rates]
# In the order of print; demands are at layer 1, as offered.
MODELS: dict[str, Model] = {
    "max-min": lambda routes, paths, demand_bps, folded: max_min_bps(folded),
    "proportional": lambda routes, paths, demand_bps, folded: proportional_bps(folded),
    "constrained": lambda routes, paths, demand_bps, folded: np.minimum(
        constrained_bps(routes, paths), demand_bps
    ),
}
SLOW = ("constrained",)  # costs a step in Python for each flow


def rates(
    routes: Routes, ranks: Ranks, demand_bps: Rates, models: Iterable[str]
) -> dict[str, Rates]:
    """Return each model's rates of flows; `ranks`: a row of source and destination a flow."""
    paths = routes.paths(ranks[:, 0], ranks[:, 1])
    folded = fold(routes, paths, demand_bps)
    return {name: MODELS[name](routes, paths, demand_bps, folded) for name in models}
