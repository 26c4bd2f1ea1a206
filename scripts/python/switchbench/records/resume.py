# SPDX-License-Identifier: BSD-3-Clause
"""A run that was cut off: which of its trials and phases are whole, and what is left to measure.

Records of a phase that did not end on all nodes are dropped: it is measured again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..base.errors import ConfigurationError
from ..base.model import Run, Trial
from .directory import RECORDS, SAMPLE_LINES, SAMPLES, replace_bytes
from .expected import PROBE, Expected
from .plan_file import read_plan
from .record_forms import DamagedRecord, Record, parse

Key = tuple[int, int]  # a trial's number and repeat
_OF_THE_END = {"bye", "error", "missing", "unreachable"}


@dataclass(frozen=True)
class Begun:
    """What was measured of a run before it was cut off."""

    whole: frozenset[Key] = frozenset()
    left: Mapping[Key, list[int]] = field(default_factory=dict)  # phases, of trials that began

    def rest(self, run: Run) -> Run:
        """The run without the trials that are whole."""
        left = (trial for trial in run.trials if (trial.id, trial.repeat) not in self.whole)
        return replace(run, trials=tuple(left)) if self.whole else run

    def left_of(self, trial: Trial) -> Trial:
        """Return the trial with the phases that are left of it alone."""
        phases = self.left.get((trial.id, trial.repeat))
        return trial if phases is None else replace(trial, chosen=tuple(phases))


def resume(directory: Path) -> tuple[Run, Begun]:
    """Return the run of a results directory and what it has of it; drop from its records what is
    not whole. ConfigurationError where nothing can be continued."""
    run = replace(read_plan(directory), again=(), remeasured=0)
    if any((directory / name).exists() for name in (SAMPLES, SAMPLE_LINES)):
        raise ConfigurationError(
            f"{directory} keeps single times of messages: to continue it is not implemented"
        )
    begun = _begun(run, directory)
    ended = [trial for trial in run.trials if (trial.id, trial.repeat) in begun.whole]
    if run.searches:
        run = replace(run, trials=tuple(ended))
    elif len(ended) == len(run.trials):
        raise ConfigurationError(f"nothing of {directory} is left to measure: all trials are whole")
    lines = [line for line, record in _records(directory) if _is_kept(record, run, begun)]
    replace_bytes(directory / RECORDS, b"".join(lines))
    return run, begun


def _records(directory: Path) -> Iterator[tuple[bytes, Record]]:
    """The lines that are records; the last one may be cut off."""
    try:
        with (directory / RECORDS).open("rb") as file:
            for line in file:
                try:
                    yield line, parse(line)
                except DamagedRecord:
                    continue
    except OSError as error:
        raise ConfigurationError(f"can't read {directory / RECORDS}: {error.strerror}") from error


def _begun(run: Run, directory: Path) -> Begun:
    expected, nodes = Expected(run), len(run.site.processes)
    trials: defaultdict[Key, set[str]] = defaultdict(set)
    phases: defaultdict[Key, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    stopped: set[Key] = set()
    for _, record in _records(directory):
        if record["type"] not in ("trial", "phase"):
            continue
        try:
            expected.check(record)
        except DamagedRecord:
            continue
        key = record["trial"], record.get("repeat") or 0
        if record["type"] == "trial":
            trials[key].add(record["node"])
        elif record.get("state") == "stopped":
            stopped.add(key)
        else:
            phases[key][record["phase"]].add(record["node"])
    whole, left = set(), {}
    for trial in run.trials:
        key = trial.id, trial.repeat
        if len(trials[key]) == nodes and key not in stopped:
            whole.add(key)
        elif not run.searches and trial.has_single_phases:
            every = trial.chosen or range(trial.phases)
            here = [phase for phase in every if len(phases[key][phase]) < nodes]
            if 0 < len(here) < len(every):
                left[key] = here
    return Begun(frozenset(whole), left)


def _is_kept(record: Record, run: Run, begun: Begun) -> bool:
    """Whether a record is of the run, and of what is whole of it."""
    if "trial" not in record:
        return record["type"] not in _OF_THE_END
    key = record["trial"], record.get("repeat") or 0
    if key in begun.whole:
        return any(key == (trial.id, trial.repeat) for trial in run.trials)
    phase = record.get("phase", PROBE)
    left = begun.left.get(key)
    return left is not None and record["type"] != "trial" and phase != PROBE and phase not in left
