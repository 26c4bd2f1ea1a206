# SPDX-License-Identifier: BSD-3-Clause
"""Figures of times: by percentile, by message size, single times; of suites and of predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...analysis.data import Measured
from ...base import format
from ...base.errors import ConfigurationError, SwitchbenchError
from ...base.format import unit_for
from ...base.model import LATENCY_KINDS, ONE_WAY
from ...predict.models import MODELS, SLOW
from ...predict.predictor import (
    CLOSE,
    PredictedTrial,
    Predictor,
    fabric_of,
    measured_bps,
    points,
    predicted,
    share_close,
)
from ...records.directory import read_plan
from ...records.rows import Histogram, merged
from ...records.store import TableFile
from ...records.summary_form import PlanEntry, at, by
from ...search.suites.declaration import OVERHEAD_BYTES
from ..first_screen import suite_of
from .chart import (
    DASHES,
    LEGEND,
    MARKERS,
    PALETTE,
    SPECS,
    WORDS,
    ChartAxis,
    Columns,
    Figure,
    Panel,
    Plotly,
    Trace,
    gaps,
    marker,
)
from .rates import Entry, group, in_parts

Floats = NDArray[np.float64]

# --- by percentile --------------------------------------------------------------------------------

_FEWEST = 20  # times that a distribution needs
_CURVE = 400  # points of a curve
_OVERLAID = 8  # curves in a figure
_CURVES = 16  # curves of a kind of times
_NINES = (0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


def percentiles(measured: Measured) -> Iterator[Figure]:
    """Yield the distribution of each kind of times."""
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
                # The share of the times that are at least as long as each, itself included.
                ns, counts = np.array(sorted(times.times.items())).T
                beyond: Floats = (times.count - np.cumsum(counts) + counts) / times.count
                kept, least = _kept(1 - beyond), min(least, float(beyond.min()))
                columns = {
                    "beyond": (100 * beyond[kept]).astype(np.float32),
                    "within": 100 * (1 - beyond[kept]),
                    "time": (ns[kept] / 1e3).astype(np.float32),
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
    """Return the settings with enough times that have the longest tails.

    The result has their shared properties, a sentence on omitted settings, and label and times.
    """
    plans = measured.summary["plans"]
    of_plan = {id(plan): one for plan in plans if (one := measured.times(plan, kind))}
    few = sum(one.count < _FEWEST for one in of_plan.values())
    # One-way delays that are shorter than clocks differ by are not known: the summary has none.
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
    common, series = group(_smallest(enough))
    # Repeats are combined. Of fewer than 100 times, the longest is the p99.
    times = [merged(of_plan[id(plan)] for plan in repeats) for repeats in series.values()]
    tails_ns = [each.quantile_ns(0.99) or max(each.times) for each in times]
    # The settings with the longest tails, in their own order.
    tails = sorted(range(len(times)), key=lambda place: -tails_ns[place])
    shown = sorted(tails[:_CURVES])
    # Properties that only omitted settings differ in are no help in a label.
    left = len(times) - len(shown)
    reasons = ((left, "with shorter tails (99 %)"), (few, f"with fewer than {_FEWEST} times"))
    said = [f"{format.of(count, 'setting')} {why}" for count, why in reasons if count]
    words = f" Omitted: {' and '.join(said)}." if said else ""
    labels = list(series)
    return common, words, [(labels[place], times[place]) for place in shown]


def _smallest(plans: Sequence[PlanEntry]) -> list[PlanEntry]:
    """Return the plans with only the smallest size of each ping-pong: sizes have their own figure.

    Ping-pongs of random sizes are left out, as their times are a mixture.
    """
    keys = ("transport", "pattern", "parameters", "ranks", "network")
    single = [p for p in plans if p["traffic"] == "pingpong" and isinstance(p["size"], int)]
    settings = by(single, lambda plan: repr([plan[key] for key in keys]))
    least = {
        id(plan)
        for some in settings.values()
        for plan in some
        if plan["size"] == min(p["size"] for p in some) and "scatter" not in plan["parameters"]
    }
    return [plan for plan in plans if plan["traffic"] != "pingpong" or id(plan) in least]


def _kept(share: Floats) -> NDArray[np.int64]:
    """Return indices of points that represent a curve, evenly by share and by nines at its end."""
    if len(share) <= _CURVE:
        return np.arange(len(share))
    nines = -np.log10(np.maximum(1 - share, 1e-9))
    even = np.searchsorted(share, np.linspace(0, 1, _CURVE // 2))
    tail = np.searchsorted(nines, np.linspace(0, nines[-1], _CURVE // 2))
    ends = np.array([0, len(share) - 1])
    return np.unique(np.clip(np.concatenate([even, tail, ends]), 0, len(share) - 1))


# --- by message size ------------------------------------------------------------------------------


def messages(measured: Measured) -> Iterator[Figure]:
    """Yield bandwidth and latency of each pattern whose messages had more than one size."""
    curves = [curve for curve in measured.summary["messages"]["curves"] if len(curve["points"]) > 1]
    for number, (pattern, some) in enumerate(by(curves, format.pattern).items(), start=1):
        unit = unit_for(curve["peak_mbps"] for curve in some)
        panel = Panel(pattern, list(_styled(some, unit.scale)), f"-{number}", unit.name)
        yield SPECS["bandwidth"].draw(panel)
        yield SPECS["latency-by-size"].draw(panel)


def _path(entry: Entry) -> str:
    return f"{entry['transport']} in {entry['network']}"


def _points(points: Sequence[Entry], **keys: str) -> Columns:
    """Return the columns of points: size in bytes and words, and the values at `keys`."""
    sizes = [point["size"] for point in points]
    values = {name: gaps([at(point, key) for point in points]) for name, key in keys.items()}
    return {"size": sizes, "words": list(map(format.size_words, sizes))} | values


def _styled(curves: Sequence[Entry], scale: float) -> Iterator[Trace]:
    """Yield curves styled by path (colour) and number of nodes (dash and marker).

    If all paths or all numbers are equal, colour, dash and marker all show the other.
    """
    paths = list(dict.fromkeys(map(_path, curves)))
    counts = sorted({curve["ranks"] for curve in curves})
    networks = {curve["network"] for curve in curves}
    for curve in sorted(curves, key=lambda curve: (paths.index(_path(curve)), curve["ranks"])):
        path, ranks = paths.index(_path(curve)), counts.index(curve["ranks"])
        color = PALETTE[(path if len(paths) > 1 else ranks) % len(PALETTE)]
        dash = DASHES[(ranks if len(counts) > 1 else path) % len(DASHES)]
        symbol = MARKERS[(path * len(counts) + ranks) % len(MARKERS)]
        parts = [curve["transport"]] if len(paths) > 1 else []
        parts += [curve["network"]] if len(networks) > 1 else []
        parts += [format.of(curve["ranks"], "node")] if len(counts) > 1 or not parts else []
        times = {name: f"latency_us.{name}" for name in ("mean", "p50", "p99", "min", "max")}
        shown = _points(curve["points"], bandwidth="bandwidth_mbps", **times)
        shown["bandwidth"] *= scale
        style = {
            "mode": "lines+markers",
            "legendgroup": _path(curve),
            "line": {"color": color, "dash": dash},
            "marker": {"color": color, "symbol": symbol, "size": 8},
        }
        yield Trace(", ".join(parts), shown, more=style)


def steps(measured: Measured) -> Iterator[Figure]:
    """Yield figures: time of each collective operation by message size, a curve per transport."""
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
                curve["points"], mean="repetition_us.mean", t_min="imb.t_min_us",
                t_max="imb.t_max_us", p50="repetition_us.p50", p99="repetition_us.p99",
            ))
            for curve in some
        ]  # fmt: skip
        yield SPECS["steps"].draw(Panel(path, traces, f"-{number}"))


# --- single times (Salmon, Stein and Sterling 1998, Figures 3 to 6) -------------------------------
# A run may keep millions of times. The figure draws a few of each small field, so that single
# ones are drawn, too: readers look for the branches and the outliers in these figures.

_DOTS = 6000  # points drawn in a figure
_FIELDS = (160, 120)  # fields of the figure, by size and by time


def scatter(measured: Measured) -> Iterator[Figure]:
    """Yield the times of single messages for each kind of partners, with transports overlaid."""
    entries = measured.summary["messages"]["scatter"]
    columns = ("trial", "repeat", "network", "size", "time_ns")
    table = TableFile(measured.directory, "samples", columns).whole() if entries else None
    if table is None or not table.num_rows:
        return
    large = {"legend": LEGEND | {"itemsizing": "constant"}}
    kinds = by(
        entries, lambda e: repr((_asked(e, "partners"), e["pattern"], e["ranks"], e["network"]))
    )
    for number, some in enumerate(kinds.values(), start=1):
        traces: list[Trace] = []
        drawn = total = 0
        for place, entry in enumerate(some):
            size, time_us = _samples(table, entry)
            chosen = thinned(size, time_us, _DOTS // len(some))
            drawn, total = drawn + len(chosen), total + len(size)
            # Symbols can be told apart without colour and one below the other.
            style = marker(place, 6)
            mark = style | {"symbol": f"{style['symbol']}-open", "opacity": 0.7}
            shown = {
                "size": size[chosen].astype(np.uint32),
                "time": time_us[chosen].astype(np.float32),
            }
            again = f", repeat {entry['repeat'] + 1}" if entry["repeat"] else ""
            label = f"{entry['transport']}{again}"
            more = {"marker": mark, "legendgroup": str(place)}
            traces.append(Trace(label, shown, more=more, style=place))
        said = f"All {total:,} times are drawn."
        if drawn < total:
            said = (
                f"Drawn are {drawn:,} of {total:,} times: of each of {_FIELDS[0]} x {_FIELDS[1]} "
                "fields about equally many."
            )
        kind = _asked(some[0], "partners")
        common = f"{kind} partners" if kind else ""
        common = ", ".join(filter(None, (common, format.of(some[0]["ranks"], "node"))))
        yield SPECS["scatter"].draw(Panel(common, traces, f"-{number}", words=said, layout=large))


def _asked(entry: Entry, key: str) -> Any:
    asked = entry["parameters"]["scatter"]
    return asked.get(key) if isinstance(asked, dict) else None


def _samples(table: Any, entry: Entry) -> tuple[Floats, Floats]:
    """Return the sizes in bytes and half the round trips in µs of an entry's trial."""
    import pyarrow.compute as pc

    for name in ("trial", "repeat", "network"):
        table = table.filter(pc.equal(table[name], entry[name]))
    return table["size"].to_numpy().astype(np.float64), table["time_ns"].to_numpy() / 2000.0


