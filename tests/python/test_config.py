# SPDX-License-Identifier: BSD-3-Clause
"""Configurations read: YAML with positions, how mistakes are told; labs and site files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from configs import LAB, PROJECT, needs_engine, read_text, write_files
from switchbench.base.errors import MISTAKES_MOST, ConfigurationError
from switchbench.base.model import Site
from switchbench.base.source import parse_assignment, parse_text, read_file
from switchbench.cli.main import main
from switchbench.config import Request, read
from switchbench.plan.compile import compile_run

# --- YAML with positions --------------------------------------------------------------------------


def test_every_value_has_its_line() -> None:
    """Keys and list entries are marked where they stand; a missing key where its mapping is."""
    document = parse_text("a: 1\nb:\n- c: 2\n- {d: 3,\n   e: 4}\n", "x.yaml")
    assert document.data == {"a": 1, "b": [{"c": 2}, {"d": 3, "e": 4}]}
    assert str(document.mark(("b", 1, "e"))) == "x.yaml:5"
    assert str(document.mark(("b", 1, "missing"))) == "x.yaml:4"
    assert str(document.problem(("b", 0, "c"), "is wrong")) == "x.yaml:3: b.0.c: is wrong"


def test_an_alias_is_the_value_again() -> None:
    """Each a value of its own; marked where its anchor stands."""
    document = parse_text("a: &x {l: [1, &y 2]}\nb: *x\nc: *y\n", "x.yaml")
    assert document.data == {"a": {"l": [1, 2]}, "b": {"l": [1, 2]}, "c": 2}
    nested = parse_text("a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]\n", "x.yaml").data
    assert nested["c"] == [[[1], [1]], [[1], [1]]]
    assert document.data["a"] is not document.data["b"]
    assert str(document.mark(("b", "l"))) == "x.yaml:1"


def test_scalars_are_those_of_yaml_1_2() -> None:
    """No base-60 numbers, no `yes`: a PCI address and a MAC address stay text."""
    text = "pci: 0000:03:00.0\nmac: 12:34:56:11:22:33\nyes: no\nn: ~\nt: true\ni: -3\nf: 1.5e3\n"
    assert parse_text(text, "x").data == {
        "pci": "0000:03:00.0", "mac": "12:34:56:11:22:33", "yes": "no", "n": None, "t": True,
        "i": -3, "f": 1500.0,
    }  # fmt: skip


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text("a: 1\n# " + "x" * (5 << 20))
    with pytest.raises(ConfigurationError, match=r"long\.yaml: is too large .* 4 MiB"):
        read_file(tmp_path / "long.yaml")
    with pytest.raises(ConfigurationError, match=r"no\.yaml: can't be read: No such file"):
        read_file(tmp_path / "no.yaml")


def test_assignments() -> None:
    """`--set` has a dotted path and a YAML value."""
    assert parse_assignment("tests.0.load=95%")[:2] == (("tests", 0, "load"), "95%")
    assert parse_assignment("loads=[50%, 95%]")[:2] == (("loads",), ["50%", "95%"])
    for argument in ("window", "=1s", "a..b=1"):
        with pytest.raises(ConfigurationError, match=f"--set {argument}"):
            parse_assignment(argument)
    with pytest.raises(ConfigurationError, match=r"--set loads=.*: is too large .* 64 deep"):
        parse_assignment("loads=" + "[" * 20_000)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"key{number}: 1\n" for number in range(20_000)),
        f"tests: [{', '.join(['{pattern: chain, network: x}'] * 20_000)}]\n",
        f"expect: [{', '.join(['{measure: x, min: 1}'] * 20_000)}]\n",
    ],
)
def test_many_mistakes_are_told_in_few_lines(tmp_path: Path, text: str) -> None:
    """None of them is looked for without end: each document is answered in seconds."""
    with pytest.raises(ConfigurationError) as error:
        read_text(tmp_path, LAB + text)
    assert len(str(error.value).splitlines()) <= MISTAKES_MOST + 1


def test_without_tests_all_patterns_run_on_each_network(tmp_path: Path) -> None:
    """`--site S --profile quick` needs no file; a network gets a transport that it has."""
    reading = read_text(tmp_path, "switchbench: 1\nsite: sites/hall2.yaml\n", profile="quick")
    assert [(test.pattern, test.network, test.transport) for test in reading.tests] == [
        (pattern, network, transport)
        for pattern in ("chain", "pairs", "aapc", "ring")
        for network, transport in (("rail0", "dpdk"), ("rail1", "dpdk"), ("ib", "verbs"))
    ]


# --- sites ----------------------------------------------------------------------------------------

SITES = PROJECT / "conf" / "sites"
TEST = "tests: [{pattern: chain}]\n"


def site_of(folder: Path, text: str, *assignments: str) -> Site:
    """The site of a configuration."""
    return read_text(folder, f"switchbench: 1\nsite: {text}\n{TEST}", *assignments).site


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
    text = "{launch: hand, hosts: 'node[1-300]', ports: {e0: {network: n, iface: eth0}}}"
    site = site_of(tmp_path, text)
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
