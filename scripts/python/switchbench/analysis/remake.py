# SPDX-License-Identifier: BSD-3-Clause
"""The summary of a results directory made anew, from its plan and its records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.errors import ConfigurationError
from ..base.model import Run
from ..records.again import put_in_place
from ..records.directory import PLAN, RECORDS
from .summary import NOT_ENDED, REFUSED_RUN, gather

KILLED = "the run's command was killed: what was measured until then is here"


def is_begun_only(summary: Mapping[str, Any]) -> bool:
    """Whether this is a summary that the run's command had no time or no room to write whole. What
    was imported from other programs has no trials of ours."""
    ours = not summary.get("imported")
    return ours and summary["trials"] == [] and summary["exit_status"] != REFUSED_RUN


def remade(
    run: Run, directory: Path, summary: Mapping[str, Any], ended: bool = True
) -> dict[str, Any]:
    """What the records amount to. `summary`: the one that is there, for what no record says.
    `ended`: the run is known not to be under way."""
    faults = [KILLED if ended and fault == NOT_ENDED else fault for fault in summary["errors"]]
    refused = summary["exit_status"] == REFUSED_RUN
    try:
        run = put_in_place(directory, run)
        return gather(run, directory).finish(summary["run"], faults, refused)
    except (
        *(ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError),
        OSError,  # pyarrow's, of a file without sense
    ) as error:
        why = " ".join(str(error).split())
        raise ConfigurationError(
            f"{directory / RECORDS} does not fit {PLAN}: {type(error).__name__} {why}; "
            "one of them is damaged or from elsewhere"
        ) from None
