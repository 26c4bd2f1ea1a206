# SPDX-License-Identifier: BSD-3-Clause
"""Summaries and results directories of records, as the controller makes them; and their tables."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from rich.console import Console

from switchbench.analysis.sealing import fix_clauses, seal
from switchbench.analysis.summary import Summary, gather
from switchbench.base.model import Load, Run, Trial
from switchbench.records.collector import Collector, is_event
from switchbench.records.directory import CONFIGURATION, RunDirectory, write_plan
from switchbench.records.rows import PhaseRows
from switchbench.records.schema import Record, arrow_schema
from switchbench.records.store import TableFile, TableWriter, finish, parquet_file, stream_files
from switchbench.records.summary_form import summary_schema
from switchbench.render.terminal import SummaryPrinter
from synthetic import (
    FRAME_PAYLOAD,
    LINE_BPS,
    about,
    frame_side,
    hello,
    make_run,
    make_site,
    make_trial,
    phase_record,
    port_record,
    trial_record,
)


@cache
def _validator() -> Draft202012Validator:
    """Return a validator of summaries, with a schema that is valid itself."""
    form = summary_schema()
    Draft202012Validator.check_schema(form)
    return Draft202012Validator(form)


def validate_summary(summary: Any) -> None:
    """Raise the most relevant mistake of a summary."""
    fault = best_match(_validator().iter_errors(summary))
    if fault is not None:
        raise fault


def printed(summary: Any, width: int = 120, every_phase: bool = False) -> str:
    """Return what a terminal of this width shows of a summary."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, no_color=True)
    SummaryPrinter(summary, console, every_phase).print("results/x")
    return stream.getvalue()


# --- summaries and results directories of records, as the controller makes them -------------------


def rows_in(directory: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of a results directory."""
    rows: list[dict[str, Any]] = TableFile(directory, table).whole().to_pylist()
    return rows


def replace_rows(directory: Path, table: str, rows: list[dict[str, Any]]) -> None:
    """Replace a table of a results directory, as Parquet."""
    for _, stream in stream_files(directory, table):
        stream.unlink()
    data = pa.Table.from_pylist(rows, arrow_schema(table))
    pq.write_table(data, parquet_file(directory, table))


class Feed:
    """A summary that takes records as the controller gives them."""

    def __init__(self, run: Run, brief: bool = False) -> None:
        """Begin without a record."""
        self.summary = Summary(run, brief)
        self._collector = Collector(run)

    def take(self, *records: Record) -> None:
        """Take further records."""
        for record in records:
            for phase in self._collector.take(record):
                self.summary.take_phase(PhaseRows.of(phase))
            if is_event(record):
                self.summary.take(record)
            if record["type"] == "trial":
                self.summary.close_ended()

    def all(self) -> Summary:
        """Return the summary, with the phases that have not ended."""
        for phase in self._collector.rest():
            self.summary.take_phase(PhaseRows.of(phase))
        return self.summary


def fed(run: Run, records: Iterable[Record], brief: bool = False) -> Summary:
    """Return the summary of these records."""
    feed = Feed(run, brief)
    feed.take(*records)
    return feed.all()


def write_tables(directory: Path, run: Run, records: Iterable[Record]) -> None:
    """Write the streams of a results directory, as the controller does from these records."""
    collector = Collector(run)
    with TableWriter(directory) as tables:
        for record in records:
            for phase in collector.take(record):
                tables.add_phase(phase)
            if is_event(record):
                tables.add_event(record)
        for phase in collector.rest():
            tables.add_phase(phase)


def results(path: Path, run: Run, records: Iterable[Record]) -> Path:
    """Return a results directory of these records as a run leaves it, sealed."""
    directory = RunDirectory(path)
    directory.write_document(CONFIGURATION, run.effective)
    write_plan(path, run)
    fix_clauses(run, directory)
    write_tables(path, run, records)
    finish(path, run)
    summary = gather(run, path).finish(about(), [])
    validate_summary(summary)
    directory.write_summary(summary)
    seal(path)
    return path


# --- small results directories made by hand, whose differences are known -----------------------


WINDOW_S = 1.0


@dataclass(frozen=True)
class Repeats:
    """Pairs of two nodes: frames that each flow delivered in the window, repeat by repeat."""

    windows: Sequence[tuple[int, int]]
    lost: int = 0  # frames of the second flow, each repeat
    load: float = 95.0
    pattern: str = "pairs"
    settings: dict[str, Any] = field(default_factory=dict)  # as understood


def rate_mbps(frames: float) -> float:
    """Return payload of so many frames of a window."""
    return frames * FRAME_PAYLOAD * 8 / WINDOW_S / 1e6


def make(
    path: Path, *tests: Repeats, hosts: Sequence[str] = ("node1", "node2"), **configuration: Any
) -> Path:
    """Return a results directory; `configuration`: more of the configuration as understood."""
    site = make_site(hosts)
    trials = list(_trials_of(site, tests))
    understood = {
        "switchbench": 1,
        "site": {"lab": "one-switch"},
        "tests": [{"pattern": t.pattern, "window": "1s", "seed": 1, **t.settings} for t in tests],
    } | configuration
    run = make_run(site, *(trial for trial, _ in trials))
    return results(path, replace(run, effective=understood), _records_of(hosts, trials))


def _trials_of(site: Any, tests: Sequence[Repeats]) -> Any:
    number = 0
    for place, test in enumerate(tests):
        for repeat, window in enumerate(test.windows):
            trial = make_trial(site, number, test=place, repeat=repeat)
            pattern = {"name": test.pattern, "partners": "neighbours"}
            yield replace(trial, pattern=pattern, load=Load(percent=test.load)), (test, window)
            number += 1


def _records_of(
    hosts: Sequence[str], trials: Sequence[tuple[Trial, tuple[Repeats, tuple[int, int]]]]
) -> Any:
    first, second = ports = [f"{host}:e0" for host in hosts]
    yield from map(hello, hosts)
    for host, port in zip(hosts, ports, strict=True):
        yield {
            "type": "port-open", "node": host, "port": port, "transport": "dpdk",
            "network": "lab", "line_rate_bps": LINE_BPS,
        }  # fmt: skip
    for trial, (test, window) in trials:
        place: dict[str, Any] = {"trial": trial.id, "repeat": trial.repeat}
        for ends, lost, frames in zip(
            ((first, second), (second, first)), (0, test.lost), window, strict=True
        ):
            yield frame_side("source", *ends, frames + 300 + lost, frames, **place)
            yield frame_side("destination", *ends, frames + 300, frames, **place)
        for node in hosts:
            yield port_record(f"{node}:e0", **place)
            yield phase_record(node, **place)
            yield trial_record(node, **place)
