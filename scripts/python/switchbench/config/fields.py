# SPDX-License-Identifier: BSD-3-Clause
"""Parsers and writers of the kinds of values in a configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from ipaddress import ip_interface
from typing import Annotated, Any, NamedTuple, Self, TypeVar

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    model_validator,
)

from ..base import quantities
from ..base.errors import invalid, listed, meant, shown, unknown_key
from ..base.model import Load, Repeats
from ..base.node_names import padded, refuse_many

NamedGroups = tuple[tuple[str, ...], ...]
NamedPairs = tuple[tuple[str, str], ...]


class Flow(NamedTuple):
    """Flow whose source and destination are names of ports or hosts, or rank numbers."""

    source: str | int
    destination: str | int
    share: float | None = None  # in percent of its source's load


def needed(value: object, what: str) -> ValueError:
    """Return a ValueError with the message `found VALUE, but WHAT`."""
    return ValueError(f"found {shown(value)}, but {what}")


def several(values: list[Any]) -> list[Any]:
    """Return a list unchanged; raise ValueError for an empty list or a duplicate value."""
    if not values:
        raise ValueError("is an empty list: write at least one value")
    twice = first_double(values)
    if twice is not None:
        raise ValueError(f"duplicate value {shown(twice)}")
    return values


def first_double(values: Iterable[Any]) -> Any:
    """Return the first value that repeats an earlier one, or None."""
    seen = set()
    for value in values:
        key = value if isinstance(value, str | int) else repr(value)
        if key in seen:
            return value
        seen.add(key)
    return None


# --- names of hosts -------------------------------------------------------------------------------

# commas and spaces separate names, as in host files
_NAMES = re.compile(r"(?:\[[^\]]*\]?|[^,\s\[])+")


def written_order(names: str) -> list[str]:
    """Return the names in a ClusterShell node set in written order: `n[3,1-2]` is n3, n1, n2.

    NodeSet sorts names, but users write them in physical order. Therefore each comma inside of
    brackets is expanded here, and NodeSet parses the ranges. Groups are not resolved: `@all` is
    rejected, and `root@node1` too, which NodeSet would parse as a group.
    """
    if "@" in names:
        raise ValueError(
            f"{shown(names)} names a user or a node group: write hosts alone, and a user as "
            "`ssh: {user: NAME}` in the site"
        )
    refuse_many(names)
    try:
        found = [
            str(name)
            for part in _NAMES.findall(padded(names))
            for piece in _pieces(part)
            for name in NodeSet(piece, resolver=RESOLVER_NOGROUP)
        ]
    except NodeSetException as error:
        raise ValueError(f"{shown(names)} is not a node set, such as node[1-4]: {error}") from None
    if not found:
        raise ValueError("names no node")
    return several(found)


def _pieces(part: str) -> Iterator[str]:
    """Yield a node set's parts with one range per bracket: `a[1]b`, `a[3-4]b` for `a[1,3-4]b`."""
    before, bracket, rest = part.partition("[")
    inside, closed, after = rest.partition("]")
    if not bracket or not closed:
        yield part
        return
    for span in inside.split(","):
        yield from (f"{before}[{span}]{tail}" for tail in _pieces(after))


# --- kinds of values ------------------------------------------------------------------------------


