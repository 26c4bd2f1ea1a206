# SPDX-License-Identifier: BSD-3-Clause
"""Flows that no model can tell apart, counted once.

In a phase of an all-to-all most links at the hosts carry one flow each, and of such links only the
capacity says anything. Flows whose paths are the same but for links that they have to themselves,
of the same capacity at the same place, and that would send as much, get the same rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..topology.fabric.routes import Paths, Ranks, Rates, Routes

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
    first: Ranks
    """Of each row, a flow that it stands for."""
    row: Ranks
    """Of each flow of the phase, the row that stands for it."""

    def load(self, resources: Ranks, rows: Ranks | slice = slice(None)) -> Rates:
        """How many flows cross each resource: some rows' resources, and which rows those are."""
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
    """Each different flow once, by 64-bit keys: that two of 4,096 flows with different paths have
    the same one has a chance of 10^-12."""
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
        capacity[here],
        here.size - 1,
        number[rows].T,
        demand_bps[first],
        counts.astype(np.float64),
        first,
        row,
    )
