# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of value that a configuration's keys take.

Every kind is one pydantic annotation without unions, so that an error's location is a path of keys
and nothing else (see `validate`). Checks raise ValueError with one clause: found, possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_interface
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator

from ..base import quantities
from ..base.model import CLOCK_MODES, ClockChoice, Load, Repeats
from ..base.words import invalid, shown, unknown_key
from .imix import frame_bytes, imix
from .sets import cores, groups, partners, several, word

T = TypeVar("T")


class Strict(BaseModel):
    """A mapping whose keys are all known and whose values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def given(self) -> dict[str, Any]:
        """The keys that the user wrote, with a value (`key: null` is not one)."""
        values = {name: getattr(self, name) for name in self.model_fields_set}
        return {
            name: values[name] for name in type(self).model_fields if values.get(name) is not None
        }


SINGULAR = (
    "found a list, but a singular key takes one value (an axis has a plural key, anything else is "
    "swept under `sweep`)"
)


def _single(parse: Callable[[object], Any]) -> BeforeValidator:
    def check(value: object) -> Any:
        if isinstance(value, list):
            raise ValueError(SINGULAR)
        return None if value is None else parse(value)

    return BeforeValidator(check)


def _axis(values: object) -> object:
    if values is None:
        return None
    if not isinstance(values, list):
        raise ValueError(f"is an axis and takes a list: write [{_bare(values)}]")
    return several(values)


def _bare(value: object) -> str:
    return value if isinstance(value, str) else shown(value)


def _message_bytes(value: object) -> int:
    """Only what goes by steps sends empty messages: the compiler refuses others."""
    size = quantities.size_bytes(value)
    if size > 2**30:
        raise ValueError(f"a message of {size} bytes: messages have 1GiB at most")
    return size


def _size_range(value: object) -> object:
    """The least and the greatest size to draw."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"found {shown(value)}, but two sizes are needed, as [4, 64KiB]")
    least, most = (_message_bytes(size) for size in value)
    if least == 0:
        raise ValueError("messages of random sizes have at least 1 byte")
    if least > most:
        raise ValueError(f"{least} bytes are more than {most}: the smaller size stands first")
    return (least, most)


INLINE_MOST = 4096  # more than any device offers; the node knows what its device does


def _inline_bytes(value: object) -> int:
    size = quantities.size_bytes(value)
    if size > INLINE_MOST:
        raise ValueError(f"{size} bytes inline: valid values are 0 (none) to {INLINE_MOST}")
    return size


def _comparison(value: object) -> str:
    if not isinstance(value, str) or not value:
        number = value if isinstance(value, int | float) else 0
        raise ValueError(
            f'found {shown(value)}, but a comparison is needed, such as "== {number:g}"'
        )
    return value


