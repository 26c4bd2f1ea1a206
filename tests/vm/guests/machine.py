# SPDX-License-Identifier: BSD-3-Clause
"""What guests are made of: values, and the command line that makes QEMU of them.

Addresses follow the lab of namespaces (topology/lab_addresses.py): `eth0` of guest i has
198.18.i.i/16 and 2001:2:0:1::i/64, its `ctl0` 100.64.i.i/16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from switchbench.topology import lab_addresses

from .image import INIT, ROOT_TAG
from .kernel import MODULES, Kernel

QEMU = "qemu-system-x86_64"
CONTROL = "control"
TEST = "test"

MODELS = {
    "virtio": "virtio-net-pci",
    "e1000": "e1000",
    "e1000e": "e1000e",
    "vmxnet3": "vmxnet3",
}
"""NICs by the words of a topology file: QEMU's names of them."""

DEFAULT_MEMORY_MIB = 256

# The first NIC of a machine; the others follow. 1 is taken by the NIC for ssh.
_FIRST_SLOT = 2


@dataclass(frozen=True)
class Nic:
    """A network interface of a guest."""

    name: str
    mac: str
    addresses: tuple[str, ...]
    """With prefix length."""
    network: str
    """The switch that it is on: `control`, `test`."""
    model: str = "virtio"


_SSH = Nic("ssh0", "02:53:42:ff:00:01", ("10.0.2.15/24",), "ssh")  # on QEMU's own network


@dataclass(frozen=True)
class Machine:
    """A guest to be."""

    name: str
    nics: tuple[Nic, ...]
    rdma: tuple[str, ...] = ()
    """Interfaces that get a Soft-RoCE device, rxe0 on."""
    memory_mib: int = DEFAULT_MEMORY_MIB
    cpus: int = 1
    modules: tuple[str, ...] = ()
    """Further groups of kernel.MODULES, besides those of its NICs and RDMA devices."""
    hugepages: int = 0
    """Of 2 MB."""
    iommu: bool = False
    """Gives it an IOMMU, behind which its NICs are, for vfio."""

    @property
    def all_modules(self) -> tuple[str, ...]:
        """Return all modules, in the order in which they are loaded."""
        models = {nic.model for nic in self.nics} - {"virtio"}
        rdma = ("rxe",) if self.rdma else ()
        groups = dict.fromkeys(("virtio", *sorted(models), *rdma, *self.modules))
        return tuple(name for group in groups for name in MODULES[group])


@dataclass(frozen=True)
class Boot:
    """Files that a machine starts from."""

    kernel: Kernel
    initrd: Path
    folder: Path
    """The guest's own, for its sockets and its console; the one above has the keys of ssh."""
    ssh_port: int
    """Of this machine's loopback; leads to the guest's sshd."""


def machine(index: int, model: str = "virtio") -> Machine:
    """Guest number `index` (from 1), `node<index>`: a NIC for barriers, and one under test with
    Soft-RoCE on it."""
    control = f"{lab_addresses.control_ipv4(index)}/{lab_addresses.IPV4_PREFIX}"
    addresses = (
        f"{lab_addresses.kernel_ipv4(index)}/{lab_addresses.IPV4_PREFIX}",
        f"{lab_addresses.kernel_ipv6(index)}/{lab_addresses.IPV6_PREFIX}",
    )
    nics = (
        Nic(lab_addresses.CONTROL_IFACE, lab_addresses.control_mac(index), (control,), CONTROL),
        Nic("eth0", lab_addresses.mac(index), addresses, TEST, model),
    )
    return Machine(f"node{index}", nics, rdma=("eth0",))


def machines(count: int, model: str = "virtio") -> list[Machine]:
    """Guests `node1`... on one switch."""
    return [machine(index, model) for index in range(1, count + 1)]


# On a busy host an emulated processor stands still for longer than a kernel expects of a real one:
# it would panic for want of timer interrupts while it starts, and measure its TSC wrong, so that
# its clock goes several times too fast. The ACPI timer's rate is known.
_PATIENT = ("no_timer_check", "clocksource=acpi_pm", "mitigations=off")


def guest_end(folder: Path, nic: str) -> Path:
    """Return the socket that QEMU receives a NIC's frames on."""
    return folder / f"{nic}.guest"


def switch_end(folder: Path, nic: str) -> Path:
    """Return the socket that the switch receives a NIC's frames on."""
    return folder / f"{nic}.switch"


def command(machine: Machine, boot: Boot) -> list[str]:
    """Return the command line that runs a machine."""
    chipset = "q35,kernel-irqchip=split" if machine.iommu else "q35"
    words = [QEMU, "-accel", "tcg,thread=multi,tb-size=256", "-M", chipset, "-cpu", "max"]
    words += ["-smp", str(machine.cpus), "-m", f"{machine.memory_mib}M"]
    words += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    words += ["-name", f"switchbench-{machine.name}"]
    words += ["-kernel", str(boot.kernel.vmlinux), "-initrd", str(boot.initrd)]
    words += ["-append", " ".join(_kernel_words(machine, boot))]
    words += ["-serial", f"file:{boot.folder / 'console'}"]
    words += ["-qmp", f"unix:{boot.folder / 'qmp'},server=on,wait=off"]
    if machine.iommu:  # before the devices that are behind it
        words += ["-device", "intel-iommu,intremap=on,device-iotlb=on"]
    ssh = f"user,id=ssh0,restrict=on,hostfwd=tcp:127.0.0.1:{boot.ssh_port}-:22"
    words += ["-netdev", ssh]
    words += ["-device", f"virtio-net-pci,netdev=ssh0,mac={_SSH.mac},addr=1,romfile="]
    for slot, nic in enumerate(machine.nics, _FIRST_SLOT):
        words += _nic(nic, boot.folder, slot, machine.iommu)
    root = f"local,path=/,mount_tag={ROOT_TAG},security_model=none,readonly=on,multidevs=remap"
    return [*words, "-virtfs", root]


def _kernel_words(machine: Machine, boot: Boot) -> list[str]:
    nics = (f"{nic.mac}={nic.name}={','.join(nic.addresses)}" for nic in (_SSH, *machine.nics))
    words = ["console=ttyS0", "quiet", "panic=-1", "net.ifnames=0", *_PATIENT]
    words += [f"sb_name={machine.name}", f"sb_modules={','.join(machine.all_modules)}"]
    words += [f"sb_nics={';'.join(nics)}", f"sb_init={INIT}"]
    words += [f"sb_kernel={boot.kernel.modules}", f"sb_keys={boot.folder.parent}"]
    if machine.rdma:
        words.append(f"sb_rdma={','.join(machine.rdma)}")
    if machine.hugepages:
        words.append(f"sb_huge={machine.hugepages}")
    if machine.iommu:
        words.append("intel_iommu=on")
    return words


def _nic(nic: Nic, folder: Path, slot: int, iommu: bool) -> Sequence[str]:
    ends = (
        f"local.type=unix,local.path={guest_end(folder, nic.name)},"
        f"remote.type=unix,remote.path={switch_end(folder, nic.name)}"
    )
    device = f"{MODELS[nic.model]},netdev={nic.name},mac={nic.mac},addr={slot},romfile="
    if iommu and nic.model == "virtio":
        device += ",iommu_platform=on,disable-legacy=on"
    return ["-netdev", f"dgram,id={nic.name},{ends}", "-device", device]
