# SPDX-License-Identifier: BSD-3-Clause
"""Parser of topology files, which describe a network of switch modules, trunks and nodes.

A topology is a value: nothing here touches the machine. `load` reads a file in the form of
`conf/labs/one-switch.yaml`, applies the caller's overrides and returns a `Topology`. It raises
`TopologyError` with the file and the key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..base import source
from ..base.errors import ConfigurationError, meant
from ..base.model import Device
from ..base.node_names import HOST, node_set
from ..base.programs import configurations
from .form import (
    MODEL,
    ROUTED,
    SITE,
    UNSHAPED,
    AttachedHost,
    Behaviour,
    Bundle,
    File,
    LinkEntry,
    Nodes,
    Override,
    Topology,
    TopologyError,
    check_places,
    default_port,
    device_of,
)

PROJECT_LABS = configurations() / "labs"

_SWITCH = "switch"  # The switch's namespace is named like a node's, so no node may have this name.
_MAX_NODES = 65_000  # The lab's addresses hold the node's position in 16 bits.


def find(name_or_path: str | Path) -> Path:
    """Return the path of a topology file, given by path or by its name under `conf/labs/`."""
    path = Path(name_or_path)
    for candidate in (path, Path("conf/labs") / f"{path}.yaml", PROJECT_LABS / f"{path}.yaml"):
        if candidate.is_file():
            return candidate
    names = sorted(file.stem for file in PROJECT_LABS.glob("*.yaml"))
    raise TopologyError(
        f"there is no topology {str(path)!r} (a file, or one of: {', '.join(names)})"
        f"{meant(path.name.removesuffix('.yaml'), names)}"
    )


def load(name_or_path: str | Path, overrides: Mapping[str, object] | None = None) -> Topology:
    """Return the topology of a file, given by its path or name, changed by `overrides`.

    Overrides are the keys of a topology file. They replace the file's, except that
    - `rate` is the rate of every node, whatever its entry in the file says;
    - `nodes` may be a number: that many nodes in total, with an equal share for each entry;
    - `overrides` (of single nodes) are added to the file's, and so are the keys of `model`.
    """
    path = find(name_or_path)
    try:
        document = source.load(path)
    except ConfigurationError as error:
        raise TopologyError(str(error)) from None
    return parse(document, name=path.stem, where=str(path), overrides=overrides)


def parse(
    document: object,
    name: str,
    where: str = "topology",
    overrides: Mapping[str, object] | None = None,
) -> Topology:
    """Return a topology from a parsed document.

    `where` is the prefix of each error message.
    """
    if not isinstance(document, dict):
        raise TopologyError(f"{where}: is not a topology: a mapping of keys is needed")
    try:
        return _resolve(File.model_validate(_overridden(document, overrides or {})), name)
    except ValidationError as error:
        sentences = []
        for item in error.errors():
            words = _WORDS.get(item["type"], "is {!r:.60}: {}")
            said = words.format(item["input"], item["msg"].lower())
            if item["type"] == "value_error":
                said = str(item["ctx"]["error"])
            sentences.append(f"{where}: {'.'.join(map(str, item['loc']))}: {said}")
        raise TopologyError("\n".join(sentences)) from None
    except TopologyError as error:
        raise TopologyError(f"{where}: {error}") from None


# Messages for pydantic's types of error. Other types get the found value and pydantic's message.
_WORDS = {
    "extra_forbidden": "unknown key",
    "missing": "is missing",
    "string_pattern_mismatch": "{!r:.60} is not a name of letters, digits, '.', '_' and '-'",
    "dict_type": "is {!r:.60}: a mapping of keys is needed",
    "model_type": "is {!r:.60}: a mapping of keys is needed",
    "list_type": "is {!r:.60}: a list is needed",
    "tuple_type": "is {!r:.60}: a list is needed",
}


_RANGE = re.compile(r"([A-Za-z0-9._-]*?)\[?(0*)\d+[^\]]*\]?")


def _overridden(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, object]:
    """Return a topology document with the caller's overrides applied (see `load`)."""
    changed = {**document, **changes}
    nodes, total = document.get("nodes"), changes.get("nodes")
    if isinstance(total, int) and isinstance(nodes, dict):
        share, rest = divmod(total, len(nodes))
        if share < 1 or rest:
            raise TopologyError(
                f"nodes: {total} nodes can't be divided equally among the topology's {len(nodes)} "
                "entries of nodes"
            )
        first = _RANGE.fullmatch(str(next(iter(nodes))))
        prefix = first[1] if first else "node"
        changed["nodes"] = {
            f"{prefix}[{i * share + 1}-{(i + 1) * share}]": entry
            for i, entry in enumerate(nodes.values())
        }
    if "rate" in changes and isinstance(changed.get("nodes"), dict):
        changed["nodes"] = {
            names: {key: value for key, value in entry.items() if key != "rate"}
            if isinstance(entry, dict)
            else entry
            for names, entry in changed["nodes"].items()
        }
    for key in ("overrides", "model"):
        both = [part[key] for part in (document, changes) if part.get(key)]
        if both and all(isinstance(one, dict) for one in both):
            changed[key] = {**both[0], **both[-1]}
    return changed


