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


def test_hosts_of_a_file(tmp_path: Path) -> None:
    """It was taken for a host of that name."""
    path = tmp_path / "hosts.txt"
    path.write_text("# the rack\nnode1  slots=4\n\nnode2 # spare\n")
    words = ("--iface", "eth0", "--pattern", "pairs", "--transport", "tcp", "--load", "1Gbit")
    run = loaded("--hosts", str(path), *words)
    assert [process.name for process in run.site.processes] == ["node1", "node2"]
    path.write_text("# none\n")
    with pytest.raises(ConfigurationError, match="the file names no host"):
        loaded("--hosts", str(path), *words)


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
    ("limit", "require"),
    [("min: 94", ">= 94"), ("max: 5 ms", "<= 5 ms"), ("equals: 0", "== 0"), ("min: 94%", ">= 94%")],
)
def test_a_limit_in_words_is_a_comparison(limit: str, require: str, tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    measure = "round_trip_p99_us" if "ms" in limit else "percent_of_line"
    clause = f"expect: [{{id: a, measure: {measure}, {limit}}}]\n"
    path.write_text(FILE + "tests: [{pattern: pairs}]\n" + clause)
    (found,) = loaded(str(path)).expectations
    assert found["require"] == require
    assert not {"min", "max", "equals"} & set(found)


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
