# SPDX-License-Identifier: BSD-3-Clause
"""What iperf3 writes with --json, as client or server: one JSON value a test, one after the other.

A rate is payload that the receiver got; a server that only received knows nothing of what was sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .figure import MEGA, ComparableFigure, ImportedFigure, Kind, Read, Source, of_version

TOOL = "iperf3"
_NEWEST = (3,)
_RANKS = 2


def _knows(text: str) -> bool:
    return text.lstrip().startswith("{") and ('"iperf ' in text or '"intervals"' in text)


def _read(source: Source) -> Read:
    figures: list[ImportedFigure] = []
    for test in _tests(source):
        try:
            figures += _figures(source, test)
        except (AttributeError, TypeError, ValueError) as error:
            raise source.refuse(f"it is damaged: {error}") from error
    return Read(figures, [])


def _tests(source: Source) -> Iterator[Mapping[str, Any]]:
    decoder, place, text = json.JSONDecoder(parse_constant=_no_number), 0, source.text.strip()
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise source.refuse(f"it is cut or damaged: {error}") from error
        if not isinstance(value, dict):
            raise source.refuse("it is no result of iperf3: a JSON object is expected")
        yield value
        place += len(text[place:]) - len(text[place:].lstrip())


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no figure")


def _figures(source: Source, test: Mapping[str, Any]) -> Iterator[ImportedFigure]:
    if "error" in test:
        raise source.refuse(f"iperf3 failed: {test['error']}")
    start, end = test.get("start") or {}, test.get("end") or {}
    version = str(start.get("version", "")).removeprefix("iperf ") or None
    if version is not None:
        of_version(source, "iperf3", version, _NEWEST)
    asked = start.get("test_start") or {}
    sums = list(_sums(end))
    if not asked or not sums:
        raise source.refuse(
            "iperf3 measured nothing: there is no sum of what was received in `end`"
        )
    benchmark = f"{asked.get('protocol', 'TCP')}, {_streams(asked)}"
    for name, value in sums:
        rate = float(value["bits_per_second"])
        yield ImportedFigure(
            TOOL, version, benchmark, _RANKS, _size(asked), f"{name}.bits_per_second",
            rate, "bit/s", f"payload received, {_streams(asked)} together",
            _ours(asked, end, rate),
        )  # fmt: skip
    for name, unit, figure in _more(end):
        yield ImportedFigure(
            TOOL, version, benchmark, _RANKS, _size(asked), name, figure, unit,
            "as iperf3 says",
        )  # fmt: skip


def _ours(asked: Mapping[str, Any], end: Mapping[str, Any], rate: float) -> ComparableFigure | None:
    """None for UDP, whose rate is what was asked for."""
    if asked.get("protocol", "TCP") != "TCP":
        return None
    both = "sum_received_bidir_reverse" in end
    measure = "both_ways_rate" if both else "one_way_rate"
    return ComparableFigure(
        measure, _RANKS, None, rate / MEGA, f"in Mbit/s; {_streams(asked)} together"
    )


def _sums(end: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in ("sum_received", "sum_received_bidir_reverse"):
        value = end.get(name)
        if isinstance(value, dict) and value.get("bits_per_second"):
            yield name, value


def _more(end: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Each connection's rate, where there are several; retransmissions; loss and jitter of UDP."""
    streams = end.get("streams") or []
    for number, stream in enumerate(streams if len(streams) > 1 else ()):
        received = (stream.get("receiver") or {}).get("bits_per_second")
        if received:
            yield f"streams.{number}.receiver.bits_per_second", "bit/s", float(received)
    for where, name, unit in (
        ("sum_sent", "retransmits", ""),
        ("sum", "lost_percent", "%"),
        ("sum", "jitter_ms", "ms"),
    ):
        value = (end.get(where) or {}).get(name)
        if value is not None:
            yield f"{where}.{name}", unit, float(value)


def _size(asked: Mapping[str, Any]) -> int | None:
    return int(asked["blksize"]) if "blksize" in asked else None


def _streams(asked: Mapping[str, Any]) -> str:
    count = int(asked.get("num_streams", 1))
    return "1 connection" if count == 1 else f"{count} connections"


KIND = Kind(TOOL, "iperf3's output with --json", _knows, _read)
