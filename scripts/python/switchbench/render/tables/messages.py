# SPDX-License-Identifier: BSD-3-Clause
"""Tables of ping-pong messages: curves, which path to use, fits, computing beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...base import format
from ...records.document.definitions import at
from .columns import NETWORK, PATTERN, RANKS, TRANSPORT, TRIAL
from .table import PAGE, RATE, Column, Entry, Spec, Summary, count, text

_PATH = (PATTERN, TRANSPORT, NETWORK, RANKS)


def _of(key: str) -> Any:
    """The entries of a part of the summary's `messages`."""
    return lambda summary: at(summary, f"messages.{key}") or []


def points_of(curve: Entry) -> Iterator[Entry]:
    """A row for each size."""
    for point in curve["points"]:
        yield {**curve, **point, "worst": point["slowest"]}


curves = Spec(
    "messages",
    "Ping-pong by message size",
    "Half the round trip of one message at a time (doc/reference/messages.md).",
    (
        *(
            Column(c.title, c.key, c.kind, value=c.value, fold=True, output=PAGE)
            for c in (PATTERN, TRANSPORT, NETWORK, RANKS)
        ),
        Column("size", "size", "bytes", about="Bytes of a message"),
        count("round trips", "round_trips", about="Measured, of all flows and repeats"),
        count("lost", "lost", fold=True, about="Messages that did not come back"),
        *(
            Column(name, f"latency_us.{name}", unit="µs", about=f"Half the round trip: {words}")
            for name, words in (
                ("min", "the shortest"), ("mean", "the mean"), ("p50", "the median"),
                ("p99", "99 % take no longer"), ("max", "the longest"),
            )
        ),
        Column("bandwidth", "bandwidth_mbps", unit=RATE,
               about="The size by half the mean round trip"),
        text("slowest flow", "worst", about="The flow with the largest mean", drop=1),
    ),
    lambda summary: (point for curve in _of("curves")(summary) for point in points_of(curve)),
)  # fmt: skip


def _size(title: str, key: str) -> Column:
    return Column(title, key, "bytes", defined=f"messages.curves.{key}")


peaks = Spec(
    "peaks",
    "Peak bandwidth",
    "The message sizes that reach the peak, half and 90 % of it; a peak at the largest size may "
    "be higher beyond it.",
    (
        *_PATH,
        Column("peak", "peak_mbps", unit=RATE, defined="messages.curves.peak_mbps"),
        _size("at", "peak_size"),
        _size("half from", "size_at_half_peak"),
        _size("90 % from", "size_at_90_percent_peak"),
        text("at the end", "peak_at_end", fold=True, about="Whether the peak is at the largest "
             "size"),
    ),
    _of("curves"),
)  # fmt: skip


def _ranges(summary: Summary) -> Iterator[Entry]:
    for crossing in _of("crossovers")(summary):
        for part in crossing["ranges"]:
            yield {**crossing, **part, "either": " or ".join(crossing["paths"])}


paths = Spec(
    "paths",
    "Which path to use, by message size",
    "Alike: within 5 %.",
    (
        text("paths", "either", fold=True, about="Transport and network of each"),
        RANKS,
        Column("from size", "from", "bytes", about="Smallest message"),
        Column("to size", "to", "bytes", about="Largest message"),
        text("use", "use", value=lambda part: part["use"] or "either: alike",
             about="The faster path"),
        Column("curves cross at", "crossover_size", "bytes", seldom=True,
               about="The size at which this path becomes the faster one"),
    ),
    _ranges,
)  # fmt: skip

