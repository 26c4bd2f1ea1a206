# SPDX-License-Identifier: BSD-3-Clause
"""What the OSU micro-benchmarks print: a title, a line of columns, a row a size.

A megabyte is 10^6 bytes. The tests of collectives do not say on how many processes they ran.
"""

from __future__ import annotations

import re

from .figure import GPU, HOST, ComparableFigure, ImportedFigure, Kind, Read, Source, refuse_newer
from .measures import collective
from .table import Form, PrintedColumn, PrintedTable, Role, Row, gpu_warning, tables, warnings
from .table import figures as made

TOOL = "osu"
_NEWEST = (7,)
# `MPI` is the library; `MPI_Put` is the operation.
_FORM = Form(
    "OSU",
    title=re.compile(
        r"^#\s*OSU (?:(?:MPI|(NCCL)|UPC\+*|OpenSHMEM)(-[A-Z]+(?: MANAGED)?)? )?"
        r"(\S.{0,100}?) (?:Test|Benchmark) v(\d[\w.]{0,20})"
    ),
    header=re.compile(r"^#\s+(?:Size\s|[^=]*\((?:\ws|.B/s)\))"),
    columns=(
        PrintedColumn("Size", role=Role.SIZE),
        PrintedColumn(r"(?:(?:Avg|Min|Max) )?Latency ?\(us\)|P\d+ Tail Lat\(us\)", "us"),
        PrintedColumn(r"(?:Bi-)?Bandwidth ?\(MB/s\)|P\d+ Tail BW\(MB/s\)|MB/s", "MB/s"),
        PrintedColumn("Messages/s", "1/s"),
        PrintedColumn(r"(?:Overall|Compute|Coll\. Init|MPI_Test|MPI_Wait)\(us\)", "us"),
        PrintedColumn(r"(?:Pure|Min|Max|Avg) Comm\.\(us\)", "us"),
        PrintedColumn(r"Overlap\(%\)", "%"),
        PrintedColumn("Iterations", role=Role.OTHER),
        PrintedColumn("Validation", role=Role.CHECK),
    ),
)
_PAIRS = re.compile(r"\[ pairs: (\d{1,9}) \]")
_PLACES = re.compile(r"(?:Buffer|Memory) on (\w+)")

# The titles' words: the measure of their first column, and the factor to our unit. OSU adds both
# ways.
_PAIR = {
    "Latency": ("pingpong_time", 1.0),
    "Bandwidth": ("one_way_rate", 8.0),
    "Bi-Directional Bandwidth": ("both_ways_rate", 4.0),
}
_COLLECTIVES = {
    "Broadcast": "bcast",
    "All-to-All Personalized Exchange": "alltoall",
    "All-to-Allv Personalized Exchange": "alltoallv",
}


def _read(source: Source) -> Read:
    found = tables(source, _FORM)
    if not source.text.endswith("\n"):
        raise source.refuse("it is cut: its last line has no end")
    figures = [one for table in found for one in _figures(source, table)]
    said = [*warnings(source, found), *gpu_warning(source, figures)]
    if any(one.ranks is None for one in figures):
        said.append(
            f"{source.path}: OSU's collectives do not say on how many processes they ran, and "
            "without that they stand beside nothing: say --ranks N"
        )
    return Read(figures, said)


def _figures(source: Source, table: PrintedTable) -> list[ImportedFigure]:
    nccl, device, benchmark, version = table.title.groups()
    refuse_newer(source, _FORM.tool, version, _NEWEST)
    if not table.rows:
        raise source.refuse(f"OSU's {benchmark} has no results: it is cut, or the test failed")
    notes = "\n".join(table.notes)
    pairs = _PAIRS.search(notes)
    ranks = 2 if benchmark in _PAIR or benchmark.startswith("MPI_") else source.ranks
    if pairs:
        ranks = 2 * int(pairs[1]) or None
    on_host = set(_PLACES.findall(notes)) == {"HOST"}
    first = next(name for name, column in table.columns.items() if column.role is Role.FIGURE)

    def ours(row: Row, name: str, value: float) -> ComparableFigure | None:
        return _ours(benchmark, ranks, row.size, value) if name == first else None

    memory = GPU if (nccl or device) and not on_host else HOST
    shown = f"{nccl or 'MPI'}{device or ''} {benchmark}" if memory is GPU else benchmark
    like = ImportedFigure(TOOL, version, shown, ranks, memory=memory)
    return list(made(table.rows, table.columns, like, ours))


def _ours(benchmark: str, ranks: int | None, size: int, value: float) -> ComparableFigure | None:
    if benchmark in _PAIR:
        measure, factor = _PAIR[benchmark]
        return ComparableFigure(measure, 2, size, factor * value) if ranks == 2 else None
    called = benchmark.removesuffix(" Latency")
    function = _COLLECTIVES.get(called, called.lower().replace("-", "_").replace(" ", "_"))
    found = collective(function)
    if found is None or ranks is None:
        return None
    return ComparableFigure(found, ranks, size, value)


KIND = Kind(
    TOOL,
    "output of the OSU micro-benchmarks",
    lambda text: any(_FORM.title.match(line) for line in text.splitlines()),
    _read,
)
