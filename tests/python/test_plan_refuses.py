# SPDX-License-Identifier: BSD-3-Clause
"""What `run` would refuse `plan` refuses: where it stands, what is wrong, what to write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from configs import PROJECT, needs_engine, write_files
from switchbench.base.source import read_file
from switchbench.cli.main import main
from switchbench.plan.documents import CORE_FPS

pytestmark = needs_engine

SWITCH = "switchbench: 1\nsite: {lab: one-switch}\n"
LAB = SWITCH + "transport: dpdk\n"
PAIRS = LAB + "tests: [{pattern: pairs, ranks: [2]}]\n"
HOSTS = """\
switchbench: 1
site:
  launch: ssh
  hosts: [a, b]
  ports: {e0: {network: lan, iface: eth0}}
  wiring: wiring.csv
"""

BOMB = "a0: &a0 [x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]\n" for i in range(1, 40)
)

CASES: dict[str, dict[str, Any]] = read_file(PROJECT / "tests/python/data/refused.yaml").data
REFUSED: dict[str, tuple[str | bytes, str | list[str]]] = {
    name: (case["text"], case["says"]) for name, case in CASES.items()
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
        f'4: tests.0.window: "{"7" * 56}..." is a number of 5001 digits',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_plan_refuses(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mistake is one sentence: where, which key, what was found, what is possible."""
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    content, says = REFUSED[name]
    path = write_files(tmp_path, "")
    for file, beside in CASES.get(name, {}).get("files", {}).items():
        (tmp_path / file).write_text(beside)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["plan", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = [says] if isinstance(says, str) else says
    text = "\n".join(f"{path}:{one}" for one in lines).replace("{folder}", str(tmp_path))
    assert re.sub(r" \[SB-[A-Z, -]+\]$", "", said.err) == f"switchbench: {text}\n"


SET_REFUSED = {
    f"tests.{'9' * 5000}.load=5%": "there is no tests.99",
    f"{'a.' * 3000}b=1": "the key has more than 64 parts",
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


def test_a_wiring_file_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, wiring = tmp_path / "conf.yaml", tmp_path / "wiring.csv"
    path.write_text(HOSTS)
    wiring.write_text("a:e0,s," + 140_000 * "1")
    assert main(["plan", str(path)]) == 2
    says = f"{path}:6: site.wiring: {wiring}:1: is not CSV: field larger than field limit"
    assert capsys.readouterr().err.startswith(f"switchbench: {says}")


def test_what_a_core_can_send_is_what_the_engine_says() -> None:
    """The engine refuses more (engine/transport/dpdk/port.c); labs have these two drivers."""
    source = (PROJECT / "engine/transport/dpdk/port.c").read_text()
    bounds = dict(re.findall(r'\{"net_(\w+)", ([\de.]+)\}', source))
    assert {name: float(bounds[name]) for name in CORE_FPS} == CORE_FPS
