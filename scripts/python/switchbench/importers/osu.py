# SPDX-License-Identifier: BSD-3-Clause
"""What the OSU micro-benchmarks print: a title, a line of columns, a row a size. A megabyte is 10^6
bytes. The tests of collectives do not say on how many processes they ran."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .figure import (
    ComparableFigure,
    ImportedFigure,
    Kind,
    PrintedTable,
    Read,
    Source,
    count,
    number,
    numbered,
    of_version,
)
from .measures import collective

TOOL = "osu"
_NEWEST = (7,)
_TITLE = re.compile(
    r"^#\s*OSU (?:MPI|NCCL|UPC\+*|OpenSHMEM)\S* (.+?) (?:Test|Benchmark) v(\d[\w.]*)"
)
_PAIRS = re.compile(r"\[ pairs: (\d+) \]")
_COLUMN = re.compile(r"\S+(?: \S+)*")
_UNIT = re.compile(r"\((us|MB/s)\)|(MB/s)|(Messages/s)")

# The titles' words, and the measure of their first column; the factor to our unit, and how.
_PAIR = {
    "Latency": ("pingpong_time", 1.0, "as it is"),
    "Bandwidth": ("one_way_rate", 8.0, "8 Mbit/s a MB/s"),
    "Bi-Directional Bandwidth": ("both_ways_rate", 4.0, "OSU adds both ways: half of it"),
}
_COLLECTIVES = {
    "Broadcast": "bcast",
    "All-to-All Personalized Exchange": "alltoall",
    "All-to-Allv Personalized Exchange": "alltoallv",
}
_DEFINITIONS = {
    "Latency": "half the round trip",
    "Bandwidth": "a window of messages, then one back",
    "Bi-Directional Bandwidth": "windows of messages both ways, the sum of both",
}


def _knows(text: str) -> bool:
    return any(_TITLE.match(line) for line in text.splitlines())


def _read(source: Source) -> Read:
    figures = list(_figures(source))
    warnings = []
    if any(one.ranks is None for one in figures):
        warnings.append(
            f"{source.name}: OSU's collectives do not say on how many processes they ran, and "
            "without that they stand beside nothing: say --ranks N"
        )
    return Read(figures, warnings)


def _figures(source: Source) -> Iterator[ImportedFigure]:
    table: PrintedTable | None = None
    for line, text in numbered(source.text):
        title = _TITLE.match(text)
        if title:
            _whole(source, table)
            of_version(source, "OSU", title[2], _NEWEST)
            table = PrintedTable(title[1], title[2], 2 if title[1] in _PAIR else source.ranks)
        elif table is None:
            continue
        elif pairs := _PAIRS.search(text):
            table.ranks = 2 * int(pairs[1]) or None
        elif text.startswith("#") and _UNIT.search(text):
            table.columns = _COLUMN.findall(text.lstrip("# "))
            if not table.columns[0].startswith("Size"):  # a barrier has none
                table.columns.insert(0, "Size")
        elif re.match(r"\s*\d", text) and table.columns:
            yield from _row(source, table, line, text.split())
    _whole(source, table)
    if not source.text.endswith("\n"):
        raise source.refuse("it is cut: its last line has no end")


def _whole(source: Source, table: PrintedTable | None) -> None:
    if table is not None and table.rows == 0:
        raise source.refuse(
            f"OSU's {table.benchmark} has no results: it is cut, or the test failed"
        )


def _row(
    source: Source, table: PrintedTable, line: int, words: list[str]
) -> Iterator[ImportedFigure]:
    if len(words) == len(table.columns) - 1 and table.benchmark.endswith("Barrier Latency"):
        words = ["0", *words]
    size = count(words[0])
    if len(words) != len(table.columns) or size is None:
        raise source.refuse(table.misfit(line, words))
    table.rows += 1
    for place, (name, word) in enumerate(zip(table.columns[1:], words[1:], strict=True)):
        unit, value = _UNIT.search(name), number(word)
        if unit is None:  # iterations; `Pass` of a validation
            continue
        if value is None:
            raise source.refuse(f"line {line}: {name} is {word!r}, which is no number")
        shown = {"Messages/s": "1/s"}.get(unit[0], unit[1] or unit[2] or "1/s")
        yield ImportedFigure(
            TOOL, table.version, table.benchmark, table.ranks, size, name, value, shown,
            _DEFINITIONS.get(table.benchmark, "time of a call, mean over repetitions and ranks")
            if place == 0 else name,
            _ours(table, size, value) if place == 0 else None,
        )  # fmt: skip


def _ours(table: PrintedTable, size: int, value: float) -> ComparableFigure | None:
    if table.benchmark in _PAIR:
        measure, factor, how = _PAIR[table.benchmark]
        return ComparableFigure(measure, 2, size, factor * value, how) if table.ranks == 2 else None
    called = table.benchmark.removesuffix(" Latency")
    function = _COLLECTIVES.get(called, called.lower().replace("-", "_").replace(" ", "_"))
    found = collective(function)
    if found is None or table.ranks is None:
        return None
    return ComparableFigure(found, table.ranks, size, value, "as it is")


KIND = Kind(TOOL, "output of the OSU micro-benchmarks", _knows, _read)
