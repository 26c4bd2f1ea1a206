# SPDX-License-Identifier: BSD-3-Clause
"""The JSON schemas for editors: current, true of every example, and false of clear mistakes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import configs
from switchbench.base.source import load
from switchbench.config.json_schema import SCHEMAS

CONF = configs.PROJECT / "conf"
FILES = {
    **{path: "configuration" for path in CONF.glob("*.yaml")},
    **{path: "topology" for path in (CONF / "labs").glob("*.yaml")},
    **{path: "site" for path in (CONF / "sites").glob("*.yaml")},
}


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((CONF / f"{name}.schema.json").read_text()))


def mistakes(name: str, value: Any) -> list[str]:
    return [error.json_path for error in validator(name).iter_errors(value)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_published_schema_is_current(name: str) -> None:
    """`python -m switchbench.config.json_schema conf` makes it again."""
    made = SCHEMAS[name]()
    Draft202012Validator.check_schema(made)
    assert json.loads((CONF / f"{name}.schema.json").read_text()) == made


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_examples_validate(path: Path) -> None:
    """Each names its schema by a path from its own folder, where editors look it up."""
    assert mistakes(FILES[path], load(path)) == []
    (line,) = (one for one in path.read_text().splitlines() if "yaml-language-server" in one)
    _, _, schema = line.partition("# yaml-language-server: $schema=")
    assert (path.parent / schema).resolve() == CONF / f"{FILES[path]}.schema.json"


def configuration(**keys: Any) -> dict[str, Any]:
    return {"switchbench": 1, "site": {"lab": "one-switch"}, **keys}


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("configuration", {"site": "one-switch"}, "$"),
        ("configuration", configuration(loadd="5%"), "$"),
        ("configuration", configuration(window="5 parsecs"), "$.window"),
        ("configuration", configuration(window=5), "$.window"),
        ("configuration", configuration(load="95"), "$.load"),
        ("configuration", configuration(loads="95%"), "$.loads"),
        ("configuration", configuration(pattern="aacp"), "$.pattern"),
        ("configuration", configuration(frame_size="64 bits"), "$.frame_size"),
        ("configuration", configuration(tests={"pattern": "aapc"}), "$.tests"),
        ("configuration", configuration(tests=[{"ranks": [1]}]), "$.tests[0].ranks"),
        ("configuration", configuration(tests=[{"dpdk": {"vlan": 4095}}]), "$.tests[0].dpdk"),
        ("configuration", configuration(sweep={"wndow": ["1s"]}), "$.sweep"),
        ("configuration", configuration(sweep={"window": "1s"}), "$.sweep"),
        ("configuration", configuration(expect=[{"min": 1}]), "$.expect"),
        ("configuration", configuration() | {"site": {"lab": "a", "rate": "fast"}}, "$.site"),
        ("configuration", configuration() | {"site": {"lab": "a", "hosts": "b"}}, "$.site"),
        ("site", {"launch": "ssh", "hosts": "a", "port": {}}, "$"),
        ("site", {"launch": "rsh", "hosts": "a", "ports": {"e0": {"network": "n"}}}, "$"),
        ("topology", {"topology": 1, "nodes": {"a[1-2]": {}}, "rate": "10 furlongs"}, "$"),
        ("topology", {"topology": 2, "nodes": {"a[1-2]": {}}, "rate": "10M"}, "$"),
    ],
)
def test_mistakes_do_not(name: str, value: Any, where: str) -> None:
    found = mistakes(name, value)
    assert found
    assert all(place.startswith(where) or where.startswith(place) for place in found)


@pytest.mark.parametrize(
    "keys",
    [
        {"window": "500ms", "loads": ["95%", "1Gbit", "10kpps"], "interval": "off"},
        {"repeat": 3, "message_sizes": [1500, "64KiB"], "flood_limit": "10k"},
        {"repeat": {"min": 3, "width": "2%"}, "imix": "aab"},
        {"partners": [["a:e0", "b:e0"]], "groups": ["rack1", ["n1", "n2"]], "clock": "ptp"},
        {"sweep": {"dpdk.vlan": [1, 2], "window": ["1s", "2s"]}, "latency": {"probes": "1000/s"}},
        {"site": {"lab": "one-switch", "nodes": 4, "rate": "10M", "cores": "2-5,8"}},
    ],
)
def test_what_is_read_validates(keys: dict[str, Any]) -> None:
    """Each of these values is one that its key takes."""
    assert mistakes("configuration", configuration() | keys) == []
