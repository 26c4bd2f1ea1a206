# SPDX-License-Identifier: BSD-3-Clause
"""The rules of settings: to what a key applies, its default there, and why it has none elsewhere.

A key that changes nothing is a mistake, not a silence. How a value is read and written, and the
defaults that depend on nothing, stand at the key itself (`schema`, `options`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..base import transports
from ..base.model import SCHEDULE, WAITING
from ..base.words import listed
from . import steps
from .fields import Strict
from .options import DpdkOptions, PacketOptions, UdpOptions, VerbsOptions
from .schema import PATTERNS, BurstOptions, ResolvedSettings, Settings
from .settings import FRAMES, LOAD, MESSAGES, carries_messages

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
        name: ({"algorithm": words[0]} if words else {})
        | ({"skew": 0} if name in steps.SKEWED else {})
        for name, words in steps.FUNCTIONS.items()
    },
    **steps.KERNELS,
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
    traffic = SCHEDULE if steps.by_steps(pattern, values) else values.traffic
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
    idle |= steps.without_effect(pattern, values)
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
    if values.sync == steps.LOCAL:
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
