# SPDX-License-Identifier: BSD-3-Clause
"""One setting of everything: a point of a test, and what no port can do there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import SCHEDULE, WAITING, Load
from ..base.source import Document, KeyPath
from ..base.words import listed
from . import profiles, settings, steps
from .kinds import Strict
from .options import DpdkOptions, VerbsOptions
from .rules import (
    DPDK_RULES,
    OPERATIONS,
    VERBS_RULES,
    operation_of,
    option_defaults,
    without_effect,
)
from .schema import Pattern, ResolvedSettings

Options = TypeVar("Options", bound=Strict)


@dataclass(frozen=True)
class ResolvedTest:
    """A test on one network, or several together, over one transport."""

    path: KeyPath  # where it stands in the document
    networks: tuple[str, ...]
    together: bool
    transport: str
    values: ResolvedSettings  # defaults that depend on a swept key are still open
    sweep: Mapping[str, Sequence[object]]
    ports: int  # of its (smallest) network
    frame_max: int  # of its ports, untagged; 0: unknown
    smallest_queue_bytes: int | None  # of its network; None: unknown

    @property
    def pattern(self) -> Pattern:
        """The pattern's name."""
        return self.values.pattern


@dataclass(frozen=True)
class Point:
    """One setting of everything."""

    test: ResolvedTest
    values: ResolvedSettings
    ranks: int | None  # None: all ports
    sizes: tuple[int, ...]
    load: Load
    swept: Mapping[str, object]  # what the sweep chose, by key

    @property
    def pattern(self) -> Pattern:
        """The pattern's name."""
        return self.test.pattern


def points(test: ResolvedTest) -> Iterator[Point]:
    """The points of a test in order: ranks, sizes, loads, sweep."""
    found = [
        (place, point)
        for combination in _combinations(test)
        for place, point in _axes(test, _at(test, combination), combination)
    ]
    # The sort is stable: within one place on the axes the sweep keeps its order.
    yield from (point for _, point in sorted(found, key=lambda item: item[0]))


def _combinations(test: ResolvedTest) -> list[dict[str, object]]:
    """The sweep's points without keys that change nothing there, each once."""
    found: dict[str, dict[str, object]] = {}
    for chosen in product(*test.sweep.values()):
        point = dict(zip(test.sweep, chosen, strict=True))
        idle = without_effect(settings.assigned(test.values, point), test.pattern, test.transport)
        point = {
            key: value
            for key, value in point.items()
            if not {key, settings.head(key)} & idle.keys()
        }
        found.setdefault(repr(point), point)
    return list(found.values())


def _at(test: ResolvedTest, combination: Mapping[str, object]) -> ResolvedSettings:
    """All settings at one point of the sweep, idle ones left out."""
    given = settings.assigned(test.values, combination)
    idle = without_effect(given, test.pattern, test.transport)
    # A suite's measurements replace some that a test always has.
    changes: dict[str, object] = dict.fromkeys(
        key
        for key in idle
        if "." not in key and not ResolvedSettings.model_fields[key].is_required()
    )
    traffic = steps.traffic(test.pattern, given) if "traffic" in idle else given.traffic
    changes["traffic"] = traffic
    for name in settings.NESTED:
        options = getattr(given, name)
        lost = [key.partition(".")[2] for key in idle if key.startswith(f"{name}.")]
        if options is not None and lost and name not in idle:
            changes[name] = options.model_copy(update=dict.fromkeys(lost))
    values = given.model_copy(update=changes)
    if values.interval is None:
        values = values.model_copy(update={"interval": profiles.interval_ns(values.window)})
    frames = profiles.catch_up(test.smallest_queue_bytes, traffic)
    late = {} if f"{test.transport}.catch_up" in idle else {"catch_up": frames}
    if values.dpdk is not None:
        dpdk = _completed(values.dpdk, late | option_defaults(DPDK_RULES, values.dpdk))
        return values.model_copy(update={"dpdk": dpdk} | _frame_sizes(test, values, dpdk))
    if values.udp is not None:
        udp = _completed(values.udp, late)
        sizes = _frame_sizes(test, values, profiles.UDP_HEADER)
        return values.model_copy(update={"udp": udp} | sizes)
    if values.verbs is not None:
        operation: dict[str, object] = {"operation": operation_of(values.verbs)}
        operation |= option_defaults(VERBS_RULES, values.verbs)
        verbs = _completed(values.verbs, operation)
        sizes = _message_sizes(test, values, profiles.verbs_message_bytes(verbs, test.frame_max))
        return values.model_copy(update={"verbs": verbs} | sizes)
    return values


def _completed(options: Options, defaults: Mapping[str, object]) -> Options:
    """Options with the defaults of those that nobody gave."""
    return options.model_copy(
        update={key: value for key, value in defaults.items() if getattr(options, key) is None}
    )


def _frame_sizes(
    test: ResolvedTest, values: ResolvedSettings, header: DpdkOptions
) -> dict[str, object]:
    """The sizes of a transport of frames that nobody gave: frames', or messages'."""
    if settings.carries_messages(test.transport, values.traffic):
        return _message_sizes(test, values, profiles.FRAME_MESSAGE_BYTES)
    if settings.form_of(values, settings.FRAMES):
        return {}
    return {"frame_sizes": profiles.frame_sizes(values.profile, header, test.frame_max)}


def _message_sizes(
    test: ResolvedTest, values: ResolvedSettings, each_bytes: int
) -> dict[str, object]:
    """The size of messages, where it is the default's to choose."""
    given = settings.form_of(values, settings.MESSAGES) or values.scatter is not None
    if given or test.pattern in steps.SIZELESS:
        return {}
    return {"message_sizes": [each_bytes]}


