# SPDX-License-Identifier: BSD-3-Clause
"""One setting of everything: a point of a test, and what no port can do there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ..base.errors import ConfigurationError
from ..base.model import SCHEDULE, WAITING, Load
from ..base.source import Document, KeyPath
from ..base.words import listed
from . import hpcc, profiles, settings, steps
from .settings import Values


@dataclass(frozen=True)
class ResolvedTest:
    """A test on one network, or several together, over one transport."""

    path: KeyPath  # where it stands in the document
    networks: tuple[str, ...]
    together: bool
    transport: str
    values: Values  # all settings; defaults that depend on a swept key are still open
    sweep: dict[str, list[Any]]
    ports: int  # of its (smallest) network
    frame_max: int  # of its ports, untagged; 0: unknown
    smallest_queue_bytes: int | None  # of its network; None: unknown

    @property
    def pattern(self) -> str:
        """The pattern's name."""
        return str(self.values["pattern"])


@dataclass(frozen=True)
class Point:
    """One setting of everything."""

    test: ResolvedTest
    values: Values
    ranks: int | None  # None: all ports
    sizes: tuple[int, ...]
    load: Load
    swept: Values  # the part of `values` that the sweep chose
    share: hpcc.HpccMeasurement | None = None  # of a suite: which of its measurements

    @property
    def pattern(self) -> str:
        """The pattern's name: of a suite, the one that this measurement uses."""
        return self.share.pattern if self.share else self.test.pattern


def points(test: ResolvedTest) -> Iterator[Point]:
    """The points of a test in order: ranks, sizes, loads, sweep."""
    found = [
        (place, point)
        for combination in _combinations(test)
        for place, point in _axes(test, _at(test, combination), combination)
    ]
    # The sort is stable: within one place on the axes the sweep keeps its order.
    yield from (point for _, point in sorted(found, key=lambda item: item[0]))


def _combinations(test: ResolvedTest) -> list[Values]:
    """The sweep's points without keys that change nothing there, each once."""
    found: dict[str, Values] = {}
    for chosen in product(*test.sweep.values()):
        point = dict(zip(test.sweep, chosen, strict=True))
        idle = settings.without_effect(
            settings.assigned(test.values, point), test.pattern, test.transport
        )
        point = {key: value for key, value in point.items() if not _is_idle(key, idle)}
        found.setdefault(repr(point), point)
    return list(found.values())


def _is_idle(key: str, idle: dict[str, str]) -> bool:
    return key in idle or settings.head(key) in idle


def _at(test: ResolvedTest, combination: Values) -> Values:
    """All settings at one point of the sweep, idle ones left out."""
    values = settings.assigned(test.values, combination)
    idle = settings.without_effect(values, test.pattern, test.transport)
    values = {key: value for key, value in values.items() if key not in idle}
    if "scatter" in values:
        values["scatter"] = profiles.SCATTER | values["scatter"]
    values.setdefault("traffic", steps.traffic(test.pattern, values))
    if test.pattern != steps.COMPOSITE:
        values.setdefault("interval", profiles.interval_ns(values.get("window")))
    if "dpdk" in values:
        kept = {key: v for key, v in values["dpdk"].items() if f"dpdk.{key}" not in idle}
        if "dpdk.catch_up" not in idle:
            frames = profiles.catch_up(test.smallest_queue_bytes, values["traffic"])
            kept = {"catch_up": frames} | kept
        values["dpdk"] = profiles.frame_options(kept) | kept
        if settings.carries_messages("dpdk", values["traffic"]):
            if _lacks_sizes(test, values):
                values["message_sizes"] = [profiles.DEFAULT_MESSAGE_BYTES]
        elif not any(form in values for form in settings.FAMILIES[2]):
            values["frame_sizes"] = profiles.frame_sizes(
                values["profile"], values["dpdk"], test.frame_max
            )
    if "udp" in values:
        values["udp"] = {
            "catch_up": profiles.catch_up(test.smallest_queue_bytes, values["traffic"]),
            **{key: v for key, v in values["udp"].items() if f"udp.{key}" not in idle},
        }
        if settings.carries_messages("udp", values["traffic"]):
            if _lacks_sizes(test, values):
                values["message_sizes"] = [profiles.UDP_MESSAGE_BYTES]
        elif not any(form in values for form in settings.FAMILIES[2]):
            values["frame_sizes"] = profiles.frame_sizes(
                values["profile"], profiles.UDP_HEADER, test.frame_max
            )
    if "verbs" in values:
        kept = {key: v for key, v in values["verbs"].items() if f"verbs.{key}" not in idle}
        values["verbs"] = profiles.verbs_options(kept) | kept
        if _lacks_sizes(test, values):
            values["message_sizes"] = [_message_bytes(values["verbs"], test.frame_max)]
    return values


