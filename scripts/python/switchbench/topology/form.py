# SPDX-License-Identifier: BSD-3-Clause
"""The keys of a topology file, and the network that it describes as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from ..base.model import Device
from ..base.quantities import (
    LINK_RATE_FORM,
    SIZE,
    link_rate_bps,
    link_rate_text,
    size_bytes,
)
from ..base.quantities import UNSHAPED as UNSHAPED

LinkRate = Annotated[
    int,
    BeforeValidator(link_rate_bps),
    PlainSerializer(link_rate_text, when_used="json"),
    WithJsonSchema(LINK_RATE_FORM),
]
Bytes = Annotated[int, BeforeValidator(size_bytes), WithJsonSchema(SIZE.form())]
_Count = Annotated[int, Field(ge=0)]
_Percent = Annotated[float, Field(gt=0, le=100)]

_FAULTS = Literal["drop", "duplicate", "reorder", "corrupt", "wrong-port", "flood", "dead", "slow"]


class TopologyKeys(BaseModel):
    """A mapping of a topology file: all its keys are known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RateStep(TopologyKeys):
    """A rate from a number of active ports on."""

    ports: _Count = 0
    rate: LinkRate = Field(serialization_alias="bps")


def _steps(value: object) -> object:
    """Return the steps of a capacity, which may be one rate."""
    return value if isinstance(value, list) else [{"rate": value}]


_Steps = Annotated[
    list[RateStep],
    BeforeValidator(_steps, json_schema_input_type=LinkRate | list[RateStep]),
    Field(min_length=1, max_length=16),
]


class Collapse(TopologyKeys):
    """What happens above a share of the ports' rates."""

    above_percent: _Percent
    to_percent: _Percent
    recover_percent: _Percent | None = None
    window_ms: Annotated[int, Field(ge=1, le=10_000)] | None = None


class AddressTable(TopologyKeys):
    """The address table."""

    size: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    learn_per_s: _Count | None = None
    ageing_ms: Annotated[int, Field(ge=1)] | None = None


class Pause(TopologyKeys):
    """Back-pressure."""

    send: bool | None = None
    high: Bytes | None = None
    low: Bytes | None = None


class Fault(TopologyKeys):
    """One planted fault. Ports are nodes' names."""

    model_config = ConfigDict(populate_by_name=True)  # `in_` in the state of a lab

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
    first_byte: _Count | None = None
    last_byte: Annotated[int, Field(ge=12)] | None = None
    rate: LinkRate | None = Field(None, serialization_alias="rate_bps")

    @property
    def places(self) -> list[str]:
        """The ports that it names."""
        return [name for name in (self.in_, self.out, self.to, self.port) if name is not None]


class Behaviour(TopologyKeys):
    """All of it; what is not said is switchbench-switch's default."""

    # Serialised by alias it is what switchbench-switch reads.

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    queueing: Literal["output", "input", "voq"] | None = None
    sharing: Literal["port", "shared"] | None = None
    memory: Bytes | None = Field(None, serialization_alias="buffer")
    input_buffer: Bytes | None = None
    capacity: _Steps | None = None
    trunk_capacity: _Steps | None = None
    collapse: Collapse | None = None
    table: AddressTable | None = None
    recovery_ms: Annotated[int, Field(ge=1, le=60_000)] | None = None
    drop_undersize: bool | None = None
    latency_ns: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    pause: Pause | None = None
    flows: Literal["addresses", "tags"] | None = None
    faults: list[Fault] = []


class DeviceKeys(TopologyKeys):
    """The device under test: its ports, groups of them, and whether VLANs and cables chain them."""

    name: str | None = None
    ports: str | list[str]  # node sets
    groups: Mapping[str, str | list[str]] = {}
    chain: bool = False


class LinkEntry(TopologyKeys):
    """One entry of a topology file's `links`: two node sets of one size, joined one by one."""

    between: Annotated[list[str], Field(min_length=2, max_length=2)]
    rate: LinkRate | None = None
    queue: Bytes | None = None


DEFAULT_QUEUE_BYTES = 128 * 1024

MTU_RANGE = (1280, 9600)  # IPv6 wants 1,280 (RFC 8200 section 5); NICs stop around 9,600.

LAYER1_OVERHEAD = 24

"""FCS 4, preamble and start delimiter 8, gap 12: what a frame costs beyond what Linux counts."""

BRIDGES, MODEL, OVS, ROUTED = "bridges", "model", "ovs", "routed"

"""What a lab is made of: its switch of Linux bridges, of the modelled switch or of Open vSwitch; or
nodes that forward IP between bridges and over links of their own."""

