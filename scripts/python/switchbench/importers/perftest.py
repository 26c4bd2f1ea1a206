# SPDX-License-Identifier: BSD-3-Clause
"""The tables of perftest (ib_write_bw, ib_send_lat and the others). Its MB is 2^20 bytes, its Gb
10^9 bits; a latency of write and send is half the round trip, of read and atomic the whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .figure import (
    MEGA,
    ComparableFigure,
    ImportedFigure,
    Kind,
    PrintedTable,
    Read,
    Source,
    count,
    number,
    numbered,
)

TOOL = "perftest"
_RANKS = 2
_TITLE = re.compile(
    r"^\s*((?:RDMA_Write|RDMA_Read|Send|Atomic\w*|Raw\w*)(?: (?:Post List|Bidirectional))*"
    r" (?:BW|Latency)) Test\s*$"
)
_COLUMN = re.compile(
    r"#bytes|#iterations|BW (?:peak|average|Port\d)\[\w+/sec\]|MsgRate(?: Port\d)?\[Mpps\]"
    r"|t_\w+\[usec\]|[\d.]+% percentile\[usec\]|tps average|CPU_Util\[%\]"
)
_RULE = re.compile(r"^-{20,}\s*$")
_MBPS = {"MB/sec": (1 << 20) * 8 / MEGA, "Gb/sec": 1e3}
_UNITS = {"MB/sec": "MiB/s", "Gb/sec": "Gbit/s", "Mpps": "1/us", "usec": "us", "%": "%"}


def _knows(text: str) -> bool:
    return any(_TITLE.match(line) for line in text.splitlines())


def _read(source: Source) -> Read:
    return Read(list(_figures(source)), [])


def _figures(source: Source) -> Iterator[ImportedFigure]:
    table: PrintedTable | None = None
    for line, text in numbered(source.text):
        if title := _TITLE.match(text):
            _whole(source, table)
            table = PrintedTable(title[1])
        elif table is None or table.ended:
            continue
        elif text.lstrip().startswith("#bytes"):
            table.columns = _COLUMN.findall(text)
        elif table.columns and _RULE.match(text):
            table.ended = True
        elif table.columns and re.match(r"\s*\d", text):
            table.rows += 1
            yield from _row(source, table, line, text.split())
    _whole(source, table)


def _whole(source: Source, table: PrintedTable | None) -> None:
    if table is None:
        return
    if not table.rows:
        raise source.refuse(
            f"perftest's {table.benchmark} has no results: it failed, or this is the end that "
            "shows none"
        )
    if not table.ended:
        raise source.refuse(f"it is cut: the line below the table of {table.benchmark} is missing")


def _row(
    source: Source, table: PrintedTable, line: int, words: list[str]
) -> Iterator[ImportedFigure]:
    values = [number(word) for word in words]
    size = count(words[0])
    if len(words) != len(table.columns) or None in values or size is None:
        raise source.refuse(table.misfit(line, words))
    for name, value in zip(table.columns[2:], values[2:], strict=True):
        printed = name.partition("[")[2].rstrip("]")
        if not value:  # the peak is 0 where it was not looked for
            continue
        yield ImportedFigure(
            TOOL, None, table.benchmark, _RANKS, size, name, value, _UNITS.get(printed, "1/s"),
            _definition(table.benchmark), _ours(table.benchmark, size, name, value),
        )  # fmt: skip


def _definition(benchmark: str) -> str:
    if benchmark.endswith(" BW"):
        ways = "both ways together" if "Bidirectional" in benchmark else "one way"
        return f"payload completed at the sender, {ways}"
    whole = benchmark.startswith(("RDMA_Read", "Atomic"))
    return "the whole round trip" if whole else "half the round trip"


def _ours(benchmark: str, size: int, name: str, value: float) -> ComparableFigure | None:
    if name.startswith("BW average["):
        mbps = value * _MBPS[name.partition("[")[2].rstrip("]")]
        if "Bidirectional" in benchmark:
            how = "perftest adds both ways: half of it, in Mbit/s"
            return ComparableFigure("both_ways_rate", _RANKS, size, mbps / 2, how)
        return ComparableFigure("one_way_rate", _RANKS, size, mbps, "in Mbit/s")
    if name == "t_avg[usec]" and _definition(benchmark) == "half the round trip":
        return ComparableFigure("pingpong_time", _RANKS, size, value, "as it is")
    return None


KIND = Kind(TOOL, "perftest's table", _knows, _read)
