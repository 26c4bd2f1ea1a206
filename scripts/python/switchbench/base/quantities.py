# SPDX-License-Identifier: BSD-3-Clause
"""Parsers and writers of quantities with units: `95%`, `2s`, `64KiB`, `100Mbit`, `10kfps`.

The one grammar of configurations, topology files and options. Each parser returns one exact number,
or raises ValueError with the found text and the valid forms. Each formatter writes text that its
parser reads back as an equal number. Units are decimal except for Ki, Mi and Gi. For rates, `1G`,
`1Gbps` and `1Gbit/s` are one; a unit with two common meanings (`64KB`) is invalid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from .errors import listed, meant, shown
from .model import Load

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z%/\u00b5]*)")


_DIGITS_MOST = 40


@dataclass(frozen=True)
class Quantity:
    """Kind of quantity, such as a duration: its name in messages, an example, and its units."""

    name: str
    example: str
    units: Mapping[str, int]
    bare: bool = False  # true where a number needs no unit
    # further units that are read but never written
    spellings: Mapping[str, int] = field(default_factory=dict)

    def parse(self, value: object) -> Decimal:
        """Return the quantity in a text as a number of its smallest unit; ValueError if invalid."""
        found = _NUMBER.fullmatch(_text(value).strip())
        if found is None:
            raise ValueError(
                f"found {shown(value)}, but {self.name} is needed, such as {self.example}"
            )
        if len(found[1]) > _DIGITS_MOST:
            raise ValueError(
                f"{shown(value)} has {len(found[1])} digits, and at most {_DIGITS_MOST} can be read"
            )
        unit, known = found[2], {**self.units, **self.spellings}
        if unit in known or (not unit and self.bare):
            return Decimal(found[1]) * known.get(unit, 1)
        if not unit:
            raise ValueError(
                f"{shown(value)} has no unit: {self.name} is written as {self.example} "
                f"(units: {', '.join(self.units)})"
            )
        raise ValueError(
            f"{shown(value)}: {unit} is not a unit of {self.name}; units are "
            f"{listed(filter(None, self.units))}{meant(unit, self.units) or meant(unit, known)}"
        )

    def whole(self, value: object) -> int:
        """Return the quantity in a text as a whole number of its smallest unit, else ValueError."""
        number = self.parse(value)
        if number != int(number):
            raise ValueError(
                f"{shown(value)} is not a multiple of the smallest unit, 1{next(iter(self.units))}"
            )
        return int(number)

    def text(self, number: int) -> str:
        """Return a number of the smallest unit as text in the largest unit that divides it."""
        factor, unit = max(
            (factor, unit) for unit, factor in self.units.items() if number % factor == 0
        )
        return f"{number // factor}{unit}" if number else f"0{next(iter(self.units))}"


def _text(value: object) -> str:
    """Return a text unchanged, a number as text, and "" for any other value."""
    is_one = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_one else ""


_UP_TO_TERA = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def _spelled(*words: str) -> dict[str, int]:
    """Return the factors of unit names with each decimal prefix: `kbit` is 10**3."""
    return {f"{prefix}{word}": size for word in words for prefix, size in _UP_TO_TERA.items()}


_BIT = _spelled("bit")
_FPS = {"fps": 1, "kfps": 10**3, "Mfps": 10**6}
_MORE_FPS = _spelled("fps", "pps")
_BITS = _spelled("bit", "bit/s", "b", "b/s", "bps")
_BARE_PREFIXES = {prefix: size for prefix, size in _UP_TO_TERA.items() if prefix}

DURATION = Quantity(
    "a time",
    "2s or 500ms",
    {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9},
    spellings={"\u00b5s": 10**3},
)
SIZE = Quantity(
    "a size",
    "64KiB or 1500B",
    {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30},
    bare=True,
    spellings={"k": 10**3, "Ki": 2**10, "M": 10**6, "Mi": 2**20, "G": 10**9, "Gi": 2**30},
)
RATE = Quantity("a rate", "100Mbit or 1Gbit", _BIT, spellings=_BITS | _BARE_PREFIXES)
_LINK_RATE = replace(RATE, example="10M, 2.5Gbit or unlimited", bare=True)
COUNT = Quantity(
    "a number",
    "1000, 10k or 10M",
    {"": 1, "k": 10**3, "M": 10**6},
    bare=True,
    spellings={"K": 10**3, "G": 10**9},
)
PERCENT = Quantity("a percentage", "95%", {"%": 1})
_FRAME_RATE = Quantity("a frame rate", "10kfps", _FPS, spellings=_MORE_FPS)


_DURATION_MOST_H = 720


def duration_ns(value: object) -> int:
    """Parse a duration such as `500ms` to nanoseconds."""
    number = DURATION.whole(value)
    if number > _DURATION_MOST_H * DURATION.units["h"]:
        raise ValueError(f"{shown(value)} is too long: at most {_DURATION_MOST_H}h (30 days)")
    return number


size_bytes = SIZE.whole  # parser of a size such as `64KiB` to bytes; a bare number is bytes


def rate_bps(value: object) -> int:
    """Parse a rate such as `100Mbit` to bit/s."""
    number = RATE.whole(value)
    if number == 0:
        raise ValueError("a rate above 0 is needed")
    return number


UNSHAPED = 0
"""Rate of a link without a limit."""

_LINK_RATE_LEAST_BPS = 1000


def link_rate_bps(value: object) -> int:
    """Parse a link's rate in a topology to bit/s; `unlimited` becomes UNSHAPED."""
    if value == "unlimited":
        return UNSHAPED
    number = _LINK_RATE.whole(value)
    if number == 0:
        raise ValueError("a rate above 0 is needed (a link without a limit is `unlimited`)")
    if number < _LINK_RATE_LEAST_BPS:
        raise ValueError(f"{shown(value)} is less than the smallest rate, 1kbit")
    return number


