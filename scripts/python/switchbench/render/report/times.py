# SPDX-License-Identifier: BSD-3-Clause
"""Figures of times by percentile and by message size, and figures of test suites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...analysis.data import Measured
from ...base import format
from ...base.format import unit_for
from ...base.model import LATENCY_KINDS, ONE_WAY
from ...records.rows import Histogram, merged
from ...records.summary_form import Entry, at, by
from ..first_screen import suite_of
from .chart import SPECS, WORDS, ChartAxis, Columns, Figure, Panel, Trace, gaps
from .rates import group, in_parts

Floats = NDArray[np.float64]

# --- by percentile --------------------------------------------------------------------------------

_FEWEST = 20  # times that a distribution needs
_OVERLAID = 8  # curves in a figure
_CURVES = 16  # curves of a kind of times
_NINES = (0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


def percentiles(measured: Measured) -> Iterator[Figure]:
    """Yield figures of the distribution of each kind of times."""
    for kind in LATENCY_KINDS:
        title, what = WORDS["kinds"][kind]
        shared = SPECS["percentiles"]
        tail = replace(
            shared, name=f"percentiles-{kind.replace('_', '-')}",
            title=f"{title}, {shared.title}", definition=what + shared.definition,
        )  # fmt: skip
        common, words, every = _curves(measured, kind)
        for key, curves in in_parts(every, _OVERLAID):
            traces, least = [], 1.0
            for label, times in curves:
                # For each time the share of all times that are at least as long.
                ns, counts = np.array(sorted(times.times.items())).T
                beyond: Floats = (times.count - np.cumsum(counts) + counts) / times.count
                least = min(least, float(beyond.min()))
                columns = {
                    "beyond": (100 * beyond).astype(np.float32),
                    "within": 100 * (1 - beyond),
                    "time": (ns / 1e3).astype(np.float32),
                }
                traces.append(Trace(label or title, columns))
            # The axis is reversed and logarithmic: each nine takes as much room as the one before.
            nines = [share for share in _NINES if share >= least]
            axis = {
                "type": "log",
                "autorange": "reversed",
                "title": {"text": "Percentile"},
                "tickvals": [100 * share for share in nines],
                "ticktext": [f"{100 * (1 - share):.10g} %" for share in nines],
            }
            yield tail.draw(Panel(common, traces, key, words=words, layout={"xaxis": axis}))


def _curves(measured: Measured, kind: str) -> tuple[str, str, list[tuple[str, Histogram]]]:
    """Return the curves of one kind of times: of settings with enough times and the longest tails.

    The result has the settings' shared properties, a sentence on omitted settings, and for each
    curve its label and times.
    """
    plans = measured.summary["plans"]
    of_plan = {id(plan): one for plan in plans if (one := measured.times(plan, kind))}
    few = sum(one.count < _FEWEST for one in of_plan.values())
    # One-way delays below the difference of the clocks are unknown: the summary has no value.
    enough = [
        plan
        for plan in plans
        if id(plan) in of_plan
        and of_plan[id(plan)].count >= _FEWEST
        and (
            kind != ONE_WAY
            or any(at(p, "latency.one_way.p50") is not None for p in measured.phases_of(plan))
        )
    ]
    # Only the smallest size of each ping-pong: another figure shows times by size.
    keys = ("transport", "pattern", "parameters", "ranks", "network")
    single = [p for p in enough if p["traffic"] == "pingpong" and isinstance(p["size"], int)]
    settings = by(single, lambda plan: repr([plan[key] for key in keys]))
    smallest = {
        id(plan)
        for some in settings.values()
        for plan in some
        if plan["size"] == min(p["size"] for p in some)
    }
    common, series = group(
        plan for plan in enough if plan["traffic"] != "pingpong" or id(plan) in smallest
    )
    # Repeats are combined. With fewer than 100 times, the longest time stands for p99.
    times = [merged(of_plan[id(plan)] for plan in repeats) for repeats in series.values()]
    tails_ns = [each.quantile_ns(0.99) or max(each.times) for each in times]
    # The settings with the longest tails, in their own order.
    tails = sorted(range(len(times)), key=lambda place: -tails_ns[place])
    shown = sorted(tails[:_CURVES])
    left = len(times) - len(shown)
    reasons = ((left, "with shorter tails (99 %)"), (few, f"with fewer than {_FEWEST} times"))
    said = [f"{format.of(count, 'setting')} {why}" for count, why in reasons if count]
    words = f" Omitted: {' and '.join(said)}." if said else ""
    labels = list(series)
    return common, words, [(labels[place], times[place]) for place in shown]


# --- by message size ------------------------------------------------------------------------------


def messages(measured: Measured) -> Iterator[Figure]:
    """Yield figures of bandwidth and latency by message size, for each pattern of ping-pongs."""
    curves = [curve for curve in measured.summary["messages"]["curves"] if len(curve["points"]) > 1]
    for number, (pattern, some) in enumerate(by(curves, format.pattern).items(), start=1):
        unit = unit_for(point["bandwidth_mbps"] for curve in some for point in curve["points"])
        traces = []
        for curve in some:
            label = f"{_path(curve)}, {format.of(curve['ranks'], 'node')}"
            columns = {name: f"latency_us.{name}" for name in ("mean", "p50", "p99", "min", "max")}
            shown = _points(curve["points"], bandwidth="bandwidth_mbps", **columns)
            shown["bandwidth"] *= unit.scale
            traces.append(Trace(label, shown))
        panel = Panel(pattern, traces, f"-{number}", unit.name)
        yield SPECS["bandwidth"].draw(panel)
        yield SPECS["latency-by-size"].draw(panel)


def _path(entry: Entry) -> str:
    return f"{entry['transport']} in {entry['network']}"


def _points(points: Sequence[Entry], **keys: str) -> Columns:
    """Return the columns of points: size in bytes and words, and the values at `keys`."""
    sizes = [point["size"] for point in points]
    values = {name: gaps([at(point, key) for point in points]) for name, key in keys.items()}
    return {"size": sizes, "words": list(map(format.size_words, sizes))} | values


def steps(measured: Measured) -> Iterator[Figure]:
    """Yield figures of collective operations: time by message size, a curve per operation."""
    curves = []
    for entry in at(measured.summary, "steps.functions") or ():
        # Logarithmic axes need values above 0.
        known = [p for p in entry["points"] if p["size"] and p["repetition_us"]["mean"] is not None]
        if len(known) > 1:
            curves.append({**entry, "points": known})
    kinds = by(curves, lambda one: f"{format.of(one['ranks'], 'rank')}, {_path(one)}")
    for number, (path, some) in enumerate(kinds.items(), start=1):
        traces = [
            Trace(format.pattern(curve), _points(
                curve["points"], mean="repetition_us.mean", slowest="repetition_us.slowest_rank",
                p50="repetition_us.p50", p99="repetition_us.p99",
            ))
            for curve in some
        ]  # fmt: skip
        yield SPECS["steps"].draw(Panel(path, traces, f"-{number}"))


# --- the graphs that the documents of suites ask for ----------------------------------------------

# round frame rates, frames/s
_ROUND = [digit * 10**power for power in range(10) for digit in (1, 2, 5)]
# linear, since rates between two round ones would have no tick
_OF_ONE_SIZE = ChartAxis("Frames/s", "rate", "counts")


def suites(measured: Measured) -> Iterator[Figure]:
    """Yield a figure of each subtest with a rate by size or a loss by load."""
    suite = suite_of(measured.summary)
    if suite is None:
        return
    every = measured.summary["suite"]["subtests"]
    for subtest in suite.subtests:
        keys = {value.key for value in subtest.values}
        entries = [one for one in every if one["subtest"] == subtest.name]
        where, name = f"{suite.document}, {subtest.section}", f"{suite.name}-{subtest.name}"
        if "theoretical_max" in keys and entries:
            sizes = sorted({entry["size"] for entry in entries})
            title = f"{subtest.title} over frame size"
            spec = SPECS["suite-rates"]
            round_ones = replace(spec.y, more={"tickvals": _ROUND})
            rates = replace(
                spec, name=name, title=title, x=replace(spec.x, more={"tickvals": sizes}),
                y=_OF_ONE_SIZE if len(sizes) == 1 else round_ones,
            )  # fmt: skip
            traces = [Trace("theoretical max", _by_size(entries, "theoretical_max"))]
            ordered = sorted(entries, key=lambda entry: str(entry["variant"]))
            traces += [
                Trace(f"{value.title}, {variant}", _by_size(some, value.key))
                for variant, some in by(ordered, "variant").items()
                for value in subtest.values
                if value.title == "throughput"
            ]
            yield rates.draw(Panel(where, traces))
        elif {"load_percent", "loss"} <= keys and entries:
            losses = replace(SPECS["suite-losses"], name=name, title=f"{subtest.title} over load")
            traces = []
            for entry in entries:
                rows = sorted(entry["rows"], key=lambda row: row["load_percent"] or 0.0)
                named = (("load", "load_percent"), ("loss", "loss"))
                columns = {name: [row[key] for row in rows] for name, key in named}
                label = f"{entry['size']} B, {entry['variant']}"
                # not clipped, so that a marker at 100 % is whole
                traces.append(Trace(label, columns, more={"cliponaxis": False}))
            yield losses.draw(Panel(where, traces))


def _by_size(entries: Iterable[Entry], key: str) -> Columns:
    points = {entry["size"]: entry["rows"][0].get(key) for entry in entries}
    return {"size": sorted(points), "rate": [points[size] for size in sorted(points)]}
