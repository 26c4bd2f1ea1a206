# SPDX-License-Identifier: BSD-3-Clause
"""Figures of one definition from several programs, ours among them (foreign/measures.py).

Ours are made of the summary: of streams and transfers what the receivers verified, of messages
there and back half the round trip. What is of another definition, or at another number of ranks or
another size, stands beside nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import ConfigurationError
from ..foreign import hpcc, imb
from ..foreign.figure import MEGA, Ours
from ..foreign.measures import COMMON, Common
from ..report.data import Measured
from ..results import measures as m
from ..results.directory import load_summary
from .subjects import Subject

_PAIR = 2
FULL_LOAD = 100.0  # % of line: below, a rate says what was asked for


class Key(NamedTuple):
    """What was measured; figures with the same one can be compared."""

    measure: str
    ranks: int
    size: int | None  # bytes of a message; None where it does not matter

    @property
    def common(self) -> Common:
        """Its title, unit and direction."""
        return COMMON[self.measure]


@dataclass(frozen=True)
class Voice:
    """Figures of one program, or of one transport of ours, in one result."""

    name: str
    values: dict[Key, float]  # the mean, where there are several


@dataclass(frozen=True)
class Row:
    """One measure; a value for each voice, None where it has none."""

    key: Key
    values: tuple[float | None, ...]

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Of each value to the first that there is."""
        first = next(value for value in self.values if value is not None)
        return tuple(None if value is None else value / first for value in self.values)


@dataclass(frozen=True)
class Shared:
    """All that several voices have, and how many figures one of them has alone."""

    voices: list[str]
    rows: list[Row]
    alone: int


def shared(subjects: Sequence[Subject]) -> Shared:
    """Empty where no result is another program's: ours stand beside each other elsewhere."""
    if not any(subject.imported for subject in subjects):
        return Shared([], [], 0)
    voices = [voice for subject in subjects for voice in voices_of(subject)]
    every = dict.fromkeys(key for voice in voices for key in voice.values)
    rows = [Row(key, tuple(voice.values.get(key) for voice in voices)) for key in every]
    several = [row for row in rows if sum(value is not None for value in row.values) > 1]
    order = {measure: place for place, measure in enumerate(COMMON)}
    several.sort(key=lambda row: (order[row.key.measure], row.key.ranks, row.key.size or 0))
    heard = [i for i in range(len(voices)) if any(row.values[i] is not None for row in several)]
    return Shared(
        [voices[i].name for i in heard],
        [Row(row.key, tuple(row.values[i] for i in heard)) for row in several],
        len(rows) - len(several),
    )


def voices_of(subject: Subject) -> list[Voice]:
    """One for each program or transport that the result has figures of."""
    found: dict[str, dict[Key, list[float]]] = {}
    for name, key, value in (*_imported(subject.imported), *_own(subject.measured)):
        if value > 0:
            found.setdefault(name, {}).setdefault(key, []).append(value)
    several = len(found) > 1
    return [
        Voice(
            f"{subject.name} {name}" if several else subject.name,
            {key: sum(values) / len(values) for key, values in by_key.items()},
        )
        for name, by_key in found.items()
    ]


_Figure = tuple[str, Key, float]  # whose, of what, how much


def _imported(entries: Sequence[Mapping[str, Any]]) -> Iterator[_Figure]:
    for entry in entries:
        ours = entry["ours"]
        if ours and ours["measure"] in COMMON:
            key = Key(ours["measure"], ours["ranks"], ours["size"])
            yield entry["tool"], key, float(ours["value"])


def _own(measured: Measured) -> Iterator[_Figure]:
    for plan in measured.summary["plans"]:
        if plan["size_unit"] == "message" and isinstance(plan["size"], int):
            for measure, size, value in _of_plan(plan, measured.phases_of(plan)):
                yield plan["transport"], Key(measure, plan["ranks"], size), value
    try:
        summary = load_summary(measured.directory)
        yield from (*_messages(summary["messages"]), *_steps(summary["steps"]))
    except (ConfigurationError, KeyError, TypeError, ValueError):
        return  # of another version: they are not needed for anything else


