# SPDX-License-Identifier: BSD-3-Clause
"""The rules of settings: to what a key applies, its default there, and why it has none elsewhere.

A key that changes nothing is a mistake, not a silence. How a value is read and written, and the
defaults that depend on nothing, stand at the key itself (`schema`, `options`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from ..base import transports
from ..base.model import SCHEDULE, WAITING, Load, Repeats, Site
from ..base.words import listed
from .fields import NOT_SWEPT, Strict
from .schema import (
    PATTERNS,
    BurstOptions,
    DpdkOptions,
    LatencyOptions,
    PacketOptions,
    Pattern,
    Profile,
    ResolvedSettings,
    Settings,
    TcpOptions,
    Traffic,
    Transport,
    UdpOptions,
    VerbsOptions,
)

S = TypeVar("S", bound=Settings)
T = TypeVar("T")

# Forms of one setting: at most one of them is given in a mapping.
FAMILIES = (
    ("network", "networks", "concurrent_networks"),
    ("transport", "transports"),
    ("frame_size", "frame_sizes", "imix"),
    ("message_size", "message_sizes"),
    ("load", "loads"),
)
NETWORK, TRANSPORT, FRAMES, MESSAGES, LOAD = FAMILIES
# Mappings, merged key by key.
NESTED: Mapping[str, type[Strict]] = {
    "dpdk": DpdkOptions,
    "packet": PacketOptions,
    "tcp": TcpOptions,
    "udp": UdpOptions,
    "verbs": VerbsOptions,
    "burst": BurstOptions,
    "latency": LatencyOptions,
}

_SWEPT_BY_AXIS = {
    **{key: f"`{family[1]}`" for family in FAMILIES[:2] for key in family},
    **{key: "`frame_sizes`" for key in FRAMES},
    **{key: "`message_sizes`" for key in MESSAGES},
    **{key: "`loads`" for key in LOAD},
    "ranks": "`ranks`",
}
_NOT_SWEPT = {
    **NOT_SWEPT,
    **dict.fromkeys(NESTED, "sweep one of its keys, as tcp.streams_per_flow"),
    **{key: f"its axis is {axis}" for key, axis in _SWEPT_BY_AXIS.items()},
}


def family(key: str) -> tuple[str, ...]:
    """Return all forms of the setting that `key` is one of."""
    return next((forms for forms in FAMILIES if key in forms), (key,))


def form_of(values: Settings, forms: Iterable[str]) -> str | None:
    """Return the first of a setting's forms that has a value."""
    return next((form for form in forms if getattr(values, form) is not None), None)


def sweep_refusal(key: str) -> str | None:
    """Return why a key can't stand under `sweep`, or None."""
    return _NOT_SWEPT.get(key)


def merge(lowest: S, *layers: Settings) -> S:
    """Later layers win; options are merged key by key."""
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
    """Return the values with one point of a sweep put in; keys may be dotted."""
    for key, value in point.items():
        head, dot, tail = key.partition(".")
        if dot:
            options = getattr(values, head) or NESTED[head]()
            value = options.model_copy(update={tail: value})
        values = values.model_copy(update={head: value})
    return values


def axis(one: T | None, several: Sequence[T] | None) -> list[T] | None:
    """Return the values of an axis that is written in one of its two forms."""
    if one is not None:
        return [one]
    return None if several is None else list(several)


def carries_messages(transport: str, traffic: str | None) -> bool:
    """Return whether sizes are messages'.

    Of frames' transports only where one waits for another.
    """
    return not transports.of(transport).frames or traffic in WAITING


def flat_keys(values: Settings) -> Iterable[str]:
    """Return the keys given in a mapping of settings, options' dotted: `tcp.streams_per_flow`."""
    for key, value in values.given().items():
        if key == "sweep":
            yield from values.sweep or ()
        elif key in NESTED and isinstance(value, Strict):
            yield from (f"{key}.{below}" for below in value.given())
        else:
            yield key


def written_key(key: str, value: object) -> object:
    """Return a value of one key, dotted below options, as a user writes it."""
    head, _, tail = key.partition(".")
    written = assigned(Settings(), {key: value}).written()[head]
    found: object = written[tail] if tail else written
    return found


