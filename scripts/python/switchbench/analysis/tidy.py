# SPDX-License-Identifier: BSD-3-Clause
"""One tidy table of a run: a row for each flow in each phase, a column for each variable.

It is made of the tables by Arrow alone, a column at a time: a million flows take seconds. What a
column means stands in COLUMNS, once: the codebook and the Parquet file's own schema say the same.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from ..base import format
from ..base.errors import ConfigurationError, RunError
from ..base.measures import MEASURES
from ..base.model import PINGPONG, ROUND_TRIP
from ..records.directory import SUMMARY
from ..records.document.schema import at, definition
from ..records.document.summary import SummaryDocument
from ..records.latency import NS_PER_US
from ..records.schema import columns_of
from ..records.store import TableFile, has_tables
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
    entry: str = ""  # where the summary's entry of the phase has it
    column: str = ""  # of the table `flows`, where it is one of its columns


def _of_phase(name: str, kind: pa.DataType, unit: str = "", meaning: str = "") -> Variable:
    return Variable(name, kind, unit, meaning or definition(name), entry=name)


def _of_flow(name: str, kind: pa.DataType, column: str = "", note: str = "") -> Variable:
    """Return a measure of base.measures, of the flow itself."""
    measure = MEASURES[name]
    words = measure.definition + (note and f"; {note}")
    return Variable(name, kind, measure.unit, words, column=column)


_TEXT, _COUNT, _REAL = pa.string(), pa.int64(), pa.float64()

VARIABLES = (
    Variable("run", _TEXT, "", "The run's id: summary.json, run.id"),
    _of_phase("trial", _COUNT),
    _of_phase("test", _COUNT),
    _of_phase("repeat", _COUNT),
    _of_phase("pattern", _TEXT),
    _of_phase("parameters", _TEXT),
    _of_phase("transport", _TEXT),
    _of_phase("network", _TEXT),
    _of_phase("ranks", _COUNT),
    _of_phase("traffic", _TEXT),
    _of_phase("size", _TEXT, "B", "Of a frame or message; several where mixed"),
    _of_phase("size_unit", _TEXT),
    _of_phase("intended_load", _REAL, "% of line"),
    _of_phase("phase", _COUNT),
    _of_phase("phase_name", _TEXT),
    _of_phase("state", _TEXT, "", "How the phase ended; partial: records are missing"),
    _of_phase("start_skew_us", _REAL, "µs"),
    _of_phase("stop_skew_us", _REAL, "µs"),
    Variable("src", _TEXT, "", "Port that sends"),
    Variable("dst", _TEXT, "", "Port that receives"),
    Variable("intended", _COUNT, "frames or B", definition("intended"), column="intended"),
    _of_flow("offered_frames", _COUNT, "sent_frames", "empty for tcp and verbs"),
    _of_flow("delivered_frames", _COUNT, "received_frames"),
    Variable("offered_bytes", _COUNT, "B", "Payload that the source sent, whole trial",
             column="sent_payload_bytes"),
    Variable("delivered_bytes", _COUNT, "B", "Payload that the destination verified, whole trial",
             column="received_payload_bytes"),
    Variable("window_s", _REAL, "s", "The destination's window, as it really was"),
    Variable("window_bytes", _COUNT, "B", "Payload that the destination verified in its window",
             column="received_window_payload_bytes"),
    Variable("throughput_mbps", _REAL, "Mbit/s", "Payload, one way: 8 x window_bytes / window_s"),
    _of_flow("lost_frames", _COUNT, note="empty in a phase that was stopped in the middle"),
    *(Variable(one.name, _COUNT, one.unit, one.meaning, column=one.name)
      for one in columns_of("flows").values()
      if one.name in ("duplicated", "reordered", "late", "corrupted")),
    _of_flow("retransmitted_segments", _REAL, "retransmitted_segments"),
    *(
        Variable(f"{kind}_{name}", data, unit, f"{words}, {what}")
        for kind, words in (
            (ROUND_TRIP, "Round trips of probes beside the load"),
            (PINGPONG, "Ping-pong round trips"),
        )
        for name, data, unit, what in (
            ("count", _COUNT, "", "how many were timed"),
            ("min_us", _REAL, "µs", "the minimum"),
            ("mean_us", _REAL, "µs", "the mean"),
            ("max_us", _REAL, "µs", "the maximum"),
        )
    ),
)  # fmt: skip

_WINDOW = "received_window_ns"
_SAME = {one.column: one.name for one in VARIABLES if one.column}


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
        "size": lambda entry: "/".join(map(str, _listed(entry["size"]))),
    }
    columns = {}
    for variable in VARIABLES:
        if variable.entry:
            value = made.get(variable.name, lambda entry, key=variable.entry: at(entry, key))
            values = [value(e) for e in entries]
            try:
                columns[variable.name] = pa.array(values, variable.kind)
            except (pa.ArrowInvalid, OverflowError):  # 1e308 is a whole number, too
                raise ConfigurationError(
                    f"{SUMMARY} is damaged: {variable.entry} of a phase is out of range"
                ) from None
    return pa.table(columns)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


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
        table.append_column("run", pa.array([run] * table.num_rows, _TEXT))
        .append_column("window_s", window_s)
        .append_column("throughput_mbps", pc.divide(pc.divide(bits, some_s), 1e6))
        .append_column("lost_frames", pc.if_else(settled, lost, None))
    )
