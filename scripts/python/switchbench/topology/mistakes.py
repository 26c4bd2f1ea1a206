# SPDX-License-Identifier: BSD-3-Clause
"""Topologies that no lab can have, each with its sentence."""

from __future__ import annotations

from collections import Counter

from switchbench.base.quantities import UNSHAPED as UNSHAPED
from switchbench.topology.behaviour import Fault

from .file_form import MODEL, ROUTED, SITE, File, Topology

MAX_ROUTED = 128

"""Nodes of a routed lab: each has a route to each other one."""

_MODEL_PORTS = 30  # DPDK as Debian builds it holds 32 devices a process.


def model_mistakes(file: File, topology: Topology) -> list[str]:
    """Return what no modelled switch can be."""
    if file.kind != MODEL:
        return ["model: goes with `kind: model` only"] if file.model is not None else []
    mistakes = []
    for module in topology.modules:
        ports = sum(node.module == module for node in topology.nodes)
        ports += sum(module in (trunk.a, trunk.b) for trunk in topology.trunks)
        if not 2 <= ports <= _MODEL_PORTS:
            mistakes.append(
                f"modules: {module!r} has {ports} nodes and trunks; a modelled one has 2 to "
                f"{_MODEL_PORTS}"
            )
    for i, fault in enumerate(file.model.faults if file.model else []):
        mistakes += _fault_mistakes(fault, f"model.faults.{i}", topology)
    return mistakes


def _fault_mistakes(fault: Fault, where: str, topology: Topology) -> list[str]:
    modules = {node.name: node.module for node in topology.nodes}
    unknown = [name for name in fault.places if name not in modules]
    if unknown:
        return [f"{where}: there is no node {unknown[0]!r}"]
    if fault.module is not None and fault.module not in topology.modules:
        return [f"{where}.module: there is no module {fault.module!r}"]
    if len({modules[name] for name in fault.places}) > 1:
        return [f"{where}: its ports are of several modules; say its flow by `destination`"]
    if fault.kind in ("dead", "slow") and fault.port is None:
        return [f"{where}.port: is missing: which node's port is {fault.kind}"]
    if fault.kind == "slow" and fault.rate is None:
        return [f"{where}.rate: is missing"]
    if fault.kind == "reorder" and fault.displacement is None:
        return [f"{where}.displacement: is missing: how many frames go first"]
    return []


def module_mistakes(file: File) -> list[str]:
    """Return what is wrong with the modules."""
    if file.modules is None and file.kind != ROUTED:
        return ["modules: is missing"]
    return [
        f"modules: {module!r} is named {times} times"
        for module, times in Counter(file.modules or ()).items()
        if times > 1
    ]


class _Parts:
    """What is joined to what: union-find."""

    def __init__(self) -> None:
        self._part: dict[str, str] = {}

    def root(self, place: str) -> str:
        while (above := self._part.get(place, place)) != place:
            place = above
        return place

    def join(self, a: str, b: str) -> None:
        self._part[self.root(a)] = self.root(b)


def loop_mistakes(topology: Topology) -> list[str]:
    """Return why the modules are no tree: a trunk inside one part closes a loop."""
    parts = _Parts()
    mistakes = []
    for i, trunk in enumerate(topology.trunks):
        if parts.root(trunk.a) == parts.root(trunk.b):
            mistakes.append(
                f"trunks.{i}: closes a loop between {trunk.a!r} and {trunk.b!r}, in which frames "
                "would circle for ever (parallel links are one trunk with `links`)"
            )
        parts.join(trunk.a, trunk.b)
    return mistakes


def apart_mistakes(topology: Topology) -> list[str]:
    """Return why not all can be reached: over trunks, and where nodes forward over these too."""
    parts = _Parts()
    joined = [(trunk.a, trunk.b) for trunk in topology.trunks]
    if topology.kind != ROUTED:
        for a, b in joined:
            parts.join(a, b)
        first, *others = topology.modules
        apart = [module for module in others if parts.root(module) != parts.root(first)]
        return [f"trunks: no way from module {first!r} to {', '.join(apart)}"] if apart else []
    # A node may be called like a module.
    joined += [(f"node {node.name}", node.module) for node in topology.nodes if node.module]
    joined += [(f"node {link.a}", f"node {link.b}") for link in topology.links]
    for a, b in joined:
        parts.join(a, b)
    first, *others = (node.name for node in topology.nodes)
    start = parts.root(f"node {first}")
    lost = [name for name in others if parts.root(f"node {name}") != start]
    if not lost:
        return []
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return [f"links: there is no way from {first!r} to {lost[0]!r}{more}"]


def routed_mistakes(topology: Topology) -> list[str]:
    """Return what no routed lab can be."""
    if topology.kind != ROUTED:
        lone = topology.links and topology.kind != SITE
        return ["links: goes with `kind: routed` or `kind: site` only"] if lone else []
    if len(topology.nodes) > MAX_ROUTED:
        return [f"nodes: {len(topology.nodes)} that forward to each other; {MAX_ROUTED} at most"]
    return []


def burst_mistakes(file: File, topology: Topology) -> list[str]:
    """Return why a burst is impossible."""
    if file.burst is None:
        return []
    if file.kind == MODEL:
        return ["burst: a modelled switch lets none pass: leave it out"]
    least = 2 * topology.frame_layer1_bytes
    if file.burst < least:
        return [f"burst: {file.burst} bytes are less than two frames of the MTU, {least}"]
    return []


def queue_mistakes(topology: Topology) -> list[str]:
    """Return the first queue that holds no frame."""
    frame = topology.frame_layer1_bytes
    return [
        f"queue: {link.queue_bytes} bytes at {link.name} hold no frame of {frame} bytes (MTU "
        f"{topology.mtu}, at layer 1): nothing would pass"
        for link in topology.cables
        if link.rate_bps != UNSHAPED and link.queue_bytes < frame
    ][:1]
