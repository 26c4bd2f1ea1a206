# SPDX-License-Identifier: BSD-3-Clause
"""Which settings hold for a test: defaults, top level, the test's own, and what has an effect.

A test's own keys win over the top level's, also where they are another form of the same thing:
`load` in a test hides `loads` at the top. A key that changes nothing is a mistake, not a silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..base import transports
from ..base.model import SCHEDULE, WAITING
from ..base.words import listed
from . import steps
from .schema import PATTERNS

Values = dict[str, Any]

# Forms of one setting: at most one of them is given in a mapping.
FAMILIES = (
    ("network", "networks", "concurrent_networks"),
    ("transport", "transports"),
    ("frame_size", "frame_sizes", "imix"),
    ("message_size", "message_sizes"),
    ("load", "loads"),
)
NESTED = (*transports.NAMES, "burst", "latency")  # mappings, merged key by key

_MESH = ("directions", "rotate", "load_of")
PATTERN_KEYS = {
    "chain": ("forward",),
    "pairs": ("partners", "directions", "count", "shift", "groups"),
    "aapc": ("order", "sync"),
    "ring": ("natural", "count", "directions", "random_generator"),
    "random": ("degree", "count"),
    "full_mesh": (),
    "incast": ("receivers", *_MESH),
    "fanout": ("senders", *_MESH),
    "partial_mesh": ("groups", *_MESH),
    "head_of_line": ("receivers", "count", "rotate"),
    "flows": ("flows",),
    **{name: steps.keys_of(name) for name in steps.FUNCTIONS},
    **{name: tuple(told) for name, told in steps.KERNELS.items()},
    steps.COMPOSITE: ("count", "random_generator"),
}
# Parameters of pairs that only some partners have.
PARTNER_KEYS = {"shift": ("shift",), "groups": ("inside", "across")}
_FRAMES = FAMILIES[2]  # what transports of frames send, but where messages go there and back
_MESSAGES = FAMILIES[3]
_TRANSPORT_KEYS = {
    each.name: (*(_FRAMES if each.frames else _MESSAGES), *each.settings, each.name)
    for each in transports.TRANSPORTS
}
_ONE_AT_A_TIME = "has no effect: the next message waits for the last"
_UDP_ONLY = ("dscp", "ttl", "udp_sources_per_flow")

# What each RDMA service can do; the first is what it does unless told (IBTA 1.4, table 47).
OPERATIONS = {"rc": ("send", "write", "read"), "uc": ("write",), "ud": ("send",)}
_ACKNOWLEDGED_ONLY = ("retry", "rnr_retry", "timeout")
_SWEPT_BY_AXIS = {
    **{key: f"`{family[1]}`" for family in FAMILIES[:2] for key in family},
    **{key: "`frame_sizes`" for key in FAMILIES[2]},
    **{key: "`message_sizes`" for key in FAMILIES[3]},
    **{key: "`loads`" for key in FAMILIES[4]},
    "ranks": "`ranks`",
}
_NOT_SWEPT = {
    **dict.fromkeys(("pattern", "profile"), "write one test for each"),
    **dict.fromkeys(("repeat", "sweep", "flows"), "it can't be swept"),
    **dict.fromkeys(NESTED, "sweep one of its keys, as tcp.streams_per_flow"),
    **{key: f"its axis is {axis}" for key, axis in _SWEPT_BY_AXIS.items()},
}


def family(key: str) -> tuple[str, ...]:
    """All forms of the setting that `key` is one of."""
    return next((forms for forms in FAMILIES if key in forms), (key,))


def sweep_refusal(key: str) -> str | None:
    """Why a key can't stand under `sweep`, or None."""
    return _NOT_SWEPT.get(key)


def merge(*layers: Mapping[str, Any]) -> Values:
    """Later layers win; options are merged key by key; a swept key replaces a plain one."""
    merged: Values = {}
    for layer in layers:
        for key, value in layer.items():
            if key in NESTED or key in ("scatter", "sweep"):
                merged[key] = merged.get(key, {}) | value
            else:
                merged = {name: old for name, old in merged.items() if name not in family(key)}
                merged[key] = value
    return merged


def assigned(values: Values, point: Mapping[str, Any]) -> Values:
    """The values with one point of a sweep put in; keys may be dotted."""
    changed = dict(values)
    for key, value in point.items():
        head, dot, tail = key.partition(".")
        changed[head] = changed.get(head, {}) | {tail: value} if dot else value
    return changed


def axis(values: Values, singular: str, plural: str) -> list[Any] | None:
    """The values of an axis that is written in one of its two forms."""
    if singular in values:
        return [values[singular]]
    found = values.get(plural)
    return list(found) if found is not None else None


