# SPDX-License-Identifier: BSD-3-Clause
"""Labs and site files: hosts, ports, ranks, groups, processes, wiring."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from configs import LAB, PROJECT, needs_engine, read_text, write_files
from switchbench.base.model import Site
from switchbench.base.source import read_file
from switchbench.cli.main import main
from switchbench.config import Request, read
from switchbench.plan.compile import compile_run

SITES = PROJECT / "conf" / "sites"
TEST = "tests: [{pattern: chain}]\n"


def site_of(folder: Path, text: str, *assignments: str) -> Site:
    """The site of a configuration."""
    return read_text(folder, f"switchbench: 1\nsite: {text}\n{TEST}", *assignments).site


def hand(folder: Path, keys: str) -> Site:
    """The site of two hosts, started by hand, with further keys."""
    return site_of(folder, f"\n  launch: hand\n  {keys}")


CASES: dict[str, Any] = read_file(PROJECT / "tests/python/data/sites.yaml").data


def found_at(value: Any, path: list[str]) -> Any:
    """What stands at a path into a site, as plain values; `*`: of every item."""
    for depth, part in enumerate(path):
        if part == "*":
            return [found_at(item, path[depth + 1 :]) for item in value]
        if isinstance(value, dict):
            value = value[part]
        else:
            value = value[int(part)] if part.isdecimal() else getattr(value, part)
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", CASES)
def test_sites(name: str, tmp_path: Path) -> None:
    """Ports, addresses, ranks, groups and processes of sites of all kinds."""
    site = site_of(tmp_path, CASES[name]["site"], *CASES[name].get("set", ()))
    wanted = CASES[name]["has"]
    assert {path: found_at(site, path.split(".")) for path in wanted} == wanted


@needs_engine
@pytest.mark.parametrize("path", sorted(SITES.glob("*.yaml")), ids=lambda p: p.stem)
def test_example_sites_run(path: Path) -> None:
    """Each stands for itself, plans whatever is tested there, and needs nothing that is missing."""
    document = read_file(path)
    assert not {"switchbench", "tests"} & document.data.keys()
    request = Request(PROJECT / "conf/first-hour.yaml", site=str(path), profile="quick")
    run = compile_run(read(request))
    assert run.trials
    used = {port.host for trial in run.trials for part in trial.parts for port in part.ranks}
    assert used <= {process.name for process in run.site.processes}
    assert main(["plan", "--site", str(path), "--profile", "quick"]) == 0


@pytest.mark.parametrize(
    ("lab", "cores", "timeout_ms"),
    [
        ("two-modules", 24, 2000),
        ("two-modules", 64, 2000),
        ("two-modules", 14, 3000),
        ("two-modules", 2, 4200),
        ("sixty-four", 1, 5000),  # no longer than a barrier is waited for
    ],
)
def test_many_nodes_of_a_core_have_a_slower_heartbeat_timeout(
    lab: str, cores: int, timeout_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 or 64 nodes; what the site says is taken as it is."""
    monkeypatch.setattr("switchbench.config.labs.os.cpu_count", lambda: cores)
    assert site_of(tmp_path, f"{{lab: {lab}}}").heartbeat_timeout_ms == timeout_ms
    given = site_of(tmp_path, f"{{lab: {lab}, control: {{heartbeat_timeout: 1s}}}}")
    assert given.heartbeat_timeout_ms == 1000


def test_ways_to_name_a_site(tmp_path: Path) -> None:
    """A lab by name, a topology beside the configuration, a site file, `--site`."""
    topology = "topology: 1\nrate: 10M\nmodules: [m]\nnodes:\n  n[1-2]: {}\n"
    (tmp_path / "mine.yaml").write_text(topology)
    for text in ("mine.yaml", "{lab: mine.yaml}"):
        assert [port.name for port in site_of(tmp_path, text).ports] == ["n1:e0", "n2:e0"]
    assert site_of(tmp_path, "tree").lab == "tree"
    path = write_files(tmp_path, LAB + TEST)
    assert read(Request(path, site="tree")).site.lab == "tree"
    assert read(Request(None, site="one-switch", profile="quick")).site.lab == "one-switch"
    assert read(Request(path, ["site.lab=two-modules"])).site.lab == "two-modules"


def test_many_ports_have_an_address_of_their_own(tmp_path: Path) -> None:
    site = hand(tmp_path, "hosts: node[1-300]\n  ports: {e0: {network: n, iface: eth0}}")
    for key in ("mac", "ipv4", "ipv6"):
        addresses = {port.engine[key] for port in site.ports}
        assert len(addresses) == 300
        if key == "mac":
            assert all(re.fullmatch("02:53:42:00(:[0-9a-f]{2}){2}", one) for one in addresses)


def test_shuffled_ranks_follow_the_seed(tmp_path: Path) -> None:
    """The same seed, the same order; another seed, another."""

    def ranks(seed: int) -> list[str]:
        site = site_of(tmp_path, "{lab: two-modules, rank_order: shuffled}", f"seed={seed}")
        return [port.name for port in site.networks["lab"]]

    assert ranks(1) == ranks(1)
    assert ranks(1) != ranks(2)
    assert sorted(ranks(1)) == sorted(ranks(2))
