# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of values in a configuration: their parsers and their JSON schemas for editors."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_interface
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self, TypeVar

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import core_schema

from ..base import quantities
from ..base.errors import ConfigurationError, invalid, listed, meant, shown, unknown_key
from ..base.model import CLOCK_MODES, ClockChoice, Load, Repeats
from ..base.node_names import padded, refuse_many
from ..base.source import read_text

NamedGroups = tuple[tuple[str, ...], ...]
NamedPairs = tuple[tuple[str, str], ...]
Form = dict[str, Any]
"""A JSON schema."""


class Flow(NamedTuple):
    """Flow by names of ports or hosts, or by rank numbers."""

    source: str | int
    destination: str | int
    share: float | None = None  # in percent of its source's load
    place: str = ""  # line of a file, for messages


def needed(value: object, what: str) -> ValueError:
    """Return the ValueError for a value that does not meet a requirement."""
    return ValueError(f"found {shown(value)}, but {what}")


def several(values: list[Any]) -> list[Any]:
    """Return a list; ValueError for an empty list or a duplicate value."""
    if not values:
        raise ValueError("is an empty list")
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
_USER = re.compile(r"(?:^|[\s,])([A-Za-z_][\w.-]*)@[\w.\[-]+")


def written_order(names: str) -> list[str]:
    """Return the names in a ClusterShell node set in written order: `n[3,1-2]` is n3, n1, n2.

    NodeSet sorts, but the written order is the physical one. So each comma inside of brackets is
    expanded here, and NodeSet parses the ranges. Groups are not resolved: `@all` is rejected, and
    so is `root@node1`, which NodeSet takes as a group.
    """
    if user := _USER.search(names):
        raise ValueError(
            f"{shown(user[0])} names a user: write the host alone, and `ssh: {{user: {user[1]}}}` "
            "in the site"
        )
    if "@" in names:
        raise ValueError(
            f"{shown(names)} names a node group: write the hosts that `nodeset -e` prints"
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
        raise ValueError(f"{shown(names)} is not a node set: {error}") from None
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


# --- files of comma-separated values --------------------------------------------------------------


def csv_rows(
    path: Path, header: Collection[str], most: int = 4 << 20
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and fields for each line of a CSV file, without comments and header.

    Raise ValueError with the line that cannot be read.
    """
    try:
        reader = csv.reader(read_text(path, most).splitlines())
        for row in reader:
            fields = [text.strip() for text in row]
            is_header = fields == list(header)[: len(fields)]
            if any(fields) and not fields[0].startswith("#") and not is_header:
                yield reader.line_num, fields
    except csv.Error as error:
        raise ValueError(f"{path}:{reader.line_num}: is not CSV: {error}") from None
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


MOST_FLOWS = 500_000  # limit of a list in the engine's documents (engine/document)
_FLOW_BYTES = 64 << 20  # limit of a file of flows


def read_flows(path: Path) -> tuple[Flow, ...]:
    """Return the flows of a CSV file, in order: source, destination and optional share.

    A share without a unit is in percent. Raise ValueError with the line of a mistake.
    """
    found: list[Flow] = []
    for line, fields in csv_rows(path, ("source", "destination", "share"), _FLOW_BYTES):
        place = f"{path.name}:{line}"
        ends = [int(text) if text.isdecimal() else text for text in fields[:2]]
        bare = re.compile(r"[0-9]*\.?[0-9]*")
        shares = [f"{text}%" if bare.fullmatch(text) else text for text in fields[2:] if text]
        try:
            found.append(flow([*ends, *shares], place))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
    if not found:
        raise ValueError(f"{path} lists no flow")
    if len(found) > MOST_FLOWS:
        raise ValueError(f"{path} lists {len(found)} flows: {MOST_FLOWS} at most")
    return tuple(found)


# --- kinds of values ------------------------------------------------------------------------------


class Strict(BaseModel):
    """Base of mappings: unknown keys are errors, and values are not converted.

    A key with a default always has a value; a key that is None is absent, or has no effect.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: object) -> object:
        """Remove keys with a null value, which count as absent."""
        if not isinstance(value, dict):
            return value
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {k: item for k, item in value.items() if item is not None or k not in optional}

    def given(self) -> dict[str, object]:
        """Return the keys that the user wrote, in the model's order."""
        return {k: v for k, v in self.in_effect().items() if k in self.model_fields_set}

    def in_effect(self) -> dict[str, object]:
        """Return the keys that have a value, given or default."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if value is not None}

    def with_defaults(self, **defaults: object) -> Self:
        """Return the mapping with defaults for absent keys."""
        missing = {key: value for key, value in defaults.items() if getattr(self, key) is None}
        return self.model_copy(update=missing)

    def written(self) -> dict[str, Any]:
        """Return the keys that have a value, in the form that users write."""
        return self.model_dump(exclude_none=True, warnings=False)


SINGULAR = "takes one value"
NOT_SWEPT = {
    **dict.fromkeys(("pattern", "profile"), "write one test for each"),
    **dict.fromkeys(("repeat", "sweep", "flows"), "it can't be swept"),
}


@dataclass(frozen=True, eq=False)
class ValueKind:
    """Kind of a key's value: its parser, its writer and its JSON schema."""

    parse: Callable[[Any], Any]
    form: Form
    lists: bool = False  # true where a list is one value of this kind
    write: Callable[[Any], object] | None = None  # form that users write; None: unchanged

    def __call__(self, value: object) -> Any:
        """Parse a value; ValueError for an invalid one."""
        if isinstance(value, list) and not self.lists:
            raise ValueError(SINGULAR)
        return self.parse(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Return the schema with which pydantic validates this kind."""
        write = self.write and core_schema.plain_serializer_function_ser_schema(self.write)
        return core_schema.no_info_plain_validator_function(self, serialization=write)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Form:
        """Return the JSON schema of this kind."""
        return dict(self.form)


def kind(
    form: Form, lists: bool = False, write: Callable[[Any], object] | None = None
) -> Callable[[Callable[[Any], Any]], ValueKind]:
    """Return a decorator that makes a kind of values from a parser."""
    return lambda parse: ValueKind(parse, form, lists, write)


def text_like(pattern: str) -> Form:
    """Return the JSON schema of text that matches an expression."""
    return {"type": "string", "pattern": pattern}


def either(*forms: Form) -> Form:
    """Return the JSON schema of a value in one of several forms."""
    return {"anyOf": list(forms)}


def mapping_of(**forms: Form) -> Form:
    """Return the JSON schema of a mapping with these keys and no others."""
    return {"type": "object", "additionalProperties": False, "properties": forms}


def list_of(form: Form, least: int = 1, most: int | None = None) -> Form:
    """Return the JSON schema of a list of a form."""
    items = {"type": "array", "items": form, "minItems": least}
    return items if most is None else items | {"maxItems": most}


T = TypeVar("T")
_TEXT: Form = {"type": "string", "minLength": 1}
_COUNT, _TIME, _SIZE, _SHARE = (
    each.form()
    for each in (quantities.COUNT, quantities.DURATION, quantities.SIZE, quantities.PERCENT)
)
_time_text = quantities.DURATION.text


def choice(words: Iterable[str]) -> ValueKind:
    """Return the kind of values that are one of the given words."""
    valid = list(words)

    @kind({"enum": valid, "type": "string"})
    def check(value: object) -> object:
        if value not in valid:
            raise ValueError(invalid(value, valid))
        return value

    return check


def bounded(
    read: Callable[[object], int], form: Form, least: int, most: int, words: str
) -> ValueKind:
    """Return the kind of numbers within bounds; {} in the message `words` becomes the number."""

    @kind(form)
    def check(value: object) -> int:
        number = read(value)
        if not least <= number <= most:
            raise ValueError(words.format(number))
        return number

    return check


def whole(least: int, most: int, what: str) -> ValueKind:
    """Return the kind of whole numbers within bounds; `10k` and `10M` are numbers too."""
    number = {"type": "integer", "minimum": least, "maximum": most}
    form = either(number, text_like(quantities.COUNT.pattern()))
    words = f"{{}} is invalid: {what} is {least} to {most}"
    return bounded(quantities.count, form, least, most, words)


@kind({"type": ["number", "string"]})
def _limit(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise needed(value, "a number is needed, such as 94 or 94%")
    return str(value)


@kind(text_like(r"^\s*(==|!=|<=|>=|<|>)\s*[-+0-9.]"))
def _comparison(value: object) -> str:
    if not isinstance(value, str) or not value:
        number = value if isinstance(value, int | float) else 0
        raise needed(value, f'a comparison is needed, such as "== {number:g}"')
    return value


# --- numbers and times ----------------------------------------------------------------------------


SEED_MOST = 2**63 - 1


@kind({"type": "integer", "minimum": 0, "maximum": SEED_MOST})
def _seed(value: object) -> int:
    """Parse a seed, in one spelling only, because YAML readers differ on `010` and `1.0`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= SEED_MOST:
        raise needed(value, f"a seed is a whole number, 0 to {SEED_MOST}")
    return value


@kind(_SHARE, write="{}%".format)
def _percent(value: object) -> int:
    """Parse a whole percentage, 0 to 100."""
    number = quantities.percentage(value)
    if number is None or number > 100 or number != int(number):
        raise needed(value, "whole percent, 0% to 100%, are needed, as 50%")
    return int(number)


# the kernel's clock and a worker's sleep differ by up to a millisecond
INTERVAL_LEAST_NS = 10_000_000


@kind(either({"const": "off"}, _TIME), write=lambda ns: _time_text(ns) if ns else "off")
def _interval(value: object) -> int:
    """Parse the time between interval results in ns; 0 for `off`."""
    if value == "off":
        return 0
    step_ns = quantities.duration_ns(value)
    if step_ns < INTERVAL_LEAST_NS:
        short = _time_text(step_ns)
        raise ValueError(f"{short} is too short to be measured: at least 10ms, or off")
    return step_ns


@kind(_TIME, write=_time_text)
def _timeout(value: object) -> int:
    """Parse a timeout to ns; ValueError for 0."""
    timeout_ns = quantities.duration_ns(value)
    if timeout_ns == 0:
        raise needed(value, "a timeout is longer than 0")
    return timeout_ns


PROBES_MOST = 1_000_000  # limit of a node, per second and flow


@kind(
    either({"enum": ["auto", 0]}, text_like(r"^[0-9.]+ ?[kKMG]? ?/ ?s$")),
    write=lambda rate: f"{rate:.17g}/s" if isinstance(rate, float) and rate > 0 else rate or 0,
)
def _probe_rate(value: object) -> object:
    """Parse a probe rate: `auto`, or probes per second and flow (`1000/s`), or 0 for none."""
    if value == "auto":
        return value
    try:
        rate = quantities.per_second(value)
    except ValueError:
        raise needed(value, "auto, a rate by flow (1000/s) or 0 is needed") from None
    if rate > PROBES_MOST:
        raise ValueError(f"{shown(value)} is too much for probes: at most {PROBES_MOST:,}/s")
    return rate


CLOCK_ERROR_MOST_NS = 1_000_000_000
_MODE: Form = {"enum": list(CLOCK_MODES)}


def _refuse_unknown(value: Iterable[str], keys: Collection[str]) -> None:
    for key in value:
        if key not in keys:
            raise ValueError(unknown_key(key, keys))


def _written_clock(clock: ClockChoice) -> str | dict[str, str]:
    if not clock.error_ns:
        return clock.mode
    return {"mode": clock.mode, "error": _time_text(clock.error_ns)}


@kind(either(_MODE, mapping_of(mode=_MODE, error=_TIME)), write=_written_clock)
def _clock(value: object) -> ClockChoice:
    """Parse a clock mode (`shared`, `ptp`, `estimated`), or a mapping with its error."""
    given = value if isinstance(value, dict) else {"mode": value}
    _refuse_unknown(given, ("mode", "error"))
    mode = given.get("mode", "auto")
    if mode not in CLOCK_MODES:
        raise ValueError(invalid(mode, CLOCK_MODES))
    if "error" not in given:
        return ClockChoice(mode)
    if mode != "ptp":
        raise ValueError(
            f"`error`, the max error of a clock, is for mode: ptp, not for {mode}: leave it out"
        )
    error_ns = quantities.duration_ns(given["error"])
    if not 0 < error_ns <= CLOCK_ERROR_MOST_NS:
        raise ValueError(
            f"error: found {shown(given['error'])}, but more than 0 and at most 1s is needed"
        )
    return ClockChoice(mode, error_ns)


@kind({"type": ["number", "string"]})
def _suite_value(value: object) -> float:
    """Parse a parameter of a suite: a number, or a time such as 10s."""
    if isinstance(value, str):
        return float(quantities.DURATION.parse(value)) / 1e9
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise needed(value, "a number, or a time as 10s, is needed")
    return float(value)


REPEATS_MOST = 10000
_REPEATS_LEAST, _REPEATS_USUAL = 5, 30  # limits of a mapping without `min` and `max`
_REPEAT = mapping_of(min=_COUNT, max=_COUNT, width=_SHARE, confidence=_SHARE)


def _written_repeats(value: Repeats) -> int | dict[str, object]:
    if value.width is None:
        return value.most
    shares = {"width": value.width, "confidence": value.confidence}
    percents = {key: f"{100 * share:.10g}%" for key, share in shares.items()}
    return {"min": value.least, "max": value.most, **percents}


@kind(either(_COUNT, _REPEAT), write=_written_repeats)
def _repeats(value: object) -> Repeats:
    """Parse repeats: a fixed number, or a mapping with a confidence interval to reach."""
    keys: dict[str, object] = value if isinstance(value, dict) else {"repeat": value}

    def count(key: str) -> int:
        number = quantities.count(keys[key])
        if not 1 <= number <= REPEATS_MOST:
            raise ValueError(f"{key}: {number} is invalid: repeats are 1 to {REPEATS_MOST}")
        return number

    def share(key: str, usual: str, least: float, most: float) -> float:
        number = quantities.percentage(keys.get(key, usual))
        if number is None or not least <= number <= most or number == 0:
            raise ValueError(
                f"{key}: found {shown(keys[key])}, but {least:g}% to {most:g}% is needed, as 2%"
            )
        return float(number / 100)

    if not isinstance(value, dict):
        number = count("repeat")
        return Repeats(number, number)
    _refuse_unknown(keys, _REPEAT["properties"])
    given = {key: count(key) for key in ("min", "max") if key in keys}
    least = given.get("min", min(_REPEATS_LEAST, given.get("max", _REPEATS_LEAST)))
    most = given.get("max", max(_REPEATS_USUAL, least))
    for key, number in (("max", most), ("min", least)):
        if number < 2:
            or_once = ", or write repeat: 1" if key == "max" else ""
            raise ValueError(
                f"{key}: 1 repeat has no confidence interval: at least 2 are needed{or_once}"
            )
    if least > most:
        raise ValueError(f"min: {least} repeats are more than max, {most}")
    return Repeats(
        least, most, share("width", "2%", 0.0, 100.0), share("confidence", "95%", 50.0, 99.99)
    )


# --- sizes ----------------------------------------------------------------------------------------


FRAME = bounded(
    quantities.size_bytes, _SIZE, 64, 9216,
    "a frame of {} bytes: frames have 64 to 9216 bytes, FCS included",
)  # fmt: skip
# Only schedules send empty messages: the compiler rejects others.
MESSAGE = bounded(
    quantities.size_bytes, _SIZE, 0, 2**30, "a message of {} bytes: messages have 1GiB at most"
)
# Above the limit of any device; the node checks its device's limit.
INLINE = bounded(
    quantities.size_bytes, _SIZE, 0, 4096, "{} bytes inline: valid values are 0 (none) to 4096"
)


@kind(list_of(_SIZE, 2, 2), lists=True, write=list)
def _size_range(value: object) -> object:
    """Parse the minimum and the maximum of random sizes."""
    if not isinstance(value, list) or len(value) != 2:
        raise needed(value, "two sizes are needed, as [4, 64KiB]")
    least, most = map(MESSAGE, value)
    if least == 0:
        raise ValueError("messages of random sizes have at least 1 byte")
    if least > most:
        raise ValueError(f"{least} bytes are more than {most}: the smaller size stands first")
    return (least, most)


# RFC 6985, section 3: the letters of an IMIX genome; h and i are jumbo frames.
GENOME = {
    "a": 64, "b": 128, "c": 256, "d": 512, "e": 1024, "f": 1280, "g": 1518, "h": 2112, "i": 9000,
}  # fmt: skip
# The simple IMIX: IP packets of 40, 576 and 1,500 bytes as 7:4:1, spread evenly.
PRESETS = {"simple": (64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 64, 594)}
IMIX_MOST = 64  # limit of a node (TRANSPORT_SIZES_MAX)


@kind(either(_TEXT, list_of(_SIZE, 2, IMIX_MOST)), lists=True, write=list)
def _imix(value: object) -> tuple[int, ...]:
    """Parse an IMIX: a genome, a preset, or a list of sizes, in sending order."""
    sizes = PRESETS.get(value) if isinstance(value, str) else value
    if isinstance(value, str) and sizes is None:
        for letter in value:
            if letter not in GENOME:
                raise ValueError(
                    f'"{letter}" of "{value}" has no size: letters are {"".join(GENOME)} '
                    "(RFC 6985); or list the sizes, as [64, 64, 570, 1518]"
                )
        sizes = [GENOME[letter] for letter in value]
    if not isinstance(sizes, list | tuple):
        raise needed(
            value, "simple (7:4:1 of 64, 594 and 1518 bytes), a genome (aaab) or a list is needed"
        )
    if not 2 <= len(sizes) <= IMIX_MOST:
        raise ValueError(f"has {len(sizes)} frames: an IMIX has 2 to {IMIX_MOST}")
    return tuple(map(FRAME, sizes))


# --- names, and who sends to whom -----------------------------------------------------------------


@kind(_TEXT)
def word(value: object) -> str:
    """Parse a name."""
    if not isinstance(value, str) or not value:
        raise needed(value, "a name is needed")
    return value


@kind(_TEXT)
def _words(value: object) -> str:
    """Parse text unchanged: a serial number 0012 is not 12."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise needed(value, "text is needed: put it in quotes")
    if not isinstance(value, str) or not value.strip():
        raise needed(value, "text is needed")
    return value


PARTNERS = ("neighbours", "halves", "shift", "inside", "across", "random")


@kind(
    either({"enum": list(PARTNERS)}, list_of(list_of(_TEXT, 2, 2))),
    lists=True,
    write=lambda value: value if isinstance(value, str) else [list(pair) for pair in value],
)
def _partners(value: object) -> str | NamedPairs:
    """Parse partners: a word, or pairs of names."""
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


@kind(
    list_of(either(_TEXT, list_of(_TEXT))),
    lists=True,
    write=lambda value: [group[0] if len(group) == 1 else list(group) for group in value],
)
def _groups(value: object) -> NamedGroups:
    """Parse groups of names; each entry is one group, a word or a list."""
    if not isinstance(value, list):
        raise needed(value, "a list of groups is needed")
    return tuple(
        tuple(map(word, entry if isinstance(entry, list) else [entry])) for entry in several(value)
    )


_END: Form = {"type": ["string", "integer"], "minLength": 1, "minimum": 0}
_FLOW: Form = {"type": "array", "prefixItems": [_END, _END, _SHARE], "minItems": 2, "maxItems": 3}


def flow(value: object, place: str = "") -> Flow:
    """Parse one flow; its share is in percent."""
    if not isinstance(value, list | tuple) or len(value) not in (2, 3):
        raise needed(value, "[source, destination] or [source, destination, share] is needed")
    source, destination = (
        end if isinstance(end, int) and not isinstance(end, bool) else word(end)
        for end in value[:2]
    )
    if len(value) == 2:
        return Flow(source, destination, place=place)
    percent = quantities.percentage(value[2])
    if percent is None or not 0 < percent <= 100 or percent != round(percent, 7):
        raise needed(
            value[2], "a share is more than 0% and at most 100%, as 12.5%, with 7 decimals at most"
        )
    return Flow(source, destination, float(percent), place)


@kind(
    either(_TEXT, list_of(_FLOW)),
    lists=True,
    write=lambda value: [
        [one.source, one.destination, *([] if one.share is None else [f"{one.share:.10g}%"])]
        for one in value
    ],
)
def _flows(value: object) -> str | tuple[Flow, ...]:
    """Parse flows: a list of `[source, destination]` or `[source, destination, 25%]`, or a file."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not value:
        raise needed(value, "a list of [source, destination], or a file, is needed")
    return tuple(item if isinstance(item, Flow) else flow(item) for item in value)


@kind({"type": "object", "minProperties": 1, "additionalProperties": list_of({})})
def _swept(value: object) -> dict[str, list[Any]]:
    """Parse a sweep: a list of values per parameter (dotted below a transport's name)."""
    if not isinstance(value, dict) or not value:
        raise needed(value, "a mapping is needed, as {count: [4, 8]}")
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
_SPANS = text_like(r"^ *[0-9]+(-[0-9]+)? *(, *[0-9]+(-[0-9]+)? *)*$")
_CORE = either({"type": "integer", "minimum": 0}, _SPANS)


@kind(either(_CORE, list_of(_CORE)), lists=True, write=list)
def cores(value: object) -> tuple[int, ...]:
    """Parse cores in written order: a cpuset (`2-5,8`), a list of numbers, or one number."""
    words = value if isinstance(value, list) else str(value).split(",")
    if isinstance(value, bool | float | dict) or not words:
        raise needed(value, 'cores are needed, as "2-5" or [2, 3]')
    found: list[int] = []
    for one in words:
        first, dash, last = str(one).strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise needed(one, 'a core or a span of cores is needed, as "2-5"')
        span = range(int(first), int(last if dash else first) + 1)
        if not span or span[-1] >= CORES_MOST:
            raise ValueError(
                f"found {shown(one)}: a span counts up, and cores are 0 to {CORES_MOST - 1}"
            )
        found += span
    twice = first_double(found)
    if twice is not None:
        raise ValueError(f"duplicate core {twice}")
    return tuple(found)


def _ip_address(version: int, example: str, pattern: str) -> ValueKind:
    """Return the kind of IP addresses with a prefix length."""

    @kind(text_like(pattern))
    def check(value: object) -> str:
        with suppress(ValueError):
            if "/" in str(value) and ip_interface(str(value)).version == version:
                return str(value)
        raise ValueError(
            f"{shown(value)} is not an IPv{version} address with a prefix, such as {example}"
        )

    return check


@kind(either(_TEXT, list_of(_TEXT)), lists=True)
def _hosts(value: object) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise needed(value, "a node set is needed")
    return list(texts)


@kind(either(_TEXT, {"type": "object", "additionalProperties": list_of({}, 2, 2)}))
def _wiring(value: object) -> str | dict[str, tuple[str, str]]:
    """Parse wiring: a file, or a mapping of ports to a switch and its port."""
    if not isinstance(value, dict):
        if not isinstance(value, str) or not value:
            raise needed(value, "a file is needed")
        return value
    for name, ends in value.items():
        if not isinstance(ends, list) or len(ends) != 2:
            raise ValueError(f"{name}: needs [switch, switch port]")
    return {name: (str(ends[0]), str(ends[1])) for name, ends in value.items()}


@kind({"type": ["string", "integer", "boolean"]})
def _ssh_option(value: object) -> str:
    """Parse an ssh option's value to the text after `-o`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str | int):
        raise needed(value, "one value is needed")
    return str(value)


_RDMA = r"^([A-Za-z0-9_.-]+)(?:/([0-9]{1,3}))?$"


@kind(text_like(_RDMA))
def _rdma_port(value: object) -> str:
    """Parse an RDMA device and port such as `mlx5_2/1`; the port is 1 by default."""
    found = re.fullmatch(_RDMA, value) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[2] or 1) <= 255:
        raise needed(value, "an RDMA device and its port are needed, as mlx5_2/1")
    return f"{found[1]}/{int(found[2] or 1)}"


# --- the types of keys ----------------------------------------------------------------------------


Axis = Annotated[list[T], BeforeValidator(_axis)]  # a list whose values are all measured
Name = Annotated[str, word]
Words = Annotated[str, _words]
Seed = Annotated[int, _seed]
Retries = Annotated[int, whole(0, 6, "the number of retries (7 would mean without end)")]
RankCount = Annotated[int, whole(2, 65536, "the number of ranks")]
Repeat = Annotated[Repeats, _repeats]
Percent = Annotated[int, _percent]
SuiteValue = Annotated[float, _suite_value]
Duration = Annotated[int, ValueKind(quantities.duration_ns, _TIME, write=_time_text)]
Timeout = Annotated[int, _timeout]
Interval = Annotated[int, _interval]
Clock = Annotated[ClockChoice, _clock]
Size = Annotated[int, ValueKind(quantities.size_bytes, _SIZE)]
TransferSize = Annotated[int, ValueKind(quantities.size_bytes, _SIZE, write=quantities.SIZE.text)]
FrameSize = Annotated[int, FRAME]
MessageSize = Annotated[int, MESSAGE]
SizeRange = Annotated[tuple[int, int], _size_range]
InlineSize = Annotated[int, INLINE]
Imix = Annotated[tuple[int, ...], _imix]
Rate = Annotated[
    int, ValueKind(quantities.rate_bps, quantities.RATE.form(), write=quantities.RATE.text)
]
LoadField = Annotated[
    Load, ValueKind(quantities.load, text_like(quantities.LOAD_PATTERN), write=quantities.load_text)
]
ProbeRate = Annotated[str | float, _probe_rate]
Limit = Annotated[str, _limit]
Comparison = Annotated[str, _comparison]
Partners = Annotated[str | NamedPairs, _partners]
Groups = Annotated[NamedGroups, _groups]
Flows = Annotated[str | tuple[Flow, ...], _flows]
Swept = Annotated[dict[str, list[Any]], _swept]
Hosts = Annotated[list[str], _hosts]  # node sets
Cores = Annotated[tuple[int, ...], cores]
RdmaPort = Annotated[str, _rdma_port]
IpAddress = Annotated[str, _ip_address(4, "198.18.0.1/16", r"^[0-9.]+/[0-9]+$")]
Ip6Address = Annotated[str, _ip_address(6, "2001:2::1/64", r"^[0-9a-fA-F:.]+/[0-9]+$")]
Wiring = Annotated[str | dict[str, tuple[str, str]], _wiring]
SshOption = Annotated[str, _ssh_option]
