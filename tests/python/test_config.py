# SPDX-License-Identifier: BSD-3-Clause
"""Configurations read: YAML with positions, quantities, labs and site files, how mistakes are told;
the page that describes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from configs import LAB, LAB_EXAMPLE, PAGE, PROJECT, again, needs_engine, read_text, write_files
from switchbench.analysis.phases import ClockTable
from switchbench.base import quantities
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import ONE_WAY, ClockChoice, Load, Site
from switchbench.base.quantities import COUNT, DURATION, RATE, SIZE, Quantity
from switchbench.base.source import parse_assignment, parse_text, read_file
from switchbench.base.transports import NAMES
from switchbench.cli.main import main
from switchbench.config import fields, read, schema
from switchbench.config.clauses import parse_clause
from switchbench.config.rules import NESTED, PROFILES
from switchbench.plan.compile import compile_run
from switchbench.plan.documents import job_document
from switchbench.plan.engine import PlanRefused, plan_size
from switchbench.records.rows import Histogram

# --- YAML with positions --------------------------------------------------------------------------


def test_every_value_has_its_line() -> None:
    """Keys and list entries have their own line; a missing key has the line of its mapping."""
    document = parse_text("a: 1\nb:\n- c: 2\n- {d: 3,\n   e: 4}\n", "x.yaml")
    assert document.data == {"a": 1, "b": [{"c": 2}, {"d": 3, "e": 4}]}
    assert str(document.mark(("b", 1, "e"))) == "x.yaml:5"
    assert str(document.mark(("b", 1, "missing"))) == "x.yaml:4"
    assert str(document.problem(("b", 0, "c"), "is wrong")) == "x.yaml:3: b.0.c: is wrong"


def test_an_alias_is_the_value_again() -> None:
    """Each alias is a separate copy of the value, at the line of its anchor."""
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
    with pytest.raises(ConfigurationError, match=r"long\.yaml: is too large: more than 4 MiB"):
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
        f"expect: [{', '.join(['{measure: x}'] * 20_000)}]\n",
    ],
)
def test_many_mistakes_are_told_in_few_lines(tmp_path: Path, text: str) -> None:
    """The search for mistakes and similar words is bounded: each document takes seconds."""
    with pytest.raises(ConfigurationError) as error:
        read_text(tmp_path, LAB + text)
    assert len(str(error.value).splitlines()) <= schema.MISTAKES_MOST + 1


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
    """Return the site of a configuration."""
    return read_text(folder, f"switchbench: 1\nsite: {text}\n{TEST}", *assignments).site


CASES: dict[str, Any] = read_file(PROJECT / "tests/python/data/sites.yaml").data


def found_at(value: Any, path: list[str]) -> Any:
    """Return the plain values at a path into a site; `*`: of every item."""
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
    """Each example site can be planned alone, and has all hosts that its trials use."""
    document = read_file(path)
    assert not {"switchbench", "tests"} & document.data.keys()
    options = [("--site", str(path)), ("--profile", "quick")]
    run = compile_run(read(PROJECT / "conf/first-hour.yaml", options))
    assert run.trials
    used = {port.host for trial in run.trials for part in trial.parts for port in part.ranks}
    assert used <= {process.name for process in run.site.processes}
    assert main(["plan", "--site", str(path), "--profile", "quick"]) == 0


@pytest.mark.rows
def test_many_nodes_of_a_core_have_a_slower_heartbeat_timeout(
    lab: str, cores: int, timeout_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default timeout grows with the nodes per core; a site's own timeout is used unchanged."""
    monkeypatch.setattr("switchbench.config.sites.os.cpu_count", lambda: cores)
    assert site_of(tmp_path, f"{{lab: {lab}}}").heartbeat_timeout_ms == timeout_ms
    given = site_of(tmp_path, f"{{lab: {lab}, control: {{heartbeat_timeout: 1s}}}}")
    assert given.heartbeat_timeout_ms == 1000


def test_ways_to_name_a_site(tmp_path: Path) -> None:
    """A lab by name, a topology beside the configuration, `--lab`."""
    topology = "topology: 1\nrate: 10M\nmodules: [m]\nnodes:\n  n[1-2]: {}\n"
    (tmp_path / "mine.yaml").write_text(topology)
    ports = site_of(tmp_path, "{lab: mine.yaml}").ports
    assert [port.name for port in ports] == ["n1:e0", "n2:e0"]
    path = write_files(tmp_path, LAB + TEST)
    assert read(path, [("--lab", "tree")]).site.lab == "tree"
    assert read(None, [("--lab", "one-switch")]).site.lab == "one-switch"
    assert read(path, [("--set", "site.lab=two-modules")]).site.lab == "two-modules"


