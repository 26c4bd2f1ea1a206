# SPDX-License-Identifier: BSD-3-Clause
"""Times that were measured, to hold predictions against."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..analysis.hpcc import about_suite
from ..analysis.sweep import about
from ..base.model import Trial
from ..config.steps import COMPOSITE
from ..records.document.summary import SummaryDocument
from .results import Number, sure_summary
from .times import HALF_TRIP_US, ITERATION_US, PHASES_S, PLAN_S, T_AVG_US, named, plan_times


def measured_times(trials: Mapping[Number, Trial], directory: Path) -> dict[tuple[int, str], float]:
    """By point and `Time.what`: of plans the median of repeats, of messages the median, of steps
    the mean."""
    summary = sure_summary(directory)
    plans: dict[tuple[int, str], list[float]] = defaultdict(list)
    for plan, phases_s in plan_times(summary):
        trial = trials.get((plan["trial"], plan["repeat"]))
        if trial is not None and trial.traffic == "transfer":
            plans[trial.point, PHASES_S].append(phases_s)
            plans[trial.point, PLAN_S].append(plan["elapsed_s"] or 0.0)
    found = {key: statistics.median(seconds) for key, seconds in plans.items()}
    singles = dict(_single_times(summary))
    suites: dict[str, Mapping[str, Any]] = {
        _key(suite): suite["outputs"] for suite in summary["steps"]["hpcc"]
    }
    for trial in trials.values():
        for part in trial.parts:
            curve = _curve(about(trial, part))
            if COMPOSITE in trial.parameters:
                for name, value in suites.get(_key(about_suite(trial, part)), {}).items():
                    if value is not None:
                        found[trial.point, named(name, trial, part.network)] = value
                continue
            for what in (HALF_TRIP_US, T_AVG_US, ITERATION_US):
                size = None if what == ITERATION_US else trial.sizes[0]
                time = singles.get((curve, size, what))
                if time and (what != HALF_TRIP_US or len(trial.parts) == 1):
                    found[trial.point, named(what, trial, part.network)] = time
    return found


def _single_times(
    summary: SummaryDocument,
) -> Iterator[tuple[tuple[str, int | None, str], float | None]]:
    """By curve, size and `Time.what`."""
    for curve in summary["messages"]["curves"]:
        for point in curve["points"]:
            half_us = point["latency_us"]
            typical = half_us["p50"] or half_us["mean"]
            yield (_curve(curve), point["size"], HALF_TRIP_US), typical
    for function in summary["steps"]["functions"]:
        for step in function["points"]:
            yield (_curve(function), step["size"], T_AVG_US), step["imb"]["t_avg_us"]
    for kernel in summary["steps"]["kernels"]:
        yield (_curve(kernel), None, ITERATION_US), kernel["iteration_us"]


def _key(suite: Mapping[str, Any]) -> str:
    """What tells a run of HPCC's suite from others."""
    names = ("transport", "network", "ranks", "parameters")
    return json.dumps([suite[name] for name in names], sort_keys=True)


def _curve(entry: Mapping[str, Any]) -> str:
    """What tells a curve of the summary from others."""
    return json.dumps([_key(entry), entry["pattern"]])
