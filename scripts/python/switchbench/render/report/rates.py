# SPDX-License-Identifier: BSD-3-Clause
"""Figures of rates: by nodes, plans, phases, pairs of ports, and over time; losses by pairs.

Entries of a summary become series: the title has the properties that all share, the legend has the
properties in which series differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...analysis import measures as m
from ...analysis.data import Measured
from ...base import format
from ...base.format import Unit, unit_for
from ...base.model import WAITING
from ...records.summary_form import Entry, PhaseEntry, PlanEntry, by
from ..tables import Heading
from .chart import (
    PALETTE,
    SCALE,
    SPECS,
    WORDS,
    Columns,
    Figure,
    Panel,
    Plotly,
    Trace,
    coarse,
    gaps,
    named_rows,
    packed,
    sentence,
    titled,
)

E = TypeVar("E", bound=Entry)
T = TypeVar("T")
Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]

# --- series ---------------------------------------------------------------------------------------

_TRAFFIC = {
    "stream": "",
    "transfer": "transfer",
    "burst": "bursts",
    "pingpong": "ping-pong",
    "schedule": "by steps",
}


_FACETS: dict[str, Callable[[Entry], str]] = {
    "pattern": format.pattern,
    "ranks": lambda entry: format.of(entry["ranks"], "node"),
    "transport": lambda entry: str(entry["transport"]),
    "size": format.size,
    # Ping-pong has no load.
    "load": lambda entry: (
        ""
        if entry["intended_load"] is None or entry["traffic"] == "pingpong"
        else f"{entry['intended_load']:g} % of line"
    ),
    "traffic": lambda entry: _TRAFFIC[entry["traffic"]],
    "network": lambda entry: (
        f"network {entry['network']}{' with others' if entry.get('concurrent_networks') else ''}"
    ),
}


Series = dict[str, list[E]]
"""Entries of each series of a figure, by the properties in which series differ."""


def group(entries: Iterable[E], *axes: str) -> tuple[str, Series[E]]:
    """Return the properties that all given entries share, and the entries grouped into series.

    `axes` are the facets on the figure's own axes; entries that are equal in all other facets, such
    as repeats, become one series.
    """
    names = [name for name in _FACETS if name not in axes]
    found = by(entries, lambda entry: tuple(_FACETS[name](entry) for name in names))
    varies = [len({key[i] for key in found}) > 1 for i in range(len(names))]
    same = next(iter(found), ("",) * len(names))
    # A single network needs no name.
    common = [word for name, word, varied in zip(names, same, varies, strict=True)
              if word and not varied and name != "network"]  # fmt: skip
    return ", ".join(common), {
        ", ".join(word for word, varied in zip(key, varies, strict=True) if varied and word): some
        for key, some in found.items()
    }


def in_parts(every: Sequence[T], most: int) -> Iterator[tuple[str, Sequence[T]]]:
    """Yield parts of at most `most` elements, each with a suffix for the name of its figure."""
    for first in range(0, len(every), most):
        yield f"-{1 + first // most}" if len(every) > most else "", every[first : first + most]


def _rates(entries: Iterable[Sequence[Entry]], scale: float) -> Columns:
    """Return the rates of points as columns of a figure; each point combines its repeats.

    A point has the mean of its repeats' means and totals, the min of minima, the max of maxima.
    """
    points = [[entry["throughput"] for entry in some] for some in entries]
    found: Columns = {
        name: gaps([choose(one[name] for one in some) for some in points]) * scale
        for name, choose in (("min", m.least), ("mean", m.mean), ("max", m.greatest),
                             ("total", m.mean))
    }  # fmt: skip
    shares = gaps([m.mean(one["percent_of_line"] for one in some) for some in points])
    return found | {"share": shares}


def _streams(measured: Measured) -> list[PlanEntry]:
    return [plan for plan in measured.summary["plans"] if plan["traffic"] not in WAITING]


def _known(measured: Measured) -> list[PlanEntry]:
    return [plan for plan in _streams(measured) if plan["throughput"]["mean"] is not None]


# --- by number of nodes ---------------------------------------------------------------------------


def nodes(measured: Measured) -> Iterator[Figure]:
    """Yield figures of rates by number of nodes, for patterns with several (Rauch 2005, Fig. 1)."""
    for pattern, plans in by(_known(measured), "pattern").items():
        common, every = group(plans, "ranks")
        series = {label: some for label, some in every.items() if len(by(some, "ranks")) > 1}
        unit = unit_for(p["throughput"]["max"] for some in series.values() for p in some)
        curves = []
        for label, some in series.items():
            points = dict(sorted(by(some, "ranks").items()))
            shown = _rates(points.values(), unit.scale)
            curves.append(Trace(label, {"ranks": list(points)} | shown))
        if curves:
            counts = sorted({plan["ranks"] for some in series.values() for plan in some})
            layout = {"xaxis": titled("Nodes", tickvals=counts, rangemode="tozero")}
            yield SPECS["nodes"].draw(
                Panel(common, curves, f"-{pattern}", unit.name, layout=layout)
            )


def _transport(plans: Sequence[PlanEntry]) -> str:
    return str(plans[0]["transport"])


# --- plans of several phases ----------------------------------------------------------------------

_OVERLAID_PHASES = 4  # series in one figure by phase: more would hide each other
_BAR = 34  # pixels of a bar, high enough for a name of two lines
_LETTERS = 24  # letters in a line of a name
_VALUE = 1.22  # length of the value axis by that of the longest bar


def plans(measured: Measured) -> Iterator[Figure]:
    """Yield the figures of pattern totals, then figures of each pattern's rates by phase."""
    several = [plan for plan in _known(measured) if plan["phases"] > 1]
    if not several:
        return
    # Settings to compare are neighbours: the same pattern over several paths.
    patterns = list(dict.fromkeys(map(format.pattern, several)))
    common, every = group(sorted(several, key=lambda p: patterns.index(format.pattern(p))))
    named = {
        "<br>".join(wrap(label or _transport(some), _LETTERS)): some
        for label, some in every.items()
    }
    unit = unit_for(plan["throughput"]["mean"] for plan in several)
    yield _whole("plans", common, named, lambda plan: plan["throughput"]["mean"], unit)
    yield _whole("plan-times", common, named, lambda plan: plan["elapsed_s"], Unit("s", 1.0))
    number = 0
    keys = ("pattern", "ranks", "network")
    matrices = by(several, lambda p: repr([p["parameters"].get("order"), *(p[k] for k in keys)]))
    for same in matrices.values():  # series of a pattern over equal nodes are overlaid
        common, overlaid = group(same)
        for _, series in in_parts(list(overlaid.items()), _OVERLAID_PHASES):
            number += 1
            phases = [
                (label, [phase for plan in some for phase in measured.phases_of(plan)])
                for label, some in series
            ]
            unit = unit_for(phase["throughput"]["max"] for _, some in phases for phase in some)
            traces = [
                trace
                for place, (label, some) in enumerate(phases)
                for trace in _band(place, label, some, unit)
            ]
            yield SPECS["phases"].draw(Panel(common, traces, f"-{number}", unit.name))