def test_many_ports_have_an_address_of_their_own(tmp_path: Path) -> None:
    text = "{launch: hand, hosts: 'node[1-300]', ports: {e0: {network: n, iface: eth0}}}"
    site = site_of(tmp_path, text)
    for key in ("mac", "ipv4", "ipv6"):
        addresses = {port.engine[key] for port in site.ports}
        assert len(addresses) == 300
        if key == "mac":
            assert all(re.fullmatch("02:53:42:00(:[0-9a-f]{2}){2}", one) for one in addresses)


# --- doc/reference/configuration.md describes every key and every unit, and its examp -------------


# The keys that begin the rows of its tables.
ROWS = {
    key
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for key in re.findall(r"`([^`]+)`", line.split("|")[1])
}


# Models by the keys that they stand below, which have no rows of their own.
MODELS: dict[str, tuple[type[BaseModel], ...]] = {
    "": (
        schema.Configuration, schema.Expectation, schema.LabSite, schema.HostSite, schema.PortKeys,
    ),
    "about": (schema.About,),
    "device_reset": (schema.DeviceResetKeys,),
    **{name: (NESTED[name],) for name in NAMES},
    "control": (schema.SiteControl,),
    "ssh": (schema.Ssh,),
    "slurm": (schema.Slurm,),
    "command": (schema.StartCommand,),
}  # fmt: skip


def test_the_rows_are_the_keys() -> None:
    """The tables of the page have a row for each key of the models, and no other rows."""
    keys = {
        f"{below}.{key}".removeprefix(".")
        for below, models in MODELS.items()
        for model in models
        for key in model.model_fields
    }
    assert keys - set(MODELS) <= ROWS <= keys | set(PROFILES)


def known(pattern: dict[str, object]) -> list[str]:
    """Return the valid words that the engine lists when it rejects a pattern."""
    with pytest.raises(PlanRefused) as refused:
        plan_size(4, pattern, 1)
    return re.split(", | or ", str(refused.value).rpartition(" valid values: ")[2])


@needs_engine
def test_patterns_and_their_algorithms_are_the_engines() -> None:
    assert known({"name": "nowhere"}) == list(schema.PATTERNS)
    for name, form in schema.PATTERNS.items():
        if len(form.algorithms) > 1:
            asked = known({"name": name, "algorithm": "nowhere", "bytes": 64})
            assert set(asked) == set(form.algorithms)


def default_in(row: str, column: int) -> str:
    return row.split("|")[column].strip(" `%").lower()


@pytest.mark.parametrize("pattern", schema.PATTERNS)
def test_defaults_of_patterns(pattern: str) -> None:
    """The page's column of defaults has the defaults of patterns.toml."""
    for key, value in schema.PATTERNS[pattern].parameters.items():
        rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{key}` |")]
        owned = [row for row in rows if pattern in re.split(r"[, ]+", row.split("|")[2])]
        assert value is None or [default_in(row, 4) for row in owned] == [str(value).lower()]


@pytest.mark.parametrize("transport", NAMES)
def test_defaults_of_options(transport: str) -> None:
    for key, value in NESTED[transport]().in_effect().items():
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{transport}.{key}` |")]
        assert default_in(row, 3) == str(value).lower()


def test_verbs_options_are_the_nodes() -> None:
    """The configuration's options of verbs are the keys that the engine reads."""
    source = (PROJECT / "verbs" / "lane.c").read_text()
    names = re.findall(r'MEMBER\(OPTION_\w+, "(\w+)"', source)
    assert names == list(schema.VerbsOptions.model_fields)


def test_units() -> None:
    """The table of quantities has every unit."""
    table = PAGE.partition("### Quantities")[2].partition("### Order")[0]
    for quantity in (quantities.DURATION, quantities.SIZE, quantities.COUNT):
        assert all(f"`{unit}`" in table for unit in quantity.units if unit)
    for unit in ("kbit", "Mbit", "Gbit", "Tbit", "fps", "kfps", "Mfps"):
        assert f"`{unit}`" in table


