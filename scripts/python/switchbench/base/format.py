# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as text for users: few digits, a suitable unit, words for unknown values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .model import SCHEDULE

UNKNOWN = "-"
ARROW = "→"

_BARS = "▁▂▃▄▅▆▇█"
_BARS_ASCII = "01234567"


@dataclass(frozen=True)
class Unit:
    """Rate unit for all figures of a table column, which are stored in Mbit/s."""

    name: str
    scale: float  # number of these units in one Mbit/s

    def show(self, mbps: float | None) -> str:
        """Return a rate, given in Mbit/s, as text in this unit, with four significant digits."""
        return digits(None if mbps is None else mbps * self.scale)


_UNITS = (Unit("kbit/s", 1000.0), Unit("Mbit/s", 1.0), Unit("Gbit/s", 0.001))


def unit_for(mbps: Iterable[float | None]) -> Unit:
    """Return the rate unit in which the largest rate has one to four digits before the point."""
    largest = max((value for value in mbps if value is not None), default=1.0)
    if largest < 1.0:
        return _UNITS[0]
    return _UNITS[1] if largest < 10_000 else _UNITS[2]


def digits(value: float | None) -> str:
    """Return a number as text with four significant digits, without an exponent."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    if abs(value) < 0.01:
        text = f"{value:.6f}"
        return text[:-3] + text[-3:].rstrip("0")
    places = sum(abs(value) < bound for bound in (10, 100, 1000))
    return f"{value:,.{places}f}"


def scientific(value: float | None) -> str:
    """Return a number as text with four significant digits, with an exponent if large or small."""
    if value is None or value == 0 or 1 <= abs(value) < 1e6:
        return digits(value)
    return f"{value:.4f}" if 0.1 <= abs(value) < 1 else f"{value:.3e}"


def signed(value: float) -> str:
    """Return a number as text with its sign; values below 0.001 keep four significant digits."""
    if abs(value) < 1e-6:
        return "+0"
    shown = digits(value) if abs(value) >= 1e-3 else scientific(value)
    return shown if value < 0 else f"+{shown}"


def percent(value: float | None) -> str:
    """Return a percentage as text with two decimals."""
    return UNKNOWN if value is None else f"{value:.2f}"


def count(value: int | None) -> str:
    """Return a count as text with thousands separators."""
    return UNKNOWN if value is None else f"{value:,}"


def of(number: int, noun: str) -> str:
    """Return a number with its noun: `1 phase`, `2 phases`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def seconds(value: float | None) -> str:
    """Return a duration as `9.5 s`, `2:05` (minutes and seconds) or `1 h 05 min`."""
    if value is None:
        return UNKNOWN
    if value < 100:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes}:{rest:02d}"


def human(seconds: float) -> str:
    """Return a duration as `42 s`, `3 min 20 s` or `2 h 05 min`."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(entry: Mapping[str, Any]) -> str:
    """Return the frame or message sizes of a results entry as text, such as `1518 B frames`."""
    sizes = entry["size"] if isinstance(entry["size"], list) else [entry["size"]]
    if entry.get("traffic") == SCHEDULE and sizes == [0]:
        return "messages by steps"
    if entry["size_unit"] == "frame":
        kind = "IMIX of " if len(sizes) > 1 else ""
        return kind + "/".join(str(value) for value in dict.fromkeys(sizes)) + " B frames"
    return "/".join(binary(value) for value in sizes) + " messages"


def binary(value: int) -> str:
    """Return a number of bytes as text in the largest binary unit that divides it: `64 KiB`."""
    for power, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value and value % (1 << power) == 0:
            return f"{value >> power} {name}"
    return f"{value} B"


def size_words(size: float | None) -> str:
    """Return a number of bytes as text in a binary unit, with four significant digits."""
    if size is None:
        return UNKNOWN
    for unit, bytes_of in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_of:
            return f"{size / bytes_of:.4g} {unit}"
    return f"{size:.0f} B"


def decimal_size(value: int) -> str:
    """Return a number of bytes as text in a decimal unit, with four significant digits."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= factor:
            return f"{digits(value / factor)} {unit}"
    return f"{value} B"


def bit_rate(bps: float) -> str:
    """Return a bit rate with four significant digits and a suitable prefix: `9.6 Gbit/s`."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if bps >= factor:
            return f"{bps / factor:.4g} {prefix}bit/s"
    return f"{bps:.4g} bit/s"


# Pattern parameters with these values are not printed.
_USUAL = {
    "sync": "barrier",
    "natural": True,
    "directions": "both",
    "random_generator": "uniform",
    "batch": 1,
}


def pattern(entry: Mapping[str, Any]) -> str:
    """Return a pattern's name and parameters as text: `pairs neighbours`, `chain forward`.

    For a suite's subtest, the subtest's name replaces the pattern's.
    """
    words = [] if "subtest" in entry["parameters"] else [str(entry["pattern"])]
    for name, value in entry["parameters"].items():
        if _USUAL.get(name) == value:
            continue
        if value is True:
            words.append(name)
        elif isinstance(value, str):
            words.append(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            words.append(f"{name} {value}")
    return " ".join(words)


def flow(ends: Mapping[str, object] | None) -> str:
    """Return a flow as text, source port → destination port; `-` for None."""
    return UNKNOWN if ends is None else f"{ends['src']} {ARROW} {ends['dst']}"


def spark(
    values: Sequence[float | None], ascii_only: bool, span: tuple[float, float] | None = None
) -> str:
    """Return a bar chart of one line (sparkline), one character per value; a space for None.

    The bars scale from the min to the max of `span`, or of the values.
    """
    bars = _BARS_ASCII if ascii_only else _BARS
    known = [value for value in values if value is not None]
    low, high = span or (min(known, default=0.0), max(known, default=0.0))
    scale = len(bars) / (high - low) if high > low else 0.0

    def bar(value: float) -> str:
        place = int((value - low) * scale - 1e-9) if scale else (len(bars) - 1) // 2
        return bars[max(0, min(len(bars) - 1, place))]

    return "".join(" " if value is None else bar(value) for value in values)


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders the numbers in names by value: p2 before p10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
