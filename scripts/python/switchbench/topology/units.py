# SPDX-License-Identifier: BSD-3-Clause
"""Rates and sizes as topology files write them."""

from __future__ import annotations

import re

UNSHAPED = 0
"""The rate of a link that nothing slows down."""

_RATE = re.compile(r"(\d+(?:\.\d+)?) ?(k|M|G|T)?(?:bit(?:/s)?)?")
_SIZE = re.compile(r"(\d+) ?(k|M|Ki|Mi|Gi)?B?")
_UNITS = {
    None: 1,
    "k": 1000,
    "M": 1000**2,
    "G": 1000**3,
    "T": 1000**4,
    "Ki": 1024,
    "Mi": 1024**2,
    "Gi": 1024**3,
}
_MIN_RATE_BPS = 1000


def parse_rate_bps(value: object) -> int:
    """Bits a second at layer 1 from `10M`, `2.5Gbit`, a number, or `unlimited` (`UNSHAPED`)."""
    if value == "unlimited":
        return UNSHAPED
    found = _RATE.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    if found is None or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a rate such as 10M or unlimited")
    rate_bps = round(float(found[1]) * _UNITS[found[2]])
    if rate_bps == 0:
        raise ValueError("a rate of zero carries nothing (a link without a limit is `unlimited`)")
    if rate_bps < _MIN_RATE_BPS:
        raise ValueError(f"{value!r} is less than the smallest rate, 1k")
    return rate_bps


def parse_bytes(value: object) -> int:
    """Bytes from `128KiB`, `1MB` or a number."""
    found = _SIZE.fullmatch(str(value)) if isinstance(value, str | int) else None
    if found is None or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a size such as 128KiB")
    return int(found[1]) * _UNITS[found[2]]


def human_rate(bps: float) -> str:
    """`9.6 Gbit/s`: four digits that count, with the unit that leaves the fewest zeros."""
    for unit in ("T", "G", "M", "k"):
        if bps >= _UNITS[unit]:
            return f"{bps / _UNITS[unit]:.4g} {unit}bit/s"
    return f"{bps:.4g} bit/s"


def format_rate(rate_bps: int) -> str:
    """`10M` for 10,000,000: as topology files write rates."""
    if rate_bps == UNSHAPED:
        return "unlimited rate"
    for unit, factor in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if rate_bps >= factor:
            return f"{rate_bps / factor:g}{unit}"
    return str(rate_bps)