def _lacks_sizes(test: ResolvedTest, values: Values) -> bool:
    """Whether messages' sizes are the default's to choose."""
    given = any(form in values for form in settings.FAMILIES[3])
    return not given and "scatter" not in values and test.pattern not in steps.SIZELESS


def _message_bytes(verbs: Values, frame_max: int) -> int:
    if verbs["service"] == "ud":
        return profiles.datagram_bytes(verbs, frame_max)
    return profiles.DEFAULT_MESSAGE_BYTES


def _axes(
    test: ResolvedTest, values: Values, swept: Values
) -> Iterator[tuple[tuple[int, ...], Point]]:
    """The points of one combination of the sweep, each with its place on the axes."""
    ranks = values.get("ranks") or [None]
    # Messages there and back have no load: the next one begins when the last is back.
    loads = settings.axis(values, "load", "loads") or [Load(percent=100.0)]
    if test.pattern == steps.COMPOSITE:
        for i, count in enumerate(ranks):
            for j, share in enumerate(hpcc.shares(count or test.ports, values.get("count"))):
                point = Point(test, values | share.values, count, (share.size,), loads[0], swept)
                yield (i, j, 0), replace(point, share=share)
        return
    axes = [list(enumerate(axis)) for axis in (ranks, _sizes(test, values), loads)]
    for (i, count), (j, sizes), (k, load) in product(*axes):
        yield (i, j, k), Point(test, values, count, sizes, load, swept)


def _sizes(test: ResolvedTest, values: Values) -> list[tuple[int, ...]]:
    if "scatter" in values:
        return [(values["scatter"]["sizes"][1],)]
    if test.pattern in steps.SIZELESS:
        return [(0,)]
    if settings.carries_messages(test.transport, values["traffic"]):
        found = settings.axis(values, "message_size", "message_sizes") or []
    elif "imix" in values:
        return [values["imix"]]
    else:
        found = settings.axis(values, "frame_size", "frame_sizes") or []
    return [(size,) for size in found]


def frame_limits(point: Point, document: Document) -> None:
    """Refuses frame sizes that the kind of header or the ports can't have."""
    if settings.carries_messages(point.test.transport, point.values["traffic"]):
        if point.test.transport == "udp" and max(point.sizes) > profiles.UDP_MESSAGE_MOST:
            form = next((form for form in settings.FAMILIES[3] if form in point.values), "scatter")
            raise document.problem(
                place(point, form, document),
                f"a message of udp is one datagram: at most {profiles.UDP_MESSAGE_MOST} bytes",
            )
        return
    dpdk = point.values.get("dpdk", profiles.UDP_HEADER)
    least = profiles.smallest_frame(dpdk)
    tagged = dpdk.get("vlan") is not None
    most = point.test.frame_max + (profiles.VLAN_TAG if tagged else 0)
    for size in point.sizes:
        if size < least:
            raise _size_problem(
                point,
                document,
                f"a frame of {size} bytes holds no {dpdk['header']} header"
                f"{' with a VLAN tag' if tagged else ''} and signature: at least {least}",
            )
        if point.test.frame_max and size > most:
            raise _size_problem(
                point,
                document,
                f"a frame of {size} bytes does not fit the ports' MTU: at most {most} "
                f"(FCS included)",
            )


