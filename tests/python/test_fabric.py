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


def routed(groups: int = 4, nodes: int = 9) -> Fabric:
    """Salmon's testbed: groups behind switches, their nodes joined one to one by cables."""
    names = tuple(f"g{g}n{i}" for g in range(groups) for i in range(nodes))
    links = [Link(name, f"sw{name[1]}", 100) for name in names]
    free = {g: [f"g{g}n{i}" for i in range(nodes)] for g in range(groups)}
    for a, b in combinations(range(groups), 2):
        for _ in range(nodes // (groups - 1)):
            links.append(Link(free[a].pop(0), free[b].pop(0), 100))
    switches = tuple(f"sw{g}" for g in range(groups))
    return Fabric("routed", names, switches, tuple(links), routers=frozenset(names))


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


@pytest.mark.parametrize(
    "fabric",
    [
        star(4),
        star(5),
        leaves(2, 3, GIG),
        leaves(3, 3, 2 * GIG),
        leaves(2, 3, GIG, spines=2),
        leaves(3, 3, GIG, spines=2),
        leaves(2, 3, GIG // 4, spines=2),
        uneven(),
    ],
    ids=[
        *("star", "odd star", "two leaves", "three leaves", "two spines", "odd, two spines"),
        *("slow spines", "uneven cables"),
    ],
)
def test_the_bisection_is_that_of_all_divisions(fabric: Fabric) -> None:
    found = bisection(fabric)
    assert found.exact
    assert found.min_bps == by_hand_bps(fabric)


@pytest.mark.parametrize("core_bps", [GIG, GIG // 2])
def test_the_bisection_of_a_fat_tree(core_bps: int) -> None:
    """Each pod has four links to the cores, and two pods are half of it."""
    found = bisection(fat_tree(4, core_bps))
    assert found.exact
    assert found.min_bps == 8 * core_bps


def test_of_a_large_network_the_bounds_hold_its_bisection() -> None:
    """16 leaves of 8 hosts on 8 spines: between two halves of the leaves, half of all uplinks."""
    found = bisection(leaves(16, 8, GIG, spines=8))
    assert not found.exact
    assert 0 < found.min_bps <= 64 * GIG
    assert found.max_bps == 64 * GIG


def test_the_oversubscription_of_each_level() -> None:
    figures = arithmetic(leaves(4, 12, 4 * GIG))
    assert [level.switches for level in figures.levels] == [4, 1]
    assert figures.levels[0].worst == pytest.approx(3.0)
    assert figures.levels[1].worst is None
    assert figures.bisection.min_bps == 8 * GIG
    assert figures.full_bps == 24 * GIG
    assert (figures.diameter, figures.cables) == (4, 52)


def test_salmons_network_has_the_hops_that_the_paper_counts() -> None:
    """Of 35 others 9 are reached in one hop, 14 in two and 12 in three (section 3)."""
    fabric = routed()
    routes = Routes(fabric)
    np.arange(1, 36)
    paths = routes.paths(np.zeros(35, dtype=np.int64), np.arange(1, 36))
    steps = [[routes.resources[r] for r in path if r != routes.nothing] for path in paths]
    # Two links through a switch are one hop of the paper.
    hops = [sum(not end.startswith("sw") for _, end in step) for step in steps]
    assert np.bincount(hops).tolist() == [0, 9, 14, 12]


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


def test_two_hosts_on_one_cable() -> None:
    routes = Routes(Fabric("pair", ("a", "b"), (), (Link("a", "b", GIG),)))
    assert routes.hops(np.array([0, 1]), np.array([1, 0])).tolist() == [1, 1]


def test_prices_take_the_cheapest_switch_with_ports_enough() -> None:
    prices = Prices(nic=20, cable=4, switches={8: 90, 24: 300, 48: 250})
    price = cost(leaves(2, 10, GIG), prices)
    assert price.bought == {48: 2, 8: 1}  # 11 ports each: 48 cost less than 24
    assert price.total == 20 * 20 + 22 * 4 + 2 * 250 + 90


@pytest.mark.parametrize(
    ("hosts", "switches", "links", "words"),
    [
        (("a", "b"), ("s",), (Link("a", "s", 1),), "b is not connected to anything"),
        (("a",), ("s",), (Link("a", "s", 1),), "at least two"),
        (("a", "b"), ("s",), (Link("a", "s", 0), Link("b", "s", 1)), "must be positive"),
        (("a", "b"), ("s",), (Link("a", "s", -5), Link("b", "s", 1)), "-5 bit/s"),
        (("a", "b"), ("s",), (Link("a", "s", 1), Link("b", "t", 1)), "there is no t"),
        (
            ("a", "b", "c", "d"),
            ("s", "t"),
            (Link("a", "s", 1), Link("b", "s", 1), Link("c", "t", 1), Link("d", "t", 1)),
            "is in parts: there is no way from a to c and 1 more",
        ),
        (
            ("a", "b"),
            ("s", "spare", "other"),
            (Link("a", "s", 1), Link("b", "s", 1), Link("spare", "other", 1)),
            "no way from a to switch spare and 1 more",
        ),
        (("a", "b"), ("s",), (Link("a", "s", 1), Link("s", "a", 1), Link("b", "s", 1)), "2 links"),
    ],
)
def test_a_graph_that_is_no_network(
    hosts: tuple[str, ...], switches: tuple[str, ...], links: tuple[Link, ...], words: str
) -> None:
    with pytest.raises(FabricError, match="bad: .*" + words.replace("(", r"\(")):
        Fabric("bad", hosts, switches, links)


def test_hosts_that_do_not_forward_are_no_way() -> None:
    """a - m - b, where m is a host on two cables: only as a router it lets frames pass."""
    links = (Link("a", "m", 1), Link("m", "b", 1))
    with pytest.raises(FabricError, match="no way from a to b"):
        Fabric("line", ("a", "m", "b"), (), links)
    line = Fabric("line", ("a", "m", "b"), (), links, routers=frozenset({"m"}))
    assert Routes(line).hops(np.array([0]), np.array([2])).tolist() == [2]


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


def test_a_picture_holds_the_links_between_hosts() -> None:
    """They bend below the hosts, the further apart the deeper."""
    picture = draw(routed())
    height = float(re.search(r'viewBox="0 0 \d+ (\d+)"', picture)[1])  # type: ignore[index]
    bends = re.findall(r'class="link across"[^>]* d="M\d+ (\d+)Q\d+ (\d+) ', picture)
    assert len(bends) == 18
    assert all((float(y) + float(control)) / 2 < height for y, control in bends)


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("nic: 10\ncable: 1\nswitches: {8: 50, 48: 400}\n")
    drawn = tmp_path / "tree.svg"
    arguments = ["tree", "--prices", str(prices), "--json", "--svg", str(drawn)]
    assert main(["topology", *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bisection"]["min_bps"] == 20e6
    assert document["levels"][0]["worst"] == 4.0
    assert document["cost"]["total"] == 16 * 10 + 20 + 5 * 50
    assert drawn.read_text().startswith("<svg")


def test_a_high_price_is_written_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("nic: 10000.5\nswitches: {8: 1000000}\n")
    assert main(["topology", "tree", "--prices", str(prices)]) == 0
    said = capsys.readouterr().out
    assert "5,160,008: NICs 160,008, cables 0, switches 5,000,000 (5 of 8 ports)" in said
    assert "322,500.50" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nic: 1", "switches: field required"),
        ("switches: {4: 1}", "needs 5 ports, and the price table's largest switch has 4"),
        ("switches: {0: 1}", "switches.0: input should be greater than or equal to 1"),
        ("[1", "is not YAML"),
        ("", "is no price table"),
        ("- 8", "is no price table"),
        ("switches: {64: .inf}", "switches.64: input should be a valid number"),
        ("switches: " + "[" * 20_000, "is too large to be read: lists and mappings are more than"),
        ("nic: 2026-13-01", "nic: input should be a valid number"),
    ],
)
def test_a_price_table_that_does_not_fit(
    text: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(text)
    assert main(["topology", "tree", "--prices", str(prices)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_picture_that_can_not_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["topology", "tree", "--svg", str(tmp_path)]) == 2
    assert f"{tmp_path}: can't be written: Is a directory" in capsys.readouterr().err


def test_a_network_without_rates_has_no_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "open"]) == 2
    assert "the rate of node1 is not limited" in capsys.readouterr().err
