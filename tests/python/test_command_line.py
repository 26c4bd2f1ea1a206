# SPDX-License-Identifier: BSD-3-Clause
"""Runs that a command line describes, without a configuration file or beside one."""

from __future__ import annotations

from pathlib import Path

import pytest

from configs import needs_engine
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Run
from switchbench.cli.common import load_run
from switchbench.cli.main import build_parser, main
from switchbench.plan.documents import trial_document

pytestmark = needs_engine

FILE = "switchbench: 1\nsite: {lab: two-modules}\ntransport: dpdk\n"


def loaded(*words: str) -> Run:
    """The run of `plan` with these words."""
    return load_run(build_parser(["plan"]).parse_args(["plan", *words]))


def test_a_lab_and_a_pattern_are_enough() -> None:
    run = loaded("--lab", "one-switch", "--pattern", "aapc", "--transport", "tcp,dpdk")
    assert [(trial.pattern["name"], trial.transport) for trial in run.trials[:2]] == [
        ("aapc", "tcp"),
        ("aapc", "dpdk"),
    ]
    assert run.site.launch == "lab"
    assert len(run.site.ports) == 8


def test_two_hosts_and_their_interface_are_enough() -> None:
    words = "--hosts a,b --iface enp3s0 --pattern pairs --transport tcp --load 95% --duration 10s"
    run = loaded(*words.split())
    assert run.site.launch == "ssh"
    assert [port.name for port in run.site.ports] == ["a:e0", "b:e0"]
    assert {port.engine["iface"] for port in run.site.ports} == {"enp3s0"}
    assert {trial_document(trial)["window_ns"] for trial in run.trials} == {10_000_000_000}
    assert {trial.load.percent for trial in run.trials} == {95.0}


INVENTORY = """\
node1 ansible_host=10.0.0.1 ansible_ssh_common_args='-o Port=2 -v'
[rack:children]
row1
[row1]
node[08:10]
node1
[row1:vars]
ansible_user = root
"""
GROUPS = """\
all:
  hosts:
    node1: {ansible_host: 10.0.0.1}
  children:
    row1: {hosts: {"node[2:3]": , node1: {ansible_host: 10.0.0.1}}}
    empty:
"""
ONE_LINE = ("--iface", "eth0", "--pattern", "pairs", "--transport", "tcp", "--load", "1Gbit")


@pytest.mark.parametrize(
    ("name", "text", "hosts"),
    [
        ("one a line", "# the rack\n\nnode1\nnode2 # spare\n", "node1 node2"),
        ("Open MPI", "node2 slots=4 max_slots=8\nnode1 slots=4\n", "node2 node1"),
        ("MPICH", "node1:4\nnode2:4 binding=user:0\n", "node1 node2"),
        ("PBS", "node1\nnode1\nnode2\nnode2\n", "node1 node2"),
        ("Slurm", "node[08-10],gpu1\n", "node08 node09 node10 gpu1"),
        ("Ansible", INVENTORY, "10.0.0.1 node08 node09 node10"),
        ("inventory.yml", GROUPS, "10.0.0.1 node2 node3"),
    ],
)
def test_hosts_of_a_file(name: str, text: str, hosts: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    run = loaded("--hosts", str(path), *ONE_LINE)
    assert [process.name for process in run.site.processes] == hosts.split()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none", "# none\n", "none: the file names no host"),
        ("rankfile", "node1\nrank 0=node1 slot=0\n", 'line 2: "rank 0=node1 slot=0" is in no form'),
        ("hosts", "10.0.0.1 node1\n", 'line 1: "10.0.0.1 node1" is in no form known here: HOST'),
        ("letters", "node[a:f]\n", r'line 1: "node\[a:f\]" is in no form'),
        ("quoted", "node1 a='b\n", "line 1: .* is in no form"),
        ("list.yaml", "- node1\n", "list.yaml: it is no Ansible inventory"),
        ("empty.yml", "", "empty.yml: the file names no host"),
        ("deep.yml", "[" * 3000, "deep.yml: its groups are too deep, or in themselves"),
        ("ring.yml", "all: &all {children: {all: *all}}", "ring.yml: its groups are too deep"),
        ("day.yml", "all: 2026-13-01\n", "day.yml: it is no Ansible inventory"),
    ],
)
def test_a_file_of_another_form(name: str, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        loaded("--hosts", str(path), *ONE_LINE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("racks/row1", "--hosts racks/row1: no such file"),
        ("racks.txt", "--hosts racks.txt: no such file"),
        ("all.yml", "--hosts all.yml: no such file"),
        ("folder", "--hosts folder: is a directory: name a file of hosts"),
    ],
)
def test_hosts_of_no_file(
    given: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigurationError, match=said):
        loaded("--hosts", given, *ONE_LINE)


