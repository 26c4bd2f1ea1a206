# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of PCI devices in guests share: machines, job files, and a run of their nodes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import guests
import nodekit
import vmkit
from nodekit import NodeRuns
from switchbench.base.programs import PORT_BINDING, find_engine

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
LINE_BPS = 10_000_000  # far below what an emulator sends, so that nothing is lost in it
WINDOW_S = 2.0
LIMIT_S = 120.0


@contextmanager
def boot(
    model: str,
    driver: str,
    count: int = 2,
    modules: tuple[str, ...] = (),
) -> Iterator[guests.Rig]:
    """Guests with one NIC of that model each, and what binds it to that driver."""
    machines = [
        replace(
            machine,
            memory_mib=768,
            hugepages=HUGEPAGES,
            cpus=2,
            iommu=driver == VFIO,
            modules=("vfio" if driver == VFIO else "uio", *modules),
            rdma=(),
        )
        for machine in guests.machines(count, model=model)
    ]
    with guests.boot(machines) as rig:
        yield rig


def tool(guest: guests.Guest, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Binds or restores in a guest."""
    return guest.run([*TOOL, verb, "--journal", JOURNAL, *words])


def hold(guest: guests.Guest, driver: str) -> subprocess.Popen[str]:
    """Binds the device until the input ends."""
    words = [*TOOL, "hold", "--journal", JOURNAL, PCI, "--driver", driver]
    holder = vmkit.popen(guest, words)
    assert holder.stdin is not None
    holder.stdin.write("bind\n")
    holder.stdin.flush()
    return holder


def trial(number: int, pattern: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a trial over both guests at half the line rate."""
    return {
        "id": number,
        "transport": "dpdk",
        "parts": [{"network": "lab", "ranks": ["node1:e0", "node2:e0"]}],
        "pattern": pattern,
        "sizes": [512],
        "load": {"percent": 50},
        "warmup_ns": 500_000_000,
        "window_ns": int(WINDOW_S * 1e9),
        "cooldown_ns": 100_000_000,
        "drain_timeout_ns": 500_000_000,
        "drain_max_ns": 3_000_000_000,
        **more,
    }


def job(trials: Sequence[dict[str, Any]], **port: Any) -> str:
    """Return all documents of a run by hand on two guests."""
    ports = [
        {
            "name": f"node{i}:e0",
            "network": "lab",
            "pci": PCI,
            "mac": "keep",
            "ipv4": f"198.19.0.{i}/16",
            "line_rate_bps": LINE_BPS,
            "transports": ["dpdk"],
            **port,
        }
        for i in (1, 2)
    ]
    addresses = [f"100.64.0.{i}:7600" for i in (1, 2)]
    nodes = [
        {"name": f"node{i}", "control": {"address": address}, "ports": [own]}
        for i, (address, own) in enumerate(zip(addresses, ports, strict=True), start=1)
    ]
    head = {
        "protocol": 2,
        "run": "pci",
        "controlled": False,
        "heartbeat_timeout_ms": 5000,
        "barrier_timeout_ms": 20_000,
        "worker": "sleep",
        "bind": True,
        "nodes": nodes,
    }
    documents: list[dict[str, Any]] = [{"job": head}]
    documents.append({"peers": {"addresses": addresses, "key": "5b" * 32}})
    documents += [{"trial": one} for one in trials]
    documents.append({"quit": True})
    return "".join(json.dumps(document) + "\n" for document in documents)


def conduct(
    rig: guests.Rig, driver: str, text: str, during: Callable[[], object] | None = None
) -> NodeRuns:
    """Run the nodes of all guests to their end, with devices bound; `during` happens meanwhile."""
    holders = [hold(guest, driver) for guest in rig.guests]
    processes = [
        vmkit.popen(guest, [str(find_engine()), "--name", guest.name]) for guest in rig.guests
    ]
    try:
        return nodekit.conduct(processes, text, during, LIMIT_S)
    finally:
        for holder in holders:
            out, log = holder.communicate(timeout=LIMIT_S)
            assert holder.returncode in (0, 3), out + log


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
        cat /sys/bus/pci/devices/{PCI}/driver_override
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
