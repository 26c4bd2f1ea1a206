# SPDX-License-Identifier: BSD-3-Clause
"""Rules of a test's settings: the default of a key, and the reason if a key has no effect.

A key without effect is an error. Parsers, writers and constant defaults are at the key itself
(`schema`); patterns are in `patterns.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..base import transports
from ..base.errors import listed
from ..base.model import SCHEDULE, WAITING, Load, Repeats, Site
from . import schema
from .fields import Strict
from .schema import ALL_PARAMETERS, PATTERNS, DpdkOptions, ResolvedSettings, Settings, VerbsOptions

S = TypeVar("S", bound=Settings)
T = TypeVar("T")

# Keys that are forms of one setting; a mapping may have only one of these keys.
FAMILIES = (
    ("network", "networks", "concurrent_networks"),
    ("transport", "transports"),
    ("frame_size", "frame_sizes", "imix"),
    ("message_size", "message_sizes"),
    ("load", "loads"),
)
NETWORK, TRANSPORT, FRAMES, MESSAGES, LOAD = FAMILIES
# Mappings that are merged key by key.
NESTED: Mapping[str, type[Strict]] = {
    "dpdk": DpdkOptions,
    "packet": schema.PacketOptions,
    "tcp": schema.TcpOptions,
    "udp": schema.UdpOptions,
    "verbs": VerbsOptions,
    "burst": schema.BurstOptions,
    "latency": schema.LatencyOptions,
}
# Keys that cannot be swept, with the reasons.
SWEEP_REFUSALS = {
    **dict.fromkeys(("pattern", "profile"), "write one test for each"),
    **dict.fromkeys(("repeat", "sweep", "flows"), "it can't be swept"),
    **dict.fromkeys(NESTED, "sweep one of its keys, as tcp.streams_per_flow"),
    **{key: f"its axis is `{forms[1]}`" for forms in FAMILIES for key in forms},
    "ranks": "its axis is `ranks`",
}


def family(key: str) -> tuple[str, ...]:
    """Return the keys that are forms of one setting: `load` and `loads` for `load`."""
    return next((forms for forms in FAMILIES if key in forms), (key,))


def form_of(values: Settings, forms: Iterable[str]) -> str | None:
    """Return the first of a setting's forms (keys) that has a value; None if none has."""
    return next((form for form in forms if getattr(values, form) is not None), None)


def merge(lowest: S, *layers: Settings) -> S:
    """Return merged layers of settings: later layers override earlier ones.

    Options of transports, bursts and latency are merged key by key.
    """
    merged = lowest
    for layer in layers:
        changes: dict[str, object] = {}
        for key, value in layer.given().items():
            before = getattr(merged, key)
            if isinstance(value, Strict) and isinstance(before, Strict):
                changes[key] = before.model_copy(update=value.given())
            else:
                changes |= dict.fromkeys(family(key)) | {key: value}
        merged = merged.model_copy(update=changes)
    return merged


def assigned(values: S, point: Mapping[str, object]) -> S:
    """Return settings changed by one combination of swept values; keys may be dotted."""
    for key, value in point.items():
        head, dot, tail = key.partition(".")
        if dot:
            options = getattr(values, head) or NESTED[head]()
            value = options.model_copy(update={tail: value})
        values = values.model_copy(update={head: value})
    return values


def axis(one: T | None, several: Sequence[T] | None) -> list[T] | None:
    """Return the values of a setting that is written as one value or as a list."""
    if one is not None:
        return [one]
    return None if several is None else list(several)


def carries_messages(transport: str, traffic: str | None) -> bool:
    """Return true if a transport's sizes are message sizes with this traffic, not frame sizes.

    A transport of frames sends messages only if each message waits for a previous one.
    """
    return not transports.of(transport).frames or traffic in WAITING


def flat_keys(values: Settings) -> Iterator[str]:
    """Yield the keys that the user wrote in settings, options dotted: `tcp.streams_per_flow`."""
    for key, value in values.given().items():
        if key == "sweep":
            yield from values.sweep or ()
        elif key in NESTED and isinstance(value, Strict):
            yield from (f"{key}.{below}" for below in value.given())
        else:
            yield key


def written_key(key: str, value: object) -> object:
    """Return the value of a key, which may be dotted, in the form that users write."""
    head, _, tail = key.partition(".")
    written = assigned(Settings(), {key: value}).written()[head]
    found: object = written[tail] if tail else written
    return found


# --- keys without effect --------------------------------------------------------------------------

