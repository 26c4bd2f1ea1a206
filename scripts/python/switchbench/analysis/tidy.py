# SPDX-License-Identifier: BSD-3-Clause
"""One tidy table of a run: a row for each flow in each phase, a column for each variable.

It is made of the tables by Arrow alone, a column at a time: a million flows take seconds. What a
column means stands in COLUMNS, once: the codebook and the Parquet file's own schema say the same.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from ..base import format
from ..base.errors import ConfigurationError, RunError
from ..base.measures import MEASURES
from ..base.model import PINGPONG, ROUND_TRIP
from ..records.directory import SUMMARY
from ..records.latency import NS_PER_US
from ..records.schema import EXPORT, columns_of
from ..records.store import TableFile, has_tables
from ..records.summary_form import SummaryDocument, at, definition
from . import measures

FLOWS = "flows"  # flows.csv, flows.parquet
CODEBOOK = "codebook.csv"

_PHASE = ("trial", "repeat", "network", "phase")
_FLOW = (*_PHASE, "src", "dst")


@dataclass(frozen=True)
class Variable:
    """One column of the table."""

    name: str
    kind: pa.DataType
    unit: str
    meaning: str
    of_phase: bool  # the summary's entry of the phase has it
    column: str  # of the table `flows`, where it is one of its columns


_COUNT, _REAL = pa.int64(), pa.float64()
_KINDS = {"text": pa.string(), "count": _COUNT, "number": _REAL}


def _variable(name: str, kind: str, unit: str, source: str, words: str = "") -> Variable:
    """Return a row of `EXPORT` as a variable."""
    of_phase, column = source == "entry", columns_of("flows").get(source)
    said = definition(name) if of_phase else ""
    if name in MEASURES and not of_phase:
        said = MEASURES[name].definition
    elif column is not None:
        said, unit = column.meaning, unit or column.unit
    meaning = words.replace("{}", said) or said
    return Variable(name, _KINDS[kind], unit, meaning, of_phase, column.name if column else "")


VARIABLES = tuple(_variable(*row) for row in EXPORT)

_WINDOW = "received_window_ns"
_SAME = {one.column: one.name for one in VARIABLES if one.column not in ("", "src", "dst")}


def write(directory: Path, summary: SummaryDocument, folder: Path) -> list[Path]:
    """Write flows.csv, flows.parquet and codebook.csv; returns their paths."""
    table = tidy(directory, summary)
    paths = [folder / f"{FLOWS}.csv", folder / f"{FLOWS}.parquet", folder / CODEBOOK]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pa.csv.write_csv(table, paths[0])
        pa.parquet.write_table(table, paths[1], compression="zstd")
        with paths[2].open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("column", "type", "unit", "meaning"))
            writer.writerows((v.name, str(v.kind), v.unit, v.meaning) for v in VARIABLES)
    except OSError as error:
        raise RunError(f"can't write into {folder}: {error.strerror or error}") from error
    return paths


def tidy(directory: Path, summary: SummaryDocument) -> pa.Table:
    """Return the table, in the order of the records' phases and of the flows' names."""
    if not has_tables(directory):
        raise ConfigurationError(f"no tables in {directory}")
    flows = TableFile(directory, "flows", (*_FLOW, *_SAME, _WINDOW)).whole()
    same = {name: flows[key] for key, name in _SAME.items()}
    table = _keyed(flows, same | {"window_ns": flows[_WINDOW]})
    wanted = (*_FLOW, "kind", "count", "sum_ns", "min_ns", "max_ns")
    times = TableFile(directory, "histograms", wanted).whole()
    for kind in (ROUND_TRIP, PINGPONG):
        table = table.join(_times(times, kind), list(_FLOW), join_type="left outer")
    table = table.join(_phases(summary), list(_PHASE), join_type="left outer")
    table = _computed(table, str(at(summary, "run.id")))
    metadata = {v.name: {"meaning": v.meaning, "unit": v.unit} for v in VARIABLES}
    schema = pa.schema([pa.field(v.name, v.kind, metadata=metadata[v.name]) for v in VARIABLES])
    return table.sort_by([(key, "ascending") for key in _FLOW]).select(schema.names).cast(schema)


def _times(times: pa.Table, kind: str) -> pa.Table:
    """Return the histograms of one kind, without their buckets."""
    mine = times.filter(pc.equal(times["kind"], kind))
    counted = pc.cast(mine["count"], _REAL)
    some = pc.if_else(pc.greater(counted, 0.0), counted, None)

    def us(name: str) -> Any:
        return pc.divide(pc.cast(mine[name], _REAL), NS_PER_US)

    columns = {
        f"{kind}_count": mine["count"],
        f"{kind}_min_us": us("min_ns"),
        f"{kind}_mean_us": pc.divide(us("sum_ns"), some),
        f"{kind}_max_us": us("max_ns"),
    }
    return _keyed(mine, columns)


def _keyed(mine: pa.Table, columns: Mapping[str, object]) -> pa.Table:
    return pa.table({key: mine[key] for key in _FLOW} | dict(columns))


def _phases(summary: SummaryDocument) -> pa.Table:
    """Return what the summary says of each phase."""
    entries = summary.get("trials", [])
    made: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "parameters": lambda entry: format.pattern(entry).partition(" ")[2],
        "size": lambda entry: "/".join(map(str, np.atleast_1d(entry["size"]).tolist())),
    }
    columns = {}
    for variable in VARIABLES:
        if variable.of_phase:
            value = made.get(variable.name, lambda entry, key=variable.name: entry.get(key))
            values = [value(e) for e in entries]
            try:
                columns[variable.name] = pa.array(values, variable.kind)
            except (pa.ArrowInvalid, OverflowError):  # 1e308 is a whole number, too
                raise ConfigurationError(
                    f"{SUMMARY} is damaged: {variable.name} of a phase is out of range"
                ) from None
    return pa.table(columns)


def _computed(table: pa.Table, run: str) -> pa.Table:
    """With what follows from other columns."""
    window_s = pc.divide(pc.cast(table["window_ns"], _REAL), 1e9)
    some_s = pc.if_else(pc.greater(window_s, 0.0), window_s, None)  # without one there is no rate
    bits = pc.multiply(pc.cast(table["window_bytes"], _REAL), 8.0)
    offered, came, corrupted = (
        table[name].cast(_REAL).to_numpy()  # NaN: not observed
        for name in ("offered_frames", "delivered_frames", "corrupted")
    )
    missing = measures.missing(offered, came, measures.or_zero(corrupted))
    lost = pa.array(missing, from_pandas=True).cast(_COUNT)
    settled = pc.invert(pc.is_in(table["state"], pa.array(measures.UNSETTLED)))
    return (
        table.append_column("run", pa.array([run] * table.num_rows, pa.string()))
        .append_column("window_s", window_s)
        .append_column("throughput_mbps", pc.divide(pc.divide(bits, some_s), 1e6))
        .append_column("lost_frames", pc.if_else(settled, lost, None))
    )
