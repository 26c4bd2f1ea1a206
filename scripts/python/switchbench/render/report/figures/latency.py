# SPDX-License-Identifier: BSD-3-Clause
"""How times are distributed, by percentile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ....analysis.data import Measured, PlanTimes, plan_key
from ....base import format
from ....base.model import LATENCY_KINDS, ONE_WAY
from ....records.document.trials import PlanEntry
from ...tables import sections
from ..chart import ChartAxis, ChartSpec, Panel, Trace
from ..figure import Figure
from .series import group, in_parts

Floats = NDArray[np.float64]

_NAMES = {
    "one_way": "one-way delay",
    "ipdv": "delay variation",
    "round_trip": "round trip of probes",
    "pingpong": "round trip of messages",
}
_WHAT = {
    "one_way": (
        "Time from a frame's stamp at its sender to its arrival at its receiver, the clocks put "
        "right, in microseconds."
    ),
    "ipdv": (
        "How much the one-way delays of two frames differ that follow each other in a stream "
        "(RFC 3393), in microseconds; needs no common clock."
    ),
    "round_trip": ("Round trip of a probe, beside the load, in microseconds, by one clock."),
    "pingpong": "Round trip of a message, in microseconds.",
}
_OF = (
    " Of all flows, phases and repeats of a setting together; from the nodes' histograms, whose "
    "buckets are within 0.8 %."
)
TAIL_IS = (
    " The curve says which time is not exceeded by 90 %, 99 %, 99.9 % of all; it ends where one "
    "single time lies beyond."
)
_LEAST = 20  # times of which a distribution says something
_POINTS = 400  # of a curve
_OVERLAID = 8  # curves in a figure
_CURVES = 16  # of a kind
_NINES = (0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


def figures(measured: Measured) -> Iterator[Figure]:
    """Yield the curves of each kind of times that was measured."""
    for kind in LATENCY_KINDS:
        name = kind.replace("_", "-")
        tail = ChartSpec(
            f"percentiles-{name}", f"{_NAMES[kind]}, by percentile", _WHAT[kind] + _OF + TAIL_IS,
            sections.LATENCY, "line", ChartAxis("Percentile", "beyond", "linear"),
            ChartAxis("Time, µs", "time", "log"), "{within:,.6~r} % within {time} µs",
        )  # fmt: skip
        common, words, every = _curves(measured, kind)
        for key, curves in in_parts(every, _OVERLAID):
            named = [(label or _NAMES[kind], times) for label, times in curves]
            axis = {"xaxis": _percentiles([times for _, times in curves])}
            tails = [_tail(*one) for one in named]
            yield tail.draw(Panel(common, tails, key, words=words, layout=axis))


def _curves(measured: Measured, kind: str) -> tuple[str, str, list[tuple[str, PlanTimes]]]:
    """Return, of settings with enough times, those with the longest tails.

    What they have in common, what is omitted, and each with its label.
    """
    plans = [plan for plan in measured.summary["plans"] if _is_known(measured, plan, kind)]
    counted = (measured.records.times(plan_key(p), kind) for p in measured.summary["plans"])
    few = sum(times is not None and 0 < times.counts.sum() < _LEAST for times in counted)
    found = group(_smallest(plans))
    times = []
    for one in found.series:  # all repeats together
        some = (measured.records.times(plan_key(plan), kind) for plan in one.entries)
        times.append(PlanTimes.merged([repeat for repeat in some if repeat is not None]))
    # The longest tails, in their order.
    tails = sorted(range(len(times)), key=lambda place: -times[place].quantile_ns(0.99))
    shown = sorted(tails[:_CURVES])
    # Nobody compares what is here with what is not.
    left = len(times) - len(shown)
    reasons = ((left, "with shorter tails (99 %)"), (few, f"with fewer than {_LEAST} times"))
    said = [f"{format.of(count, 'setting')} {why}" for count, why in reasons if count]
    words = f" Omitted: {' and '.join(said)}." if said else ""
    return found.common, words, [(found.series[place].label, times[place]) for place in shown]


def _smallest(plans: Sequence[PlanEntry]) -> list[PlanEntry]:
    """Return of ping-pongs the smallest sizes alone: what sizes cost has its own figure.

    Of drawn sizes none: their times are a mixture.
    """
    least: dict[str, int] = {}
    for plan in plans:
        if plan["traffic"] == "pingpong" and isinstance(plan["size"], int):
            least[_path(plan)] = min(plan["size"], least.get(_path(plan), plan["size"]))
    return [
        plan
        for plan in plans
        if plan["traffic"] != "pingpong"
        or ("scatter" not in plan["parameters"] and plan["size"] == least.get(_path(plan)))
    ]


def _path(plan: PlanEntry) -> str:
    return repr(
        [plan["transport"], plan["pattern"], plan["parameters"], plan["ranks"], plan["network"]]
    )


def _is_known(measured: Measured, plan: PlanEntry, kind: str) -> bool:
    """Return whether there are enough times, and one-way delays longer than clocks differ by.

    The summary knows.
    """
    times = measured.records.times(plan_key(plan), kind)
    if times is None or times.counts.sum() < _LEAST:
        return False
    if kind != ONE_WAY:
        return True
    phases = [phase["latency"]["one_way"] for phase in measured.phases_of(plan)]
    return any(times is not None and times["p50"] is not None for times in phases)


# --- curves --------------------------------------------------------------------------------------


def _tail(label: str, times: PlanTimes) -> Trace:
    beyond = _beyond(times)
    kept = _kept(1 - beyond)
    columns = {
        "beyond": (100 * beyond[kept]).astype(np.float32),
        "within": (100 * (1 - beyond[kept])).astype(np.float64),
        "time": (times.values_ns[kept] / 1e3).astype(np.float32),
    }
    return Trace(label, columns)


def _percentiles(every: Sequence[PlanTimes]) -> dict[str, object]:
    """Reversed, logarithmic: each nine takes as much room as the one before."""
    least = min(float(_beyond(times).min()) for times in every)
    nines = [share for share in _NINES if share >= least]
    return {
        "type": "log",
        "autorange": "reversed",
        "title": {"text": "Percentile"},
        "tickvals": [100 * share for share in nines],
        "ticktext": [f"{100 * (1 - share):.10g} %" for share in nines],
    }


def _beyond(times: PlanTimes) -> Floats:
    """By time: the share of all that is as great or greater; never less than one of them."""
    total = int(times.counts.sum())
    before = np.cumsum(times.counts) - times.counts
    beyond: Floats = (total - before) / total
    return beyond


def _kept(share: Floats) -> NDArray[np.int64]:
    """Points of a curve that show: evenly by share, and evenly by nines towards its end."""
    if len(share) <= _POINTS:
        return np.arange(len(share))
    nines = -np.log10(np.maximum(1 - share, 1e-9))
    even = np.searchsorted(share, np.linspace(0, 1, _POINTS // 2))
    tail = np.searchsorted(nines, np.linspace(0, nines[-1], _POINTS // 2))
    ends = np.array([0, len(share) - 1])
    return np.unique(np.clip(np.concatenate([even, tail, ends]), 0, len(share) - 1))
