# SPDX-License-Identifier: BSD-3-Clause
"""Tables of dependent steps: IMB's columns beside ours, kernels."""

from __future__ import annotations

from collections.abc import Iterator

from ...base import format
from ...records.document.schema import at
from .columns import HEADED, PATH
from .table import PAGE, RATE, Column, Entry, Spec, count, text


def points_of(entry: Entry) -> Iterator[Entry]:
    """Yield a row for each size of a function."""
    return ({**entry, **point} for point in entry["points"])


functions = Spec(
    "steps",
    "Functions by dependent steps",
    "t_min, t_max and t_avg are IMB's: over ranks, of the mean repetition (of PingPong half of "
    "it), as are its Mbytes/sec: MB of 10^6 bytes, Sendrecv counts twice, Exchange four times what "
    "a rank sends. The rate of a port is what its receiver saw; percentiles are of single "
    "repetitions, or of batches; the interval of the mean is over repeats.",
    (
        text("function", "pattern", value=format.pattern, output=PAGE,
             about="IMB's, or a pattern of dependent steps"),
        *HEADED[1:],
        count("#bytes", "size", seldom=True),
        count("#repetitions", "repetitions", seldom=True),
        count("batch", "batch", seldom=True, fold=True, drop=3),
        Column("t_min", "imb.t_min_us", unit="µs"),
        Column("t_max", "imb.t_max_us", unit="µs"),
        Column("t_avg", "imb.t_avg_us", unit="µs"),
        Column("Mbytes/sec", "imb.mbytes_s", seldom=True),
        Column("port", "port_mbps", unit=RATE, seldom=True),
        Column("p50", "repetition_us.p50", unit="µs"),
        Column("p99", "repetition_us.p99", unit="µs", seldom=True),
        Column("min", "repetition_us.min", unit="µs", drop=1),
        Column("max", "repetition_us.max", unit="µs", drop=1),
        Column("mean from", "ci_us.low", unit="µs", seldom=True, drop=2),
        Column("to", "ci_us.high", unit="µs", seldom=True, drop=2),
        count("verified", "verified", seldom=True, drop=4),
    ),
    lambda summary: (
        point for entry in at(summary, "steps.functions") or () for point in points_of(entry)
    ),
    "steps.functions.points",
)  # fmt: skip


_KERNEL = text("kernel", "pattern", value=format.pattern, about="doc/reference/patterns.md")

kernels = Spec(
    "kernels",
    "Application kernels",
    "What applications send (doc/reference/patterns.md); one repetition is one iteration.",
    (
        _KERNEL,
        *PATH,
        count("iterations", "iterations"),
        count("timed", "repetitions"),
        Column("one iteration", "iteration_us", unit="µs"),
        Column("whole benchmark", "total_s", unit="s"),
        Column("from", "ci_s.low", unit="s", defined="ci_s", seldom=True, drop=1),
        Column("to", "ci_s.high", unit="s", defined="ci_s", seldom=True, drop=1),
        Column("port", "port_mbps", unit=RATE),
    ),
    "steps.kernels",
    "steps.kernels",
)


rankings = Spec(
    "rankings",
    "Networks by kernel",
    "Which network is the fastest for each kernel: the fastest first.",
    (
        _KERNEL,
        count("ranks", "ranks", fold=True),
        count("place", "place", about="By the time of the whole benchmark"),
        text("path", "path"),
        Column("whole benchmark", "total_s", unit="s"),
        Column("times the fastest", "ratio_to_fastest"),
    ),
    lambda summary: (
        {**ranking, **path, "place": place}
        for ranking in at(summary, "steps.rankings") or ()
        for place, path in enumerate(ranking["paths"], start=1)
    ),
    "steps.rankings.paths",
)