def thinned(size: Floats, time_us: Floats, most: int) -> NDArray[np.int64]:
    """Return the indices of at most `most` points to draw.

    The first point of each field is taken, then the second of each, and so on.
    """
    field = _field(size, 0) * _FIELDS[1] + _field(time_us, 1)
    order = np.argsort(field, kind="stable")
    ordered = field[order]
    # place of each point within its field, from 0
    turn = np.arange(len(field)) - np.searchsorted(ordered, ordered)
    last = np.bincount(turn).cumsum().searchsorted(most)
    whole = order[turn < last]
    rest = order[turn == last]
    left = min(most - len(whole), len(rest))
    chosen = rest[np.linspace(0, len(rest), left, endpoint=False).astype(int)]
    return np.sort(np.concatenate([whole, chosen]))


def _field(values: Floats, axis: int) -> NDArray[np.int64]:
    """Return the number of the field of a logarithmic axis that each value is in."""
    logs = np.log(np.maximum(values, 1e-3))
    span = max(float(logs.max() - logs.min()), 1e-9)
    parts = ((logs - logs.min()) / span * _FIELDS[axis]).astype(np.int64)
    found: NDArray[np.int64] = np.minimum(parts, _FIELDS[axis] - 1)
    return found


# --- the graphs that the documents of suites ask for ----------------------------------------------

