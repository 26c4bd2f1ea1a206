# SPDX-License-Identifier: BSD-3-Clause
"""What IMB-MPI1 prints: a table for each benchmark and number of processes.

The factors of its Mbytes/sec: Intel MPI Benchmarks User Guide, "Benchmark methodology"; PingPong,
PingPing 1, Sendrecv 2, Exchange 4. A megabyte is 2^20 bytes up to 4.1, 10^6 in 2019: a table says
by its times which.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .figure import MEGA, ComparableFigure, ImportedFigure, Kind, Read, Source, refuse_newer
from .measures import collective
from .table import Form, PrintedColumn, PrintedTable, Role, Row, tables, warnings
from .table import figures as made

TOOL = "imb"
_NEWEST = (2021,)
_LAST_MEBI = (4, 1)  # of which it is known; asked where no time is beside a rate
_MEBI = float(1 << 20)
_SURE = 0.01  # a rate and a time agree; the two megabytes differ by 0.049
_VERSION = re.compile(
    r"(?:Intel ?\(R\) MPI Benchmarks?|PALLAS MPI Benchmark)(?: Suite)?\s+V?(\d[\d.]{0,20})"
    r"(?: Update (\d{1,9}))?, *([\w-]{1,40}) part"
)
_RATE = "Mbytes/sec"
_FORM = Form(
    "IMB",
    title=re.compile(r"^\s*# Benchmarking (\S{1,100})"),
    header=re.compile(rf"\[[a-zA-Z]sec\]|\[usec\]|{_RATE}"),
    columns=(
        PrintedColumn("#?bytes", role=Role.SIZE),
        PrintedColumn("#?repetitions", role=Role.OTHER),
        PrintedColumn(r"t(?:_\w+)?\[usec\]", "us"),
        PrintedColumn(_RATE, "MB/s"),
        PrintedColumn("Msg/sec", "1/s"),
        PrintedColumn(r"overlap\[%\]", "%"),
        PrintedColumn("defects", role=Role.CHECK),
    ),
    row=re.compile(r"\s*\d+\s+\d"),  # of a size that IMB left out it says so in words
)
_PROCESSES = re.compile(r"# \(? ?#processes = (\d{1,9})\b")
_GROUPS = re.compile(r"\b(\d{1,9}) groups of (\d{1,9}) processes")
_END = "# All processes entering MPI_Finalize"

# Measure and how often IMB counts a flow's message.
_RATES = {
    "pingpong": ("pingpong_rate", 1),
    "pingping": ("both_ways_rate", 1),
    "sendrecv": ("sendrecv_rate", 2),
    "exchange": ("ring_rate", 4),
    "uniband": ("one_way_rate", 1),
    "biband": ("both_ways_rate", 2),
}
OF_TWO = ("pingpong", "pingping")  # whatever the number of processes


def _read(source: Source) -> Read:
    version = _version(source)
    found = tables(source, _FORM)
    if _END not in source.text:
        raise source.refuse(
            "it is cut: IMB's last line (All processes entering MPI_Finalize) is missing"
        )
    mega = _megabyte(found, version)
    figures = [one for table in found for one in _figures(source, table, version, mega)]
    if not figures:
        raise source.refuse("there is no table with results in it")
    return Read(figures, list(warnings(source, found)))


def _version(source: Source) -> str | None:
    title = _VERSION.search(source.text)
    if title is None:
        return None
    refuse_newer(source, _FORM.tool, title[1], _NEWEST)
    if title[3] != "MPI-1":
        raise source.refuse(f"it is of IMB's part {title[3]}: only MPI-1 is read (IMB-MPI1)")
    return title[1] + (f" Update {title[2]}" if title[2] else "")


def _figures(
    source: Source, table: PrintedTable, version: str | None, mega: float
) -> list[ImportedFigure]:
    benchmark, notes = table.title[1], "\n".join(table.notes)
    function = benchmark.lower()
    processes, groups = _PROCESSES.search(notes), _GROUPS.search(notes)
    ranks = int(processes[1]) if processes else 0
    ranks = int(groups[1]) * int(groups[2]) if groups else ranks
    if table.rows and not ranks:
        raise source.refuse(f"{benchmark} does not say on how many processes")
    if mega == _MEBI:
        table.columns |= {_RATE: PrintedColumn(_RATE, "MiB/s")}

    def ours(row: Row, name: str, value: float) -> ComparableFigure | None:
        if name == _RATE:
            return rate_in_ours(function, ranks, row.size, value * mega)
        wanted = "t[usec]" if function == "pingpong" else "t_avg[usec]"
        return time_in_ours(function, ranks, row.size, value) if name == wanted else None

    like = ImportedFigure(TOOL, version, benchmark, ranks)
    return list(made(table.rows, table.columns, like, ours))


def rate_in_ours(
    function: str, ranks: int, size: int, bytes_per_s: float
) -> ComparableFigure | None:
    """Return a function's bandwidth by IMB's count, in lower case its name.

    None: nothing of ours.
    """
    if function not in _RATES or bytes_per_s <= 0:
        return None
    measure, count = _RATES[function]
    return ComparableFigure(measure, ranks, size, bytes_per_s * 8 / MEGA / count)


def time_in_ours(function: str, ranks: int, size: int, time_us: float) -> ComparableFigure | None:
    """Return a function's t_avg, of PingPong its only t."""
    measure = "pingpong_time" if function == "pingpong" else collective(function)
    return None if measure is None else ComparableFigure(measure, ranks, size, time_us)


def _megabyte(found: Sequence[PrintedTable], version: str | None) -> float:
    """Return the bytes of a megabyte.

    As the largest message with a time and a rate has it, else as of the version.
    """
    rows = [(row.size, row, table) for table in found for row in table.rows]
    for size, row, table in sorted(rows, key=lambda one: -one[0]):
        rate, time_us = row.values.get(_RATE), row.values.get("t[usec]")
        time_us = time_us or row.values.get("t_max[usec]")
        _, times = _RATES.get(table.title[1].lower(), ("", 0))
        messages = row.values.get("Msg/sec") or (times * 1e6 / time_us if time_us else 0.0)
        if rate:
            for mega in (_MEBI, MEGA):
                if abs(size * messages / (rate * mega) - 1) < _SURE:
                    return mega
    numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", version or "")[:2])
    return _MEBI if numbers and numbers <= _LAST_MEBI else MEGA


def _knows(text: str) -> bool:
    return _VERSION.search(text) is not None or ("# Benchmarking " in text and "#bytes" in text)


KIND = Kind(TOOL, "IMB-MPI1's output", _knows, _read)