class Strict(BaseModel):
    """Base of the models of configuration mappings, in which an unknown key is an error.

    Values are not converted. A key with a default always has a value; a key that is None is absent,
    or has no effect.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: object) -> object:
        """Remove optional keys with a null value, so that they count as absent."""
        if not isinstance(value, dict):
            return value
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {k: item for k, item in value.items() if item is not None or k not in optional}

    def given(self) -> dict[str, object]:
        """Return the keys that the user wrote, with their values, in the model's order."""
        return {k: v for k, v in self.in_effect().items() if k in self.model_fields_set}

    def in_effect(self) -> dict[str, object]:
        """Return the keys that have a value, written or default, with these values."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if value is not None}

    def with_defaults(self, **defaults: object) -> Self:
        """Return the model with the given defaults for absent keys."""
        missing = {key: value for key, value in defaults.items() if getattr(self, key) is None}
        return self.model_copy(update=missing)

    def written(self) -> dict[str, Any]:
        """Return the keys that have a value, with the values in the form that users write."""
        return self.model_dump(exclude_none=True, warnings=False)


T = TypeVar("T")


def choice(words: Iterable[str]) -> PlainValidator:
    """Return a validator that accepts only the given words."""
    valid = list(words)

    def check(value: object) -> object:
        if value not in valid:
            raise ValueError(invalid(value, valid))
        return value

    return PlainValidator(check)


Parser = Callable[[Any], int]


def bounded(read: Parser, least: int, most: int, words: str) -> Parser:
    """Return a parser that raises ValueError for a number outside `least` to `most`.

    `read` parses the number, which replaces {} in the error message `words`.
    """

    def check(value: object) -> int:
        number = read(value)
        if not least <= number <= most:
            raise ValueError(words.format(number))
        return number

    return check


def whole(least: int, most: int, what: str) -> Parser:
    """Return a parser of whole numbers, such as `10k`, from `least` to `most`."""
    return bounded(quantities.count, least, most, f"{{}} is invalid: {what} is {least} to {most}")


def number(least: int, most: int, what: str) -> PlainValidator:
    """Return a validator of whole numbers, such as `10k`, from `least` to `most`."""
    return PlainValidator(whole(least, most, what))


# --- numbers and times ----------------------------------------------------------------------------


# shortest interval: a worker's sleep deviates from the kernel's clock by up to a millisecond
INTERVAL_LEAST_NS = 10_000_000


def _interval(value: object) -> int:
    """Parse the time between interval results in ns; 0 for `off`."""
    if value == "off":
        return 0
    step_ns = quantities.duration_ns(value)
    if step_ns < INTERVAL_LEAST_NS:
        short = quantities.DURATION.text(step_ns)
        raise ValueError(f"{short} is too short to be measured: write at least 10ms, or off")
    return step_ns


def _written_interval(step_ns: int) -> str:
    return quantities.DURATION.text(step_ns) if step_ns else "off"


def _probe_rate(value: object) -> object:
    """Parse the rate of latency probes: `auto`, or a number per second and flow."""
    words = "a number of probes per second and flow, or auto,"
    return value if value == "auto" else whole(0, 1_000_000, words)(value)


# maximum error of PTP clocks, as the user states it (engine/document/documents.c)
clock_error = bounded(
    quantities.duration_ns, 1, 1_000_000_000, "a clock's error is more than 0 and at most 1s"
)


def _suite_value(value: object) -> float:
    """Parse a parameter of a suite: a number, or a time such as `10s`, which becomes seconds."""
    if isinstance(value, str):
        return float(quantities.DURATION.parse(value)) / 1e9
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise needed(value, "a number, or a time as 10s, is needed")
    return float(value)


REPEATS_MOST = 10000
_REPEATS_LEAST, _REPEATS_USUAL = 5, 30  # repeats of a mapping without `min` and `max`


def _written_repeats(value: Repeats) -> int | dict[str, object]:
    if value.width is None:
        return value.most
    return {"min": value.least, "max": value.most, "width": f"{100 * value.width:.10g}%"}


def _repeats(value: object) -> Repeats:
    """Parse `repeat`: a fixed number, or a mapping with the confidence interval to reach."""
    if not isinstance(value, dict):
        fixed = whole(1, REPEATS_MOST, "the number of repeats")(value)
        return Repeats(fixed, fixed)
    for key in value:
        if key not in ("min", "max", "width"):
            raise ValueError(unknown_key(key, ("min", "max", "width")))
    given = {
        key: whole(2, REPEATS_MOST, f"{key}, the number of repeats for an interval,")(value[key])
        for key in ("min", "max")
        if key in value
    }
    least = given.get("min", min(_REPEATS_LEAST, given.get("max", _REPEATS_LEAST)))
    most = given.get("max", max(_REPEATS_USUAL, least))
    if least > most:
        raise ValueError(f"min: {least} repeats are more than the maximum, max: {most}")
    width = quantities.percentage(value.get("width", "2%"))
    if width is None or not 0 < width <= 100:
        raise ValueError(
            f"width: found {shown(value['width'])}, but more than 0% and at most 100% is needed"
        )
    return Repeats(least, most, float(width / 100))


# --- sizes ----------------------------------------------------------------------------------------


FRAME = bounded(
    quantities.size_bytes, 64, 9216,
    "a frame of {} bytes: frames have 64 to 9216 bytes, FCS included",
)  # fmt: skip
# Size 0 is parsed too: the compiler rejects an empty message unless a schedule sends it.
MESSAGE = bounded(
    quantities.size_bytes, 0, 2**30, "a message of {} bytes: messages have 1GiB at most"
)


# RFC 6985, section 3: the letters of an IMIX genome; h and i are jumbo frames.
GENOME = {
    "a": 64, "b": 128, "c": 256, "d": 512, "e": 1024, "f": 1280, "g": 1518, "h": 2112, "i": 9000,
}  # fmt: skip
# The simple IMIX: IP packets of 40, 576 and 1,500 bytes as 7:4:1, spread evenly.
PRESETS = {"simple": (64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 64, 594)}
IMIX_MOST = 64  # limit of a node (TRANSPORT_SIZES_MAX)


def _imix(value: object) -> tuple[int, ...]:
    """Parse an IMIX (letters, a preset or a list) to frame sizes in sending order."""
    sizes = PRESETS.get(value) if isinstance(value, str) else value
    if isinstance(value, str) and sizes is None:
        for letter in value:
            if letter not in GENOME:
                raise ValueError(
                    f'"{letter}" of the IMIX "{value}" stands for no frame size: letters are '
                    f"{''.join(GENOME)} (RFC 6985); or list the sizes, as [64, 64, 570, 1518]"
                )
        sizes = [GENOME[letter] for letter in value]
    if not isinstance(sizes, list | tuple):
        raise needed(
            value, "simple (7:4:1 of 64, 594 and 1518 bytes), a genome (aaab) or a list is needed"
        )
    if not 2 <= len(sizes) <= IMIX_MOST:
        raise ValueError(f"has {len(sizes)} frames, but an IMIX has 2 to {IMIX_MOST}")
    return tuple(map(FRAME, sizes))


# --- names and traffic matrices -------------------------------------------------------------------


def word(value: object) -> str:
    """Return a name unchanged; raise ValueError for an empty text or a value that is no text."""
    if not isinstance(value, str) or not value:
        raise needed(value, "a name is needed")
    return value


def _words(value: object) -> str:
    """Return a text unchanged; raise ValueError for a number, because 0012 would become 12."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise needed(value, "text is needed: put it in quotes")
    if not isinstance(value, str) or not value.strip():
        raise needed(value, "text is needed")
    return value


