# SPDX-License-Identifier: BSD-3-Clause
"""Max-min fairness: no flow can get more but at the cost of one that has no more than it.

What TCP flows of one round-trip time come near to, and what a switch with a queue a flow enforces.
Progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2): all rates rise together
until a resource is full; its flows stay at that rate, the others go on.
"""

from __future__ import annotations

import numpy as np

from ..fabric.routes import Paths, Rates, Routes

_EQUAL = 1e-9  # what rounding may make of two rates that are one


def max_min_bps(routes: Routes, paths: Paths, demand_bps: Rates | None = None) -> Rates:
    """The rate of each flow at layer 1; a flow without a demand has always something to send."""
    capacity = np.append(routes.capacity_bps, np.inf)
    left = capacity.copy()
    wanted = np.full(len(paths), np.inf) if demand_bps is None else demand_bps
    rates = np.zeros(len(paths))
    going = np.arange(len(paths))
    while going.size:
        there = paths[going]
        load = np.bincount(there.ravel(), minlength=capacity.size)
        share = np.full(capacity.size, np.inf)
        np.divide(left, load, out=share, where=load > 0)
        share[routes.nothing] = np.inf
        level = min(share.min(), wanted[going].min())
        stopped = (share[there] <= level * (1 + _EQUAL)).any(axis=1)
        stopped |= wanted[going] <= level * (1 + _EQUAL)
        rates[going[stopped]] = level
        taken = np.bincount(there[stopped].ravel(), minlength=capacity.size)
        left = np.maximum(left - taken * level, 0.0)
        left[routes.nothing] = np.inf
        going = going[~stopped]
    return rates
