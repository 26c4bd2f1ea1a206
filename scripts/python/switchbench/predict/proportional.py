# SPDX-License-Identifier: BSD-3-Clause
"""Drop-tail queues in order of arrival: what an output can't carry is lost by all in proportion.

What senders without congestion control get, raw frames above all: a flow's share of a full output
is its share of what comes in there, so that who sends more gets more.

That is so where frames arrive at random moments: not of constant rates in phase, and not behind
another full queue, which frames leave evenly spaced (doc/reference/topology.md).
"""

from __future__ import annotations

import numpy as np

from ..topology.fabric.routes import Rates
from .folded import Folded

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
