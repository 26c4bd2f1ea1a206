# SPDX-License-Identifier: BSD-3-Clause
"""Routed labs before any namespace: addresses, routes, hops in plans, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest

from switchbench.cli.main import main
from switchbench.labs.devices import Interface, Routing
from switchbench.plan.listing import hops_between
from switchbench.topology import lab_addresses
from switchbench.topology.fabric import from_topology
from switchbench.topology.form import Topology, TopologyError
from switchbench.topology.topology import MAX_ROUTED, load, parse

SALMON = "conf/paper-salmon-figures5-7.yaml"


def line(**changes: Any) -> Topology:
    """a1 - a2 - a3, and a3 on a switch with a4; with changes."""
    document: dict[str, Any] = {
        "topology": 1,
        "kind": "routed",
        "rate": "10M",
        "modules": ["sw"],
        "nodes": {"a[1-2]": {}, "a[3-4]": {"module": "sw"}},
        "links": [{"between": ["a[1-2]", "a[2-3]"]}],
    }
    return parse(document | changes, "line")


def walked(topology: Topology, source: str, destination: str) -> list[str]:
    """The nodes that a packet comes to, by looking at one table after the other."""
    routing = Routing(topology)
    owner = {
        interface.address: node.name
        for node in topology.nodes
        for interface in routing.interfaces(node.name)
    }
    goal = lab_addresses.kernel_ipv4(topology.node(destination).index)
    way = [source]
    while way[-1] != destination:
        (route,) = (r for r in routing.routes(way[-1]) if r.destination == goal)
        way.append(owner[route.gateway])
        assert len(way) <= len(topology.nodes), way
    return way


def test_tables_lead_everywhere_and_over_as_many_hops_as_the_paper_counts() -> None:
    """Of 35 others 9 are reached in one hop, 14 in two and 12 in three (Salmon 1998, section 3)."""
    topology = load("salmon-36")
    hops = hops_between(from_topology(topology))
    counts: Counter[int] = Counter()
    for destination in (node.name for node in topology.nodes[1:]):
        way = walked(topology, "node1", destination)
        assert len(way) - 1 == hops("node1", destination)
        counts[len(way) - 1] += 1
    assert counts == {1: 9, 2: 14, 3: 12}


def test_interfaces_by_switch_and_links() -> None:
    routing = Routing(line())
    assert routing.interfaces("a2") == [
        Interface("eth1", "198.19.128.1", 31),
        Interface("eth2", "198.19.128.2", 31),
    ]
    assert routing.interfaces("a3") == [
        Interface("eth0", "198.19.0.1", 24),
        Interface("eth1", "198.19.128.3", 31),
    ]
    assert routing.ends(1) == ("eth2", "eth1")
    assert walked(line(), "a1", "a4") == ["a1", "a2", "a3", "a4"]


def test_nodes_on_one_switch_do_not_go_over_others() -> None:
    """Two cables by way of a2 are as many as two by way of the switch, but one node more."""
    changes = {
        "nodes": {"a1": {"module": "sw"}, "a2": {}, "a3": {"module": "sw"}},
    }
    topology = line(**changes)
    for a, b in permutations(("a1", "a3")):
        assert walked(topology, a, b) == [a, b]


def refused() -> Iterator[tuple[dict[str, Any], str]]:
    """Changes of the line, and the sentence that refuses them."""
    yield {"links": [{"between": ["a1", "a9"]}]}, "links.0.between: there is no node 'a9'"
    yield {"links": [{"between": ["a1", "a1"]}]}, "links.0.between: joins 'a1' to itself"
    yield {"links": [{"between": ["a[1-2]", "a3"]}]}, "joins 2 to 1; two sets of one size"
    twice = [{"between": ["a1", "a2"]}, {"between": ["a2", "a1"]}]
    yield {"links": twice}, "links.1: 'a2' and 'a1' are joined by links.0 already"
    yield {"links": [{"between": ["a1", "a2"]}]}, "there is no way from 'a1' to 'a3' and 1 more"
    yield {"links": [{"between": ["a1", "a2"], "rate": 0}]}, "a rate of zero carries nothing"
    yield {"links": [{"between": ["a1", "a2"], "rate": "-1M"}]}, 'found "-1M", but a rate is needed'
    yield {"kind": "bridges"}, "module is missing"
    both = {"kind": "bridges", "nodes": {"a[1-4]": {"module": "sw"}}}
    yield both, "links: goes with `kind: routed` or `kind: site` only"
    yield {"nodes": {"a[1-2]": {"rate": "5M"}, "a[3-4]": {"module": "sw"}}}, "is on no module"
    many = {f"a[1-{MAX_ROUTED + 1}]": {"module": "sw"}}
    yield {"nodes": many, "links": []}, f"{MAX_ROUTED + 1} that forward to each other"
    yield {"modules": ["sw", "sx"], "trunks": [{"between": ["sw", "sx"]}] * 2}, "closes a loop"


@pytest.mark.parametrize(("changes", "words"), list(refused()), ids=lambda x: str(x)[:40])
def test_what_no_routed_lab_can_be(changes: dict[str, Any], words: str) -> None:
    if changes == {"kind": "bridges"}:
        changes = {**changes, "modules": ["sw", "sx"], "trunks": [{"between": ["sw", "sx"]}]}
    with pytest.raises(TopologyError) as caught:
        line(**changes)
    assert words in caught.value.messages[0]


def test_the_plan_says_each_flows_hops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", SALMON, "--json"]) == 0
    plans = json.loads(capsys.readouterr().out)["plans"]
    hops = [set(plan["phases"][0]["networks"][0]["hops"]) for plan in plans[:5]]
    assert hops == [{1}, {1}, {2}, {3}, {1, 2, 3}]
    counted = Counter(plans[4]["phases"][0]["networks"][0]["hops"])
    there = len(plans[4]["phases"][0]["networks"][0]["flows"])
    assert sum(counted.values()) == there
    assert main(["plan", SALMON, "--phases", "0"]) == 0
    text = capsys.readouterr().out
    assert "node4:e0→node16:e0(3)" in text
    assert "note: hops, (n), of a flow" in text


@pytest.mark.parametrize(
    "setting", ["transport=dpdk", "site.driver=af_packet", "site.queues=2"], ids=str
)
def test_dpdk_is_refused_in_one_sentence(setting: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", SALMON, "--set", setting]) == 2
    said = capsys.readouterr().err
    assert "nodes of a routed lab forward what kernels send by IP" in said
    assert all("nodes of a routed lab" in line or "mistakes" in line for line in said.splitlines())
