# SPDX-License-Identifier: BSD-3-Clause
"""Which settings hold for a test: defaults, top level, the test's own.

A test's own keys win over the top level's, also where they are another form of the same thing:
`load` in a test hides `loads` at the top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ..base import transports
from ..base.model import WAITING
from .fields import Strict
from .options import DpdkOptions, PacketOptions, TcpOptions, UdpOptions, VerbsOptions
from .schema import BurstOptions, LatencyOptions, Settings

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
    **dict.fromkeys(("pattern", "profile"), "write one test for each"),
    **dict.fromkeys(("repeat", "sweep", "flows"), "it can't be swept"),
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
