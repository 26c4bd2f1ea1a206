# SPDX-License-Identifier: BSD-3-Clause
"""Schema of topology files, and the immutable values that describe a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator

from ..base.errors import ConfigurationError
from ..base.model import Device
from ..base.node_names import node_set
from ..base.quantities import UNSHAPED as UNSHAPED
from ..base.quantities import link_rate_bps, link_rate_text, size_bytes

LinkRate = Annotated[
    int, PlainValidator(link_rate_bps), PlainSerializer(link_rate_text, when_used="json")
]
Bytes = Annotated[int, PlainValidator(size_bytes)]
_Count = Annotated[int, Field(ge=0)]
_Percent = Annotated[float, Field(gt=0, le=100)]

_FAULTS = Literal["drop", "duplicate", "reorder", "corrupt", "wrong-port", "flood", "dead", "slow"]


class TopologyKeys(BaseModel):
    """Base of the models of mappings in a topology file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Collapse(TopologyKeys):
    """Lower capacity of a modelled switch whose load exceeds a percentage of its ports' rates."""

    above_percent: _Percent
    to_percent: _Percent
    recover_percent: _Percent | None = None
    window_ms: Annotated[int, Field(ge=1, le=10_000)] | None = None


class AddressTable(TopologyKeys):
    """Size, learning rate and ageing time of a modelled switch's address table."""

    size: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    learn_per_s: _Count | None = None
    ageing_ms: Annotated[int, Field(ge=1)] | None = None


class Pause(TopologyKeys):
    """Ethernet PAUSE of a modelled switch: sending, and the thresholds of its buffer."""

    send: bool | None = None
    high: Bytes | None = None
    low: Bytes | None = None


class Fault(TopologyKeys):
    """Fault planted in a modelled switch; its ports are given as node names."""

    model_config = ConfigDict(populate_by_name=True)  # saved states of labs use the name `in_`

    kind: _FAULTS
    module: str | None = None
    one_in: Annotated[int, Field(ge=1, le=2**32 - 1)] | None = None
    at_most: _Count | None = None
    in_: Annotated[str | None, Field(alias="in")] = None
    out: str | None = None
    to: str | None = None
    port: str | None = None
    measured: bool | None = None
    displacement: Annotated[int, Field(ge=1, le=10_000)] | None = None
    hold_ms: Annotated[int, Field(ge=1, le=10_000)] | None = None
    rate: LinkRate | None = Field(None, serialization_alias="rate_bps")

    @property
    def places(self) -> list[str]:
        """Return the ports, as node names, that the fault names."""
        return [name for name in (self.in_, self.out, self.to, self.port) if name is not None]


class Behaviour(TopologyKeys):
    """Configuration of a modelled switch; absent keys take switchbench-switch's defaults."""

    # Serialised by alias, the keys are those that switchbench-switch reads.

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    queueing: Literal["output", "input", "voq"] | None = None
    sharing: Literal["port", "shared"] | None = None
    memory: Bytes | None = Field(None, serialization_alias="buffer")
    input_buffer: Bytes | None = None
    capacity: LinkRate | None = None
    trunk_capacity: LinkRate | None = None
    collapse: Collapse | None = None
    table: AddressTable | None = None
    recovery_ms: Annotated[int, Field(ge=1, le=60_000)] | None = None
    drop_undersize: bool | None = None
    latency_ns: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    pause: Pause | None = None
    flows: Literal["addresses", "tags"] | None = None
    faults: list[Fault] = []


class DeviceKeys(TopologyKeys):
    """Keys of the device under test: ports, port groups, and `chain` for ports in series."""

    name: str | None = None
    ports: str | list[str]  # node sets
    groups: Mapping[str, str | list[str]] = {}
    chain: bool = False


class LinkEntry(TopologyKeys):
    """Entry of a topology file's `links`: two node sets of equal size, joined pairwise."""

    between: Annotated[list[str], Field(min_length=2, max_length=2)]
    rate: LinkRate | None = None
    queue: Bytes | None = None


DEFAULT_QUEUE_BYTES = 128 * 1024

MTU_RANGE = (1280, 9600)  # IPv6 requires 1,280 (RFC 8200 section 5); NICs end around 9,600.

# Bytes on the wire that Linux does not count: FCS 4, preamble and start delimiter 8, gap 12.
LAYER1_OVERHEAD = 24

# Kinds of lab: a switch of Linux bridges, the modelled switch, Open vSwitch, or nodes that forward
# IP between bridges and over links of their own.
BRIDGES, MODEL, OVS, ROUTED = "bridges", "model", "ovs", "routed"