PARTNERS = ("neighbours", "halves", "shift", "inside", "across", "random")


def _partners(value: object) -> str | NamedPairs:
    """Parse `partners` of the pattern pairs: a word such as `halves`, or pairs of names."""
    if isinstance(value, str) and value in PARTNERS:
        return value
    if not isinstance(value, list) or not value:
        near = meant(value, PARTNERS)
        raise ValueError(
            f"found {shown(value)}; valid values are {listed(PARTNERS)}, or a list of pairs{near}"
        )
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise needed(pair, "a pair of two ports or hosts is needed")
    return tuple((word(one), word(other)) for one, other in value)


def _written_partners(value: str | NamedPairs) -> str | list[list[str]]:
    return value if isinstance(value, str) else [list(pair) for pair in value]


def _groups(value: object) -> NamedGroups:
    """Parse a list of groups; each entry is one group, either a name or a list of names."""
    if not isinstance(value, list):
        raise needed(value, "a list of groups is needed")
    return tuple(
        tuple(map(word, entry if isinstance(entry, list) else [entry])) for entry in several(value)
    )


def _written_groups(value: NamedGroups) -> list[str | list[str]]:
    return [group[0] if len(group) == 1 else list(group) for group in value]


def flow(value: object) -> Flow:
    """Parse one flow: `[source, destination]`, or with the share of the load in percent."""
    if not isinstance(value, list | tuple) or len(value) not in (2, 3):
        raise needed(value, "[source, destination] or [source, destination, share] is needed")
    source, destination = (
        end if isinstance(end, int) and not isinstance(end, bool) else word(end)
        for end in value[:2]
    )
    if len(value) == 2:
        return Flow(source, destination)
    percent = quantities.percentage(value[2])
    if percent is None or not 0 < percent <= 100 or percent != round(percent, 7):
        raise needed(
            value[2], "a share is more than 0% and at most 100%, as 12.5%, with 7 decimals at most"
        )
    return Flow(source, destination, float(percent))


