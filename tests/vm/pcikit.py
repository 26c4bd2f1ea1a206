# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of PCI devices in guests share: machines, jobs, and a run of their nodes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import guests
import vmkit
from nodekit import NodeRuns, Record
from switchbench.base.programs import PORT_BINDING

PCI = "0000:00:03.0"  # eth0
JOURNAL = "/run/switchbench/bind.json"
TOOL = ["python3", str(PORT_BINDING)]
UIO, VFIO = "uio_pci_generic", "vfio-pci"

DRIVERS = {
    "virtio": "net_virtio",
    "e1000": "net_e1000",
    "e1000e": "net_e1000",
    "vmxnet3": "net_vmxnet3",
}
"""DPDK's, by the model of the NIC."""
KERNEL_DRIVERS = {model: model for model in DRIVERS} | {"virtio": "virtio-pci"}

HUGEPAGES = 128  # uio needs physical addresses; less than 256 MiB are left to others (eal.c)
LINE = "10Mbit"  # far below what an emulator sends, so that nothing is lost in it


@contextmanager
def boot(model: str, driver: str, count: int = 2) -> Iterator[guests.Rig]:
    """Guests with one NIC of that model each, and what binds it to that driver."""
    machines = [
        replace(
            machine,
            memory_mib=768,
            hugepages=HUGEPAGES,
            cpus=2,
            iommu=driver == VFIO,
            modules=("vfio" if driver == VFIO else "uio",),
            rdma=(),
        )
        for machine in guests.machines(count, model=model)
    ]
    with guests.boot(machines) as rig:
        yield rig


def tool(guest: guests.Guest, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Binds or restores in a guest."""
    return guest.run([*TOOL, verb, "--journal", JOURNAL, *words])


def bind(guest: guests.Guest, driver: str) -> str:
    """Bind the device; return what is printed."""
    done = tool(guest, "bind", PCI, "--driver", driver)
    assert done.returncode == 0, done.stderr
    return done.stdout


def job(directory: Path, tests: list[Record], **port: Any) -> str:
    """Return all documents of a run by hand on two guests, at half the line rate."""
    load = {"transport": "dpdk", "worker": "sleep", "load": "50%", "frame_size": 512}
    times = {"warmup": "500ms", "window": "2s", "drain_timeout": "500ms", "latency": {"probes": 0}}
    site = vmkit.site(None, pci=PCI, line_rate=LINE, **port)
    return vmkit.job(directory, site, tests, **load, **times)


def conduct(
    rig: guests.Rig, driver: str, text: str, during: Callable[[], object] | None = None
) -> NodeRuns:
    """Run the nodes of all guests to their end, with devices bound; `during` happens meanwhile."""
    for guest in rig.guests:
        bind(guest, driver)
    try:
        return vmkit.play(rig, text, meanwhile=during)
    finally:
        for guest in rig.guests:
            done = tool(guest, "restore")
            assert done.returncode == 0, done.stderr


def shell(guest: guests.Guest, script: str) -> str:
    """Return what a script in a guest prints; it must succeed."""
    return guest.output(["sh", "-ec", script])


def driver_of(guest: guests.Guest) -> str:
    """Return which driver drives the NIC under test; in between, none does."""
    link = shell(guest, f"readlink /sys/bus/pci/devices/{PCI}/driver || true")
    return link.strip().rpartition("/")[2]


def picture(guest: guests.Guest) -> str:
    """All that must be the same after a device was away: not its number, not what follows from
    the carrier, which takes some seconds on an e1000."""
    text = shell(
        guest,
        f"""
        readlink /sys/bus/pci/devices/{PCI}/driver
        cat /sys/bus/pci/devices/{PCI}/driver_override /proc/sys/vm/nr_hugepages
        cd /sys/class/net/eth0; cat address mtu flags tx_queue_len
        ip=/usr/sbin/ip; $ip -o address show dev eth0
        $ip -o route show table all dev eth0; $ip -o -6 route show table all dev eth0
        """,
    )
    text = re.sub(r"^\d+: ", "", text, flags=re.MULTILINE)
    text = re.sub(r" (linkdown|tentative|dadfailed)\b", "", text)
    lines = (line.rstrip() for line in text.splitlines() if not _follows_the_carrier(line))
    return "\n".join(sorted(lines))


def _follows_the_carrier(line: str) -> bool:
    """Link-local addresses, multicast and the kernel's own IPv6 routes come and go with it."""
    return "fe80:" in line or " ff00::/8" in line or ("proto kernel" in line and ":" in line)
