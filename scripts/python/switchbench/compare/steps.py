# SPDX-License-Identifier: BSD-3-Clause
"""Times of functions and kernels by repeat, of dependent steps (doc/how-to/hpcc-imb.md)."""

from __future__ import annotations

from collections.abc import Mapping

from ..records.document.steps import Steps
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
