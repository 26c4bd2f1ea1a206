# SPDX-License-Identifier: BSD-3-Clause
"""Ports over all phases."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

from .forms import Count


class RdmaPort(TypedDict):
    """What only verbs has: the device of the port."""

    rdma: Annotated[str | None, "Device and port"]
    link_layer: Annotated[str | None, "InfiniBand or Ethernet"]
    gid: Annotated[str | None, "Its address"]
    gid_index: Annotated[int | None, "Its place in the port's table"]
    mtu: Annotated[int | None, "Active path MTU in bytes"]


class Direction(TypedDict):
    """A port as source, or as destination."""

    phases: Annotated[int, "Phases in which it was one"]
    median_percent_of_line: Annotated[
        float | None, "Median over phases, without those in which its flows are tester-limited"
    ]
    min_percent_of_line: Annotated[float | None, "Min over the same phases"]
    relative_to_median: Annotated[
        float | None,
        "Median over the same phases of: this port's percent of line by that of the phase's "
        "median port",
    ]
    lost_frames: Annotated[Count | None, "Lost frames of its flows"]


class SlowPhase(TypedDict):
    """A phase of which the port was an end of the slowest flow."""

    trial: Annotated[int, "Its number"]
    phase: Annotated[int, "Its number"]


class PortEntry(TypedDict):
    """One port with one transport, over all phases."""

    port: Annotated[str, "host:port"]
    transport: Annotated[str, "dpdk, packet, tcp, udp or verbs"]
    network: Annotated[str, "Its network"]
    switch: Annotated[str | None, "Where the wiring is known"]
    switch_port: Annotated[str | None, "Where the wiring is known"]
    driver: Annotated[str | None, "Of DPDK, or of the kernel"]
    numa: Annotated[int | None, "NUMA node of its device"]
    queues: Annotated[int | None, "In use"]
    cores: Annotated[list[int] | None, "Of the queues, in their order; null: tied to none"]
    offloads: Annotated[str | None, "In use, by the driver's names"]
    rdma: Annotated[
        RdmaPort | None, "verbs: the device's port as it was opened; null for other transports"
    ]
    link_downs: Annotated[
        Count, "How often its link was seen to go down during phases, whatever the transport"
    ]
    variants: Annotated[list[str], "Hot paths that were chosen, in the engine's words"]
    as_source: Annotated[Direction, "Of the flows that it sends"]
    as_destination: Annotated[Direction, "Of the flows that it receives"]
    suspect: Annotated[str | None, "What it is suspected of (location); null: nothing"]
    slowest_phases: Annotated[list[SlowPhase], "Phases whose slowest flow began or ended here"]
