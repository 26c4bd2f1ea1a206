# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor says, that each lack has a remedy, and the check list of RDMA, which
doc/how-to/verbs.md shows."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from configs import PROJECT
from conftest import Command
from switchbench.base.model import Process, Site
from switchbench.cli import main
from switchbench.hosts import alike, doctor
from switchbench.hosts.doctor import NOTE, OK, HostCheck
from switchbench.labs import load, state


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
OVS = {"switches._found": lambda program: f"/usr/bin/{program}", "switches.TUN": Path("/")}
NO_OVS = {"switches._found": lambda program: None if program == "ovs-vsctl" else program}
NO_TUN = {"switches.TUN": Path("/nowhere/tun")}
RAW = {"_open_raw": lambda family: None, "namespaces.has_capability": lambda number: number != 39}
WANTED = "cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock,cap_sys_admin"


def no_family(_family: int) -> None:
    raise OSError(97, os.strerror(97))


def slow_clock(path: Path) -> str:
    return "hpet" if path.name == "current_clocksource" else ""


@pytest.mark.parametrize(
    ("changes", "part", "what", "state", "detail", "remedy"),
    [
        ({"missing": lambda: {NO_BRIDGES: "modprobe"}}, "lab", NO_BRIDGES, "lack", "", "modprobe"),
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


def test_hosts_of_the_command_line_are_asked(monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    """They were ignored: the local machine was checked, with status 0."""
    asked = []

    def survey(site: Site, processes: list[Process]) -> alike.Survey:
        asked.extend(process.name for process in processes)
        return alike.Survey([], {"node2": "it did not answer"}, [])

    monkeypatch.setattr(alike, "survey", survey)
    said = cli.prints("doctor", "--hosts", "node[1-3]", "--iface", "eth7", status=3)
    assert asked == ["node1", "node2", "node3"]
    assert "node2: it did not answer" in said


@pytest.mark.parametrize("option", [["--iface", "eth7"], ["--nodes", "a"], ["--set", "x=1"]])
def test_what_is_about_hosts_needs_hosts(option: list[str], cli: Command) -> None:
    said = cli.refuses("doctor", *option)
    assert "is about the hosts of a site: give --site FILE or --hosts" in said


def test_what_a_killed_run_left_is_named(
    engine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After `kill -9` of the command nine namespaces stayed, without any message."""
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


# --- the check list of RDMA on hosts made of files, and that doc/how-to/verbs.md show -------------


LOCAL, MAPPED = "fe80:0000:0000:0000:5054:00ff:fe12:3456", "0000:0000:0000:0000:0000:ffff:c000:0201"
ROCE_GIDS = ((LOCAL, "IB/RoCE v1"), (LOCAL, "RoCE v2"), (MAPPED, "IB/RoCE v1"), (MAPPED, "RoCE v2"))
EMPTY_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


class Machine:
    """A host's /sys and /dev in a folder, with one RoCE device unless changed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.ib, self.port = folder / "sys/class/infiniband", "mlx5_0/ports/1"
        monkeypatch.setattr(doctor, "SYS", folder / "sys")
        monkeypatch.setattr(doctor, "DEV", folder / "dev")
        self.asks(
            open_devices={"mlx5_0": {1: 4096}},
            lossless_priorities=[3],
            memlock_bytes=None,
            geteuid=7,
        )
        self.files("dev/infiniband", uverbs0="")
        self.files("sys/class/net/eth1", mtu="9000")
        self.files("sys/bus/pci/drivers/mlx5_core", bind="")
        self.device(self.port, state="4: ACTIVE", link_layer="Ethernet", rate="100 Gb/sec (4X EDR)")
        self.device("mlx5_0", node_type="1: CA")
        self.gids(ROCE_GIDS)
        (self.ib / "mlx5_0/device").mkdir()
        (self.ib / "mlx5_0/device/driver").symlink_to(folder / "sys/bus/pci/drivers/mlx5_core")

    def asks(self, **answers: Any) -> None:
        """Answer the commands that the host is given with these texts."""
        for name, answer in answers.items():
            owner = doctor.os if name in ("geteuid", "access") else doctor
            self.monkeypatch.setattr(owner, name, lambda *_, answer=answer: answer)

    def files(self, folder: str, **files: str) -> None:
        """Write files of one line each, as sysfs has them."""
        for name, text in files.items():
            path = self.folder / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")

    def device(self, place: str, **files: str) -> None:
        self.files(f"sys/class/infiniband/{place}", **files)

    def drop(self, path: str) -> None:
        (self.folder / path).unlink()

    def roce(self, count: int) -> None:
        self.gids(ROCE_GIDS[:count])

    def gids(self, gids: tuple[tuple[str, str], ...]) -> None:
        for kind in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
            for old in (self.ib / self.port / kind).glob("*"):
                old.unlink()
        self.device(f"{self.port}/gids", **{str(len(gids)): EMPTY_GID})
        for i, (gid, kind) in enumerate(gids):
            self.device(f"{self.port}/gids", **{str(i): gid})
            self.device(f"{self.port}/gid_attrs", **{f"types/{i}": kind, f"ndevs/{i}": "eth1"})

    def checks(self) -> list[HostCheck]:
        return list(doctor.examine_rdma())

    def find(self, key: str, of: str = "") -> HostCheck:
        item = doctor.CHECK_LIST[key].what
        return next(c for c in self.checks() if c.what == (f"{of} {item}" if of else item))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a host on which all is well but ECN, which its interface does not show."""
    return Machine(tmp_path, monkeypatch)


def test_all_is_well(machine: Machine) -> None:
    machine.files("sys/class/net/eth1/ecn", **{f"roce_{e}/enable/3": "1" for e in ("np", "rp")})
    assert [(check.what, check.state, check.detail) for check in machine.checks()] == [
        ("RDMA device", OK, "mlx5_0 (mlx5_core)"),
        ("access to uverbs", OK, "uverbs0"),
        ("mlx5_0 provider library", OK, "opens the device"),
        ("locked memory", OK, "unlimited"),
        ("mlx5_0/1 port state", OK, "ACTIVE, Ethernet, 100 Gb/sec (4X EDR)"),
        ("mlx5_0/1 GID", OK, "; ".join(f"{i}: {g} {t}" for i, (g, t) in enumerate(ROCE_GIDS))),
        ("mlx5_0/1 path MTU", OK, "4096, on an interface of MTU 9000"),
        ("mlx5_0/1 priority flow control", OK, "priorities 3 of eth1"),
        ("mlx5_0/1 congestion notification", OK, "priorities 3 of eth1"),
    ]


@pytest.mark.rows
def test_what_is_found_of_rdma(
    changes: list[list[Any]], key: str, of: str, state: str, detail: str, machine: Machine
) -> None:
    """Each has a remedy unless it is as it should be."""
    for act, *words in changes:
        named = words.pop() if isinstance(words[-1], dict) else {}
        getattr(machine, act)(*words, **named)
    check = machine.find(key, of)
    assert check.state == state
    assert check.detail.startswith(detail)
    assert bool(check.remedy) is (state != OK)
    if key in ("iwarp", "port"):
        assert not any("GID" in check.what for check in machine.checks())


def test_without_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note names the way to have a device in software; no further check follows."""
    monkeypatch.setattr(doctor, "SYS", tmp_path)
    (check,) = doctor.examine_rdma()
    assert (check.state, check.detail) == (NOTE, "none")
    assert "rdma link add rxe0 type rxe" in check.remedy


def test_infiniband_has_no_pfc(machine: Machine) -> None:
    """Its links have credits; GIDs need no version, and the MTU is the subnet manager's."""
    machine.device(machine.port, link_layer="InfiniBand")
    said = [(check.what, check.detail) for check in machine.checks()][5:]
    assert said == [("mlx5_0/1 path MTU", "4096")]


def test_dcb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool's words, its refusal, and that it is not there."""
    tool = tmp_path / "dcb"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.lossless_priorities("eth1") is None
    tool.write_text(
        "#!/bin/sh\necho 'pfc-cap 8 macsec-bypass off delay 0 '\n"
        "echo 'prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:on '\n"
    )
    tool.chmod(0o755)
    assert doctor.lossless_priorities("eth1") == [3, 7]
    tool.write_text("#!/bin/sh\necho 'Attribute not found' >&2\nexit 1\n")
    assert doctor.lossless_priorities("eth1") is None


def test_doc_has_the_check_list() -> None:
    """doc/how-to/verbs.md shows the list as it is."""
    text = (PROJECT / "doc" / "how-to" / "verbs.md").read_text()
    rows = [
        f"| {item.what} | {item.remedy} |"
        for item in doctor.CHECK_LIST.values()
        if item.part == "verbs"
    ]
    assert "\n".join(["| check | what to do |", "| --- | --- |", *rows]) in text
