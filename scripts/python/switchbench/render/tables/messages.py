# SPDX-License-Identifier: BSD-3-Clause
"""Tables of ping-pong messages, of computing beside them, and of schedules."""

from __future__ import annotations

from collections.abc import Iterator

from ...base import format
from ...records.document.schema import at
from ..printer import PAGE, RATE, Column, Entry, Spec, count, text
from .network import HEADED, PATH, PATTERN, RANKS, TRANSPORT, TRIAL


def curve_points(curve: Entry) -> Iterator[Entry]:
    """Yield a row for each size."""
    for point in curve["points"]:
        yield {**curve, **point, "worst": point["slowest"]}


curves = Spec(
    "messages",
    "Ping-pong by message size",
    "Half the round trip of one message at a time (doc/reference/messages.md).",
    (
        *HEADED,
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
    lambda summary: (
        point for curve in at(summary, "messages.curves") or () for point in curve_points(curve)
    ),
)  # fmt: skip

peaks = Spec(
    "peaks",
    "Peak bandwidth",
    "The message sizes that reach the peak, half and 90 % of it; a peak at the largest size may "
    "be higher beyond it.",
    (
        PATTERN,
        *PATH,
        Column("peak", "peak_mbps", unit=RATE),
        Column("at", "peak_size", "bytes"),
        Column("half from", "size_at_half_peak", "bytes"),
        Column("90 % from", "size_at_90_percent_peak", "bytes"),
        text("at the end", "peak_at_end", fold=True, about="Whether the peak is at the largest "
             "size"),
    ),
    "messages.curves",
    "messages.curves",
)  # fmt: skip


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
    lambda summary: (
        {**crossing, **part, "either": " or ".join(crossing["paths"])}
        for crossing in at(summary, "messages.crossovers") or ()
        for part in crossing["ranges"]
    ),
)  # fmt: skip

times = Spec(
    "single",
    "Single times of messages of random sizes",
    "Half the round trip; samples.parquet has each.",
    (
        PATTERN,
        *PATH,
        count("messages", "messages", about="With a time"),
        Column("median", "p50_us", unit="µs"),
        Column("p99", "p99_us", unit="µs"),
        Column("max", "max_us", unit="µs"),
        count("lost", "lost", seldom=True),
        TRIAL,
    ),
    "messages.scatter",
    "messages.scatter",
)  # fmt: skip


def changed(slowdown_percent: float | None) -> str:
    """Slower or faster, and by how much."""
    if slowdown_percent is None:
        return format.UNKNOWN
    return f"{abs(slowdown_percent):.1f} % {'faster' if slowdown_percent < 0 else 'slower'}"


def effect(entry: Entry) -> str:
    """Return the same, unless the nodes differ so much among themselves that it may be nothing."""
    slowdown, half_width = entry["slowdown_percent"], entry.get("slowdown_ci_half_width_percent")
    said = changed(slowdown)
    if slowdown is None or half_width is None or abs(slowdown) > half_width:
        return said
    return f"{said}, within noise (± {half_width:.1f} %)"


def slowest_node(entry: Entry) -> str:
    """Return the node that messages slow down the most, and by how much."""
    if entry["max_slowdown_percent"] is None:
        return "no node is known"
    return f"{entry['slowest_node']}: {changed(entry['max_slowdown_percent'])}"


computing = Spec(
    "computing",
    "Concurrent computation",
    "Mflop/s of one thread, alone and concurrent with messages.",
    (
        count("trial", "trial"),
        TRANSPORT,
        Column("share", "share", "percent", "%",
               value=lambda entry: entry["share"] and 100 * entry["share"]),
        Column("alone", "compute_only_mflops", unit="Mflop/s"),
        Column("with messages", "concurrent_mflops", unit="Mflop/s"),
        text("messages made it", "slowdown_percent", value=effect),
        text("worst node", "slowest_node", value=slowest_node),
        Column("piece p99, alone", "piece_us.compute_only.p99", unit="µs", drop=1),
        Column("piece p99, with", "piece_us.concurrent.p99", unit="µs", drop=1),
        Column("piece max, alone", "piece_us.compute_only.max", unit="µs", drop=1),
        Column("piece max, with", "piece_us.concurrent.max", unit="µs", drop=1),
    ),
    "messages.concurrent_computation",
    "messages.concurrent_computation",
)  # fmt: skip


# --- schedules: IMB's columns beside ours, kernels ------------------------------------------------


def function_points(entry: Entry) -> Iterator[Entry]:
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
        point for entry in at(summary, "steps.functions") or () for point in function_points(entry)
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
