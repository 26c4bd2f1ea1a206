# SPDX-License-Identifier: BSD-3-Clause
"""Ports over all phases."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from .forms import Count


class RdmaPort(TypedDict):
    """What only verbs has: the device of the port."""

    rdma: Annotated[str | None, Field(description="Device and port")]
    link_layer: Annotated[str | None, Field(description="InfiniBand or Ethernet")]
    gid: Annotated[str | None, Field(description="Its address")]
    gid_index: Annotated[int | None, Field(description="Its place in the port's table")]
    mtu: Annotated[int | None, Field(description="Active path MTU in bytes")]


class Direction(TypedDict):
    """A port as source, or as destination."""

    phases: Annotated[int, Field(description="Phases in which it was one")]
    median_percent_of_line: Annotated[
        float | None,
        Field(
            description="Median over phases, without those in which its flows are tester-limited"
        ),
    ]
    min_percent_of_line: Annotated[float | None, Field(description="Min over the same phases")]
    relative_to_median: Annotated[
        float | None,
        Field(
            description="Median over the same phases of: this port's percent of line by that of "
            "the phase's median port"
        ),
    ]
    lost_frames: Annotated[Count | None, Field(description="Lost frames of its flows")]


class SlowPhase(TypedDict):
    """A phase of which the port was an end of the slowest flow."""

    trial: Annotated[int, Field(description="Its number")]
    phase: Annotated[int, Field(description="Its number")]


class PortEntry(TypedDict):
    """One port with one transport, over all phases."""

    port: Annotated[str, Field(description="host:port")]
    transport: Annotated[str, Field(description="dpdk, tcp, udp or verbs")]
    network: Annotated[str, Field(description="Its network")]
    switch: Annotated[str | None, Field(description="Where the wiring is known")]
    switch_port: Annotated[str | None, Field(description="Where the wiring is known")]
    driver: Annotated[str | None, Field(description="Of DPDK, or of the kernel")]
    numa: Annotated[int | None, Field(description="NUMA node of its device")]
    queues: Annotated[int | None, Field(description="In use")]
    cores: Annotated[
        list[int] | None, Field(description="Of the queues, in their order; null: tied to none")
    ]
    offloads: Annotated[str | None, Field(description="In use, by the driver's names")]
    rdma: Annotated[
        RdmaPort | None,
        Field(description="verbs: the device's port as it was opened; null for other transports"),
    ]
    link_downs: Annotated[
        Count,
        Field(
            description="How often its link was seen to go down during phases, whatever the "
            "transport"
        ),
    ]
    variants: Annotated[
        list[str], Field(description="Hot paths that were chosen, in the engine's words")
    ]
    as_source: Annotated[Direction, Field(description="Of the flows that it sends")]
    as_destination: Annotated[Direction, Field(description="Of the flows that it receives")]
    below_median: Annotated[
        bool | None,
        Field(description="More than 3 % below the median port, as source or as destination"),
    ]
    slowest_phases: Annotated[
        list[SlowPhase], Field(description="Phases whose slowest flow began or ended here")
    ]
