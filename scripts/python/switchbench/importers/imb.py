# SPDX-License-Identifier: BSD-3-Clause
"""What IMB-MPI1 prints: a table for each benchmark and number of processes.

The factors of its Mbytes/sec: Intel MPI Benchmarks User Guide, "Benchmark methodology"; PingPong,
PingPing 1, Sendrecv 2, Exchange 4. A megabyte is 2^20 bytes up to 4.1, 10^6 in 2019: a table says
by its times which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .figure import (
    MEGA,
    ComparableFigure,
    ImportedFigure,
    Kind,
    PrintedTable,
    Read,
    Source,
    number,
    numbered,
    of_version,
)
from .measures import collective

TOOL = "imb"
_NEWEST = (2021,)
_LAST_MEBI = (4, 1)  # of which it is known; asked where no time is beside a rate
_MEBI = float(1 << 20)
_SURE = 0.01  # a rate and a time agree; the two megabytes differ by 0.049
_TITLE = re.compile(
    r"(?:Intel ?\(R\) MPI Benchmarks?|PALLAS MPI Benchmark)(?: Suite)?\s+V?(\d[\d.]*)"
    r"(?: Update (\d+))?, *([\w-]+) part"
)
_BENCHMARK = re.compile(r"# Benchmarking (\S+)")
_PROCESSES = re.compile(r"# \(? ?#processes = (\d+)")
_GROUPS = re.compile(r"(\d+) groups of (\d+) processes")
_COLUMNS = re.compile(r"#?(?:bytes|repetitions)|t(?:_\w+)?\[usec\]|Mbytes/sec|Msg/sec|defects")
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
_DEFINITIONS = {
    "t[usec]": "time of a message: half the round trip (PingPong), or one way (PingPing)",
    "t_min[usec]": "time of a call, mean over repetitions, minimum over ranks",
    "t_max[usec]": "time of a call, mean over repetitions, maximum over ranks",
    "t_avg[usec]": "time of a call, mean over repetitions, mean over ranks",
    "Mbytes/sec": "bytes by IMB's count / the longest time",
    "Msg/sec": "messages per second",
}


def _knows(text: str) -> bool:
    return _TITLE.search(text) is not None or bool(_BENCHMARK.search(text) and "#bytes" in text)


def _read(source: Source) -> Read:
    version = _version(source)
    rows = list(_rows(source))
    mega = _megabyte(rows, version)
    figures = [one for row in rows for one in row.figures(version, mega)]
    if _END not in source.text:
        raise source.refuse(
            "it is cut: IMB's last line (All processes entering MPI_Finalize) is missing"
        )
    if not figures:
        raise source.refuse("there is no table with results in it")
    return Read(figures, [])


def _version(source: Source) -> str | None:
    title = _TITLE.search(source.text)
    if title is None:
        return None
    of_version(source, "IMB", title[1], _NEWEST)
    if title[3] != "MPI-1":
        raise source.refuse(f"it is of IMB's part {title[3]}: only MPI-1 is read (IMB-MPI1)")
    return title[1] + (f" Update {title[2]}" if title[2] else "")


@dataclass(frozen=True)
class _Row:
    benchmark: str
    ranks: int
    size: int
    values: Mapping[str, float]

    @property
    def bytes_per_s(self) -> float | None:
        """By IMB's count, from its times or messages; None: there are none."""
        if "Msg/sec" in self.values:
            return self.size * self.values["Msg/sec"]
        time_us = self.values.get("t[usec]") or self.values.get("t_max[usec]")
        _, count = _RATES.get(self.benchmark.lower(), ("", 0))
        return count * self.size / time_us * 1e6 if time_us else None

    def figures(self, version: str | None, mega: float) -> Iterator[ImportedFigure]:
        """One a column."""
        for name, value in self.values.items():
            megabytes = "MiB/s" if mega == _MEBI else "MB/s"
            unit = {"Mbytes/sec": megabytes, "Msg/sec": "1/s"}.get(name, "us")
            yield ImportedFigure(
                TOOL, version, self.benchmark, self.ranks, self.size, name, value, unit,
                _DEFINITIONS.get(name, name), self._ours(name, value, mega),
            )  # fmt: skip

    def _ours(self, name: str, value: float, mega: float) -> ComparableFigure | None:
        function = self.benchmark.lower()
        if name == "Mbytes/sec":
            return rate_in_ours(function, self.ranks, self.size, value * mega)
        wanted = "t[usec]" if function == "pingpong" else "t_avg[usec]"
        return time_in_ours(function, self.ranks, self.size, value) if name == wanted else None


def rate_in_ours(
    function: str, ranks: int, size: int, bytes_per_s: float
) -> ComparableFigure | None:
    """A function's bandwidth by IMB's count, in lower case its name; None: nothing of ours."""
    if function not in _RATES or bytes_per_s <= 0:
        return None
    measure, count = _RATES[function]
    share = "as it is" if count == 1 else f"IMB counts {count} messages: one of them"
    return ComparableFigure(
        measure, ranks, size, bytes_per_s * 8 / MEGA / count, f"{share}, in Mbit/s"
    )


def time_in_ours(function: str, ranks: int, size: int, time_us: float) -> ComparableFigure | None:
    """A function's t_avg, of PingPong its only t."""
    measure = "pingpong_time" if function == "pingpong" else collective(function)
    return None if measure is None else ComparableFigure(measure, ranks, size, time_us, "as it is")


def _megabyte(rows: Sequence[_Row], version: str | None) -> float:
    """Bytes of a megabyte: as the largest message with a time and a rate has it, else as of the
    version."""
    for row in sorted(rows, key=lambda row: -row.size):
        rate, bytes_per_s = row.values.get("Mbytes/sec"), row.bytes_per_s
        if not rate or not bytes_per_s:
            continue
        for mega in (_MEBI, MEGA):
            if abs(bytes_per_s / (rate * mega) - 1) < _SURE:
                return mega
    numbers = tuple(int(part) for part in re.findall(r"\d+", version or "")[:2])
    return _MEBI if numbers and numbers <= _LAST_MEBI else MEGA


def _rows(source: Source) -> Iterator[_Row]:
    table: PrintedTable | None = None
    for line, text in numbered(source.text):
        if found := _BENCHMARK.match(text.strip()):
            table = PrintedTable(found[1])
        elif table is not None and (several := _GROUPS.search(text)):
            table.ranks = int(several[1]) * int(several[2])
        elif table is not None and (count := _PROCESSES.match(text.strip())):
            table.ranks = int(count[1])
        elif table is not None and ("[usec]" in text or "Mbytes/sec" in text):
            table.columns = [name.lstrip("#") for name in _COLUMNS.findall(text)]
        elif table is not None and table.columns and re.match(r"\s*\d", text):
            row = _row(source, table, line, text.split())
            if row is not None:
                yield row


def _row(source: Source, table: PrintedTable, line: int, words: list[str]) -> _Row | None:
    """None for a size that IMB left out, which it says in words."""
    values = [number(word) for word in words]
    if None in values[:2]:
        return None
    if len(words) != len(table.columns) or None in values:
        raise source.refuse(table.misfit(line, words))
    if not table.ranks:
        raise source.refuse(f"line {line}: {table.benchmark} does not say on how many processes")
    named = {
        name: value for name, value in zip(table.columns, values, strict=True) if value is not None
    }
    size = int(named.pop("bytes", 0.0))
    for unused in ("repetitions", "defects"):
        named.pop(unused, None)
    return _Row(table.benchmark, table.ranks, size, named)


KIND = Kind(TOOL, "IMB-MPI1's output", _knows, _read)
