# SPDX-License-Identifier: BSD-3-Clause
"""A suite's searches: each has a planned trial whose load and window it chooses again and again.

`Run.searches` holds these trials as they were planned, at the max load. The trials that are
measured follow from them and from what those before them lost (analysis/searches.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.errors import ConfigurationError
from ..base.model import Load, Repeats, Trial
from ..search.drive import Search
from ..search.estimates import check_time, estimate_s
from ..search.loads import GoalResult, LoadRange
from ..search.multiple import LoadSearch
from ..search.suites import MIN_PART, goals_of
from ..search.trials import ProposedTrial
from .draft import NS
from .trial_document import load_document

# How often a tester-limited trial is repeated: a lab's hosts share one machine's cores.
REPEATS_SITE, REPEATS_LAB = 2, 5
UNITS = {"percent": "% of line", "bps": "bit/s", "fps": "frames/s"}  # of a Load's fields


def searches_of(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """One planned trial per search: of all repeats of a point the first."""
    first = [trial for trial in trials if trial.repeat == 0]
    for trial in first:
        if trial.size_unit != "frame" or trial.traffic != "stream":
            raise ConfigurationError(
                f"suite: it searches loads of frames, and {trial.pattern['name']} over "
                f"{trial.transport} ({trial.traffic}) has none: use dpdk or udp, traffic: stream"
            )
    return tuple(
        replace(trial, id=number, point=number, repeats=Repeats(), search=number)
        for number, trial in enumerate(first)
    )


def range_of(planned: Trial) -> LoadRange:
    """From a hundredth of the load that was planned to all of it, in its unit."""
    [(field, most)] = _given(planned.load).items()
    return LoadRange(most * MIN_PART, most, UNITS[field])


def search_of(
    suite: str, planned: Trial, time_limit_s: float | None, in_lab: bool
) -> Search[tuple[GoalResult, ...]]:
    """A suite's search at its beginning. `time_limit_s`: of this search; None: none."""
    return Search(
        LoadSearch(goals_of(suite), range_of(planned)),
        time_limit_s=float("inf") if time_limit_s is None else time_limit_s,
        overhead_s=overhead_s(planned),
        repeats=REPEATS_LAB if in_lab else REPEATS_SITE,
    )


def overhead_s(planned: Trial) -> float:
    """Seconds of a trial besides its first window: barriers, warmup, drain, further phases."""
    return max(0.0, planned.expected_s - planned.window_s)


def duration_s(suite: str, searches: Sequence[Trial]) -> float:
    """What the searches should take in total, in seconds."""
    goals = goals_of(suite)
    return sum(estimate_s(goals, range_of(each), overhead_s(each)) for each in searches)


def refuse_too_short(suite: str, searches: Sequence[Trial], limit_s: float) -> None:
    """ConfigurationError, with an estimate per search, where the goals can't be met in time."""
    each_s = limit_s / len(searches)
    for planned in searches:
        sizes = " ".join(map(str, planned.sizes))
        names = {f"{planned.pattern['name']} {sizes} B": range_of(planned)}
        found = check_time(goals_of(suite), names, each_s, overhead_s(planned))
        if found is not None:
            raise ConfigurationError(f"time_limit: {found.sentence}")


def chosen_trial(planned: Trial, proposed: ProposedTrial, identity: int) -> Trial:
    """An ordinary trial at the load and of the window that the search proposes."""
    [(field, _)] = _given(planned.load).items()
    load = Load(**{field: round(proposed.value, 6)})  # as summaries have it
    window_ns = round(proposed.duration_s * NS)
    document = planned.document | {
        "id": identity,
        "load": load_document(load),
        "window_ns": window_ns,
    }
    if "interval_ns" in document:
        document["interval_ns"] = min(int(document["interval_ns"]), window_ns)
    return replace(
        planned,
        id=identity,
        point=identity,
        load=load,
        window_s=proposed.duration_s,
        document=document,
        expected_s=overhead_s(planned) + proposed.duration_s,
    )


def _given(load: Load) -> dict[str, float]:
    fields = {name: getattr(load, name) for name in UNITS}
    return {name: value for name, value in fields.items() if value is not None}
