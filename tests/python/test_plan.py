# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench plan`: what people and programs get, what is refused, what a configuration compiles
to, what fits into a time, which cores workers get.

Transcripts are written by: python tests/python/test_plan.py"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from configs import (
    LAB,
    LAB_EXAMPLE,
    PROJECT,
    TEXTS,
    again,
    assert_has,
    compile_text,
    needs_engine,
    read_text,
    write_files,
)
from conftest import Command
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Run, Trial
from switchbench.base.programs import find_engine
from switchbench.base.source import load, read_file, write_text
from switchbench.cli.main import COMMANDS, build_parser, main
from switchbench.config import read
from switchbench.plan import documents, engine
from switchbench.plan.budget import Fit, fitted, longest_s
from switchbench.plan.compile import compile_run
from switchbench.plan.documents import Deal, deal, job_document, trial_document, written
from switchbench.records.directory import CONFIGURATION, RunDirectory, read_plan, write_plan

pytestmark = needs_engine
DATA = PROJECT / "tests/python/data"


def plan_json(cli: Command, *arguments: object) -> Any:
    """Return the JSON that the command prints."""
    return json.loads(cli.prints("plan", *arguments, "--json"))


CASES: dict[str, dict[str, str]] = read_file(DATA / "plans.yaml").data


def transcript(name: str, folder: Path) -> str:
    """Return the printed plan, for a machine of two cores."""
    path = write_files(folder, CASES[name]["text"])
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        assert main(["plan", str(path), *CASES[name].get("words", "").split()]) == 0
    return stream.getvalue().replace(str(folder), "FOLDER")