def without_effect(values: Values, pattern: str, transport: str) -> dict[str, str]:
    """Keys (dotted below options) that change nothing in such a trial, and why."""
    stepwise = steps.by_steps(pattern, values)
    idle: dict[str, str] = {}
    for key in {key for keys in PATTERN_KEYS.values() for key in keys}:
        if key not in PATTERN_KEYS[pattern]:
            owners = [name for name in PATTERNS if key in PATTERN_KEYS[name]]
            idle[key] = f"has no effect: {pattern} takes no {key} ({listed(owners)} does)"
    if values.get("sync") == steps.LOCAL:
        idle.pop("sync", None)  # any pattern's phases can be steps
    if pattern == "pairs":
        idle |= _partners_without(values.get("partners"))
    traffic = SCHEDULE if stepwise else values.get("traffic")
    for key in {key for keys in _TRANSPORT_KEYS.values() for key in keys}:
        if key not in _TRANSPORT_KEYS[transport]:
            owners = [name for name, keys in _TRANSPORT_KEYS.items() if key in keys]
            idle[key] = f"has no effect with {transport}: it belongs to {listed(owners)}"
    if transports.of(transport).frames and carries_messages(transport, traffic):
        for key in _MESSAGES:
            idle.pop(key, None)
        idle |= dict.fromkeys(_FRAMES, "has no effect: messages choose their frames by the MTU")
    idle |= _times_without(traffic, values.get("burst", {}).get("count", 1))
    if traffic == "pingpong":
        idle |= dict.fromkeys(("load", "loads"), "has no effect: a message waits for the last")
        idle |= _scatter_without("scatter" in values)
    else:
        idle["scatter"] = "has no effect without traffic: pingpong"
    idle |= steps.without_effect(pattern, values)
    if transport == "dpdk":
        idle |= _header_without(values["dpdk"])
        if traffic in WAITING:
            idle |= _one_path()
    if transport == "udp" and traffic in WAITING:
        idle["udp.dither"] = _ONE_AT_A_TIME
    if transport == "verbs":
        idle |= _verbs_without(values["verbs"])
    return idle


def _times_without(traffic: Any, bursts: int) -> dict[str, str]:
    """A transfer, and counted bursts, begin at once and end when all is there."""
    counted = traffic == "transfer" or (traffic == "burst" and bursts > 0)
    keys = [
        *(("warmup", "window", "cooldown") if counted else ()),
        *(("transfer_size",) if traffic != "transfer" else ()),
        *(("burst",) if traffic != "burst" else ("dpdk.catch_up", "dpdk.dither")),
    ]
    return dict.fromkeys(keys, f"has no effect with traffic: {traffic}")


def carries_messages(transport: str, traffic: Any) -> bool:
    """Whether sizes are messages': of frames' transports only where one waits for another."""
    return not transports.of(transport).frames or traffic in WAITING


def _scatter_without(scatters: bool) -> dict[str, str]:
    """A scatter has sizes and a number of messages of its own."""
    keys = ("warmup", "window", "cooldown", *FAMILIES[3]) if scatters else ()
    return dict.fromkeys(keys, "has no effect with scatter, which counts messages of random sizes")


def _partners_without(partners: Any) -> dict[str, str]:
    word = partners if isinstance(partners, str) else "a list"
    return {
        key: f"has no effect with partners: {word} (with {listed(words)})"
        for key, words in PARTNER_KEYS.items()
        if word not in words
    }


def _one_path() -> dict[str, str]:
    keys = ("dither", "udp_sources_per_flow", "destination", "addresses", "address_block")
    return {f"dpdk.{key}": _ONE_AT_A_TIME for key in (*keys, "learning_rate")}


def _header_without(dpdk: Mapping[str, Any]) -> dict[str, str]:
    idle = {}
    if dpdk["header"] == "l2":
        idle = {
            f"dpdk.{key}": "has no effect with header l2 (with ipv4-udp or ipv6-udp)"
            for key in _UDP_ONLY
        }
    if dpdk.get("addresses", 1) == 1:
        idle |= {
            f"dpdk.{key}": "has no effect without `addresses`, of which each port has several"
            for key in ("address_block", "learning_rate")
        }
    if dpdk.get("vlan") is None:
        idle["dpdk.pcp"] = "has no effect without `vlan`, whose tag carries it"
    return idle


def operation_of(verbs: Mapping[str, Any]) -> str:
    """The operation asked for, else what the service does unless told."""
    return str(verbs.get("operation") or OPERATIONS[verbs["service"]][0])


def _verbs_without(verbs: Mapping[str, Any]) -> dict[str, str]:
    idle = {}
    service, operation = verbs["service"], operation_of(verbs)
    if service != "rc":
        idle = {
            f"verbs.{key}": f"has no effect with service {service}, which acknowledges nothing "
            "(with rc)"
            for key in _ACKNOWLEDGED_ONLY
        }
    if operation != "write":
        idle["verbs.immediate"] = f"has no effect with operation {operation} (with write)"
    if operation == "read":
        idle["verbs.inline"] = "has no effect with operation read: a read request carries no data"
    return idle


def flat_keys(values: Mapping[str, Any]) -> Iterable[str]:
    """The keys of a mapping of settings, options' dotted: `tcp.streams_per_flow`."""
    for key, value in values.items():
        if key in NESTED:
            yield from (f"{key}.{below}" for below in value)
        elif key == "sweep":
            yield from value
        else:
            yield key


def head(key: str) -> str:
    """The setting that a dotted key belongs to."""
    return key.partition(".")[0]
