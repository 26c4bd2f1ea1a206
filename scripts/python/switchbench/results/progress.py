# SPDX-License-Identifier: BSD-3-Clause
"""How far a run is: a live line on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from ..model import Run, Trial
from . import figures
from .records import Record

_REFRESH_S = 0.25
_PLAIN_S = 1.0  # at most one line in so long


class Course:
    """Where the run is, from the records of all nodes."""

    def __init__(self, run: Run) -> None:
        """Knows what is to come; nothing has begun."""
        self._trials = {(trial.id, trial.repeat): trial for trial in run.trials}
        self._nodes = len(run.site.processes)
        self._ended: dict[tuple[int, int], int] = {}  # nodes that ended the trial
        self._began_s = time.monotonic()
        self._rates: dict[str, float] = {}
        self._done: set[tuple[int, int, int]] = set()
        self.trial: Trial | None = None
        self.phase = 0
        self.step = ""
        self.total_phases = sum(trial.phases for trial in run.trials if not trial.optional)

    def take(self, record: Record) -> bool:
        """Takes a record; whether a phase has just ended."""
        kind = record["type"]
        if kind == "progress":
            self._enter(record)
            self.step = record.get("step") or ""
            if self.step == "window" or record["node"] not in self._rates:
                self._rates[record["node"]] = record.get("delivered_bps") or 0.0
        elif kind == "phase":
            if record["phase"] < 0:  # the probe
                return False
            self._enter(record)
            key = (record["trial"], record.get("repeat") or 0, record["phase"])
            fresh = key not in self._done
            self._done.add(key)
            return fresh
        elif kind == "trial":
            ended = (record["trial"], record.get("repeat") or 0)
            self._ended[ended] = self._ended.get(ended, 0) + 1
        return False

    @property
    def phases_done(self) -> int:
        """Of all trials."""
        return len(self._done)

    @property
    def left_s(self) -> float:
        """What should still come: the trials that have not ended, less what this one took."""
        ahead = sum(
            trial.expected_s
            for key, trial in self._trials.items()
            if self._ended.get(key, 0) < self._nodes and not trial.optional
        )
        current = self.trial.expected_s if self.trial else 0.0
        return max(0.0, ahead - min(time.monotonic() - self._began_s, current))

    @property
    def rate(self) -> str:
        """What all nodes deliver together now."""
        mbps = sum(self._rates.values()) / 1e6
        unit = figures.unit_for([mbps])
        return f"{unit.show(mbps)} {unit.name}"

    @property
    def words(self) -> str:
        """The trial and its phase."""
        trial = self.trial
        if trial is None:
            return ""
        number = list(self._trials).index((trial.id, trial.repeat)) + 1
        ranks = sum(len(part.ranks) for part in trial.parts)
        name = figures.pattern({"pattern": trial.pattern["name"], "parameters": trial.parameters})
        phase = f", phase {self.phase + 1}/{trial.phases}" if trial.phases > 1 else ""
        return f"{number}/{len(self._trials)} {name}, {trial.transport}, {ranks} ranks{phase}"

    def _enter(self, record: Record) -> None:
        key = (record["trial"], record.get("repeat") or 0)
        trial = self._trials.get(key)
        if trial is not None and (self.trial is None or self.trial is not trial):
            if self._ended.get(key, 0):
                return  # the last words of a node that is behind
            self.trial, self._began_s = trial, time.monotonic()
            self._rates = {}
        self.phase = max(0, record["phase"])


class QuietProgress:
    """Shows nothing."""

    def stage(self, text: str) -> None:
        """Nothing."""

    def record(self, record: Record) -> None:
        """Nothing."""

    def turn(self) -> None:
        """Nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing."""


class PlainProgress(QuietProgress):
    """One line for each phase, at most one a second."""

    def __init__(self, run: Run, console: Console) -> None:
        """Lines go to `console`."""
        self._course = Course(run)
        self._console = console
        self._last_s = 0.0

    def stage(self, text: str) -> None:
        """A line."""
        self._say(text)

    def record(self, record: Record) -> None:
        """A line when a phase has ended, unless there was one just now."""
        if self._course.take(record) and time.monotonic() - self._last_s >= _PLAIN_S:
            self._last_s = time.monotonic()
            course = self._course
            left = figures.seconds(course.left_s)
            self._say(f"{course.words} done, {course.rate}, about {left} left")

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


class LiveProgress(QuietProgress):
    """One line that changes in place."""

    def __init__(self, run: Run, console: Console) -> None:
        """The line is shown on `console`, and taken away at the end."""
        self._course = Course(run)
        self._last_s = 0.0
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[rate]}", markup=False),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        total = max(1, self._course.total_phases)
        self._task = self._progress.add_task("", total=total, rate="", left="")

    def stage(self, text: str) -> None:
        """Until the first trial begins, the stage is all there is to say."""
        self._progress.update(self._task, description=text)
        self._progress.refresh()

    def record(self, record: Record) -> None:
        """Kept for the next turn."""
        self._course.take(record)

    def turn(self) -> None:
        """Shows the line anew, a few times a second."""
        if self._course.trial is None or time.monotonic() - self._last_s < _REFRESH_S:
            return
        self._last_s = time.monotonic()
        course = self._course
        step = f" {course.step}" if course.step else ""
        self._progress.update(
            self._task,
            description=course.words + step,
            completed=course.phases_done,
            rate=course.rate,
            left=f"{figures.seconds(course.left_s)} left",
        )
        self._progress.refresh()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()


def make_progress(run: Run, quiet: bool) -> QuietProgress:
    """What fits standard error."""
    console = Console(stderr=True)
    if quiet:
        return QuietProgress()
    return LiveProgress(run, console) if console.is_terminal else PlainProgress(run, console)
