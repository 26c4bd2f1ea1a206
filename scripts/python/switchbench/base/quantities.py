# SPDX-License-Identifier: BSD-3-Clause
"""Quantities with their units: `95%`, `2s`, `64KiB`, `100Mbit`, `10kfps`.

Each parser returns one exact number or raises ValueError with what was found and what is possible;
each formatter writes text that its parser reads back as the same number. Units are decimal but for
KiB, MiB and GiB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from .model import Load
from .words import listed, meant, shown

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z%/]*)")


_DIGITS_MOST = 40


@dataclass(frozen=True)
class Quantity:
    """A kind of quantity: its name in messages, an example, and its units."""

    name: str
    example: str
    units: dict[str, int]
    bare: bool = False  # whether a number without unit is one

    def parse(self, value: object) -> Decimal:
        """The number in the smallest unit."""
        text = value if isinstance(value, str) else _plain(value)
        found = _NUMBER.fullmatch(text.strip()) if text is not None else None
        if found is None:
            raise ValueError(f"found {shown(value)}, but {self.name} is needed, as {self.example}")
        if len(found[1]) > _DIGITS_MOST:
            raise ValueError(f"{shown(value)} is a number of {len(found[1])} digits")
        number, unit = Decimal(found[1]), found[2]
        if not unit and not self.bare:
            raise ValueError(
                f"{shown(value)} has no unit: {self.name} is written as {self.example} "
                f"(units: {', '.join(self.units)})"
            )
        if unit and unit not in self.units:
            raise ValueError(
                f"{shown(value)}: {unit} is no unit of {self.name}; units are "
                f"{listed(self.units)}{meant(unit, self.units)}"
            )
        return number * self.units.get(unit, 1)

    def whole(self, value: object) -> int:
        """The number, which has to be whole in the smallest unit."""
        number = self.parse(value)
        if number != int(number):
            raise ValueError(f"{shown(value)} is no whole number of the smallest unit")
        return int(number)

    def text(self, number: int) -> str:
        """The shortest exact writing of a whole number."""
        factor, unit = max(
            (factor, unit) for unit, factor in self.units.items() if number % factor == 0
        )
        return f"{number // factor}{unit}" if number else f"0{next(iter(self.units))}"


def _plain(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(value)


def _with_second(units: dict[str, int]) -> dict[str, int]:
    return units | {f"{unit}/s": factor for unit, factor in units.items()}


_BIT = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}
_FPS = {"fps": 1, "kfps": 10**3, "Mfps": 10**6}

DURATION = Quantity(
    "a time",
    "2s or 500ms",
    {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9},
)
SIZE = Quantity(
    "a size",
    "64KiB or 1500B",
    {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30},
    bare=True,
)
RATE = Quantity("a rate", "100Mbit or 1Gbit", _with_second(_BIT))
COUNT = Quantity("a number", "1000, 10k or 10M", {"": 1, "k": 10**3, "M": 10**6}, bare=True)
_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
FLOPS = Quantity(
    "a speed of computing",
    "1.2TFlop/s",
    {f"{prefix}Flop/s": factor for prefix, factor in _PREFIXES.items()},
)
STREAMING = Quantity(
    "a bandwidth", "90GB/s", {f"{prefix}B/s": factor for prefix, factor in _PREFIXES.items()}
)
_FRAME_RATE = Quantity("a frame rate", "10kfps", _FPS)
_PERCENT = Quantity("a percentage", "95%", {"%": 1})
_LOAD_UNITS = {"%": 1} | _BIT | _FPS


def duration_ns(value: object) -> int:
    """`500ms` in nanoseconds."""
    return DURATION.whole(value)


def size_bytes(value: object) -> int:
    """`64KiB` in bytes; a bare number is bytes."""
    return SIZE.whole(value)


def rate_bps(value: object) -> int:
    """`100Mbit` in bit/s."""
    number = RATE.whole(value)
    if number == 0:
        raise ValueError("a rate of 0 carries nothing")
    return number


def per_second(value: object) -> float:
    """`1000/s` as a number; 0 needs no unit."""
    text = value if isinstance(value, str) else _plain(value)
    number, slash, second = (text or "").replace(" ", "").partition("/")
    if number == "0" or (slash and second == "s"):
        return float(COUNT.parse(number))
    raise ValueError(f"found {shown(value)}, but a rate by second is needed, as 1000/s, or 0")


def count(value: object) -> int:
    """`10M` as a number."""
    return COUNT.whole(value)


def load(value: object) -> Load:
    """`95%` of line rate, `100Mbit` (layer 1) or `10kfps` of a source port."""
    if isinstance(value, Load):
        return value
    text = _plain(value) or value
    found = _NUMBER.fullmatch(text.strip()) if isinstance(text, str) else None
    unit = found[2].removesuffix("/s") if found else ""
    if found is None or unit not in _LOAD_UNITS:
        raise ValueError(
            f"found {shown(value)}, but a load is needed: percent of line rate (95%), bit/s at "
            f"layer 1 (100Mbit) or frames/s (10kfps){meant(unit, _LOAD_UNITS) if unit else ''}"
        )
    if float(found[1]) == 0:
        raise ValueError("a load of 0 sends nothing")
    if unit == "%":
        return _percent_load(value)
    if unit in _FPS:
        return Load(fps=float(_FRAME_RATE.parse(text)))
    return Load(bps=float(RATE.parse(text)))


def _percent_load(value: object) -> Load:
    percent = float(_PERCENT.parse(value))
    if percent > 100:
        raise ValueError(f"{shown(value)} is above line rate: at most 100%")
    return Load(percent=percent)


def load_text(value: Load) -> str:
    """The load as `load` reads it."""
    if value.percent is not None:
        return f"{Decimal(repr(value.percent)):f}".removesuffix(".0") + "%"
    if value.bps is not None:
        return _rate_text(value.bps, _BIT)
    return _rate_text(value.fps or 0.0, _FPS)


def _rate_text(number: float, units: dict[str, int]) -> str:
    exact = Decimal(repr(number))
    if exact == int(exact):
        return Quantity("", "", units).text(int(exact))
    return f"{exact:f}{next(iter(units))}"