def head(key: str) -> str:
    """Return the setting that a dotted key belongs to."""
    return key.partition(".")[0]


# --- steps ----------------------------------------------------------------------------------------
# What goes by steps (doc/how-to/hpcc-imb.md).


LOCAL = "local"  # `sync` of an ordinary pattern that does

# IMB's functions (IMB-MPI1) with their algorithms, the default first; none: there is only one.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "pingpong": (),
    "pingping": (),
    "sendrecv": (),
    "exchange": (),
    "bcast": ("binomial", "scatter-allgather", "pipeline"),
    "reduce": ("binomial",),
    "allreduce": ("recursive-doubling", "ring", "rabenseifner"),
    "reduce_scatter": ("recursive-halving", "pairwise"),
    "allgather": ("ring", "recursive-doubling", "bruck"),
    "allgatherv": ("ring",),
    "alltoall": ("linear", "pairwise", "bruck"),
    "alltoallv": ("linear", "pairwise"),
    "barrier": ("dissemination",),
}
# Those that add up floats: a message holds whole ones.
ADDING = ("reduce", "allreduce", "reduce_scatter")
FLOAT_BYTES = 4
# Application kernels (doc/reference/patterns.md): what each can be told besides, with its default.
_OF_CLASS: dict[str, object] = {"problem_class": "S"}
KERNELS: dict[str, dict[str, object]] = {
    **dict.fromkeys(
        ("nas_ep", "nas_is", "nas_cg", "nas_mg", "nas_ft", "nas_lu", "nas_sp", "nas_bt"), _OF_CLASS
    ),
    "hpl": {"matrix": 8192, "block": 128},
    "halo": {"dimensions": 2},
}
SKEWED = ("allgatherv", "alltoallv")  # whose messages may differ in size
# Those whose messages' sizes are not the user's to choose.
SIZELESS = ("barrier", *(name for name in KERNELS if name != "halo"))

# What can be said of all of them, and of nothing else.
STEP_KEYS = ("compute", "batch", "repetitions")
_TIMED = ("warmup", "window", "cooldown")
_SIZES = ("message_size", "message_sizes")


def size_refusal(pattern: str, size: int) -> str:
    """Return why a pattern can't have messages of so many bytes; empty if it can."""
    odd = size % FLOAT_BYTES
    if pattern not in ADDING or odd == 0:
        return ""
    near = f"{size - odd} or {size - odd + FLOAT_BYTES}"
    return f"{size} bytes: {pattern} adds up floats of {FLOAT_BYTES} bytes: take {near}"


# The words that make an ordinary pattern go by steps, by key.
SWITCHES = {"sync": LOCAL, "traffic": SCHEDULE}


def traffic(pattern: str, values: Settings) -> Traffic:
    """Return the traffic of a test that says none."""
    return SCHEDULE if by_steps(pattern, values) else "stream"


def only_steps(pattern: str) -> bool:
    """Return whether a pattern is nothing but steps."""
    return pattern in FUNCTIONS or pattern in KERNELS


def by_steps(pattern: str, values: Settings) -> bool:
    """Return whether a test of this pattern goes by steps."""
    return only_steps(pattern) or values.sync == LOCAL


def _steps_without(pattern: str, values: Settings) -> dict[str, str]:
    """Keys that change nothing, and why, as far as steps are the reason."""
    if not by_steps(pattern, values):
        reason = "has no effect: only a schedule of steps has it (sync: local, or a collective)"
        idle = dict.fromkeys(STEP_KEYS, reason)
        if values.traffic == SCHEDULE:
            idle["traffic"] = f"has no effect: {pattern} is a schedule with sync: local only"
        return idle
    idle = dict.fromkeys(("load", "loads"), "has no effect: a step waits for the one before")
    if values.traffic not in (None, SCHEDULE):
        idle["traffic"] = f"has no effect: {pattern} is a schedule here (traffic: {SCHEDULE})"
    if only_steps(pattern):
        idle["sync"] = f"has no effect: {pattern} is always a schedule"
    if pattern in KERNELS and pattern in SIZELESS and values.compute:
        idle["compute"] = f"has no effect: the numbers that {pattern} sends mean nothing"
    if pattern in SIZELESS:
        idle |= dict.fromkeys(_SIZES, f"has no effect: {pattern} has sizes of its own")
    if values.repetitions is not None:
        idle |= dict.fromkeys(_TIMED, "has no effect with repetitions, which are counted")
    return idle


