# SPDX-License-Identifier: BSD-3-Clause
"""Quantities: units are read exactly, wrong ones refused, and texts read back as the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from switchbench.base import quantities
from switchbench.base.model import Load


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (quantities.duration_ns, "2s", 2_000_000_000),
        (quantities.duration_ns, "500ms", 500_000_000),
        (quantities.duration_ns, "1.5 s", 1_500_000_000),
        (quantities.duration_ns, "10min", 600_000_000_000),
        (quantities.size_bytes, "64KiB", 65536),
        (quantities.size_bytes, "64kB", 64000),
        (quantities.size_bytes, 1518, 1518),
        (quantities.rate_bps, "100Mbit", 100_000_000),
        (quantities.rate_bps, "2.5Gbit/s", 2_500_000_000),
        (quantities.count, "10M", 10_000_000),
        (quantities.count, 7, 7),
    ],
)
def test_units(parse: Callable[[object], int], text: Any, value: int) -> None:
    """A quantity is the exact whole number of its smallest unit."""
    assert parse(text) == value


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("95%", Load(percent=95.0)),
        ("99.98%", Load(percent=99.98)),
        ("100Mbit", Load(bps=1e8)),
        ("1Gbit/s", Load(bps=1e9)),
        ("10kfps", Load(fps=1e4)),
        ("7720 fps", Load(fps=7720.0)),
    ],
)
def test_loads(text: str, load: Load) -> None:
    """A load is percent, bit/s or frames/s."""
    assert quantities.load(text) == load
    assert quantities.load(quantities.load_text(load)) == load


@pytest.mark.parametrize(
    ("parse", "value", "sentence"),
    [
        (quantities.duration_ns, 2, "2 has no unit: a time is written as 2s or 500ms"),
        (quantities.duration_ns, "2KiB", "KiB is no unit of a time"),
        (quantities.duration_ns, "2S", 'S is no unit of a time; .*did you mean "s"'),
        (quantities.duration_ns, "fast", 'found "fast", but a time is needed'),
        (quantities.duration_ns, "-1s", 'found "-1s", but a time is needed'),
        (quantities.duration_ns, True, "found true"),
        (quantities.duration_ns, "0.1ns", "no whole number"),
        (quantities.size_bytes, "64KB", "1000 to some and 1024 to others: write 64kB or 64KiB"),
        (quantities.size_bytes, "64K", "1000 to some and 1024 to others: write 64kB or 64KiB"),
        (quantities.size_bytes, "64kbit", "in bits, but a size is in bytes: write 8kB"),
        (quantities.size_bytes, "1bit", "in bits, but a size is in bytes: write 0.125B"),
        (quantities.rate_bps, 100, "100 has no unit: a rate is written as 100Mbit"),
        (quantities.rate_bps, "100MB/s", "in bytes, but a rate is in bits: write 800Mbit$"),
        (quantities.rate_bps, "1.5GiB/s", "write 12884901888bit$"),
        (quantities.rate_bps, "100mbit", 'mbit is no unit of a rate; .*did you mean "Mbit"'),
        (quantities.STREAMING.parse, "720Gbit/s", "in bits, but .* in bytes: write 90GB/s$"),
        (quantities.rate_bps, "0bit", "carries nothing"),
        (quantities.load, 95, "found 95, but a load is needed"),
        (quantities.load, "10M", "a load of bits or of frames\\? write 10Mbit or 10Mfps"),
        (quantities.load, "100MB/s", "in bytes, but a rate is in bits: write 800Mbit$"),
        (quantities.load, "100mbit", 'did you mean "Mbit"'),
        (quantities.load, "6553501%", "above line rate"),
        (quantities.load, "0%", "sends nothing"),
        (quantities.count, "10s", "s is no unit of a number"),
    ],
)
def test_refused(parse: Callable[[object], Any], value: Any, sentence: str) -> None:
    """What is no such quantity is refused with what is."""
    with pytest.raises(ValueError, match=sentence):
        parse(value)


@pytest.mark.parametrize("number", [0, 1, 999, 1000, 1024, 65536, 1_500_000, 10**9, 90 * 10**9])
def test_texts_read_back(number: int) -> None:
    """Formatters and parsers are each other's inverse."""
    assert quantities.duration_ns(quantities.DURATION.text(number)) == number
    assert quantities.size_bytes(quantities.SIZE.text(number)) == number
