# SPDX-License-Identifier: BSD-3-Clause
"""Topology files made of what devices say of their cables: LLDP and ibnetdiscover.

The outputs have the form of lldpcli 1.0.16 between two network namespaces, and of infiniband-diags.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from switchbench.base.errors import ConfigurationError
from switchbench.cli.main import main
from switchbench.topology import cabling, ibnetdiscover
from switchbench.topology.cabling import cabling_document as document
from switchbench.topology.cabling import distinct
from switchbench.topology.topology import parse

SUBNET = Path(__file__).parent / "data" / "ibnetdiscover.txt"
TEN_GIG = "10GbaseT - Four-pair Category 6A or better, full duplex mode only"
HUNDRED_GIG = "100GbaseSR4 - 100GBASE-R PCS/PMA over 4 lane multimode fiber"

Seen = dict[str, tuple[str, str, str]]
"""By interface: the neighbour's name, its port, the link's medium."""


def as_json(seen: Seen) -> str:
    """`lldpcli -f json show neighbors details`: of one interface a mapping, of several a list."""
    interfaces = [
        {
            name: {
                "via": "LLDP",
                "chassis": {
                    switch: {
                        "id": {"type": "mac", "value": "aa:8e:d6:73:d3:34"},
                        "capability": [
                            {"type": "Bridge", "enabled": True},
                            {"type": "Station", "enabled": False},
                        ],
                    }
                },
                "port": {
                    "id": {"type": "ifname", "value": port},
                    "ttl": "120",
                    **(
                        {"auto-negotiation": {"enabled": False, "current": medium}}
                        if medium
                        else {}
                    ),
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
    """The topology's keys of a hall whose devices say this."""
    texts = {device: as_json(seen) for device, seen in hall.items()}
    return document(cabling.read_lldp(texts, "hall", cabling.LldpOptions(**choice)))


def run(*words: str) -> int:
    """`switchbench topology import WORDS`."""
    return main(["topology", "import", *words])


def test_a_hall_by_lldp() -> None:
    keys = read(HALL, switches={"leaf1"})
    assert keys["modules"] == ["leaf1", "leaf2"]
    assert keys["nodes"] == {
        "node[1-2]": {"module": "leaf1", "rate": "10G"},
        "node3": {"module": "leaf2", "rate": "10G"},
    }
    assert keys["trunks"] == [{"between": ["leaf1", "leaf2"], "rate": "100G"}]
    assert keys["links"] == [{"between": ["node2", "leaf2"], "rate": "10G"}]
    assert keys["overrides"]["node3"] == {"port": "Eth1/3"}
    assert len(parse(keys, "hall").nodes) == 3


def test_cables_that_both_ends_tell_of_are_counted_once() -> None:
    both = HALL | {
        "leaf2": {
            "Eth1/49": ("leaf1", "Eth1/49", HUNDRED_GIG),
            "Eth1/50": ("leaf1", "Eth1/50", HUNDRED_GIG),
            "Eth1/3": ("node3", "ens1", TEN_GIG),
        }
    }
    keys = read(both, switches={"leaf1", "leaf2"})
    assert keys["trunks"] == [{"between": ["leaf1", "leaf2"], "links": 2, "rate": "100G"}]
    assert keys["nodes"]["node3"]["rate"] == "10G"


@pytest.mark.parametrize(
    ("medium", "rate"),
    [
        ("1000BaseTFD - Four-pair Category 5 UTP, full duplex mode", "1G"),
        ("100BaseTXFD - 2 pair category 5 UTP, full duplex mode", "100M"),
        ("2p5GigT - 2.5GBASE-T", "2.5G"),
        ("10GigBaseLR - R PCS/PMA, 1310nm single mode fiber", "10G"),
        (HUNDRED_GIG, "100G"),
    ],
)
def test_media_have_rates(medium: str, rate: str) -> None:
    keys = read({"n1": {"e": ("sw", "1", medium)}, "n2": {"e": ("sw", "2", medium)}})
    assert keys["nodes"] == {"n[1-2]": {"module": "sw", "rate": rate}}


def test_a_subnet_by_ibnetdiscover() -> None:
    """Two adapters of one host are one; a switch's aggregation node is none."""
    keys = document(ibnetdiscover.read(SUBNET.read_text(), "subnet"))
    assert keys["nodes"] == {
        "node1": {"module": "leaf-1", "rate": "200G"},
        "node2": {"module": "leaf-1", "rate": "400G"},
        "node3": {"module": "leaf-2", "rate": "100G"},
    }
    assert keys["trunks"][0] == {"between": ["leaf-1", "spine-1"], "links": 2, "rate": "200G"}
    assert len(keys["trunks"]) == 4
    assert keys["modules"] == ["leaf-1", "leaf-2", "spine-1", "spine-2"]