def algorithm_refusal(pattern: str, algorithm: str) -> str | None:
    """Return why a function can't be done so, or None."""
    known = FUNCTIONS[pattern]
    if algorithm in known:
        return None
    return f"{algorithm} is no algorithm of {pattern}: it has {listed(known)}"


# --- rules ----------------------------------------------------------------------------------------
# The rules of settings: to what a key applies, its default there, and why it has none elsewhere.


Options = TypeVar("Options", bound=Strict)

DEFAULT_RINGS = 10
DEFAULT_DRAWS = 40

_MESH = {"directions": "forward", "rotate": False, "load_of": "senders"}
# The parameters of each pattern, and what they are when only its name is given (None: nothing).
PARAMETERS: Mapping[str, Mapping[str, object]] = {
    "chain": {"forward": False},
    "pairs": {
        "partners": "neighbours",
        "directions": "both",
        "count": None,
        "shift": None,
        "groups": None,
    },
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
    "partial_mesh": {"groups": None, **_MESH},
    "head_of_line": {"receivers": 2, "count": None, "rotate": False},
    "flows": {"flows": None},
    **{
        name: ({"algorithm": words[0]} if words else {}) | ({"skew": 0} if name in SKEWED else {})
        for name, words in FUNCTIONS.items()
    },
    **KERNELS,
}
ALL_PARAMETERS = tuple(dict.fromkeys(key for keys in PARAMETERS.values() for key in keys))
# Parameters of pairs that only some partners have.
_PARTNER_KEYS = {"shift": ("shift",), "groups": ("inside", "across")}

# What each RDMA service can do; the first is what it does unless told (IBTA 1.4, table 47).
OPERATIONS = {"rc": ("send", "write"), "uc": ("write",), "ud": ("send",)}


def operation_of(verbs: VerbsOptions) -> str:
    """Return the operation asked for, else what the service does unless told."""
    return verbs.operation or OPERATIONS[verbs.service][0]


@dataclass(frozen=True)
class OptionRule(Generic[Options]):
    """Options that apply only beside certain others."""

    defaults: Mapping[str, object]  # by key; None: the node chooses
    applies: Callable[[Options], bool]
    otherwise: Callable[[Options], str]  # why they have no effect


DPDK_RULES: tuple[OptionRule[DpdkOptions], ...] = (
    OptionRule(
        {"dscp": 0, "ttl": 64, "udp_sources_per_flow": 1},
        lambda dpdk: dpdk.header != "l2",
        lambda _: "has no effect with header l2 (with ipv4-udp or ipv6-udp)",
    ),
    OptionRule(
        {"address_block": 0, "learning_rate": 1000},
        lambda dpdk: (dpdk.addresses or 1) > 1,
        lambda _: "has no effect without `addresses`, of which each port has several",
    ),
    OptionRule(
        {"pcp": 0},
        lambda dpdk: dpdk.vlan is not None,
        lambda _: "has no effect without `vlan`, whose tag carries it",
    ),
)
VERBS_RULES: tuple[OptionRule[VerbsOptions], ...] = (
    OptionRule(
        {"retry": 6, "rnr_retry": 6, "timeout": 14},
        lambda verbs: verbs.service == "rc",
        lambda verbs: (
            f"has no effect with service {verbs.service}, which acknowledges nothing (with rc)"
        ),
    ),
)


def option_defaults(rules: tuple[OptionRule[Options], ...], options: Options) -> dict[str, object]:
    """Return the defaults of the options that apply beside the others."""
    found = [rule.defaults for rule in rules if rule.applies(options)]
    return {key: value for defaults in found for key, value in defaults.items()}


def _idle_options(
    name: str, rules: tuple[OptionRule[Options], ...], options: Options
) -> dict[str, str]:
    idle = [rule for rule in rules if not rule.applies(options)]
    return {f"{name}.{key}": rule.otherwise(options) for rule in idle for key in rule.defaults}


