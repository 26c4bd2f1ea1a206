# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor says, that each lack has a remedy, and the check list of RDMA, which
doc/how-to/verbs.md shows."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from configs import PROJECT
from conftest import Command
from switchbench.base.model import Process, Site
from switchbench.cli import main
from switchbench.hosts import doctor
from switchbench.hosts.doctor import NOTE, OK


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an engine that says its version."""
    path = tmp_path / "switchbench-node"
    path.write_text("#!/bin/sh\necho switchbench-node 7.7\n")
    path.chmod(0o755)
    monkeypatch.setenv("SWITCHBENCH_NODE", str(path))
    return path


def found(checks: list[doctor.HostCheck], part: str, what: str) -> doctor.HostCheck:
    return next(check for check in checks if (check.part, check.what) == (part, what))


def test_every_lack_has_a_remedy_and_every_part_a_line(engine: Path, cli: Command) -> None:
    checks = doctor.examine()
    assert {check.part for check in checks} == {"engine", "dpdk", "verbs", "lab", "machine"}
    for check in checks:
        assert check.state in (doctor.OK, doctor.LACK, doctor.NOTE)
        assert check.state != doctor.LACK or check.remedy, check
        assert "{}" not in check.what + check.remedy
    found_engine = found(checks, "engine", "switchbench-node")
    assert (found_engine.state, found_engine.detail) == ("ok", f"switchbench-node 7.7, {engine}")
    assert doctor.can_run(checks)
    text = cli.prints("doctor")
    assert "engine   ok   switchbench-node: switchbench-node 7.7" in text
    assert all(f"-> {check.remedy}" in text for check in checks if check.remedy)
    result = json.loads(cli.prints("doctor", "--json"))
    assert result["can_run"] is True
    assert {"part", "what", "state", "detail", "remedy"} == set(result["checks"][0])


def test_without_an_engine_nothing_runs(monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    monkeypatch.setenv("SWITCHBENCH_NODE", "/nowhere/switchbench-node")
    said = cli.prints("doctor", status=3)
    assert "SWITCHBENCH_NODE=/nowhere/switchbench-node can't be executed" in said


def test_an_engine_that_lacks_a_library_is_said(engine: Path) -> None:
    loader = "error while loading shared libraries: librte_eal.so.23: cannot open"
    engine.write_text(f"#!/bin/sh\necho '{loader}' >&2\nexit 127\n")
    checks = doctor.examine()
    (check,) = [check for check in checks if check.part == "engine"]
    assert check.state == doctor.LACK
    assert "librte_eal.so.23" in check.detail
    assert "scripts/setup" in check.remedy
    assert not doctor.can_run(checks)


NO_BRIDGES = "bridges: the kernel has none"
RAW = {"_open_raw": lambda family: 0, "namespaces.has_capability": lambda number: number != 39}
WANTED = "cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock,cap_sys_admin"


def slow_clock(path: str) -> str:
    return "hpet"


@pytest.mark.parametrize(
    ("changes", "part", "what", "state", "detail", "remedy"),
    [
        ({"missing": lambda: {NO_BRIDGES: "modprobe"}}, "lab", NO_BRIDGES, "lack", "", "modprobe"),
        (RAW, "dpdk", "AF_PACKET", "ok", "", ""),
        (RAW, "dpdk", "AF_XDP", "lack", "not permitted", f"for example (it needs {WANTED})"),
        ({"_open_raw": lambda family: 97}, "dpdk", "AF_PACKET", "lack",
         "this kernel has no such socket", "a kernel with CONFIG_PACKET"),
        ({"_open_raw": lambda family: 1}, "dpdk", "AF_PACKET", "lack", "not permitted",
         "(it needs cap_net_raw,cap_net_admin"),
        ({"_text": slow_clock}, "machine", "clock", "note", "hpet", "clocksource=tsc"),
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


def test_hosts_of_the_command_line_are_asked(monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    """They were ignored: the local machine was checked, with status 0."""
    asked = []

    def survey(site: Site, processes: list[Process]) -> doctor.Survey:
        asked.extend(process.name for process in processes)
        return doctor.Survey([], {"node2": "it did not answer"}, [])

    monkeypatch.setattr(doctor, "survey", survey)
    said = cli.prints("doctor", "--hosts", "node[1-3]", "--iface", "eth7", status=3)
    assert asked == ["node1", "node2", "node3"]
    assert "node2: it did not answer" in said


@pytest.mark.parametrize("option", [["--iface", "eth7"], ["--nodes", "a"], ["--set", "x=1"]])
def test_what_is_about_hosts_needs_hosts(option: list[str], cli: Command) -> None:
    said = cli.refuses("doctor", *option)
    assert "applies to the hosts of a site: also give --site FILE or --hosts" in said


# --- the check list of RDMA on hosts made of files, and that doc/how-to/verbs.md show -------------


class Machine:
    """A host's /sys and /dev in a folder, with one RoCE device unless changed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        monkeypatch.setattr(doctor, "ROOT", folder)
        self.asks(memlock_bytes=None, geteuid=7)
        self.file("dev/infiniband/uverbs0", "")
        self.file("sys/class/infiniband/mlx5_0/fw_ver", "20.31")
        for name, text in (("state", "4: ACTIVE"), ("link_layer", "Ethernet"), ("rate", "100 Gb/s"),
                           ("gid_attrs/types/0", "IB/RoCE v1"),
                           ("gid_attrs/types/1", "RoCE v2")):  # fmt: skip
            self.port(name, text)

    def asks(self, **answers: Any) -> None:
        """Answer what the host is asked with these values."""
        for name, answer in answers.items():
            owner = doctor.os if name in ("geteuid", "access") else doctor
            self.monkeypatch.setattr(owner, name, lambda *_, answer=answer: answer)

    def file(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def port(self, name: str, text: str) -> None:
        self.file(f"sys/class/infiniband/mlx5_0/ports/1/{name}", text)

    def drop(self, path: str) -> None:
        (self.folder / path).unlink()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a host on which all is well."""
    return Machine(tmp_path, monkeypatch)


def test_all_is_well(machine: Machine) -> None:
    assert [(check.what, check.state, check.detail) for check in doctor.examine_rdma()] == [
        ("RDMA device", OK, "mlx5_0/1"),
        ("mlx5_0/1 firmware", OK, "20.31"),
        ("mlx5_0/1 state", OK, "4: ACTIVE"),
        ("mlx5_0/1 rate", OK, "100 Gb/s"),
        ("mlx5_0/1 link_layer", OK, "Ethernet"),
        ("mlx5_0/1 gids", OK, "0: IB/RoCE v1, 1: RoCE v2"),
    ]


@pytest.mark.rows
def test_what_is_found_of_rdma(
    changes: list[list[Any]], what: str, state: str, detail: str, machine: Machine
) -> None:
    for act, *words in changes:
        named = words.pop() if isinstance(words[-1], dict) else {}
        getattr(machine, act)(*words, **named)
    found = {check.what: check for check in doctor.examine_rdma()}
    if not state:
        assert what not in found
        return
    check = found[what]
    assert (check.state, check.detail) == (state, detail)
    assert bool(check.remedy) is (state != OK)


def test_without_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note names the way to have a device in software; no further check follows."""
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    (check,) = doctor.examine_rdma()
    assert (check.state, check.detail) == (NOTE, "none")
    assert "rdma link add rxe0 type rxe" in check.remedy


def test_doc_has_the_check_list() -> None:
    """doc/how-to/verbs.md shows the list as it is."""
    text = (PROJECT / "doc" / "how-to" / "verbs.md").read_text()
    rows = [
        f"| {item.what} | {item.remedy} |"
        for item in doctor.CHECK_LIST.values()
        if item.part == "verbs"
    ]
    assert "\n".join(["| check | what to do |", "| --- | --- |", *rows]) in text