def _whole(
    name: str, common: str, series: Series[PlanEntry],
    value: Callable[[PlanEntry], float | None], unit: Unit,
) -> Figure:  # fmt: skip
    traces = []
    for transport, labels in by(series, lambda label: _transport(series[label])).items():
        values = [[value(plan) for plan in series[label]] for label in labels]
        columns: Columns = {"of": labels}
        for key, choose in (("mean", m.mean), ("low", m.least), ("high", m.greatest)):
            columns[key] = gaps([choose(some) for some in values]) * unit.scale
        traces.append(Trace(transport, columns, more={"cliponaxis": False}))
    ends = [end for trace in traces for end in trace.columns["mean"].tolist() if end == end]
    # The axis has room for the value behind the longest bar, and all names in their order.
    spec = SPECS[name]
    title = spec.x.title.replace("{unit}", unit.name)
    room = [0, _VALUE * max(ends, default=0.0) or 1.0]
    layout = {
        "yaxis": named_rows(list(series)),
        "xaxis": titled(title, range=room, automargin=True),
    }
    height = 150 + _BAR * len(series)
    return spec.draw(Panel(common, traces, unit=unit.name, height=height, layout=layout))


def _band(number: int, label: str, phases: Sequence[PhaseEntry], unit: Unit) -> Iterator[Trace]:
    """Yield the traces of a series by phase: maximum, minimum with the area between, and mean."""
    points = dict(sorted(by(phases, "phase").items()))
    shown = _rates(points.values(), unit.scale)
    shown["phase"] = np.array(list(points), dtype=np.int32) + 1
    shown["name"] = [p["phase_name"] or f"phase {p['phase'] + 1}" for p, *_ in points.values()]
    color = PALETTE[number % len(PALETTE)]
    faint = ",".join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))
    plain = {"mode": "lines", "marker": None}
    styles: tuple[tuple[str, Plotly, str], ...] = (
        ("max", plain | {"line": {"color": color, "width": 0.8}}, ""),
        ("min", {"fill": "tonexty", "fillcolor": f"rgba({faint},0.15)"}, " ({name})"),
        ("mean", plain | {"line": {"color": color, "dash": "dot", "width": 1.5}},
         ", together {total} {unit}, {share:.2f} % of line"),
    )  # fmt: skip
    for key, style, hover in styles:
        yield Trace(
            f"{label}, {key}" if label else key, shown | {"rate": shown[key]}, style=number,
            hover="{rate} {unit}" + hover, more=style | {"legendgroup": label},
        )  # fmt: skip