LOCAL = "local"  # value of `sync` for an ordinary pattern as a schedule (doc/how-to/hpcc-imb.md)
# Values that turn an ordinary pattern into a schedule, by key.
SWITCHES = {"sync": LOCAL, "traffic": SCHEDULE}
# Operations of each RDMA service, the default first (IBTA 1.4, table 47).
OPERATIONS = {"rc": ("send", "write"), "uc": ("write",), "ud": ("send",)}
_TIMES = ("warmup", "window", "cooldown")
# Parameters of the pattern pairs that need certain values of `partners`.
_PARTNER_KEYS = {"shift": ("shift",), "groups": ("inside", "across")}
_TRANSPORT_KEYS = {
    each.name: (*(FRAMES if each.frames else MESSAGES), *each.settings, each.name)
    for each in transports.TRANSPORTS
}
# Options of dpdk that have no effect on single frames.
_MANY_FRAMES = (
    "dither", "udp_sources_per_flow", "destination", "addresses", "learning_rate",
)  # fmt: skip


def by_steps(pattern: str, values: Settings) -> bool:
    """Return true if a test of a pattern is a schedule of dependent steps."""
    return bool(PATTERNS[pattern].kind) or values.sync == LOCAL


def operation_of(verbs: VerbsOptions) -> str:
    """Return the configured RDMA operation, else the RDMA service's default."""
    return verbs.operation or OPERATIONS[verbs.service][0]


def beside_others(options: Strict) -> Iterator[tuple[bool, dict[str, object], str]]:
    """Yield groups of options that apply only together with other options.

    Each group is (true if its options apply, defaults by key, reason for having no effect).
    """
    if isinstance(options, DpdkOptions):
        keys: dict[str, object] = {"dscp": 0, "ttl": 64, "udp_sources_per_flow": 1}
        yield options.header != "l2", keys, "with header l2 (with ipv4-udp or ipv6-udp)"
        keys = {"learning_rate": 1000}
        several = "without `addresses`, of which each port has several"
        yield (options.addresses or 1) > 1, keys, several
        yield options.vlan is not None, {"pcp": 0}, "without `vlan`, whose tag carries it"
    if isinstance(options, VerbsOptions):
        why = f"with service {options.service}, which acknowledges nothing (with rc)"
        yield options.service == "rc", {"retry": 6, "timeout": 14}, why


def without_effect(values: ResolvedSettings) -> dict[str, str]:
    """Return the keys (dotted below options) without effect on a trial, with the reasons."""
    pattern, transport, form = values.pattern, values.transport, PATTERNS[values.pattern]
    steps = by_steps(pattern, values)
    traffic = SCHEDULE if steps else values.traffic
    idle: dict[str, str] = {}

    def no(why: str, *keys: str) -> None:
        idle.update(dict.fromkeys(keys, f"has no effect{why}"))

    for key in ALL_PARAMETERS:
        if key not in form.parameters and not (key == "sync" and values.sync == LOCAL):
            owners = [name for name, other in PATTERNS.items() if key in other.parameters]
            no(f": {pattern} takes no {key} ({listed(owners)} does)", key)
    word = values.partners if isinstance(values.partners, str) else "a list"
    for key, words in _PARTNER_KEYS.items() if pattern == "pairs" else ():
        if word not in words:
            no(f" with partners: {word} (with {listed(words)})", key)
    one_frame = transports.of(transport).frames and carries_messages(transport, traffic)
    for key in {key for keys in _TRANSPORT_KEYS.values() for key in keys}:
        if key not in _TRANSPORT_KEYS[transport] and not (one_frame and key in MESSAGES):
            owners = [name for name, keys in _TRANSPORT_KEYS.items() if key in keys]
            no(f" with {transport}: it belongs to {listed(owners)}", key)
    if one_frame:
        no(": a ping-pong message is a frame of its own", *FRAMES)
    # Transfers and counted bursts begin at once and end when complete.
    bursts = (values.burst or schema.BurstOptions()).count
    counted = traffic == "transfer" or (traffic == "burst" and bursts > 0)
    no(
        f" with traffic: {traffic}",
        *(_TIMES if counted else ()),
        *(("transfer_size",) if traffic != "transfer" else ()),
        *(("burst",) if traffic != "burst" else ("dpdk.catch_up", "dpdk.dither")),
    )
    if traffic == "pingpong":
        no(": each message waits for the previous one", *LOAD)
        if values.forward:
            no(": a ping-pong is not forwarded", "forward")
    if not steps:
        why = ": only a schedule of steps has it (sync: local, or a collective)"
        no(why, "compute", "batch", "repetitions")
        if values.traffic == SCHEDULE:
            no(f": {pattern} is a schedule with sync: local only", "traffic")
    else:
        no(": each step waits for the previous one", *LOAD)
        if values.traffic not in (None, SCHEDULE):
            no(f": {pattern} is a schedule here (traffic: {SCHEDULE})", "traffic")
        if form.kind:
            no(f": {pattern} is always a schedule", "sync")
        if form.of_class and values.compute:
            no(f": {pattern} sends arbitrary data, which nothing can be computed from", "compute")
        if form.sizeless:
            no(f": {pattern} sets its own message sizes", *MESSAGES)
        if values.repetitions is not None:
            no(" with repetitions, which are counted", *_TIMES)
    options = getattr(values, transport)
    for applies, keys, why in beside_others(options) if options is not None else ():
        if not applies:
            no(f" {why}", *(f"{transport}.{key}" for key in keys))
    if traffic in WAITING and transports.of(transport).frames:
        keys_of = _MANY_FRAMES if transport == "dpdk" else ("dither",)
        no(": each message waits for the previous one", *(f"{transport}.{key}" for key in keys_of))
    return idle


