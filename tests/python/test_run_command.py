# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench run` and `table` from end to end with nodes that measure nothing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import FAKE, FakeLauncher
from conftest import Command, Said
from recorded import rows_in, validate_summary
from switchbench.analysis.data import Measured
from switchbench.analysis.summary import KILLED, NOT_ENDED
from switchbench.base.errors import ConfigurationError, RunError
from switchbench.base.model import Run
from switchbench.base.programs import Deferred, configurations, find_engine
from switchbench.cli import run as command
from switchbench.cli.main import build_parser
from switchbench.config.clauses import clauses_sha256
from switchbench.labs import LabError, switches
from switchbench.records import store
from switchbench.records.directory import LineFile, RunDirectory, load_summary, read_plan
from switchbench.render.report import build
from switchbench.run.controller import Controller, Outcome
from switchbench.run.launch import launcher_for
from synthetic import make_run, make_site, make_trial


class Stage:
    """The command `run` with replaced configuration, lab and engine."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
        self.out = path / "out"
        self.path, self.monkeypatch, self.cli = path, monkeypatch, cli
        self.launcher: Any = FakeLauncher()
        self.run = one_run()
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
        monkeypatch.setattr(command.common, "load_runnable", lambda _args: self.run)
        monkeypatch.setattr(command, "launcher_for", lambda _site: self.launcher)
        monkeypatch.setattr(command, "find_engine", lambda: self.engine("good"))

    def engine(self, behaviour: str) -> Path:
        """Return the path of a fake engine with a behaviour."""
        script = self.path / f"{behaviour}-node"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$2" {behaviour}\n')
        script.chmod(0o755)
        return script

    def main(self, *words: str) -> Said:
        return self.cli("run", "mine.yaml", "--out", self.out, *(words or ["--quiet"]))

    def summary(self) -> dict[str, Any]:
        result = load_summary(self.out)
        validate_summary(result)
        return result

    def whole_record(self) -> None:
        """Check that the manifest seals summary and report."""
        sealed = json.loads((self.out / "manifest.json").read_text())["files"]
        assert {"summary.json", "report.html"} <= set(sealed)


def one_run(**more: Any) -> Run:
    site = make_site()
    return make_run(site, make_trial(site), **more)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command) -> Stage:
    return Stage(tmp_path, monkeypatch, cli)


def test_a_run_leaves_its_directory(stage: Stage) -> None:
    out, printed = stage.out, stage.main("--no-live")
    assert printed.status == 0
    names = {path.name for path in out.iterdir()}
    written = {"configuration.yaml", "nodes.log", "summary.json", "report.html"}
    tables = {"events.parquet", "flows.parquet", "phases.parquet"}
    assert names == {*written, *tables, "plan.json", "manifest.json"}
    assert read_plan(out) == stage.run
    assert "plan.json" in json.loads((out / "manifest.json").read_text())["files"]
    assert yaml.safe_load((out / "configuration.yaml").read_text()) == {"switchbench": 1}
    result = stage.summary()
    assert result["status"] == "complete"
    assert result["run"]["elapsed_s"] > 0
    assert result["run"]["versions"]["engine"] == "0.1.0"
    assert [node["node"] for node in result["run"]["nodes"]] == ["node1", "node2"]
    assert result["run"]["command"] == ["switchbench", "run", str(out / "configuration.yaml")]
    assert f"results    {out}" in printed.out
    assert "1 trial on 2 ports, about 2 s" in printed.err
    assert "first barrier" in printed.err


def test_json_is_the_summary_alone(stage: Stage) -> None:
    """`--quiet` shows no progress."""
    status, out, err = stage.main("--quiet", "--json")
    assert (status, json.loads(out), err) == (0, stage.summary(), "")


@pytest.mark.rows
def test_exit_status_of_clauses(stage: Stage, clause: dict[str, Any], status: int) -> None:
    stage.run = one_run(expectations=(clause,))
    assert stage.main().status == stage.summary()["exit_status"] == status
    out = stage.out
    sha256 = clauses_sha256([clause])
    assert hashlib.sha256((out / "clauses.json").read_bytes()).hexdigest() == sha256
    first, *_ = rows_in(out, "events")
    assert json.loads(first["details"])["sha256"] == sha256  # before any node said anything


def test_clauses_that_change_while_traffic_runs_are_found(stage: Stage) -> None:
    def conduct(*_: Any) -> Outcome:
        clauses = stage.out / "clauses.json"
        clauses.write_bytes(clauses.read_bytes().replace(b"== 1", b"== 0"))
        return Outcome()

    stage.run = one_run(expectations=({"measure": "lost_frames", "require": "== 1"},))
    stage.monkeypatch.setattr(Controller, "conduct", conduct)
    said = stage.main()
    assert said.status == 3
    assert "clauses.json was changed after the clauses were fixed before traffic" in said.err
    assert "clauses.json was changed after the clauses were fixed" in stage.summary()["errors"][0]


@pytest.mark.rows
def test_a_node_that_spoils_a_run_spoils_nothing_else(
    stage: Stage, behaviour: str, status: int, ended: str, words: str
) -> None:
    engine = stage.engine(behaviour)
    stage.monkeypatch.setattr(command, "find_engine", lambda: engine)
    printed, result = stage.main(), stage.summary()
    assert (result["status"], result["exit_status"], printed.status) == (ended, status, status)
    assert words in result["errors"][0]
    assert printed.err.count(words) == 1
    if ended == "failed":
        assert printed.out == f"nothing was measured; log and records: {stage.out}\n"
    else:
        stage.whole_record()


def test_a_lab_in_use_leaves_no_directory(stage: Stage) -> None:
    class Busy(FakeLauncher):
        def __enter__(self) -> Any:
            raise ConfigurationError("lab x is in use by process 7")

    stage.launcher = Busy()
    assert "in use" in stage.main().err
    assert not stage.out.exists()


def test_a_run_that_can_not_go_on_yet_can_be_continued_later(stage: Stage) -> None:
    """A host is still out of reach, or the lab is in use: nothing of the run is lost."""

    class Absent(FakeLauncher):
        def gather(self, _processes: Any) -> dict[str, str]:
            return {"node2": "it can't be reached"}

    class Busy(FakeLauncher):
        def __enter__(self) -> Any:
            raise ConfigurationError("lab x is in use by process 7")

    site = make_site()
    stage.run = make_run(site, *(make_trial(site, number, flows=2) for number in range(3)))
    stage.monkeypatch.setattr(command, "find_engine", lambda: stage.engine("dies-in-1"))
    assert stage.main().status == 3
    stage.monkeypatch.setattr(command, "find_engine", lambda: stage.engine("good"))
    for launcher, words in ((Absent(), "can't be reached"), (Busy(), "in use")):
        stage.launcher = launcher
        assert words in stage.cli("run", "--continue", stage.out, "--quiet").err
    stage.launcher = FakeLauncher()
    assert stage.cli("run", "--continue", stage.out, "--quiet").status == 0
    assert stage.summary()["status"] == "complete"


def test_table_prints_again_and_a_directory_with_results_is_refused(stage: Stage) -> None:
    first = stage.main().out
    assert stage.cli.prints("table", stage.out) == first
    before = (stage.out / "flows.parquet").read_bytes()
    assert "is not empty" in stage.main().err
    assert (stage.out / "flows.parquet").read_bytes() == before


def test_table_again_makes_the_summary_of_a_killed_run(stage: Stage) -> None:
    stage.main()
    out = stage.out
    killed = stage.summary() | {"errors": [NOT_ENDED], "trials": [], "status": "failed"}
    (out / "summary.json").write_text(json.dumps(killed))
    (out / "flows.9.arrows").write_bytes(b"\xff\xff")  # the machine died in the middle of a piece
    shown = stage.cli.prints("table", out, status=3)
    assert "pairs" in shown  # what was measured
    assert NOT_ENDED in " ".join(shown.split())
    errors = Measured.load(out).summary["errors"]
    assert NOT_ENDED in errors
    assert KILLED not in errors
    assert stage.summary()["trials"] == []  # as it was: it may not have ended
    with LineFile(out / "nodes.log"):  # as a controller holds it
        for words in (("table", out, "--again"), ("locate", out)):
            assert "its run still goes on, or another command writes" in stage.cli(*words).err
        with pytest.raises(ConfigurationError, match="its run still goes on"):
            LineFile(out / "nodes.log")
    assert (out / "flows.9.arrows").exists()
    shown = stage.cli.prints("table", out, "--again", status=3)
    result = stage.summary()
    assert result["status"] == "partial"
    assert len(result["trials"]) == 1
    assert result["errors"] == [KILLED, *store.cut_streams(out)]
    assert [path.name for path in out.glob("*.cut")] == ["flows.9.arrows.cut"]
    assert KILLED in shown


def test_one_command_at_a_time_writes_tables(stage: Stage) -> None:
    place, said = store._ParquetWriter.place, []

    def meanwhile(writer: Any) -> None:
        stage.monkeypatch.setattr(store._ParquetWriter, "place", place)
        said.append(stage.cli("table", stage.out, "--again").err)
        place(writer)

    stage.monkeypatch.setattr(store._ParquetWriter, "place", meanwhile)
    assert stage.main().status == 0
    assert "another command writes its tables: wait until that has ended" in said[0]


def test_a_launcher_that_can_not_start_a_node(stage: Stage) -> None:
    class Broken(FakeLauncher):
        def start(self, *_: Any) -> Any:
            raise FileNotFoundError(2, "No such file or directory")

    stage.launcher = Broken()
    assert stage.main().status == 3
    assert "node1 can't be started" in stage.summary()["errors"][0]


def test_a_site_that_run_can_not_start() -> None:
    with pytest.raises(ConfigurationError, match="launch: hand") as caught:
        launcher_for(make_site(launch="hand"))
    assert "plan CONF --job FILE" in str(caught.value)


def test_programs_are_named_or_beside_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs are found in the engine's build, or in the folder of a collected engine."""
    monkeypatch.delenv("SWITCHBENCH_SWITCH", raising=False)
    for engine, switch in (("engine", "lab/switch"), ("bin", "bin")):
        for folder, name in ((engine, "node"), (switch, "switch")):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / f"switchbench-{name}").touch(0o755)
        monkeypatch.setenv("SWITCHBENCH_NODE", str(tmp_path / engine / "switchbench-node"))
        assert find_engine() == tmp_path / engine / "switchbench-node"
        assert switches.find_binary() == tmp_path / switch / "switchbench-switch"
    monkeypatch.setenv("SWITCHBENCH_SWITCH", str(tmp_path / "nothing"))
    with pytest.raises(LabError, match=r"SWITCHBENCH_SWITCH=.* can't be executed"):
        switches.find_binary()


