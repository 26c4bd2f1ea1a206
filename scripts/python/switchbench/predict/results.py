# SPDX-License-Identifier: BSD-3-Clause
"""The results directory that predictions are held against."""

from __future__ import annotations

from pathlib import Path

from ..base.errors import ConfigurationError
from ..base.model import Run, Trial
from ..records.directory import SUMMARY, load_summary
from ..records.document.schema import checked
from ..records.document.summary import SummaryDocument

Number = tuple[int, int]  # of a trial, and of its repeat


def sure_summary(directory: Path) -> SummaryDocument:
    """Its summary; ConfigurationError where any of it is damaged."""
    return checked(load_summary(directory), directory / SUMMARY)


def measured_trials(run: Run, directory: Path) -> dict[Number, Trial]:
    """The trials of its run that were measured; ConfigurationError where none was."""
    measured = {(plan["trial"], plan["repeat"]) for plan in sure_summary(directory)["plans"]}
    if not measured:
        raise ConfigurationError(
            f"{directory / SUMMARY} says of no trial that it was measured: `switchbench table "
            f"{directory} --again` rebuilds it from the records, if there are any"
        )
    trials = {(trial.id, trial.repeat): trial for trial in run.trials}
    return {number: trial for number, trial in trials.items() if number in measured}
