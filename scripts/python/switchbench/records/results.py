# SPDX-License-Identifier: BSD-3-Clause
"""Results of a run for other programs: its tables, plan and summary."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.model import Run
from .directory import load_summary, read_plan, refuse_endless
from .schema import TITLES
from .summary_form import SummaryDocument

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ResultTable:
    """Table of a run.

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
        """Return the stream by which Arrow's libraries exchange tables."""
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.arrow.num_rows)


def _table(name: str) -> cached_property[ResultTable]:
    """Return the property of `Results` that reads a table."""

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
        """Run as planned: trials, site, clauses."""
        return read_plan(self.directory)

    @cached_property
    def summary(self) -> SummaryDocument:
        """Content of summary.json."""
        return load_summary(self.directory)

    flows = _table("flows")
    ports = _table("ports")
    phases = _table("phases")
    histograms = _table("histograms")
    intervals = _table("intervals")
    events = _table("events")
    samples = _table("samples")


def load(directory: str | os.PathLike[str]) -> Results:
    """Return the results of a run, finished or not.

    Parameters
    ----------
    directory
        A results directory, as `switchbench run` makes it.

    Raises
    ------
    ConfigurationError
        Where the directory has no results of this form, or a file of it is damaged.
    """
    from .store import has_tables

    path = Path(directory)
    refuse_endless(path)
    if not has_tables(path):
        load_summary(path)  # raises an error if the directory has no results
    return Results(path)
