# SPDX-License-Identifier: BSD-3-Clause
"""plan.json: what was planned is read again as it was, and results need neither the engine nor the
host that ran."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import golden
from recorded import replace_rows, rows_in
from switchbench.analysis import sealing
from switchbench.base.errors import RunError
from switchbench.base.model import Run
from switchbench.cli.main import main
from switchbench.plan import compile
from switchbench.records.directory import (
    CONFIGURATION,
    PLAN,
    SUMMARY,
    load_summary,
    read_plan,
    write_plan,
)
from synthetic import make_run, make_site, make_trial

# --- there and back ------------------------------------------------------------------------------


def round_trip(run: Run, path: Path) -> Run:
    write_plan(path, run)
    return read_plan(path)


def test_a_port_and_a_list_of_ranks_stand_there_once(tmp_path: Path) -> None:
    """Of 1,024 ranks and 36 trials half a megabyte."""
    site = make_site(200)
    sizes = []
    for count in (1, 30):
        trials = [make_trial(site, number) for number in range(count)]
        again = round_trip(make_run(site, *trials), tmp_path)
        assert again.trials[-1].parts[0] is again.trials[0].parts[0]
        assert again.trials[0].parts[0].ranks[7] is again.site.ports[7]
        sizes.append((tmp_path / PLAN).stat().st_size)
    assert sizes[1] - sizes[0] < 29 * 1000


def test_what_is_no_json_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no JSON can be made of that"):
        write_plan(tmp_path, make_run(make_site(), about={"x": "\ud800"}))
    assert not (tmp_path / PLAN).exists()


# --- without the engine and the host -------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was really measured, with clauses, and its record."""
    directory = golden.unpack("clauses", tmp_path_factory.mktemp("plan"))
    sealing.write_record(directory, load_summary(directory))
    return directory


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without the engine, with one core and no memory to spare."""
    monkeypatch.setenv("SWITCHBENCH_NODE", "/nowhere/switchbench-node")
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0})
    monkeypatch.setattr(compile, "spare_bytes", lambda: 1)


COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "verify": lambda run, _: ["verify", str(run)],
    "table": lambda run, _: ["table", str(run), "--again"],
    "report": lambda run, out: ["report", str(run), "--out", str(out / "r.html")],
    "predict": lambda run, _: ["predict", str(run)],
    "compare": lambda run, _: ["compare", f"a={run}", f"b={run}"],
}


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("summary", ["whole", "lost"])
def test_each_command_reads_results_anywhere(
    name: str, summary: str, measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copied(measured, tmp_path)
    if summary == "lost" and name in ("report", "compare"):
        (run / SUMMARY).unlink()
        assert main(COMMANDS[name](run, tmp_path)) == 2  # all is shown, made of the records
        said = capsys.readouterr()
        assert "nor can it be made again" not in said.err
        assert "switchbench-node" not in said.out + said.err
        return
    assert main(COMMANDS[name](run, tmp_path)) == 0
    said = capsys.readouterr()
    assert "switchbench-node" not in said.out + said.err
    if name == "verify":
        assert "ok verdict    as the tables have it" in said.out
    if name == "table":
        assert load_summary(run)["trials"] == load_summary(measured)["trials"]
    if name == "report":
        page = (tmp_path / "r.html").read_text()
        assert "predicted-dpdk" in page
        assert "What models predict is not drawn" not in page
    if name == "predict":
        assert "max-min" in said.out


def copied(measured: Path, tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    for file in measured.iterdir():
        (run / file.name).write_bytes(file.read_bytes())
    return run


def test_flows_of_the_records_are_those_of_the_plan(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """With a record more or less the engine is asked, and says the same."""
    run = copied(measured, tmp_path)
    words = ["predict", str(run), "--json"]
    found = []
    for wanted in (lambda _: True, lambda row: row["src"] != "node1:e0"):
        replace_rows(run, "flows", [row for row in rows_in(run, "flows") if wanted(row)])
        assert main(words) == 0
        found.append([trial["models"] for trial in json.loads(capfd.readouterr().out)["trials"]])
    for of_records, of_engine in zip(*found, strict=True):
        assert of_records == {
            model: pytest.approx(rates, rel=1e-9) for model, rates in of_engine.items()
        }
    monkeypatch.setenv("SWITCHBENCH_NODE", "/nowhere/switchbench-node")
    assert main(words) == 2
    (sentence,) = capfd.readouterr().err.splitlines()
    assert "only the engine knows the others: SWITCHBENCH_NODE=/nowhere" in sentence


def test_a_configuration_of_another_run_is_found(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copied(measured, tmp_path)
    other = yaml.safe_load((run / CONFIGURATION).read_text()) | {"seed": 2}
    (run / CONFIGURATION).write_text(yaml.safe_dump(other))
    sealing.seal(run)
    assert main(["verify", str(run)]) == 2
    assert "NO plan       plan.json was not made of configuration.yaml" in capsys.readouterr().out


# --- damaged -------------------------------------------------------------------------------------

DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda file: file.unlink(), "is missing: it has the plan that was measured"),
    "cut": (lambda file: file.write_bytes(file.read_bytes()[:2000]), "is damaged: EOF while"),
    "binary": (lambda file: file.write_bytes(b"\xff\x00\x1b]0;x"), "is damaged: "),
    "a list": (lambda file: file.write_text("[1]"), "does not begin as switchbench-plan/3 does"),
    "newer": (
        lambda file: file.write_text('{"schema":"switchbench-plan/4"}'),
        "is of a newer form (switchbench-plan/4",
    ),
    "without ports": (
        lambda file: file.write_text('{"schema":"switchbench-plan/3"}'), "is damaged: KeyError",
    ),
    "another form": (
        lambda file: file.write_text(file.read_text().replace('"seed":', '"sead":')),
        "it has no seed; bring it back",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "damage"),
    [*(("verify", damage) for damage in DAMAGE), *((name, "cut") for name in COMMANDS)],
)
def test_a_damaged_plan_is_one_sentence(
    name: str, damage: str, measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By each command that reads it; `compare` does where there is no summary."""
    run = copied(measured, tmp_path)
    act, words = DAMAGE[damage]
    act(run / PLAN)
    sealing.seal(run)
    if name == "compare":
        (run / SUMMARY).unlink()
    assert main(COMMANDS[name](run, tmp_path)) == 2
    said = capsys.readouterr().err
    (sentence,) = said.splitlines()
    assert sentence.isprintable()
    assert f"{run / PLAN} " in sentence
    assert words in sentence
