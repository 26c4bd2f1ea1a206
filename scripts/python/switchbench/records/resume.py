# SPDX-License-Identifier: BSD-3-Clause
"""A run that was cut off: which of its trials and phases are whole, and what is left to measure.

Rows of a phase that did not end on all nodes are dropped: it is measured again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import ConfigurationError
from ..base.model import Run, Trial
from .collector import PROBE, Expected
from .plan_file import read_plan
from .record_forms import DamagedRecord
from .rows import Bools
from .schema import MOMENT
from .store import TableFile, Tables, keep

Key = tuple[int, int]  # a trial's number and repeat
_OF_THE_END = {"bye", "error", "missing", "unreachable"}


@dataclass(frozen=True)
class Begun:
    """What was measured of a run before it was cut off."""

    whole: frozenset[Key] = frozenset()
    left: Mapping[Key, list[int]] = field(default_factory=dict)  # phases, of trials that began

    def rest(self, run: Run) -> Run:
        """Return the run without the trials that are whole."""
        left = (trial for trial in run.trials if (trial.id, trial.repeat) not in self.whole)
        return replace(run, trials=tuple(left)) if self.whole else run

    def left_of(self, trial: Trial) -> Trial:
        """Return the trial with the phases that are left of it alone."""
        phases = self.left.get((trial.id, trial.repeat))
        return trial if phases is None else replace(trial, chosen=tuple(phases))


def resume(directory: Path) -> tuple[Run, Begun]:
    """Return the run of a results directory and what it has of it.

    Drop from its tables what is not whole. ConfigurationError where nothing can be continued.
    """
    run = replace(read_plan(directory), again=(), remeasured=0)
    if TableFile(directory, "samples").groups:
        raise ConfigurationError(
            f"{directory} keeps single times of messages: to continue it is not implemented"
        )
    begun = _begun(run, directory)
    ended = [trial for trial in run.trials if (trial.id, trial.repeat) in begun.whole]
    if run.searches:
        run = replace(run, trials=tuple(ended))
    elif len(ended) == len(run.trials):
        raise ConfigurationError(f"nothing of {directory} is left to measure: all trials are whole")
    keep(directory, lambda table, data: _kept(table, data, run, begun))
    return run, begun


def _begun(run: Run, directory: Path) -> Begun:
    expected, nodes = Expected(run), len(run.site.processes)
    tables = Tables(directory, ("phases",), {"phases": (*MOMENT, "node", "state")})
    trials: defaultdict[Key, set[str]] = defaultdict(set)
    for record in tables.events():
        if record["type"] == "trial" and _is_sound(partial(expected.check, record)):
            trials[record["trial"], record.get("repeat") or 0].add(record["node"])
    phases: defaultdict[Key, set[int]] = defaultdict(set)
    stopped: set[Key] = set()
    for phase in tables.phases():
        rows, key = phase.rows("phases"), phase.moment[:2]
        if not _is_sound(partial(expected.check_phase, phase)):
            continue
        if "stopped" in rows.texts("state"):
            stopped.add(key)
        elif len(set(rows.texts("node"))) == nodes:
            phases[key].add(phase.moment[2])
    whole, left = set(), {}
    for trial in run.trials:
        key = trial.id, trial.repeat
        if len(trials[key]) == nodes and key not in stopped:
            whole.add(key)
        elif not run.searches and trial.has_single_phases:
            every = trial.chosen or range(trial.phases)
            here = [phase for phase in every if phase not in phases[key]]
            if 0 < len(here) < len(every):
                left[key] = here
    return Begun(frozenset(whole), left)


def _is_sound(check: Callable[[], None]) -> bool:
    try:
        check()
    except DamagedRecord:
        return False
    return True


def _kept(table: str, data: Any, run: Run, begun: Begun) -> Bools:
    """Return which rows are of the run, and of what is whole of it."""
    here = {(trial.id, trial.repeat) for trial in run.trials} & begun.whole
    events = table == "events"
    types = data["type"].to_pylist() if events else [None] * data.num_rows
    places = zip(types, *(data[name].to_pylist() for name in MOMENT), strict=True)
    kept = []
    for kind, trial, repeat, phase in places:
        if trial is None:
            kept.append(kind not in _OF_THE_END)
        elif (trial, repeat or 0) in here:
            kept.append(True)
        else:
            left = begun.left.get((trial, repeat or 0))
            own = PROBE if phase is None else phase
            kept.append(left is not None and kind != "trial" and own != PROBE and own not in left)
    return np.array(kept, dtype=bool)