def _flows(value: object) -> tuple[Flow, ...]:
    """Parse flows: a list of `[source, destination]` or `[source, destination, 25%]`."""
    if not isinstance(value, list) or not value:
        raise needed(value, "a list of [source, destination] is needed")
    return tuple(map(flow, value))


def _written_flows(value: tuple[Flow, ...]) -> list[list[object]]:
    return [
        [one.source, one.destination, *([] if one.share is None else [f"{one.share:.10g}%"])]
        for one in value
    ]


def _swept(value: object) -> dict[str, list[Any]]:
    """Parse `sweep`: a list of values for each key, such as `count` or `tcp.streams_per_flow`."""
    if not isinstance(value, dict) or not value:
        raise needed(value, "a mapping is needed, such as {count: [4, 8]}")
    for key, values in value.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{key}: found {shown(values)}, but a list of values is needed")
        if any(values.count(item) > 1 for item in values):
            raise ValueError(f"{key}: duplicate value")
    return value


def _axis(values: object) -> object:
    if not isinstance(values, list):
        bare = values if isinstance(values, str) else shown(values)
        raise ValueError(f"takes a list: write [{bare}]")
    return several(values)


# --- hosts and their ports ------------------------------------------------------------------------


CORES_MOST = 1024  # limit of a node (engine/platform/cpu_placement.h)


def cores(value: object) -> tuple[int, ...]:
    """Parse CPU cores in written order: a cpuset (`2-5,8`), a list of numbers, or one number."""
    words = value if isinstance(value, list) else str(value).split(",")
    if isinstance(value, bool | float | dict) or not words:
        raise needed(value, 'cores are needed, such as "2-5" or [2, 3]')
    found: list[int] = []
    for one in words:
        first, dash, last = str(one).strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise needed(one, 'a core or a span of cores is needed, such as "2-5"')
        span = range(int(first), int(last if dash else first) + 1)
        if not span or span[-1] >= CORES_MOST:
            raise ValueError(
                f"found {shown(one)}: write the lower core of a span first; cores are 0 to "
                f"{CORES_MOST - 1}"
            )
        found += span
    twice = first_double(found)
    if twice is not None:
        raise ValueError(f"duplicate core {twice}")
    return tuple(found)


def _ip_address(version: int, example: str) -> PlainValidator:
    """Return a validator of IPv4 or IPv6 addresses with a prefix length."""

    def check(value: object) -> str:
        with suppress(ValueError):
            if "/" in str(value) and ip_interface(str(value)).version == version:
                return str(value)
        raise ValueError(
            f"{shown(value)} is not an IPv{version} address with a prefix, such as {example}"
        )

    return PlainValidator(check)


def _hosts(value: object) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise needed(value, "a node set is needed")
    return list(texts)


def _order(value: object) -> str | list[str]:
    """Parse `rank_order`: `host`, `port`, or a list of node sets of ports or hosts."""
    if not isinstance(value, list) and value not in ("host", "port"):
        raise needed(value, "host, port, or a list of all ports is needed")
    return value if isinstance(value, str) else list(map(word, several(value)))


