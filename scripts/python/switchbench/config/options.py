# SPDX-License-Identifier: BSD-3-Clause
"""The options of each transport."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .fields import InlineSize, Size, Strict, retries, whole


class DpdkOptions(Strict):
    """What a raw Ethernet or UDP frame looks like and how it is sent."""

    header: Literal["l2", "ipv4-udp", "ipv6-udp"] = "l2"
    vlan: Annotated[int, whole(1, 4094, "a VLAN")] | None = None
    pcp: Annotated[int, whole(0, 7, "a priority")] | None = None
    dscp: Annotated[int, whole(0, 63, "a DSCP")] | None = None
    ttl: Annotated[int, whole(1, 255, "a TTL")] | None = None
    udp_sources_per_flow: Annotated[int, whole(1, 1024, "the number of source ports")] | None = None
    burst: Annotated[int, whole(1, 128, "a burst")] = 32
    catch_up: Annotated[int, whole(1, 65535, "catch_up")] | None = None
    dither: Annotated[float, Field(ge=0, le=10)] | None = None
    destination: Literal["port", "broadcast", "multicast"] | None = None
    addresses: Annotated[int, whole(1, 2**20, "the number of addresses")] | None = None
    address_block: Annotated[int, whole(0, 255, "an address block")] | None = None
    learning_rate: Annotated[int, whole(1, 10_000_000, "the learning rate")] | None = None


class PacketOptions(Strict):
    """How raw Ethernet frames go through the kernel's packet sockets."""

    burst: Annotated[int, whole(1, 128, "a burst")] = 32
    catch_up: Annotated[int, whole(1, 65535, "catch_up")] | None = None
    dither: Annotated[float, Field(ge=0, le=10)] | None = None


class TcpOptions(Strict):
    """How kernel sockets are used."""

    streams_per_flow: Annotated[int, whole(1, 256, "the number of streams")] = 1
    send_buffer: Size | None = None
    receive_buffer: Size | None = None
    congestion: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,15}$")] | None = None
    nodelay: bool = True
    zero_copy: bool = False


class UdpOptions(Strict):
    """How datagrams go through the kernel's sockets."""

    offload: bool | None = None
    receive_buffer: Size | None = None
    burst: Annotated[int, whole(1, 128, "a burst")] = 32
    catch_up: Annotated[int, whole(1, 65535, "catch_up")] | None = None
    dither: Annotated[float, Field(ge=0, le=10)] | None = None


class VerbsOptions(Strict):
    """Which RDMA service and operation carry messages, and how (doc/how-to/verbs.md)."""

    service: Literal["rc", "uc", "ud"] = "rc"
    operation: Literal["send", "write"] | None = None
    depth: Annotated[int, whole(1, 16384, "the depth")] = 128
    queue_pairs: Annotated[int, whole(1, 64, "the number of queue pairs")] = 1
    inline: InlineSize | None = None
    signal_every: Annotated[int, whole(1, 16384, "signal_every")] | None = None
    mtu: Literal[256, 512, 1024, 2048, 4096] | None = None
    gid_index: Annotated[int, whole(0, 255, "a GID index")] | None = None
    service_level: Annotated[int, whole(0, 15, "a service level")] = 0
    traffic_class: Annotated[int, whole(0, 255, "a traffic class")] = 0
    pkey_index: Annotated[int, whole(0, 65535, "a P_Key index")] = 0
    retry: Annotated[int, retries("the number of retries")] | None = None
    rnr_retry: Annotated[int, retries("the number of retries")] | None = None
    timeout: Annotated[int, whole(1, 31, "the timeout's exponent")] | None = None
    completion: Literal["auto", "poll", "event"] = "auto"
    reuse: Annotated[int, whole(0, 1_000_000, "the number of queue pairs kept")] = 64
