# SPDX-License-Identifier: BSD-3-Clause
"""Binding devices and restoring them, on a machine made of files: what is blocked, what is written
down, and that all is as before after a failure or a kill at each single step. Interfaces and the
guard are the real kernel's, in network namespaces.

`switchbench bind` and `restore`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from switchbench.cli.main import main
from switchbench.hosts import port_binding

A, B, DISK = "0000:3b:00.0", "0000:3b:00.1", "0000:00:1f.2"
DEVICES, DRIVERS = "sys/bus/pci/devices", "sys/bus/pci/drivers"
BOOT = "proc/sys/kernel/random/boot_id"
NAMES = {A: "eth7", B: "eth8"}
STEPS_MOST = 40  # more than any of the calls writes


class Machine:
    """/sys and /proc in a folder, and a kernel that does what writes to them ask for."""

    def __init__(self, root: Path) -> None:
        self.root, self.journal = root, root / "lib/journal"
        self.writes = 0
        self.fails_at = self.dies_at = 0  # the number of a write
        self.journaled = False  # at the first write
        self.printed: Callable[[], Any]
        for pci, group in ((A, "7"), (B, "8")):
            self.file(f"{DEVICES}/{pci}/class", "0x020000")
            self.file(f"{DEVICES}/{pci}/driver_override", "(null)")
            self.link(f"{DEVICES}/{pci}/driver", "../../drivers/ixgbe")
            self.link(f"{DEVICES}/{pci}/iommu_group", f"../../kernel/iommu_groups/{group}")
            self.link(f"sys/bus/pci/kernel/iommu_groups/{group}/devices/{pci}", "x")
            self.interface(pci, NAMES[pci])
        self.file(f"{DEVICES}/{DISK}/class", "0x010601")
        for driver in ("ixgbe", "vfio-pci", "uio_pci_generic"):
            for name in ("bind", "unbind"):
                self.file(f"{DRIVERS}/{driver}/{name}", "")
        self.file(BOOT, "boot-1")

    def file(self, path: str, text: str) -> None:
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_text(text + "\n")

    def link(self, path: str, target: str) -> None:
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.unlink(missing_ok=True)
        whole.symlink_to(target)

    def drop(self, path: str) -> None:
        whole = self.root / path
        if whole.is_symlink() or whole.is_file():
            whole.unlink()
        else:
            shutil.rmtree(whole, ignore_errors=True)

    def interface(self, pci: str, name: str) -> None:
        self.file(f"{DEVICES}/{pci}/net/{name}/dev_port", "0")
        self.file(f"sys/class/net/{name}/mtu", "1500")

    def no_interface(self, pci: str, name: str) -> None:
        self.drop(f"{DEVICES}/{pci}/net")
        self.drop(f"sys/class/net/{name}")

    def write(self, path: Path, text: str) -> None:
        """Act as the kernel at a write: a driver gives its interface a kernel's name."""
        self.writes += 1
        if self.writes == 1:
            self.journaled = self.journal.exists()
        if self.writes == self.dies_at:
            os._exit(9)
        if self.writes == self.fails_at:
            raise OSError(5, os.strerror(5))
        below = path.relative_to(self.root)
        if path.name == "bind":
            if (self.root / DEVICES / text / "driver").is_symlink():
                raise OSError(16, os.strerror(16))
            self.link(f"{DEVICES}/{text}/driver", f"../../drivers/{below.parts[-2]}")
            if below.parts[-2] == "ixgbe":
                self.interface(text, "eth0" if text == A else "eth1")
        elif path.name == "unbind":
            self.drop(f"{DEVICES}/{text}/driver")
            self.no_interface(text, NAMES[text])
        else:
            self.file(str(below), "(null)" if text == "\n" else text)

    def write_interface(self, name: str, state: dict[str, str]) -> None:
        """Give an interface its name; it has no other state here."""
        pci = A if state["name"] == "eth7" else B
        self.no_interface(pci, name)
        self.interface(pci, state["name"])

    def bind(self, *words: str, driver: str = "vfio-pci") -> int:
        """Run the program to bind devices; return its status."""
        return call(self, "bind", *words, "--driver", driver)

    def picture(self) -> dict[str, str]:
        """Return all files and links."""
        paths = [path for part in ("sys", "proc") for path in (self.root / part).rglob("*")]
        return {
            str(path): os.readlink(path) if path.is_symlink() else path.read_text()
            for path in paths
            if path.is_symlink() or path.is_file()
        }


