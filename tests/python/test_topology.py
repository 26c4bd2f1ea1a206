# SPDX-License-Identifier: BSD-3-Clause
"""Topology files, the routes of a network, what devices say of cables; labs before they are
made."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations, pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import hostkit
from configs import read_text
from conftest import Command
from foreign_data import FOREIGN
from switchbench.base.errors import ConfigurationError, RunError
from switchbench.base.model import CableBundle, Site
from switchbench.labs import lab as labs_lab
from switchbench.labs import namespaces, state, switches
from switchbench.labs.devices import Interface, Routing
from switchbench.labs.state import LabError
from switchbench.run.launch import lab
from switchbench.topology import cabling, ibnetdiscover, lab_addresses
from switchbench.topology.cabling import Neighbour, distinct
from switchbench.topology.cabling import cabling_document as document
from switchbench.topology.fabric import Fabric, Routes
from switchbench.topology.form import Topology, TopologyError
from switchbench.topology.topology import PROJECT_LABS, UNSHAPED, load, parse


def two_modules(**changes: Any) -> dict[str, Any]:
    """Return a good topology of two modules, with changes; None takes a key away."""
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
        two_modules(
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
    topology = parse(two_modules(), "mine", overrides=changes)
    assert [(node.name, node.module) for node in topology.nodes] == [
        ("node1", "left"),
        ("node2", "left"),
        ("node3", "right"),
        ("node4", "right"),
    ]
    assert [node.rate_bps for node in topology.nodes] == [10**6, 500_000, 10**6, 10**6]
    assert topology.trunks[0].rate_bps == 2 * 10**6


# --- A network's routes ---------------------------------------------------------------------------


GIG = 10**9


def leaves(switches: int, hosts: int, up_bps: int, spines: int = 1) -> Fabric:
    """Return leaf switches with hosts, each joined to every spine."""
    names = tuple(f"h{i}" for i in range(switches * hosts))
    access = [CableBundle(name, f"leaf{i // hosts}", GIG) for i, name in enumerate(names)]
    ups = [
        CableBundle(f"leaf{i}", f"spine{j}", up_bps) for i in range(switches) for j in range(spines)
    ]
    places = (*(f"leaf{i}" for i in range(switches)), *(f"spine{j}" for j in range(spines)))
    return Fabric("leaves", names, places, (*access, *ups))


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


def links(text: str) -> tuple[CableBundle, ...]:
    """`as as=0`: links between places of one letter, with their rates."""
    return tuple(CableBundle(one[0], one[1], int(one[3:] or 1)) for one in text.split())


@pytest.mark.rows
def test_a_graph_that_is_no_network(hosts: str, switches: str, joined: str, words: str) -> None:
    with pytest.raises(TopologyError, match="bad: .*" + words):
        Fabric("bad", tuple(hosts), tuple(switches), links(joined))


# --- topology files made of what devices say of their cables --------------------------------------


SUBNET = FOREIGN / "ibnet-two-adapters.txt"
TEN_GIG = "10GbaseT - Four-pair Category 6A or better, full duplex mode only"
HUNDRED_GIG = "100GbaseSR4 - 100GBASE-R PCS/PMA over 4 lane multimode fiber"

Seen = dict[str, tuple[str, str, str]]
"""By interface: the neighbour's name, its port, the link's medium."""


def as_json(seen: Seen) -> str:
    """`lldpcli -f json show neighbors details`: of one interface a mapping, of several a list."""
    interfaces = [
        {
            name: {
                "chassis": {switch: {"capability": [{"type": "Bridge", "enabled": True}]}},
                "port": {
                    "id": {"type": "ifname", "value": port},
                    "auto-negotiation": {"enabled": False, "current": medium},
                },
            }
        }
        for name, (switch, port, medium) in seen.items()
    ]
    several: Any = interfaces if len(interfaces) > 1 else interfaces[0]
    return json.dumps({"lldp": {"interface": several}}, indent=2)


HALL: dict[str, Seen] = {
    "node1": {"ens1": ("leaf1", "Eth1/1", TEN_GIG)},
    "node2": {"ens1": ("leaf1", "Eth1/2", TEN_GIG), "ens2.7": ("leaf2", "Eth1/2", TEN_GIG)},
    "node3": {"ens1": ("leaf2", "Eth1/3", TEN_GIG)},
    "leaf1": {"Eth1/49": ("leaf2", "Eth1/49", HUNDRED_GIG), "Eth1/1": ("node1", "ens1", TEN_GIG)},
}


def read(hall: dict[str, Seen], **choice: Any) -> dict[str, Any]:
    """Return the topology of a hall from these answers of its devices."""
    texts = {device: as_json(seen) for device, seen in hall.items()}
    return document(cabling.read_lldp(texts, "hall", **choice))


IMPORT = ("topology", "import")


@pytest.mark.rows
def test_media_have_rates(medium: str, rate: str) -> None:
    keys = read({"n1": {"e": ("sw", "1", medium)}, "n2": {"e": ("sw", "2", medium)}})
    assert keys["nodes"] == {"n[1-2]": {"module": "sw", "rate": rate}}


@pytest.mark.rows
def test_what_infinibands_coding_leaves(said: str, bps: float) -> None:
    text = SUBNET.read_text().replace("4xEDR", said)
    keys = document(ibnetdiscover.read(text, "subnet"))
    nodes = parse(keys, "subnet").nodes
    assert {node.name: node.rate_bps for node in nodes}["node3"] == bps


def test_predict_reads_what_was_written(tmp_path: Path, cli: Command) -> None:
    """A tree of two spines is no tree: loops are allowed in what is no lab."""
    hall = tmp_path / "hall.yaml"
    said = cli(*IMPORT, "--ibnetdiscover", SUBNET, "--out", hall)
    assert (said.status, "3 hosts, 4 switches, 8 cables" in said.err) == (0, True)
    site = {
        "launch": "hand",
        "hosts": "node[1-3]",
        "control": {"address": "{host}", "udp_port": 7600},
        "ports": {"i0": {"network": "ib", "iface": "ib0", "line_rate": "100Gbit"}},
    }
    tests = [{"pattern": "pairs", "transport": "tcp", "partners": "neighbours"}]
    conf = tmp_path / "conf.yaml"
    conf.write_text(yaml.safe_dump({"switchbench": 1, "site": site, "tests": tests}))
    (trial,) = json.loads(cli.prints("predict", conf, "--topology", hall, "--json"))["trials"][:1]
    assert trial["models"]["max-min"]["min_bps"] == 100e9
    site["hosts"] = "node[1-4]"
    conf.write_text(yaml.safe_dump({"switchbench": 1, "site": site, "tests": tests}))
    assert "topology hall has no host node4" in cli.refuses("predict", conf, "--topology", hall)
    lab = [{"pattern": "pairs"}]
    conf.write_text(yaml.safe_dump({"switchbench": 1, "site": {"lab": "hall.yaml"}, "tests": lab}))
    assert "describes a real network (kind: site)" in cli.refuses("plan", conf)


def test_several_outputs_in_one(monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    """By a header before each."""
    said = "\n".join(f"==> {host} <==\n{as_json(seen)}" for host, seen in HALL.items())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
    options = ("--lldp", "-", "--interface", "ens1", "--switches", "leaf1")
    keys = yaml.safe_load(cli.prints(*IMPORT, *options))
    assert keys["kind"] == "site"
    assert set(keys["nodes"]) == {"node[1-2]", "node3"}
    assert "links" not in keys  # node2's other interface does not count


@pytest.mark.rows
def test_bad_words_are_one_sentence(
    words: str, says: str, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(as_json(HALL["node1"]).encode())))
    assert says in cli.refuses(*IMPORT, *words.replace("SUBNET", str(SUBNET)).split())


def test_names_and_halls_that_need_care() -> None:
    found = distinct([("S-1", "Switch IB (rack 3)"), ("S-2", "sw"), ("S-3", "sw")])
    assert found == {"S-1": "Switch-IB-rack-3", "S-2": "sw-S-2", "S-3": "sw-S-3"}
    apart = read({"n1": {"e": ("sw1", "1", TEN_GIG)}, "n2": {"e": ("sw2", "1", TEN_GIG)}})
    assert apart["modules"] == ["sw1", "sw2"]
    assert "trunks" not in apart
    with pytest.raises(ConfigurationError, match="the file has no host"):
        read({"leaf1": {"Eth1/49": ("leaf2", "Eth1/49", HUNDRED_GIG)}}, switch_outputs={"leaf1"})


# --- what LLDP says against what a site says ------------------------------------------------------


@pytest.mark.rows
def test_what_lldpctl_says(text: str, found: dict[str, Any]) -> None:
    """Of one interface and of several; and what is something else."""
    neighbours = cabling.lldp_neighbours(text)
    wanted = {name: (switch, tuple(words)) for name, (switch, *words) in found.items()}
    assert {name: (one.switch, one.ports) for name, one in neighbours.items()} == wanted


def site(tmp_path: Path, **keys: Any) -> Site:
    """Return six hosts on two switches."""
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


# --- routed labs before any namespace -------------------------------------------------------------


SALMON = "conf/paper-salmon-table1.yaml"


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
    """Return the nodes that a packet comes to, by looking at one table after the other."""
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
    counts: Counter[int] = Counter()
    for destination in (node.name for node in topology.nodes[1:]):
        way = walked(topology, "node1", destination)
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


@pytest.mark.rows
def test_what_no_routed_lab_can_be(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TopologyError) as caught:
        line(**changes)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "setting", ["transport=dpdk", "site.driver=af_packet", "site.queues=2"], ids=str
)
def test_dpdk_is_refused_in_one_sentence(setting: str, cli: Command) -> None:
    said = cli.refuses("plan", SALMON, "--set", setting)
    assert "nodes of a routed lab forward what kernels send by IP" in said
    assert all("nodes of a routed lab" in line or "mistakes" in line for line in said.splitlines())


# --- labs with a modelled switch, before anything is made -----------------------------------------


TEST = "tests: [{pattern: chain}]\n"


def site_of(folder: Path, text: str) -> Site:
    """Return the site of a configuration."""
    return read_text(folder, f"switchbench: 1\nsite: {text}\n{TEST}").site


def described(name: str, **model: Any) -> list[dict[str, Any]]:
    """Return the documents that the switches of a lab read."""
    return list(switches.descriptions("x", load(name, {"model": model})))


def test_a_node_has_a_port_for_each_transport(tmp_path: Path) -> None:
    site = site_of(tmp_path, "{lab: model-good}")
    engine = site.ports[2].engine
    (switch,) = described("model-good")
    port = switch["ports"][2]
    assert port["name"] == "node3"
    assert (port["rate_bps"], port["buffer"]) == (100_000_000, 262_144)
    assert engine["vdev"].startswith("net_memif3,role=client,id=3,")
    assert port["vdev"].startswith("net_memif3,role=server,id=3,")
    assert port["iface"] == "p3"
    assert engine["iface"] == "eth0"


def test_a_trunk_has_one_server(tmp_path: Path) -> None:
    left, right = described("model-e7")
    ends = [switch["ports"][-1] for switch in (left, right)]
    assert [end["trunk"] for end in ends] == [True, True]
    assert ["role=server" in end["vdev"] for end in ends] == [True, False]
    assert (ends[0]["rate_bps"], left["capacity"]) == (72_200_000, 148_700_000)


def test_faults_go_to_the_module_of_their_ports() -> None:
    faults = [
        {"kind": "drop", "in": "node30"},
        {"kind": "flood", "module": "right"},
        {"kind": "duplicate", "one_in": 9},
        {"kind": "slow", "port": "node2", "rate": "1M"},
    ]
    left, right = described("model-e7", faults=faults)
    assert [fault["kind"] for fault in right["faults"]] == ["drop", "flood"]
    assert left["faults"] == [
        {"kind": "duplicate", "one_in": 9},
        {"kind": "slow", "port": "node2", "rate_bps": 1_000_000},
    ]


def test_a_lab_is_found_as_it_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its topology is read with all settings of its switch; a file of another form is named."""
    monkeypatch.setattr(state, "RUN_DIR", tmp_path)
    model = {
        "memory": "1MiB",
        "capacity": "133.237M",
        "faults": [
            {"kind": "slow", "port": "node2", "rate": "1M"},
            {"kind": "drop", "in": "node1"},
        ],
    }
    left = state.LabState("x", load("model-good", {"model": model}), kept=True)
    state.write(left)
    assert state.read("x") == left
    (tmp_path / "x.json").write_text('{"kept": true, "topology": {}}')
    with pytest.raises(LabError, match="was made by another version"):
        state.read("x")