def verbs_limits(point: Point, document: Document) -> None:
    """Refuses combinations of verbs' options, and messages, that no device can have."""
    if point.test.transport != "verbs":
        return
    verbs = point.values["verbs"]
    service, operation = verbs["service"], verbs["operation"]
    possible = settings.OPERATIONS[service]
    if operation not in possible:
        key = "verbs.operation" if _stands(point, "verbs.operation", document) else "verbs.service"
        raise document.problem(
            place(point, key, document),
            f"service {service} has no operation {operation}: it can {listed(possible)}",
        )
    if verbs["connect"] == "cm" and service != "rc":
        raise document.problem(
            place(point, "verbs.connect", document),
            f"cm connects service rc, not {service}: leave it at exchange",
        )
    if point.values.get("forward") and service != "rc":
        raise document.problem(
            place(point, "forward", document),
            f"a chain is forwarded over service rc only: what {service} loses could not be sent on",
        )
    if verbs.get("signal_every", 1) > verbs["depth"]:
        raise document.problem(
            place(point, "verbs.signal_every", document),
            f"{verbs['signal_every']} is more than the depth of {verbs['depth']} messages: the "
            "queue would fill before one of them completes",
        )
    _path_mtu_limits(point, document)


# Options of which there may be many of something, but not where messages wait for each other.
_ONE_WAY = {"tcp": ("streams_per_flow", "stream"), "verbs": ("queue_pairs", "queue pair")}


def waiting_limits(point: Point, document: Document) -> None:
    """Refuses ways that messages which wait for each other don't go, as the node would."""
    transport, traffic = point.test.transport, point.values["traffic"]
    if traffic not in WAITING or transport not in _ONE_WAY:
        return
    what = "a step's message" if traffic == SCHEDULE else "a ping-pong message"
    options, (key, noun) = point.values[transport], _ONE_WAY[transport]
    if options[key] > 1:
        raise document.problem(
            place(point, f"{transport}.{key}", document),
            f"{what} goes by one {noun}, not {options[key]}: leave it out here",
        )
    if options.get("zero_copy"):
        raise document.problem(
            place(point, "tcp.zero_copy", document), f"{what} is copied: leave it out here"
        )
    if transport == "verbs" and traffic == SCHEDULE:
        _steps_operation(point, document)


def _steps_operation(point: Point, document: Document) -> None:
    verbs = point.values["verbs"]
    if verbs["service"] != "rc":
        key = "service"
    elif verbs["operation"] != "send":
        key = "operation"
    else:
        return
    raise document.problem(
        place(point, f"verbs.{key}", document),
        f"the messages of steps go by service rc and operation send, not by {verbs[key]}",
    )


def _path_mtu_limits(point: Point, document: Document) -> None:
    verbs, frame_max = point.values["verbs"], point.test.frame_max
    carried = profiles.largest_path_mtu(frame_max) if frame_max else profiles.PATH_MTUS[-1]
    mtu = verbs.get("mtu", carried)
    if mtu > carried:
        raise document.problem(
            place(point, "verbs.mtu", document),
            f"{mtu} bytes and RoCE's headers do not fit the ports' MTU of "
            f"{frame_max - profiles.ETHERNET_HEADER_FCS}: at most {carried}",
        )
    if verbs["service"] == "ud" and max(point.sizes) > mtu:
        form = next((form for form in settings.FAMILIES[3] if form in point.values), "verbs")
        raise document.problem(
            place(point, form, document),
            f"a message of {max(point.sizes)} bytes is more than service ud sends: one packet, at "
            f"most {mtu} bytes here",
        )


def _size_problem(point: Point, document: Document, text: str) -> ConfigurationError:
    form = next((form for form in settings.FAMILIES[2] if form in point.values), "frame_sizes")
    return document.problem(place(point, form, document), text)


def place(point: Point, key: str, document: Document) -> KeyPath:
    """Where a setting of a point was given: in its test, else at the top, else the test itself."""
    path = point.test.path
    return next(iter(_stands(point, key, document)), path)


def given(point: Point, key: str, document: Document) -> bool:
    """Whether the user wrote a setting of a point anywhere."""
    return bool(_stands(point, key, document))


def _stands(point: Point, key: str, document: Document) -> list[KeyPath]:
    """The places where a key, dotted below options, was given; the one that wins first."""
    path, below = point.test.path, tuple(key.split("."))
    candidates = ((*path, "sweep", key), (*path, *below), ("sweep", key), below)
    return [candidate for candidate in candidates if candidate in document.marks]
