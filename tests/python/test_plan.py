# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench plan`: what people and programs get, and its exit status."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from configs import (
    LAB,
    LAB_EXAMPLE,
    PROJECT,
    TRANSPORTS_EXAMPLE,
    compile_text,
    needs_engine,
    write_files,
)
from switchbench.base.programs import find_engine
from switchbench.cli.main import COMMANDS, build_parser, main
from switchbench.plan import engine

pytestmark = needs_engine


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints; it has to succeed."""
    assert main(["plan", *arguments]) == 0
    return capsys.readouterr().out


def plan_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The same for programs."""
    return json.loads(plan(capsys, *arguments, "--json"))


def test_lab_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests with their time, ports with their switch ports, flows by names."""
    text = plan(capsys, str(write_files(tmp_path, LAB_EXAMPLE)))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "0 chain dpdk lab 2, 4, 8 1518 95% 1 3 3 9 s" in lines
    assert any(line.startswith("expected time 2 min") for line in lines)
    assert "lab 7 node8:e0 switch p8 100Mbit" in lines
    assert "plan 1: chain, 4 ranks of lab, 1 phase (tests 0, 1)" in lines
    assert "0 chain node1:e0→node2:e0, node2:e0→node3:e0, node3:e0→node4:e0" in lines
    neighbours = [line for line in lines if line.startswith("0 neighbours")]
    assert neighbours == [
        "0 neighbours node1:e0⇄node2:e0, node3:e0⇄node4:e0, node5:e0⇄node6:e0, node7:e0⇄node8:e0"
    ]


def test_steps_are_counted_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = "tests: [{pattern: pingping, ranks: [2]}, {pattern: nas_ep, ranks: [2]}]\n"
    path = tmp_path / "steps.yaml"
    path.write_text("switchbench: 1\nsite: {lab: one-switch}\ntransport: tcp\n" + tests)
    said = plan(capsys, str(path))
    assert "1 step and 2 messages of all ranks (test 0)" in said
    assert (
        "4 steps and 6 messages of all ranks, 192 B together; 1 iteration in total (test 1)" in said
    )


def test_what_offers_no_load_shows_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps and messages there and back wait for each other; a kernel's class says its sizes."""
    tests = """tests:
- {pattern: bcast}
- {pattern: nas_cg}
- {pattern: hpl, matrix: 512, block: 64}
- {pattern: pairs, traffic: pingpong}
- pattern: aapc
  order: naive
  traffic: pingpong
  scatter: {partners: random, sizes: [4, 64KiB], count: 9}
- {pattern: pairs}
"""
    path = tmp_path / "loads.yaml"
    path.write_text("switchbench: 1\nsite: {lab: one-switch}\ntransport: tcp\n" + tests)
    said = [" ".join(line.split()) for line in plan(capsys, str(path)).splitlines()]
    rows = {line.partition(" ")[0]: line for line in said if " tcp lab " in line}
    assert rows["0"] == "0 bcast algorithm=binomial batch=1 tcp lab 8 64KiB - 1 1 1 3 s"
    assert rows["1"] == "1 nas_cg problem_class=S batch=1 tcp lab 8 class S - 1 1 1 3 s"
    assert " tcp lab 8 matrix 512 - 1 " in rows["2"]
    assert " tcp lab 8 64KiB - 1 " in rows["3"]
    assert " tcp lab 8 4B to 64KiB - 1 " in rows["4"]
    assert " scatter=random messages=9," in " ".join(said)
    assert " tcp lab 8 64KiB 100% 1 " in rows["5"]
    assert any(line.startswith("note: for collectives, all communicating pairs") for line in said)
    found = plan_json(capsys, str(path))
    kernel, stream = found["tests"][1], found["tests"][5]
    assert (kernel["sizes"], kernel["loads"]) == ([], [])
    assert (stream["sizes"], stream["loads"]) == ([[65536]], ["100%"])
    by_test = {trial["test"]: trial for trial in found["trials"]}
    assert (by_test[1]["size"], by_test[1]["load"]) == (None, None)
    assert (by_test[5]["size"], by_test[5]["load"]) == ([65536], "100%")


def test_idle_ranks_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With an odd number of ranks one idles; a forwarding chain shows who forwards."""
    text = LAB + (
        "tests:\n- {pattern: pairs, ranks: [5]}\n- {pattern: chain, ranks: [3], forward: true}\n"
    )
    path = str(write_files(tmp_path, text))
    shown = plan(capsys, path)
    assert "node3:e0⇄node4:e0; idle: node5:e0" in shown
    assert "node1:e0→node2:e0, node2:e0⇒node3:e0" in shown
    found = plan_json(capsys, path)["plans"]
    assert found[0]["phases"][0]["networks"][0]["idle"] == ["node5:e0"]
    assert found[1]["phases"][0]["networks"][0]["flows"] == [
        ["node1:e0", "node2:e0", "generate"],
        ["node2:e0", "node3:e0", "forward"],
    ]


def test_groups_and_many_idle_ranks_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets are text, not the terminal's markup; idle ranks are folded, none left out."""
    text = plan(capsys, str(PROJECT / "conf" / "two-modules.yaml"), "--phases", "0")
    assert "pairs partners=inside groups=[left right]" in " ".join(text.split())
    assert "node7:e0⇄node19:e0; idle: node[8-12,20-24]:e0" in text


