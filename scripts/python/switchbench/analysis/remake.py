# SPDX-License-Identifier: BSD-3-Clause
"""Computation of a results directory's summary from its plan and records."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ..base.errors import ConfigurationError, SwitchbenchError
from ..base.model import Run
from ..records.directory import AFTER, BEFORE, PLAN, compare_counters
from ..records.record_forms import DamagedRecord, checked
from ..records.schema import BY_PHASE
from ..records.store import SUPERSEDED, Tables, cut_streams, finish
from ..records.summary_form import Entry, SummaryDocument, filled
from .series import scatter_times
from .summary import NOT_ENDED, REFUSED_RUN, Summary

# Exceptions of computations with senseless records; pyarrow raises OSError.
DAMAGE = (
    *(ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError),
    OSError,
)
KILLED = (
    "the run's command was killed: what was measured until then is here; a lab that it made stays "
    "until the next run (`switchbench doctor` names it)"
)


def is_begun_only(summary: SummaryDocument) -> bool:
    """Return whether the run's command could not complete this summary.

    A directory of imported results has no trials of its own.
    """
    ours = not summary.get("imported")
    return ours and summary["trials"] == [] and summary["exit_status"] != REFUSED_RUN


@contextmanager
def _no_collector() -> Iterator[None]:
    """Disable the search for reference cycles: records have none, and it takes time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def elsewhere(directory: Path) -> Iterator[Path]:
    """Yield a temporary folder with links to the files that `finish` and `gather` read."""
    with TemporaryDirectory(prefix="switchbench-") as name:
        for file in directory.iterdir():
            if file.suffix in (".arrows", ".parquet") or file.name in (BEFORE, AFTER):
                (Path(name) / file.name).symlink_to(file.resolve())
        yield Path(name)


@_no_collector()
def remade(
    run: Run, directory: Path, summary: SummaryDocument, ended: bool = True, keep: bool = False
) -> SummaryDocument:
    """Return the summary computed from the records.

    `summary` is the present one, for values without records. `ended`: the run is known not to be
    running any more. `keep`: put records and samples in their final form in the directory;
    otherwise nothing is written.
    """
    faults = [KILLED if ended and fault == NOT_ENDED else fault for fault in summary["errors"]]
    refused = summary["exit_status"] == REFUSED_RUN
    with nullcontext(directory) if keep or not run.again else elsewhere(directory) as place:
        try:
            gathered = gather(finish(place, run) if keep or run.again else run, place)
            faults += [fault for fault in cut_streams(place) if fault not in faults]
            return gathered.finish(summary["run"], faults, refused)
        except SwitchbenchError as error:
            raise type(error)(str(error).replace(str(place), str(directory))) from None
        except DAMAGE as error:
            why = " ".join(str(error).split())
            raise ConfigurationError(
                f"{directory}: the tables do not fit {PLAN}: {type(error).__name__} {why}; "
                "one of them is damaged or from elsewhere"
            ) from None


@_no_collector()
def gather(run: Run, directory: Path) -> Summary:
    """Return a summary that has read all tables of a results directory, ready for `finish`."""
    summary = Summary(run)
    feed(summary, directory)
    summary.scatter = scatter_times(directory, run.trials)
    if run.superseded:
        summary.superseded = superseded(run, directory)
    summary.switch = compare_counters(run.switch_counters, directory)
    return summary


def feed(summary: Summary, directory: Path, events: Collection[str] | None = None) -> None:
    """Feed a summary with all rows of a directory's tables.

    `events`: only events of these types, and no phases.
    """
    tables = Tables(directory, BY_PHASE if events is None else ())
    try:
        for event in tables.events():
            if events is None or event["type"] in events:
                summary.take(checked(event))
        for phase in tables.phases():
            summary.take_phase(phase)
    except DamagedRecord as error:
        raise ConfigurationError(f"{directory}: the tables do not fit {PLAN}: {error}") from None
    summary.close_ended()


def superseded(run: Run, directory: Path) -> list[Entry]:
    """Return the entries of phases before they were measured again.

    The tables are in the folder SUPERSEDED.
    """
    folder = directory / SUPERSEDED
    if not folder.exists():
        raise ConfigurationError(
            f"{folder} is missing: it has the tables of phases that were measured again; bring it "
            "back from where the results were made"
        )
    before = Summary(
        replace(run, trials=(*run.trials, *run.superseded), expectations=(), superseded=())
    )
    feed(before, directory, ("hello", "port-open", "ready"))
    feed(before, folder)
    first = {trial.id: trial.id if trial.again is None else trial.again
             for trial in (*run.trials, *run.superseded)}  # fmt: skip
    return [
        filled(
            "SupersededEntry",
            entry,
            trial=first[entry["trial"]],
            reason="; ".join(f"{e['port']}: {e['reason']}" for e in entry["tester_limited"])
            or None,
        )
        for entry in before.phases()
    ]
