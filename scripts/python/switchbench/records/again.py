# SPDX-License-Identifier: BSD-3-Clause
"""Phases that were measured again because the tester had limited them (`remeasure`).

Nodes measure them in trials of their own at the end of the run (plan/again.py). Once the run has
ended, their records stand in place of the limited ones, and these in a file of their own. So
whatever reads the records finds each phase once, where it was planned.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from ..base.errors import RunError
from ..base.model import Run
from .directory import RECORDS, SUPERSEDED
from .plan_file import write_plan

_TRIAL = re.compile(rb'"trial"\s*:\s*(\d+)')
_END = "trial"  # the type of what a node says last of a trial

Place = tuple[int, int]  # a trial and one of its phases


def put_in_place(directory: Path, run: Run) -> Run:
    """The run whose phases were each measured once; its plan and its records say the same.

    Of `run.again` a trial counts that every node has ended whole, and of two for the same phase
    the later one. The others are superseded, as what they were to replace would be. RunError where
    the files cannot be written; the records are then as they were.
    """
    if not run.again:
        return run
    records, superseded = directory / RECORDS, directory / SUPERSEDED
    made, aside = records.with_suffix(".part"), superseded.with_suffix(".part")
    try:
        new, moved = _new_lines(records, run)
        with records.open("rb") as lines, made.open("wb") as kept, aside.open("wb") as old:
            for line, counts in _arranged(lines, run, new, moved):
                (kept if counts else old).write(line)
        os.replace(aside, superseded)
        os.replace(made, records)
    except OSError as error:
        made.unlink(missing_ok=True)
        aside.unlink(missing_ok=True)
        raise RunError(f"{directory}: {error.strerror}: {RECORDS} stays as it came") from error
    done = replace(run, again=(), remeasured=len(new), superseded=run.again)
    write_plan(directory, done)
    return done


def _new_lines(records: Path, run: Run) -> tuple[dict[Place, list[bytes]], set[Place]]:
    """Return the lines by the trial and phase that they replace, and where they were measured."""
    lines: dict[Place, list[bytes]] = {}  # by the trial that measured again
    ends: dict[int, set[str]] = {trial.id: set() for trial in run.again}  # nodes that ended it
    with records.open("rb") as file:
        for line in file:
            record = _record_of(line, ends)
            if record is None:
                continue
            if record["type"] == _END:
                if record.get("state") == "complete":
                    ends[record["trial"]].add(record["node"])
            else:
                lines.setdefault((record["trial"], record.get("phase", -1)), []).append(line)
    found: dict[Place, list[bytes]] = {}
    sources: dict[Place, Place] = {}
    for trial in run.again:
        if trial.again is not None and len(ends[trial.id]) == len(run.site.processes):
            for phase in trial.chosen or ():
                came = lines.get((trial.id, phase), [])
                renamed = (from_json(line) | {"trial": trial.again} for line in came)
                found[trial.again, phase] = [to_json(record) + b"\n" for record in renamed]
                sources[trial.again, phase] = (trial.id, phase)
    return found, set(sources.values())


def _arranged(
    lines: Iterable[bytes], run: Run, new: dict[Place, list[bytes]], moved: set[Place]
) -> Iterator[tuple[bytes, bool]]:
    """All lines, and whether each counts. The new ones of a phase stand before the first node's
    end of the trial, and not where they were measured (`moved`)."""
    again = {trial.id for trial in run.again}
    concerned = again | {trial for trial, _ in new}
    left = dict(new)
    for line in lines:
        record = _record_of(line, concerned)
        if record is None:
            yield line, True
            continue
        trial, phase = record["trial"], record.get("phase", -1)
        if record["type"] == _END:
            for place in [place for place in left if place[0] == trial]:
                yield from ((line, True) for line in left.pop(place))
        if (trial, phase) in moved and record["type"] != _END:
            continue
        yield line, trial not in again and (trial, phase) not in new


def _record_of(line: bytes, trials: Iterable[int]) -> dict[str, Any] | None:
    """The record of a line if it is about one of these trials; None for part of a line, too."""
    found = _TRIAL.search(line)
    if found is None or int(found[1]) not in trials:
        return None
    try:
        record = from_json(line)
    except ValueError:
        return None  # the last line was cut, or the reader of records will name it
    return record if record.get("trial") in trials else None