_SMOOTH = 200  # points of a theoretical curve
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
            traces = [Trace("theoretical max", _theoretical(entries))]
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
                # At 100 % a marker is whole.
                traces.append(Trace(label, columns, more={"cliponaxis": False}))
            yield losses.draw(Panel(where, traces))


def _by_size(entries: Iterable[Entry], key: str) -> Columns:
    points = {entry["size"]: entry["rows"][0].get(key) for entry in entries}
    return {"size": sorted(points), "rate": [points[size] for size in sorted(points)]}


def _theoretical(entries: Sequence[Entry]) -> Columns:
    """Return the curve of the theoretical maximum rate by frame size.

    The curve needs points between the sizes: on logarithmic axes the maximum lies above a straight
    line, which results could cross.
    """
    found = _by_size(entries, "theoretical_max")
    (low, *_), (*_, high) = found["size"], found["size"]
    known = [(size, fps) for size, fps in zip(*found.values(), strict=True) if fps]
    if low == high or not known:
        return found
    size, fps = known[0]
    sizes = np.geomspace(low, high, _SMOOTH)
    return {"size": sizes, "rate": fps * (size + OVERHEAD_BYTES) / (sizes + OVERHEAD_BYTES)}


# --- predicted and measured -----------------------------------------------------------------------