def test_large_plans_are_summarised(capsys: pytest.CaptureFixture[str]) -> None:
    """A dozen phases and a few flows of each, unless all or some phases are asked for."""
    site = ("--site", "sixty-four", "--set", "pattern=aapc")
    short = plan(capsys, *site)
    assert "… 51 more phases (--all, or --phases RANGES)" in short
    assert "… 48 more" in short
    assert "distance 12" in short
    assert "distance 13" not in short
    assert "distance 63" in plan(capsys, *site, "--all")
    chosen = plan(capsys, *site, "--phases", "0,40-41")
    names = re.findall(r"distance \d+", chosen)
    assert names == ["distance 1", "distance 41", "distance 42"]
    with pytest.raises(SystemExit):
        main(["plan", *site, "--phases", "0-999999999"])
    assert "'0-999999999' are more than 65536 phases: no plan has" in capsys.readouterr().err
    assert main(["plan", *site, "--phases=-1"]) == 2
    assert "--phases -1: the plans have phases 0 to 62" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--pattern", "--load", "--transport", "--suite"])
def test_an_empty_option_is_invalid(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--site", "one-switch", option, ""]) == 2
    assert f"{option} : " in capsys.readouterr().err


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


def test_what_a_plan_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The order of transports, and networks together."""
    path = str(write_files(tmp_path, TRANSPORTS_EXAMPLE))
    text = plan(capsys, path, "--phases", "0")
    assert "note: dpdk takes its ports from the kernel (bind), so all other transports ran" in text
    assert "rail0 + rail1" in text


def test_a_plan_states_what_is_offered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One load for all transports, or that they differ; and how probes stand to it."""

    def offered(*words: str) -> list[str]:
        path = str(write_files(tmp_path, LAB + "\n".join(words) + "\n"))
        found: list[str] = plan_json(capsys, path)["offered"]
        assert all(f"load: {one}" in plan(capsys, path).replace("\n", " ") for one in found)
        return found

    on_top = "latency probes are on top of the load, at most 0.1 % of line"
    both = "transports: [tcp, dpdk]"
    assert offered("pattern: pairs", both) == ["95% over tcp and dpdk alike", on_top]
    assert offered("pattern: pairs", both, "loads: [50%, 90%]") == [
        "50% and 90% over tcp and dpdk alike", on_top,
    ]  # fmt: skip
    assert offered("tests:", "- {pattern: pairs, transport: tcp}",
                   "- {pattern: pairs, transport: dpdk}") == [
        "pairs differ: 100% over tcp, 95% over dpdk", on_top,
    ]  # fmt: skip
    assert offered("pattern: pairs", "transport: dpdk", "latency: {probes: 0}") == []
    assert offered("pattern: pairs", "transport: dpdk", "load: 100%") == [
        f"{on_top}; at 100% the line has no room for both, and the load yields to them"
    ]
    assert offered("pattern: pairs", "transport: dpdk", "latency: {probes: 200/s}") == [
        "latency probes are on top of the load, 200/s per flow"
    ]


def test_what_is_to_be_planned_has_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan"]) == 2
    assert "no configuration: name a file, or give --lab" in capsys.readouterr().err


def test_time_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the plan is shown nor a job written."""
    path = str(write_files(tmp_path, LAB + "time_limit: 2s\npattern: aapc\n"))
    job = tmp_path / "job.yaml"
    assert main(["plan", path]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "time_limit: the run should take" in captured.err
    assert main(["plan", path, "--job", str(job)]) == 2
    assert not job.exists()


def test_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that only its owner reads; a second one only over such a file."""
    path = str(write_files(tmp_path, LAB + "pattern: chain\n"))
    job = tmp_path / "job.yaml"
    plan(capsys, path, "--job", str(job))
    assert stat.S_IMODE(job.stat().st_mode) == 0o600
    key = job.read_text()
    plan(capsys, path, "--job", str(job))
    assert job.read_text() != key
    job.chmod(0o640)
    assert main(["plan", path, "--job", str(job)]) == 2
    assert "has mode 0640" in capsys.readouterr().err


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


@pytest.mark.parametrize("word", ["--help", "--version", "no-such-command"])
def test_help_loads_no_command(word: str) -> None:
    """What commands there are, and what for, is known without what they need."""
    code = (
        "import sys\nfrom switchbench.cli.main import main\n"
        f"try:\n    main([{word!r}])\n"
        "finally:\n    print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    loaded = done.stderr.splitlines()
    assert {name for name in loaded if name.startswith("switchbench.cli.")} == {
        "switchbench.cli.main",
    }


def test_a_command_loads_what_it_needs() -> None:
    """Libraries that take longer to load than most commands take are not loaded by all."""
    code = (
        "import sys\nfrom switchbench.cli.main import main\n"
        f"status = main(['plan', {str(PROJECT / 'conf/two-switches.yaml')!r}])\n"
        "heavy = {'networkx', 'pyroute2', 'pyarrow', 'plotly', 'switchbench.render.report'}\n"
        "print(status, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == "0 []\n"


def test_a_run_begins_without_its_report() -> None:
    """What a run needs when it has ended is loaded then."""
    code = (
        "import sys\nimport switchbench.cli.run\n"
        "late = {'networkx', 'pyroute2', 'jinja2', 'switchbench.render.report'}\n"
        "print(sorted(late & set(sys.modules)))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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
