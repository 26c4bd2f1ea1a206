# SPDX-License-Identifier: BSD-3-Clause
"""scripts/test itself: no failure is lost, nothing after it is left out, leftovers are seen."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def program(name: str) -> Any:
    """Return a program of tests/, which are not part of a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stages() -> Any:
    return program("stages")


def outcome(stages: Any, state: str, text: str = "") -> Any:
    return lambda: stages.Outcome(state, text)


def test_all_stages_run_and_one_failure_fails_all(
    stages: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stage that can't run for want of another fails; a calm one runs beside others."""

    def broken() -> Any:
        raise ZeroDivisionError("in a stage")

    begun = threading.Event()

    def calm() -> Any:
        begun.set()
        return stages.Outcome("failed", "what it found")

    def waiting() -> Any:
        return stages.Outcome("passed" if begun.wait(10) else "failed")

    report = stages.Report([])
    report.together([stages.Stage("first", outcome(stages, "failed", "why it failed"))])
    beside = [stages.Stage("second", outcome(stages, "passed", "its totals"))]
    beside += [stages.Stage("apart", outcome(stages, "passed", "not run"), "first")]
    report.together(beside, quiet=False)
    fourth = stages.Stage("fourth", outcome(stages, "skipped", "no device"))
    needs = stages.Stage("needs first", outcome(stages, "passed"), "first")
    report.in_turn([needs, stages.Stage("third", broken), fourth])
    report.in_turn([stages.Stage("waits", waiting)], beside=[stages.Stage("calm", calm)])
    assert report.summary() == 1
    printed = capsys.readouterr().out
    assert "not run\n" not in printed
    for said in (
        *("why it failed", "its totals", "ZeroDivisionError: in a stage", "what it found"),
        *("needs first could not run: first failed", "apart could not run: first failed"),
    ):
        assert said in printed
    assert printed.endswith("2 passed, 5 failed, 1 skipped\n")


def test_what_passed_passes(stages: Any) -> None:
    report = stages.Report(["good"])
    chosen = [stages.Stage("good", outcome(stages, "passed"))]
    report.in_turn([*chosen, stages.Stage("not chosen", outcome(stages, "failed"))])
    assert report.summary() == 0
    assert stages.Report([]).summary() == 1  # no stage at all is a failure
    commands = {"true": "passed", "false": "failed", "no-such-command-here": "failed"}
    assert {name: stages.plain(name).state for name in commands} == commands
    options, rest = stages.parse(["--all", "--only", "unit", "--", "-k", "guard"])
    assert (options.all, options.only, rest) == (True, ["unit"], ["-k", "guard"])


def test_each_smoke_is_there(stages: Any) -> None:
    """A name that no test has any more would leave the quick tier in silence."""
    smokes = yaml.safe_load((ROOT / stages.SYSTEM / "data" / "smokes.yaml").read_text())
    command = [str(stages.TOOLS / "pytest"), "-q", "--collect-only", "-m", stages.SMOKE]
    done = stages.execute([*command, stages.SYSTEM])
    listed = [line.removeprefix(f"{stages.SYSTEM}/") for line in done.stdout.splitlines()]
    collected = {name for line in listed for name in (line, line.partition("[")[0])}
    assert smokes.keys() <= collected, done.stdout


@pytest.mark.parametrize(("words", "suites"), [([], {"quick"}), (["--all"], {"quick", "long"})])
def test_every_stage_of_the_quick_tier_or_all(
    stages: Any, monkeypatch: pytest.MonkeyPatch, words: list[str], suites: set[str]
) -> None:
    names: list[str] = []

    def run(self: Any, stage: Any) -> Any:
        names.append(stage.name)
        return stages.Outcome("passed")

    monkeypatch.setattr(stages.Report, "_run", run)
    assert stages.main(words) == 0
    quick = {"gates: mypy", "build gcc", "build clang", "unit tests sanitized", "tests/python"}
    assert quick <= set(names)
    long = {"clang-tidy", "build no-dpdk", "unit tests gcc", "tests/vm", "tests/system hosts"}
    long |= {"C coverage", "fuzz", "faults in analysis noticed"}
    assert long & set(names) == (long if "long" in suites else set())
    assert ("tests/system smokes" in names) == ("long" not in suites)
    assert names[-1] == "machine left as found"
    names.clear()
    assert stages.main(["--only", "gates"]) == 0
    assert len(names) == len(stages.gates())


def test_a_test_that_was_skipped_says_why(stages: Any, tmp_path: Path) -> None:
    log = tmp_path / "testlog.json"
    tests = [
        {"name": "test_a", "result": "OK", "duration": 1.0, "stdout": "[       OK ] x\n"},
        {"name": "test_b", "result": "SKIP", "duration": 0.0, "stdout": "x\nneeds root\n"},
    ]
    log.write_text("".join(json.dumps(test) + "\n" for test in tests))
    wanted = ["test_a: OK (1.0 s)", "test_b: SKIP (0.0 s)", "needs root"]
    assert list(stages.results(log)) == wanted


def unit_tests(
    stages: Any, monkeypatch: pytest.MonkeyPatch, folder: Path, fails: int, long: bool = False
) -> Any:
    """The stage, Meson's test failing so often; and its commands, each behind its environment."""
    build = stages.Build("fake", "gcc")
    monkeypatch.setattr(stages, "BUILDS", folder)
    log = build.folder / "meson-logs" / "testlog.json"
    log.parent.mkdir(parents=True)
    commands: list[list[str]] = []

    def execute(command: list[str], environment: Any = None) -> Any:
        result = "FAIL" if len(commands) < fails else "OK"
        test = {"name": "switchbench:transport / battery", "result": result}
        log.write_text(json.dumps(test | {"duration": 1.0}) + "\n")
        commands.append([*(f"{k}={v}" for k, v in (environment or {}).items()), *command])
        return subprocess.CompletedProcess(command, int(result == "FAIL"), f"{result}\n")

    monkeypatch.setattr(stages, "execute", execute)
    return stages.unit_tests(build, long=long), commands


@pytest.mark.rows
def test_what_failed_is_tried_again(
    stages: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fails: int, state: str,
    tries: int, long: bool,
) -> None:  # fmt: skip
    """A test that passes in the last try passes; long tests run with --all only."""
    found, commands = unit_tests(stages, monkeypatch, tmp_path, fails, long)
    assert (found.state, len(commands)) == (state, tries)
    assert [command[-1] == "battery" for command in commands] == [False, True, True][:tries]
    assert ("tried again: battery" in found.text) == (tries > 1)
    assert found.text.count("battery: FAIL (1.0 s)") == min(fails, stages.TRIES)
    assert ("SWITCHBENCH_LONG=1" in commands[0], "--no-suite" in commands[0]) == (long, not long)


def test_a_process_left_behind_is_seen(stages: Any) -> None:
    before = stages.traces()
    python = str(stages.TOOLS / "python")
    pipe = subprocess.PIPE
    with subprocess.Popen([python, "-c", "input(0)"], stdin=pipe, stdout=pipe) as p:
        assert p.stdout is not None
        p.stdout.read(1)  # /proc shows a command line only after exec
        left = stages.leftovers(before, patience_s=0.3)
        p.communicate(b"\n")
    assert left.state == "failed"
    assert f"process {p.pid}: " in left.text
    assert f"process {p.pid}: " not in "\n".join(stages.traces())
