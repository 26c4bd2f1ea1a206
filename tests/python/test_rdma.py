# SPDX-License-Identifier: BSD-3-Clause
"""The check list of RDMA on hosts made of files, and that doc/how-to/verbs.md shows it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

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


def test_software_device(machine: Machine) -> None:
    (machine.sys / "class/infiniband/mlx5_0/device/driver").unlink()
    assert machine.find("device").detail == "mlx5_0 (software)"


def test_no_access(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert machine.find("access").state == LACK
    assert machine.find("access").detail == "not permitted to this user: uverbs0"
    (machine.dev / "infiniband/uverbs0").unlink()
    assert "ib_uverbs" in machine.find("access").remedy
    assert machine.find("access").detail.startswith("there is no ")


@pytest.mark.parametrize(
    ("opened", "what", "detail"),
    [
        (None, "provider library", "no libibverbs.so.1"),
        ({}, "mlx5_0 provider library", "libibverbs does not know this device"),
        (
            {"mlx5_0": Opened(refusal="Permission denied")},
            "mlx5_0 provider library",
            "can't be opened: Permission denied",
        ),
    ],
)
def test_provider(
    opened: dict[str, Opened] | None, what: str, detail: str, machine: Machine
) -> None:
    machine.host = replace(machine.host, opened=lambda: opened)
    check = next(check for check in machine.checks() if check.what == what)
    assert (check.state, check.detail) == (LACK, detail)
    assert "ibverbs-providers" in check.remedy
    assert machine.find("mtu", "mlx5_0/1").detail == "can't be read without opening the device"


def test_locked_memory(machine: Machine) -> None:
    machine.host = replace(machine.host, memlock=lambda: 8 << 20)
    assert machine.find("memlock").state == LACK
    assert machine.find("memlock").detail == "8192 KiB (`ulimit -l`)"
    machine.host = replace(machine.host, locks_freely=lambda: True)
    assert machine.find("memlock").state == OK
    machine.host = replace(machine.host, memlock=lambda: 1 << 30, locks_freely=lambda: False)
    assert machine.find("memlock").state == OK


def test_port_down(machine: Machine) -> None:
    """The only port: nothing can be sent. Beside an active one it is only worth a note."""
    machine.port("mlx5_0/1", state="1: DOWN")
    check = machine.find("port", "mlx5_0/1")
    assert (check.state, check.detail) == (LACK, "DOWN, Ethernet, 100 Gb/sec (4X EDR)")
    assert not any("GID" in check.what for check in machine.checks())
    machine.port("mlx5_0/2", state="4: ACTIVE", link_layer="InfiniBand", rate="56 Gb/sec")
    assert machine.find("port", "mlx5_0/1").state == NOTE
    assert machine.find("port", "mlx5_0/2").state == OK


def test_gids(machine: Machine) -> None:
    machine.gids("mlx5_0/1", ROCE_GIDS[:1])
    check = machine.find("gid", "mlx5_0/1")
    assert check.state == LACK
    assert check.detail.startswith("none of RoCE version 2 (0: fe80:")
    machine.gids("mlx5_0/1", ROCE_GIDS[:2])
    check = machine.find("gid", "mlx5_0/1")
    assert check.state == NOTE
    assert check.detail.startswith("only link-local ones")
    machine.gids("mlx5_0/1", ())
    assert machine.find("gid", "mlx5_0/1").detail == "none of RoCE version 2 (none)"


@pytest.mark.parametrize(
    ("interface", "active", "state", "detail"),
    [
        (1500, 1024, NOTE, "1024, on an interface of MTU 1500"),
        (4200, 4096, OK, "4096, on an interface of MTU 4200"),
        (9000, 1024, NOTE, "1024, on an interface of MTU 9000, which could carry 4096: the port "
         "was made before the MTU was set"),
    ],
)  # fmt: skip
def test_mtu(interface: int, active: int, state: str, detail: str, machine: Machine) -> None:
    write(machine.sys, {"class/net/eth1/mtu": str(interface)})
    machine.host = replace(machine.host, opened=lambda: {"mlx5_0": Opened({1: active})})
    check = machine.find("mtu", "mlx5_0/1")
    assert (check.state, check.detail) == (state, detail)


def test_infiniband_has_no_pfc(machine: Machine) -> None:
    """Its links have credits; GIDs need no version, and the MTU is the subnet manager's."""
    machine.port("mlx5_0/1", link_layer="InfiniBand")
    machine.gids("mlx5_0/1", INFINIBAND_GIDS)
    assert [check.what for check in machine.checks()][4:] == [
        "mlx5_0/1 port state",
        "mlx5_0/1 path MTU",
    ]
    assert machine.find("mtu", "mlx5_0/1").detail == "4096"


def test_pfc_and_ecn(machine: Machine) -> None:
    """Off, on, or not to be read: three different things."""
    for lossless, state in ((None, NOTE), ([], NOTE), ([3, 4], OK)):
        machine.host = replace(machine.host, pfc=lambda iface, found=lossless: found)
        assert machine.find("pfc", "mlx5_0/1").state == state
    assert machine.find("pfc", "mlx5_0/1").detail == "priorities 3, 4 of eth1"
    assert machine.find("ecn", "mlx5_0/1").detail == "eth1 does not say"
    machine.port("mlx5_0/1", **{"hw_counters/np_ecn_marked_roce_packets": "0"})
    assert "counts marked packets" in machine.find("ecn", "mlx5_0/1").detail
    write(machine.sys / "class/net/eth1/ecn", {"roce_np/enable/3": "1", "roce_rp/enable/3": "0"})
    assert machine.find("ecn", "mlx5_0/1").detail == "off on eth1"


def test_iwarp(machine: Machine) -> None:
    machine.device("mlx5_0", node_type="4: RNIC")
    check = machine.find("iwarp", "mlx5_0")
    assert (check.state, check.detail) == (LACK, "verbs is not implemented over iWARP")
    assert not any("GID" in check.what for check in machine.checks())


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
    rows = [f"| {item.what} | {item.why} | {item.remedy} |" for item in doctor.CHECK_LIST.values()]
    assert "\n".join(["| check | why | what to do |", "| --- | --- | --- |", *rows]) in text