fits = Spec(
    "fits",
    "Single times fitted by latency + size / bandwidth",
    "Half the round trip; the scale and the percentiles are of (time - fit) / fit.",
    (
        *_PATH,
        count("messages", "messages", about="With a time"),
        Column("latency", "latency_us", unit="µs", defined="messages.scatter.latency_us"),
        Column("bandwidth", "bandwidth_mbps", unit=RATE,
               defined="messages.scatter.bandwidth_mbps"),
        Column("scale", "residual_percent", unit="%", defined="messages.scatter.residual_percent"),
        Column("p1", "residual_p1_percent", "signed", "%", drop=1,
               defined="messages.scatter.residual_p1_percent"),
        Column("p99", "residual_p99_percent", "signed", "%", drop=1,
               defined="messages.scatter.residual_p99_percent"),
        count("outliers", "outliers", defined="messages.scatter.outliers"),
        count("lost", "lost", defined="messages.scatter.lost", seldom=True),
        TRIAL,
    ),
    _of("scatter"),
)  # fmt: skip

outliers = Spec(
    "outliers",
    "Outliers of single times",
    "Single messages beyond six scales and twice the fit: the worst twenty of each trial.",
    (
        PATTERN,
        TRANSPORT,
        Column("size", "size", "bytes", about="Bytes of the message"),
        text("flow", "src", value=lambda entry: format.flow(entry),
             about="Source and destination"),
        Column("time", "time_us", unit="µs", about="Half the round trip of this message"),
        Column("÷ fit", "ratio_to_fit", about="The time by what the fit says of its size"),
        Column("begun", "started_s", unit="s", about="When it was sent, after the trial's start"),
        count("trial", "trial"),
    ),
    lambda summary: (
        {**fit, **worst, "trial": fit["trial"]}
        for fit in _of("scatter")(summary)
        for worst in fit["worst"]
    ),
)  # fmt: skip


def changed(slowdown_percent: float | None) -> str:
    """Slower or faster, and by how much."""
    if slowdown_percent is None:
        return format.UNKNOWN
    return f"{abs(slowdown_percent):.1f} % {'faster' if slowdown_percent < 0 else 'slower'}"


def effect(entry: Entry) -> str:
    """The same, unless the nodes differ so much among themselves that it may be nothing."""
    slowdown, half_width = entry["slowdown_percent"], entry.get("slowdown_ci_half_width_percent")
    said = changed(slowdown)
    if slowdown is None or half_width is None or abs(slowdown) > half_width:
        return said
    return f"{said}, within noise (± {half_width:.1f} %)"


def slowest_node(entry: Entry) -> str:
    """The node that messages slow down the most, and by how much."""
    if entry["max_slowdown_percent"] is None:
        return "no node is known"
    return f"{entry['slowest_node']}: {changed(entry['max_slowdown_percent'])}"


def _piece(title: str, part: str, figure: str) -> Column:
    key = f"piece_us.{part}.{figure}"
    return Column(title, key, unit="µs", drop=1,
                  defined=f"messages.concurrent_computation.{key}")  # fmt: skip


computing = Spec(
    "computing",
    "Concurrent computation",
    "Mflop/s of one thread, alone and concurrent with messages.",
    (
        count("trial", "trial"),
        TRANSPORT,
        Column("share", "share", "percent", "%", defined="messages.concurrent_computation.share",
               value=lambda entry: entry["share"] and 100 * entry["share"]),
        Column("alone", "compute_only_mflops", unit="Mflop/s",
               defined="messages.concurrent_computation.compute_only_mflops"),
        Column("with messages", "concurrent_mflops", unit="Mflop/s",
               defined="messages.concurrent_computation.concurrent_mflops"),
        text("messages made it", "slowdown_percent", value=effect,
             defined="messages.concurrent_computation.slowdown_percent"),
        text("worst node", "slowest_node", value=slowest_node,
             defined="messages.concurrent_computation.slowest_node"),
        _piece("piece p99, alone", "compute_only", "p99"),
        _piece("piece p99, with", "concurrent", "p99"),
        _piece("piece max, alone", "compute_only", "max"),
        _piece("piece max, with", "concurrent", "max"),
    ),
    _of("concurrent_computation"),
)  # fmt: skip