def test_the_first_example_is_read(tmp_path: Path) -> None:
    """The first example of the page can be read."""
    assert len(read_text(tmp_path, LAB_EXAMPLE).tests) == 8


# --- one grammar of quantities --------------------------------------------------------------------


KINDS = [DURATION, SIZE, RATE, COUNT]
WHOLE = st.integers(min_value=0, max_value=10**21)


def named(kind: Quantity) -> str:
    return kind.name


def spellings(kind: Quantity) -> dict[str, int]:
    return {**kind.units, **kind.spellings}


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_what_is_printed_is_read_back(kind: Quantity) -> None:
    @given(number=WHOLE)
    def holds(number: int) -> None:
        assert kind.whole(kind.text(number)) == number

    holds()


@given(bps=st.integers(min_value=1000, max_value=10**15) | st.just(quantities.UNSHAPED))
def test_link_rates_are_read_back(bps: int) -> None:
    assert quantities.link_rate_bps(quantities.link_rate_text(bps)) == bps


POSITIVE = st.floats(min_value=1e-3, max_value=1e15)
LOADS = st.one_of(
    st.builds(Load, percent=st.floats(min_value=1e-6, max_value=100.0)),
    st.builds(Load, bps=POSITIVE),
    st.builds(Load, fps=POSITIVE),
)


@given(load=LOADS)
def test_loads_are_read_back(load: Load) -> None:
    assert quantities.load(quantities.load_text(load)) == load


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_every_spelling_is_the_number_times_its_unit(kind: Quantity) -> None:
    units = spellings(kind)

    @given(
        number=st.decimals(min_value=0, max_value=10**9, places=3),
        unit=st.sampled_from(sorted(units)),
        space=st.sampled_from(["", " "]),
    )
    def holds(number: Any, unit: str, space: str) -> None:
        if unit or kind.bare:
            assert kind.parse(f"{number:f}{space}{unit}") == number * units[unit]

    holds()


def limit(clause: Any) -> float:
    return parse_clause({"measure": clause[0], "require": clause[1]}).limit


READERS: dict[str, Callable[[Any], Any]] = {
    "duration_ns": quantities.duration_ns,
    "size_bytes": quantities.size_bytes,
    "rate_bps": quantities.rate_bps,
    "load_text": lambda text: quantities.load_text(quantities.load(text)),
    "count": quantities.count,
    "cores": lambda text: list(fields.cores(text)),
    "hosts": fields.written_order,
    "limit": limit,
}
VALUES: dict[str, Any] = read_file(PROJECT / "tests/python/data/values.yaml").data


@pytest.mark.parametrize("name", READERS)
def test_what_is_read_and_what_is_refused(name: str) -> None:
    for text, value in VALUES[name].get("reads", ()):
        assert READERS[name](text) == value, text
    for text, words in VALUES[name].get("refuses", ()):
        with pytest.raises(ValueError, match=re.escape(words)):
            READERS[name](text)


@pytest.mark.parametrize("names", ["n" + "[1]" * 20_000, "n" + "[" * 20_000])
def test_brackets_without_end(names: str) -> None:
    with pytest.raises(ValueError, match=r"^.{1,80} has more than 8 ranges in brackets$"):
        fields.written_order(names)


def test_many_hosts_are_read_at_once() -> None:
    """The time grows linearly with the number of hosts."""
    names = [f"n{number}" for number in range(60_000)]
    assert fields.written_order(",".join(names)) == names


# --- clocks from the configuration to the summary -------------------------------------------------


CHAIN_LAB = LAB + "tests: [{pattern: chain}]\n"


@pytest.mark.rows
def test_the_key_comes_to_the_job(
    tmp_path: Path, text: str, mode: str, error_ns: int, document: dict[str, Any]
) -> None:
    reading = read_text(tmp_path, CHAIN_LAB + text)
    for run in (compile_run(reading), again(compile_run(reading))):
        assert run.clock == ClockChoice(mode, error_ns)
        assert job_document(run, "run")["clock"] == document


def test_a_flow_from_a_node_to_itself_is_not_moved_and_has_no_bound() -> None:
    clocks = ClockTable({"node1:e0": "node1"})
    times: dict[str, Histogram] = {ONE_WAY: Histogram(count=1, sum_ns=50, bound_ns=40)}
    clocks.correct((0, 0, 0), {("node1:e0", "node1:e0"): times})
    assert (times[ONE_WAY].mean_ns, times[ONE_WAY].bound_ns) == (50, 0)