def dressed(name: str) -> dict[str, object]:
    return {"name": name, "mac": "02:00:00:00:00:01", "addresses": [], "routes": []}


@pytest.fixture
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Machine:
    made = Machine(tmp_path)
    made.printed = capsys.readouterr
    monkeypatch.setattr(port_binding, "ROOT", tmp_path)
    monkeypatch.setattr(port_binding, "TRY_S", 0.001)
    monkeypatch.setattr(port_binding, "write", made.write)
    monkeypatch.setattr(port_binding, "read_interface", dressed)
    monkeypatch.setattr(port_binding, "write_interface", made.write_interface)
    monkeypatch.setattr(port_binding, "critical_uses", lambda _: [])
    return made


def call(machine: Machine, *words: str) -> int:
    return port_binding.main([words[0], "--journal", str(machine.journal), *words[1:]])


def test_devices_come_back_as_they_were_written_down(machine: Machine) -> None:
    machine.file(f"{DEVICES}/{A}/driver_override", "ixgbe")
    before = machine.picture()
    assert machine.bind(A, B) == 0
    assert machine.journaled
    assert f"PCI device {B}: from ixgbe to vfio-pci." in machine.printed().out
    assert not (machine.root / "sys/class/net/eth7").exists()
    journal = json.loads(machine.journal.read_text())
    entry, _ = journal["devices"]
    assert (journal["switchbench_bind"], journal["boot"]) == (1, "boot-1")
    assert [entry[key] for key in ("pci", "driver", "driver_override")] == [A, "ixgbe", "ixgbe"]
    assert [interface["name"] for interface in entry["interfaces"]] == ["eth7"]
    assert call(machine, "restore") == 0
    assert machine.printed().out.splitlines() == [  # the last is the first to come back
        f"PCI device {B}: back at ixgbe.",
        f"PCI device {A}: back at ixgbe.",
    ]
    assert not machine.journal.exists()
    assert machine.picture() == before


def test_a_failure_at_each_step(machine: Machine) -> None:
    before = machine.picture()
    step = 1
    while True:
        machine.writes, machine.fails_at = 0, step
        if machine.bind(A, B) == 0:
            break
        assert not machine.journal.exists()
        assert machine.picture() == before
        step += 1
    assert 6 < step < STEPS_MOST


def killed(machine: Machine, step: int, act: Callable[[], int]) -> bool:
    """Act in another process, which dies at a write; return whether it did."""
    process = os.fork()
    if process == 0:
        machine.writes, machine.dies_at = 0, step
        act()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9


@pytest.mark.parametrize("restoring", [False, True])
def test_a_kill_at_each_step(machine: Machine, restoring: bool) -> None:
    before = machine.picture()
    step = 1
    while True:
        if restoring:
            assert machine.bind(A, B) == 0
            died = killed(machine, step, lambda: call(machine, "restore"))
        else:
            died = killed(machine, step, lambda: machine.bind(A, B))
        assert machine.journal.exists() is (died or not restoring)
        assert call(machine, "restore") == 0
        assert not machine.journal.exists()
        assert machine.picture() == before
        if not died:
            break
        step += 1
    assert 6 < step < STEPS_MOST


def test_a_failure_while_restoring(machine: Machine) -> None:
    """One device that does not come back keeps neither the other nor the journal from its part."""
    before = machine.picture()
    assert machine.bind(A, B) == 0
    machine.writes, machine.fails_at = 0, 1
    assert call(machine, "restore") == 3
    assert "Input/output error" in machine.printed().err
    assert machine.journal.exists()
    assert (machine.root / "sys/class/net/eth7").exists()
    machine.fails_at = 0
    assert call(machine, "restore") == 0
    assert machine.picture() == before