_AGREES = 0.9  # share of flows within the margin that the best model must predict
_DRAWN = 4_000  # points of a model
_MOST_FLOWS = 400_000  # flows of a run, which take some seconds
_MOST_SLOW_FLOWS = 10_000  # flows for the models that compute flows one by one


def predictions(measured: Measured) -> Iterator[Figure]:
    """Yield the predictions of contention models against measured rates, for each transport.

    The network is that of the results' own lab; a site of real hosts does not describe its
    switches.
    """
    if not any(plan["traffic"] == "stream" for plan in measured.summary["plans"]):
        return
    try:
        run = read_plan(measured.directory)
    except ConfigurationError as error:
        measured.damage.append(f"what models predict is not drawn: {error}")
        return
    try:
        streams = [trial for trial in points(run) if trial.traffic == "stream"]
        fabric = fabric_of(run, None)
        flows = sum(trial.flows for trial in streams)
        if flows > _MOST_FLOWS:
            measured.notes.append(
                f"What models predict is not drawn of {flows:,} flows; `switchbench predict` says "
                "it."
            )
            return
        models = [name for name in MODELS if name not in SLOW or flows <= _MOST_SLOW_FLOWS]
        predictor = Predictor(fabric, models)
        seen = measured_bps({(one.id, one.repeat): one for one in run.trials}, measured.directory)
        found = [one for trial in streams if (one := predicted(trial, predictor, seen)).known]
    except SwitchbenchError as error:
        measured.notes.append(f"What models predict is not drawn: {error}")
        return
    for transport in dict.fromkeys(one.trial.transport for one in found):
        yield _predicted(transport, [one for one in found if one.trial.transport == transport])


def _predicted(transport: str, found: Sequence[PredictedTrial]) -> Figure:
    """Return the figure of all models' predictions, with the best model shown at first."""
    known = [~np.isnan(one.measured) for one in found]
    measured = np.concatenate([o.measured[k] for o, k in zip(found, known, strict=True)]) / 1e6
    unit = unit_for(measured.tolist())
    chosen = np.linspace(0, measured.size, min(_DRAWN, measured.size), endpoint=False).astype(int)
    names = list(found[0].rates)
    close = {m: share_close(np.concatenate([one.errors(m) for one in found])) for m in names}
    ranked = sorted(names, key=lambda model: -close[model])
    traces = list(_band(float(measured.max()) * unit.scale))
    for model in ranked:
        rates = [o.rates[model][k] for o, k in zip(found, known, strict=True)]
        columns = {
            "predicted": (np.concatenate(rates)[chosen] / 1e6 * unit.scale).astype(np.float32),
            "measured": (measured[chosen] * unit.scale).astype(np.float32),
        }
        more: Plotly = {
            "marker": marker(names.index(model), 5) | {"opacity": 0.6},
            "visible": True if model == ranked[0] else "legendonly",
        }
        traces.append(Trace(f"{model}: {close[model]:.1%}", columns, more=more))
    few = f"Drawn are {chosen.size:,} of {measured.size:,} flows."
    words = few if chosen.size < measured.size else ""
    drawn = SPECS["predicted"].draw(Panel(transport, traces, transport, unit.name, words))
    return replace(drawn, disagrees=close[ranked[0]] < _AGREES)


def _band(most: float) -> Iterator[Trace]:
    """Yield the area in which the error is within the margin, and its middle line."""
    ends = [0.0, 1.15 * most]
    x = [*ends, *reversed(ends)]
    y = [(1 + CLOSE) * end for end in ends] + [(1 - CLOSE) * end for end in reversed(ends)]
    plain = {"mode": "lines", "marker": None, "hoverinfo": "skip", "hovertemplate": None}
    area = {"fill": "toself", "fillcolor": "rgba(127,127,127,0.25)"}
    line = {"width": 0, "color": "#7F7F7F"}
    middle = {"width": 1, "color": "#7F7F7F", "dash": "dot"}
    yield Trace("within 10 %", {"predicted": x, "measured": y}, more=plain | area | {"line": line})
    yield Trace(
        "as predicted", {"predicted": ends, "measured": ends}, more=plain | {"line": middle}
    )
