# SPDX-License-Identifier: BSD-3-Clause
"""What iperf3 writes with --json, as client or server: one JSON value a test, one after the other.

With --json-stream one an event.

A rate is payload that the receiver got; a server that only received knows nothing of what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..base.source import Pairs, json_decoder, unique
from .figure import MEGA, ComparableFigure, ImportedFigure, Kind, Read, Source, refuse_newer

TOOL = "iperf3"
_NEWEST = (3,)
_RANKS = 2
_REVERSE = "_bidir_reverse"
_OF_EACH = ("sock_bufsize", "sndbuf_actual", "rcvbuf_actual")  # repeated for each connection


def _knows(text: str) -> bool:
    begin = text.lstrip()[:1] == "{"
    return begin and ('"iperf ' in text or '"intervals"' in text or '"event"' in text[:200])


def _read(source: Source) -> Read:
    figures: list[ImportedFigure] = []
    for test in _tests(source):
        try:
            figures += _figures(source, test)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise source.refuse(f"it is damaged: {error}") from error
    return Read(figures, [])


def _both_ways(pairs: Pairs) -> dict[str, Any]:
    """Return an object; the second of two sums is that of the way back.

    As iperf3 3.7 to 3.10 write it (esnet/iperf issue 952) and 3.11 names it.
    """
    seen: set[str] = set()
    named = []
    for key, value in pairs:
        if key not in seen:
            named.append((key, value))
        elif key not in _OF_EACH:
            back = key in ("sum", "sum_sent", "sum_received")
            named.append((key + _REVERSE if back else key, value))
        seen.add(key)
    return unique(named)


def _tests(source: Source) -> Iterator[Mapping[str, Any]]:
    decoder, place, text = json_decoder(_both_ways), 0, source.text.strip()
    events: dict[str, Any] = {}
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise source.refuse(f"it is cut or damaged: {error}") from error
        if not isinstance(value, dict):
            raise source.refuse("it is no result of iperf3: a JSON object is expected")
        if "event" in value:
            events[str(value["event"])] = value.get("data")
        if "event" not in value or value["event"] == "end":
            yield events or value
            events = {}
        place += len(text[place:]) - len(text[place:].lstrip())
    if events:
        yield events


def _figures(source: Source, test: Mapping[str, Any]) -> Iterator[ImportedFigure]:
    if "error" in test:
        raise source.refuse(f"iperf3 failed: {str(test['error'])[:200]}")
    start, end = test.get("start") or {}, test.get("end") or {}
    version = str(start.get("version", "")).removeprefix("iperf ") or None
    if version is not None:
        refuse_newer(source, "iperf3", version, _NEWEST)
    asked = start.get("test_start") or {}
    found = list(_of_end(asked, end)) if asked else []
    if not any(comparable or "received" in name for name, _, _, comparable in found):
        raise source.refuse(
            "iperf3 measured nothing: there is no sum of what was received in `end`"
        )
    size = _whole(asked, "blksize") if "blksize" in asked else None
    benchmark = f"{asked.get('protocol', 'TCP')}, {_streams(asked)}"
    for name, unit, value, comparable in found:
        yield ImportedFigure(
            TOOL, version, benchmark, _RANKS, size, name, float(value), unit, comparable
        )


def _of_end(
    asked: Mapping[str, Any], end: Mapping[str, Any]
) -> Iterator[tuple[str, str, float, ComparableFigure | None]]:
    """Yield name, unit, value and what is comparable, of the sums of a test."""
    tcp = asked.get("protocol", "TCP") == "TCP"  # the rate of UDP is what was asked for
    back = f"sum_received{_REVERSE}"
    for name in ("sum_received", back):
        rate = (end.get(name) or {}).get("bits_per_second")
        if rate:
            measure = "both_ways_rate" if back in end else "one_way_rate"
            ours = ComparableFigure(measure, _RANKS, None, rate / MEGA) if tcp else None
            yield f"{name}.bits_per_second", "bit/s", rate, ours
    for name in ("sum", f"sum{_REVERSE}"):  # up to 3.10 all that UDP has
        sums = end.get(name) or {}
        if "lost_percent" in sums and "sum_received" not in end:
            rate, lost = sums["bits_per_second"], sums["lost_percent"]
            if not 0 <= lost <= 100:
                raise ValueError(f"lost_percent is {lost:g}")
            yield f"{name}.bits_per_second", "bit/s", rate, None
            yield f"{name} received", "bit/s", rate * (1 - lost / 100), None
    streams = end.get("streams") or []
    for number, stream in enumerate(streams if len(streams) > 1 else ()):
        rate = (stream.get("receiver") or {}).get("bits_per_second")
        if rate:
            name = f"streams.{number}.receiver.bits_per_second"
            yield name, "bit/s", rate, None
    for way in ("", _REVERSE):
        for where, name, unit in (
            ("sum_sent", "retransmits", ""),
            ("sum", "lost_percent", "%"),
            ("sum", "jitter_ms", "ms"),
        ):
            value = (end.get(where + way) or {}).get(name)
            if value is not None:
                yield f"{where}{way}.{name}", unit, value, None


def _whole(asked: Mapping[str, Any], key: str) -> int:
    value = asked[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key} is {str(value)[:40]!r}, which is no whole number")
    return value


def _streams(asked: Mapping[str, Any]) -> str:
    count = _whole(asked, "num_streams") if "num_streams" in asked else 1
    return "1 connection" if count == 1 else f"{count} connections"


KIND = Kind(TOOL, "iperf3's output with --json", _knows, _read)
