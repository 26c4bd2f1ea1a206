# SPDX-License-Identifier: BSD-3-Clause
"""Models of contention: the numbers of Zhu et al. 2012, and what fairness means."""

from __future__ import annotations

import numpy as np
import pytest

from switchbench.fabric import Fabric, Link, Routes
from switchbench.fabric.routes import Rates
from switchbench.predict.constrained import constrained_bps
from switchbench.predict.fair import max_min_bps

NIC = 940e6
"""What the paper's Gigabit links carry."""


def racks(nodes: int, backbone_bps: float) -> Routes:
    """The paper's platform: two racks of nodes, joined by one cable."""
    names = tuple(f"{rack}{i}" for rack in "xy" for i in range(nodes))
    access = (Link(name, f"rack {name[0]}", int(NIC)) for name in names)
    links = (*access, Link("rack x", "rack y", int(backbone_bps)))
    return Routes(Fabric("racks", names, ("rack x", "rack y"), links))


def rates(routes: Routes, flows: list[tuple[int, int]], asymmetric: bool = True) -> Rates:
    """By the model, in Mbit/s."""
    ranks = np.array(flows, dtype=np.int64)
    paths = routes.paths(ranks[:, 0], ranks[:, 1])
    return constrained_bps(routes, paths, asymmetric) / 1e6


def fair(routes: Routes, flows: list[tuple[int, int]]) -> Rates:
    """By max-min fairness, in Mbit/s."""
    ranks = np.array(flows, dtype=np.int64)
    return max_min_bps(routes, routes.paths(ranks[:, 0], ranks[:, 1])) / 1e6


def test_two_in_and_one_out_are_alike() -> None:
    """Section 5.2: 470 Mbit/s each, and not 940 for the one that goes out."""
    routes = racks(15, 9.4e9)
    flows = [(1, 0), (2, 0), (0, 3)]
    assert rates(routes, flows) == pytest.approx([470, 470, 470])
    assert rates(routes, flows, asymmetric=False) == pytest.approx([470, 470, 940])
    assert fair(routes, flows) == pytest.approx([470, 470, 940])


def test_twelve_in_and_one_out() -> None:
    """Section 5.2: 13/12 of 940 Mbit/s in all, instead of twice 940."""
    routes = racks(15, 9.4e9)
    flows = [*((i, 0) for i in range(1, 13)), (0, 13)]
    assert rates(routes, flows).sum() == pytest.approx(13 / 12 * 940)
    assert rates(routes, flows, asymmetric=False).sum() == pytest.approx(2 * 940)


@pytest.mark.parametrize(("links", "each"), [(10, 940.0), (11, 9400 / 11), (15, 9400 / 15)])
def test_the_optical_backbone_is_full_with_more_than_ten(links: int, each: float) -> None:
    """(5): up to ten links have their NIC's rate, then they share 9.4 Gbit/s."""
    flows = [(i, 15 + i) for i in range(links)]
    assert rates(racks(15, 9.4e9), flows) == pytest.approx([each] * links)


@pytest.mark.parametrize("links", [1, 2, 6])
def test_an_electrical_backbone_is_shared_evenly(links: int) -> None:
    """(5) with a backbone no faster than a NIC: beta |E|."""
    flows = [(i, 15 + i) for i in range(links)]
    assert rates(racks(15, NIC), flows) == pytest.approx([940 / links] * links)


def test_the_backbone_is_asymmetric_too() -> None:
    """(6) on an electrical backbone: the greater of both directions' links holds for both."""
    flows = [*((i, 15 + i) for i in range(4)), (20, 5)]
    assert rates(racks(15, NIC), flows) == pytest.approx([235] * 5)
    assert rates(racks(15, NIC), flows, asymmetric=False) == pytest.approx([235] * 4 + [940])


def test_contra_flow_that_fills_nothing_holds_nobody_back() -> None:
    """Lines 18 to 20: three come in slowly, held back elsewhere; what goes out is not held back.

    Each of the three leaves a node that sends four flows, so the NIC they come in by has room.
    """
    flows = [(s, d) for s in (1, 2, 3) for d in (0, 4 + s, 7 + s, 10 + s)]
    found = rates(racks(15, 9.4e9), [*flows, (0, 14)])
    assert found[:12] == pytest.approx([235] * 12)
    assert found[12] == pytest.approx(940)


def test_figure_1s_example() -> None:
    """e1 and e2 leave one node, e1, e3 and e4 cross the backbone: optical, the NIC is narrower."""
    flows = [(0, 15), (0, 1), (2, 16), (3, 17), (18, 19)]
    assert rates(racks(15, 9.4e9), flows, asymmetric=False) == pytest.approx(
        [470, 470, 940, 940, 940]
    )
    electrical = rates(racks(15, NIC), flows, asymmetric=False)
    assert electrical == pytest.approx([940 / 3, 940 * 2 / 3, 940 / 3, 940 / 3, 940])


def test_max_min_fills_resources_and_favours_nobody() -> None:
    """Its definition: each flow crosses a full resource on which none has more than it."""
    routes = racks(15, 3e9)
    generator = np.random.default_rng(7)
    for _ in range(50):
        sources = generator.integers(0, 30, 40)
        paths = routes.paths(sources, (sources + generator.integers(1, 30, 40)) % 30)
        bps = max_min_bps(routes, paths)
        used = np.bincount(paths.ravel(), np.repeat(bps, paths.shape[1]), routes.nothing + 1)[:-1]
        assert (used <= routes.capacity_bps * (1 + 1e-9)).all()
        full = np.append(used >= routes.capacity_bps * (1 - 1e-9), False)
        for path, own in zip(paths, bps, strict=True):
            most = [bps[(paths == r).any(axis=1)].max() for r in path if full[r]]
            assert min(most) == pytest.approx(own)


def test_the_model_gives_every_flow_something() -> None:
    """Random patterns as the paper's section 7 draws them; nobody gets more than its NIC."""
    routes = racks(15, 9.4e9)
    generator = np.random.default_rng(2012)
    for _ in range(100):
        sources = np.repeat(np.arange(30), 2)[generator.random(60) < 0.5]
        shifts = generator.integers(1, 30, sources.size)
        paths = routes.paths(sources, (sources + shifts) % 30)
        for asymmetric in (True, False):
            bps = constrained_bps(routes, paths, asymmetric)
            assert (bps > 0).all()
            assert (bps <= NIC * (1 + 1e-9)).all()
