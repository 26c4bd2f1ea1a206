# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor says, and that each lack has a remedy."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from switchbench.base.model import Process, Site
from switchbench.cli import main
from switchbench.hosts import alike, doctor
from switchbench.labs import load, state
from switchbench.labs.devices import Missing


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine that says its version."""
    path = tmp_path / "switchbench-node"
    path.write_text("#!/bin/sh\necho switchbench-node 7.7\n")
    path.chmod(0o755)
    monkeypatch.setenv("SWITCHBENCH_NODE", str(path))
    return path


def found(checks: list[doctor.HostCheck], part: str, what: str) -> doctor.HostCheck:
    return next(check for check in checks if (check.part, check.what) == (part, what))


def test_every_lack_has_a_remedy_and_every_part_a_line(
    engine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = doctor.examine()
    assert {check.part for check in checks} == {"engine", "tcp", "dpdk", "verbs", "lab", "machine"}
    for check in checks:
        assert check.state in (doctor.OK, doctor.LACK, doctor.NOTE)
        assert check.state != doctor.LACK or check.remedy, check
        assert "{}" not in check.what + check.remedy
    found_engine = found(checks, "engine", "switchbench-node")
    assert (found_engine.state, found_engine.detail) == ("ok", f"switchbench-node 7.7, {engine}")
    tcp = found(checks, "tcp", "kernel sockets")
    assert (tcp.state, tcp.detail[:18]) == (doctor.OK, "needs no privilege")
    assert doctor.can_run(checks)
    assert main.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "engine   ok   switchbench-node: switchbench-node 7.7" in text
    assert all(f"-> {check.remedy}" in text for check in checks if check.remedy)
    assert main.main(["doctor", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["can_run"] is True
    assert {"part", "what", "state", "detail", "remedy"} == set(result["checks"][0])


def test_without_an_engine_nothing_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWITCHBENCH_NODE", "/nowhere/switchbench-node")
    assert main.main(["doctor"]) == 3
    assert "SWITCHBENCH_NODE=/nowhere/switchbench-node can't be executed" in capsys.readouterr().out


def test_an_engine_that_lacks_a_library_is_said(engine: Path) -> None:
    loader = "error while loading shared libraries: librte_eal.so.23: cannot open"
    engine.write_text(f"#!/bin/sh\necho '{loader}' >&2\nexit 127\n")
    checks = doctor.examine()
    (check,) = [check for check in checks if check.part == "engine"]
    assert check.state == doctor.LACK
    assert "librte_eal.so.23" in check.detail
    assert "scripts/setup" in check.remedy
    assert not doctor.can_run(checks)


LAB_LACKS = Missing("bridges: the kernel has none", "`modprobe -a bridge` as root")
OVS = {"switches._found": lambda program: f"/usr/bin/{program}", "switches.TUN": Path("/")}
NO_OVS = {"switches._found": lambda program: None if program == "ovs-vsctl" else program}
NO_TUN = {"switches.TUN": Path("/nowhere/tun")}
RAW = {"_open_raw": lambda family: None, "_capable": lambda name: name != "cap_bpf"}
WANTED = "cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock,cap_sys_admin"


def no_family(_family: int) -> None:
    raise OSError(97, os.strerror(97))


def slow_clock(path: Path) -> str:
    return "hpet" if path.name == "current_clocksource" else ""


@pytest.mark.parametrize(
    ("changes", "part", "what", "state", "detail", "remedy"),
    [
        ({"missing": lambda: [LAB_LACKS]}, "lab", LAB_LACKS.what, "lack", "", LAB_LACKS.remedy),
        # Labs of one kind need Open vSwitch, so it is a note.
        (OVS, "lab", "Open vSwitch", "ok", "for labs of kind ovs", ""),
        (OVS | NO_TUN, "lab", "Open vSwitch", "note", "there is no /nowhere/tun", "`modprobe tun`"),
        (NO_OVS, "lab", "Open vSwitch", "note", "ovs-vsctl is not installed",
         "kind ovs: `apt-get install openvswitch-switch`"),
        (RAW, "dpdk", "AF_PACKET", "ok", "", ""),
        # They are put on the file that a link leads to: setcap refuses a link.
        (RAW, "dpdk", "AF_XDP", "lack", "not permitted", f"setcap {WANTED}+ep {{engine}}`"),
        ({"_open_raw": no_family}, "dpdk", "AF_PACKET", "lack", "this kernel has none",
         "a kernel with CONFIG_PACKET"),
        ({"_text": slow_clock}, "machine", "clock", "note", "hpet is slow to read", ""),
    ],
)  # fmt: skip
def test_what_is_found(
    changes: dict[str, Any], part: str, what: str, state: str, detail: str, remedy: str,
    engine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    link = tmp_path / "bin/switchbench-node"
    link.parent.mkdir()
    link.symlink_to(engine)
    monkeypatch.setenv("SWITCHBENCH_NODE", str(link))
    for name, value in changes.items():
        monkeypatch.setattr(f"switchbench.hosts.doctor.{name}", value)
    check = found(doctor.examine(), part, what)
    assert (check.state, check.detail[: len(detail)]) == (state, detail)
    assert remedy.format(engine=engine) in check.remedy


def test_a_terminal_without_a_character_ends_nothing(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old terminal's encoding, or none (LC_ALL=C): `?` stands for what it lacks."""
    check = doctor.HostCheck("machine", "clock", doctor.NOTE, "0,5 \N{MICRO SIGN}s", "\N{EM DASH}")
    monkeypatch.setattr(doctor, "_EXAMINERS", (lambda: iter([check]),))
    streams = {name: io.TextIOWrapper(io.BytesIO(), "ascii") for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    assert main.main(["doctor"]) == 0
    assert main.main(["plan", "/nowhere/caf\N{LATIN SMALL LETTER E WITH ACUTE}.yaml"]) == 2
    said = {}
    for name, stream in streams.items():
        stream.flush()
        stream.buffer.seek(0)
        said[name] = stream.buffer.read()
    assert b"0,5 ?s" in said["stdout"]
    assert b"-> ?" in said["stdout"]
    assert b"/nowhere/caf?.yaml" in said["stderr"]


def test_without_privilege_the_remedy_is_exact(engine: Path) -> None:
    """As another user: raw sockets are refused, tcp is not."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    code = (
        "import os, json, sys\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "from switchbench.hosts import doctor\n"
        "checks = [c for f in (doctor._tcp, doctor._packet_sockets) for c in f()]\n"
        "print(json.dumps([[c.what, c.state, c.remedy] for c in checks]))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if result.returncode != 0 and "Permission" in result.stderr:
        pytest.skip("the package can't be read by another user")
    states = {what: (state, remedy) for what, state, remedy in json.loads(result.stdout)}
    assert states["kernel sockets"][0] == doctor.OK
    for family in ("AF_PACKET", "AF_XDP"):
        assert states[family][0] == doctor.LACK
        assert "setcap cap_net_raw,cap_net_admin" in states[family][1]


def test_hosts_of_the_command_line_are_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were ignored: the local machine was checked, with status 0."""
    asked = []

    def survey(site: Site, processes: list[Process]) -> alike.Survey:
        asked.extend(process.name for process in processes)
        return alike.Survey([], {"node2": "it did not answer"}, [])

    monkeypatch.setattr(alike, "survey", survey)
    assert main.main(["doctor", "--hosts", "node[1-3]", "--iface", "eth7"]) == 3
    assert asked == ["node1", "node2", "node3"]
    assert "node2: it did not answer" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--iface", "eth7"], ["--nodes", "a"], ["--set", "x=1"]])
def test_what_is_about_hosts_needs_hosts(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["doctor", *option]) == 2
    assert "is about the hosts of a site: give --site FILE or --hosts" in capsys.readouterr().err


def test_what_a_killed_run_left_is_named(
    engine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After `kill -9` of the command nine namespaces stayed, and nothing said so."""
    monkeypatch.setattr(state, "RUN_DIR", tmp_path)
    topology = load("one-switch", {})
    state.write(state.LabState("one-switch", topology, kept=False))
    check = found(doctor.examine(), "lab", "one-switch")
    assert check.state == doctor.NOTE
    assert check.detail == "9 namespaces of a run whose command was killed"
    assert "switchbench lab down one-switch" in check.remedy
    with state.locked("one-switch"):  # a run that goes on
        assert not [check for check in doctor.examine() if check.what == "one-switch"]
    state.write(state.LabState("one-switch", topology, kept=True))
    assert not [check for check in doctor.examine() if check.what == "one-switch"]
