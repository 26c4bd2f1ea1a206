# SPDX-License-Identifier: BSD-3-Clause
"""`run --fit`: which rate and how many nodes a lab gets, by what the machine carried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from switchbench.base.errors import ConfigurationError
from switchbench.cli import run as fitting
from switchbench.cli.run import FittedLab, choose, fit, offered_by_step
from switchbench.config import Request, read
from switchbench.plan.compile import compile_run

LINE_BPS = 100_000_000


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        ({1.0: 0.99, 0.5: 0.99, 0.25: 1.0, 0.1: 1.0}, FittedLab(100_000_000, 8, True)),
        ({1.0: 0.93, 0.5: 0.98, 0.25: 1.0, 0.1: 1.0}, FittedLab(50_000_000, 8, True)),
        ({1.0: 0.93, 0.5: 0.89, 0.25: 0.97, 0.1: 1.0}, FittedLab(10_000_000, 8, True)),
        ({1.0: 0.93, 0.5: 0.89, 0.25: 0.97, 0.1: 0.9}, FittedLab(10_000_000, 4, False)),
        ({}, FittedLab(10_000_000, 4, False)),
    ],
)
def test_the_highest_rate_that_leaves_the_margin(
    offered: dict[float, float], expected: FittedLab
) -> None:
    assert choose(LINE_BPS, 8, offered) == expected


def entry(transport: str, intended: float, offered: float | None) -> dict[str, Any]:
    return {"transport": transport, "intended_load": intended, "offered_load": offered}


def test_the_better_repeat_counts_and_the_slower_transport() -> None:
    trials = [
        entry("dpdk", 80.0, 40.0),
        entry("dpdk", 80.0, 80.0),
        entry("tcp", 80.0, 72.0),
        entry("tcp", 80.0, 60.0),
        entry("dpdk", 8.0, None),
        entry("tcp", 8.0, 8.0),
    ]
    assert offered_by_step(trials) == {1.0: pytest.approx(0.9), 0.1: 0.0}


def a_run(tmp_path: Path, site: str) -> Any:
    conf = tmp_path / "conf.yaml"
    conf.write_text(
        f"switchbench: 1\nsite: {site}\nload: 1Mbit\n"
        "transports: [tcp]\ntests: [{pattern: chain, ranks: [2, 8]}]\n"
    )
    return compile_run(read(Request(conf)))


def test_a_smaller_lab_by_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path, "{lab: one-switch}")
    slow = [entry("dpdk", 80.0, 70.0), entry("dpdk", 8.0, 7.0)]
    monkeypatch.setattr(fitting, "_try_loads", lambda run, line_bps: slow)
    tests = [{"pattern": "chain", "ranks": [2, 8]}, {"pattern": "pairs"}, {"ranks": 8}]
    assert fit(run, tests, quiet=False) == [
        "site.rate=10000000bit",
        "site.nodes=4",
        "tests.0.ranks=[2]",
        "tests.2.ranks=4",
    ]
    assert "does not even carry 8 ports at 20 Mbit/s" in capsys.readouterr().err


def test_a_machine_that_carries_all_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(tmp_path, "{lab: one-switch}")
    monkeypatch.setattr(fitting, "_try_loads", lambda run, line_bps: [entry("dpdk", 80.0, 79.9)])
    assert fit(run, [], quiet=True) == []


@pytest.mark.parametrize(
    "site",
    ["{lab: one-switch, rate: unlimited}", "{lab: one-switch, overrides: {node5: {rate: 50M}}}"],
)
def test_other_sites_are_invalid(tmp_path: Path, site: str) -> None:
    with pytest.raises(ConfigurationError, match="--fit is for a lab"):
        fit(a_run(tmp_path, site), [], quiet=True)


def test_what_measures_is_a_run_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(tmp_path, "{lab: one-switch, nodes: 8}")
    asked: list[str] = []

    def run_it(command: list[str], **_options: Any) -> Any:
        asked.extend(command)
        out = Path(command[command.index("--out") + 1])
        out.mkdir()
        (out / "summary.json").write_text("{}")

    monkeypatch.setattr(fitting.subprocess, "run", run_it)
    monkeypatch.setattr(fitting, "load_summary", lambda path: {"trials": [entry("tcp", 80, 80)]})
    assert fit(run, [], quiet=True) == []
    settings = dict(text.split("=", 1) for text in asked if "=" in text)
    assert settings["site.rate"] == "250000000bit"
    assert json.loads(settings["loads"]) == ["80%", "40%", "20%", "8%"]
    assert json.loads(settings["site"])["nodes"] == 8
