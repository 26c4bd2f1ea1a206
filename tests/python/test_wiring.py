# SPDX-License-Identifier: BSD-3-Clause
"""What LLDP says against what a site says; groups, ranks and who hears whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import hostkit
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Site
from switchbench.hosts import alike
from switchbench.topology import cabling
from switchbench.topology.cabling import Neighbour

LEAF1 = {
    "chassis": {"leaf1": {"id": {"type": "mac", "value": "02:00:00:00:00:01"}}},
    "port": {"id": {"type": "ifname", "value": "Eth1/1"}, "descr": "to node1", "ttl": "120"},
}
LINUX = {
    "chassis": {"tor": {"id": {"type": "mac", "value": "02:00:00:00:00:02"}}},
    "port": {"id": {"type": "mac", "value": "02:00:00:00:00:03"}, "descr": "swp7"},
}
NAMELESS = {
    "chassis": {"id": {"type": "mac", "value": "02:00:00:00:00:04"}},
    "port": {"id": {"type": "local", "value": "7"}},
}


def test_lldpctl_with_one_interface_and_with_several() -> None:
    one = {"lldp": {"interface": {"eth0": LEAF1}}}
    assert cabling.lldp_neighbours(json.dumps(one)) == {
        "eth0": Neighbour("leaf1", ("Eth1/1", "to node1"))
    }
    several = {"lldp": {"interface": [{"eth0": LEAF1}, {"eth1": LINUX}, {"eth2": NAMELESS}]}}
    found = cabling.lldp_neighbours(json.dumps(several))
    assert found["eth1"] == Neighbour("tor", ("swp7", "02:00:00:00:00:03"))
    assert str(found["eth2"]) == "02:00:00:00:00:04 7"
    assert cabling.lldp_neighbours('{"lldp": {}}') == {}


@pytest.mark.parametrize("text", ["", "{", "No links", '{"lldp": 3}', "0 LLDP neighbors"])
def test_what_is_something_else(text: str) -> None:
    assert cabling.lldp_neighbours(text) == {}


def site(tmp_path: Path, **keys: Any) -> Site:
    """Six hosts on two switches."""
    cables = {f"node{i}:e0": ["leaf1" if i < 4 else "leaf2", f"Eth1/{i}"] for i in range(1, 7)}
    ports = {"e0": {"network": "n", "iface": "eth0", "line_rate": "1Gbit"}}
    groups = {"left": "node[1-3]", "right": "node[4-6]"}
    more = {"hosts": "node[1-6]", "wiring": cables, "ports": ports, "groups": groups} | keys
    return hostkit.site(tmp_path, **more)


def test_a_cable_in_another_hole_is_seen(tmp_path: Path) -> None:
    port = site(tmp_path).ports[0]
    for words in (("Eth1/1",), ("02:00:00:00:00:01", "Eth1/1")):
        assert cabling.compared_cable(port, {"eth0": Neighbour("leaf1", words)}) == cabling.AS_SAID
    assert cabling.compared_cable(port, {"eth0": Neighbour("leaf2", ("Eth1/9",))}) == (
        "at leaf2 Eth1/9, the site says leaf1 Eth1/1"
    )
    assert cabling.compared_cable(port, {}) == cabling.UNKNOWN
    (bare, *_) = site(tmp_path, wiring={}).ports
    assert cabling.compared_cable(bare, {"eth0": Neighbour("leaf1", ("Eth1/1",))}) is None


# --- who hears whom ------------------------------------------------------------------------------


def answers(hosts: list[str], deaf: set[tuple[str, str]]) -> dict[str, list[int]]:
    """As the engines say it: of each the places of those that answered it."""
    return {
        host: [i for i, other in enumerate(hosts) if (host, other) not in deaf] for host in hosts
    }


def test_the_fewest_hosts_are_to_blame() -> None:
    hosts = [f"node{i}" for i in range(1, 9)]
    heard = dict.fromkeys(hosts, alike.ALL_HEARD)
    assert alike.mute_hosts(hosts, answers(hosts, set())) == heard
    mute = {(host, "node6") for host in hosts} | {("node6", host) for host in hosts}
    assert alike.mute_hosts(hosts, answers(hosts, mute)) == heard | {
        "node6": "no UDP to and from all others"
    }
    one = {("node2", "node7"), ("node7", "node2"), ("node3", "node7"), ("node7", "node3")}
    assert alike.mute_hosts(hosts, answers(hosts, one)) == heard | {
        "node7": "no UDP to and from node2, node3"
    }
    alone = alike.mute_hosts(["node1"], answers(["node1"], {("node1", "node1")}))
    assert alone == {"node1": "no UDP to and from node1"}


def test_a_topology_file_says_what_is_between_the_switches(tmp_path: Path) -> None:
    hall = {
        "topology": 1, "kind": "site", "rate": "1G", "modules": ["leaf1", "leaf2"],
        "nodes": {"node[1-3]": {"module": "leaf1"}, "node[4-6]": {"module": "leaf2"}},
        "trunks": [{"between": ["leaf1", "leaf2"], "links": 2}],
    }  # fmt: skip
    (tmp_path / "hall.yaml").write_text(yaml.safe_dump(hall))
    found = site(tmp_path, fabric="hall.yaml", wiring={})
    assert [port.switch for port in found.ports] == ["leaf1"] * 3 + ["leaf2"] * 3
    assert found.wiring is not None
    assert (found.wiring.source, found.wiring.cables[0].links) == ("topology file hall", 2)
    assert found.effective["fabric"] == str(tmp_path / "hall.yaml")
    with pytest.raises(ConfigurationError, match="there is no file"):
        site(tmp_path, fabric="hal.yaml")
    (tmp_path / "hall.yaml").write_text("topology: 1\nnodes: {}\n")
    with pytest.raises(ConfigurationError, match=r"fabric.*hall\.yaml: nodes"):
        site(tmp_path, fabric="hall.yaml")