# Kind of a real network, which is no lab: its switches may form loops, and a node may be on several
# switches.
SITE = "site"


class TopologyError(ConfigurationError):
    """Error of an invalid topology."""


@dataclass(frozen=True)
class AttachedHost:
    """Host of a topology on one switch port; in a routed lab, possibly on no switch."""

    name: str
    index: int  # position in the order of the file, from 1
    module: str  # switch module of the host; empty where it is on no switch
    port: str  # switch port as shown to users: the lab's `p<index>`, or the name in the file
    rate_bps: int  # layer-1 rate per direction; `UNSHAPED` without a limit
    queue_bytes: int  # queue length of each of its two shapers, in layer-1 bytes


@dataclass(frozen=True)
class Bundle:
    """Links between two modules, or a cable between two nodes; a shaper per direction."""

    a: str
    # Second end; for a cable of node `a` in a real site, this may be a further switch of the node.
    b: str
    rate_bps: int  # sum of the links' layer-1 rates, per direction; `UNSHAPED` without a limit
    queue_bytes: int
    links: int = 1

    @property
    def name(self) -> str:
        """Return the name of a bundle from its ends, such as `left-right`."""
        return f"{self.a}-{self.b}"


# Part of a topology with a rate and a queue: a node on a switch, a trunk, a link between nodes.
Cable: TypeAlias = AttachedHost | Bundle


@dataclass(frozen=True)
class Topology:
    """Network of switch modules and nodes: a tree, unless nodes forward IP."""

    name: str
    description: str
    modules: tuple[str, ...]
    nodes: tuple[AttachedHost, ...]
    trunks: tuple[Bundle, ...]
    mtu: int
    model: Behaviour | None = None  # configuration of the modelled switch; None for other kinds
    # Burst that a shaper passes after an idle time, in layer-1 bytes; None: 16 ms of line rate.
    burst_bytes: int | None = None
    kind: str = BRIDGES
    # Links between nodes of a routed lab or a site; in a site also to further switches.
    links: tuple[Bundle, ...] = ()
    # The lab's only module with all its ports, where the device has more ports than nodes.
    device: Device | None = None

    @property
    def cables(self) -> tuple[Cable, ...]:
        """Return all parts that have a rate and a queue: nodes on switches, trunks, links."""
        return (*(node for node in self.nodes if node.module), *self.trunks, *self.links)

    @property
    def frame_layer1_bytes(self) -> int:
        """Return the layer-1 bytes of the largest untagged frame, preamble and gap included."""
        return self.mtu + 14 + LAYER1_OVERHEAD

    def node(self, name: str) -> AttachedHost:
        """Return the node with a given name.

        The `TopologyError` for an unknown name lists all names.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        known = NodeSet.fromlist([node.name for node in self.nodes], resolver=RESOLVER_NOGROUP)
        raise TopologyError(f"{self.name} has no node {name!r} (it has {known})")


_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]


class Nodes(TopologyKeys):
    """Keys of one entry of a topology file's `nodes`."""

    module: str | None = None
    rate: LinkRate | None = None
    queue: Bytes | None = None


class Override(TopologyKeys):
    """Keys of a topology file's `overrides` for a single node."""

    rate: LinkRate | None = None
    queue: Bytes | None = None
    port: str | None = None


class TrunkEntry(LinkEntry):
    """Keys of one entry of a topology file's `trunks`: the links between two modules."""

    links: Annotated[int, Field(ge=1)] = 1


class File(TopologyKeys):
    """Top-level keys of a topology file."""

    topology: Literal[1]
    kind: Literal["bridges", "model", "ovs", "routed", "site"] = "bridges"
    description: str = ""
    rate: LinkRate | None = None
    queue: Bytes = DEFAULT_QUEUE_BYTES
    burst: Bytes | None = None
    mtu: Annotated[int, Field(ge=MTU_RANGE[0], le=MTU_RANGE[1])] = 1500
    modules: Annotated[list[_Name], Field(min_length=1)] | None = None
    nodes: Annotated[Mapping[str, Nodes | None], Field(min_length=1)]
    trunks: tuple[TrunkEntry, ...] = ()
    links: tuple[LinkEntry, ...] = ()
    overrides: Mapping[str, Override] = {}
    model: Behaviour | None = None
    device: DeviceKeys | None = None


ETHERNET_HEADER_AND_TAG = 18
_BURST_S = 0.016


