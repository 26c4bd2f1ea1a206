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


def test_tcp_needs_nothing(engine: Path) -> None:
    check = found(doctor.examine(), "tcp", "kernel sockets")
    assert check.state == doctor.OK
    assert "no privilege" in check.detail


def test_what_a_lab_lacks_is_shown_with_its_remedy(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack = Missing("bridges: the kernel has none", "`modprobe -a bridge` as root")
    monkeypatch.setattr(doctor, "missing", lambda: [lack])
    check = found(doctor.examine(), "lab", lack.what)
    assert (check.state, check.remedy) == (doctor.LACK, lack.remedy)


def test_open_vswitch_is_looked_for(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labs of one kind need it, so it is a note."""
    monkeypatch.setattr(doctor.switches, "TUN", engine)
    monkeypatch.setattr(doctor.switches, "_found", lambda program: f"/usr/bin/{program}")
    check = found(doctor.examine(), "lab", "Open vSwitch")
    assert (check.state, check.detail) == (doctor.OK, "for labs of kind ovs")
    monkeypatch.setattr(doctor.switches, "TUN", Path("/nowhere/tun"))
    check = found(doctor.examine(), "lab", "Open vSwitch")
    assert (check.state, check.detail) == (doctor.NOTE, "there is no /nowhere/tun")
    monkeypatch.setattr(
        doctor.switches, "_found", lambda program: None if program == "ovs-vsctl" else program
    )
    check = found(doctor.examine(), "lab", "Open vSwitch")
    assert (check.state, check.detail) == (doctor.NOTE, "ovs-vsctl is not installed")
    assert "kind ovs: `apt-get install openvswitch-switch`" in check.remedy


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


def test_capabilities_that_are_missing_are_named(
    engine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are put on the file that a link leads to: setcap refuses a link."""
    link = tmp_path / "bin" / "switchbench-node"
    link.parent.mkdir()
    link.symlink_to("../switchbench-node")
    monkeypatch.setenv("SWITCHBENCH_NODE", str(link))
    monkeypatch.setattr(doctor, "_capable", lambda name: name != "cap_bpf")
    monkeypatch.setattr(doctor, "_open_raw", lambda family: None)
    checks = doctor.examine()
    assert found(checks, "dpdk", "AF_PACKET").state == doctor.OK
    xdp = found(checks, "dpdk", "AF_XDP")
    assert xdp.state == doctor.LACK
    wanted = "cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock,cap_sys_admin"
    assert f"setcap {wanted}+ep {engine}`" in xdp.remedy

    def refuse(_family: int) -> None:
        raise OSError(97, os.strerror(97))

    monkeypatch.setattr(doctor, "_open_raw", refuse)
    check = found(doctor.examine(), "dpdk", "AF_PACKET")
    assert (check.detail, check.remedy) == ("this kernel has none", "a kernel with CONFIG_PACKET")


def test_a_slow_clock_is_noted(
    engine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read = Path.read_text

    def pretend(path: Path, *args: Any, **options: Any) -> str:
        return "hpet\n" if path.name == "current_clocksource" else read(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", pretend)
    check = found(doctor.examine(), "machine", "clock")
    assert (check.state, check.detail) == (doctor.NOTE, "hpet is slow to read")


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