def _limit(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise ValueError(f"found {shown(value)}, but a number is needed, such as 94 or 94%")
    return str(value)


def _ip_address(version: Literal[4, 6]) -> Callable[[object], str]:
    """An address with the length of its network's prefix."""
    example = "198.18.0.1/16" if version == 4 else "2001:2::1/64"

    def check(value: object) -> str:
        try:
            if "/" in str(value) and ip_interface(str(value)).version == version:
                return str(value)
        except ValueError:
            pass
        raise ValueError(
            f"{shown(value)} is no IPv{version} address with its prefix, such as {example}"
        )

    return check


def _words(value: object) -> str:
    """Text that is kept as it is: a serial number 0012 is not 12."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"found {shown(value)}, but text is needed: put it in quotes")
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"found {shown(value)}, but text is needed")
    return value


def whole(least: int, most: int, what: str) -> BeforeValidator:
    """A whole number within bounds; `10k` and `10M` are numbers too."""

    def check(value: object) -> int:
        number = quantities.count(value)
        if not least <= number <= most:
            raise ValueError(f"{number} is invalid: {what} is {least} to {most}")
        return number

    return _single(check)


def retries(what: str) -> BeforeValidator:
    """A limit of three bits, of which 7 is none: rxe and others then try for ever."""

    def check(value: object) -> int:
        number = quantities.count(value)
        if number == 7:
            raise ValueError(
                f"7 is invalid: {what} is 0 to 6, because 7 means for ever on some devices, "
                "and a dead partner would never be noticed"
            )
        if not 0 <= number <= 6:
            raise ValueError(f"{number} is invalid: {what} is 0 to 6")
        return number

    return _single(check)


_RDMA = re.compile(r"([A-Za-z0-9_.-]+)(?:/([0-9]{1,3}))?")


def _rdma_port(value: object) -> str:
    """`mlx5_2/1`: an RDMA device and its port, the first unless named."""
    found = _RDMA.fullmatch(value) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[2] or 1) <= 255:
        raise ValueError(
            f"found {shown(value)}, but an RDMA device and its port are needed, as mlx5_2/1"
        )
    return f"{found[1]}/{int(found[2] or 1)}"


REPEATS_MOST = 10000
_REPEATS_LEAST, _REPEATS_USUAL = 5, 30  # of a mapping that does not say
_WIDTH, _CONFIDENCE = 0.02, 0.95
_REPEAT_KEYS = ("min", "max", "width", "confidence")


def _repeats(value: object) -> object:
    """A number: so often, whatever comes. A mapping: until the mean's interval is narrow."""
    if value is None or isinstance(value, Repeats):
        return value
    if isinstance(value, list):
        raise ValueError(SINGULAR)
    if not isinstance(value, dict):
        number = _repeat_count("repeat", value)
        return Repeats(number, number)
    for key in value:
        if key not in _REPEAT_KEYS:
            raise ValueError(unknown_key(key, _REPEAT_KEYS))
    given = {key: _repeat_count(key, value[key]) for key in ("min", "max") if key in value}
    if given.get("max") == 1:
        raise ValueError(
            "max: 1 repeat has no confidence interval: at least 2 are needed, or write repeat: 1"
        )
    least = given.get("min", min(_REPEATS_LEAST, given.get("max", _REPEATS_LEAST)))
    most = given.get("max", max(_REPEATS_USUAL, least))
    if least < 2:
        raise ValueError("min: 1 repeat has no confidence interval: at least 2 are needed")
    if least > most:
        raise ValueError(f"min: {least} repeats are more than max, {most}")
    width = _share("width", value.get("width", "2%"), 0.0, 100.0)
    confidence = _share("confidence", value.get("confidence", "95%"), 50.0, 99.99)
    return Repeats(least, most, width, confidence)


def _repeat_count(key: str, value: object) -> int:
    number = quantities.count(value)
    if not 1 <= number <= REPEATS_MOST:
        raise ValueError(f"{key}: {number} is invalid: repeats are 1 to {REPEATS_MOST}")
    return number


def _share(key: str, value: object, least: float, most: float) -> float:
    """A percentage as a share of 1."""
    number = quantities.percentage(value)
    if number is None or not least <= number <= most or number == 0:
        raise ValueError(
            f"{key}: found {shown(value)}, but {least:g}% to {most:g}% is needed, as 2%"
        )
    return float(number / 100)


def _percent(value: object) -> int:
    """A whole percentage, 0 to 100."""
    number = quantities.percentage(value)
    if number is None or number > 100 or number != int(number):
        raise ValueError(f"found {shown(value)}, but 0% to 100% is needed, as 50%")
    return int(number)


INTERIM_LEAST_NS = 10_000_000  # the kernel's clock and a worker's sleep are a millisecond apart


def _interval(value: object) -> int:
    """The time from one interval result to the next; 0: `off`."""
    if value == "off":
        return 0
    step_ns = quantities.duration_ns(value)
    if step_ns < INTERIM_LEAST_NS:
        short = quantities.DURATION.text(step_ns)
        raise ValueError(f"{short} is too short to be measured: at least 10ms, or off")
    return step_ns


PROBES_MOST = 1_000_000  # a second and flow: what a node takes


def _probe_rate(value: object) -> object:
    """`auto`, or probes a second and flow: `1000/s`; 0: none."""
    if value is None or value == "auto":
        return value
    try:
        rate = quantities.per_second(value)
    except ValueError:
        raise ValueError(
            f"found {shown(value)}, but auto, a rate by flow (1000/s) or 0 is needed"
        ) from None
    if rate > PROBES_MOST:
        raise ValueError(f"{shown(value)} is a load: probes are at most {PROBES_MOST:,}/s")
    return rate


_CLOCK_STATED = {"asymmetry": "estimated", "error": "ptp"}  # and the mode that it goes with
STATED_MOST_NS = 1_000_000_000


def _clock(value: object) -> object:
    """`shared`, `ptp`, `estimated`; or a mapping with what is known of their error."""
    if value is None or isinstance(value, ClockChoice):
        return value
    if isinstance(value, list):
        raise ValueError(SINGULAR)
    given = value if isinstance(value, dict) else {"mode": value}
    keys = ("mode", *_CLOCK_STATED)
    for key in given:
        if key not in keys:
            raise ValueError(unknown_key(key, keys))
    mode = given.get("mode", "auto")
    if mode not in CLOCK_MODES:
        raise ValueError(invalid(mode, CLOCK_MODES))
    stated = {key: _clock_stated(key, mode, given[key]) for key in _CLOCK_STATED if key in given}
    return ClockChoice(mode, stated.get("asymmetry", 0), stated.get("error", 0))


def _clock_stated(key: str, mode: str, value: object) -> int:
    goes_with = _CLOCK_STATED[key]
    if mode != goes_with:
        raise ValueError(f"{key} goes with mode: {goes_with}, not with {mode}")
    stated_ns = quantities.duration_ns(value)
    if not 0 < stated_ns <= STATED_MOST_NS:
        raise ValueError(f"{key}: found {shown(value)}, but more than 0 and at most 1s is needed")
    return stated_ns


Clock = Annotated[Any, PlainValidator(_clock)]
Duration = Annotated[int, _single(quantities.duration_ns)]
Percent = Annotated[int, _single(_percent)]
Interval = Annotated[int, _single(_interval)]
RepeatField = Annotated[Any, PlainValidator(_repeats)]
Size = Annotated[int, _single(quantities.size_bytes)]
Rate = Annotated[int, _single(quantities.rate_bps)]
FrameSize = Annotated[int, _single(frame_bytes)]
MessageSize = Annotated[int, _single(_message_bytes)]
SizeRange = Annotated[Any, PlainValidator(_size_range)]
InlineSize = Annotated[int, _single(_inline_bytes)]
LoadField = Annotated[Load, _single(quantities.load)]
Name = Annotated[str, _single(word)]
Words = Annotated[str, _single(_words)]
Limit = Annotated[str, _single(_limit)]
Comparison = Annotated[str, _single(_comparison)]
IpAddress = Annotated[str, _single(_ip_address(4))]
Ip6Address = Annotated[str, _single(_ip_address(6))]
RankCount = Annotated[int, whole(2, 65536, "the number of ranks")]
Partners = Annotated[Any, PlainValidator(partners)]
Groups = Annotated[Any, PlainValidator(groups)]
ProbeRate = Annotated[Any, PlainValidator(_probe_rate)]
Imix = Annotated[Any, PlainValidator(imix)]
Cores = Annotated[Any, PlainValidator(cores)]
RdmaPort = Annotated[str, _single(_rdma_port)]


Axis = Annotated[list[T], BeforeValidator(_axis)]  # a list whose every value is tried
