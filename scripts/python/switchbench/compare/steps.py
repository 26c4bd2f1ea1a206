# SPDX-License-Identifier: BSD-3-Clause
"""What results of ours have of dependent steps (doc/how-to/hpcc-imb.md): times of functions and
kernels by repeat, and HPCC's measures, a suite of trials that is compared as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ..analysis.hpcc import TOLD_APART
from ..records.document.steps import Hpcc, Steps
from ..records.document.trials import PlanEntry
from .measures import WHOLE_S

Place = tuple[int, str]  # a trial and its network
Values = Mapping[str, float | None]


def by_trial(steps: Steps) -> dict[Place, Values]:
    """The figures of each repeat of functions and kernels."""
    found: dict[Place, Values] = {}
    for function in steps["functions"]:
        for point in function["points"]:
            repeats = point.get("by_repeat") or [point["imb"]]
            for trial, imb in zip(point["trials"], repeats, strict=False):
                found[trial, function["network"]] = {
                    "t_avg_us": imb["t_avg_us"],
                    "t_max_us": imb["t_max_us"],
                    "mbytes_s": imb["mbytes_s"],
                }
    for kernel in steps["kernels"]:
        times = kernel.get("by_repeat_s") or [kernel["total_s"]]
        for trial, time in zip(kernel["trials"], times, strict=False):
            found[trial, kernel["network"]] = {WHOLE_S: time}
    return found


def suites(steps: Steps, plans: Sequence[PlanEntry]) -> Iterator[tuple[Hpcc, list[PlanEntry]]]:
    """HPCC's measures, each with the plans that it was made of."""
    for suite in steps["hpcc"]:
        members = [plan for plan in plans if _is_of(plan, suite)]
        if members:
            yield suite, members


def _is_of(plan: PlanEntry, suite: Hpcc) -> bool:
    parameters = plan["parameters"]
    swept = {name: value for name, value in parameters.items() if name not in TOLD_APART}
    return "hpcc" in parameters and suite["ranks"] == parameters.get("among", plan["ranks"]) and (
        suite["test"], suite["transport"], suite["network"], suite["parameters"],
    ) == (plan["test"], plan["transport"], plan["network"], swept)  # fmt: skip


def plan_of(suite: Hpcc, members: Sequence[PlanEntry]) -> PlanEntry:
    """A plan that stands for the whole suite; flows' figures are of its parts alone."""
    first = members[0]
    unknown = dict.fromkeys(name for name in first["throughput"] if name not in ("layer", "unit"))
    counts = ("offered_frames", "delivered_frames", "offered_bytes", "delivered_bytes",
              "lost_frames", "cpu_s", "cpu_process_s", "elapsed_s")  # fmt: skip
    return cast("PlanEntry", {
        **first,
        **dict.fromkeys(counts),
        "pattern": "hpcc",
        "parameters": suite["parameters"],
        "ranks": suite["ranks"],
        "size": 0,
        "throughput": {**first["throughput"], **unknown},
    })  # fmt: skip
