# SPDX-License-Identifier: BSD-3-Clause
"""Labs with a modelled switch, before anything is made: descriptions, ports, refusals."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from configs import read_text
from switchbench.base.errors import ConfigurationError, RunError
from switchbench.base.model import Site
from switchbench.labs import load, state, switches
from switchbench.labs.state import LabError
from switchbench.run.launch import lab

TEST = "tests: [{pattern: chain}]\n"


def site_of(folder: Path, text: str) -> Site:
    """The site of a configuration."""
    return read_text(folder, f"switchbench: 1\nsite: {text}\n{TEST}").site


def described(name: str, **model: Any) -> list[dict[str, Any]]:
    """What the switches of a lab read."""
    return list(switches.descriptions("x", load(name, {"model": model})))


def test_a_node_has_a_port_for_each_transport(tmp_path: Path) -> None:
    site = site_of(tmp_path, "{lab: model-good}")
    engine = site.ports[2].engine
    (switch,) = described("model-good")
    port = switch["ports"][2]
    assert port["name"] == "node3"
    assert (port["rate_bps"], port["buffer"]) == (100_000_000, 262_144)
    assert engine["vdev"].startswith("net_memif3,role=client,id=3,")
    assert port["vdev"].startswith("net_memif3,role=server,id=3,")
    assert port["iface"] == "p3"
    assert engine["iface"] == "eth0"


def test_a_trunk_has_one_server(tmp_path: Path) -> None:
    left, right = described("model-e7")
    ends = [switch["ports"][-1] for switch in (left, right)]
    assert [end["trunk"] for end in ends] == [True, True]
    assert ["role=server" in end["vdev"] for end in ends] == [True, False]
    assert [step["ports"] for step in ends[0]["rates"]] == [7, 8, 12, 48]
    assert "rate_bps" not in ends[0]
    assert left["capacity"][0] == {"ports": 14, "bps": 133_237_000}


def test_faults_go_to_the_module_of_their_ports() -> None:
    faults = [
        {"kind": "drop", "in": "node30"},
        {"kind": "flood", "module": "right"},
        {"kind": "duplicate", "one_in": 9},
        {"kind": "slow", "port": "node2", "rate": "1M"},
    ]
    left, right = described("model-e7", faults=faults)
    assert [fault["kind"] for fault in right["faults"]] == ["drop", "flood"]
    assert left["faults"] == [
        {"kind": "duplicate", "one_in": 9},
        {"kind": "slow", "port": "node2", "rate_bps": 1_000_000},
    ]


def test_a_lab_is_found_as_it_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its topology with all that its switch is told; a file of another form is named."""
    monkeypatch.setattr(state, "RUN_DIR", tmp_path)
    model = {
        "memory": "1MiB",
        "capacity": [{"ports": 2, "rate": "133.237M"}],
        "faults": [
            {"kind": "slow", "port": "node2", "rate": "1M"},
            {"kind": "drop", "in": "node1"},
        ],
    }
    left = state.LabState("x", load("model-good", {"model": model}), kept=True)
    state.write(left)
    assert state.read("x") == left
    (tmp_path / "x.json").write_text('{"kept": true, "topology": {}}')
    with pytest.raises(LabError, match="is not a lab's state"):
        state.read("x")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{lab: model-good, queues: 2}", "one queue each"),
        ("{lab: one-switch, model: {seed: 1}}", "goes with `kind: model` only"),
        ("{lab: model-good, model: {sed: 1}}", "is not a key that a topology has here"),
        ("{lab: model-good, model: {faults: [{kind: dead}]}}", "which node's port is dead"),
        (
            "{lab: model-e7, model: {faults: [{kind: drop, in: node1, out: node30}]}}",
            "of several modules",
        ),
    ],
)
def test_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        site_of(tmp_path, text)


# --- reports ---


def test_a_report_may_take_long_as_long_as_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch of 65,000 flows writes for longer than the time in which it must begin."""
    monkeypatch.setattr(state, "RUN_DIR", tmp_path)
    monkeypatch.setattr(switches, "_REPORT_S", 0.3)
    monkeypatch.setattr(switches, "_say", lambda *_: None)
    records = tmp_path / "x.m0.ndjson"
    records.write_text('{"type": "ready"}\n')
    topology = load("model-good", {})

    def write(count: int, total: bool) -> None:
        for number in range(count):
            time.sleep(0.1)
            with records.open("a") as file:
                file.write(json.dumps({"type": "flow", "number": number})[:9])
                file.flush()
                file.write(json.dumps({"type": "flow", "number": number})[9:] + "\n")
        if total:
            with records.open("a") as file:
                file.write('{"type": "total"}\n')

    writer = threading.Thread(target=write, args=(8, True))
    writer.start()
    found = switches.report("x", topology)
    writer.join()
    assert [record.get("number") for record in found] == [*range(8), None]
    writer = threading.Thread(target=write, args=(2, False))
    writer.start()
    with pytest.raises(LabError, match="report did not go on within 0 s"):
        switches.report("x", topology)
    writer.join()


def test_a_switch_that_dies_while_it_starts_is_no_bad_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was status 2; what was asked for was right, and the run could not be completed: 3."""
    process = subprocess.Popen(["false"])
    process.wait()
    monkeypatch.setattr(switches.state, "RUN_DIR", tmp_path)
    (tmp_path / "x.m0.ndjson").touch()

    @contextmanager
    def session(_topology: Any) -> Iterator[None]:
        switches._await_ready("x", 0, process, time.monotonic() + 5)
        yield

    monkeypatch.setattr(lab.lab, "session", session)
    monkeypatch.setattr(lab.namespaces, "enter_user_namespace", lambda: None)
    with (
        pytest.raises(RunError, match="ended with status 1"),
        lab.LabLauncher(site_of(tmp_path, "{lab: model-good}")),
    ):
        pass
