# SPDX-License-Identifier: BSD-3-Clause
"""A run's results for programs: its tables, its plan and its summary."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.model import Run
from .directory import load_summary, read_plan, refuse_endless
from .summary_form import SummaryDocument

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ResultTable:
    """One table of a run.

    Attributes
    ----------
    arrow : pyarrow.Table
        The table; each field's metadata has `unit`, `meaning` and `null`.
    """

    arrow: pa.Table

    def to_pandas(self) -> Any:
        """Return the table as a pandas.DataFrame; pandas has to be installed."""
        return self.arrow.to_pandas()

    def to_polars(self) -> Any:
        """Return the table as a polars.DataFrame; polars has to be installed."""
        import polars  # type: ignore[import-not-found]

        return polars.from_arrow(self.arrow)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the stream that Arrow's libraries exchange tables by."""
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.arrow.num_rows)


@dataclass(frozen=True)
class Results:
    """The results of one run; each table is read when it is first asked for."""

    directory: Path

    @cached_property
    def plan(self) -> Run:
        """The run as it was planned: trials, site, clauses."""
        return read_plan(self.directory)

    @cached_property
    def summary(self) -> SummaryDocument:
        """The summary, as summary.json has it."""
        return load_summary(self.directory)

    @cached_property
    def flows(self) -> ResultTable:
        """One row for each flow of each phase, both ends together."""
        return self._table("flows")

    @cached_property
    def ports(self) -> ResultTable:
        """One row for each port of each phase."""
        return self._table("ports")

    @cached_property
    def phases(self) -> ResultTable:
        """One row for each phase and node."""
        return self._table("phases")

    @cached_property
    def histograms(self) -> ResultTable:
        """One row for each distribution of times."""
        return self._table("histograms")

    @cached_property
    def intervals(self) -> ResultTable:
        """One row for each span of a flow's interval results."""
        return self._table("intervals")

    @cached_property
    def events(self) -> ResultTable:
        """One row for each thing that a node told once."""
        return self._table("events")

    @cached_property
    def samples(self) -> ResultTable:
        """One row for each single round trip, where they were kept."""
        return self._table("samples")

    def _table(self, name: str) -> ResultTable:
        from .store import TableFile

        return ResultTable(TableFile(self.directory, name).whole())


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
    from .store import has_tables, refuse_old_form

    path = Path(directory)
    refuse_endless(path)
    refuse_old_form(path)
    if not has_tables(path):
        load_summary(path)  # says so where there are no results at all
    return Results(path)