def test_what_can_not_be_watched() -> None:
    for site, trials, says in (
        (make_site(), 2, "exactly one trial can be repeated, not 2: choose by --pattern"),
        (make_site(launch="ssh"), 1, "node1:e0 is not shared: a watch needs a simulated network"),
    ):
        run = make_run(site, *(make_trial(site, number) for number in range(trials)))
        with pytest.raises(ConfigurationError, match=says):
            command._watched(run)


FULL = "No space left on device"
NOBODY = KeyError("what nobody thought of")


@pytest.mark.parametrize(
    ("owner", "name", "error", "status", "words"),
    [
        (build, "write", NOBODY, 0, "no report.html was made"),
        (command, "SummaryPrinter", NOBODY, 0, "the table can't be shown"),
        # Records fit, the summary does not: the first summary stays.
        (RunDirectory, "write_summary", RunError(f"can't write summary.json: {FULL}"), 3, FULL),
        (command, "gather", ValueError("nonsense"), 3, "nonsense"),
        (command, "gather", OSError(28, FULL), 3, FULL),
        (command, "gather", MemoryError(), 3, "MemoryError"),
    ],
)
def test_what_fails_at_the_end_spoils_nothing_else(
    stage: Stage, owner: Any, name: str, error: Exception, status: int, words: str
) -> None:
    real = getattr(owner, name)

    def fail(*args: Any) -> None:
        if name != "write_summary" or (stage.out / "summary.json").exists():
            raise error
        real(*args)

    stage.monkeypatch.setattr(owner, name, fail)
    said = stage.main()
    assert (said.status, words in said.err) == (status, True)
    why = NOT_ENDED if name == "write_summary" else str(error) or "MemoryError"
    assert stage.summary()["errors"] == ([why] if status else [])
    if name not in ("write", "write_summary"):
        stage.whole_record()


