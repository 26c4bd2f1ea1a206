# SPDX-License-Identifier: BSD-3-Clause
"""What results of ours have of steps (doc/how-to/hpcc-imb.md): times of functions and kernels by
repeat, and HPCC's measures, a suite of trials that is compared as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..analysis.hpcc import TOLD_APART
from .measures import WHOLE_S

Entry = dict[str, Any]
Place = tuple[int, str]  # a trial and its network

_IMB = ("t_avg_us", "t_max_us", "mbytes_s")


def by_trial(steps: Mapping[str, Any]) -> dict[Place, Entry]:
    """The figures of each repeat of functions and kernels; where an older version kept the mean
    over several alone, the first has it and the others have none."""
    found: dict[Place, Entry] = {}
    for function in steps.get("functions") or ():
        for point in function["points"]:
            repeats = point.get("by_repeat") or [point["imb"]]
            values = [{name: repeat[name] for name in _IMB} for repeat in repeats]
            found |= _placed(function, point, values)
    for kernel in steps.get("kernels") or ():
        times = kernel.get("by_repeat_s") or [kernel["total_s"]]
        found |= _placed(kernel, kernel, [{WHOLE_S: time} for time in times])
    return found


def _placed(of: Entry, measured: Entry, values: Sequence[Entry]) -> dict[Place, Entry]:
    return {
        (trial, of["network"]): value
        for trial, value in zip(measured["trials"], values, strict=False)
    }


def only_means(steps: Mapping[str, Any]) -> bool:
    """Whether repeats were made of which an older version kept no figures."""
    points = [point for one in steps.get("functions") or () for point in one["points"]]
    return any(len(one["trials"]) > 1 and not one.get("by_repeat") for one in points) or any(
        len(one["trials"]) > 1 and not one.get("by_repeat_s") for one in steps.get("kernels") or ()
    )


def suites(steps: Mapping[str, Any], plans: Sequence[Entry]) -> Iterator[tuple[Entry, list[Entry]]]:
    """HPCC's measures, each with the plans that it was made of."""
    for suite in steps.get("hpcc") or ():
        members = [plan for plan in plans if _is_of(plan, suite)]
        if members:
            yield suite, members


def _is_of(plan: Entry, suite: Entry) -> bool:
    parameters = plan["parameters"]
    swept = {name: value for name, value in parameters.items() if name not in TOLD_APART}
    return "hpcc" in parameters and suite["ranks"] == parameters.get("among", plan["ranks"]) and (
        suite["test"], suite["transport"], suite["network"], suite["parameters"],
    ) == (plan["test"], plan["transport"], plan["network"], swept)  # fmt: skip


def plan_of(suite: Entry, members: Sequence[Entry]) -> Entry:
    """A plan that stands for the whole suite; flows' figures are of its parts alone."""
    first = members[0]
    unknown = dict.fromkeys(name for name in first["throughput"] if name not in ("layer", "unit"))
    counts = ("offered_frames", "delivered_frames", "offered_bytes", "delivered_bytes",
              "lost_frames", "cpu_s", "cpu_process_s", "elapsed_s")  # fmt: skip
    return first | dict.fromkeys(counts) | {
        "pattern": "hpcc",
        "parameters": suite["parameters"],
        "ranks": suite["ranks"],
        "size": 0,
        "throughput": first["throughput"] | unknown,
    }  # fmt: skip