def test_a_reboot(machine: Machine) -> None:
    """The devices being back by themselves, they can be bound again without a restore."""
    assert machine.bind(A) == 0
    kept = machine.journal.read_text()
    assert call(machine, "restore") == 0
    machine.journal.write_text(kept)
    machine.file(BOOT, "boot-2")
    assert machine.bind(A) == 0
    assert json.loads(machine.journal.read_text())["boot"] == "boot-2"
    machine.file(BOOT, "boot-3")
    machine.writes = 0
    assert call(machine, "restore") == 0
    assert machine.writes == 0
    assert "The boot since" in machine.printed().out
    assert not machine.journal.exists()


def test_nothing_is_done_twice(machine: Machine) -> None:
    assert call(machine, "restore") == 0
    assert "nothing to restore" in machine.printed().out
    assert machine.bind(A, B) == 0
    machine.writes = 0
    assert machine.bind(B) == 0
    assert "bound already" in machine.printed().out
    assert machine.writes == 0


def refused(machine: Machine, *words: str) -> str:
    """Return the sentence of a refusal, after which nothing has changed."""
    machine.writes = 0
    had = machine.journal.exists()
    assert call(machine, *words) in (2, 3)
    assert machine.writes == 0
    assert machine.journal.exists() is had
    [sentence] = machine.printed().err.splitlines()
    return sentence


@pytest.mark.rows
def test_a_journal_that_is_none(text: str, sentence: str, machine: Machine) -> None:
    machine.file("lib/journal", text)
    assert sentence in refused(machine, "restore")
    assert sentence in refused(machine, "bind", A, "--driver", "vfio-pci")


def test_a_journal_of_others(machine: Machine) -> None:
    assert machine.bind(A) == 0
    machine.journal.chmod(0o666)
    assert "writable by nobody else" in refused(machine, "restore")
    machine.journal.chmod(0o644)
    machine.journal.parent.chmod(0o777)
    assert "writable by nobody else" in refused(machine, "restore")
    machine.journal.parent.chmod(0o755)
    kept = machine.journal.rename(machine.root / "lib/kept")
    machine.journal.symlink_to(kept)
    assert "it is a link" in refused(machine, "restore")
    os.mkfifo(machine.root / "lib/fifo")
    (machine.root / "lib/fifo").rename(machine.journal)
    assert "a regular file" in refused(machine, "restore")
    kept.rename(machine.journal)
    assert call(machine, "restore") == 0


def test_no_place_for_the_journal(machine: Machine) -> None:
    machine.journal.parent.mkdir()
    machine.journal.parent.chmod(0o777)
    asked = ("bind", A, "--driver", "vfio-pci")
    assert "without it no device is touched" in refused(machine, *asked)
    machine.journal = Path("/proc/self/nowhere/journal")
    assert "without it no device is touched" in refused(machine, *asked)


def test_a_link_beside_the_journal(machine: Machine) -> None:
    """What stands where the journal is written first is removed, not followed."""
    machine.file("lib/target", "mine")
    beside = machine.root / f"lib/journal.{os.getpid()}"
    beside.symlink_to(machine.root / "lib/target")
    assert machine.bind(A) == 0
    assert not beside.is_symlink()
    assert (machine.root / "lib/target").read_text() == "mine\n"


def test_while_somebody_uses_them(machine: Machine) -> None:
    assert machine.bind(A) == 0
    with port_binding.opened_journal(str(machine.journal), lock=True):
        assert "Another process binds or restores" in refused(machine, "restore")
    machine.file("proc/4242/comm", "dpdk-testpmd")
    machine.link("proc/4242/fd/5", "/dev/vfio/7")
    assert "Process 4242 (dpdk-testpmd)" in refused(machine, "restore")
    machine.drop("proc/4242")
    assert call(machine, "restore") == 0


@pytest.mark.rows
def test_what_is_blocked(
    changes: list[list[str]], address: str, sentence: str, machine: Machine
) -> None:
    for act, *words in changes:
        getattr(machine, act)(*words)
    machine.printed()
    assert sentence in refused(machine, "bind", address, "--driver", "vfio-pci")


@pytest.mark.parametrize("hop", ["eth7", port_binding.ANY])
def test_what_the_host_needs_is_blocked(
    hop: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_binding, "critical_uses", lambda _: [(hop, "the default route")])
    said = refused(machine, "bind", A, "--driver", "vfio-pci")
    assert f"carr{'y' if hop == port_binding.ANY else 'ies'} the default route" in said