def test_a_lab_of_another_version_blocks_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state, which could not be read, ended each run on any lab."""
    monkeypatch.setattr(state, "RUN_DIR", tmp_path)
    (tmp_path / "old.json").write_text('{"kept": true}')
    topology = load("one-switch", {"nodes": 2})
    labs_lab._clear_for(labs_lab.Lab("x", topology))
    with pytest.raises(LabError, match="lab old already has the namespace sb-old-y-node1"):
        labs_lab._clear_for(labs_lab.Lab("old-y", topology))


@pytest.mark.rows
def test_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        site_of(tmp_path, text)


# --- reports ---


def test_a_report_may_take_long_as_long_as_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch of 65,000 flows writes for longer than the time in which it must begin."""
    monkeypatch.setattr(state, "RUN_DIR", tmp_path)
    monkeypatch.setattr(switches, "_SILENCE_S", 0.3)
    monkeypatch.setattr(switches, "_say", lambda *_: None)
    records = tmp_path / "x.m0.ndjson"
    records.write_text('{"type": "ready"}\n')
    topology = load("model-good", {})

    def write() -> None:
        for number in range(8):
            for part in ('{"type": "flow", "num', f'ber": {number}}}\n'):
                time.sleep(0.05)
                with records.open("a") as file:
                    file.write(part)
        with records.open("a") as file:
            file.write('{"type": "total"}\n')

    writer = threading.Thread(target=write)
    writer.start()
    found = switches.report("x", topology)
    writer.join()
    assert [record.get("number") for record in found] == [*range(8), None]
    with pytest.raises(LabError, match="has written no record `total` for 0 s"):
        switches.report("x", topology)