def _messages(messages: Mapping[str, Any]) -> Iterator[_Figure]:
    """There and back."""
    for curve in messages["curves"]:
        for point in curve["points"]:
            values = (point["latency_us"]["mean"], point["bandwidth_mbps"])
            for measure, value in zip(("pingpong_time", "pingpong_rate"), values, strict=True):
                if value is not None:
                    key = Key(measure, curve["ranks"], point["size"])
                    yield curve["transport"], key, float(value)


def _steps(steps: Mapping[str, Any]) -> Iterator[_Figure]:
    """By IMB's definitions, and under HPCC's names (doc/hpcc-imb.md): as those programs' own."""
    functions = [one for one in steps["functions"] if not _skewed(one)]
    for function in functions:
        name = function["pattern"]
        ranks = _PAIR if name in imb.OF_TWO else function["ranks"]  # the others only wait
        for point in function["points"]:
            time, rate = point["imb"]["t_avg_us"], point["imb"]["mbytes_s"]
            found = [time and imb.time_in_ours(name, ranks, point["size"], time)]
            found.append(rate and imb.rate_in_ours(name, ranks, point["size"], rate * MEGA))
            yield from _voiced(function, found, _told(function, functions))
    for run in steps["hpcc"]:
        outputs = run["outputs"].items()
        found = [value and hpcc.in_ours(name, run["ranks"], value) for name, value in outputs]
        yield from _voiced(run, found)


def _skewed(function: Mapping[str, Any]) -> bool:
    """Whether its messages differ in size, which IMB's do not."""
    return bool(function["parameters"].get("skew", "0%") != "0%")


def _told(function: Mapping[str, Any], all_of_them: Sequence[Mapping[str, Any]]) -> list[str]:
    """What tells it apart from the same function in other settings, which is another figure."""
    alike = [one for one in all_of_them if one["pattern"] == function["pattern"]]
    settings = {name: function["parameters"].get(name) for name in ("batch", "compute")}
    return [
        f"{name}={str(value).lower()}"
        for name, value in settings.items()
        if any(one["parameters"].get(name) != value for one in alike)
    ]


def _voiced(
    entry: Mapping[str, Any], found: Sequence[Ours | None], told: Sequence[str] = ()
) -> Iterator[_Figure]:
    """With the transport, and the algorithm where there are several."""
    algorithm = entry["parameters"].get("algorithm")
    voice = " ".join([entry["transport"], *([algorithm] if algorithm else []), *told])
    for ours in found:
        if ours:
            yield voice, Key(ours.measure, ours.ranks, ours.size), ours.value


def _of_plan(
    plan: Mapping[str, Any], phases: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, int | None, float]]:
    """Measure, size and Mbit/s of one flow."""
    load = plan["asked_load"]
    if plan["traffic"] not in ("stream", "transfer") or (load is not None and load < FULL_LOAD):
        return
    if plan["pattern"] == "ring" and plan["ranks"] > 2:
        yield from _of_ring(plan, phases)
    elif plan["ranks"] == 2:
        size = None if plan["transport"] == "tcp" else plan["size"]  # one stream of bytes
        for flows, measure in ((1, "one_way_rate"), (2, "both_ways_rate")):
            rate = m.mean(_rate(phase) for phase in phases if phase["flows"] == flows)
            if rate is not None:
                yield measure, size, rate


def _of_ring(
    plan: Mapping[str, Any], phases: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, int | None, float]]:
    """HPCC's rings: the natural one, and the geometric mean over random ones."""
    natural = bool(plan["parameters"].get("natural", True))
    forward = plan["parameters"].get("directions") == "forward"
    rates: dict[str, list[float]] = {}
    for phase in phases:
        measure = "ring_rate" if natural and phase["phase"] == 0 else "random_ring_rate"
        if forward:
            measure = "sendrecv_rate"
        rate = _rate(phase)
        if rate:
            rates.setdefault(measure, []).append(rate)
    for measure, values in rates.items():
        logarithms = [math.log(value) for value in values]
        yield measure, plan["size"], math.exp(sum(logarithms) / len(logarithms))


def _rate(phase: Mapping[str, Any]) -> float | None:
    rate: float | None = phase["throughput"]["mean"]
    return rate
