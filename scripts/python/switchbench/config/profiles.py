# SPDX-License-Identifier: BSD-3-Clause
"""What a setting is when nobody gives it: profiles, and defaults by site, transport and pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..base import transports
from ..base.model import WAITING, Load, Repeats, Site
from . import settings
from .steps import COMPOSITE, FUNCTIONS, KERNELS, SKEWED

_MS = 1_000_000
_S = 1_000_000_000

_WIDTH = 0.02  # of the confidence interval, as a share of the mean

RFC2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)  # RFC 2544, section 9.1
JUMBO_SIZE = 9018
DEFAULT_MESSAGE_BYTES = 64 * 1024
DEFAULT_RINGS = 10
DEFAULT_DRAWS = 40


@dataclass(frozen=True)
class Profile:
    """How long and how often a test runs, and with which frames."""

    warmup_ns: int
    tcp_warmup_ns: int  # congestion control needs longer to reach its level
    window_ns: int
    aapc_window_ns: int  # of one phase of many
    repeat: Repeats
    frame_sizes: tuple[int, ...]
    jumbo: bool = False  # JUMBO_SIZE too where the MTU allows


PROFILES = {
    "quick": Profile(_S // 2, _S // 2, 2 * _S, 2 * _S, Repeats(1, 1), (1518,)),
    "standard": Profile(_S, 3 * _S, 5 * _S, 5 * _S, Repeats(3, 10, _WIDTH), (64, 1518)),
    "acceptance": Profile(
        2 * _S, 2 * _S, 60 * _S, 30 * _S, Repeats(5, 30, _WIDTH), RFC2544_SIZES, jumbo=True
    ),
}

# Salmon's experiment: about as many messages a rank, over the sizes of the paper's figures.
SCATTER: dict[str, Any] = {"partners": "fixed", "sizes": (4, 1 << 20), "count": 250, "compute": 0.0}

# One burst of the longest that every switch should hold (RFC 2544, section 21).
BURST: dict[str, Any] = {"frames": 1024, "gap": 0, "count": 1}

_MESH = {"directions": "forward", "rotate": False, "load_of": "senders"}
# What a pattern is when only its name is given.
PATTERN_DEFAULTS: dict[str, dict[str, Any]] = {
    "chain": {"forward": False},
    "pairs": {"partners": "neighbours", "directions": "both"},
    "aapc": {"order": "shift", "sync": "barrier"},
    "ring": {
        "natural": True,
        "count": DEFAULT_RINGS,
        "directions": "both",
        "random_generator": "uniform",
    },
    "random": {"degree": 1, "count": DEFAULT_DRAWS},
    "full_mesh": {},
    "incast": {"receivers": 1, **_MESH},
    "fanout": {"senders": 1, **_MESH},
    "partial_mesh": _MESH,
    "head_of_line": {"receivers": 2, "rotate": False},
    "flows": {},
    **{
        name: ({"algorithm": words[0]} if words else {}) | ({"skew": 0} if name in SKEWED else {})
        for name, words in FUNCTIONS.items()
    },
    **KERNELS,
    COMPOSITE: {},
}

# Of what goes by steps: repetitions without anything between them, nothing checked.
STEP_DEFAULTS: dict[str, Any] = {"compute": False, "batch": 1}

# Options that always mean something; those below depend on the header.
_DPDK = {"header": "l2", "burst": 32}
_UDP = {"dscp": 0, "ttl": 64, "udp_sources_per_flow": 1}
_ADDRESSES = {"address_block": 0, "learning_rate": 1000}
OPTION_DEFAULTS: dict[str, dict[str, Any]] = {
    "dpdk": _DPDK,
    "tcp": {"streams_per_flow": 1, "nodelay": True, "zero_copy": False},
    "udp": {"burst": 32},
    "verbs": {
        "service": "rc",
        "depth": 128,
        "queue_pairs": 1,
        "service_level": 0,
        "traffic_class": 0,
        "pkey_index": 0,
        "completion": "auto",
        "connect": "exchange",
        "reuse": 64,
    },
}
# Those that depend on the service and the operation; what is left out the node chooses by its
# device: inline, signal_every, mtu, gid_index.
ACKNOWLEDGED_DEFAULTS = {"retry": 6, "rnr_retry": 6, "timeout": 14}
WRITE_DEFAULTS = {"immediate": True}

# The path MTUs of RDMA, and what a packet may need of an Ethernet MTU beside its payload: GRH, UDP,
# BTH, the largest extended headers and ICRC (as Linux counts them: iboe_get_mtu).
PATH_MTUS = (256, 512, 1024, 2048, 4096)
_ROCE_HEADERS = 40 + 8 + 12 + 4 + 28 + 4
_USUAL_ETHERNET_MTU = 1500
ETHERNET_HEADER_FCS = 18

# A lab's TCP is the same on every machine, whatever its kernel likes. All its clocks are one: flows
# of the same rate would keep their phases, and full queues would always drop the same ones.
_LAB_OPTIONS: dict[str, dict[str, Any]] = {
    "dpdk": {"dither": 1},
    "tcp": {"congestion": "cubic"},
    "udp": {"dither": 1},
}
_SITE_OPTIONS: dict[str, dict[str, Any]] = {"dpdk": {"dither": 0}, "udp": {"dither": 0}}
# An emulated machine stands still for longer than a network ever would: a second, not 67 ms.
_GUEST_OPTIONS: dict[str, dict[str, Any]] = {"verbs": {"timeout": 18}}

# Smallest frames that hold headers and signature (DESIGN 6), untagged and with a VLAN tag.
SMALLEST_FRAME = {"l2": (64, 64), "ipv4-udp": (64, 68), "ipv6-udp": (84, 88)}
VLAN_TAG = 4


def profile_name(site: Site) -> str:
    """The profile of a user who names none."""
    return "quick" if site.launch == "lab" else "standard"


def defaults(site: Site, pattern: str, transport: str, profile: str) -> dict[str, Any]:
    """Every setting of a test that does not depend on its other settings."""
    chosen, backs_off = PROFILES[profile], transports.of(transport).byte_stream
    return {
        "profile": profile,
        "repeat": chosen.repeat,
        "warmup": chosen.tcp_warmup_ns if backs_off else chosen.warmup_ns,
        "window": chosen.aapc_window_ns if pattern == "aapc" else chosen.window_ns,
        "cooldown": 100 * _MS,
        "traffic": "stream",
        "transfer_size": 1 << 20,
        "burst": dict(BURST),
        "loads": [default_load(site, transport)],
        "connectivity_check": True,
        "flood_limit": 1000,
        "seed": 1,
        "latency": {"probes": "auto", "one_way": "auto"},
        **_drain(site),
        **({"message_sizes": [DEFAULT_MESSAGE_BYTES]} if transport == "tcp" else {}),
        **PATTERN_DEFAULTS[pattern],
        transport: _options(site, transport),
    }


TCP_TRANSFER_DRAIN = 30 * _S
"""How long a transfer may stand still: TCP waits 0.2 s and twice as long after each further loss of
the same segment (RFC 6298), so five of them on a crowded link are 13 s of silence."""


def _options(site: Site, transport: str) -> dict[str, Any]:
    by_site = _LAB_OPTIONS if site.launch == "lab" else _SITE_OPTIONS
    by_machine = _GUEST_OPTIONS.get(transport, {}) if site.guests else {}
    return OPTION_DEFAULTS[transport] | by_site.get(transport, {}) | by_machine


CATCH_UP_FRAMES = 8
_CATCH_UP_BYTES = 1538  # of each of them at layer 1 (engine/phase/phase_template.c)
_CATCH_UP_MOST = 65535


def catch_up(queue_bytes: int | None, traffic: str) -> int:
    """How many frames a late sender may send at once: where queues are known, what fills half of
    the smallest. Messages catch up behind each pause as well, several at one receiver: fewer."""
    if queue_bytes is None or traffic in WAITING:
        return CATCH_UP_FRAMES
    return min(max(CATCH_UP_FRAMES, queue_bytes // 2 // _CATCH_UP_BYTES), _CATCH_UP_MOST)


BURST_LOAD = Load(percent=100.0)  # a burst's frames follow each other as the line allows
SHARED_PERCENT = 95.0  # the most that a shared port is asked for (engine/phase/offered_load.h)


def default_load(site: Site, transport: str) -> Load:
    """Frames: below what clocks' differences allow (RFC 8239); tcp and verbs: all they can. Where
    a port is shared: what its other users leave."""
    if any(port.engine.get("shared") for port in site.ports):
        return Load(percent=SHARED_PERCENT)
    if not transports.of(transport).frames:
        return Load(percent=100.0)
    return Load(percent=95.0 if site.launch == "lab" else 99.98)


def _drain(site: Site) -> dict[str, int]:
    """Silence longer than the longest queue: known in a lab, a deep buffer's on a site."""
    silence_ns = 300 * _MS
    if site.queueing_s:
        silence_ns = (round(site.queueing_s * 1000) + 100) * _MS
    return {"drain_timeout": silence_ns, "drain_max": max(3 * _S, 4 * silence_ns)}


