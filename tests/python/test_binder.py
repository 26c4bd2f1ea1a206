# SPDX-License-Identifier: BSD-3-Clause
"""PCI ports of a run: a program on each host binds them when its node asks, and restores them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hostkit import plan
from switchbench.base.errors import SwitchbenchError
from switchbench.base.model import Process, Run
from switchbench.base.programs import port_binding_words
from switchbench.plan import documents
from switchbench.run import controller
from switchbench.run.controller import Binder
from switchbench.run.launch.far import Launcher, piped

# Stands for the program: notes what it does.
PROGRAM = """\
import os, sys
path = os.environ["NOTE"]
def note(text): open(path, "a").write(text + " ")
if os.path.exists(path + ".refuse"): print("it is blocked", file=sys.stderr); sys.exit(2)
note(sys.argv[1]); print("ready", flush=True)
while line := sys.stdin.buffer.readline(): note(line.decode().strip())
if os.path.exists(path + ".stuck"): print("it does not come back", file=sys.stderr); sys.exit(3)
note("restore")
"""


class Here(Launcher):
    """A launcher that starts the program on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def port_binding(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        line = [sys.executable, *port_binding_words(words)[1:]]
        env = {"NOTE": str(self.folder / process.name)}
        self.started[process.name] = piped(line, env=env)
        return self.started[process.name]

    def noted(self) -> dict[str, str]:
        return {path.name: path.read_text().strip() for path in self.folder.glob("node?")}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setattr("switchbench.base.programs.PORT_BINDING", program)
    monkeypatch.setattr(controller, "PORT_BINDING", program)
    (tmp_path / "notes").mkdir()
    return Here(tmp_path / "notes")


def run_of(tmp_path: Path, transport: str = "dpdk") -> Run:
    return plan(
        tmp_path,
        hosts="node[1-2]",
        ports={"e0": {"network": "n", "pci": "0000:3b:00.0", "line_rate": "1Gbit"}},
        bind={"driver": "vfio-pci", "hugepages": 64},
        control={"addresses": {"node1": "127.0.0.1", "node2": "127.0.0.2"}},
        tests=[{"pattern": "pairs", "transport": transport}],
    )


def started(tmp_path: Path, here: Here, transport: str = "dpdk") -> Binder:
    run, made = run_of(tmp_path, transport), Binder()
    made.start(run.site, documents.job_document(run, "x"), here)
    return made


def test_a_host_binds_when_its_node_asks(tmp_path: Path, here: Here) -> None:
    made = started(tmp_path, here)
    made.bind("node2")
    made.check()
    assert made.close() == []
    assert here.noted() == {"node1": "hold restore", "node2": "hold bind restore"}


def test_a_port_that_dpdk_does_not_use_stays(tmp_path: Path, here: Here) -> None:
    made = started(tmp_path, here, "tcp")
    assert here.started == {}
    assert made.close() == []


def test_what_is_blocked_ends_the_run_before_it_begins(tmp_path: Path, here: Here) -> None:
    (here.folder / "node2.refuse").touch()
    made = Binder()
    run = run_of(tmp_path)
    with pytest.raises(SwitchbenchError, match="node2: it is blocked") as error:
        made.start(run.site, documents.job_document(run, "x"), here)
    assert error.value.status == 2
    assert [str(fault) for fault in made.close()] == []
    assert here.noted() == {"node1": "hold restore"}


def test_a_program_that_is_killed_ends_the_run(tmp_path: Path, here: Here) -> None:
    made = started(tmp_path, here)
    here.started["node1"].kill()
    here.started["node1"].wait()
    with pytest.raises(SwitchbenchError, match=r"node1: the program .* ended with status -9"):
        made.check()
    assert made.close() == []
    assert here.noted()["node2"] == "hold restore"


def test_a_port_that_does_not_come_back_is_said(tmp_path: Path, here: Here) -> None:
    (here.folder / "node1.stuck").touch()
    made = started(tmp_path, here)
    [fault] = made.close()
    assert (str(fault), fault.status) == ("node1: it does not come back", 3)
