# SPDX-License-Identifier: BSD-3-Clause
"""`--budget`: the most telling part of a configuration that fits into a time.

A run is made shorter in steps: fewer repeats first, which tell how certain a mean is; then shorter
trials; then fewer sizes and loads, of which the extremes tell most. What a step takes away is said,
and the run's configuration has what was chosen, so that it can be run again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..base import format, quantities
from ..base.errors import ConfigurationError
from ..base.model import Run, Trial
from ..config import Request, read
from ..search.suites import SUITES
from ..search.suites.declaration import SuiteParameters
from .chosen import NS, parameters_of
from .compile import compile_run

# At most: repeats, seconds of a trial, sizes and loads. None: as configured.
Limits = tuple[int | None, float | None, int | None]
STEPS: tuple[Limits, ...] = (
    (10, None, None),
    (5, 30.0, None),
    (3, 20.0, None),
    (3, 10.0, None),
    (3, 10.0, 3),
    (2, 5.0, 3),
    (2, 5.0, 2),
    (2, 2.0, 2),
    (1, 2.0, 2),
    (1, 1.0, 2),
    (1, 1.0, 1),
)
_TIMES = ("trial_s", "latency_s", "recovery_s")
_REPEATS = ("latency_repeats", "burst_repeats", "repeats")


@dataclass(frozen=True)
class Fit:
    """What of a configuration fits.

    `request` asks for it; `words` says what was changed and omitted, "" if the whole fits;
    `whole_s`, `fits_s`: seconds of the configuration as it is, and of what fits.
    """

    request: Request
    words: str
    whole_s: float
    fits_s: float


def fitted(request: Request, budget_s: float) -> Fit:
    """Return the part of a configuration that runs within a budget, and within its `time_limit`.

    Raises
    ------
    ConfigurationError
        If what can be made shorter takes longer, or the configuration is invalid.
    """
    reading = read(request)
    whole = compile_run(reading)
    budget_s = min(budget_s, whole.time_limit_s or math.inf)
    if whole.longest_s <= budget_s:
        return Fit(request, "", whole.longest_s, whole.longest_s)
    limit = f"time_limit={quantities.DURATION.text(max(1, round(budget_s * NS)))}"
    own = bool(reading.document.data.get("tests"))
    least = whole
    for limits in STEPS:
        changes = list(_changes(whole, limits, own))
        shorter, run = _changed(request, limit, changes)
        if run is None:  # a test takes no such key
            changes = [one for one in changes if _changed(request, limit, [one])[1] is not None]
            shorter, run = _changed(request, limit, changes)
        if run is None:
            continue
        if run.longest_s <= budget_s:
            words = "; ".join(dict.fromkeys(said for _, _, said in changes))
            return Fit(shorter, words, whole.longest_s, run.longest_s)
        least = min(run, least, key=lambda one: one.longest_s)
    raise ConfigurationError(
        f"--budget {quantities.DURATION.text(round(budget_s * NS))}: nothing fits: what can be "
        f"made shorter takes {format.human(least.longest_s)} then: allow that, or name fewer "
        "tests, subtests or ranks"
    )


Change = tuple[str, str, str]  # key and value, as after --set, and what it means


def _changed(request: Request, limit: str, changes: Sequence[Change]) -> tuple[Request, Run | None]:
    """Return the request with changes, and its run; None where a test does not take them."""
    words = (limit, *(f"{key}={value}" for key, value, _ in changes))
    shorter = replace(request, assignments=(*request.assignments, *words))
    try:
        return shorter, compile_run(read(shorter))
    except ConfigurationError:
        return shorter, None


def _changes(run: Run, limits: Limits, own: bool) -> Iterator[Change]:
    """Yield what limits change of a run; `own`: its tests are written down, each with its keys.

    No test gets a size or a load, a repeat or a longer window than it has.
    """
    if run.suite is not None:
        uses = SUITES[run.suite].uses
        yield from _of_parameters(parameters_of(run), uses, limits[0], limits[1])
    planned = run.searches or run.trials
    tests = sorted({trial.test for trial in planned}) if own else [None]
    for test in tests:
        mine = [trial for trial in planned if test is None or trial.test == test]
        before = "" if test is None else f"tests.{test}."
        name = "" if len(tests) == 1 or run.suite else f"test {test}: "
        for key, value, said in _of_test(mine, limits, run.suite is None):
            yield before + key, value, name + said


def _of_test(trials: Sequence[Trial], limits: Limits, times: bool) -> Iterator[Change]:
    """Yield what limits change of one test's trials; `times`: its windows and repeats, too."""
    repeats, trial_s, values = limits
    if times:
        yield from _of_trials(trials, repeats, trial_s)
    if values is None:
        return
    for key, unit in (("frame_sizes", "frame"), ("message_sizes", "message")):
        each = {trial.sizes for trial in trials if trial.size_unit == unit}
        if all(len(sizes) == 1 for sizes in each):  # else an IMIX: one load of several sizes
            sizes = sorted(size for (size,) in each)
            yield from _fewer(key, sizes, values, [str(size) for size in sizes])
    if all(trial.load.percent for trial in trials):  # rates in bit/s or frames/s stay as they are
        loads = sorted({trial.load.percent or 0.0 for trial in trials})
        yield from _fewer("loads", loads, values, [f"{load:g}%" for load in loads])


def _of_parameters(
    asked: SuiteParameters, uses: Sequence[str], repeats: int | None, trial_s: float | None
) -> Iterator[Change]:
    caps = dict.fromkeys(_REPEATS, repeats) | dict.fromkeys(_TIMES, trial_s)
    for name, most in caps.items():
        value = getattr(asked, name)
        if name in uses and most is not None and value > most:
            yield f"suite_parameters.{name}", f"{most:g}", f"{name} {most:g}, not {value:g}"
    if "duration_sum_s" in uses and repeats is not None:
        sum_s = min(asked.trial_s, trial_s or asked.trial_s) * (2 * repeats + 1)
        if sum_s < asked.duration_sum_s:
            said = f"duration_sum_s {sum_s:g}, not {asked.duration_sum_s:g}"
            yield "suite_parameters.duration_sum_s", f"{sum_s:g}", said


def _of_trials(
    trials: Sequence[Trial], repeats: int | None, trial_s: float | None
) -> Iterator[Change]:
    most = max(trial.repeats.most for trial in trials)
    if repeats is not None and most > repeats:
        yield "repeat", str(repeats), f"{format.of(repeats, 'repeat')}, not up to {most}"
    window_s = max(trial.window_s for trial in trials)
    if trial_s is not None and window_s > trial_s:
        text = quantities.DURATION.text(round(trial_s * NS))
        yield "window", text, f"windows of {trial_s:g} s, not {window_s:g} s"


def _fewer(key: str, values: Sequence[float], most: int, words: Sequence[str]) -> Iterator[Change]:
    """Yield at most so many of some values: the largest, the smallest, then the middle one."""
    if len(values) <= most:
        return
    kept = list(dict.fromkeys((len(values) - 1, 0, len(values) // 2)))[:most]
    left = ", ".join(word for place, word in enumerate(words) if place not in kept)
    name = key.replace("_", " ")
    yield key, f"[{', '.join(words[place] for place in kept)}]", f"omitted: {name} {left}"
