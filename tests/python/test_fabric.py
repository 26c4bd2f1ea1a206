# SPDX-License-Identifier: BSD-3-Clause
"""A network's arithmetic and routes, against what is counted by hand and the papers' formulas."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from switchbench.cli.main import main
from switchbench.topology.arithmetic import Prices, arithmetic, bisection, cost, draw
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


def test_prices_take_the_cheapest_switch_with_ports_enough() -> None:
    prices = Prices(nic=20, cable=4, switches={8: 90, 24: 300, 48: 250})
    price = cost(leaves(2, 10, GIG), prices)
    assert price.bought == {48: 2, 8: 1}  # 11 ports each: 48 cost less than 24
    assert price.total == 20 * 20 + 22 * 4 + 2 * 250 + 90


def test_everything_is_drawn_once() -> None:
    fabric = leaves(2, 3, GIG, spines=2)
    picture = draw(fabric)
    assert picture.count('class="host"') == 6
    assert picture.count('class="switch"') == 4
    assert picture.count('class="link"') == len(fabric.links)
    assert "<title>h0 to leaf0: 1,000 Mbit/s each way</title>" in picture


def test_hosts_without_a_switch_stand_on_a_circle() -> None:
    names = tuple(f"h{i}" for i in range(8))
    links = tuple(Link(a, b, GIG) for a, b in zip(names, (*names[1:], names[0]), strict=True))
    picture = draw(Fabric("ring", names, (), links, routers=frozenset(names)))
    spots = re.findall(r'<circle class="host" cx="(\d+)" cy="(\d+)"', picture)
    assert len(set(spots)) == 8
    across = [math.dist(map(int, spots[i]), map(int, spots[i + 4])) for i in range(4)]
    assert across == pytest.approx([across[0]] * 4, abs=2)
    assert picture.count('class="link"') == 8


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


def test_the_bisection_of_larger_networks() -> None:
    """Each pod has four links to the cores, and two pods are half of a fat tree; between two
    halves of 16 leaves of 8 hosts, on 8 spines, are half of all uplinks."""
    for core_bps in (GIG, GIG // 2):
        found = bisection(fat_tree(4, core_bps))
        assert found.exact
        assert found.min_bps == 8 * core_bps
    found = bisection(leaves(16, 8, GIG, spines=8))
    assert not found.exact
    assert 0 < found.min_bps <= found.max_bps == 64 * GIG


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


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Status, output and errors of `switchbench topology WORDS`."""
    status = main(["topology", *words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    prices, drawn = tmp_path / "prices.yaml", tmp_path / "tree.svg"
    prices.write_text("nic: 10\ncable: 1\nswitches: {8: 50, 48: 400}\n")
    arguments = ["tree", "--prices", str(prices), "--json", "--svg", str(drawn)]
    status, out, _ = run(capsys, *arguments)
    document = json.loads(out)
    assert status == 0
    assert document["bisection"]["min_bps"] == 20e6
    assert document["levels"][0]["worst"] == 4.0
    assert document["cost"]["total"] == 16 * 10 + 20 + 5 * 50
    assert drawn.read_text().startswith("<svg")
    prices.write_text("nic: 10000.5\nswitches: {8: 1000000}\n")
    _, out, _ = run(capsys, "tree", "--prices", str(prices))
    assert "5,160,008: NICs 160,008, cables 0, switches 5,000,000 (5 of 8 ports)" in out


@pytest.mark.parametrize(
    ("topology", "prices", "words"),
    [
        ("tree", "nic: 1", "prices.yaml:1: switches: is missing"),
        ("tree", "switches: {4: 1}", "needs 5 ports, and the price table's largest switch has 4"),
        ("tree", "switches: {0: 1}", "switches.0"),
        ("tree", "[1", "is not YAML"),
        ("tree", "", "is empty or no mapping of keys"),
        ("tree", "switches: {64: .inf}", "switches.64: found"),
        ("tree", "switches: " + "[" * 20_000, "is too large to be read: lists and mappings are"),
        ("tree", None, "can't be written: Is a directory"),
        ("open", None, "the rate of node1 is not limited"),
    ],
)
def test_what_does_not_fit(
    topology: str,
    prices: str | None,
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "prices.yaml").write_text(prices or "")
    choice = ["--svg", str(tmp_path)] if prices is None else ["--prices", f"{tmp_path}/prices.yaml"]
    status, _, said = run(capsys, topology, *choice)
    assert status == 2
    assert words in said
    assert said.count("\n") == 1
