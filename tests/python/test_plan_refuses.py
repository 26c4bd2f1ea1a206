# SPDX-License-Identifier: BSD-3-Clause
"""What `run` would refuse `plan` refuses: where it stands, what is wrong, what to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from configs import PROJECT, needs_engine
from switchbench.cli.main import main
from switchbench.run.controller.rates import CORE_FPS

pytestmark = needs_engine

LAB = "switchbench: 1\nsite: {lab: one-switch}\ntransport: dpdk\n"
SUITE = "switchbench: 1\nsite: {lab: one-switch}\nsuite: rfc2544\n"
PAIRS = LAB + "tests: [{pattern: pairs, ranks: [2]}]\n"
CLAUSE = PAIRS + "expect:\n- {id: a, clause: b, measure: lost_frames, over: run, "
HOSTS = """\
switchbench: 1
site:
  launch: ssh
  hosts: [a, b]
  ports:
    e0: {network: lan, iface: eth0, transports: [dpdk]}
"""
HEADER = "tests: [{pattern: pairs, transport: dpdk, dpdk: {header: ipv4-udp}}]\n"

BOMB = "a0: &a0 [x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]\n" for i in range(1, 40)
)

REFUSED = {
    "a window of nothing": (
        PAIRS + "window: 0s\n",
        5,
        "window: 0ns is too short to measure in: 1ms at least",
    ),
    "a window of 1 ns": (PAIRS + "window: 1ns\n", 5, "window: 1ns is too short"),
    "a timeout of nothing": (
        PAIRS + "switch_counters: {command: [x], timeout: 0s}\n",
        5,
        'switch_counters.timeout: found "0s", but a timeout is longer than 0',
    ),
    "a window of ages": (PAIRS + "window: 99999999999h\n", 5, "at most 720h"),
    "small frames on a fast veth": (
        "switchbench: 1\nsite: {lab: one-switch, rate: 100G}\ntransport: dpdk\n"
        "tests:\n- {pattern: pairs, ranks: [2], frame_sizes: [64]}\n",
        5,
        "1.41369e+08 frames/s (trial 0) are more than 1 core(s) can send with af_packet: 1e+06",
    ),
    "an address that is none": (
        HOSTS + "  overrides: {a: {e0: {ipv4: 300.1.1.1/24}}}\n" + HEADER,
        7,
        '"300.1.1.1/24" is no IPv4 address with its prefix, such as 198.18.0.1/16',
    ),
    "an address of the other kind": (
        HOSTS + "  overrides: {a: {e0: {ipv6: 198.18.0.1/16}}}\n" + HEADER,
        7,
        '"198.18.0.1/16" is no IPv6 address',
    ),
    "no wiring file": (HOSTS + "  wiring: nowhere.csv\n" + HEADER, 7, "there is no file "),
    "shares of a transfer": (
        LAB + "tests:\n- {pattern: flows, traffic: transfer, "
        "flows: [[node1, node2, 75%], [node1, node3]]}\n",
        5,
        "tests.0.flows: shares are not implemented for traffic: transfer: use traffic: stream or",
    ),
    "a negative rank": (
        LAB + "tests:\n- {pattern: flows, flows: [[-1, 0]]}\n",
        5,
        "tests.0.flows.0: there is no rank -1",
    ),
    "a search without width": (
        SUITE + "suite_parameters: {width: 1}\n",
        4,
        "suite_parameters.width: found 1.0, but a number from 1e-06 to 0.5 is needed",
    ),
    "trials without end": (
        SUITE + "suite_parameters: {latency_repeats: 1000000000000}\n",
        4,
        "latency_repeats: found 1000000000000.0, but a whole number from 1 to 10000 is needed",
    ),
    "steps without end": (
        SUITE + "suite_parameters: {loss_step_percent: 0.000000001}\n",
        4,
        "but a number from 0.01 to 10 is needed",
    ),
    "half a repeat": (
        SUITE + "suite_parameters: {repeats: 0.5}\n",
        4,
        "suite_parameters.repeats: found 0.5, but a whole number from 1 to 10000 is needed",
    ),
    "a first trial longer than the last": (
        SUITE + "suite_parameters: {trial_s: 1, initial_s: 5}\n",
        4,
        "suite_parameters: initial_s, 5, is longer than trial_s, 1",
    ),
    "an unquoted comparison": (CLAUSE + "require: >= 90}\n", 6, 'in quotes: require: ">= 90"'),
    "an unquoted comparison on its line": (
        PAIRS + "expect:\n- id: a\n  measure: lost_frames\n  require: >= 90\n",
        8,
        'in quotes: require: ">= 90"',
    ),
    "a number alone": (CLAUSE + "require: 0}\n", 6, 'a comparison is needed, such as "== 0"'),
    "brackets without end": (
        "switchbench: 1\nsite: " + 3000 * "[" + 3000 * "]",
        2,
        "lists and mappings are more than 64 deep",
    ),
    "aliases without end": (
        "switchbench: 1\n" + BOMB,
        7,
        "more than 50000 values, those of aliases counted each time",
    ),
    "a letter that is none": (PAIRS + "log: \a\n", 5, "the character U+0007 is no text"),
    "a rate in bytes": (PAIRS + "load: 100MB/s\n", 5, "a rate is in bits: write 800Mbit"),
    "two documents": (PAIRS + "---\n" + PAIRS, 5, "a second document begins here"),
    "a merge key": (
        PAIRS + "dpdk: &d {burst: 8}\nsweep: {<<: *d}\n",
        6,
        "<<: merge keys are not part of YAML 1.2",
    ),
    "another encoding": (PAIRS.encode() + b"# caf\xe9\n", 5, "is not UTF-8 text: byte 0xe9"),
    "another encoding altogether": (PAIRS.encode("utf-16"), 1, "is UTF-16 text: save it as UTF-8"),
    "a lab's misspelt name": (
        PAIRS.replace("one-switch", "one-swich"),
        2,
        'did you mean "one-switch"?',
    ),
    "a limit of time": (
        PAIRS + "time_limit: 10ms\n",
        5,
        " s, more than the 10ms allowed",
    ),
    "cores that are not there": (
        "switchbench: 1\nsite: {lab: one-switch, cores: 900-903}\n" + "tests: [{pattern: pairs}]\n",
        2,
        "site.cores: 900-903: this machine has only",
    ),
    "a core each where there are two": (
        LAB + "tests: [{pattern: pairs}]\nworker: poll\n",
        5,
        "worker: poll: 8 node processes need a core each",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_plan_refuses(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    text, line, sentence = REFUSED[name]
    path = tmp_path / "conf.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["plan", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"switchbench: {path}:{line}: ")
    assert sentence in said.err
    assert said.err.count("\n") == 1


SET_REFUSED = {
    "expect.0.require=0": "expect: found a mapping, but a list is needed",
    "about.switches.model=x": "about.switches: found a mapping, but a list is needed",
    "a.b.c=1": "a: unknown key",
    f"tests.{'9' * 5000}.load=5%": "there is no tests.99",
    f"{'a.' * 3000}b=1": "the key has more than 64 parts",
    "dpdk={burst: 1, burst: 2}": "burst: duplicate key",
    "tests.0.ranks=[99]": "tests.0.ranks: 99 ranks are more than the 8 ports",
}


@pytest.mark.parametrize("argument", SET_REFUSED)
def test_an_assignments_mistake_is_its_own(
    argument: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not blamed on the file."""
    path = tmp_path / "conf.yaml"
    path.write_text(PAIRS)
    assert main(["plan", str(path), "--set", argument]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    start = f"switchbench: --set {argument}"
    assert said.err.startswith(start if len(start) < 200 else start[:200])
    assert f": {SET_REFUSED[argument]}" in said.err
    assert str(path) not in said.err


WIRING = {
    b"a:e0,s,\xe9\n": ":1: is not UTF-8 text: byte 0xe9; save it as UTF-8",
    b"a:e0,s," + 140_000 * b"1": ":1: is not CSV: field larger than field limit",
    b"#" * (5 << 20): ": is too large to be read: more than 4 MiB of text",
    b"a:e0,s\n": ":1: needs host:port,switch,switch_port",
}


@pytest.mark.parametrize("content", WIRING, ids=list(WIRING.values()))
def test_a_wiring_file_that_is_none(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, wiring = tmp_path / "conf.yaml", tmp_path / "wiring.csv"
    path.write_text(HOSTS + "  wiring: wiring.csv\n" + HEADER)
    wiring.write_bytes(content)
    assert main(["plan", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"switchbench: {path}:7: site.wiring: {wiring}{WIRING[content]}")


def test_a_wiring_files_misspelt_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(HOSTS + "  wiring: wirring.csv\n" + HEADER)
    (tmp_path / "wiring.csv").write_text("")
    assert main(["plan", str(path)]) == 2
    assert 'did you mean "wiring.csv"?' in capsys.readouterr().err


def test_phases_that_no_plan_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(LAB + "tests: [{pattern: aapc}, {pattern: pairs}]\n")
    assert main(["plan", str(path), "--phases", "0,6-8"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "switchbench: --phases 7-8: the plans have phases 0 to 6\n")


def test_a_folder_is_no_misspelt_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"switchbench: {tmp_path}: can't be read: Is a directory\n"


def test_a_files_misspelt_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the folder it was looked for in, and of the examples."""
    monkeypatch.chdir(tmp_path)
    Path("acceptance-hall.yaml").write_text(PAIRS)
    for typed, meant in (
        ("aceptance-hall.yaml", "acceptance-hall.yaml"),
        ("four-matrixes", "four-matrices"),
    ):
        assert main(["plan", typed]) == 2
        assert f'did you mean "{meant}"?' in capsys.readouterr().err


def test_an_unknown_option_is_answered_with_its_commands_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "four-matrices", "--results", "x"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: switchbench plan ")
    assert "switchbench plan: error: unrecognized arguments: --results x" in said


def test_a_later_form_of_a_setting_replaces_an_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(PAIRS)
    assert main(["plan", str(path), "--set", "transports=[tcp]", "--set", "transport=dpdk"]) == 0
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines() if " pairs" in line]
    assert rows[0] == ["0", "pairs", "partners=neighbours"]
    assert len([row for row in rows if row[0].isdigit()]) == 1


def test_what_a_core_can_send_is_what_the_engine_says() -> None:
    """The engine refuses more (engine/transport/dpdk/port.c); labs have these two drivers."""
    source = (PROJECT / "engine/transport/dpdk/port.c").read_text()
    bounds = dict(re.findall(r'\{"net_(\w+)", ([\de.]+)\}', source))
    assert {name: float(bounds[name]) for name in CORE_FPS} == CORE_FPS