@pytest.mark.parametrize("name", CASES)
def test_what_people_see(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert transcript(name, tmp_path) == (DATA / f"transcripts/plan/{name}.txt").read_text()


def test_all_phases_are_shown(cli: Command) -> None:
    site = ("--lab", "sixty-four", "--set", "pattern=aapc")
    assert "distance 63" in cli.prints("plan", *site, "--all")


def test_json_holds_everything(tmp_path: Path, cli: Command) -> None:
    """The JSON has each ordered pair of ports once over an AAPC's phases, and the configuration."""
    found = plan_json(cli, str(write_files(tmp_path, LAB_EXAMPLE)))
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


def test_a_suite_takes_the_time_of_its_measurements(tmp_path: Path, cli: Command) -> None:
    """The expected time is that of the searches, without the trials that they begin with."""
    text = "switchbench: 1\nsite: {lab: model-good, nodes: 4}\nsuite: rfc2544\nframe_size: 64\n"
    run, found = compile_text(tmp_path, text), plan_json(cli, str(tmp_path / "conf.yaml"))
    assert found["expected_s"] == pytest.approx(run.expected_s, abs=0.1)
    times = [test["expected_s"] for test in found["tests"]]
    assert times == pytest.approx(run.estimates_s, abs=0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_engine_can_be_interrupted_at_a_plan(number: signal.Signals) -> None:
    """A signal ends the engine even while its output is not read."""
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
    """Commands import slow libraries only where they use them."""
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    """A path without a program, and a program that is no engine, are errors."""
    engine._size.cache_clear()
    path = str(write_files(tmp_path, LAB + "pattern: chain\n"))
    monkeypatch.setenv("SWITCHBENCH_NODE", str(tmp_path / "nothing"))
    assert "SWITCHBENCH_NODE=" in cli.refuses("plan", path)
    monkeypatch.setenv("SWITCHBENCH_NODE", "/bin/false")
    assert "switchbench-node: ended with status 1" in cli.refuses("plan", path, status=3)


# --- what `run` would refuse `plan` refuses -------------------------------------------------------


SWITCH = "switchbench: 1\nsite: {lab: one-switch}\n"
FRAMES_LAB = SWITCH + "transport: dpdk\n"
PAIRS = FRAMES_LAB + "tests: [{pattern: pairs, ranks: [2]}]\n"
BOMB = "a0: &a0 [x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]\n" for i in range(1, 40)
)

MISTAKES: dict[str, dict[str, Any]] = read_file(PROJECT / "tests/python/data/refused.yaml").data
REFUSED: dict[str, tuple[str | bytes, str | list[str]]] = {
    name: (case["text"], case["says"]) for name, case in MISTAKES.items()
} | {
    "brackets without end": (
        "switchbench: 1\nsite: " + 3000 * "[" + 3000 * "]",
        "2: is too large to be read: lists and mappings are more than 64 deep",
    ),
    "aliases without end": (
        "switchbench: 1\n" + BOMB,
        "7: is too large to be read: more than 50000 values, those of aliases counted each time",
    ),
    "another encoding": (
        PAIRS.encode() + b"# caf\xe9\n",
        "5: is not UTF-8 text: byte 0xe9; save it as UTF-8",
    ),
    "another encoding altogether": (PAIRS.encode("utf-16"), "1: is UTF-16 text: save it as UTF-8"),
    "more trials than anybody waits for": (
        f"{SWITCH}loads: [{', '.join(f'{i / 100}%' for i in range(1, 3001))}]\nrepeat: 1000\n"
        "frame_sizes: [64, 128, 256, 512, 1024, 1280, 1518]\ntests:\n"
        + "- {pattern: chain, transport: dpdk}\n"
        * 50,
        "6: tests: loads, sizes, ranks, sweeps and repeats multiply to 21000000 trials and more; "
        "at most 20000 are allowed",
    ),
    "a sweep of more trials than that": (
        f"{SWITCH}tests:\n- {{pattern: chain, sweep: {{seed: {[*range(20_001)]}}}}}\n",
        "3: tests: loads, sizes, ranks, sweeps and repeats multiply to 20001 trials and more; "
        "at most 20000 are allowed",
    ),
    "a number without end": (
        f"{SWITCH}tests:\n- {{pattern: chain, window: {'7' * 5001}s}}\n",
        f'4: tests.0.window: "{"7" * 56}..." has 5001 digits, and at most 40 can be read',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_plan_refuses(
    name: str, tmp_path: Path, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mistake is one sentence: where, which key, what was found, what is possible."""
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    content, says = REFUSED[name]
    path = write_files(tmp_path, "")
    for file, beside in MISTAKES.get(name, {}).get("files", {}).items():
        (tmp_path / file).write_text(beside)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = cli("plan", path)
    assert (said.status, said.out) == (2, "")
    lines = [says] if isinstance(says, str) else says
    text = "\n".join(f"{path}:{one}" for one in lines).replace("{folder}", str(tmp_path))
    assert re.sub(r" \[SB-[A-Z, -]+\]$", "", said.err) == f"switchbench: {text}\n"


SET_REFUSED = {
    f"tests.{'9' * 5000}.load=5%": "there is no key tests.99",
    f"{'a.' * 3000}b=1": "the key has more than 64 dotted parts",
}


@pytest.mark.parametrize("argument", SET_REFUSED)
def test_an_assignments_mistake_is_its_own(argument: str, tmp_path: Path, cli: Command) -> None:
    """The message names the option, and not the file."""
    path = tmp_path / "conf.yaml"
    path.write_text(PAIRS)
    said = cli.refuses("plan", path, "--set", argument)
    assert said.startswith(f"switchbench: --set {argument}"[:200])
    assert f": {SET_REFUSED[argument]}" in said
    assert str(path) not in said


# --- from a configuration to trial documents, and back from what was understood -------------------


CONFIGURATIONS = sorted(
    str(path.relative_to(PROJECT)) for path in (PROJECT / "conf").glob("*.yaml")
)


def assert_same(folder: Path, run: Run) -> None:
    """The effective configuration and plan.json both give the same run again."""
    second = again(run)
    assert second.trials == run.trials
    assert second.site == run.site
    assert second.effective == run.effective
    assert second == run
    write_plan(folder, run)
    assert read_plan(folder) == run


@pytest.mark.parametrize("conf", CONFIGURATIONS)
def test_every_file_of_conf(conf: str, tmp_path: Path) -> None:
    """The project's examples compile, and their effective configurations give the same runs."""
    run = compile_run(read(PROJECT / conf))
    assert_same(tmp_path, run)
    RunDirectory(tmp_path / "new").write_document(CONFIGURATION, run.effective)
    assert load(tmp_path / "new" / CONFIGURATION) == run.effective


COMPILED: dict[str, dict[str, Any]] = read_file(PROJECT / "tests/python/data/compiled.yaml").data


def facts(trial: Trial) -> dict[str, Any]:
    """Return a trial's own values, and those of its document."""
    document = json.loads(json.dumps(trial_document(trial)))
    of_parts = {
        "ranks": len(trial.parts[0].ranks),
        "networks": [part.network for part in trial.parts],
        "first": [part.ranks[0].name for part in trial.parts],
    }
    return {**vars(trial), **document, **of_parts, "repeats": vars(trial.repeats)}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each configuration gives these trials, and its effective configuration the same run."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    case = COMPILED[name]
    run = compile_text(tmp_path, case["text"], *case.get("set", ()))
    for trial, wanted in zip(run.trials, case.get("trials", run.trials), strict=True):
        if wanted is not trial:
            assert_has(facts(trial), wanted)
    for trial in run.trials if "every" in case else ():
        assert_has(facts(trial), case["every"])
    groups = {name: list(ports) for name, ports in run.site.groups.items()}
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in vars(run).items()}
    assert_has(plain | {"groups": groups}, case.get("run", {}))
    assert_same(tmp_path, run)


def test_job_opens_what_the_trials_use(tmp_path: Path) -> None:
    """Each port in the transports that some trial needs; a port of no trial is left alone."""
    text = f"{LAB}tests:\n- {{pattern: chain, ranks: [2], transports: [tcp, dpdk]}}\n"
    text += "- {pattern: chain, ranks: [4], transport: udp}\n"
    job = documents.job_document(compile_text(tmp_path, text), "r-1")
    ports = [(node["name"], port) for node in job["nodes"] for port in node["ports"]]
    every, udp = ["tcp", "dpdk", "udp"], ["udp"]
    assert [(port["name"], port["transports"]) for _, port in ports] == [
        ("node1:e0", every), ("node2:e0", every), ("node3:e0", udp), ("node4:e0", udp),
    ]  # fmt: skip
    assert len(job["nodes"]) == 8
    assert (job["protocol"], job["run"], job["controlled"]) == (2, "r-1", True)


def job_documents(text: str) -> dict[str, Any]:
    """Return a job's documents by their key, the last of each kind."""
    return {key: value for line in text.splitlines() for key, value in json.loads(line).items()}


def test_job_by_hand(tmp_path: Path) -> None:
    """The job has addresses, a new key, all trials and `quit` in one file."""
    run = compile_text(tmp_path, TEXTS["hand"])
    text = documents.hand_job(run, "hand-1")
    found = job_documents(text)
    assert list(found) == ["job", "peers", "trial", "quit"]
    required = [trial for trial in run.trials if not trial.optional]
    assert text.count("\n") == 3 + len(required)
    assert found["job"]["controlled"] is False
    assert found["peers"]["addresses"] == ["192.0.2.1:7600", "[2001:db8::2]:7600"]
    assert found["job"]["nodes"][1]["control"] == {"address": "[2001:db8::2]:7600"}
    assert len(bytes.fromhex(found["peers"]["key"])) == 32
    assert found["trial"] == json.loads(json.dumps(trial_document(required[-1])))
    other = job_documents(documents.hand_job(run, "hand-1"))
    assert other["peers"]["key"] != found["peers"]["key"]


def test_job_by_hand_in_a_lab(tmp_path: Path) -> None:
    """All nodes of a lab have one control port, because each has a namespace of its own."""
    run = compile_text(tmp_path, LAB + "pattern: chain\n")
    found = job_documents(documents.hand_job(run, "hand-1"))
    assert found["peers"]["addresses"][:2] == ["100.64.0.1:7600", "100.64.0.2:7600"]


@pytest.mark.rows
def test_job_by_hand_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    """Jobs without a known address or port are errors."""
    run = compile_text(tmp_path, TEXTS["hand"].replace(old, new))
    with pytest.raises(ConfigurationError, match=sentence):
        documents.hand_job(run, "hand-1")


def test_the_key_stays_private(tmp_path: Path) -> None:
    """A job is a new file of mode 0600; an existing file, which others may read, stays."""
    path = tmp_path / "job.ndjson"
    write_text(path, "one", is_secret=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name, why in (
        ("job.ndjson", "File exists"),
        ("link", "File exists"),
        ("no/job", "No such"),
    ):
        with pytest.raises(ConfigurationError, match=f"{name}: can't be written: {why}"):
            write_text(tmp_path / name, "two", is_secret=True)
    assert path.read_text() == "one"
    assert not (tmp_path / "elsewhere").exists()


# --- `--budget` -----------------------------------------------------------------------------------


def fit_of(folder: Path, text: str, budget_s: float, locate_s: float | None = None) -> Fit:
    """Return a plan that fits, after checks of its time and of its configuration."""
    reading = read_text(folder, text)
    whole = replace(compile_run(reading), locate_s=locate_s)
    fit = fitted(reading, whole, budget_s)
    assert longest_s(fit.run) <= budget_s
    assert again(fit.run).trials == fit.run.trials
    assert again(fit.run).searches == fit.run.searches
    for test in {trial.test for trial in (*whole.trials, *whole.searches)}:
        before, after = (
            [t for t in (*run.trials, *run.searches) if t.test == test] for run in (whole, fit.run)
        )
        assert {t.load for t in after} <= {t.load for t in before}
        assert {t.sizes for t in after} <= {t.sizes for t in before}
        for most in ("window_s", "interval_s"):
            assert max(getattr(t, most) for t in after) <= max(getattr(t, most) for t in before)
        assert max(t.repeats.most for t in after) <= max(t.repeats.most for t in before)
        assert after  # each test keeps a trial
    return fit


@pytest.mark.rows
def test_repeats_go_first_then_times_then_sizes(
    tmp_path: Path, name: str, change: list[str], budget_s: float, words: str
) -> None:
    """Repeats are reduced first, then times, then sizes and loads; values of clauses stay."""
    assert fit_of(tmp_path, TEXTS[name].replace(*change), budget_s).words == words


def test_the_shorter_of_budget_and_time_limit_holds(tmp_path: Path) -> None:
    fit = fit_of(tmp_path, TEXTS["swept"] + "time_limit: 60s\n", 3600.0)
    assert longest_s(fit.run) <= 60.0 == fit.run.time_limit_s


def test_trials_that_locate_are_within_the_budget(tmp_path: Path) -> None:
    fit = fit_of(tmp_path, TEXTS["swept"], 150.0, locate_s=100.0)
    assert fit.run.locate_s == 100.0
    assert fit.run.longest_s <= 50.0


def test_a_shorter_budget_never_gives_a_longer_run(tmp_path: Path) -> None:
    fits = [
        fit_of(tmp_path, TEXTS["swept"], budget_s)
        for budget_s in (1000.0, 400.0, 120.0, 60.0, 10.0)
    ]
    took = [longest_s(fit.run) for fit in fits]
    assert took == sorted(took, reverse=True)
    sizes = dict.fromkeys(trial.sizes for trial in fits[2].run.trials)
    assert list(sizes) == [(1518,), (64,), (512,)]  # the most telling first


def test_a_budget_that_fits_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="--budget 1s: too short: the shortest run of this config"
    ):
        fit_of(tmp_path, TEXTS["swept"], 1.0)


def test_plan_says_what_is_omitted(tmp_path: Path, cli: Command) -> None:
    (tmp_path / "conf.yaml").write_text(TEXTS["swept"])
    said = cli("plan", tmp_path / "conf.yaml", "--budget", "150s")
    assert said.status == 0
    assert "the part within --budget takes" in said.err
    assert "omitted: frame sizes 256" in said.err
    assert "256" not in said.out


# --- which cores workers get, as written and as dealt in a lab ------------------------------------


SITE = {
    "launch": "hand",
    "hosts": "node[1-3]",
    "cores": "2-3",
    "host_cores": {"node2": [8]},
    "ports": {"e0": {"network": "rail0", "pci": "0000:3b:00.0", "queues": 2}},
}


def a_run(folder: Path, site: dict[str, Any], worker: str = "auto", load: str = "50%") -> Run:
    """Return a run of a ring; JSON is YAML too."""
    tests = [{"pattern": "ring", "count": 1, "load": load, "transport": "dpdk"}]
    values = {"switchbench": 1, "site": site, "worker": worker, "tests": tests}
    return compile_text(folder, json.dumps(values))


@pytest.mark.rows
def test_cores_of_a_lab(
    site: dict[str, Any], cores: int, usable: list[int] | None, says: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Processes get cores in rotation, and share them where there are fewer."""
    worker = site.get("worker", "auto")
    own = {key: value for key, value in site.items() if key != "worker"}
    run = a_run(tmp_path, {"lab": "one-switch", "nodes": 4} | own, worker)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(usable or range(cores)))
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    if isinstance(says, str):
        with pytest.raises(ConfigurationError, match=re.escape(says)):
            deal(run)
        return
    [(worker, dealt)] = says.items()
    assert deal(run) == Deal(worker, {name: tuple(own) for name, own in dealt.items()})
    polled = {core for own in dealt.values() for core in own}
    assert deal(run).polled == (polled if worker == "poll" else set())


def test_the_job_has_the_cores_of_each_host(tmp_path: Path) -> None:
    run = a_run(tmp_path, SITE)
    assert run.effective["site"]["host_cores"] == {"node2": [8]}
    assert [node["cores"] for node in job_document(run, "r")["nodes"]] == [[2, 3], [8], [2, 3]]
    job = job_document(run, "r", Deal("poll", {"node1": (4, 5)}))
    assert job["worker"] == "poll"
    assert [node.get("cores") for node in job["nodes"]] == [[4, 5], None, None]
    assert [node["ports"][0]["queues"] for node in job["nodes"]] == [2, 2, 2]
    assert written([5, 2, 3, 0]) == "0,2-3,5"


if __name__ == "__main__":
    os.cpu_count = lambda: 2
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            kept = DATA / f"transcripts/plan/{case}.txt"
            kept.write_text(transcript(case, Path(folder)))
