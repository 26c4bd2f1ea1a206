# SPDX-License-Identifier: BSD-3-Clause
"""Topology files: what they mean, and the sentence for each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from switchbench.topology.form import TopologyError
from switchbench.topology.topology import PROJECT_LABS, UNSHAPED, load, parse


def document(**changes: Any) -> dict[str, Any]:
    """A good topology of two modules, with changes; None takes a key away."""
    good: dict[str, Any] = {
        "topology": 1,
        "rate": "10M",
        "modules": ["left", "right"],
        "nodes": {"node[1-3]": {"module": "left"}, "node[4-6]": {"module": "right"}},
        "trunks": [{"between": ["left", "right"], "links": 2}],
    }
    good.update(changes)
    return {key: value for key, value in good.items() if value is not None}


def test_shipped_files() -> None:
    """What conf/labs says in YAML is not repeated here."""
    found = {file.stem: load(file.stem) for file in PROJECT_LABS.glob("*.yaml")}
    assert len(found) >= 20
    for name, topology in found.items():
        assert topology.name == name
        assert [node.index for node in topology.nodes] == list(range(1, len(topology.nodes) + 1))
    tree = found["tree"]
    assert (len(tree.nodes), sum(trunk.rate_bps for trunk in tree.trunks)) == (16, 40_000_000)
    assert {node.queue_bytes for node in tree.nodes} == {131_072}
    assert {node.rate_bps for node in found["open"].nodes} == {UNSHAPED}
    assert {node.queue_bytes for node in found["model-e7"].nodes} == {65_536}


def test_own_values_win_over_those_for_all() -> None:
    topology = parse(
        document(
            queue="64KiB",
            nodes={
                "a1": {"module": "left", "rate": "1G", "queue": "1MB"},
                "a2": {"module": "right"},
            },
            trunks=[{"between": ["left", "right"], "rate": "unlimited"}],
            overrides={"a2": {"rate": "5M", "port": "Eth1/17"}},
        ),
        "mine",
    )
    first, second = topology.nodes
    assert (first.rate_bps, first.queue_bytes, first.port) == (10**9, 10**6, "p1")
    assert (second.rate_bps, second.queue_bytes, second.port) == (5 * 10**6, 65_536, "Eth1/17")
    assert topology.trunks[0].rate_bps == UNSHAPED


def test_caller_changes_rate_nodes_and_single_nodes() -> None:
    changes = {"nodes": 4, "rate": "1M", "overrides": {"node2": {"rate": "500k"}}}
    topology = parse(document(), "mine", overrides=changes)
    assert [(node.name, node.module) for node in topology.nodes] == [
        ("node1", "left"),
        ("node2", "left"),
        ("node3", "right"),
        ("node4", "right"),
    ]
    assert [node.rate_bps for node in topology.nodes] == [10**6, 500_000, 10**6, 10**6]
    assert topology.trunks[0].rate_bps == 2 * 10**6


def test_a_loop_over_three_modules_is_found() -> None:
    modules = ["a", "b", "c"]
    pairs = [["a", "b"], ["b", "c"], ["c", "a"]]
    with pytest.raises(TopologyError, match=r"trunks\.2: closes a loop between 'c' and 'a'"):
        parse(
            document(
                modules=modules,
                nodes={"n1": {"module": "a"}},
                trunks=[{"between": pair} for pair in pairs],
            ),
            "mine",
        )


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(TopologyError) as caught:
        parse(document(mtu=1, rate="x", colour="red"), "mine")
    assert len(caught.value.messages) == 3


@pytest.mark.parametrize("total", [0, 3])
def test_nodes_that_can_not_be_shared_equally(total: int) -> None:
    with pytest.raises(TopologyError, match=f"{total} nodes can't be shared equally by its 2"):
        parse(document(), "mine", overrides={"nodes": total})


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(TopologyError, match=r"'two-switches'.*one-switch.*two-modules"):
        load("two-switches")