def _resolve(file: File, name: str) -> Topology:
    """Return the topology that a file describes; TopologyError for the first mistake."""
    modules, device = file.modules or [], None
    for module, n in Counter(modules).items():
        if n > 1:
            raise TopologyError(f"modules: {module!r} is named {n} times")
    if file.modules is None and file.kind != ROUTED:
        raise TopologyError("modules: is missing: name the topology's switch modules")
    try:
        if file.device is not None:
            if len(modules) != 1 or file.kind in (ROUTED, SITE):
                raise TopologyError("device: only a lab with one switch module can have a device")
            if file.device.chain and file.kind != MODEL:
                raise TopologyError("device.chain: is possible with `kind: model` only")
            device = device_of(file.device, modules[0])
        nodes = tuple(_nodes(file, device))
        trunks, links = _bundles(file, {node.name for node in nodes})
        if device is not None:
            check_places(device, {node.name: node.port for node in nodes})
    except ValueError as error:
        raise TopologyError(f"device.{error}") from None
    topology = Topology(
        name,
        file.description,
        tuple(modules),
        nodes,
        trunks,
        file.mtu,
        model=(file.model or Behaviour()) if file.kind == MODEL else None,
        burst_bytes=file.burst,
        kind=file.kind,
        links=links,
        device=device,
    )
    for mistake in _mistakes(file, topology):
        raise TopologyError(mistake)
    return topology


def _nodes(file: File, device: Device | None) -> Iterator[AttachedHost]:
    """Yield the nodes of a topology file."""
    seen: dict[str, str] = {}
    modules = file.modules or []
    for names, entry in file.nodes.items():
        group = entry or Nodes()
        where = f"nodes.{names}"
        module = group.module
        if module is None and file.kind != ROUTED:
            if len(modules) != 1:
                raise TopologyError(f"{where}: module is missing (one of {', '.join(modules)})")
            module = modules[0]
        if module is not None and module not in modules:
            raise TopologyError(f"{where}.module: there is no module {module!r}")
        for name in _expand(names, where):
            if name in seen:
                raise TopologyError(f"{where}: node {name!r} is already in {seen[name]}")
            seen[name] = where
            own = file.overrides.get(name, Override())
            index = len(seen)
            port = own.port or (default_port(device, index - 1) if device else f"p{index}")
            if module is None:
                if any(item is not None for item in (own.rate, group.rate, own.queue, group.queue)):
                    raise TopologyError(
                        f"{where}: a node without a module has no rate and no queue: set them for "
                        "its `links`"
                    )
                yield AttachedHost(name, index, "", "", UNSHAPED, file.queue)
                continue
            rate_bps = _rate_bps(where, own.rate, group.rate, file.rate)
            queue = _first(own.queue, group.queue, file.queue) or 0
            yield AttachedHost(name, index, module, port, rate_bps, queue)
    for name in file.overrides:
        if name not in seen:
            raise TopologyError(f"overrides.{name}: there is no such node")


