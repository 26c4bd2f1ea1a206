# SPDX-License-Identifier: BSD-3-Clause
"""Parallel links: the likelihood of a trunk's flows against a sum over all their ways."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from switchbench.analysis.location.channel import Channel, ElementClasses, Hashing
from switchbench.analysis.location.facts import Element

LINK = 1e9
SPREAD = 0.15
SENT = 10_000.0


def trunk_of(links: int, loads: np.ndarray, lost: np.ndarray) -> Channel:
    """Return flows over one trunk, the same ones in each phase: loads, lost shares by phase."""
    flows = loads.shape[1]
    rows = np.arange(loads.size)
    phase, pair = (x.ravel() for x in np.indices(loads.shape))
    none = np.zeros(len(rows), np.bool_)
    channel = Channel(
        "loss", rows, phase, pair, np.arange(flows), flows + np.arange(flows),
        np.full(len(rows), SENT), np.round(SENT * lost.ravel()), loads.ravel(), none,
        np.full(len(rows), 1518.0), none,
    )  # fmt: skip
    trunk = Element("trunk a - b", "trunk", "from a to b", links=links, line_bps=links * LINK)
    channel.classes = ElementClasses(
        [[0]], [trunk], rows, 0 * rows, rows, np.array([0, len(rows)]), np.array([flows]),
        np.arange(len(rows) + 1),
    )  # fmt: skip
    return channel


def lost_of(load: np.ndarray, ways: np.ndarray, bad: tuple[str, float] | None) -> np.ndarray:
    """Return the share that each flow of a phase loses where flow i takes link ways[i].

    bad: what link 0 does. Other flows on the link count with their mean load, as in the model.
    """
    share = np.zeros(len(load))
    for flow, link in enumerate(ways):
        others = np.delete(load, flow).mean() * (np.sum(ways == link) - 1)
        offered, form = load[flow] + others, bad[0] if bad and link == 0 else ""
        passes, line = (1 - bad[1] if bad and form == "share" else 1.0), LINK
        if bad and form == "capacity":
            line = bad[1]
        share[flow] = 1 - passes * min(1.0, line / (passes * offered))
    return share


def by_hand(
    channel: Channel, links: int, loads: np.ndarray, bad: tuple[str, float] | None
) -> tuple[float, np.ndarray]:
    """Return the log-likelihood and by flow the probability of link 0, over all ways."""
    ways = np.array(list(product(range(links), repeat=loads.shape[1])))
    each = []
    for way in ways:
        share = np.concatenate([lost_of(load, way, bad) for load in loads])
        wide = np.where(share > 0.02, 0.2, SPREAD)
        each.append(channel.log_likelihood(channel.rows, share, wide).sum())
    weight = np.exp(np.array(each) - max(each))
    total = max(each) + np.log(weight.mean())
    return total, (weight[:, None] * (ways == 0)).sum(axis=0) / weight.sum()


@pytest.mark.parametrize("bad", [None, ("share", 0.1), ("capacity", 0.4 * LINK)])
@pytest.mark.parametrize("links", [2, 3])
@pytest.mark.parametrize("flows", [3, 4, 5])
def test_evidence_is_the_mean_over_all_ways(
    flows: int, links: int, bad: tuple[str, float] | None
) -> None:
    """Some flows lose what a full link takes; the last phase loads no link fully."""
    rng = np.random.default_rng(flows)
    loads = LINK * np.array([rng.uniform(0.6, 0.9, flows), rng.uniform(0.05, 0.15, flows)])
    way = rng.integers(0, links, flows)
    lost = np.array([lost_of(load, way, bad) for load in loads])
    channel = trunk_of(links, loads, lost)
    trunks = Hashing(channel, 2)
    ones, zeros = np.ones(2 * flows), np.zeros(2 * flows)
    spread = np.full(2 * flows, SPREAD)
    total, on_link = by_hand(channel, links, loads, bad)
    (found,) = trunks.evidence(0, ones, zeros, spread, {}, bad)
    assert found == pytest.approx(total, rel=1e-9)
    if bad is not None:
        chance = trunks.evidence(0, ones, zeros, spread, {}, bad, each=True)
        assert chance == pytest.approx(np.tile(on_link, 2), abs=1e-9)
