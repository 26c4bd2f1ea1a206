# SPDX-License-Identifier: BSD-3-Clause
"""What a setting is when nobody gives it: profiles, and defaults by site, transport and pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from ..base import transports
from ..base.model import WAITING, Load, Repeats, Site
from .fields import Strict
from .options import DpdkOptions, PacketOptions, TcpOptions, UdpOptions, VerbsOptions
from .rules import PARAMETERS
from .schema import (
    BurstOptions,
    LatencyOptions,
    Pattern,
    Profile,
    ResolvedSettings,
    Settings,
    Transport,
)
from .settings import NESTED

_MS = 1_000_000
_S = 1_000_000_000

_WIDTH = 0.02  # of the confidence interval, as a share of the mean

RFC2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)  # RFC 2544, section 9.1
JUMBO_SIZE = 9018
DEFAULT_MESSAGE_BYTES = 64 * 1024


@dataclass(frozen=True)
class ProfileTimes:
    """How long and how often a test runs, and with which frames."""

    warmup_ns: int
    tcp_warmup_ns: int  # congestion control needs longer to reach its level
    window_ns: int
    aapc_window_ns: int  # of one phase of many
    repeat: Repeats
    frame_sizes: tuple[int, ...]
    jumbo: bool = False  # JUMBO_SIZE too where the MTU allows


PROFILES: Mapping[Profile, ProfileTimes] = {
    "quick": ProfileTimes(_S // 2, _S // 2, 2 * _S, 2 * _S, Repeats(1, 1), (1518,)),
    "standard": ProfileTimes(_S, 3 * _S, 5 * _S, 5 * _S, Repeats(3, 10, _WIDTH), (64, 1518)),
    "acceptance": ProfileTimes(
        2 * _S, 2 * _S, 60 * _S, 30 * _S, Repeats(5, 30, _WIDTH), RFC2544_SIZES, jumbo=True
    ),
}

# Of what goes by steps: repetitions without anything between them, nothing checked.
STEP_DEFAULTS = Settings.model_construct(compute=False, batch=1)

# The path MTUs of RDMA, and what a packet may need of an Ethernet MTU beside its payload: GRH, UDP,
# BTH, the largest extended headers and ICRC (as Linux counts them: iboe_get_mtu).
PATH_MTUS = (256, 512, 1024, 2048, 4096)
_ROCE_HEADERS = 40 + 8 + 12 + 4 + 28 + 4
_USUAL_ETHERNET_MTU = 1500
ETHERNET_HEADER_FCS = 18

# A lab's TCP is the same on every machine, whatever its kernel likes. All its clocks are one: flows
# of the same rate would keep their phases, and full queues would always drop the same ones.
_LAB_OPTIONS: Mapping[str, Strict] = {
    "dpdk": DpdkOptions.model_construct(dither=1),
    "packet": PacketOptions.model_construct(dither=1),
    "tcp": TcpOptions(congestion="cubic"),
    "udp": UdpOptions.model_construct(dither=1),
}
_SITE_OPTIONS: Mapping[str, Strict] = {
    "dpdk": DpdkOptions.model_construct(dither=0),
    "packet": PacketOptions.model_construct(dither=0),
    "udp": UdpOptions.model_construct(dither=0),
}

# Smallest frames that hold headers and signature, untagged and with a VLAN tag.
SMALLEST_FRAME = {"l2": (64, 64), "ipv4-udp": (64, 68), "ipv6-udp": (84, 88)}
VLAN_TAG = 4


def profile_name(site: Site) -> Profile:
    """Return the profile of a user who names none."""
    return "quick" if site.launcher.in_lab else "standard"


def defaults(site: Site, pattern: Pattern, transport: str, profile: Profile) -> ResolvedSettings:
    """Return every setting of a test that does not depend on its other settings."""
    chosen, backs_off = PROFILES[profile], transports.of(transport).byte_stream
    silence_ns = 300 * _MS  # longer than the longest queue: a deep buffer's on a site
    if site.queueing_s:
        silence_ns = (round(site.queueing_s * 1000) + 100) * _MS
    settings = ResolvedSettings.model_construct(
        pattern=pattern,
        transport=cast("Transport", transport),
        profile=profile,
        repeat=chosen.repeat,
        warmup=chosen.tcp_warmup_ns if backs_off else chosen.warmup_ns,
        window=chosen.aapc_window_ns if pattern == "aapc" else chosen.window_ns,
        cooldown=100 * _MS,
        traffic="stream",
        transfer_size=1 << 20,
        burst=BurstOptions(),
        connectivity_check=True,
        flood_limit=1000,
        seed=1,
        latency=LatencyOptions(),
        drain_timeout=silence_ns,
        drain_max=max(3 * _S, 4 * silence_ns),
        message_sizes=[DEFAULT_MESSAGE_BYTES] if backs_off else None,
    )
    by_site = _LAB_OPTIONS if site.launcher.in_lab else _SITE_OPTIONS
    options = by_site.get(transport) or NESTED[transport]()
    return settings.model_copy(update={**PARAMETERS[pattern], transport: options})


TCP_TRANSFER_DRAIN = 30 * _S
"""How long a transfer may stand still: TCP waits 0.2 s and twice as long after each further loss of
the same segment (RFC 6298), so five of them on a crowded link are 13 s of silence."""


CATCH_UP_FRAMES = 8
_CATCH_UP_BYTES = 1538  # of each of them at layer 1 (engine/phase/phase_template.c)
_CATCH_UP_MOST = 65535


def catch_up(queue_bytes: int | None, traffic: str) -> int:
    """Return how many frames a late sender may send at once.

    Where queues are known, what fills half of the smallest. Messages catch up behind each pause as
    well, several at one receiver: fewer.
    """
    if queue_bytes is None or traffic in WAITING:
        return CATCH_UP_FRAMES
    return min(max(CATCH_UP_FRAMES, queue_bytes // 2 // _CATCH_UP_BYTES), _CATCH_UP_MOST)


BURST_LOAD = Load(percent=100.0)  # a burst's frames follow each other as the line allows
SHARED_PERCENT = 95.0  # the most that a shared port is asked for (engine/phase/offered_load.h)


def default_load(site: Site, test_transports: Iterable[str]) -> Load:
    """Return the one load of all transports of a test, so that they can be compared.

    Where one of them sends frames: below what clocks' differences allow (RFC 8239). Else all that
    they can. Where a port is shared: what its other users leave.
    """
    if any(port.engine.get("shared") for port in site.ports):
        return Load(percent=SHARED_PERCENT)
    if not any(transports.of(name).frames for name in test_transports):
        return Load(percent=100.0)
    return Load(percent=95.0 if site.launcher.in_lab else 99.98)


def interval_ns(window_ns: int | None) -> int:
    """Return a second, as far as the window has one; a transfer's has no fixed length."""
    return 0 if window_ns is not None and window_ns < _S else _S