def interval_ns(window_ns: int | None) -> int:
    """A second, as far as the window has one; a transfer's has no fixed length."""
    return 0 if window_ns is not None and window_ns < _S else _S


def frame_options(dpdk: dict[str, Any]) -> dict[str, Any]:
    """The defaults of dpdk's options that have an effect beside those that are given."""
    options = dict(_UDP) if dpdk["header"] != "l2" else {}
    options |= {"pcp": 0} if dpdk.get("vlan") is not None else {}
    return options | (_ADDRESSES if dpdk.get("addresses", 1) > 1 else {})


def verbs_options(verbs: dict[str, Any]) -> dict[str, Any]:
    """The defaults of verbs' options that its service and operation have."""
    operation = settings.operation_of(verbs)
    options: dict[str, Any] = {"operation": operation}
    options |= ACKNOWLEDGED_DEFAULTS if verbs["service"] == "rc" else {}
    return options | (WRITE_DEFAULTS if operation == "write" else {})


def largest_path_mtu(frame_max: int) -> int:
    """The largest path MTU on an Ethernet whose frames have at most so many bytes."""
    room = frame_max - ETHERNET_HEADER_FCS - _ROCE_HEADERS
    return max((mtu for mtu in PATH_MTUS if mtu <= room), default=PATH_MTUS[0])


