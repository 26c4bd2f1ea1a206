# SPDX-License-Identifier: BSD-3-Clause
"""Max-min fairness: no flow can get more but at the cost of one that has no more than it.

What TCP flows of one round-trip time come near to, and what a switch with a queue a flow enforces.
Progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2): all rates rise together
until a resource is full; its flows stay at that rate, the others go on.
"""

from __future__ import annotations

import numpy as np

from ..topology.fabric.routes import Rates
from .folded import Folded

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
