# SPDX-License-Identifier: BSD-3-Clause
"""Dependent steps: the time of each function against size, HPCC's measures by name, kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....analysis.data import Measured
from ....base import format
from ....records.document.definitions import at
from ...tables import sections
from ..chart import ChartAxis, ChartSpec, Panel, Trace
from ..figure import Figure, gaps
from .series import Entry, by

TIME_IS = (
    "Time of one repetition: the mean over ranks and repeats, each rank's own from a barrier until "
    "its last step is complete. The cursor shows IMB's t_min and t_max over ranks (of PingPong IMB "
    "halves them), median and 99 % of single repetitions. Messages of 0 bytes are in the table "
    "alone. Both axes are logarithmic. (Saini et al. 2005, Figures 7 to 15)"
)
LATENCY_IS = (
    "HPCC's latencies under its own names: 8 bytes, microseconds. Ping-pong: half the round trip "
    "of one pair at a time; rings: all processes to both neighbours at the same time, of one send. "
    "(doc/how-to/hpcc-imb.md)"
)
BANDWIDTH_IS = (
    "HPCC's bandwidths under its own names: 2,000,000 bytes, 10^9 bytes a second. Ping-pong: one "
    "pair at a time, one way; rings: what each process sends while all do. (doc/how-to/hpcc-imb.md)"
)
KERNELS_IS = (
    "Time of the whole benchmark: its iterations times the mean of one, of the slowest rank. "
    "(doc/reference/patterns.md)"
)


def _of(measured: Measured, part: str) -> Sequence[Entry]:
    some: Sequence[Entry] = at(measured.summary, f"steps.{part}") or ()
    return some


def _path(entry: Entry) -> str:
    return f"{entry['transport']} in {entry['network']}"


def _ranks(entry: Entry) -> str:
    return format.of(entry["ranks"], "rank")


def _functions(measured: Measured) -> Iterator[Panel]:
    """Times by size of each path and number of ranks."""
    drawn = (_drawn(entry) for entry in _of(measured, "functions"))
    kinds = by(
        [curve for curve in drawn if len(curve["points"]) > 1], lambda e: f"{_ranks(e)}, {_path(e)}"
    )
    for number, (path, some) in enumerate(kinds.items(), start=1):
        yield Panel(path, [_curve(curve) for curve in some], f"-{number}")


def _drawn(entry: Entry) -> Entry:
    """What of a function can stand on logarithmic axes."""
    points = [
        point
        for point in entry["points"]
        if point["size"] and point["repetition_us"]["mean"] is not None
    ]
    return {**entry, "points": points}


def _curve(curve: Entry) -> Trace:
    points = curve["points"]
    shown = {
        name: gaps([point[part][key] for point in points])
        for name, part, key in (
            ("mean", "repetition_us", "mean"), ("t_min", "imb", "t_min_us"),
            ("t_max", "imb", "t_max_us"), ("p50", "repetition_us", "p50"),
            ("p99", "repetition_us", "p99"),
        )
    }  # fmt: skip
    sizes = [point["size"] for point in points]
    words = {"size": sizes, "words": list(map(format.size_words, sizes))}
    return Trace(format.pattern(curve), words | shown)


def _suites(unit: str) -> ChartSpec:
    """A group of bars for each of HPCC's names of this unit, a bar for each run of the suite."""

    def panels(measured: Measured) -> Iterator[Panel]:
        suites = _of(measured, "hpcc")
        names = [name for name in suites[0]["outputs"] if name.endswith(unit)] if suites else []
        labels = [name.removesuffix(f"_{unit}") for name in names]
        bars = [
            Trace(
                f"{_path(suite)}, {_ranks(suite)}",
                {"name": labels, "value": [suite["outputs"][name] for name in names]},
            )
            for suite in suites
        ]
        if bars:
            yield Panel("", bars, unit=unit)

    latency = unit == "usec"
    return ChartSpec(
        f"hpcc-{unit.lower()}",
        f"HPCC's {'latencies' if latency else 'bandwidths'}",
        LATENCY_IS if latency else BANDWIDTH_IS,
        sections.STEPS, "bars",
        ChartAxis("Latency, µs" if latency else "GB/s", "value", "counts"),
        ChartAxis(column="name", kind="names"), "{name}: {value} {unit}", panels,
        values="auto", legend=True, layout={"barmode": "group"},
    )  # fmt: skip


def _by_kernel(measured: Measured) -> Iterator[Panel]:
    """A bar for each kernel on each path."""
    known = [entry for entry in _of(measured, "kernels") if entry["total_s"] is not None]
    bars = [
        Trace(path, {"name": list(map(_name, some)), "total": [e["total_s"] for e in some]})
        for path, some in by(known, _path).items()
    ]
    if bars:
        height = 160 + 34 * len(by(known, _name)) * len(bars)
        yield Panel("", bars, height=height)


def _name(entry: Entry) -> str:
    return f"{format.pattern(entry)}, {_ranks(entry)}"


_KINDS = (
    ChartSpec(
        "steps", "time by message size", TIME_IS, sections.STEPS, "line",
        ChartAxis("Message size", "size", "sizes"), ChartAxis("Repetition, µs", "mean", "log"),
        "{words}: mean {mean} µs<br>over ranks {t_min} to {t_max} µs<br>"
        "median {p50}, 99 % {p99} µs",
        _functions, height=460, legend=True,
    ),
    _suites("usec"),
    _suites("GBytes"),
    ChartSpec(
        "kernels", "Application kernels: the whole benchmark", KERNELS_IS, sections.STEPS, "bars",
        ChartAxis("Time, s", "total", "counts"), ChartAxis(column="name", kind="names"),
        "{name}: {total} s", _by_kernel, values="auto", legend=True, layout={"barmode": "group"},
    ),
)  # fmt: skip


def figures(measured: Measured) -> Iterator[Figure]:
    """All of them."""
    for kind in _KINDS:
        yield from kind(measured)
