# SPDX-License-Identifier: BSD-3-Clause
"""A comparison's figures against size: of messages by several programs and of steps, of systems
(Figures 1 to 4 of Saini et al. 2005)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from ...base import format
from ...compare.comparison import Compared
from ...compare.match import Pair
from ...compare.settings import SIZE
from ...compare.shared import Shared, SharedRow
from ...compare.subjects import Subject
from ...compare.systems import Compute, system_name
from ..report.chart import ChartAxis, ChartSpec, Panel, Trace
from ..report.figure import Figure, plain
from .tables import micro, size_words

_LEAST_SHARED, _LEAST_STEPS = 3, 2  # sizes of a line
_LOG = {"type": "log", "exponentformat": "none", "separatethousands": True}
_WRITTEN = _LOG | {"automargin": True}
_SIZE = ChartAxis("Message, bytes", "size", "linear", _LOG)

_SHARED = (
    "What several programs measured by one definition (doc/how-to/compare.md), against the "
    "message's size."
)
_STEPS = (
    "IMB's t_avg of each result against the message's size: mean over ranks of a repetition, mean "
    "over repeats (of PingPong half of it). Less is better. Both axes are logarithmic; messages of "
    "0 bytes are in the table alone."
)
_RING = (
    "HPCC's randomly ordered ring bandwidth of a process times the number of processes, against HPL"
)
_STREAM = "HPCC's EP STREAM Copy of a process times the number of processes, against HPL"
_SHARE = ", as a share of it: the less it falls, the better the network grows with the system."


# --- by several programs --------------------------------------------------------------------------


def shared(found: Shared, section: str) -> Iterator[Figure]:
    """A figure for each measure and number of ranks with sizes; others are in the table alone."""
    for (measure, ranks), group in groupby(found.rows, lambda row: row.key[:2]):
        sized = [row for row in group if row.key.size]
        if len(sized) < _LEAST_SHARED:
            continue
        common = sized[0].key.common
        spec = ChartSpec(
            f"shared-{measure}-{ranks}", common.title, _SHARED, section, "line", _SIZE,
            ChartAxis("{unit}", "value", "linear", _WRITTEN), "{words}<br>{value:.4g} {unit}",
            legend=True,
        )  # fmt: skip
        traces = list(_voices(found, sized))
        yield spec.draw(Panel(format.of(ranks, "rank"), traces, unit=micro(common.unit)))


def _voices(found: Shared, rows: Sequence[SharedRow]) -> Iterator[Trace]:
    """What each program has of these rows."""
    for number, voice in enumerate(found.voices):
        known = [row for row in rows if row.values[number] is not None]
        if not known:
            continue
        columns = {
            "size": [row.key.size for row in known],
            "words": [size_words(row.key.size) for row in known],
            "value": [row.values[number] for row in known],
        }
        yield Trace(plain(voice), columns, style=number)


# --- dependent steps ------------------------------------------------------------------------------

_Curve = dict[int, float]  # time in microseconds by size


def steps(every: Sequence[Compared], section: str) -> Iterator[Figure]:
    """A figure for each function at one setting that has several sizes, of all results."""
    titles: dict[tuple[Any, ...], str] = {}
    curves: dict[tuple[Any, ...], dict[str, _Curve]] = {}
    for one in every:
        names = (one.match.base.name, one.match.other.name)
        for row in (row for row in one.plans if row.measure.name == "t_avg"):
            pair = one.match.pairs[row.pair]
            size = pair.base.plans[0]["size"]
            titles.setdefault(_key(pair), f"{pair.base.matrix}, {pair.base.ranks}")
            for name, value in zip(names, (row.base, row.other), strict=True):
                if size and isinstance(size, int) and value is not None:
                    curves.setdefault(_key(pair), {}).setdefault(name, {})[size] = value
    drawn = [key for key in curves if max(map(len, curves[key].values())) >= _LEAST_STEPS]
    for number, key in enumerate(drawn):
        spec = ChartSpec(
            f"steps-{number}", f"Time of {titles[key]}", _STEPS, section, "line", _SIZE,
            ChartAxis("µs", "time", "linear", _WRITTEN), "{words}<br>{time:.4g} µs", legend=True,
        )  # fmt: skip
        traces = []
        for name, curve in curves[key].items():
            words = [format.binary(size) for size in sorted(curve)]
            times = [curve[size] for size in sorted(curve)]
            columns = {"size": sorted(curve), "words": words, "time": times}
            traces.append(Trace(plain(name), columns))
        yield spec.draw(Panel("", traces))


def _key(pair: Pair) -> tuple[Any, ...]:
    """The baseline's case without its size."""
    return tuple((name, word) for name, word in pair.base.settings.items() if name != SIZE)


# --- systems --------------------------------------------------------------------------------------


def _kind(name: str, title: str, definition: str) -> ChartSpec:
    return ChartSpec(
        name, title, f"{definition} Saini et al. (2005).", "", "line",
        ChartAxis("HPL, GFlop/s", "hpl", "linear", _LOG),
        ChartAxis("{unit}", "value", "linear", _WRITTEN),
        "{ranks:d} processes, {hpl:.4g} GFlop/s<br>{value:.4g} {unit}", legend=True,
    )  # fmt: skip


# Each with the field of a system, the unit, the scale, and whether it is divided by HPL.
_KINDS = (
    (_kind("balance-ring", "Accumulated random ring bandwidth", f"{_RING} (Figure 1)."),
     "ring", "GB/s", 1e-9, False),
    (_kind("balance-ring-ratio", "Random ring bandwidth by HPL", f"{_RING}{_SHARE} (Figure 2)."),
     "ring", "B/kFlop", 1e3, True),
    (_kind("balance-stream", "Accumulated STREAM Copy", f"{_STREAM} (Figure 3)."),
     "stream", "GB/s", 1e-9, False),
    (_kind("balance-stream-ratio", "STREAM Copy by HPL",
           f"{_STREAM}, as a share of it (Figure 4)."),
     "stream", "B/Flop", 1.0, True),
)  # fmt: skip


def balance(
    subjects: Sequence[Subject], systems: Sequence[Sequence[Compute]], section: str
) -> Iterator[Figure]:
    """Communication and memory against computing, a line for each system and a point for each
    number of processes; those that any system has values of."""
    for spec, field, unit, scale, by_hpl in _KINDS:
        lines: dict[str, list[Compute]] = {}
        for subject, every in zip(subjects, systems, strict=True):
            for one in every:
                if one.hpl and getattr(one, field):
                    lines.setdefault(system_name(subject.name, one, every), []).append(one)
        traces = []
        for name, known in lines.items():
            values = [one.ratio(field) if by_hpl else getattr(one, field) for one in known]
            columns = {
                "hpl": [(one.hpl or 0.0) / 1e9 for one in known],
                "value": [scale * float(value or 0.0) for value in values],
                "ranks": [one.ranks for one in known],
            }
            traces.append(Trace(plain(name), columns))
        if traces:
            yield replace(spec, section=section).draw(Panel("", traces, unit=unit))