def _axes(
    test: ResolvedTest, values: ResolvedSettings, swept: Mapping[str, object]
) -> Iterator[tuple[tuple[int, ...], Point]]:
    """The points of one combination of the sweep, each with its place on the axes."""
    ranks: Sequence[int | None] = values.ranks or [None]
    # Messages there and back have no load: the next one begins when the last is back.
    loads = settings.axis(values.load, values.loads) or [Load(percent=100.0)]
    axes = product(enumerate(ranks), enumerate(_sizes(test, values)), enumerate(loads))
    for (i, count), (j, sizes), (k, load) in axes:
        yield (i, j, k), Point(test, values, count, sizes, load, swept)


def _sizes(test: ResolvedTest, values: ResolvedSettings) -> list[tuple[int, ...]]:
    if values.scatter is not None:
        return [(values.scatter.sizes[1],)]
    if test.pattern in steps.SIZELESS:
        return [(0,)]
    if settings.carries_messages(test.transport, values.traffic):
        found = settings.axis(values.message_size, values.message_sizes)
    elif values.imix is not None:
        return [values.imix]
    else:
        found = settings.axis(values.frame_size, values.frame_sizes)
    return [(size,) for size in found or ()]


def frame_limits(point: Point, document: Document) -> None:
    """Refuses frame sizes that the kind of header or the ports can't have."""
    dpdk = point.values.dpdk or profiles.UDP_HEADER
    if settings.carries_messages(point.test.transport, point.values.traffic):
        room = profiles.message_room(dpdk, point.test.frame_max)
        pingpong = point.values.traffic == "pingpong"
        if transports.of(point.test.transport).frames and pingpong and max(point.sizes) > room:
            form = settings.form_of(point.values, settings.MESSAGES) or "scatter"
            raise document.problem(
                place(point, form, document),
                f"a ping-pong message over {point.test.transport} is one frame, of at most {room} "
                f"bytes here, not {max(point.sizes)}: larger ones run over tcp and verbs",
            )
        return
    least = profiles.smallest_frame(dpdk)
    tagged = dpdk.vlan is not None
    most = point.test.frame_max + (profiles.VLAN_TAG if tagged else 0)
    for size in point.sizes:
        if size < least:
            raise _size_problem(
                point,
                document,
                f"a frame of {size} bytes holds no {dpdk.header} header"
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
    verbs = point.values.verbs
    if verbs is None:
        return
    service, operation = verbs.service, operation_of(verbs)
    possible = OPERATIONS[service]
    if operation not in possible:
        key = "verbs.operation" if _stands(point, "verbs.operation", document) else "verbs.service"
        raise document.problem(
            place(point, key, document),
            f"service {service} has no operation {operation}: it can {listed(possible)}",
        )
    if point.values.forward and service != "rc":
        raise document.problem(
            place(point, "forward", document),
            f"a chain is forwarded over service rc only: what {service} loses could not be sent on",
        )
    if (verbs.signal_every or 1) > verbs.depth:
        raise document.problem(
            place(point, "verbs.signal_every", document),
            f"{verbs.signal_every} is more than the depth of {verbs.depth} messages: the "
            "queue would fill before one of them completes",
        )
    _path_mtu_limits(point, verbs, document)


def waiting_limits(point: Point, document: Document) -> None:
    """Refuses ways that messages which wait for each other don't go, as the node would."""
    tcp, verbs, traffic = point.values.tcp, point.values.verbs, point.values.traffic
    if traffic not in WAITING:
        return
    what = "a step's message" if traffic == SCHEDULE else "a ping-pong message"
    many = {
        "tcp.streams_per_flow": ("stream", tcp.streams_per_flow if tcp else 1),
        "verbs.queue_pairs": ("queue pair", verbs.queue_pairs if verbs else 1),
    }
    for key, (noun, count) in many.items():
        if count > 1:
            raise document.problem(
                place(point, key, document),
                f"{what} goes by one {noun}, not {count}: leave it out here",
            )
    if tcp is not None and tcp.zero_copy:
        raise document.problem(
            place(point, "tcp.zero_copy", document), f"{what} is copied: leave it out here"
        )
    if verbs is None or traffic != SCHEDULE:
        return
    asked = {"service": (verbs.service, "rc"), "operation": (operation_of(verbs), "send")}
    for key, (found, needed) in asked.items():
        if found != needed:
            raise document.problem(
                place(point, f"verbs.{key}", document),
                f"the messages of steps go by service rc and operation send, not by {found}",
            )


def _path_mtu_limits(point: Point, verbs: VerbsOptions, document: Document) -> None:
    frame_max = point.test.frame_max
    carried = profiles.largest_path_mtu(frame_max) if frame_max else profiles.PATH_MTUS[-1]
    mtu = verbs.mtu or carried
    if mtu > carried:
        raise document.problem(
            place(point, "verbs.mtu", document),
            f"{mtu} bytes and RoCE's headers do not fit the ports' MTU of "
            f"{frame_max - profiles.ETHERNET_HEADER_FCS}: at most {carried}",
        )
    if verbs.service == "ud" and max(point.sizes) > mtu:
        form = settings.form_of(point.values, settings.MESSAGES) or "verbs"
        raise document.problem(
            place(point, form, document),
            f"a message of {max(point.sizes)} bytes is more than service ud sends: one packet, at "
            f"most {mtu} bytes here",
        )


def _size_problem(point: Point, document: Document, text: str) -> ConfigurationError:
    form = settings.form_of(point.values, settings.FRAMES) or "frame_sizes"
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