def test_a_full_disk_where_phases_are_put_in_place(stage: Stage) -> None:
    """The streams stay, and the summary is made of them when there is room."""
    place = store._ParquetWriter.place

    def full(writer: Any) -> None:
        if writer._path == stage.out / "flows.parquet":
            raise OSError(28, "No space left on device")
        place(writer)

    site = make_site()
    trials = [make_trial(site, number) for number in (0, 1)]
    stage.run = make_run(site, *trials, remeasure=1)
    busy = stage.engine("busy")
    stage.monkeypatch.setattr(command, "find_engine", lambda: busy)
    stage.monkeypatch.setattr(store._ParquetWriter, "place", full)
    assert stage.main().status == 3
    result = stage.summary()
    assert "No space left on device: the old tables were kept unchanged" in result["errors"][0]
    assert not [*stage.out.glob("*.parquet"), *stage.out.glob(".*.new")]
    stage.monkeypatch.undo()
    stage.cli.prints("table", stage.out, "--again", status=3)
    assert [entry["trial"] for entry in stage.summary()["trials"]] == [0, 1]
    stage.whole_record()


def test_a_configuration_that_came_with_switchbench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name without a file is that of an example; a file of that name comes first."""
    monkeypatch.chdir(tmp_path)
    parser = build_parser()
    for written in ("conf/two-modules.yaml", "two-modules", "two-modules.yaml"):
        found = parser.parse_args(["plan", written]).conf
        assert found.is_file()
        assert found == configurations() / "two-modules.yaml"
    (tmp_path / "two-modules.yaml").touch()
    assert parser.parse_args(["plan", "two-modules.yaml"]).conf == Path("two-modules.yaml")
    assert parser.parse_args(["plan", "no-such"]).conf == Path("no-such")


# --- signals in other hands: one is noted, a second ends what is done, and all are given back -----

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_signal_is_noted(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in NUMBERS]
    with Deferred() as asked:
        assert asked.name is None
        os.kill(os.getpid(), number)
        assert asked.name == number.name
    assert [signal.getsignal(one) for one in NUMBERS] == before


def test_a_second_one_ends_what_is_done() -> None:
    with Deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(RunError, match=r"interrupted by signal SIGTERM, received twice"):
            os.kill(os.getpid(), signal.SIGTERM)