# --- profiles -------------------------------------------------------------------------------------
# Defaults of settings: profiles, and values by site, transport and pattern.


_MS = 1_000_000
_S = 1_000_000_000
_WIDTH = 0.02  # width of the confidence interval, as a share of the mean
RFC2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)  # RFC 2544, section 9.1
JUMBO_SIZE = 9018
DEFAULT_MESSAGE_BYTES = 64 * 1024


@dataclass(frozen=True)
class ProfileTimes:
    """Times, repeats and frame sizes of a profile."""

    warmup_ns: int
    tcp_warmup_ns: int  # congestion control needs longer to reach its level
    window_ns: int
    aapc_window_ns: int  # window of each of an aapc's many phases
    repeat: Repeats
    frame_sizes: tuple[int, ...]
    jumbo: bool = False  # JUMBO_SIZE too where the MTU allows it


PROFILES: Mapping[str, ProfileTimes] = {
    "quick": ProfileTimes(_S // 2, _S // 2, 2 * _S, 2 * _S, Repeats(1, 1), (1518,)),
    "standard": ProfileTimes(_S, 3 * _S, 5 * _S, 5 * _S, Repeats(3, 10, _WIDTH), (64, 1518)),
    "acceptance": ProfileTimes(
        2 * _S, 2 * _S, 60 * _S, 30 * _S, Repeats(5, 30, _WIDTH), RFC2544_SIZES, jumbo=True
    ),
}

# Defaults of schedules: single repetitions between barriers, without verification.
STEP_DEFAULTS = Settings.model_construct(compute=False, batch=1)

# Path MTUs of RDMA, and the bytes of a packet that an Ethernet MTU must hold besides payload: GRH,
# UDP, BTH, the largest extended headers and ICRC (as Linux counts them: iboe_get_mtu).
PATH_MTUS = (256, 512, 1024, 2048, 4096)
_ROCE_HEADERS = 40 + 8 + 12 + 4 + 28 + 4
_USUAL_ETHERNET_MTU = 1500
ETHERNET_HEADER_FCS = 18  # bytes of a frame beyond the MTU: header 14, FCS 4

# Smallest frames that hold headers and signature, untagged and with a VLAN tag.
SMALLEST_FRAME = {"l2": (64, 64), "ipv4-udp": (64, 68), "ipv6-udp": (84, 88)}
VLAN_TAG = 4


def profile_name(site: Site) -> str:
    """Return the default profile of a site."""
    return "quick" if site.launcher.in_lab else "standard"


def defaults(site: Site, pattern: str, transport: str, profile: str) -> ResolvedSettings:
    """Return every default of a test that does not depend on the test's other settings."""
    chosen, carrier, in_lab = PROFILES[profile], transports.of(transport), site.launcher.in_lab
    backs_off = carrier.byte_stream
    silence_ns = 300 * _MS  # longer than the queueing delay of a deep buffer
    if site.queueing_s:
        silence_ns = (round(site.queueing_s * 1000) + 100) * _MS
    options = NESTED[transport]()
    # A lab's nodes share one clock: without dither, flows of equal rate would stay in step, and
    # full queues would always drop frames of the same flows. A lab's TCP has the same congestion
    # control on every machine, whatever the kernel's default.
    if carrier.frames:
        options = options.model_copy(update={"dither": int(in_lab)})
    elif backs_off and in_lab:
        options = schema.TcpOptions(congestion="cubic")
    settings = ResolvedSettings.model_construct(
        pattern=pattern,
        transport=transport,
        profile=profile,
        repeat=chosen.repeat,
        warmup=chosen.tcp_warmup_ns if backs_off else chosen.warmup_ns,
        window=chosen.aapc_window_ns if pattern == "aapc" else chosen.window_ns,
        cooldown=100 * _MS,
        traffic="stream",
        transfer_size=1 << 20,
        burst=schema.BurstOptions(),
        connectivity_check=True,
        flood_limit=1000,
        seed=1,
        latency=schema.LatencyOptions(),
        drain_timeout=silence_ns,
        drain_max=max(3 * _S, 4 * silence_ns),
        message_sizes=[DEFAULT_MESSAGE_BYTES] if backs_off else None,
    )
    return settings.model_copy(update={**PATTERNS[pattern].parameters, transport: options})


TCP_TRANSFER_DRAIN = 30 * _S
"""Time without progress after which a transfer is aborted. TCP waits 0.2 s, and twice as long after
each further loss of the same segment (RFC 6298): five losses on a congested link are 13 s without
traffic."""


_CATCH_UP_FRAMES = 8
_CATCH_UP_BYTES = 1538  # layer-1 bytes of each frame
_CATCH_UP_MOST = 65535


def catch_up(queue_bytes: int | None, traffic: str) -> int:
    """Return the number of frames that a late sender may send at once.

    If queues are known, these frames fill half of the smallest queue. Fewer frames are allowed if
    each message waits for a previous one: several senders may catch up to one receiver at once.
    """
    if queue_bytes is None or traffic in WAITING:
        return _CATCH_UP_FRAMES
    return min(max(_CATCH_UP_FRAMES, queue_bytes // 2 // _CATCH_UP_BYTES), _CATCH_UP_MOST)


BURST_LOAD = Load(percent=100.0)  # frames of a burst follow each other at line rate
SHARED_PERCENT = 95.0  # limit of a shared port (engine/trial/lanes.c)


def default_load(site: Site, test_transports: Iterable[str]) -> Load:
    """Return the default load of a test, which is equal for all the test's transports.

    With frames: the maximum that clock differences allow (RFC 8239). Else full load. With a shared
    port: the part that leaves room for its other users.
    """
    if any(port.engine.get("shared") for port in site.ports):
        return Load(percent=SHARED_PERCENT)
    if not any(transports.of(name).frames for name in test_transports):
        return Load(percent=100.0)
    return Load(percent=95.0 if site.launcher.in_lab else 99.98)


def interval_ns(window_ns: int | None) -> int:
    """Return the default time between interval results: 1 s in ns, or 0 for a shorter window."""
    return 0 if window_ns is not None and window_ns < _S else _S


def largest_path_mtu(frame_max: int) -> int:
    """Return the largest RDMA path MTU on an Ethernet with a given maximum frame."""
    room = frame_max - ETHERNET_HEADER_FCS - _ROCE_HEADERS
    return max((mtu for mtu in PATH_MTUS if mtu <= room), default=PATH_MTUS[0])


def verbs_message_bytes(verbs: VerbsOptions, frame_max: int) -> int:
    """Return the default message size of verbs in bytes; for service ud, one packet's payload."""
    if verbs.service != "ud":
        return DEFAULT_MESSAGE_BYTES
    return verbs.mtu or largest_path_mtu(frame_max or _USUAL_ETHERNET_MTU + ETHERNET_HEADER_FCS)


def smallest_frame(dpdk: DpdkOptions) -> int:
    """Return the size of the smallest frame that holds the header of dpdk's options."""
    return SMALLEST_FRAME[dpdk.header][1 if dpdk.vlan is not None else 0]


FRAME_MESSAGE_BYTES = 1024  # message size of ping-pong over frames
HEADERS = {"l2": 14, "ipv4-udp": 42, "ipv6-udp": 62}
SIGNATURE_FCS = 18 + 4
FRAME_MOST = 9216  # where the MTU is unknown (engine/traffic/signature.h)


def frame_header(values: Settings) -> DpdkOptions:
    """Return the header of a transport's frames, in the form of dpdk's options."""
    return values.dpdk or DpdkOptions(header="ipv4-udp" if values.packet is None else "l2")


def frame_sizes(profile: str, dpdk: DpdkOptions, frame_max: int) -> list[int]:
    """Return the profile's frame sizes that the header and the ports allow."""
    chosen = PROFILES[profile]
    sizes = [*chosen.frame_sizes, *([JUMBO_SIZE] if chosen.jumbo and frame_max else [])]
    least = smallest_frame(dpdk)
    most = (frame_max or JUMBO_SIZE) + (VLAN_TAG if dpdk.vlan is not None else 0)
    return list(dict.fromkeys(max(size, least) for size in sizes if size <= most))