@pytest.mark.parametrize("given", ["node[1-7/2]", ",".join(f"n{i}" for i in range(90))])
def test_hosts_that_are_no_file(given: str) -> None:
    hosts = [process.name for process in loaded("--hosts", given, *ONE_LINE).site.processes]
    assert len(hosts) == (4 if "/" in given else 90)


def test_options_win_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(FILE + "window: 3s\nload: 20%\n")
    run = loaded(str(path), "--lab", "one-switch", "--pattern", "pairs", "--duration", "1s")
    assert {trial_document(trial)["window_ns"] for trial in run.trials} == {1_000_000_000}
    assert {trial.load.percent for trial in run.trials} == {20.0}
    assert len(run.site.ports) == 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "no configuration: name a file, or give --lab, --hosts with --iface, or --site"),
        ("--hosts a,b --pattern pairs", "--iface is missing: hosts and their interface go"),
        ("--iface eth0", "--hosts is missing"),
        ("--lab one-switch --hosts a,b --iface eth0", "--lab says already where it runs"),
        ("--lab one-switch --duration 5x", "--duration 5x: window: "),
        (
            "--lab one-switch --pattern all-to-all",
            "use full_mesh (all at once, RFC 2889), aapc (in phases), or alltoall for MPI's",
        ),
        ("--lab one-switch --pattern many-to-one", "use incast"),
        ("--lab one-switch --pattern one-to-many", "use fanout"),
        ("--lab one-switch --pattern full-mesh", 'did you mean "full_mesh"?'),
        ("--lab one-switch --transport rdma", "use verbs"),
        ("--lab one-switch --set rate=1G", "use load"),
        ("--lab one-switch --set duration=1s", "use window"),
    ],
)
def test_what_is_wrong_is_said(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *words.split()]) == 2
    assert said in capsys.readouterr().err


def test_a_pattern_beside_tests_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(FILE + "tests: [{pattern: pairs}]\n")
    assert main(["plan", str(path), "--pattern", "aapc"]) == 2
    assert f"{path}:4: tests: says what is sent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("min: 94, require: '== 0'", "expect.0.min: stands beside require: give one of them"),
        ("over: run", "expect.0: has no limit: give min, max, equals or require"),
        ("min: true", "found true, but a number is needed, such as 94 or 94%"),
        ("min: much", "is not a comparison"),
    ],
)
def test_limits_that_are_none(
    limits: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conf.yaml"
    clause = f"expect: [{{id: a, measure: percent_of_line, {limits}}}]\n"
    path.write_text(FILE + "tests: [{pattern: pairs}]\n" + clause)
    assert main(["plan", str(path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "answers", "said"),
    [
        ("--lab one-switch --transport dpdk,udp --accept 90%", "", "8 ports"),
        ("--hosts node[1-4] --iface enp3s0", "", "4 ports"),
        ("", "a,b enp3s0 tcp 94", "2 ports"),
        ("", " - - -", "8 ports"),
    ],
)
def test_init_writes_what_can_be_planned(
    words: str,
    answers: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given = iter(answers.replace("-", "").split(" "))
    monkeypatch.setattr("builtins.input", lambda _: next(given))
    monkeypatch.setattr("sys.stdin.isatty", lambda: answers != "")
    assert main(["init", "new.yaml", *words.split()]) == 0
    assert main(["plan", "new.yaml"]) == 0
    assert said in capsys.readouterr().out
    clauses = (tmp_path / "new.yaml").read_text().partition("expect:")[2].splitlines()
    assert len({line.index("#") for line in clauses if "#" in line}) <= 1
    assert main(["init", "new.yaml", "--lab", "tree"]) == 2
    assert "new.yaml is there already: name another file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "init: give --lab NAME, or --hosts SET with --iface NAME"),
        ("--hosts a,b", "--iface is missing"),
        ("--lab nolab", "new.yaml:5: site.lab: there is no topology 'nolab'"),
        ("--lab one-switch --transport ip", 'transports.0: found "ip"'),
        ("--lab one-switch --accept lots", "--accept lots: give a percentage"),
        ("--lab one-switch --accept 0", "--accept 0: give a percentage above 0 and up to 100"),
        ("--lab one-switch --accept 101%", "--accept 101%: give a percentage"),
        ("--lab one-switch --accept nan", "--accept nan: give a percentage"),
        ("--lab one-switch --hosts a,b", "--lab says already where it runs"),
        ("--lab one-switch --iface eth0", "--lab says already where it runs"),
        ("--hosts racks/row1 --iface eth0", "--hosts racks/row1: no such file"),
    ],
)
def test_init_leaves_nothing_that_cannot_run(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    assert main(["init", "new.yaml", *words.split()]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
