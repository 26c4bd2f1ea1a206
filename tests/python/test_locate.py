# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench locate`, trials that tell suspects apart, and topology files of sites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from golden import records_of, unpack
from recorded import replace_rows, rows_in, write_tables
from switchbench.analysis.sealing import MANIFEST, seal
from switchbench.base.model import Load, Part, Port, Process, Site
from switchbench.cli.networks import next_command
from switchbench.plan.chosen import locating_trial
from switchbench.plan.documents import trial_document
from switchbench.records.directory import read_plan
from switchbench.topology import topology
from switchbench.topology.fabric import wired
from synthetic import make_run, make_site, make_trial

HALL: dict[str, Any] = {
    "topology": 1,
    "kind": "site",
    "rate": "10G",
    "modules": ["leaf1", "leaf2"],
    "nodes": {"a": {"module": "leaf1"}, "b": {"module": "leaf2"}},
    "trunks": [{"between": ["leaf1", "leaf2"], "links": 2}],
}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The results `clauses` without tables."""
    directory = unpack("clauses", tmp_path)
    for file in directory.glob("*.parquet"):
        file.unlink()
    return directory


def test_a_healthy_run_has_no_suspect(tmp_path: Path, cli: Command) -> None:
    status, out, _ = cli("locate", unpack("clauses", tmp_path))
    assert (status, "No suspect" in out) == (0, True)


def test_what_trunks_have_no_room_for_is_expected(tmp_path: Path, cli: Command) -> None:
    directory = unpack("tree", tmp_path)
    status, out, _ = cli("locate", directory, "--json")
    found = json.loads(out)
    assert (status, found["paths"], found["suspects"]) == (0, "topology file tree", [])
    assert {one["element"]["kind"] for one in found["expected"]} >= {"trunk"}
    assert sum(one["frames"] for one in found["expected"]) > 110_000
    assert found["command"] == ""
    for table in ("flows", "ports", "phases"):  # cut in the middle: as far as they go
        rows = rows_in(directory, table)
        replace_rows(directory, table, rows[: len(rows) // 2])
    assert cli("locate", directory).status == 0


def test_without_records_nothing_can_be_judged_and_a_stream_that_was_cut_is_named(
    bare: Path, cli: Command
) -> None:
    assert cli("locate", bare).status == 4
    write_tables(bare, read_plan(bare), records_of("clauses"))
    stream = bare / "flows.1.arrows"
    stream.write_bytes(stream.read_bytes()[:-100])
    assert "flows.1.arrows" in json.loads(cli("locate", bare, "--json").out)["problems"][-1]


def test_a_sealed_directory_that_lacks_a_table_keeps_its_seal(tmp_path: Path, cli: Command) -> None:
    directory = unpack("clauses", tmp_path)
    seal(directory)
    sealed = (directory / MANIFEST).read_bytes()
    (directory / "ports.parquet").unlink()
    status, _, err = cli("table", directory, "--again")
    assert (status, "ports.parquet" in err) == (2, True)
    assert (directory / MANIFEST).read_bytes() == sealed


def test_what_cannot_be_read_is_said(tmp_path: Path, cli: Command) -> None:
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "nothing", tmp_path / "empty"):
        status, _, err = cli("locate", place)
        assert status == 2
        assert err.startswith(f"switchbench: {place} is no results directory: ")
    directory = unpack("clauses", tmp_path)
    (tmp_path / "bad.yaml").write_text("topology: 1\nnodes: {}\n")
    status, _, err = cli("locate", directory, "--topology", tmp_path / "bad.yaml")
    assert (status, "bad.yaml: nodes" in err) == (2, True)
    assert cli("locate", directory, "--topology", tmp_path / "none.yaml").status == 2


def test_the_next_test_is_a_command_to_paste() -> None:
    test: Any = {"flows": [["a:e0", "b:e0"]], "load": 50.0, "transport": "dpdk", "why": ""}
    said = next_command(test, Path("out dir"))
    assert said.startswith("switchbench run 'out dir/configuration.yaml' --set 'tests=[{")
    assert next_command({**test, "flows": []}, Path("out")) == ""
    assert next_command(None, Path("out")) == ""


# --- trials that decide --------------------------------------------------------------------------


def test_a_locating_trial_sends_its_flows_as_the_nearest_trial_did() -> None:
    site = make_site(4)
    low, high = (make_trial(site, number, load=load) for number, load in enumerate(LOADS))
    run = make_run(site, low, high)
    found = locating_trial(run, [["node3:e0", "node1:e0"]], "dpdk", 85.0)
    assert found is not None
    assert (found.id, found.load, found.flows, found.locating) == (2, high.load, 1, True)
    assert trial_document(found)["pattern"] == {"name": "flows", "list": [2, 0]}
    assert trial_document(found)["id"] == 2


LOADS = [Load(percent=percent) for percent in (30.0, 90.0)]


def test_where_no_trial_shows_how_there_is_none() -> None:
    site = make_site(4)
    run = make_run(site, make_trial(site, parts=(Part("lab", site.ports[:2]),)))
    assert locating_trial(run, [], "dpdk", 95.0) is None
    assert locating_trial(run, [["node1:e0", "node2:e0"]], "tcp", 95.0) is None
    assert locating_trial(run, [["node1:e0", "node4:e0"]], "dpdk", 95.0) is None


# --- sites and their topology files --------------------------------------------------------------


def hall(**changes: Any) -> topology.Topology:
    return topology.parse({**HALL, **changes}, "hall")


def hosts(*names: str, **wiring: tuple[str, str]) -> Site:
    """A site of one port a host; `wiring`: switch and its port, by host."""
    ports = tuple(
        Port(f"{name}:e0", name, "net", ("dpdk",), {}, 0, 0, *wiring.get(name, (None, None)))
        for name in names
    )
    processes = tuple(Process(port.host, (port,), {}) for port in ports)
    return Site("ssh", processes, {"net": ports})


def test_ports_are_where_the_topology_file_has_their_hosts() -> None:
    site = wired(hosts("a", "b"), hall(overrides={"a": {"port": "Ethernet1/7"}}))
    assert [(port.switch, port.switch_port) for port in site.ports] == [
        ("leaf1", "Ethernet1/7"),
        ("leaf2", None),
    ]
    assert site.networks["net"] == site.ports
    assert site.wiring is not None
    assert (site.wiring.source, site.wiring.problems) == ("topology file hall", ())


@pytest.mark.parametrize(
    ("site", "changes", "words"),
    [
        (hosts("a", "b", "c"), {}, "topology file hall has no host c"),
        (hosts("a", "b", a=("leaf2", "9")), {}, "has a:e0 at leaf1, the site's wiring at leaf2 9"),
        (
            hosts("a", "b"),
            {"links": [{"between": ["a", "leaf2"]}]},
            "has a on several switches: the site's `wiring` is needed to say where a:e0 is",
        ),
    ],
)
def test_what_does_not_match_is_a_sentence(site: Site, changes: dict[str, Any], words: str) -> None:
    wiring = wired(site, hall(**changes)).wiring
    assert wiring is not None
    (problem,) = wiring.problems
    assert words in problem


def test_the_results_of_another_site_are_located_with_a_sentence(
    tmp_path: Path, cli: Command
) -> None:
    tree = Path(__file__).parents[2] / "conf/labs/tree.yaml"
    status, out, _ = cli("locate", unpack("udp", tmp_path), "--topology", tree, "--json")
    assert status == 0
    assert any("the site's wiring at switch" in one for one in json.loads(out)["problems"])
