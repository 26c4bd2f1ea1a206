# SPDX-License-Identifier: BSD-3-Clause
"""Results of a run for other programs: its tables, plan and summary."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import RunError
from ..base.model import Run
from .directory import load_summary, read_plan, refuse_endless
from .schema import TITLES
from .summary_form import SummaryDocument

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ResultTable:
    """Table of a run's results, for Arrow, pandas and Polars.

    Attributes
    ----------
    arrow : pyarrow.Table
        The table; each field's metadata has `unit`, `meaning` and `null`.
    """

    arrow: pa.Table

    def to_pandas(self) -> Any:
        """Return the table as a pandas.DataFrame; pandas must be installed."""
        return self.arrow.to_pandas()

    def to_polars(self) -> Any:
        """Return the table as a polars.DataFrame; polars must be installed."""
        import polars

        return polars.from_arrow(self.arrow)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow's C interface, for other Arrow libraries."""
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """Return the number of rows of the table."""
        return int(self.arrow.num_rows)


def _table(name: str) -> cached_property[ResultTable]:
    """Return a property of `Results` that reads the table `name` at its first use."""

    def read(results: Results) -> ResultTable:
        from .store import TableFile

        return ResultTable(TableFile(results.directory, name).whole())

    read.__doc__ = f"{TITLES[name]}."
    return cached_property(read)


@dataclass(frozen=True)
class Results:
    """Results of one run; each table is read at its first use."""

    directory: Path

    @cached_property
    def plan(self) -> Run:
        """Return the run as planned: trials, site, clauses."""
        return read_plan(self.directory)

    @cached_property
    def summary(self) -> SummaryDocument:
        """Return the content of summary.json."""
        return load_summary(self.directory)

    flows = _table("flows")
    ports = _table("ports")
    phases = _table("phases")
    histograms = _table("histograms")
    intervals = _table("intervals")
    events = _table("events")


def load(directory: str | os.PathLike[str]) -> Results:
    """Return the results of a run, finished or not.

    Parameters
    ----------
    directory
        A results directory, as `switchbench run` makes it.

    Raises
    ------
    ConfigurationError
        If the directory has no results of this form, or a file of it is damaged.
    """
    from .store import has_tables

    path = Path(directory)
    refuse_endless(path)
    if not has_tables(path):
        load_summary(path)  # raises an error if the directory has no results
    return Results(path)


# --- for the HdrHistogram plotter -----------------------------------------------------------------

_HGRM_HEAD = f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}\n\n"


def write_hgrm(results: Results, folder: Path) -> list[Path]:
    """Write the times of each phase as percentile files of HdrHistogram; return their paths.

    One file for each phase, network and kind of times, all flows together, in microseconds:
    FOLDER/trial0-phase3-lab-round_trip.hgrm. One-way delays are left out if the clocks of the two
    ends were estimated: only the summary has the correction.

    Raises
    ------
    RunError
        If the folder cannot be written.
    """
    from .rows import Histogram

    found: dict[str, Histogram] = {}
    for row in results.histograms.arrow.to_pylist():
        if not row["count"] or row["kind"] == "execution" or row["bound_ns"]:
            continue
        repeat = f"-repeat{row['repeat']}" if row["repeat"] else ""
        name = f"trial{row['trial']}{repeat}-phase{row['phase']}-{row['network']}-{row['kind']}"
        found.setdefault(name, Histogram()).merge(Histogram.of_row(row))
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, times in sorted(found.items()):
            # The text form of HdrHistogram's outputPercentileDistribution.
            lines, passed = [_HGRM_HEAD], 0
            for ns in sorted(times.times):
                passed += times.times[ns]
                share = passed / times.count
                beyond = f"{1 / (1 - share):14.2f}" if passed < times.count else ""
                line = f"{ns / 1000:12.3f} {share:14.12f} {passed:10d} {beyond}"
                lines.append(line.rstrip() + "\n")
            mean = times.sum_ns / times.count
            squares = sum(number * (ns - mean) ** 2 for ns, number in times.times.items())
            mean_us, deviation_us = mean / 1000, math.sqrt(squares / times.count) / 1000
            highest_us = (times.max_ns or 0) / 1000
            lines += [
                f"#[Mean    = {mean_us:12.3f}, StdDeviation   = {deviation_us:12.3f}]\n",
                f"#[Max     = {highest_us:12.3f}, Total count    = {times.count:12d}]\n",
                f"#[Buckets = {len(times.times):12d}, SubBuckets     = {64:12d}]\n",
            ]
            written.append(folder / f"{name}.hgrm")
            written[-1].write_text("".join(lines), "utf-8")
    except OSError as error:
        raise RunError(f"can't write into {folder}: {error.strerror}") from error
    return written
