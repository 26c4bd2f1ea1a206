# SPDX-License-Identifier: BSD-3-Clause
"""Makes labs of network namespaces, and removes them.

    sb-<lab>-switch                                      sb-<lab>-<node>
      module 0: bridge b0 -- p1 [TBF to the node] ======== eth0, under test
                             `-- i1 [IFB, TBF from it]
      trunk 0: t0a [TBF] == t0b [TBF], between bridges
      control: bridge ctl -- c1 ========================== ctl0, never shaped

In a lab of `kind: model` there are p1 and ctl alone, and a process a module instead of the bridges.
In one of `kind: ovs` Open vSwitch has the bridges (openvswitch.py). In one of `kind: routed` nodes
forward, and have links of their own (routed.py).

All of it goes through one thread and one netlink socket a namespace: 64 nodes take about a second.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from switchbench.base.node_names import HOST
from switchbench.labs import namespaces, neighbours, openvswitch, routed, state, switches
from switchbench.labs.state import LabError, LabFailedError
from switchbench.topology import lab_addresses
from switchbench.topology.file_form import OVS, ROUTED, SITE, Topology

from .devices import (
    BRIDGE_PORTS,
    NODE_SYSCTLS,
    SWITCH_SYSCTLS,
    build_node,
    build_routed_nodes,
    build_switch,
    set_offloads,
    set_sysctls,
    switched,
    wait_forwarding,
    wait_silence,
)
from .lab import Lab

_TERMINATE_TIMEOUT_S = 2.0
_NAME_MOST = 63


def up(topology: Topology, name: str | None = None) -> Lab:
    """Make a lab that stays until `down`."""
    lab = _lab(topology, name)
    with state.locked(lab.name):
        _clear_for(lab)
        _make(lab, kept=True)
    return lab


@contextmanager
def session(topology: Topology, name: str | None = None) -> Iterator[Lab]:
    """Return a lab for the time of a run, alone: nobody else uses or removes it meanwhile.

    One that `up` has left is used, and left again, if its topology is the same.
    """
    lab = _lab(topology, name)
    with state.locked(lab.name):
        known = state.read(lab.name)
        if known is not None and known.kept:
            if known.topology != topology:
                raise LabError(
                    f"lab {lab.name} is up with another topology than this run wants: "
                    f"`switchbench lab down {lab.name}` first"
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
    """Return the lab of that name, if it is up."""
    known = state.read(name)
    if known is None:
        up_now = ", ".join(state.labs()) or "none"
        raise LabError(f"lab {name} is not up (up are: {up_now})")
    return Lab(name, known.topology)


def down(name: str) -> None:
    """Remove a lab, or what a crash left of it, with every process in it."""
    find(name)
    with state.locked(name):
        _remove(find(name))


def _lab(topology: Topology, name: str | None) -> Lab:
    lab = Lab(name or topology.name, topology)
    if len(lab.name) > _NAME_MOST or not HOST.fullmatch(lab.name):
        raise LabError(f"{lab.name!r} can't be a lab's name: letters, digits, '.', '_' and '-'")
    if topology.kind == SITE:
        raise LabError(
            f"{topology.name} describes a real network (kind: site), of which no lab is made: "
            "`switchbench topology` and `switchbench predict --topology` read it"
        )
    ports = len(topology.nodes) + len(topology.trunks)
    if ports > BRIDGE_PORTS:
        raise LabError(
            f"{topology.name} has {ports} nodes and trunks; a lab takes {BRIDGE_PORTS}, "
            "the most ports that a Linux bridge can have"
        )
    return lab


def _clear_for(lab: Lab) -> None:
    """Remove what crashes have left, with the lab's lock held."""
    _remove_abandoned(lab.name)
    known = state.read(lab.name)
    if known is not None and known.kept:
        raise LabError(f"lab {lab.name} is already up: `switchbench lab down {lab.name}` first")
    if known is not None:
        _remove(Lab(lab.name, known.topology))
    wanted = set(lab_addresses.namespace_names(lab.name, lab.topology))
    for other in state.labs():
        other_state = state.read(other)
        if other_state is None:
            continue
        taken = wanted.intersection(lab_addresses.namespace_names(other, other_state.topology))
        if taken:
            raise LabError(f"lab {other} already has the namespace {min(taken)}: choose a --name")
    strays = [name for name in wanted if namespaces.exists(name)]
    for name in strays:
        namespaces.remove(name)


def _remove_abandoned(but: str) -> None:
    """Other labs that were to go with their run, which was killed."""
    for name in state.labs():
        if name == but or state.holder(name) is not None:
            continue
        with contextlib.suppress(LabError), state.locked(name):
            known = state.read(name)
            if known is not None and not known.kept:
                _remove(Lab(name, known.topology))


def _remove(lab: Lab) -> None:
    names = lab_addresses.namespace_names(lab.name, lab.topology)
    _terminate(names)
    for name in names:
        namespaces.remove(name)
    switches.release(lab.name, lab.topology)
    openvswitch.release(lab.name)
    state.forget(lab.name)


def _terminate(names: Sequence[str]) -> None:
    """End the processes in these namespaces, which would else keep them in being unseen."""
    signals = [signal.SIGTERM, signal.SIGKILL]
    for number in signals:
        pids = [pid for pid in namespaces.processes(names) if pid != os.getpid()]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + _TERMINATE_TIMEOUT_S
        while namespaces.processes(names) and time.monotonic() < deadline:
            time.sleep(0.01)


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
            set_sysctls(routed.SYSCTLS if lab.topology.kind == ROUTED else NODE_SYSCTLS)
        switch = namespaces.create(lab_addresses.switch_name(lab.name))
        stack.callback(os.close, switch)
        set_sysctls(SWITCH_SYSCTLS)
        with IPRoute() as netlink:
            build_switch(netlink, lab.topology, nodes)
            if lab.topology.kind == OVS:
                openvswitch.start(lab.name, lab.topology)
            if lab.topology.kind == ROUTED:
                build_routed_nodes(lab, nodes)
            else:
                for lab_node, fd in zip(lab.nodes, nodes, strict=True):
                    namespaces.setns(fd, namespaces.CLONE_NEWNET)
                    build_node(lab_node)
            if len(nodes) > neighbours.MANY:
                for lab_node, fd in zip(lab.nodes, nodes, strict=True):
                    namespaces.setns(fd, namespaces.CLONE_NEWNET)
                    neighbours.introduce(lab_node, lab.nodes, lab.topology.kind != ROUTED)
            namespaces.setns(switch, namespaces.CLONE_NEWNET)
            ports = [lab_addresses.switch_port(node) for node in switched(lab.topology)]
            set_offloads(netlink, ports)
            wait_forwarding(netlink)
            wait_silence(netlink)
