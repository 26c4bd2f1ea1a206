# SPDX-License-Identifier: BSD-3-Clause
"""The keys of a topology file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from pydantic import Field

from switchbench.topology.behaviour import Behaviour, Bytes, LinkRate, TopologyKeys
from switchbench.topology.links import LinkEntry, NodeLink

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
class Trunk:
    """All the links between two modules, as one shaper each way."""

    a: str
    b: str
    links: int
    rate_bps: int
    """The sum over its links; `UNSHAPED` when nothing limits it."""
    queue_bytes: int

    @property
    def name(self) -> str:
        """`left-right`."""
        return f"{self.a}-{self.b}"


@dataclass(frozen=True)
class Topology:
    """A network: modules, with nodes; a tree, unless nodes forward."""

    name: str
    description: str
    modules: tuple[str, ...]
    nodes: tuple[AttachedHost, ...]
    trunks: tuple[Trunk, ...]
    mtu: int
    model: Behaviour | None = None
    """How the modelled switch behaves; None: it is another kind."""
    burst_bytes: int | None = None
    """What may pass a shaper at once after silence, in layer-1 bytes; None: 16 ms of line."""
    kind: str = BRIDGES
    links: tuple[NodeLink, ...] = ()
    """Between nodes, of a routed lab or a site; of a site, to further switches too."""

    @property
    def cables(self) -> tuple[AttachedHost | Trunk | NodeLink, ...]:
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
