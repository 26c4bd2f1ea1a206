# SPDX-License-Identifier: BSD-3-Clause
"""The check list of RDMA on hosts made of files, and that doc/how-to/verbs.md shows it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from configs import PROJECT
from switchbench.hosts import doctor
from switchbench.hosts.doctor import LACK, NOTE, OK, Host, HostCheck, Opened

ROCE_GIDS = (
    ("fe80:0000:0000:0000:5054:00ff:fe12:3456", "IB/RoCE v1"),
    ("fe80:0000:0000:0000:5054:00ff:fe12:3456", "RoCE v2"),
    ("0000:0000:0000:0000:0000:ffff:c000:0201", "IB/RoCE v1"),
    ("0000:0000:0000:0000:0000:ffff:c000:0201", "RoCE v2"),
)
INFINIBAND_GIDS = (("fe80:0000:0000:0000:0002:c903:0012:3457", "IB/RoCE v1"),)
EMPTY_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Files by their path below a folder, each with one line, as sysfs has them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


class Machine:
    """A host's /sys and /dev in a folder, with one RoCE device unless changed."""

    def __init__(self, folder: Path) -> None:
        self.sys, self.dev = folder / "sys", folder / "dev"
        write(self.dev, {"infiniband/uverbs0": ""})
        self.gids("mlx5_0/1", ROCE_GIDS)
        self.port("mlx5_0/1", state="4: ACTIVE", link_layer="Ethernet", rate="100 Gb/sec (4X EDR)")
        write(self.sys, {"class/net/eth1/mtu": "9000", "bus/pci/drivers/mlx5_core/bind": ""})
        self.device("mlx5_0", node_type="1: CA")
        (self.sys / "class/infiniband/mlx5_0/device").mkdir()
        (self.sys / "class/infiniband/mlx5_0/device/driver").symlink_to(
            self.sys / "bus/pci/drivers/mlx5_core"
        )
        self.host = Host(
            sys=self.sys,
            dev=self.dev,
            opened=lambda: {"mlx5_0": Opened({1: 4096})},
            pfc=lambda iface: [3],
            memlock=lambda: None,
            locks_freely=lambda: False,
        )

    def device(self, name: str, **files: str) -> None:
        write(self.sys / "class/infiniband" / name, files)

    def port(self, name: str, **files: str) -> None:
        device, _, number = name.partition("/")
        write(self.sys / f"class/infiniband/{device}/ports/{number}", files)

    def gids(self, name: str, gids: tuple[tuple[str, str], ...], iface: str = "eth1") -> None:
        device, _, number = name.partition("/")
        port = self.sys / f"class/infiniband/{device}/ports/{number}"
        for kind in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
            for old in (port / kind).glob("*"):
                old.unlink()
        for i, (gid, kind) in enumerate((*gids, (EMPTY_GID, ""))):
            write(port, {f"gids/{i}": gid})
            if kind:
                write(port, {f"gid_attrs/types/{i}": kind, f"gid_attrs/ndevs/{i}": iface})

    def checks(self) -> list[HostCheck]:
        return list(doctor.examine_rdma(self.host))

    def find(self, key: str, of: str = "") -> HostCheck:
        item = doctor.CHECK_LIST[key].what
        return next(c for c in self.checks() if c.what == (f"{of} {item}" if of else item))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A host on which all is well but ECN, which its interface does not show."""
    return Machine(tmp_path)


def test_all_is_well(machine: Machine) -> None:
    write(machine.sys / "class/net/eth1/ecn", {f"roce_{e}/enable/3": "1" for e in ("np", "rp")})
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


def test_without_a_device(tmp_path: Path) -> None:
    """Worth a note, with the way to have one in software; nothing else is asked."""
    (check,) = doctor.examine_rdma(Host(sys=tmp_path, dev=tmp_path))
    assert (check.state, check.detail) == (NOTE, "none")
    assert "rdma link add rxe0 type rxe" in check.remedy


def test_no_access(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    check = machine.find("access")
    assert (check.state, check.detail) == (LACK, "not permitted to this user: uverbs0")


Change = Callable[[Machine], object]
PORT = "mlx5_0/1"


def asks(**answers: Any) -> Change:
    """A host that answers so to what is asked of it."""
    known = {key: lambda *_, answer=answer: answer for key, answer in answers.items()}
    return lambda machine: setattr(machine, "host", replace(machine.host, **known))


def has(path: str, **lines: str) -> Change:
    """A host with these files in a folder of /sys."""
    return lambda m: write(m.sys / path, lines)


def mtus(interface: int, active: int) -> Change:
    def change(machine: Machine) -> None:
        has("class/net/eth1", mtu=str(interface))(machine)
        asks(opened={"mlx5_0": Opened({1: active})})(machine)

    return change


REFUSES = asks(opened={"mlx5_0": Opened(refusal="Permission denied")})
ECN = {"roce_np/enable/3": "1", "roce_rp/enable/3": "0"}
FOUND: list[tuple[Change, str, str, str, str]] = [
    (lambda m: (m.sys / "class/infiniband/mlx5_0/device/driver").unlink(),
     "device", "", OK, "mlx5_0 (software)"),
    (lambda m: (m.dev / "infiniband/uverbs0").unlink(), "access", "", LACK, "there is no "),
    (asks(opened=None), "provider", "", LACK, "no libibverbs.so.1"),
    (asks(opened={}), "provider", "mlx5_0", LACK, "libibverbs does not know this device"),
    (REFUSES, "provider", "mlx5_0", LACK, "can't be opened: Permission denied"),
    (REFUSES, "mtu", PORT, NOTE, "can't be read without opening the device"),
    (asks(memlock=8 << 20), "memlock", "", LACK, "8192 KiB (`ulimit -l`)"),
    (asks(memlock=8 << 20, locks_freely=True), "memlock", "", OK, "unlimited for root"),
    (asks(memlock=1 << 30), "memlock", "", OK, "1048576 KiB"),
    (lambda m: m.gids(PORT, ROCE_GIDS[:1]), "gid", PORT, LACK, "none of RoCE version 2 (0: fe80:"),
    (lambda m: m.gids(PORT, ROCE_GIDS[:2]), "gid", PORT, NOTE, "only link-local ones"),
    (lambda m: m.gids(PORT, ()), "gid", PORT, LACK, "none of RoCE version 2 (none)"),
    (mtus(1500, 1024), "mtu", PORT, NOTE, "1024, on an interface of MTU 1500"),
    (mtus(4200, 4096), "mtu", PORT, OK, "4096, on an interface of MTU 4200"),
    (mtus(9000, 1024), "mtu", PORT, NOTE,
     "1024, on an interface of MTU 9000, which could carry 4096: the port was made before"),
    (asks(pfc=None), "pfc", PORT, NOTE, "eth1 does not say (`dcb pfc show dev eth1`)"),
    (asks(pfc=[]), "pfc", PORT, NOTE, "no priority of eth1 is lossless"),
    (asks(pfc=[3, 4]), "pfc", PORT, OK, "priorities 3, 4 of eth1"),
    (lambda _: None, "ecn", PORT, NOTE, "eth1 does not say"),
    (lambda m: m.port(PORT, **{"hw_counters/np_ecn_marked_roce_packets": "0"}),
     "ecn", PORT, NOTE, "eth1 does not say; the device counts marked packets"),
    (has("class/net/eth1/ecn", **ECN), "ecn", PORT, NOTE, "off on eth1"),
    (lambda m: m.device("mlx5_0", node_type="4: RNIC"),
     "iwarp", "mlx5_0", LACK, "verbs is not implemented over iWARP"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "key", "of", "state", "detail"), FOUND)
def test_what_is_found(
    change: Change, key: str, of: str, state: str, detail: str, machine: Machine
) -> None:
    """Each has a remedy unless it is as it should be."""
    change(machine)
    check = machine.find(key, of)
    assert check.state == state
    assert check.detail.startswith(detail)
    assert bool(check.remedy) is (state != OK)
    if key == "iwarp":
        assert not any("GID" in check.what for check in machine.checks())


def test_port_down(machine: Machine) -> None:
    """The only port: nothing can be sent. Beside an active one it is only worth a note."""
    machine.port("mlx5_0/1", state="1: DOWN")
    check = machine.find("port", "mlx5_0/1")
    assert (check.state, check.detail) == (LACK, "DOWN, Ethernet, 100 Gb/sec (4X EDR)")
    assert not any("GID" in check.what for check in machine.checks())
    machine.port("mlx5_0/2", state="4: ACTIVE", link_layer="InfiniBand", rate="56 Gb/sec")
    assert machine.find("port", "mlx5_0/1").state == NOTE
    assert machine.find("port", "mlx5_0/2").state == OK


def test_infiniband_has_no_pfc(machine: Machine) -> None:
    """Its links have credits; GIDs need no version, and the MTU is the subnet manager's."""
    machine.port("mlx5_0/1", link_layer="InfiniBand")
    machine.gids("mlx5_0/1", INFINIBAND_GIDS)
    assert [check.what for check in machine.checks()][4:] == [
        "mlx5_0/1 port state",
        "mlx5_0/1 path MTU",
    ]
    assert machine.find("mtu", "mlx5_0/1").detail == "4096"


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


def test_this_host_can_be_examined() -> None:
    """The real library and files, whatever they have: no fault, and a remedy for each lack."""
    opened = doctor.open_devices()
    assert opened is None or all(name for name in opened)
    for check in doctor.examine_rdma():
        assert check.state == OK or check.remedy


def test_doc_has_the_check_list() -> None:
    """doc/how-to/verbs.md shows the list as it is."""
    text = (PROJECT / "doc" / "how-to" / "verbs.md").read_text()
    rows = [
        f"| {item.what} | {item.remedy} |"
        for item in doctor.CHECK_LIST.values()
        if item.part == "verbs"
    ]
    assert "\n".join(["| check | what to do |", "| --- | --- |", *rows]) in text