def test_a_lab_that_the_kernel_does_not_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    """Its status is that of what could not be completed."""

    def build(_lab: Any) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(state, "RUN_DIR", tmp_path)
    monkeypatch.setattr(labs_lab, "_build", build)
    monkeypatch.setattr(namespaces, "need_root", lambda _: None)
    said = cli.refuses("lab", "up", "one-switch", status=3)
    assert "lab one-switch can't be made: [Errno 12] Cannot allocate memory" in said
    assert state.labs() == []


def test_a_switch_that_dies_while_it_starts_is_no_bad_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status is 3, not 2: the configuration was right, and the run could not be completed."""
    process = subprocess.Popen(["false"])
    process.wait()
    monkeypatch.setattr(switches.state, "RUN_DIR", tmp_path)
    (tmp_path / "x.m0.ndjson").touch()

    @contextmanager
    def session(_topology: Any) -> Iterator[None]:
        switches._await_record("ready", "x", 0, 0, process)
        yield

    monkeypatch.setattr(lab.lab, "session", session)
    monkeypatch.setattr(lab.namespaces, "enter_user_namespace", lambda: None)
    with (
        pytest.raises(RunError, match="ended with status 1"),
        lab.LabLauncher(site_of(tmp_path, "{lab: model-good}")),
    ):
        pass
