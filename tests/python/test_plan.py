# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench plan`: what people and programs get, and its exit status.

Transcripts are written anew by: python tests/python/test_plan.py
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from configs import (
    LAB,
    LAB_EXAMPLE,
    PROJECT,
    compile_text,
    needs_engine,
    write_files,
)
from switchbench.base.programs import find_engine
from switchbench.base.source import read_file
from switchbench.cli.main import COMMANDS, build_parser, main
from switchbench.plan import engine

pytestmark = needs_engine
DATA = PROJECT / "tests/python/data"


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints; it has to succeed."""
    assert main(["plan", *arguments]) == 0
    return capsys.readouterr().out


def plan_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The same for programs."""
    return json.loads(plan(capsys, *arguments, "--json"))


CASES: dict[str, dict[str, str]] = read_file(DATA / "plans.yaml").data


def transcript(name: str, folder: Path) -> str:
    """What is printed of a plan, on a machine of two cores."""
    path = write_files(folder, CASES[name]["text"])
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        assert main(["plan", str(path), *CASES[name].get("words", "").split()]) == 0
    return stream.getvalue().replace(str(folder), "FOLDER")


@pytest.mark.parametrize("name", CASES)
def test_what_people_see(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert transcript(name, tmp_path) == (DATA / f"transcripts/plan/{name}.txt").read_text()


def test_phases_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    site = ("--site", "sixty-four", "--set", "pattern=aapc")
    assert "distance 63" in plan(capsys, *site, "--all")
    with pytest.raises(SystemExit):
        main(["plan", *site, "--phases", "0-999999999"])
    assert "'0-999999999' are more than 65536 phases: no plan has" in capsys.readouterr().err
    assert main(["plan", *site, "--phases=-1"]) == 2
    assert "--phases -1: the plans have phases 0 to 62" in capsys.readouterr().err


def test_json_holds_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each ordered pair once over an AAPC's phases; trials refer to plans; the configuration."""
    found = plan_json(capsys, str(write_files(tmp_path, LAB_EXAMPLE)))
    assert found["switchbench"] == 1
    aapc = next(item for item in found["plans"] if item["pattern"]["name"] == "aapc")
    flows = [tuple(flow[:2]) for phase in aapc["phases"] for flow in phase["networks"][0]["flows"]]
    names = aapc["ranks"]["lab"]
    assert sorted(flows) == sorted((a, b) for a in names for b in names if a != b)
    assert {trial["plan"] for trial in found["trials"]} == set(range(len(found["plans"])))
    assert found["expected_s"] == pytest.approx(
        found["start_s"] + sum(test["expected_s"] for test in found["tests"]), abs=0.1
    )
    assert found["configuration"]["tests"][0]["window"] == "2s"


def test_a_suite_takes_the_time_of_its_measurements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not that of one trial per measurement, and not both."""
    text = "switchbench: 1\nsite: {lab: model-good, nodes: 4}\nsuite: rfc2544\nframe_size: 64\n"
    run, found = compile_text(tmp_path, text), plan_json(capsys, str(tmp_path / "conf.yaml"))
    assert found["expected_s"] == pytest.approx(run.expected_s, abs=0.1)
    times = [test["expected_s"] for test in found["tests"]]
    assert times == pytest.approx(run.estimates_s, abs=0.1)


def test_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that only its owner reads."""
    job = tmp_path / "job.ndjson"
    plan(capsys, str(write_files(tmp_path, LAB + "pattern: chain\n")), "--job", str(job))
    assert stat.S_IMODE(job.stat().st_mode) == 0o600
    assert '"key": ' in job.read_text()


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """`switchbench plan CONF | head -1` says nothing on standard error."""
    path = write_files(tmp_path, LAB_EXAMPLE)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as gone:
        result = subprocess.run(
            [sys.executable, "-m", "switchbench", "plan", str(path), "--all"],
            stdout=gone, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert result.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_engine_can_be_interrupted_at_a_plan(number: signal.Signals) -> None:
    """Also while nobody reads what it writes."""
    words = [str(find_engine()), "--plan"]
    request = engine.request(1024, {"name": "aapc", "order": "shift"}, 1)
    # What starts the tests in the background may ignore SIGINT, and programs inherit that.
    before = signal.signal(number, signal.SIG_DFL) if number == signal.SIGINT else None
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        if before is not None:
            signal.signal(number, before)
        assert node.stdin is not None
        assert node.stdout is not None
        node.stdin.write(request.encode())
        node.stdin.close()
        assert len(node.stdout.read(64)) == 64
        node.send_signal(number)
        try:
            assert node.wait(timeout=20) == -number
        finally:
            node.kill()


def test_help_has_examples() -> None:
    """Every command's help ends with examples."""
    parser = build_parser()
    assert "examples:" in parser.format_help()
    actions = [action for action in parser._actions if action.choices]
    commands: Any = actions[0].choices
    assert list(commands) == list(COMMANDS)
    for name in COMMANDS:
        assert f"switchbench {name}" in commands[name].format_help().partition("examples:")[2]


HEAVY = {"networkx", "pyroute2", "plotly", "switchbench.render.report"}
LOADS: dict[str, tuple[str, set[str]]] = {
    **dict.fromkeys(
        ("--help", "--version", "no-such-command"),
        ("from switchbench.cli.main import main\nmain([WORD])", HEAVY | {"switchbench.cli.common"}),
    ),
    "plan": (
        "from switchbench.cli.main import main\n"
        f"main(['plan', '{PROJECT}/conf/two-switches.yaml'])",
        HEAVY | {"pyarrow"},
    ),
    "run": ("import switchbench.cli.run", HEAVY | {"jinja2"}),
}


@pytest.mark.parametrize("word", LOADS)
def test_a_command_loads_what_it_needs(word: str) -> None:
    """Libraries that take longer to load than most commands take are not loaded by all."""
    code, heavy = LOADS[word]
    code = (
        "import atexit, sys\natexit.register("
        "lambda: print(*sys.modules, sep='\\n', file=sys.stderr))\n" + code
    )
    words = [sys.executable, "-c", code.replace("WORD", repr(word))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    loaded = set(done.stderr.splitlines())
    assert "switchbench.cli" in loaded
    assert not heavy & loaded


def test_engine_that_cannot_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong path, and a program that is no engine."""
    engine._size.cache_clear()
    path = str(write_files(tmp_path, LAB + "pattern: chain\n"))
    monkeypatch.setenv("SWITCHBENCH_NODE", str(tmp_path / "nothing"))
    assert main(["plan", path]) == 2
    assert "SWITCHBENCH_NODE=" in capsys.readouterr().err
    monkeypatch.setenv("SWITCHBENCH_NODE", "/bin/false")
    assert main(["plan", path]) == 3
    assert "switchbench-node: ended with status 1" in capsys.readouterr().err


if __name__ == "__main__":
    os.cpu_count = lambda: 2
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            kept = DATA / f"transcripts/plan/{case}.txt"
            kept.write_text(transcript(case, Path(folder)))
