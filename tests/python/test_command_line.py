# SPDX-License-Identifier: BSD-3-Clause
"""Runs that a command line describes, without a configuration file or beside one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from configs import PROJECT, needs_engine
from conftest import Command
from switchbench.base.model import Run
from switchbench.base.source import read_file
from switchbench.cli.common import load_run
from switchbench.cli.main import build_parser, main

pytestmark = needs_engine

FILE = "switchbench: 1\nsite: {lab: two-modules}\ntransport: dpdk\n"


def loaded(*words: str) -> Run:
    """Return the run of `plan` with these words."""
    return load_run(build_parser(["plan"]).parse_args(["plan", *words]))


@pytest.mark.rows
def test_some_words_are_a_run(
    words: str, launch: str, ports: int, pattern: str, window_s: float, percent: float,
    tmp_path: Path,
) -> None:  # fmt: skip
    path = tmp_path / "conf.yaml"
    path.write_text(FILE + "window: 3s\nload: 20%\n")
    run = loaded(*words.replace("FILE", str(path)).split())
    assert (run.site.launch, len(run.site.ports)) == (launch, ports)
    found = {(one.pattern["name"], one.window_s, one.load.percent) for one in run.trials}
    assert found == {(pattern, window_s, percent)}
    if launch == "ssh":
        assert {port.engine["iface"] for port in run.site.ports} == {"e3"}
    elif "tcp,dpdk" in words:
        assert [trial.transport for trial in run.trials[:2]] == ["tcp", "dpdk"]


ONE_LINE = ("--iface", "eth0", "--pattern", "pairs", "--transport", "tcp", "--load", "1Gbit")


CASES: dict[str, dict[str, Any]] = read_file(PROJECT / "tests/python/data/command_lines.yaml").data


@pytest.mark.parametrize("name", CASES)
def test_what_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    """An invalid command line gives one sentence, and leaves no file behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    case = CASES[name]
    files = case.get("files", {}) | ({"conf.yaml": case["text"]} if "text" in case else {})
    for file, content in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(content.replace("{folder}", str(tmp_path)))
    before, words = sorted(tmp_path.rglob("*")), shlex.split(case["words"])
    if "hosts" in case:
        found = [process.name for process in loaded(*words[1:]).site.processes]
        assert found == case["hosts"].split()
        return
    assert case["says"].replace("{folder}", str(tmp_path)) in cli.refuses(*words)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("given", ["node[1-7/2]", ",".join(f"n{i}" for i in range(90))])
def test_hosts_that_are_no_file(given: str) -> None:
    hosts = [process.name for process in loaded("--hosts", given, *ONE_LINE).site.processes]
    assert len(hosts) == (4 if "/" in given else 90)


@pytest.mark.rows
def test_init_writes_what_can_be_planned(
    words: str,
    answers: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Command,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = iter(answers.replace("-", "").split(" "))
    monkeypatch.setattr("builtins.input", lambda _: next(given))
    monkeypatch.setattr("sys.stdin.isatty", lambda: answers != "")
    assert main(["init", "new.yaml", *words.split()]) == 0
    assert said in cli.prints("plan", "new.yaml")
    clauses = (tmp_path / "new.yaml").read_text().partition("expect:")[2].splitlines()
    assert len({line.index("#") for line in clauses if "#" in line}) <= 1
    said = cli.refuses("init", "new.yaml", "--lab", "tree")
    assert "new.yaml exists already: name another file" in said
