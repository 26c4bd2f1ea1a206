# SPDX-License-Identifier: BSD-3-Clause
"""The tables of perftest (ib_write_bw, ib_send_lat and the others), and its JSON.

Its MB and MiB are 2^20 bytes, its Gb 10^9 bits; a latency of write and send is half the round trip,
of read and atomic the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base.source import json_decoder
from .figure import GPU, HOST, MEGA, ComparableFigure, ImportedFigure, Kind, Read, Source
from .table import Form, PrintedColumn, Role, Row, gpu_warning, tables
from .table import figures as made

TOOL = "perftest"
_RANKS = 2
# As ctx_print_test_info of perftest_parameters.c puts a title together.
_TEST = re.compile(
    r"(?:(?:Send|RDMA_Write)(?:_imm)?|RDMA_Read|Atomic(?: CMP_AND_SWAP| FETCH_AND_ADD))"
    r"(?: Bidirectional)?(?: Post List)? (?:BW|Latency)( forwarding)?( Multicast)?"
)
_TITLE = re.compile(r"^ {10,30}(\S.{0,80}?) Test\s*$", re.MULTILINE)
_RULE = re.compile(r"^-{20,}\s*$", re.MULTILINE)
_MEBI, _GIGA = "[MiB/sec]", "[Gb/sec]"
_FORM = Form(
    TOOL,
    title=_TITLE,
    header=re.compile(r"^\s*#(?:bytes|flows)\b"),
    columns=(
        PrintedColumn("#bytes", role=Role.SIZE),
        PrintedColumn("#iterations|#sl", role=Role.OTHER),
        PrintedColumn(r"BW (?:peak|average|Port\d)\[Mi?B/sec\]", "MiB/s"),
        PrintedColumn(r"BW (?:peak|average|Port\d)\[Gb/sec\]", "Gbit/s"),
        PrintedColumn(r"MsgRate(?: Port\d)?\[Mpps\]", "1/us"),
        PrintedColumn(r"t_\w+\[usec\]|[\d.]+% percentile\[usec\]", "us"),
        PrintedColumn("tps average", "1/s"),
        PrintedColumn(r"CPU_Util\[%\]", "%"),
    ),
    end=_RULE,
    part=re.compile(r"^\s*((?:Local|Remote) results):"),
)
_ON_GPU = re.compile(
    r"initializing (?:CUDA|MUSA)|Picking (?:GPU number|device No\.)|allocated GPU buffer"
    r"|Using ROCm|hipDevice|NEURON_RT_VISIBLE_CORES|accelerator buffer"
)
_MBPS = {_MEBI: (1 << 20) * 8 / MEGA, "[MB/sec]": (1 << 20) * 8 / MEGA, _GIGA: 1e3}


def _read(source: Source) -> Read:
    if source.text.lstrip().startswith("{"):
        figures = list(_of_json(source))
        return Read(figures, list(gpu_warning(source, figures)))
    found = tables(source, _FORM)
    for table in found:
        _refuse_unknown(source, table.title[1])
    figures, said = [], []
    for table in (table for table in found if table.rows):
        memory = GPU if any(map(_ON_GPU.search, (*table.before, *table.notes))) else HOST
        figures += _figures(table.title[1], table.rows, table.columns, memory)
    if not figures:
        raise source.refuse(
            f"perftest's {found[0].title[1]} has no results: it failed, or this is the end that "
            "shows none"
        )
    if not all(table.rows for table in found):
        said.append(f"{source.path}: a table without results was passed over")
    return Read(figures, [*said, *gpu_warning(source, figures)])


def _refuse_unknown(source: Source, test: str) -> None:
    if _TEST.fullmatch(test) is None:
        raise source.refuse(f"perftest has a test that is not known here: {test[:60]!r}")


def _figures(
    benchmark: str, rows: Sequence[Row], columns: Mapping[str, PrintedColumn], memory: str
) -> Iterator[ImportedFigure]:
    def ours(row: Row, name: str, value: float) -> ComparableFigure | None:
        return None if row.part else _ours(benchmark, row.size, name, value)

    like = ImportedFigure(TOOL, None, benchmark, _RANKS, memory=memory)
    for one in made(rows, columns, like, ours):
        if one.value:  # the peak is 0 where it was not looked for
            yield one


def _ours(benchmark: str, size: int, name: str, value: float) -> ComparableFigure | None:
    test = _TEST.fullmatch(benchmark)
    if test is None or test[1] or test[2] or benchmark.startswith("Atomic"):
        return None
    if name.startswith("BW average"):
        mbps = value * _MBPS[name.removeprefix("BW average")]
        if "Bidirectional" in benchmark:
            return ComparableFigure("both_ways_rate", _RANKS, size, mbps / 2)  # it adds both ways
        return ComparableFigure("one_way_rate", _RANKS, size, mbps)
    if name == "t_avg[usec]" and not benchmark.startswith("RDMA_Read"):  # the whole round trip
        return ComparableFigure("pingpong_time", _RANKS, size, value)
    return None


# --- JSON (--out_json) ----------------------------------------------------------------------------

_COUNTS = ("MsgSize", "n_iterations")
_NAMES = {
    "BW_peak": "BW peak", "BW_average": "BW average", "MsgRate": "MsgRate[Mpps]",
    **{f"t_{name}": f"t_{name}[usec]" for name in ("min", "max", "typical", "avg", "stdev")},
    "percentile_99": "99% percentile[usec]", "percentile_99.9": "99.9% percentile[usec]",
    "tps_average": "tps average", "CPU_util": "CPU_Util[%]",
}  # fmt: skip


def _of_json(source: Source) -> Iterator[ImportedFigure]:
    try:
        whole = json_decoder().decode(source.text)
        info, results = whole["test_info"], whole["results"]
        benchmark = info["test"].removesuffix("_Test")
        counts = [results.pop(name) for name in _COUNTS]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise source.refuse(f"it is cut, damaged or no result of perftest: {error}") from error
    for name in ("Bidirectional", "Post_List", "BW", "Latency", "forwarding", "Multicast"):
        benchmark = benchmark.replace(f"_{name}", f" {name.replace('_', ' ')}")
    benchmark = re.sub("^Atomic_", "Atomic ", benchmark)
    _refuse_unknown(source, benchmark)
    for name, value in (*zip(_COUNTS, counts, strict=True), *results.items()):
        if name not in (*_COUNTS, *_NAMES):
            raise source.refuse(f"perftest has a result that is not known here: {name[:40]!r}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise source.refuse(f"{name} is {str(value)[:40]!r}, which is no number")
    size = int(counts[0])
    unit = _json_unit(source, size, results) if "BW_average" in results else ""
    values = {
        _NAMES[name] + (unit if name.startswith("BW_") else ""): float(value)
        for name, value in results.items()
    }
    columns = {
        name: next(column for column in _FORM.columns if re.fullmatch(column.name, name))
        for name in values
    }
    memory = GPU if _json_on_gpu(info) else HOST
    yield from _figures(benchmark, [Row(size, "", values, False)], columns, memory)


def _json_unit(source: Source, size: int, results: Mapping[str, Any]) -> str:
    """Return the unit of BW, which the JSON does not name: that in which messages make the rate."""
    mbps = 8 * size * results.get("MsgRate", 0)
    for unit in (_MEBI, _GIGA):
        if abs(results["BW_average"] * _MBPS[unit] - mbps) <= 0.02 * mbps:
            return unit
    raise source.refuse(
        "perftest's JSON does not name the unit of BW_average, and MsgRate does not tell it"
    )


def _json_on_gpu(info: Mapping[str, Any]) -> bool:
    uses = (info.get("Use_ROCm_memory"), info.get("Use_MUSA_memory"))
    return "ON" in uses or "cuda_device" in info or "musa_device" in info


def _knows(text: str) -> bool:
    if text.lstrip().startswith("{"):
        return '"test_info"' in text[:4096]
    return bool(_TITLE.search(text) and _RULE.search(text))


KIND = Kind(TOOL, "perftest's table or JSON", _knows, _read)