# --- source against destination -------------------------------------------------------------------

_CELLS = 6_500_000  # cells of all heat maps of a report, about 20 MB of the file
_MAPS = 24  # settings shown, the most uneven first
_MANY = 1.0  # pairs per rank above which a plan has a map
_PIXELS = 640


def maps(measured: Measured) -> Iterator[Figure]:
    """Yield rate maps of settings with several flows per rank, and loss maps if frames were lost.

    Maps show which pairs of ports, and which modules, are slow or lose frames.
    """
    _, series = group(_streams(measured))
    every = [(s, *both) for s in series.values() if (both := _pairs(measured, s)) is not None]
    even = [np.nanmin(rate) / max(float(np.nanmean(rate)), 1e-9) for _, rate, _ in every]
    shown, room = [], _CELLS
    for place in np.argsort(even, kind="stable")[:_MAPS]:
        _, rate, loss = every[place]
        lost = bool(np.nanmax(loss, initial=0.0) > 0)
        if (cells := rate.size * (1 + lost)) <= room:
            room -= cells
            shown.append((place, lost))
    for number, (place, lost) in enumerate(sorted(shown), start=1):
        plans, rate, loss = every[place]
        axis, (common, _) = _Axis.of(measured, plans, len(every) - len(shown)), group(plans)
        unit = unit_for([float(np.nanmax(rate))])
        title = sentence("throughput by source and destination", common)
        name = f"heat-map-{number}"
        # The rate of a flow at the intended load.
        mean, share = (plans[0]["throughput"][key] for key in ("mean", "percent_of_line"))
        load = plans[0]["intended_load"]
        full = mean * load / share if mean and share and load else None
        yield axis.draw(
            name, title, WORDS["map"], rate * unit.scale, "Payload", unit.name,
            full=full and full * unit.scale,
        )  # fmt: skip
        if lost:
            title = sentence("loss by source and destination", common)
            yield axis.draw(
                f"{name}-loss", title, WORDS["loss_map"], loss, "Lost frames", "%",
                reversescale=True,
            )  # fmt: skip


