# SPDX-License-Identifier: BSD-3-Clause
"""Single round-trip times of ping-pong messages: kept as Parquet.

A mean over such times misleads (Salmon, Stein and Sterling 1998), so each is kept. Nodes write
them, 16 bytes each, in `samples` records (doc/reference/node-protocol.md); the controller lays
those lines beside the other records, and `store` makes samples.parquet of them.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.model import Part, Trial
from ..records.directory import SAMPLE_LINES, SAMPLES
from ..records.document.messages import Computing, PieceTimes, ScatterTimes
from ..records.reader import taking
from ..records.record_forms import DamagedRecord, Record, parse
from .statistics import interval
from .sweep import about

LINES = SAMPLE_LINES

_ROWS = 1 << 20  # of a row group: what is in memory at a time while storing
_SAMPLE = np.dtype([("place", "<u8"), ("size", "<u4"), ("begun_us", "<u4")])
_CONFIDENCE = 0.95  # that nodes compute slower, or faster, beside messages
_TIME_BITS = np.uint64(48)
_TIME_MASK = np.uint64((1 << 48) - 1)
_SMALL_MOST = (1 << 16) - 1  # of 16 bits
_COLUMNS = ("trial", "repeat", "phase", "network", "src", "dst", "size", "begun_us", "time_ns")


# --- storing -----------------------------------------------------------------------------------


def store(directory: Path) -> int:
    """Makes samples.parquet of the lines that came; how many samples it holds.

    The lines go once all of them are stored, so a run that was killed can be stored later.
    """
    lines, target = directory / LINES, directory / SAMPLES
    if not lines.exists():
        return 0
    from pyarrow import parquet

    fresh = target.with_name(f".{SAMPLES}.new")
    total = 0
    with parquet.ParquetWriter(fresh, _arrow_schema(), compression="zstd") as writer:
        for table in _tables(lines):
            writer.write_table(table)
            total += table.num_rows
    fresh.replace(target)
    lines.unlink()
    return total


def _arrow_schema() -> Any:
    import pyarrow as pa

    kinds = {"time_ns": pa.uint64(), "network": pa.dictionary(pa.int32(), pa.string())}
    kinds |= dict.fromkeys(("trial", "size", "begun_us"), pa.uint32())
    kinds |= dict.fromkeys(("repeat", "phase", "src", "dst"), pa.uint16())
    return pa.schema([(name, kinds[name]) for name in _COLUMNS])


def _tables(lines: Path) -> Iterator[Any]:
    """Row groups of about _ROWS samples."""
    packed: list[tuple[Record, bytes]] = []
    rows = 0
    with lines.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                break  # the disk was full, or the command was killed
            with taking(lines, number):
                record = parse(line)
                data = _data_of(record)
            packed.append((record, data))
            rows += len(data) // _SAMPLE.itemsize
            if rows >= _ROWS:
                yield _table(packed)
                packed, rows = [], 0
    if packed:
        yield _table(packed)


def _data_of(record: Record) -> bytes:
    """The samples' bytes; what numbers they are of has to fit the table's columns."""
    least = [record.get("repeat") or 0, record.get("phase", -1), record.get("rank", -1)]
    if record["type"] != "samples" or not all(0 <= n <= _SMALL_MOST for n in least):
        raise DamagedRecord("it is no samples record of a trial's phase")
    try:
        data = binascii.a2b_base64(record["data"], strict_mode=True)
    except binascii.Error:
        data = b"?"
    if len(data) % _SAMPLE.itemsize:
        raise DamagedRecord(f"its data are no samples of {_SAMPLE.itemsize} bytes in base64")
    return data


def _table(packed: Sequence[tuple[Record, bytes]]) -> Any:
    import pyarrow as pa

    samples = np.frombuffer(b"".join(data for _, data in packed), dtype=_SAMPLE)
    counts = [len(data) // _SAMPLE.itemsize for _, data in packed]
    networks = sorted({record["network"] for record, _ in packed})
    number = {name: i for i, name in enumerate(networks)}

    def each(values: list[int], kind: type[np.unsignedinteger[Any]] | type[np.int32]) -> Any:
        return np.repeat(np.array(values, dtype=kind), counts)

    records = [record for record, _ in packed]
    columns = {
        "trial": each([record["trial"] for record in records], np.uint32),
        "repeat": each([record.get("repeat") or 0 for record in records], np.uint16),
        "phase": each([record["phase"] for record in records], np.uint16),
        "network": pa.DictionaryArray.from_arrays(
            each([number[record["network"]] for record in records], np.int32), networks
        ),
        "src": each([record["rank"] for record in records], np.uint16),
        "dst": (samples["place"] >> _TIME_BITS).astype(np.uint16),
        "size": samples["size"],
        "begun_us": samples["begun_us"],
        "time_ns": samples["place"] & _TIME_MASK,
    }
    return pa.table(columns, schema=_arrow_schema())


def read(directory: Path, *columns: str) -> Any:
    """The samples of a run as a pyarrow table; all columns unless some are named."""
    from pyarrow import parquet

    return parquet.read_table(directory / SAMPLES, columns=list(columns) or None)


# --- what it amounts to ------------------------------------------------------------------------


def summarize(directory: Path, trials: Sequence[Trial]) -> list[ScatterTimes]:
    """One entry for each scatter in each network."""
    if not (directory / SAMPLES).exists():
        return []
    import pyarrow.compute as pc

    table = read(directory)
    found = []
    for trial in trials:
        if "scatter" not in trial.parameters or trial.traffic != "pingpong":
            continue
        for part in trial.parts:
            chosen = pc.and_(
                pc.and_(
                    pc.equal(table["trial"], trial.id), pc.equal(table["repeat"], trial.repeat)
                ),
                pc.equal(table["network"].cast("string"), part.network),
            )
            rows = table.filter(chosen)
            if rows.num_rows:
                found.append(_entry(trial, part, rows))
    return found


def _entry(trial: Trial, part: Part, rows: Any) -> ScatterTimes:
    size, time_us = rows["size"].to_numpy(), rows["time_ns"].to_numpy() / 2000.0
    p50, p99, most = (float(value) for value in np.quantile(time_us, (0.5, 0.99, 1.0)))
    return {
        **about(trial, part),
        "trial": trial.id,
        "repeat": trial.repeat,
        "messages": len(size),
        "min_size": int(size.min()),
        "max_size": int(size.max()),
        "p50_us": p50,
        "p99_us": p99,
        "max_us": most,
    }


class ComputeTable:
    """How much slower nodes computed beside their messages than alone."""

    def __init__(self) -> None:
        """No record yet."""
        self._records: dict[tuple[int, int], list[Record]] = {}

    def feed(self, record: Record) -> None:
        """Takes one `compute` record."""
        key = (record["trial"], record.get("repeat") or 0)
        self._records.setdefault(key, []).append(record)

    def forget(self, trial: tuple[int, int]) -> None:
        """Drops the records of a trial (id, repeat)."""
        self._records.pop(trial, None)

    def summary(self, trials: Sequence[Trial]) -> list[Computing]:
        """One entry for each trial that computed."""
        return [
            _slowdown(trial, self._records[trial.id, trial.repeat])
            for trial in trials
            if (trial.id, trial.repeat) in self._records
        ]


def _slowdown(trial: Trial, records: Sequence[Record]) -> Computing:
    """Rates are while computing: operations by the time that pieces took."""
    alone, beside = (_rate(records, part) for part in ("compute_only", "concurrent"))
    nodes = {
        record["node"]: slower(_rate([record], "compute_only"), _rate([record], "concurrent"))
        for record in records
    }
    known = {node: share for node, share in nodes.items() if share is not None}
    worst = max(known, key=lambda node: known[node], default=None)
    spread = interval(list(known.values()), _CONFIDENCE)
    return {
        "trial": trial.id,
        "repeat": trial.repeat,
        "transport": trial.transport,
        "parameters": dict(trial.parameters),
        "nodes": len(nodes),
        "share": records[0]["share"],
        "compute_only_mflops": alone,
        "concurrent_mflops": beside,
        "slowdown_percent": slower(alone, beside),
        "slowdown_ci_half_width_percent": None if spread is None else spread.half_width,
        "slowest_node": worst,
        "max_slowdown_percent": None if worst is None else known[worst],
        "piece_us": {
            "compute_only": _pieces(records, "compute_only"),
            "concurrent": _pieces(records, "concurrent"),
        },
    }


def _pieces(records: Sequence[Record], part: str) -> PieceTimes:
    p50, p99, most = (
        max(record[part][f"piece_{name}_ns"] for record in records) / 1000
        for name in ("p50", "p99", "max")
    )
    return {"p50": p50, "p99": p99, "max": most}


def _rate(records: Sequence[Record], part: str) -> float | None:
    """Mflop/s of one thread, the mean over all."""
    busy_ns = sum(record[part]["busy_ns"] for record in records)
    operations = sum(record[part]["operations"] for record in records)
    return operations / busy_ns * 1000 if busy_ns else None


def slower(alone: float | None, beside: float | None) -> float | None:
    """By how many percent a rate fell."""
    return None if not alone or beside is None else 100 * (1 - beside / alone)