# --- the real kernel ------------------------------------------------------------------------------

NAMESPACE = f"sb-bind-{os.getpid()}"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")


def shell(script: str) -> str:
    """Return the output of a script in the namespace; it must succeed."""
    words = ["ip", "netns", "exec", NAMESPACE, "sh", "-ec", script]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(expression: str) -> object:
    """Return the value of an expression over the module in the namespace."""
    code = f"import json, port_binding as b; print(json.dumps({expression}))"
    folder = Path(port_binding.__file__).parent
    text = shell(f"PYTHONPATH={folder} {sys.executable} -B -c '{code}'")
    return json.loads(text) if text else None


@pytest.fixture
def namespace() -> Iterator[None]:
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        shell("""
            ip link set lo up
            ip link add a0 type veth peer name b0; ip link set b0 up
            ip link add w0 type veth peer name w1; ip link set w0 up; ip link set w1 up""")
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=True)


DRESS = (Path(__file__).parent / "data" / "dress.sh").read_text()
PICTURE = r"""
    for family in -4 -6; do ip $family -o address show dev a0
        ip $family -o route show table all | grep -v "fe80\|ff00"; done
    ip -o link show dev a0
"""


def picture() -> list[str]:
    """Return what ip(8) says of a0, without its number and what follows from a carrier."""
    noise = r"^\d+: | linkdown| dead| nhid 5| tentative|@b0|<.*>| state \w+| qlen.*"
    lines = [re.sub(noise, "", line) for line in shell(PICTURE).splitlines()]
    return sorted(line for line in lines if "fe80" not in line)


@needs_root
@pytest.mark.parametrize("carrier", ["up", "down"])
def test_another_interface_becomes_the_same(carrier: str, namespace: None) -> None:
    shell(DRESS)
    shell(f"ip link set b0 {carrier}")
    before = picture()
    state = python('b.read_interface("a0")')
    assert isinstance(state, dict)
    assert len(state["routes"]) == (7 if carrier == "up" else 6)  # without the next hop object's
    shell("""ip link del a0; ip link add z9 type veth peer name b0; ip link set b0 up
             echo 0 >/proc/sys/net/ipv6/conf/z9/accept_dad""")
    for name in ("z9", "a0"):  # and again, when there is nothing to do
        python(f'b.write_interface("{name}", json.loads("""{json.dumps(state)}"""))')
        assert picture() == before


@needs_root
def test_an_interface_that_was_down(namespace: None) -> None:
    before = python('b.read_interface("a0")')
    shell("ip link set a0 up")
    python(f'b.write_interface("a0", json.loads("""{json.dumps(before)}"""))')
    assert python('b.read_interface("a0")') == before


@needs_root
@pytest.mark.rows
def test_what_a_host_needs(
    script: str, connection: str, hops: dict[str, str], namespace: None
) -> None:
    shell("ip link set a0 up; ip address add 198.18.0.1/24 dev a0")
    time.sleep(0.1)
    shell(script)
    uses = python(f'b.critical_uses("{connection}")')
    assert isinstance(uses, list)
    assert {hop for hop, _ in uses} == set(hops)
    for hop, what in uses:
        assert hops[hop] in what


# --- `switchbench bind` and `restore` -------------------------------------------------------------


SITE = """\
launch: hand
hosts: [node1, node2]
ports: {e0: {network: n, pci: "0000:3b:00.0"}, e1: {network: n, pci: "0000:3b:00.1"}}
bind: {driver: vfio-pci}
"""


def site(tmp_path: Path) -> str:
    """Return a site file."""
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    return str(path)


def test_this_host_restores_its_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys; exit(3 if sys.argv[1:] == ['restore'] else 4)")
    monkeypatch.setattr("switchbench.cli.hosts.PORT_BINDING", program)
    assert main(["restore"]) == 3


@pytest.mark.rows
def test_what_is_refused(
    verb: str, words: list[str], sentence: str, tmp_path: Path, cli: Command
) -> None:
    if words[0] == "HAND":
        words = ["--site", site(tmp_path), *words[1:]]
    assert sentence in cli.refuses(verb, *words)