def link_rate_text(bps: int) -> str:
    """Return a link's rate as exact text, as in topology files: `10M` for 10,000,000."""
    if bps == UNSHAPED:
        return "unlimited"
    factor, prefix = max(
        (size, prefix) for prefix, size in _UP_TO_TERA.items() if size <= bps and prefix != "T"
    )
    return f"{(Decimal(bps) / factor).normalize():f}{prefix}"


count = COUNT.whole  # parser of a count such as `10M`


def percentage(value: object) -> Decimal | None:
    """Parse a percentage such as `95%` to 95; None for other values."""
    try:
        return PERCENT.parse(value)
    except ValueError:
        return None


def load(value: object) -> Load:
    """Parse the load of a source port: `95%` of line rate, `100Mbit` at layer 1, or `10kfps`."""
    if isinstance(value, Load):
        return value
    found = _NUMBER.fullmatch(_text(value).strip())
    unit = found[2] if found else ""
    if found is None or unit not in _LOAD_UNITS:
        raise ValueError(
            f"found {shown(value)}, but a load is needed: percent of line rate (95%), bit/s at "
            f"layer 1 (100Mbit) or frames/s (10kfps){meant(unit, _LOAD_WORDS) if unit else ''}"
        )
    if float(found[1]) == 0:
        raise ValueError("a load above 0 is needed")
    if unit in PERCENT.units:
        percent = float(PERCENT.parse(value))
        if percent > _PERCENT_MOST:
            raise ValueError(f"{shown(value)} is above line rate: a load is at most 100%")
        return Load(percent=percent)
    if unit in _MORE_FPS:
        return Load(fps=float(_FRAME_RATE.parse(value)))
    return Load(bps=float(RATE.parse(value)))


_LOAD_WORDS = {**PERCENT.units, **_BIT, **_FPS}
_LOAD_UNITS = {*PERCENT.units, *_MORE_FPS, *_BITS}


_PERCENT_MOST = 65_535 * 100  # limit of a receiver's load, which up to 65,535 senders divide


def load_text(value: Load) -> str:
    """Return a load as text that the function `load` parses."""
    if value.percent is not None:
        return f"{Decimal(repr(value.percent)):f}".removesuffix(".0") + "%"
    number, units = (value.fps or 0.0, _FPS) if value.bps is None else (value.bps, _BIT)
    exact = Decimal(repr(number))
    if exact == int(exact):
        return Quantity("", "", units).text(int(exact))
    return f"{exact:f}{next(iter(units))}"
