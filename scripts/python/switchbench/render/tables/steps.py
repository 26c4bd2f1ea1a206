# SPDX-License-Identifier: BSD-3-Clause
"""Tables of dependent steps: IMB's columns beside ours, HPCC's names, kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...base import format
from ...records.document.definitions import at
from .columns import PATH
from .table import PAGE, RATE, Column, Entry, Spec, Summary, count, text

_POINT = "steps.functions.points"
_HEADED = tuple(
    Column(c.title, c.key, c.kind, fold=True, output=PAGE) for c in PATH
)  # the terminal has them in its headings


def _of(key: str) -> Any:
    """The entries of a part of the summary's `steps`."""
    return lambda summary: at(summary, f"steps.{key}") or []


def _time(title: str, key: str, seldom: bool = False, drop: int = 0) -> Column:
    return Column(title, key, unit="µs", defined=f"{_POINT}.{key}", seldom=seldom, drop=drop)


def _number(title: str, key: str, fold: bool = False, drop: int = 0) -> Column:
    return count(title, key, defined=f"{_POINT}.{key}", seldom=True, fold=fold, drop=drop)


def points_of(entry: Entry) -> Iterator[Entry]:
    """A row for each size of a function."""
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
        *_HEADED,
        _number("#bytes", "size"),
        _number("#repetitions", "repetitions"),
        _number("batch", "batch", fold=True, drop=3),
        _time("t_min", "imb.t_min_us"),
        _time("t_max", "imb.t_max_us"),
        _time("t_avg", "imb.t_avg_us"),
        Column("Mbytes/sec", "imb.mbytes_s", defined=f"{_POINT}.imb.mbytes_s", seldom=True),
        Column("port", "port_mbps", unit=RATE, defined=f"{_POINT}.port_mbps", seldom=True),
        _time("p50", "repetition_us.p50"),
        _time("p99", "repetition_us.p99", seldom=True),
        _time("min", "repetition_us.min", drop=1),
        _time("max", "repetition_us.max", drop=1),
        _time("mean from", "ci_us.low", seldom=True, drop=2),
        _time("to", "ci_us.high", seldom=True, drop=2),
        _number("verified", "verified", drop=4),
        _number("lost messages", "lost_messages", fold=True),
        _number("given up", "timeouts", fold=True),
    ),
    lambda summary: (point for entry in _of("functions")(summary) for point in points_of(entry)),
)  # fmt: skip


def outputs_of(suite: Entry) -> Iterator[Entry]:
    """A row for each of HPCC's names."""
    return ({**suite, "name": name, "value": value} for name, value in suite["outputs"].items())


hpcc = Spec(
    "hpcc",
    "HPCC's network measures",
    "Ping-pong of one pair at a time; the natural ring; geometric mean of random rings: as "
    "bench_lat_bw computes them, of each ring the slowest process by the better method, best of "
    "five (8 bytes) and two (2,000,000); GB of 10^9 bytes.",
    (
        text("HPCC's name", "name", about="As in hpccoutf.txt"),
        *_HEADED,
        Column("value", "value", about="In the unit at the name's end (doc/how-to/hpcc-imb.md)"),
    ),
    lambda summary: (output for suite in _of("hpcc")(summary) for output in outputs_of(suite)),
)


def _rings(summary: Summary) -> Iterator[Entry]:
    for suite in _of("hpcc")(summary):
        for ring in suite["rings"]:
            order = "natural" if ring["natural"] else f"random {ring['ring']}"
            yield {**suite, **ring, "order": order}


rings = Spec(
    "rings",
    "HPCC's rings",
    "The time of one send of a process, of which HPCC's figures are made.",
    (
        *PATH,
        text("measure", "measure", about="latency: 8 bytes; bandwidth: 2,000,000 bytes"),
        text("ring", "order", about="The order of ranks"),
        *(
            Column(title, key, unit="µs", defined=f"steps.hpcc.rings.{key}")
            for title, key in (
                ("one send", "time_us"),
                ("sendrecv", "sendrecv_us"),
                ("nonblocking", "nonblocking_us"),
            )
        ),
        text("better", "better", defined="steps.hpcc.rings.better"),
    ),
    _rings,
)

_KERNEL = text("kernel", "pattern", value=format.pattern, about="doc/reference/patterns.md")

kernels = Spec(
    "kernels",
    "Application kernels",
    "What applications send (doc/reference/patterns.md); one repetition is one iteration.",
    (
        _KERNEL,
        *PATH,
        count("iterations", "iterations", defined="steps.kernels.iterations"),
        count("timed", "repetitions", defined="steps.kernels.repetitions"),
        Column("one iteration", "iteration_us", unit="µs", defined="steps.kernels.iteration_us"),
        Column("whole benchmark", "total_s", unit="s", defined="steps.kernels.total_s"),
        *(
            Column(title, f"ci_s.{key}", unit="s", defined="steps.kernels.ci_s", seldom=True,
                   drop=1)
            for title, key in (("from", "low"), ("to", "high"))
        ),
        Column("port", "port_mbps", unit=RATE, defined="steps.kernels.port_mbps"),
    ),
    _of("kernels"),
)  # fmt: skip


def _ranked(summary: Summary) -> Iterator[Entry]:
    for ranking in _of("rankings")(summary):
        for place, path in enumerate(ranking["paths"], start=1):
            yield {**ranking, **path, "place": place}


rankings = Spec(
    "rankings",
    "Networks by kernel",
    "Which network is the fastest for each kernel: the fastest first.",
    (
        _KERNEL,
        count("ranks", "ranks", fold=True),
        count("place", "place", about="By the time of the whole benchmark"),
        text("path", "path", defined="steps.rankings.paths.path"),
        Column("whole benchmark", "total_s", unit="s", defined="steps.rankings.paths.total_s"),
        Column("times the fastest", "ratio_to_fastest",
               defined="steps.rankings.paths.ratio_to_fastest"),
    ),
    _ranked,
)  # fmt: skip