def _wiring(value: object) -> dict[str, tuple[str, str]]:
    """Parse `wiring`: a mapping of host ports to the name of a switch and the switch's port."""
    if not isinstance(value, dict):
        raise needed(value, "a mapping is needed, such as {node1:e0: [switch, port]}")
    for name, ends in value.items():
        if not isinstance(ends, list) or len(ends) != 2:
            raise ValueError(
                f"{name}: the list [switch, port of the switch] is needed, such as [leaf1, p3]"
            )
    return {name: (str(ends[0]), str(ends[1])) for name, ends in value.items()}


_RDMA = r"^([A-Za-z0-9_.-]+)(?:/([0-9]{1,3}))?$"


def _rdma_port(value: object) -> str:
    """Parse an RDMA device and port such as `mlx5_2/1`; the port is 1 by default."""
    found = re.fullmatch(_RDMA, value) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[2] or 1) <= 255:
        raise needed(value, "an RDMA device and its port are needed, such as mlx5_2/1")
    return f"{found[1]}/{int(found[2] or 1)}"


# --- the types of keys ----------------------------------------------------------------------------


Axis = Annotated[list[T], BeforeValidator(_axis)]  # a list whose values are all measured
Name = Annotated[str, PlainValidator(word)]
Words = Annotated[str, PlainValidator(_words)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]  # only a plain number: YAML readers differ on 010
Retries = Annotated[int, number(0, 6, "the number of retries (in InfiniBand 7 means unlimited)")]
RankCount = Annotated[int, number(2, 65536, "the number of ranks")]
Repeat = Annotated[Repeats, PlainValidator(_repeats), PlainSerializer(_written_repeats)]
SuiteValue = Annotated[float, PlainValidator(_suite_value)]
Duration = Annotated[
    int, PlainValidator(quantities.duration_ns), PlainSerializer(quantities.DURATION.text)
]
Timeout = Annotated[
    int,
    PlainValidator(bounded(quantities.duration_ns, 1, 2**63, "a timeout is longer than 0")),
    PlainSerializer(quantities.DURATION.text),
]
Interval = Annotated[int, PlainValidator(_interval), PlainSerializer(_written_interval)]
ClockError = Annotated[int, PlainValidator(clock_error), PlainSerializer(quantities.DURATION.text)]
Size = Annotated[int, PlainValidator(quantities.size_bytes)]
TransferSize = Annotated[
    int, PlainValidator(quantities.size_bytes), PlainSerializer(quantities.SIZE.text)
]
FrameSize = Annotated[int, PlainValidator(FRAME)]
MessageSize = Annotated[int, PlainValidator(MESSAGE)]
Imix = Annotated[tuple[int, ...], PlainValidator(_imix), PlainSerializer(list)]
Rate = Annotated[int, PlainValidator(quantities.rate_bps), PlainSerializer(quantities.RATE.text)]
LoadField = Annotated[Load, PlainValidator(quantities.load), PlainSerializer(quantities.load_text)]
ProbeRate = Annotated[str | int, PlainValidator(_probe_rate)]
Partners = Annotated[
    str | NamedPairs, PlainValidator(_partners), PlainSerializer(_written_partners)
]
Groups = Annotated[NamedGroups, PlainValidator(_groups), PlainSerializer(_written_groups)]
Flows = Annotated[tuple[Flow, ...], PlainValidator(_flows), PlainSerializer(_written_flows)]
Swept = Annotated[dict[str, list[Any]], PlainValidator(_swept)]
Hosts = Annotated[list[str], PlainValidator(_hosts)]  # node sets
Order = Annotated[str | list[str], PlainValidator(_order)]
Cores = Annotated[tuple[int, ...], PlainValidator(cores), PlainSerializer(list)]
RdmaPort = Annotated[str, PlainValidator(_rdma_port)]
IpAddress = Annotated[str, _ip_address(4, "198.18.0.1/16")]
Ip6Address = Annotated[str, _ip_address(6, "2001:2::1/64")]
Wiring = Annotated[dict[str, tuple[str, str]], PlainValidator(_wiring)]
