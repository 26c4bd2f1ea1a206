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

ROOT = Path(__file__).resolve().parents[2]


def program(name: str) -> Any:
    """One of the programs of tests/, which are not part of a package."""
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


def test_all_stages_run_and_one_failure_fails_all(
    stages: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> Any:
        raise ZeroDivisionError("in a stage")

    report = stages.Report([])
    report.together([stages.Stage("first", lambda: stages.Outcome("failed", "why it failed"))])
    report.in_turn(
        [
            stages.Stage("second", lambda: stages.Outcome("passed", "its totals")),
            stages.Stage("needs first", lambda: stages.Outcome("passed"), "first"),
            stages.Stage("third", broken),
            stages.Stage("fourth", lambda: stages.Outcome("skipped", "no device")),
        ]
    )
    assert report.summary() == 1
    printed = capsys.readouterr().out
    assert "why it failed" in printed
    assert "its totals" in printed
    assert "needs first could not run: first failed" in printed
    assert "ZeroDivisionError: in a stage" in printed
    assert printed.endswith("1 passed, 3 failed, 1 skipped\n")


def test_stages_side_by_side_wait_for_what_they_need_too(
    stages: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    report = stages.Report([])
    report.in_turn([stages.Stage("build", lambda: stages.Outcome("failed"))])
    report.together(
        [
            stages.Stage("needs it", lambda: stages.Outcome("passed", "not run"), "build"),
            stages.Stage("does not", lambda: stages.Outcome("passed", "its totals")),
        ],
        quiet=False,
    )
    assert report.summary() == 1
    printed = capsys.readouterr().out
    assert "needs it could not run: build failed" in printed
    assert "its totals" in printed
    assert "not run\n" not in printed


def test_a_calm_stage_runs_beside_others(stages: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It goes on while the first of them waits for it, and its failure is one."""
    begun = threading.Event()

    def calm() -> Any:
        begun.set()
        return stages.Outcome("failed", "what it found")

    def first() -> Any:
        return stages.Outcome("passed" if begun.wait(10) else "failed")

    report = stages.Report([])
    second = stages.Stage("second", lambda: stages.Outcome("passed"))
    report.beside(stages.Stage("calm", calm), [stages.Stage("first", first), second])
    assert report.summary() == 1
    printed = capsys.readouterr().out
    assert "what it found" in printed
    assert printed.endswith("2 passed, 1 failed, 0 skipped\n")


def test_what_runs_apart_are_files_of_the_tests(stages: Any) -> None:
    """They are left out of tests/system by these names, and each runs once."""
    apart = [*stages.PACKAGES, *stages.HOSTS, *stages.FAULTS]
    assert len(apart) == len(set(apart))
    for name in apart:
        assert (ROOT / name).exists(), name


def test_each_smoke_is_there(stages: Any) -> None:
    """A name that no test has any more would leave the quick tier in silence."""
    sys.path.insert(0, str(ROOT / stages.SYSTEM))
    try:
        from smokes import SMOKES
    finally:
        sys.path.remove(str(ROOT / stages.SYSTEM))
    command = [str(stages.TOOLS / "pytest"), "-q", "--collect-only", "-m", stages.SMOKE]
    done = stages.execute([*command, stages.SYSTEM])
    listed = [line.removeprefix(f"{stages.SYSTEM}/") for line in done.stdout.splitlines()]
    collected = {name for line in listed for name in (line, line.partition("[")[0])}
    assert set(SMOKES) <= collected, done.stdout


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
    long |= {"C coverage", "faults in analysis noticed"}
    assert long & set(names) == (long if "long" in suites else set())
    assert ("tests/system smokes" in names) == ("long" not in suites)
    assert names[-1] == "machine left as found"
    names.clear()
    assert stages.main(["--only", "gates"]) == 0
    assert len(names) == len(stages.gates())


def test_coverage_counts_lines_of_all_programs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A line is run if one of two programs ran it; a file that none ran counts, too."""
    coverage = program("coverage")
    monkeypatch.setattr(coverage, "ROOT", tmp_path)
    (tmp_path / "part").mkdir()
    (tmp_path / "part/used.c").write_text(
        "int used(int a);\n"
        "int used(int a)\n{\n"
        "    if (a > 1)\n"
        "        return 1;\n"
        "    return 0;\n}\n"
    )
    (tmp_path / "part/unused.c").write_text("int unused(void);\nint unused(void) { return 1; }\n")
    main = "int used(int a);\nint main(int n, char **a) { (void)a; return used(n) - (n > 1); }\n"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/main.c").write_text(main)
    build = tmp_path / "build"
    for name in ("one", "two"):
        (build / name).mkdir(parents=True)
        for source in ("part/used.c", "part/unused.c", "tests/main.c"):
            command = ["gcc", "--coverage", "-c", f"../../{source}"]
            subprocess.run(command, cwd=build / name, check=True)
        command = ["gcc", "--coverage", "-o", "main", "used.o", "main.o"]
        subprocess.run(command, cwd=build / name, check=True)
    subprocess.run([build / "one/main"], check=True)
    assert list(coverage.table(build)) == [
        "part                      60.0% of     5 lines,  50.0% of     2 branches",
        "total                     60.0% of     5 lines,  50.0% of     2 branches",
    ]
    subprocess.run([build / "two/main", "argument"], check=True)
    assert next(coverage.table(build)) == (
        "part                      80.0% of     5 lines, 100.0% of     2 branches"
    )


def test_what_passed_passes(stages: Any) -> None:
    report = stages.Report(["good"])
    report.in_turn(
        [
            stages.Stage("good", lambda: stages.Outcome("passed")),
            stages.Stage("not chosen", lambda: stages.Outcome("failed")),
        ]
    )
    assert report.summary() == 0


def test_no_stage_at_all_is_a_failure(stages: Any) -> None:
    assert stages.Report([]).summary() == 1


def test_the_exit_status_of_a_command_decides(stages: Any) -> None:
    assert stages.plain("true").state == "passed"
    assert stages.plain("false").state == "failed"
    assert stages.plain("no-such-command-here").state == "failed"


def test_closing_lines_of_each_runner_are_shown(stages: Any, tmp_path: Path) -> None:
    log = tmp_path / "testlog.json"
    tests = [
        {
            "name": "test_a",
            "result": "OK",
            "duration": 1.0,
            "stdout": "[==========] Running 2 test(s).\n[       OK ] x\n",
            "stderr": "[==========] 2 test(s) run.\n[  PASSED  ] 2 test(s).\n",
        },
        {"name": "test_b", "result": "SKIP", "duration": 0.0, "stdout": "needs root\n"},
    ]
    log.write_text("".join(json.dumps(test) + "\n" for test in tests))
    assert list(stages.closing_lines(log)) == [
        "test_a: OK (1.0 s)",
        "[==========] 2 test(s) run.",
        "[  PASSED  ] 2 test(s).",
        "test_b: SKIP (0.0 s)",
        "needs root",
    ]


@pytest.mark.parametrize(
    ("results", "again"),
    [
        ({"battery": ("transport", "FAIL"), "other": ("transport", "OK")}, ["battery"]),
        ({"battery": ("transport", "TIMEOUT"), "test_a": ("unit", "FAIL")}, []),
        ({"battery": ("transport", "OK"), "verbs": ("transport", "SKIP")}, []),
    ],
)
def test_only_what_sends_is_tried_again(
    stages: Any, tmp_path: Path, results: dict[str, tuple[str, str]], again: list[str]
) -> None:
    log = tmp_path / "testlog.json"
    tests = [
        {"name": f"switchbench:{suite} / {name}", "result": result}
        for name, (suite, result) in results.items()
    ]
    log.write_text("".join(json.dumps(test) + "\n" for test in tests))
    assert stages.spoilt(log) == again


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


@pytest.mark.parametrize("long", [False, True])
def test_long_tests_are_run_where_they_are_asked_for(
    stages: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, long: bool
) -> None:
    _, (command,) = unit_tests(stages, monkeypatch, tmp_path, 0, long)
    assert ("SWITCHBENCH_LONG=1" in command, "--no-suite" in command) == (long, not long)
    assert [build.name for build in stages.MATRIX if build.long] == ["gcc"]


@pytest.mark.parametrize(("fails", "state", "tries"), [(0, "passed", 1), (1, "passed", 2)])
def test_a_test_that_passes_at_last_passes(
    stages: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fails: int,
    state: str,
    tries: int,
) -> None:
    outcome, commands = unit_tests(stages, monkeypatch, tmp_path, fails)
    assert (outcome.state, len(commands)) == (state, tries)
    assert [command[-1] == "battery" for command in commands] == [False, True][:tries]
    assert ("tried again: battery" in outcome.text) == (tries > 1)


def test_a_test_that_never_passes_fails(
    stages: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcome, commands = unit_tests(stages, monkeypatch, tmp_path, fails=9)
    assert (outcome.state, len(commands)) == ("failed", stages.TRIES)
    assert outcome.text.count("battery: FAIL (1.0 s)") == stages.TRIES


def test_a_process_left_behind_is_seen(stages: Any) -> None:
    before = stages.traces()
    with subprocess.Popen(
        [str(stages.TOOLS / "python"), "-c", "input()"], stdin=subprocess.PIPE
    ) as p:
        outcome = stages.leftovers(before, patience_s=0.3)
        p.communicate(b"\n")
    assert outcome.state == "failed"
    assert f"process {p.pid}: " in outcome.text
    assert f"process {p.pid}: " not in "\n".join(stages.traces())


def test_arguments_after_the_dashes_are_for_pytest(stages: Any) -> None:
    options, rest = stages.parse(["--all", "--only", "unit", "--", "-k", "guard"])
    assert (options.all, options.only, rest) == (True, ["unit"], ["-k", "guard"])
    options, rest = stages.parse([])
    assert (options.all, options.only, rest) == (False, [], [])