def largest_path_mtu(frame_max: int) -> int:
    """Return the largest path MTU on an Ethernet whose frames have at most so many bytes."""
    room = frame_max - ETHERNET_HEADER_FCS - _ROCE_HEADERS
    return max((mtu for mtu in PATH_MTUS if mtu <= room), default=PATH_MTUS[0])


def verbs_message_bytes(verbs: VerbsOptions, frame_max: int) -> int:
    """Return a message's size when none is given; of service ud one packet that surely fits."""
    if verbs.service != "ud":
        return DEFAULT_MESSAGE_BYTES
    usual = frame_max or _USUAL_ETHERNET_MTU + ETHERNET_HEADER_FCS
    return verbs.mtu or largest_path_mtu(usual)


def smallest_frame(dpdk: DpdkOptions) -> int:
    """Return the smallest frame of a kind of header."""
    return SMALLEST_FRAME[dpdk.header][1 if dpdk.vlan is not None else 0]


FRAME_MESSAGE_BYTES = 1024  # of ping-pong over frames
_HEADERS = {"l2": 14, "ipv4-udp": 42, "ipv6-udp": 62}
_SIGNATURE_FCS = 18 + 4
_FRAME_MOST = 9216  # where the MTU is unknown (engine/traffic/fill.h)


def message_room(dpdk: DpdkOptions, frame_max: int) -> int:
    """Return the bytes of the largest ping-pong message that fits one untagged or tagged frame."""
    return (frame_max or _FRAME_MOST) - _HEADERS[dpdk.header] - _SIGNATURE_FCS


_PACKET_HEADER = DpdkOptions(header="l2")
_UDP_HEADER = DpdkOptions(header="ipv4-udp")


def frame_header(values: Settings) -> DpdkOptions:
    """Return the header of a transport's frames, as dpdk's options say it."""
    return values.dpdk or (_UDP_HEADER if values.packet is None else _PACKET_HEADER)


def frame_sizes(profile: Profile, dpdk: DpdkOptions, frame_max: int) -> list[int]:
    """Return the profile's frame sizes, as far as the header and the ports can have them."""
    chosen = PROFILES[profile]
    sizes = [*chosen.frame_sizes, *([JUMBO_SIZE] if chosen.jumbo and frame_max else [])]
    least = smallest_frame(dpdk)
    most = (frame_max or JUMBO_SIZE) + (VLAN_TAG if dpdk.vlan is not None else 0)
    return list(dict.fromkeys(max(size, least) for size in sizes if size <= most))
