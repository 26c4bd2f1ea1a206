# SPDX-License-Identifier: BSD-3-Clause
"""Dependent steps: collectives and kernels."""

from __future__ import annotations

from typing import Annotated, NotRequired

from typing_extensions import TypedDict

from .forms import (
    CurveSetting,
    Parameters,
    Pattern,
    Ranks,
)


class ImbFigures(TypedDict):
    """By IMB's definitions."""

    t_min_us: Annotated[
        float | None,
        "IMB's t_min: minimum over ranks of the mean time of a repetition, microseconds",
    ]
    t_avg_us: Annotated[
        float | None, "IMB's t_avg: mean over ranks of the mean time of a repetition, microseconds"
    ]
    t_max_us: Annotated[
        float | None,
        "IMB's t_max: maximum over ranks of the mean time of a repetition, microseconds",
    ]
    mbytes_s: Annotated[
        float | None, "IMB's Mbytes/sec, 10^6 bytes; null: IMB gives none for this function"
    ]


class RepetitionTimes(TypedDict):
    """Times of single repetitions."""

    min: Annotated[float | None, "Shortest batch of any rank"]
    mean: Annotated[float | None, "Mean over ranks and repeats"]
    p50: Annotated[float | None, "Median"]
    p99: Annotated[float | None, "99 %; null: fewer than 100 batches"]
    max: Annotated[float | None, "Longest batch of any rank"]


class ConfidenceIntervalEntry(TypedDict):
    """Of confidence."""

    low: Annotated[float | None, "Lower limit"]
    high: Annotated[float | None, "Upper limit"]


class FunctionPoint(TypedDict):
    """One size of a function."""

    size: Annotated[int, "Bytes of a message"]
    trials: Annotated[list[int], "Its repeats' trials, in order"]
    repetitions: Annotated[int, "Timed by a rank in a repeat"]
    batch: Annotated[int, "So many repetitions follow each other with nothing between"]
    imb: Annotated[ImbFigures, "By IMB's definitions"]
    by_repeat: NotRequired[
        Annotated[
            list[ImbFigures],
            "The same of each repeat, in the order of `trials`; null: not measured whole",
        ]
    ]
    repetition_us: Annotated[
        RepetitionTimes,
        "Time of a repetition, microseconds, over all ranks and repeats; of batches their means",
    ]
    ci_us: Annotated[
        ConfidenceIntervalEntry | None,
        "Confidence interval of the mean over repeats, as in `statistics`; null: fewer than two",
    ]
    port_mbps: Annotated[
        float | None,
        "Payload that reached a port, Mbit/s: mean over the ports that received any, as the "
        "receivers saw it",
    ]
    verified: Annotated[
        int | None, "Results that were computed and found right; null: nothing was computed"
    ]


class Function(CurveSetting):
    """A collective over its sizes."""

    points: Annotated[list[FunctionPoint], "By size"]


class KernelEntry(CurveSetting):
    """A kernel: the same steps repeated."""

    trials: Annotated[list[int], "Its repeats' trials, in order"]
    repetitions: Annotated[int, "Iterations that were timed by a rank in a repeat"]
    iterations: Annotated[int, "Of the whole benchmark"]
    iteration_us: Annotated[
        float | None,
        "Time of one iteration, microseconds: the slowest rank's mean, mean over repeats",
    ]
    total_s: Annotated[float | None, "Time of the whole benchmark: iterations x iteration_us"]
    by_repeat_s: NotRequired[
        Annotated[
            list[float | None],
            "The same of each repeat, in the order of `trials`; null: not measured whole",
        ]
    ]
    ci_s: Annotated[
        ConfidenceIntervalEntry | None,
        "Confidence interval of total_s over repeats, as in `statistics`; null: fewer than two",
    ]
    port_mbps: Annotated[
        float | None, "Payload that reached a port, Mbit/s: mean over the ports that received any"
    ]


class RankedPath(TypedDict):
    """A path in a ranking."""

    path: Annotated[str, "A transport in a network"]
    total_s: Annotated[float | None, "Time of the whole benchmark"]
    ratio_to_fastest: Annotated[float | None, "total_s / that of the fastest"]


class Ranking(TypedDict):
    """Paths by the time of a kernel."""

    pattern: Pattern
    parameters: Parameters
    ranks: Ranks
    paths: Annotated[list[RankedPath], "The fastest first"]


class Steps(TypedDict):
    """What goes by steps (doc/how-to/hpcc-imb.md)."""

    functions: Annotated[list[Function], "Times and rates against size"]
    kernels: Annotated[
        list[KernelEntry],
        "Application kernels: the time of the whole benchmark (doc/reference/patterns.md)",
    ]
    rankings: Annotated[list[Ranking], "Kernels that several paths ran"]