_NAME_MOST = 63  # limit of the names of namespaces and files


def _expand(names: str, where: str) -> list[str]:
    """Return the node names in a node set."""
    try:
        nodes = list(node_set(names, _MAX_NODES))
    except ValueError as error:
        raise TopologyError(f"{where}: {error}") from None
    if not nodes:
        raise TopologyError(f"{where}: names no node")
    for name in nodes:
        if name == _SWITCH or len(name) > _NAME_MOST or not HOST.fullmatch(name):
            raise TopologyError(
                f"{where}: {name!r} can't be a node's name: at most 63 letters, digits, '.', '_' "
                "and '-', and not 'switch'"
            )
    return nodes


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _rate_bps(where: str, *rates: int | None) -> int:
    """Return the first given rate that is not None; raise TopologyError if all are None."""
    rate_bps = _first(*rates)
    if rate_bps is None:
        raise TopologyError(f"{where}: has no rate, and the topology has no `rate` either")
    return rate_bps


def _bundles(file: File, nodes: Collection[str]) -> tuple[tuple[Bundle, ...], tuple[Bundle, ...]]:
    """Return the trunks and the links of a topology file; `nodes` has the names of its nodes.

    In a site a link may also join a node with a further switch.
    """
    modules = file.modules or []

    def bundle(where: str, a: str, b: str, entry: LinkEntry, links: int = 1) -> Bundle:
        if a == b:
            raise TopologyError(f"{where}.between: joins {a!r} to itself")
        queue = _first(entry.queue, file.queue) or 0
        return Bundle(a, b, links * _rate_bps(where, entry.rate, file.rate), queue, links)

    trunks, links = [], []
    for i, trunk in enumerate(file.trunks):
        a, b = trunk.between
        for module in (a, b):
            if module not in modules:
                raise TopologyError(f"trunks.{i}.between: there is no module {module!r}")
        trunks.append(bundle(f"trunks.{i}", a, b, trunk, trunk.links))
    joined: dict[frozenset[str], str] = {}
    for number, entry in enumerate(file.links):
        where = f"links.{number}"
        left, right = (_expand(names, f"{where}.between") for names in entry.between)
        if len(left) != len(right):
            raise TopologyError(
                f"{where}.between: joins {len(left)} nodes to {len(right)}: both sets need the "
                "same size, because their nodes are joined in pairs"
            )
        for a, b in zip(left, right, strict=True):
            both = frozenset((a, b))
            for name in (a, b):
                if name not in nodes and not (file.kind == SITE and name in modules):
                    raise TopologyError(f"{where}.between: there is no node {name!r}")
            if both in joined:
                raise TopologyError(f"{where}: {joined[both]} already joins {a!r} and {b!r}")
            joined[both] = where
            links.append(bundle(where, a, b, entry))
    return tuple(trunks), tuple(links)


# Maximum nodes of a routed lab, in which each node has a route to each other node.
MAX_ROUTED = 128

_MODEL_PORTS = 30  # DPDK as Debian builds it holds 32 devices per process.
_MODEL_FRONT = 64  # limit that includes unconnected ports (MODEL_PORTS_MAX)


class Parts:
    """Union-find structure that groups the connected places (nodes, modules) of a topology."""

    def __init__(self) -> None:
        self._part: dict[str, str] = {}

    def root(self, place: str) -> str:
        """Return the place that represents the group of connected places of a given place."""
        while (above := self._part.get(place, place)) != place:
            place = above
        return place

    def join(self, a: str, b: str) -> bool:
        """Join the groups of two places; return true if the groups were separate."""
        apart = self.root(a) != self.root(b)
        self._part[self.root(a)] = self.root(b)
        return apart