def datagram_bytes(verbs: dict[str, Any], frame_max: int) -> int:
    """The message size of service ud when none is given: one packet that surely fits."""
    usual = frame_max or _USUAL_ETHERNET_MTU + ETHERNET_HEADER_FCS
    return int(verbs.get("mtu") or largest_path_mtu(usual))


def smallest_frame(dpdk: dict[str, Any]) -> int:
    """The smallest frame of a kind of header."""
    return SMALLEST_FRAME[dpdk["header"]][1 if dpdk.get("vlan") is not None else 0]


UDP_MESSAGE_BYTES = 32 * 1024
UDP_MESSAGE_MOST = (
    65_000  # a datagram, less headers and signature (engine/transport/udp/pingpong.c)
)
UDP_HEADER: dict[str, Any] = {"header": "ipv4-udp"}  # of frames of udp, as dpdk's options say it


def frame_sizes(profile: str, dpdk: dict[str, Any], frame_max: int) -> list[int]:
    """The profile's frame sizes, as far as the header and the ports can have them."""
    chosen = PROFILES[profile]
    sizes = [*chosen.frame_sizes, *([JUMBO_SIZE] if chosen.jumbo and frame_max else [])]
    least = smallest_frame(dpdk)
    most = (frame_max or JUMBO_SIZE) + (VLAN_TAG if dpdk.get("vlan") is not None else 0)
    return list(dict.fromkeys(max(size, least) for size in sizes if size <= most))