@dataclass(frozen=True)
class Shaper:
    """Rate limiter and queue of one direction of a link."""

    rate_bps: int
    queue_bytes: int
    mtu: int
    # Burst of the topology file in layer-1 bytes; None: 16 ms of line rate.
    burst: int | None = None

    @property
    def burst_bytes(self) -> int:
        """Return the depth of the token bucket: the bytes that may pass at once after an idle time.

        The depth is 16 ms of line rate and at least two frames, unless the topology sets a burst.
        On shared cores the timer's softirq may run some time slices late, and the link must not
        lose rate by this: beside compilers, a depth of 4 ms lost up to 1 % at 100M, and 8 ms lost
        up to 6 % of an uplink of 10M. A window of 2 s that begins after an idle time measures at
        most 0.8 % too much; a window that begins after a warm-up at full load has no such error.
        """
        if self.burst is not None:
            return self.burst
        frame = self.mtu + ETHERNET_HEADER_AND_TAG + LAYER1_OVERHEAD
        return max(2 * frame, round(self.rate_bps / 8 * _BURST_S))


# --- device under test ----------------------------------------------------------------------------
# Port names of the device under test, and the device ports to which host ports are cabled.


MOST_PORTS = 4096


def device_of(keys: DeviceKeys, name: str) -> Device:
    """Return the device that a topology's `device` keys describe; ValueError names the bad key."""
    ports = _names(keys.ports, "ports")
    groups = {group: _names(texts, f"groups.{group}") for group, texts in keys.groups.items()}
    for group, members in groups.items():
        strange = [port for port in members if port not in ports]
        if strange:
            raise ValueError(f"groups.{group}: the device has no port {strange[0]!r}")
    if keys.chain and len(ports) % 2:
        raise ValueError(
            f"chain: {len(ports)} ports can't be chained: frames enter by one port and leave by "
            "the next, so the number of ports must be even"
        )
    return Device(keys.name or name, ports, groups, keys.chain)


def _names(texts: str | list[str], key: str) -> tuple[str, ...]:
    """Return the port names in a list of node sets, in the order of the list."""
    names: list[str] = []
    for text in [texts] if isinstance(texts, str) else texts:
        try:
            names += map(str, node_set(text, MOST_PORTS))
        except ValueError as error:
            raise ValueError(f"{key}: {text!r} names no ports: {error}") from None
    twice = [name for name in names if names.count(name) > 1]
    if twice or not names:
        raise ValueError(f"{key}: " + (f"duplicate port {twice[0]}" if twice else "names no port"))
    return tuple(names)


def default_port(device: Device, place: int) -> str:
    """Return the default device port of host port number `place`, from 0.

    For a chain the first host port is at its beginning, the second at its end.
    """
    return device.ports[-1 if device.chain and place == 1 else place % len(device.ports)]


def check_places(device: Device, places: Mapping[str, str]) -> None:
    """Raise ValueError where host ports cannot be cabled to the given ports of the device.

    Parameters
    ----------
    device
        The device under test.
    places
        Device port to which each host port is cabled.
    """
    if len(places) > len(device.ports):
        raise ValueError(
            f"ports: {len(places)} host ports are more than the {len(device.ports)} ports of "
            f"{device.name}: leave hosts out, or name all ports of the device"
        )
    users: dict[str, str] = {}
    for tester, port in places.items():
        if port not in device.ports:
            raise ValueError(
                f"ports: {tester} is connected to {port}, but {device.name} has no port {port}"
            )
        if port in users:
            raise ValueError(f"ports: {users[port]} and {tester} are both connected to {port}")
        users[port] = tester
    if device.chain:
        first, *last = sorted(device.ports.index(port) for port in places.values())
        if len(last) != 1 or first % 2 or not last[0] % 2:
            raise ValueError(
                "chain: two host ports are needed: one in the first port of a VLAN, the other in "
                "the second port of that VLAN or of a later one, not "
                f"{', '.join(places.values())}"
            )


def loop_cables(device: Device, places: Iterable[str]) -> dict[str, str]:
    """Map each port of a chain that has a loop cable to the port at the cable's other end.

    A loop cable joins the second port of a VLAN with the first port of the next VLAN. A port that a
    host is plugged into has no loop cable.
    """
    taken = set(places)
    pairs = zip(device.ports[1::2], device.ports[2::2], strict=False) if device.chain else ()
    free = [pair for pair in pairs if not taken.intersection(pair)]
    return dict(free) | {b: a for a, b in free}
