# SPDX-License-Identifier: BSD-3-Clause
"""What nccl-tests and rccl-tests print: a row a size, out of place and in place.

A GB is 10^9 bytes. algbw is size / time; busbw what a link carries, by the factors of the
nccl-tests' doc/PERFORMANCE.md, which tell operations apart. `size` is a rank's whole buffer, where
MPI's is what goes to one rank.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from .figure import GPU, ComparableFigure, ImportedFigure, Kind, Read, Source
from .table import Form, PrintedColumn, PrintedTable, Role, Row, gpu_warning, tables, warnings
from .table import figures as made

TOOL = "nccl-tests"
_OUT, _IN = "out-of-place", "in-place"
_FORM = Form(
    TOOL,
    title=re.compile(r"^# nThread \d+ nGpus \d+ "),
    header=re.compile(r"^#\s+size\s+count\s"),
    columns=(
        PrintedColumn("size", role=Role.SIZE),
        PrintedColumn("count|type|redop|root|error", role=Role.OTHER),
        PrintedColumn("time|cputime", "us"),
        PrintedColumn("algbw|busbw", "GB/s"),
        PrintedColumn("#wrong", role=Role.CHECK),
    ),
    end=re.compile(r"^# Avg bus bandwidth\s*: (\S{1,40})"),
    groups=(_OUT, _IN),
)
_RANK = re.compile(r"#\s+Rank\s+(\d{1,9}) ")
_VERSION = re.compile(r"# nccl-tests version (\d[\w.]{0,20})")
_OPERATION = re.compile(r"Collective test starting: (\w{1,40})_perf")


def _whole(ranks: int) -> Fraction:
    return Fraction(1)


def _others(ranks: int) -> Fraction:
    return Fraction(ranks - 1, ranks)


# Our measure of the time, None for none; busbw / algbw; whether MPI's size is a rank's share.
_OPERATIONS: dict[str, tuple[str | None, Callable[[int], Fraction], bool]] = {
    "all_reduce": ("allreduce_time", lambda ranks: 2 * _others(ranks), False),
    "reduce": ("reduce_time", _whole, False),
    "broadcast": ("bcast_time", _whole, False),
    "reduce_scatter": ("reduce_scatter_time", _others, False),
    "all_gather": ("allgather_time", _others, True),
    "alltoall": ("alltoall_time", _others, True),
    "gather": ("gather_time", _others, True),
    "scatter": ("scatter_time", _others, True),
    "sendrecv": (None, _whole, False),
}


def _read(source: Source) -> Read:
    found = tables(source, _FORM)
    said = list(warnings(source, found))
    figures = []
    for table in found:
        if not table.rows:
            raise source.refuse("nccl-tests have no results: it is cut, or the test failed")
        operation = _operation(source, table)
        if operation is None:
            said.append(
                f"{source.path}: nccl-tests before 2.17 do not name the operation: call the file "
                "after the program, as all_reduce_perf.txt; until then it stands beside nothing"
            )
        figures += _figures(source, table, operation)
    return Read(figures, [*said, *gpu_warning(source, figures)])


def _operation(source: Source, table: PrintedTable) -> str | None:
    """Return the operation: as the output names it, else as the file is called."""
    for text in (*table.before, *table.notes):
        if named := _OPERATION.search(text):
            if named[1] not in _OPERATIONS:
                raise source.refuse(f"nccl-tests' {named[1]} is not known here")
            return named[1]
    called = [name for name in _OPERATIONS if f"{name}_perf" in source.path.name]
    return max(called, key=len, default=None)


def _figures(source: Source, table: PrintedTable, operation: str | None) -> list[ImportedFigure]:
    numbers = {int(found[1]) for text in table.notes if (found := _RANK.match(text))}
    ranks = len(numbers) if numbers == set(range(len(numbers))) else 0
    measure, factor, shares = _OPERATIONS.get(operation or "", (None, _whole, False))
    if operation and ranks:
        _refuse_other(source, table, operation, float(factor(ranks)))

    def ours(row: Row, name: str, value: float) -> ComparableFigure | None:
        if operation == "sendrecv" and ranks and name == f"{_OUT} algbw":
            return ComparableFigure("sendrecv_rate", ranks, row.size, value * 8e3)
        if measure is None or not ranks or name != f"{_OUT} time":
            return None
        size = row.size // ranks if shares else row.size
        return ComparableFigure(measure, ranks, size, value)

    version = next(filter(None, map(_VERSION.match, table.before)), None)
    like = ImportedFigure(
        TOOL, version and version[1], operation or "unknown", ranks or None, memory=GPU
    )

    return list(made(table.rows, table.columns, like, ours))


def _refuse_other(source: Source, table: PrintedTable, operation: str, factor: float) -> None:
    """Refuse rows whose busbw is not what this operation makes of algbw."""
    for row in table.rows:
        algbw, busbw = (row.values.get(f"{_OUT} {name}", 0.0) for name in ("algbw", "busbw"))
        if algbw >= 1 and abs(busbw / algbw - factor) > 0.02 * factor:
            raise source.refuse(
                f"busbw is {busbw / algbw:.2f} times algbw, and {factor:.2f} in {operation}: it is "
                "of another operation, or damaged"
            )


KIND = Kind(
    TOOL,
    "output of nccl-tests",
    lambda text: re.search(_FORM.title.pattern, text, re.MULTILINE) is not None,
    _read,
)
