# SPDX-License-Identifier: BSD-3-Clause
"""Option `--budget`: reduction of a configuration until its run fits into a given time.

A run is shortened in steps: first fewer repeats (a mean is less certain), then shorter trials, then
fewer sizes and loads, of which the extremes are kept. Every reduction is printed. The run's
configuration contains the reduced values, so that the run can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..base import format, quantities
from ..base.errors import ConfigurationError
from ..base.model import Load, Repeats, Run, Trial
from ..config import CheckedConfiguration
from ..config.rules import FRAMES, LOAD, MESSAGES
from ..config.schema import ResolvedSettings
from ..search.suites import SUITES
from .chosen import NS
from .compile import compile_run


class Limits(NamedTuple):
    """Limits of a shortened run: repeats, seconds of a trial, number of sizes and of loads.

    None is no limit.
    """

    repeats: int
    trial_s: float | None
    values: int | None


STEPS = (
    Limits(10, None, None),
    Limits(5, 30.0, None),
    Limits(3, 20.0, None),
    Limits(3, 10.0, None),
    Limits(3, 10.0, 3),
    Limits(2, 5.0, 3),
    Limits(2, 5.0, 2),
    Limits(2, 2.0, 2),
    Limits(1, 2.0, 2),
    Limits(1, 1.0, 2),
    Limits(1, 1.0, 1),
)


@dataclass(frozen=True)
class Fit:
    """Shortened configuration with its run; `words` lists the changes, "" if unchanged."""

    reading: CheckedConfiguration
    run: Run
    words: str = ""


def longest_s(run: Run) -> float:
    """Return the max duration of a run in seconds, if all phases are measured again."""
    again_s = sum(trial.expected_s for trial in run.trials if trial.has_single_phases)
    return run.longest_s + run.remeasure * again_s + (run.locate_s or 0.0)


def fitted(reading: CheckedConfiguration, whole: Run, budget_s: float) -> Fit:
    """Shorten a configuration until its run takes at most `budget_s` and `time_limit`.

    Parameters
    ----------
    whole
        Run of the unchanged configuration, with the time of --locate.

    Raises
    ------
    ConfigurationError
        If even the shortest run takes longer than the budget.
    """
    budget_s = min(budget_s, whole.time_limit_s or math.inf)
    if longest_s(whole) <= budget_s:
        return Fit(reading, whole)
    model = reading.model.model_copy(update={"time_limit": max(1, round(budget_s * NS))})
    reading = replace(reading, model=model)
    least_s = longest_s(whole)
    for limits in STEPS:
        fit = _shorter(reading, whole, limits)
        if fit is not None and longest_s(fit.run) <= budget_s:
            return fit
        least_s = min(least_s, math.inf if fit is None else longest_s(fit.run))
    raise ConfigurationError(
        f"--budget {quantities.DURATION.text(round(budget_s * NS))}: too short: the shortest run "
        f"of this configuration takes {format.human(least_s)}: raise the budget, or name "
        "fewer tests, subtests or ranks"
    )


def _shorter(reading: CheckedConfiguration, whole: Run, limits: Limits) -> Fit | None:
    """Return a configuration reduced to limits; None if it is then invalid.

    If only omitted sizes or loads make the configuration invalid, all sizes and loads are kept.
    """
    model, parameters, words = reading.model, reading.suite_parameters, list[str]()
    if whole.suite is not None:
        caps = {
            **dict.fromkeys(("latency_repeats", "burst_repeats", "repeats"), limits.repeats),
            **dict.fromkeys(("trial_s", "latency_s", "recovery_s"), limits.trial_s),
            "duration_sum_s": min(parameters.trial_s, limits.trial_s or math.inf)
            * (2 * limits.repeats + 1),
        }
        for name, most in caps.items():
            value = getattr(parameters, name)
            if name in SUITES[whole.suite].uses and most is not None and value > most:
                parameters = replace(parameters, **{name: most})
                words.append(f"{name} {most:g}, not {value:g}")
    elif whole.remeasure >= limits.repeats:
        model = model.model_copy(update={"remeasure": limits.repeats - 1})
        words.append(f"remeasure {limits.repeats - 1}, not {whole.remeasure}")
    planned = whole.searches or whole.trials
    every: list[tuple[ResolvedSettings, list[str]]] = []
    for number, test in enumerate(reading.tests):
        trials = [trial for trial in planned if trial.test == number]
        every.append(_shorter_test(test, trials, limits, whole.suite is None))
    for number, (_, own) in enumerate(every):
        several = whole.suite is None and any(own != others for _, others in every)
        words += [f"test {number}: {one}" if several else one for one in own]
    shorter = replace(
        reading, model=model, suite_parameters=parameters, tests=[test for test, _ in every]
    )
    try:
        run = replace(compile_run(shorter), locate_s=whole.locate_s)
    except ConfigurationError:
        if limits.values is None:
            return None
        return _shorter(reading, whole, limits._replace(values=None))
    return Fit(shorter, run, "; ".join(dict.fromkeys(words)))


def _shorter_test(
    test: ResolvedSettings, trials: Sequence[Trial], limits: Limits, times: bool
) -> tuple[ResolvedSettings, list[str]]:
    """Return a test reduced to limits, and the changes in words.

    With `times`, windows and repeats are reduced too. The shorter test has no new sizes or loads,
    no more repeats and no longer windows.
    """
    changes: dict[str, object] = {}
    words: list[str] = []
    if times and test.repeat.most > limits.repeats:
        changes["repeat"] = Repeats(limits.repeats, limits.repeats)
        words.append(f"{format.of(limits.repeats, 'repeat')}, not up to {test.repeat.most}")
    window_s, most_s = max(trial.window_s for trial in trials), limits.trial_s
    if times and test.window is not None and most_s is not None and window_s > most_s:
        most = round(most_s * NS)
        changes |= {"window": most, "interval": test.interval and min(test.interval, most)}
        changes["sweep"] = {
            key: v for key, v in (test.sweep or {}).items() if key != "window"
        } or None
        words.append(f"windows of {most_s:g} s, not {window_s:g} s")

    def fewer(forms: tuple[str, ...], values: Sequence[object], texts: Sequence[str]) -> None:
        """Keep at most `limits.values` values: the largest, the smallest, then the middle one."""
        count = len(values)
        if limits.values is None or count <= limits.values:
            return
        kept = list(dict.fromkeys((count - 1, 0, count // 2)))[: limits.values]
        changes.update(dict.fromkeys(forms) | {forms[1]: [values[place] for place in kept]})
        left = ", ".join(text for place, text in enumerate(texts) if place not in kept)
        words.append(f"omitted: {forms[1].replace('_', ' ')} {left}")

    for forms, unit in ((FRAMES, "frame"), (MESSAGES, "message")):
        each = {trial.sizes for trial in trials if trial.size_unit == unit}
        if all(len(sizes) == 1 for sizes in each):  # several sizes in a trial are an IMIX
            sizes = sorted(size for (size,) in each)
            fewer(forms, sizes, list(map(str, sizes)))
    if all(trial.load.percent for trial in trials):  # loads in bit/s or frames/s stay unchanged
        loads = sorted({trial.load.percent or 0.0 for trial in trials})
        fewer(LOAD, [Load(percent=load) for load in loads], [f"{load:g}%" for load in loads])
    return test.model_copy(update=changes), words