def _pairs(measured: Measured, plans: Sequence[PlanEntry]) -> tuple[Matrix, Matrix] | None:
    """Return the matrix of rates in Mbit/s and of losses in percent; rows are sources.

    None if the setting has at most one flow per rank, or nothing was observed.
    """
    known = [f for plan in plans if (f := measured.flows(plan)) is not None]
    if not known:
        return None
    size = len(measured.ports)
    code = np.concatenate([flows.src.astype(np.int64) * size + flows.dst for flows in known])
    if np.count_nonzero(np.bincount(code)) <= _MANY * plans[0]["ranks"]:
        return None
    mbps, lost, offered = (
        np.concatenate([getattr(flows, name) for flows in known])
        for name in ("mbps", "lost", "offered")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = _sums(code, mbps, size) / _sums(code, np.ones(len(code)), size, mbps)
        loss = 100 * _sums(code, lost, size) / _sums(code, offered, size, lost)
    return None if np.isnan(rate).all() else (rate, loss)


def _sums(code: Codes, values: Matrix, size: int, where: Matrix | None = None) -> Matrix:
    """Return the sums of observed values by pair of ports; NaN for pairs without values.

    With `where` only values count whose element of `where` was observed, too.
    """
    known = ~np.isnan(values if where is None else where)
    sums: Matrix = np.zeros(size * size)
    sums += np.bincount(code[known], weights=values[known], minlength=size * size)
    sums[np.bincount(code[known], minlength=size * size) == 0] = np.nan
    return sums.reshape(size, size)


@dataclass(frozen=True)
class _Axis:
    """Rows and columns of a rate map: the ports of a network, ordered by module."""

    places: Codes  # indices into the list of ports of the results
    names: list[str]
    bounds: list[tuple[str, float, float]]  # modules with name, first and last place
    left: int = 0  # number of settings without a map

    @classmethod
    def of(cls, measured: Measured, plans: Sequence[PlanEntry], left: int) -> _Axis:
        used = np.zeros(len(measured.ports), dtype=bool)
        for plan in plans:
            flows = measured.flows(plan)
            if flows is not None:
                used[flows.src] = used[flows.dst] = True
        places = np.flatnonzero(used)
        names = [measured.names[place] for place in places]
        bounds: list[tuple[str, float, float]] = []
        for number, place in enumerate(places if measured.modules else ()):
            module, at = measured.modules.get(measured.ports[place], ""), number - 0.5
            begin = bounds.pop()[1] if bounds and bounds[-1][0] == module else at
            bounds.append((module, begin, at + 1))
        return cls(places, names, bounds, left)

    def draw(
        self, name: str, title: str, definition: str, cells: Matrix, measure: str, unit: str,
        full: float | None = None, **more: Any,
    ) -> Figure:  # fmt: skip
        """Return the figure of a map with lines between modules.

        Colours reach from 0 to `full`, or to the greatest value if that is more or `full` is
        unknown. The menu's second choice is the range of the values: it shows small differences
        between ports, which 0 to `full` hides.
        """
        hover = f"%{{y}} to %{{x}}: %{{z:,.4~r}} {unit}" + (" lost" if unit == "%" else "")
        cells = cells[np.ix_(self.places, self.places)]
        low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
        top = max(high, full or 0.0)
        trace = {
            "type": "heatmap",
            "z": packed(coarse(cells)),
            "x": self.names,
            "y": self.names,
            "colorscale": SCALE,
            "hoverongaps": False,
            "colorbar": {"title": {"text": f"{measure}, {unit}", "side": "right"}},
            "hovertemplate": f"{hover}<extra></extra>",
            "zmin": 0.0,
            "zmax": top,
            **more,
        }
        ranges = (("from 0", 0.0, top), ("differences", min(low, 0.98 * high), high))
        buttons = [
            {"label": label, "method": "restyle", "args": [{"zmin": least, "zmax": most}]}
            for label, least, most in ranges
        ]
        menu = {"type": "buttons", "direction": "right", "showactive": True, "buttons": buttons}
        menu |= {"x": 1.0, "xanchor": "right", "y": 1.0, "yanchor": "bottom", "pad": {"b": 6}}
        what = ", the intended load" if full == top else ""
        colours = f"Colours reach from 0 to {format.digits(top)} {unit}{what}."
        side = {"type": "category", "constrain": "domain", "automargin": True, "showgrid": False}
        line = {"type": "line", "line": {"width": 2, "color": "#D55E00"}, "layer": "above"}
        inner, end = [begin for _, begin, _ in self.bounds[1:]], len(self.names) - 0.5
        above = {"y": 1.0, "xref": "x", "yref": "paper", "yanchor": "bottom", "showarrow": False}
        layout = {
            "updatemenus": [menu],
            "xaxis": side
            | {"title": {"text": "Destination", "standoff": 8}, "constraintoward": "right"},
            "yaxis": side | titled("Source", autorange="reversed", scaleanchor="x"),
            "shapes": [
                *(line | {"x0": at, "x1": at, "y0": -0.5, "y1": end} for at in inner),
                *(line | {"y0": at, "y1": at, "x0": -0.5, "x1": end} for at in inner),
            ],
            "annotations": [
                above | {"text": module or "no module", "x": (begin + end) / 2}
                for module, begin, end in self.bounds
                if inner
            ],
        }
        words = "Rows and columns are ordered by module or switch, with lines between them. "
        if not inner:
            words = "Rows and columns are in rank order: no modules or groups are known. "
        if self.left:
            words += f"{self.left} settings with smaller differences between pairs have no map. "
        return Figure(
            name, title, f"{definition}{colours} {words.rstrip()}", [trace], layout, Heading.WHOM,
            _PIXELS, scale=colours,
        )  # fmt: skip


# --- over time ------------------------------------------------------------------------------------

_SETTINGS = 6  # settings shown: those with the deepest falls
_LINES = 10  # flows drawn as lines: readers cannot tell more apart


def course(measured: Measured) -> Iterator[Figure]:
    """Yield figures of rates over time, of settings with flows that fell far below their mean."""
    falls = []
    _, series = group(_streams(measured))
    for plans in series.values():
        # the lowest rate of a flow in percent of its mean, in phases with at least two intervals
        found = [
            (phase["intervals"]["lowest"][0]["percent_of_mean"], plan)
            for plan in plans
            for phase in measured.phases_of(plan)
            if phase["intervals"]["count"] > 1
        ]
        falls += sorted(found, key=lambda pair: pair[0])[:1]
    deepest = sorted(falls, key=lambda pair: pair[0])[:_SETTINGS]
    number = 0
    for pair in falls:
        left = len(falls) - len(deepest)
        if pair in deepest and (figure := _course(measured, number + 1, pair[1], left)):
            number += 1
            yield figure


def _course(measured: Measured, number: int, plan: PlanEntry, left: int) -> Figure | None:
    """Return the figure of the rates over time of the flows that fell far below their means.

    The figure shows the phase of the deepest fall. None without interval results.
    """
    phases = [one for one in measured.phases_of(plan) if one["intervals"]["count"] > 1]
    phase = min(phases, key=lambda one: one["intervals"]["lowest"][0]["percent_of_mean"])
    found = measured.intervals(plan, phase["phase"])
    from_ms, to_ms, mbps = (*map(found.spans.floats, ("from_ms", "to_ms")), found.mbps)
    if not len(mbps):
        return None
    ends = [[measured.places[end] for end in pair] for pair in found.pairs]
    lowest = sorted(zip(*found.lowest, strict=True), key=lambda pair: ends[pair[0]])
    flows, first = np.array(lowest).T
    means = np.bincount(found.flow, mbps)[flows] / np.bincount(found.flow)[flows]
    unit = unit_for([float(mbps.max())])
    traces = []
    for one in sorted(np.argsort(mbps[first] / means, kind="stable")[:_LINES]):
        mine = found.flow == flows[one]
        # An interval's rate is drawn from the beginning of the interval to its end.
        columns = {
            "at": np.concatenate([from_ms[mine][:1], to_ms[mine]]) / 1e3,
            "rate": np.concatenate([mbps[mine][:1], mbps[mine]]) * unit.scale,
        }
        name = " → ".join(measured.names[end] for end in ends[flows[one]])
        traces.append(Trace(name, columns, shape="vh"))
    words = f"{left} settings in which no flow fell as far are omitted. " if left else ""
    words += "One line per flow; time is counted from the opening of the window."
    if len(flows) > len(traces):
        words += f" Of {len(flows):,} flows the {_LINES} that fell the furthest below their means."
    common, _ = group([plan])
    if plan["phases"] > 1:
        common += f", {phase['phase_name'] or 'phase ' + str(phase['phase'] + 1)}"
    return SPECS["course"].draw(Panel(common, traces, f"-{number}", unit.name, words))