def _mistakes(file: File, topology: Topology) -> Iterator[str]:
    """Yield a sentence for each mistake in a topology: loops, separate parts, exceeded limits.

    A trunk must not close a loop between modules, and a path over trunks and forwarding nodes must
    join all nodes.
    """
    routed, is_model, loops, parts = file.kind == ROUTED, file.kind == MODEL, Parts(), Parts()
    if file.kind != SITE:
        for i, trunk in enumerate(topology.trunks):
            if not loops.join(trunk.a, trunk.b):
                yield (
                    f"trunks.{i}: closes a loop between {trunk.a!r} and {trunk.b!r}, in which "
                    "frames would circle for ever (parallel links are one trunk with `links`)"
                )
        # Prefix for nodes, because a node may have the name of a module.
        joined = [(trunk.a, trunk.b) for trunk in topology.trunks]
        joined += [(f"node {node.name}", node.module) for node in topology.nodes if node.module]
        joined += [(f"node {link.a}", f"node {link.b}") for link in topology.links]
        for a, b in joined:
            parts.join(a, b)
        places = [f"node {node.name}" for node in topology.nodes] if routed else topology.modules
        lost = [place for place in places if parts.root(place) != parts.root(places[0])]
        if lost:
            start, end = (place.removeprefix("node ") for place in (places[0], lost[0]))
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            key = "links" if routed else "trunks"
            yield f"{key}: there is no path from {start!r} to {end!r}{more}"
    if topology.links and file.kind not in (ROUTED, SITE):
        yield "links: goes with `kind: routed` or `kind: site` only"
    if routed and len(topology.nodes) > MAX_ROUTED:
        yield f"nodes: {len(topology.nodes)} are too many for kind routed: at most {MAX_ROUTED}"
    frame = topology.frame_layer1_bytes
    for cable in topology.cables:
        if cable.rate_bps != UNSHAPED and cable.queue_bytes < frame:
            yield (
                f"queue: {cable.queue_bytes} bytes at {cable.name} are less than a frame of "
                f"{frame} bytes (MTU {topology.mtu}, at layer 1): no such frame would pass"
            )
    if file.burst is not None and is_model:
        yield "burst: a modelled switch has no burst size: remove this key"
    elif file.burst is not None and file.burst < 2 * frame:
        yield f"burst: {file.burst} bytes are less than two frames of the MTU, {2 * frame}"
    if file.model is not None and not is_model:
        yield "model: goes with `kind: model` only"
    for module in topology.modules if is_model else ():
        ports = sum(node.module == module for node in topology.nodes)
        ports += sum(module in (trunk.a, trunk.b) for trunk in topology.trunks)
        if not 2 <= ports <= _MODEL_PORTS:
            yield (
                f"modules: {module!r} has {ports} nodes and trunks; a modelled switch has 2 "
                f"to {_MODEL_PORTS}"
            )
    if is_model and topology.device and len(topology.device.ports) > _MODEL_FRONT:
        yield (
            f"device.ports: {len(topology.device.ports)} ports are too many: a modelled switch has "
            f"at most {_MODEL_FRONT}"
        )
    modules = {node.name: node.module for node in topology.nodes}
    if topology.device is not None:
        modules |= dict.fromkeys(topology.device.ports, topology.modules[0])
    for i, fault in enumerate(file.model.faults if file.model else ()):
        where = f"model.faults.{i}"
        yield from (f"{where}: there is no node {x!r}" for x in fault.places if x not in modules)
        if fault.module is not None and fault.module not in topology.modules:
            yield f"{where}.module: there is no module {fault.module!r}"
        if len({modules[name] for name in fault.places}) > 1:
            yield f"{where}: its ports belong to several modules: a fault is in one module"
        if fault.kind in ("dead", "slow") and fault.port is None:
            yield f"{where}.port: is missing: the node whose port is {fault.kind}"
        if fault.kind == "slow" and fault.rate is None:
            yield f"{where}.rate: is missing"
        if fault.kind == "reorder" and fault.displacement is None:
            yield f"{where}.displacement: is missing: the number of frames that overtake"