_TRANSPORT_KEYS = {
    each.name: (*(FRAMES if each.frames else MESSAGES), *each.settings, each.name)
    for each in transports.TRANSPORTS
}
_ONE_AT_A_TIME = "has no effect: the next message waits for the last"
# Options of dpdk's frames that mean something only where one follows another.
_MANY_FRAMES = (
    "dither", "udp_sources_per_flow", "destination", "addresses", "address_block", "learning_rate",
)  # fmt: skip


def without_effect(values: ResolvedSettings) -> dict[str, str]:
    """Return keys (dotted below options) that change nothing in such a trial, and why."""
    pattern, transport = values.pattern, values.transport
    traffic = SCHEDULE if by_steps(pattern, values) else values.traffic
    idle = _parameters_without(values, pattern)
    for key in {key for keys in _TRANSPORT_KEYS.values() for key in keys}:
        if key not in _TRANSPORT_KEYS[transport]:
            owners = [name for name, keys in _TRANSPORT_KEYS.items() if key in keys]
            idle[key] = f"has no effect with {transport}: it belongs to {listed(owners)}"
    if transports.of(transport).frames and carries_messages(transport, traffic):
        for key in MESSAGES:
            idle.pop(key, None)
        idle |= dict.fromkeys(FRAMES, "has no effect: a ping-pong message is a frame of its own")
    idle |= _times_without(traffic, (values.burst or BurstOptions()).count)
    if traffic == "pingpong":
        idle |= dict.fromkeys(LOAD, "has no effect: a message waits for the last")
        if values.scatter is not None:
            reason = "has no effect with scatter, which counts messages of random sizes"
            idle |= dict.fromkeys(("warmup", "window", "cooldown", *MESSAGES), reason)
    else:
        idle["scatter"] = "has no effect without traffic: pingpong"
    idle |= _steps_without(pattern, values)
    options = getattr(values, transport)
    if isinstance(options, DpdkOptions):
        idle |= _idle_options("dpdk", DPDK_RULES, options)
        if traffic in WAITING:
            idle |= dict.fromkeys((f"dpdk.{key}" for key in _MANY_FRAMES), _ONE_AT_A_TIME)
    if isinstance(options, (PacketOptions, UdpOptions)) and traffic in WAITING:
        idle[f"{transport}.dither"] = _ONE_AT_A_TIME
    if isinstance(options, VerbsOptions):
        idle |= _idle_options("verbs", VERBS_RULES, options)
    return idle


def _parameters_without(values: Settings, pattern: str) -> dict[str, str]:
    """Other patterns' parameters, and those of other partners."""
    idle: dict[str, str] = {}
    for key in ALL_PARAMETERS:
        if key not in PARAMETERS[pattern]:
            owners = [name for name in PATTERNS if key in PARAMETERS[name]]
            idle[key] = f"has no effect: {pattern} takes no {key} ({listed(owners)} does)"
    if values.sync == LOCAL:
        idle.pop("sync", None)  # any pattern's phases can be steps
    if pattern == "pairs":
        word = values.partners if isinstance(values.partners, str) else "a list"
        idle |= {
            key: f"has no effect with partners: {word} (with {listed(words)})"
            for key, words in _PARTNER_KEYS.items()
            if word not in words
        }
    return idle


def _times_without(traffic: str | None, bursts: int) -> dict[str, str]:
    """Return the keys that have no effect on a transfer or counted bursts.

    They begin at once and end when all is there.
    """
    counted = traffic == "transfer" or (traffic == "burst" and bursts > 0)
    keys = [
        *(("warmup", "window", "cooldown") if counted else ()),
        *(("transfer_size",) if traffic != "transfer" else ()),
        *(("burst",) if traffic != "burst" else ("dpdk.catch_up", "dpdk.dither")),
    ]
    return dict.fromkeys(keys, f"has no effect with traffic: {traffic}")


# --- profiles -------------------------------------------------------------------------------------
# What a setting is when nobody gives it: profiles, and defaults by site, transport and pattern.


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