SITE = "site"

"""A real network, of which no lab is made: its switches may form loops, its nodes be on several."""


class TopologyError(ValueError):
    """A topology that can't be used; `messages` holds one sentence for each mistake."""

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages = list(messages)
        super().__init__("\n".join(self.messages))


@dataclass(frozen=True)
class AttachedHost:
    """A host on one switch port, or in a routed lab on none."""

    name: str
    index: int
    """Its position, from 1, in the order of the file."""
    module: str
    """Empty: it is on no switch."""
    port: str
    """The switch port as people know it: the lab's `p<index>`, or what the file says."""
    rate_bps: int
    """Layer-1 rate each way; `UNSHAPED` when nothing limits it."""
    queue_bytes: int
    """What each of its two shapers may hold, in layer-1 bytes."""


@dataclass(frozen=True)
class Bundle:
    """All the links between two modules, or a cable between two nodes: a shaper each way."""

    a: str
    b: str
    """Of a cable of a real site's node `a` also a switch, one more that the node is on."""
    rate_bps: int
    """The sum over its links, of layer 1, each way; `UNSHAPED` when nothing limits it."""
    queue_bytes: int
    links: int = 1

    @property
    def name(self) -> str:
        """`left-right`."""
        return f"{self.a}-{self.b}"


Cable: TypeAlias = AttachedHost | Bundle
"""What has a rate and a queue: a node on a switch, a trunk, a link between nodes."""


@dataclass(frozen=True)
class Topology:
    """A network: modules, with nodes; a tree, unless nodes forward."""

    name: str
    description: str
    modules: tuple[str, ...]
    nodes: tuple[AttachedHost, ...]
    trunks: tuple[Bundle, ...]
    mtu: int
    model: Behaviour | None = None
    """How the modelled switch behaves; None: it is another kind."""
    burst_bytes: int | None = None
    """What may pass a shaper at once after silence, in layer-1 bytes; None: 16 ms of line."""
    kind: str = BRIDGES
    links: tuple[Bundle, ...] = ()
    """Between nodes, of a routed lab or a site; of a site, to further switches too."""
    device: Device | None = None
    """The lab's only module with all its ports, where they are more than the nodes."""

    @property
    def cables(self) -> tuple[Cable, ...]:
        """All that has a rate and a queue: nodes on a switch, trunks, links between nodes."""
        return (*(node for node in self.nodes if node.module), *self.trunks, *self.links)

    @property
    def frame_layer1_bytes(self) -> int:
        """The largest untagged frame on the wire: MTU, header, FCS, preamble and gap."""
        return self.mtu + 14 + LAYER1_OVERHEAD

    def node(self, name: str) -> AttachedHost:
        """Return the node of that name; `TopologyError` names those there are."""
        for node in self.nodes:
            if node.name == name:
                return node
        known = NodeSet.fromlist([node.name for node in self.nodes], resolver=RESOLVER_NOGROUP)
        raise TopologyError([f"{self.name} has no node {name!r} (it has {known})"])


_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]


class Nodes(TopologyKeys):
    """Keys of a set of nodes."""

    module: str | None = None
    rate: LinkRate | None = None
    queue: Bytes | None = None


class Override(TopologyKeys):
    """Keys of a single node."""

    rate: LinkRate | None = None
    queue: Bytes | None = None
    port: str | None = None


class TrunkEntry(LinkEntry):
    """Keys of the links between two modules."""

    links: Annotated[int, Field(ge=1)] = 1


class File(TopologyKeys):
    """Keys of a topology file."""

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
    """One direction of a link."""

    rate_bps: int
    queue_bytes: int
    mtu: int
    burst: int | None = None
    """Layer-1 bytes that the topology asks for instead of 16 ms of line."""

    @property
    def burst_bytes(self) -> int:
        """The token bucket's depth: what may pass at once after silence.

        16 ms of line, unless the topology says less: where cores are shared, the timer's softirq
        waits for some time slices, and the link must not lose rate for it (beside compilers 4 ms
        lost up to 1 % at 100M, 8 ms up to 6 % of an uplink of 10M). A window of 2 s that begins
        after silence shows 0.8 % too much at most; one that begins after a warm-up at full load,
        nothing. Two frames at least.
        """
        if self.burst is not None:
            return self.burst
        frame = self.mtu + ETHERNET_HEADER_AND_TAG + LAYER1_OVERHEAD
        return max(2 * frame, round(self.rate_bps / 8 * _BURST_S))
