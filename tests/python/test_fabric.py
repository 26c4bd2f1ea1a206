# SPDX-License-Identifier: BSD-3-Clause
"""A network's arithmetic and routes, against what is counted by hand and the papers' formulas."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from switchbench.cli.main import main
from switchbench.topology import arithmetic as figures
from switchbench.topology.arithmetic import arithmetic, bisection
from switchbench.topology.fabric import Fabric, FabricError, Link, Routes

GIG = 10**9


def star(hosts: int, rate_bps: int = GIG) -> Fabric:
    """Hosts on one switch."""
    names = tuple(f"h{i}" for i in range(hosts))
    return Fabric("star", names, ("sw",), tuple(Link(name, "sw", rate_bps) for name in names))


def leaves(switches: int, hosts: int, up_bps: int, spines: int = 1) -> Fabric:
    """Leaf switches with hosts, each joined to every spine."""
    names = tuple(f"h{i}" for i in range(switches * hosts))
    access = [Link(name, f"leaf{i // hosts}", GIG) for i, name in enumerate(names)]
    ups = [Link(f"leaf{i}", f"spine{j}", up_bps) for i in range(switches) for j in range(spines)]
    places = (*(f"leaf{i}" for i in range(switches)), *(f"spine{j}" for j in range(spines)))
    return Fabric("leaves", names, places, (*access, *ups))


def uneven() -> Fabric:
    """Two leaves and two spines, and one host whose cable is faster than the others'."""
    fabric = leaves(2, 3, GIG, spines=2)
    access = replace(fabric.links[0], rate_bps=10 * GIG)
    return replace(fabric, links=(access, *fabric.links[1:]))


def fat_tree(ports: int, core_bps: int = GIG) -> Fabric:
    """Three levels of switches with so many ports (Al-Fares et al. 2008, section 3)."""
    half = ports // 2
    edges = [f"edge{pod}-{i}" for pod in range(ports) for i in range(half)]
    middles = [f"middle{pod}-{i}" for pod in range(ports) for i in range(half)]
    cores = [f"core{i}-{j}" for i in range(half) for j in range(half)]
    names = tuple(f"h{i}" for i in range(len(edges) * half))
    links = [Link(name, edges[i // half], GIG) for i, name in enumerate(names)]
    links += [Link(a, b, GIG) for a in edges for b in middles if a[4] == b[6]]
    links += [Link(a, b, core_bps) for a in middles for b in cores if a[-1] == b[4]]
    return Fabric("fat tree", names, (*edges, *middles, *cores), tuple(links))


def by_hand_bps(fabric: Fabric) -> int:
    """The bisection by trying all sides of everything; for very small networks."""
    places = [*fabric.hosts, *fabric.switches]
    half = len(fabric.hosts) // 2
    best = None
    for bits in range(1 << len(places)):
        side = {name for i, name in enumerate(places) if bits >> i & 1}
        if len(side & set(fabric.hosts)) == half:
            cut = sum(x.rate_bps for x in fabric.links if (x.a in side) != (x.b in side))
            best = cut if best is None else min(best, cut)
    assert best is not None
    return best


def test_the_oversubscription_of_each_level() -> None:
    figures = arithmetic(leaves(4, 12, 4 * GIG))
    assert [level.switches for level in figures.levels] == [4, 1]
    assert figures.levels[0].worst == pytest.approx(3.0)
    assert figures.levels[1].worst is None
    assert figures.bisection.min_bps == 8 * GIG
    assert figures.full_bps == 24 * GIG
    assert (figures.diameter, figures.cables) == (4, 52)


def test_equal_ways_are_dealt_out_by_destination() -> None:
    routes = Routes(leaves(2, 4, GIG, spines=2))
    paths = routes.paths(np.zeros(4, dtype=np.int64), np.array([4, 5, 6, 7]))
    spines = [routes.resources[path[1]][1] for path in paths]
    assert spines == ["spine0", "spine1", "spine0", "spine1"]


def test_a_path_goes_from_its_source_to_its_destination() -> None:
    fabric = leaves(3, 4, GIG, spines=2)
    routes = Routes(fabric)
    for source, destination in combinations(range(12), 2):
        (path,) = routes.paths(np.array([source]), np.array([destination]))
        steps = [routes.resources[r] for r in path if r != routes.nothing]
        assert steps[0][0] == fabric.hosts[source]
        assert steps[-1][1] == fabric.hosts[destination]
        assert all(a[1] == b[0] for a, b in pairwise(steps))


NETWORKS = {
    "star": star(4),
    "odd star": star(5),
    "two leaves": leaves(2, 3, GIG),
    "three leaves": leaves(3, 3, 2 * GIG),
    "two spines": leaves(2, 3, GIG, spines=2),
    "odd, two spines": leaves(3, 3, GIG, spines=2),
    "slow spines": leaves(2, 3, GIG // 4, spines=2),
    "uneven cables": uneven(),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_bisection_is_that_of_all_divisions(name: str) -> None:
    found = bisection(NETWORKS[name])
    assert found.exact
    assert found.min_bps == by_hand_bps(NETWORKS[name])


def test_the_bisection_of_larger_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod has four links to the cores, and two pods are half of a fat tree; between two
    halves of 16 leaves of 8 hosts, on 8 spines, are half of all uplinks."""
    for core_bps in (GIG, GIG // 2):
        found = bisection(fat_tree(4, core_bps))
        assert found.exact
        assert found.min_bps == 8 * core_bps
    monkeypatch.setattr(figures, "_NODES", 0)  # a search that is cut off
    found = bisection(leaves(16, 8, GIG, spines=8))
    assert not found.exact
    assert 0 < found.min_bps <= 64 * GIG <= found.max_bps


def links(text: str) -> tuple[Link, ...]:
    """`as as=0`: links between places of one letter, with their rates."""
    return tuple(Link(one[0], one[1], int(one[3:] or 1)) for one in text.split())


@pytest.mark.parametrize(
    ("hosts", "switches", "joined", "words"),
    [
        ("ab", "s", "as", "b is not connected to anything"),
        ("a", "s", "as", "at least two"),
        ("ab", "s", "as=0 bs", "must be positive"),
        ("ab", "s", "as=-5 bs", "-5 bit/s"),
        ("ab", "s", "as bt", "there is no t"),
        ("abcd", "st", "as bs ct dt", "is in parts: there is no way from a to c and 1 more"),
        ("ab", "sxy", "as bs xy", "no way from a to switch x and 1 more"),
        ("ab", "s", "as sa bs", "2 links"),
        ("amb", "", "am mb", "no way from a to b"),  # hosts that do not forward
    ],
)
def test_a_graph_that_is_no_network(hosts: str, switches: str, joined: str, words: str) -> None:
    with pytest.raises(FabricError, match="bad: .*" + words):
        Fabric("bad", tuple(hosts), tuple(switches), links(joined))


def test_routers_let_frames_pass() -> None:
    line = Fabric("line", tuple("amb"), (), links("am mb"), routers=frozenset("m"))
    assert Routes(line).hops(np.array([0]), np.array([2])).tolist() == [2]


# --- the command ---


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "tree", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bisection"]["min_bps"] == 20e6
    assert document["levels"][0]["worst"] == 4.0
    assert main(["topology", "tree"]) == 0
    assert "20 Mbit/s, 2.5 Mbit/s per host of one half" in capsys.readouterr().out
    assert main(["topology", "open"]) == 2
    assert "the rate of node1 is not limited" in capsys.readouterr().err
