# SPDX-License-Identifier: BSD-3-Clause
"""The report's tables of what goes by steps: IMB's columns beside ours, HPCC's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...base import format
from .table import RATE, Column, Entry, Table, make

Summary = Mapping[str, Any]

_POINT = "steps.functions.points"


def _pattern(entry: Entry) -> str:
    return format.pattern(entry)


_PATH = (
    Column("transport", "transport", "text", fold=True),
    Column("network", "network", "text", fold=True),
    Column("ranks", "ranks", "count", fold=True),
)


def _time(title: str, key: str, seldom: bool = False) -> Column:
    return Column(title, key, unit="µs", defined=f"{_POINT}.{key}", seldom=seldom)


def _number(title: str, key: str, seldom: bool = True, fold: bool = False) -> Column:
    return Column(title, key, "count", defined=f"{_POINT}.{key}", seldom=seldom, fold=fold)


_FUNCTIONS = (
    Column("function", "pattern", "text", value=_pattern, about="IMB's, or a pattern by steps"),
    *_PATH,
    _number("#bytes", "size"),
    _number("#repetitions", "repetitions"),
    _number("batch", "batch", fold=True),
    _time("t_min", "imb.t_min_us"),
    _time("t_max", "imb.t_max_us"),
    _time("t_avg", "imb.t_avg_us"),
    Column("Mbytes/sec", "imb.mbytes_s", defined=f"{_POINT}.imb.mbytes_s", seldom=True),
    Column("rate of a port", "port_mbps", unit=RATE, defined=f"{_POINT}.port_mbps", seldom=True),
    _time("p50", "repetition_us.p50"),
    _time("p99", "repetition_us.p99", seldom=True),
    _time("least", "repetition_us.min"),
    _time("greatest", "repetition_us.max"),
    _time("mean from", "ci_us.low", seldom=True),
    _time("to", "ci_us.high", seldom=True),
    _number("verified", "verified"),
    _number("lost messages", "lost_messages"),
    _number("given up", "timeouts"),
)


def _points(summary: Summary) -> Iterator[Entry]:
    for entry in (summary.get("steps") or {}).get("functions", []):
        yield from (entry | point for point in entry["points"])


def functions(summary: Summary) -> Table | None:
    """Each function at each size."""
    about = (
        "t_min, t_max and t_avg are IMB's: over ranks, of the mean repetition (of PingPong half of "
        "it), as are its Mbytes/sec. The rate of a port is what its receiver saw; percentiles are "
        "of single repetitions, or of batches; the interval of the mean is over repeats."
    )
    return make("steps", "Functions by steps", about, _FUNCTIONS, _points(summary))


def _outputs(summary: Summary) -> Iterator[Entry]:
    for suite in (summary.get("steps") or {}).get("hpcc", []):
        for name, value in suite["outputs"].items():
            yield suite | {"name": name, "value": value}


def hpcc(summary: Summary) -> Table | None:
    """HPCC's measures by its names."""
    columns = (
        Column("HPCC's name", "name", "text", about="As in hpccoutf.txt"),
        *_PATH,
        Column("value", "value", about="In the unit at the name's end (doc/hpcc-imb.md)"),
    )
    about = "Ping-pong of one pair at a time; the natural ring; geometric mean of random rings."
    return make("hpcc", "HPCC's network measures", about, columns, _outputs(summary))


def _rings(summary: Summary) -> Iterator[Entry]:
    for suite in (summary.get("steps") or {}).get("hpcc", []):
        for ring in suite["rings"]:
            order = "natural" if ring["natural"] else f"random {ring['ring']}"
            yield suite | ring | {"order": order}


def rings(summary: Summary) -> Table | None:
    """Each ring by either method."""
    columns = (
        *_PATH,
        Column("measure", "measure", "text", about="latency: 8 bytes; bandwidth: 2,000,000 bytes"),
        Column("ring", "order", "text", about="The order of ranks"),
        *(
            Column(title, key, unit="µs", defined=f"steps.hpcc.rings.{key}")
            for title, key in (
                ("one send", "time_us"),
                ("sendrecv", "sendrecv_us"),
                ("nonblocking", "nonblocking_us"),
            )
        ),
        Column("better", "better", "text", defined="steps.hpcc.rings.better"),
    )
    about = "The time of one send of a process, of which HPCC's figures are made."
    return make("rings", "HPCC's rings", about, columns, _rings(summary))


def kernels(summary: Summary) -> Table | None:
    """The time of whole benchmarks."""
    columns = (
        Column("kernel", "pattern", "text", value=_pattern, about="doc/kernels.md"),
        *_PATH,
        *(
            Column(title, key, "count", defined=f"steps.kernels.{key}")
            for title, key in (("iterations", "iterations"), ("timed", "repetitions"))
        ),
        Column("one iteration", "iteration_us", unit="µs", defined="steps.kernels.iteration_us"),
        Column("whole benchmark", "total_s", unit="s", defined="steps.kernels.total_s"),
        *(
            Column(
                title, f"ci_s.{key}", unit="s", defined="steps.kernels.ci_s",
                seldom=True,
            )
            for title, key in (("from", "low"), ("to", "high"))
        ),
        Column("rate of a port", "port_mbps", unit=RATE, defined="steps.kernels.port_mbps"),
    )  # fmt: skip
    about = "What applications send (doc/kernels.md); one repetition is one iteration."
    entries = (summary.get("steps") or {}).get("kernels", [])
    return make("kernels", "Application kernels", about, columns, entries)


def _ranked(summary: Summary) -> Iterator[Entry]:
    for ranking in (summary.get("steps") or {}).get("rankings", []):
        for place, path in enumerate(ranking["paths"], start=1):
            yield ranking | path | {"place": place}


def rankings(summary: Summary) -> Table | None:
    """Which network is the fastest for each kernel."""
    columns = (
        Column("kernel", "pattern", "text", value=_pattern, about="doc/kernels.md"),
        Column("ranks", "ranks", "count", fold=True),
        Column("place", "place", "count", about="By the time of the whole benchmark"),
        Column("path", "path", "text", defined="steps.rankings.paths.path"),
        Column("whole benchmark", "total_s", unit="s", defined="steps.rankings.paths.total_s"),
        Column("times the fastest", "ratio_to_fastest",
               defined="steps.rankings.paths.ratio_to_fastest"),
    )  # fmt: skip
    about = "The fastest first."
    return make("rankings", "Networks by kernel", about, columns, _ranked(summary))
