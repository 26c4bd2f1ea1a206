# SPDX-License-Identifier: BSD-3-Clause
"""Making, using and removing labs of network namespaces.

sb-<lab>-switch                                      sb-<lab>-<node>
  module 0: bridge b0 -- p1 [TBF to the node] ======== eth0, under test
                         `-- i1 [IFB, TBF from it]
  trunk 0: t0a [TBF] == t0b [TBF], between bridges
  control: bridge ctl -- c1 ========================== ctl0, never shaped

A lab of `kind: model` has only p1 and ctl; one switch process per module replaces the bridges. In a
lab of `kind: ovs`, Open vSwitch provides the bridges (switches.py). In a lab of `kind: routed`,
nodes forward packets over links between them (devices.py).

One thread makes the whole lab, with one netlink socket per namespace: 64 nodes take about a second.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from ..base import format
from ..base.node_names import HOST
from ..topology import lab_addresses
from ..topology.form import OVS, ROUTED, SITE, Topology
from ..topology.topology import load
from . import devices, namespaces, state, switches
from .state import LabError, LabFailedError


@dataclass(frozen=True)
class Lab:
    """Lab that is up: its name and topology."""

    name: str
    topology: Topology

    @cached_property
    def nodes(self) -> tuple[lab_addresses.LabNode, ...]:
        """Return the names and addresses of the lab's nodes, in the topology's order."""
        return tuple(lab_addresses.lab_node(self.name, node) for node in self.topology.nodes)

    def node(self, name: str) -> lab_addresses.LabNode:
        """Return the node with a given name.

        The `TopologyError` for an unknown name lists all names.
        """
        return self.nodes[self.topology.node(name).index - 1]

    def popen(self, node: str, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a process on a node, or on the `switch`; `options` as for `subprocess.Popen`."""
        name = lab_addresses.namespace_name(self.name, node)
        if node != "switch":
            self.topology.node(node)
        return namespaces.popen(lab_addresses.NAMESPACES / name, command, **options)


_TERMINATE_TIMEOUT_S = 2.0
_NAME_MOST = 63


def up(topology: Topology, name: str | None = None) -> Lab:
    """Make a lab that stays until `down` removes it."""
    lab = _lab(topology, name)
    with state.locked(lab.name):
        _clear_for(lab)
        _make(lab, kept=True)
    return lab


@contextmanager
def session(topology: Topology, name: str | None = None) -> Iterator[Lab]:
    """Hold a lab exclusively during a run.

    A lab that `up` made is used and kept if its topology is equal; any other lab is removed at the
    end.
    """
    lab = _lab(topology, name)
    with state.locked(lab.name):
        known = state.read(lab.name)
        if known is not None and known.kept:
            if known.topology != topology:
                raise LabError(
                    f"lab {lab.name} is up with a topology that differs from this run's: remove "
                    f"it with `switchbench lab down {lab.name}`"
                )
            yield lab
            return
        _clear_for(lab)
        _make(lab, kept=False)
        try:
            yield lab
        finally:
            _remove(lab)


def find(name: str) -> Lab:
    """Return the lab with a given name; `LabError` where it is not up."""
    known = state.read(name)
    if known is None:
        up_now = ", ".join(state.labs()) or "none"
        raise LabError(f"lab {name} is not up (labs that are up: {up_now})")
    return Lab(name, known.topology)


def down(name: str) -> None:
    """Remove a lab, or the remains of a crashed one, with every process in it."""
    find(name)
    with state.locked(name):
        _remove(find(name))


def _lab(topology: Topology, name: str | None) -> Lab:
    lab = Lab(name or topology.name, topology)
    if len(lab.name) > _NAME_MOST or not HOST.fullmatch(lab.name):
        raise LabError(f"{lab.name!r} can't be a lab's name: letters, digits, '.', '_' and '-'")
    if topology.kind == SITE:
        raise LabError(
            f"{topology.name} describes a real network (kind: site), which can't be simulated: "
            "`switchbench predict --topology` reads it"
        )
    ports = len(topology.nodes) + len(topology.trunks)
    if ports > devices.BRIDGE_PORTS:
        raise LabError(
            f"{topology.name} has {ports} nodes and trunks, but a lab has at most "
            f"{devices.BRIDGE_PORTS}, the most ports of a Linux bridge"
        )
    return lab


def _clear_for(lab: Lab) -> None:
    """Remove the remains of crashed labs, so that `lab` can be made.

    Raise `LabError` where the lab is up already, or another lab has one of its namespaces. The
    caller holds the lab's lock.
    """
    for name in state.labs():  # other labs, whose run was killed before it could remove them
        if name != lab.name and state.holder(name) is None:
            with contextlib.suppress(LabError), state.locked(name):
                known = state.read(name)
                if known is not None and not known.kept:
                    _remove(Lab(name, known.topology))
    known = state.read(lab.name)
    if known is not None and known.kept:
        raise LabError(
            f"lab {lab.name} is up already: `switchbench lab down {lab.name}` removes it"
        )
    if known is not None:
        _remove(Lab(lab.name, known.topology))
    wanted = set(lab_addresses.namespace_names(lab.name, lab.topology))
    for other in state.labs():
        try:
            known = state.read(other)
            names = lab_addresses.namespace_names(other, known.topology) if known else []
        except LabError:  # a lab of another version: any namespace with its prefix may be its own
            begin = lab_addresses.namespace_name(other, "")
            names = [name for name in wanted if name.startswith(begin)]
        if taken := wanted.intersection(names):
            raise LabError(
                f"lab {other} already has the namespace {min(taken)}: name this lab with --name"
            )
    for name in wanted:
        namespaces.remove(name)


