# SPDX-License-Identifier: BSD-3-Clause
"""Nodes in guests: a lab with real RDMA devices on this machine (doc/how-to/guests.md)."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from ... import labs as lab
from ...base.errors import ConfigurationError, RunError
from ...base.model import Process, Site
from ...base.programs import find_engine, port_binding_words
from ...labs import vm as guests
from .base import popen_options

# What the dpdk transport may ask for, beside what every guest has of DPDK.
DPDK_DRIVERS = ("net_af_packet", "net_virtio", "net_e1000", "net_vmxnet3")

SHARE = Path("/usr")  # of this machine, for its Python
_FOLDERS = ":".join(f"/share/lib{path}" for path in ("", f"/{platform.machine()}-linux-gnu"))
PYTHON = (
    "env", "PYTHONHOME=/share", f"LD_LIBRARY_PATH={_FOLDERS}", "/share/bin/python3",
)  # fmt: skip


class GuestLauncher:
    """Boots the lab's guests for the time of the run, and ends them afterwards."""

    def __init__(self, site: Site) -> None:
        """Touches nothing."""
        self._site = site
        self._stack = ExitStack()
        self._rig: guests.Rig | None = None

    def __enter__(self) -> Self:
        """Boots the guests, or refuses: this machine lacks something, or one does not come up."""
        try:
            topology = lab.load(self._site.lab or "", self._site.lab_overrides)
            booted = guests.boot(machines(topology, self._site.effective), job())
            self._rig = self._stack.enter_context(booted)
        except (lab.TopologyError, guests.GuestError) as error:
            raise ConfigurationError(str(error)) from error
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the guests with all that runs in them."""
        self._stack.close()

    def start(self, process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts the node in its guest; the process here carries its streams and its status."""
        # In the guest all programs are in the path.
        return self._popen(process, [Path(command[0]).name, *command[1:]])

    def port_binding(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts the program that binds PCI ports by this machine's Python, which a guest sees."""
        return self._popen(process, [*PYTHON, *port_binding_words(words)[1:]])

    def _popen(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        if self._rig is None:
            raise RuntimeError("the guests are not up")
        try:
            return self._rig[process.ports[0].host].popen(words, **popen_options())
        except guests.GuestError as error:
            raise RunError(str(error)) from error


def machines(topology: lab.Topology, site: Mapping[str, Any]) -> list[guests.Machine]:
    """The guests of a topology; where the site says `bind`, with what binding needs."""
    kind = topology.guests
    bind = site.get("bind")
    if kind is None:
        raise ValueError(f"{topology.name} has no guests")
    made = [
        replace(
            guests.machine(node.index, model=kind.nic, mtu=topology.mtu),
            name=node.name,
            memory_mib=kind.memory_mib,
            cpus=kind.cpus,
        )
        for node in topology.nodes
    ]
    if not bind:
        return made
    # Drivers that give devices away, an IOMMU for the one that wants it, no RDMA on top; Python.
    iommu = bind["driver"] == "vfio-pci"
    modules = ("vfio" if iommu else "uio",)
    return [
        replace(machine, modules=modules, iommu=iommu, rdma=(), share=SHARE) for machine in made
    ]


def job() -> guests.Job:
    """The engine, with DPDK's drivers where it has DPDK."""
    engine = find_engine()
    drivers = guests.dpdk_drivers(*DPDK_DRIVERS) if guests.uses_dpdk(engine) else ()
    return guests.Job((engine,), drivers)
