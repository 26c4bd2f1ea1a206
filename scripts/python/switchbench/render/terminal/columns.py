# SPDX-License-Identifier: BSD-3-Clause
"""Columns of the printed result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...base import format
from ...base.format import Unit
from .rows import Entry, PrintedRow, frame_rate


@dataclass(frozen=True)
class PrintedColumn:
    """A column; `drop` says how soon it goes when the terminal is narrow, 0 never."""

    title: str
    show: Callable[[PrintedRow, Unit], str]
    drop: int = 0
    zero: str | None = None  # how to say below that it is 0 in all rows
    unseen: bool = False  # say so below when it is unknown in all rows
    right: bool = True
    option: str | None = None  # shown only when asked for


def _rate(name: str) -> Callable[[PrintedRow, Unit], str]:
    return lambda row, unit: unit.show(row.entry["throughput"][name])


def _share(name: str) -> Callable[[PrintedRow, Unit], str]:
    return lambda row, _unit: format.percent(row.entry["throughput"][name])


def _count(name: str) -> Callable[[PrintedRow, Unit], str]:
    return lambda row, _unit: format.count(row.entry.get(name))


def _load(row: PrintedRow, _unit: Unit) -> str:
    return format.percent(row.entry.get("offered_load"))


def _lowest(row: PrintedRow) -> Entry | None:
    lowest: list[Entry] = row.entry.get("intervals", {}).get("lowest", [])
    return lowest[0] if lowest else None


def _interval_least(row: PrintedRow, unit: Unit) -> str:
    low = _lowest(row)
    return unit.show(None if low is None else low["mbps"])


def _interval_share(row: PrintedRow, _unit: Unit) -> str:
    low = _lowest(row)
    return format.percent(None if low is None else low["percent_of_mean"])


def _interval_when(row: PrintedRow, _unit: Unit) -> str:
    low = _lowest(row)
    return format.UNKNOWN if low is None else f"{low['from_s']:.2f}"


def _digits(name: str) -> Callable[[PrintedRow, Unit], str]:
    return lambda row, _unit: format.digits(row.entry.get(name))


def _time(name: str) -> Callable[[PrintedRow, Unit], str]:
    """Of the round trip, in microseconds; `widest` has none: a plan's phases have their own."""

    def show(row: PrintedRow, _unit: Unit) -> str:
        trip = (row.entry.get("latency") or {}).get("round_trip") or {}
        return format.digits(trip.get(name))

    return show


COLUMNS = (
    PrintedColumn("pattern", lambda row, _: format.pattern(row.entry), right=False),
    PrintedColumn("ranks", lambda row, _: str(row.entry["ranks"]), drop=8),
    PrintedColumn("phase", lambda row, _: row.phase, right=False),
    PrintedColumn("repeat", lambda row, _: str(row.entry["repeat"]), zero=""),
    PrintedColumn("offered\n%", _load, drop=4),
    PrintedColumn("min", _rate("min")),
    PrintedColumn("mean", _rate("mean")),
    PrintedColumn("max", _rate("max"), drop=7),
    PrintedColumn("total", _rate("total"), drop=6),
    PrintedColumn("frames/s", lambda row, _: frame_rate(row.entry), drop=3),
    PrintedColumn("least in\nan interval", _interval_least, option="intervals"),
    PrintedColumn("of its\nmean %", _interval_share, option="intervals"),
    PrintedColumn("at s", _interval_when, option="intervals"),
    PrintedColumn("least\n%", _share("min_percent_of_line")),
    PrintedColumn("lost", _count("lost_frames"), zero="lost in the network"),
    PrintedColumn("in\nhost", _count("host_dropped_frames"), zero="dropped in a host", unseen=True),
    PrintedColumn("out of\norder", _count("reordered_frames"), drop=5, zero="reordered"),
    PrintedColumn("dup.", _count("duplicated_frames"), drop=5, zero="duplicated"),
    PrintedColumn("corr.", _count("corrupted_frames"), zero="corrupted"),
    PrintedColumn("misd.", _count("misdelivered_frames"), zero="misdelivered"),
    PrintedColumn("retr.", _count("retransmitted_segments"), drop=5, zero="retransmitted"),
    PrintedColumn("lost\nmsgs", _count("lost_messages"), zero="lost as messages"),
    PrintedColumn("retr.\npackets", _count("retransmitted_packets"), drop=5, zero="retransmitted"),
    PrintedColumn("rtt p50\nµs", _time("p50"), drop=4),
    PrintedColumn("p99\nµs", _time("p99"), drop=4),
    PrintedColumn("max\nµs", _time("max"), drop=4),
    PrintedColumn("skew\nµs", _digits("start_skew_us"), drop=2),
    PrintedColumn("CPU\ns/GB", _digits("cpu_s_per_gb"), drop=1),
    PrintedColumn("slowest flow", lambda row, _: row.slowest, drop=9, right=False),
)