@pytest.mark.parametrize(
    ("said", "bps"),
    [
        ("1xSDR", 2e9), ("4xQDR", 32e9), ("4xFDR10", 40e9), ("4xFDR", 54_545_454_544),
        ("4xEDR", 100e9), ("2xHDR", 100e9), ("4xNDR", 400e9), ("8xXDR", 1600e9),
    ],
)  # fmt: skip
def test_what_infinibands_coding_leaves(said: str, bps: float) -> None:
    text = SUBNET.read_text().replace("4xEDR", said)
    keys = document(ibnetdiscover.read(text, "subnet"))
    nodes = parse(keys, "subnet").nodes
    assert {node.name: node.rate_bps for node in nodes}["node3"] == bps


def test_topology_and_predict_read_what_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tree of two spines is no tree: loops are allowed in what is no lab."""
    hall = tmp_path / "hall.yaml"
    assert run("--ibnetdiscover", str(SUBNET), "--out", str(hall)) == 0
    assert "3 hosts, 4 switches, 8 cables" in capsys.readouterr().err
    assert main(["topology", str(hall), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["hosts"], figures["diameter"], figures["cables"]) == (3, 4, 8)
    site = {
        "launch": "hand",
        "hosts": "node[1-3]",
        "control": {"address": "{host}", "udp_port": 7600},
        "ports": {"i0": {"network": "ib", "iface": "ib0", "line_rate": "100Gbit"}},
    }
    tests = [{"pattern": "pairs", "transport": "tcp", "partners": "neighbours"}]
    conf = tmp_path / "conf.yaml"
    conf.write_text(yaml.safe_dump({"switchbench": 1, "site": site, "tests": tests}))
    assert main(["predict", str(conf), "--topology", str(hall), "--json"]) == 0
    (trial,) = json.loads(capsys.readouterr().out)["trials"][:1]
    assert trial["models"]["max-min"]["min_bps"] == 100e9
    site["hosts"] = "node[1-4]"
    conf.write_text(yaml.safe_dump({"switchbench": 1, "site": site, "tests": tests}))
    assert main(["predict", str(conf), "--topology", str(hall)]) == 2
    assert "topology hall has no host node4" in capsys.readouterr().err
    lab = [{"pattern": "pairs"}]
    conf.write_text(yaml.safe_dump({"switchbench": 1, "site": {"lab": "hall.yaml"}, "tests": lab}))
    assert main(["plan", str(conf)]) == 2
    assert "describes a real network (kind: site)" in capsys.readouterr().err


def test_several_outputs_in_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a header before each, or a name before each line."""
    texts = {device: as_json(seen) for device, seen in HALL.items()}
    headers = "\n".join(f"==> {host} <==\n{text}" for host, text in texts.items())
    lines = (f"{host}: {line}" for host, text in texts.items() for line in text.splitlines())
    for said in (headers, "\n".join(lines)):
        monkeypatch.setattr("sys.stdin", io.StringIO(said))
        assert run("--lldp", "-", "--interface", "ens1", "--switches", "leaf1") == 0
        keys = yaml.safe_load(capsys.readouterr().out)
        assert keys["kind"] == "site"
        assert set(keys["nodes"]) == {"node[1-2]", "node3"}
        assert "links" not in keys  # node2's other interface does not count


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tree", "--rate", "1G"], "--rate goes with `switchbench topology import` only"),
        (["import"], "--lldp FILE or --ibnetdiscover FILE"),
        (["import", "--ibnetdiscover", str(SUBNET), "--json"], "--json does not go with"),
        (["import", "--ibnetdiscover", str(SUBNET), "--switches", "x"], "goes with --lldp only"),
        (["import", "--lldp", "-"], "does not say whose output it is"),
    ],
)
def test_bad_words_are_one_sentence(
    words: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(as_json(HALL["node1"])))
    assert main(["topology", *words]) == 2
    assert says in capsys.readouterr().err


def test_names_and_halls_that_need_care() -> None:
    found = distinct([("S-1", "Switch IB (rack 3)"), ("S-2", "sw"), ("S-3", "sw")])
    assert found == {"S-1": "Switch-IB-rack-3", "S-2": "sw-S-2", "S-3": "sw-S-3"}
    apart = read({"n1": {"e": ("sw1", "1", TEN_GIG)}, "n2": {"e": ("sw2", "1", TEN_GIG)}})
    assert apart["modules"] == ["sw1", "sw2"]
    assert "trunks" not in apart
    with pytest.raises(ConfigurationError, match="says of no host"):
        read({"leaf1": {"Eth1/49": ("leaf2", "Eth1/49", HUNDRED_GIG)}}, switches={"leaf1"})
