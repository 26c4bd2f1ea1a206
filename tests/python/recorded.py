# SPDX-License-Identifier: BSD-3-Clause
"""Summaries and results directories of records, as the controller makes them; and their tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from runs import records_in
from schemas import validate_summary
from switchbench.analysis.remake import gather
from switchbench.analysis.sealing import fix_clauses, write_record
from switchbench.analysis.summary import Summary
from switchbench.base.model import Run
from switchbench.records.collector import Collector, is_event
from switchbench.records.directory import RunDirectory, write_plan
from switchbench.records.record_forms import Record
from switchbench.records.rows import PhaseRows
from switchbench.records.schema import arrow_schema
from switchbench.records.store import (
    TableFile,
    TableWriter,
    finish,
    parquet_file,
    stream_files,
)
from synthetic import about


def rows_in(directory: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table of a results directory."""
    rows: list[dict[str, Any]] = TableFile(directory, table).whole().to_pylist()
    return rows


def told_in(directory: Path) -> list[dict[str, Any]]:
    """All that is in a results directory."""
    return list(records_in(directory))


def replace_rows(directory: Path, table: str, rows: list[dict[str, Any]]) -> None:
    """Another table in its place, as Parquet."""
    for _, stream in stream_files(directory, table):
        stream.unlink()
    data = pa.Table.from_pylist(rows, arrow_schema(table))
    pq.write_table(data, parquet_file(directory, table))


class Feed:
    """A summary that takes records as the controller gives them."""

    def __init__(self, run: Run, brief: bool = False) -> None:
        """Nothing came yet."""
        self.summary = Summary(run, brief)
        self._collector = Collector(run)

    def take(self, *records: Record) -> None:
        """Some more records."""
        for record in records:
            for phase in self._collector.take(record):
                self.summary.take_phase(PhaseRows.of(phase))
            if is_event(record):
                self.summary.take(record)
            if record["type"] == "trial":
                self.summary.close_ended()

    def all(self) -> Summary:
        """The summary, with the phases that have not ended."""
        for phase in self._collector.rest():
            self.summary.take_phase(PhaseRows.of(phase))
        return self.summary


def fed(run: Run, records: Iterable[Record], brief: bool = False) -> Summary:
    """The summary that took these records."""
    feed = Feed(run, brief)
    feed.take(*records)
    return feed.all()


def write_tables(directory: Path, run: Run, records: Iterable[Record]) -> None:
    """The streams of a results directory, as the controller writes them of these records."""
    collector = Collector(run)
    with TableWriter(directory) as tables:
        for record in records:
            for phase in collector.take(record):
                tables.add_phase(phase)
            if record["type"] == "samples":
                tables.add_samples(record)
            elif is_event(record):
                tables.add_event(record)
        for phase in collector.rest():
            tables.add_phase(phase)


def results(path: Path, run: Run, records: Iterable[Record]) -> Path:
    """A results directory of these records as a run leaves it, sealed."""
    directory = RunDirectory(path)
    directory.write_configuration(run.effective)
    write_plan(path, run)
    fix_clauses(run, directory)
    write_tables(path, run, records)
    finish(path, run)
    summary = gather(run, path).finish(about(), [])
    validate_summary(summary)
    directory.write_summary(summary)
    write_record(path, summary)
    return path