def _remove(lab: Lab) -> None:
    names = lab_addresses.namespace_names(lab.name, lab.topology)
    # Processes would keep the namespaces alive.
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in (pid for pid in namespaces.processes(names) if pid != os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + _TERMINATE_TIMEOUT_S
        while namespaces.processes(names) and time.monotonic() < deadline:
            time.sleep(0.01)
    for name in names:
        namespaces.remove(name)
    switches.release(lab.name, lab.topology)
    state.forget(lab.name)


def _make(lab: Lab, kept: bool) -> None:
    state.write(state.LabState(lab.name, lab.topology, kept=False))
    try:
        namespaces.in_thread(lambda: _build(lab))
        if lab.topology.model is not None:
            switches.start(lab.name, lab.topology, kept)
    except BaseException as error:
        _remove(lab)
        if isinstance(error, NetlinkError | OSError):
            raise LabFailedError(f"lab {lab.name} can't be made: {error}") from error
        raise
    if kept:
        state.write(state.LabState(lab.name, lab.topology, kept=True))


def _build(lab: Lab) -> None:
    with contextlib.ExitStack() as stack:
        nodes = []
        for node in lab.topology.nodes:
            nodes.append(namespaces.create(lab_addresses.namespace_name(lab.name, node.name)))
            stack.callback(os.close, nodes[-1])
            devices.set_sysctls(
                devices.ROUTER_SYSCTLS if lab.topology.kind == ROUTED else devices.NODE_SYSCTLS
            )
        switch = namespaces.create(lab_addresses.switch_name(lab.name))
        stack.callback(os.close, switch)
        devices.set_sysctls(devices.SWITCH_SYSCTLS)
        with IPRoute() as netlink:
            devices.build_switch(netlink, lab.topology, nodes)
            if lab.topology.kind == OVS:
                switches.start_ovs(lab.name, lab.topology)
            routed = lab.topology.kind == ROUTED
            if routed:
                devices.build_routed_nodes(lab.topology, lab.nodes, nodes)
            for lab_node, fd in zip(lab.nodes, nodes, strict=True):
                namespaces.setns(fd, namespaces.CLONE_NEWNET)
                if not routed:
                    devices.build_node(lab_node)
                if len(nodes) > devices.MANY:
                    devices.add_neighbours(lab_node, lab.nodes, on_one_link=not routed)
            namespaces.setns(switch, namespaces.CLONE_NEWNET)
            ports = [lab_addresses.switch_port(node) for node in lab.topology.nodes if node.module]
            devices.set_offloads(netlink, ports)
            devices.wait_forwarding(netlink)
            devices.wait_silence(netlink)


def bring_up(
    topology: str, name: str | None = None, overrides: Mapping[str, object] | None = None
) -> str:
    """Make a lab, from a topology's file or name, that stays until `lab down`.

    Return a sentence that says that the lab is up, with its sizes.
    """
    namespaces.need_root("lab up")
    model = load(topology, overrides)
    start = time.monotonic()
    lab = up(model, name)
    return f"lab {lab.name} is up: {describe(lab.topology)} ({time.monotonic() - start:.1f} s)"


def take_down(name: str | None = None, everything: bool = False) -> Iterator[str]:
    """Remove one lab, the only one if no name is given, or all; yield a sentence per lab."""
    namespaces.need_root("lab down")
    failures = []
    for lab in state.labs() if everything else [_chosen(name)]:
        try:
            down(lab)
            yield f"lab {lab} is down"
        except LabError as error:
            failures.append(str(error))
    if failures:
        raise LabError("\n".join(failures))


def status() -> list[str]:
    """Return a status sentence for each lab of this machine."""
    found = []
    for name in state.labs():
        pid = state.holder(name)
        try:
            known = state.read(name)
        except LabError as error:
            found.append(f"{name}: unreadable: {error}")
            continue
        words = "down"
        if known is not None:
            used = "up" if known.kept else "left by a crash"
            used = f"in use by process {pid}" if pid else used
            words = f"{used}: {describe(known.topology)}"
        found.append(f"{name}: {words}")
    return found or ["no lab is up"]


def run_command(node: str, command: Sequence[str], name: str | None = None) -> int:
    """Run a command on a lab's node or `switch`; return its exit status, 128 + n for signal n.

    `node` may be `<lab>/<node>`, which is equal to passing `name`.
    """
    namespaces.need_root("lab exec")
    lab_name, _, node_name = node.rpartition("/")
    lab = find(_chosen(lab_name or name))
    try:
        process = lab.popen(node_name, command)
    except (FileNotFoundError, PermissionError) as error:
        raise LabError(f"{command[0]} can't be run: {error.strerror}") from None
    # The terminal sends Ctrl-C to the process itself, which decides what to do.
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code: int = process.wait()
    finally:
        signal.signal(signal.SIGINT, previous)
    return code if code >= 0 else 128 - code


def describe(topology: Topology) -> str:
    """Return the sizes of a topology: `24 nodes, 2 modules, 1 trunk`."""
    parts = {"node": topology.nodes, "module": topology.modules, "trunk": topology.trunks,
             "link": topology.links}  # fmt: skip
    return ", ".join(format.of(len(some), noun) for noun, some in parts.items() if some)


def _chosen(name: str | None) -> str:
    """Return the given name of a lab; without a name, the name of the only lab that is up.

    Raise `LabError` where no lab or several labs are up.
    """
    if name:
        return name
    labs = state.labs()
    if len(labs) == 1:
        return labs[0]
    if not labs:
        raise LabError("no lab is up: start one with `switchbench lab up`")
    raise LabError(f"several labs are up, name one: {', '.join(labs)}")
