# SPDX-License-Identifier: BSD-3-Clause
"""`run --fit`: which rate a lab gets, by what the machine carried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from switchbench.base.errors import ConfigurationError
from switchbench.cli import run as fitting
from switchbench.cli.run import fit
from switchbench.config import read
from switchbench.plan.compile import compile_run


def entry(transport: str, intended: float, offered: float | None) -> dict[str, Any]:
    return {"transport": transport, "intended_load": intended, "offered_load": offered}


def a_run(tmp_path: Path, site: str) -> Any:
    conf = tmp_path / "conf.yaml"
    conf.write_text(
        f"switchbench: 1\nsite: {site}\nload: 1Mbit\n"
        "transports: [tcp]\ntests: [{pattern: chain}]\n"
    )
    return compile_run(read(conf))


def tried(step: float, **parts: float | None) -> list[dict[str, Any]]:
    """Return what was measured at a step: the parts of the intended load, by transport."""
    intended = 80.0 * step
    return [
        entry(name[:3], intended, None if part is None else part * intended)
        for name, part in parts.items()
    ]


@pytest.mark.rows
def test_the_highest_rate_that_leaves_the_margin(
    steps: list[dict[str, Any]], rate: int | None, carried: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    run, trials = a_run(tmp_path, "{lab: one-switch}"), [e for one in steps for e in tried(**one)]
    monkeypatch.setattr(fitting, "_try_loads", lambda run, line_bps: trials)
    assert fit(run, quiet=False) == [f"site.rate={rate}bit"] * (rate is not None)
    advice = "does not even carry 8 ports at 20 Mbit/s both ways; take fewer nodes: --set site.nod"
    assert (advice in capsys.readouterr().err) is not carried


@pytest.mark.parametrize(
    "site",
    ["{lab: one-switch, rate: unlimited}", "{lab: one-switch, overrides: {node5: {rate: 50M}}}"],
)
def test_other_sites_are_invalid(tmp_path: Path, site: str) -> None:
    with pytest.raises(ConfigurationError, match="--fit is for a lab"):
        fit(a_run(tmp_path, site), quiet=True)


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
    assert fit(run, quiet=True) == []
    settings = dict(text.split("=", 1) for text in asked if "=" in text)
    assert settings["site.rate"] == "250000000bit"
    assert json.loads(settings["loads"]) == ["80%", "40%", "20%", "8%"]
    assert json.loads(settings["site"])["nodes"] == 8
