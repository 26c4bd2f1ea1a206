# SPDX-License-Identifier: BSD-3-Clause
"""Figures of one definition from several programs, ours among them (importers/measures.py).

Ours are made of the summary: of streams and transfers what the receivers verified, of messages
there and back half the round trip. Of a streamed ring the slowest process counts, as in HPCC's and
IMB's, which the records say; it is named, as nobody waits in it. What is of another definition, or
at another number of ranks or another size, stands beside nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..analysis import measures as m
from ..analysis.columns import FlowColumns
from ..analysis.data import Measured, plan_key
from ..base import transports
from ..base.errors import ConfigurationError
from ..importers import imb
from ..importers.figure import GPU, MEGA, ComparableFigure
from ..importers.measures import COMMON, Common
from ..records.directory import load_summary
from ..records.document.trials import PlanEntry
from .settings import TRANSPORT
from .subjects import Subject

_PAIR = 2
_RINGS = ("ring_rate", "random_ring_rate", "sendrecv_rate")
STREAMED = "streamed"
GPU_MEMORY = "(GPU memory)"  # goes another way than host memory: PCIe, copies
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
    program: str  # without the result's name
    values: dict[Key, float]  # the mean, where there are several


@dataclass(frozen=True)
class SharedRow:
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
    rows: list[SharedRow]
    alone: int


def shared(subjects: Sequence[Subject]) -> Shared:
    """Empty where no result is another program's: ours stand beside each other elsewhere."""
    if not any(subject.imported for subject in subjects):
        return Shared([], [], 0)
    voices = [voice for subject in subjects for voice in voices_of(subject)]
    every = dict.fromkeys(key for voice in voices for key in voice.values)
    rows = [SharedRow(key, tuple(voice.values.get(key) for voice in voices)) for key in every]
    several = [row for row in rows if sum(value is not None for value in row.values) > 1]
    order = {measure: place for place, measure in enumerate(COMMON)}
    several.sort(key=lambda row: (order[row.key.measure], row.key.ranks, row.key.size or 0))
    heard = [i for i in range(len(voices)) if any(row.values[i] is not None for row in several)]
    return Shared(
        [voices[i].name for i in heard],
        [SharedRow(row.key, tuple(row.values[i] for i in heard)) for row in several],
        len(rows) - len(several),
    )


def voices_of(subject: Subject) -> list[Voice]:
    """One for each program or transport that the result has figures of."""
    found: dict[str, dict[Key, list[float]]] = {}
    for name, key, value in (*_imported(subject.imported), *_own(subject)):
        if value > 0:
            found.setdefault(name, {}).setdefault(key, []).append(value)
    several = len(found) > 1 or any(name.endswith(GPU_MEMORY) for name in found)
    return [
        Voice(
            f"{subject.name} {name}" if several else subject.name,
            name,
            {key: sum(values) / len(values) for key, values in by_key.items()},
        )
        for name, by_key in found.items()
    ]


_Figure = tuple[str, Key, float]  # whose, of what, how much


def _imported(entries: Sequence[Mapping[str, Any]]) -> Iterator[_Figure]:
    for entry in entries:
        ours = entry["comparable"]
        if ours and ours["measure"] in COMMON:
            key = Key(ours["measure"], ours["ranks"], ours["size"])
            gpu = f" {GPU_MEMORY}" if entry.get("memory") == GPU else ""
            yield f"{entry['tool']}{gpu}", key, float(ours["value"])


def _own(subject: Subject) -> Iterator[_Figure]:
    """Of the part of the result that `--by` takes."""
    networks = {plan["network"] for plan in subject.measured.summary["plans"]}
    for plan in (plan for case in subject.cases for plan in case.plans):
        if plan["size_unit"] == "message" and isinstance(plan["size"], int):
            for measure, size, value in _of_plan(plan, subject.measured):
                streamed = f" {STREAMED}" if measure in _RINGS else ""
                key = Key(measure, plan["ranks"], size)
                yield _path(plan, networks) + streamed, key, value
    yield from _steps(subject, networks)
    with suppress(ConfigurationError, KeyError, TypeError, ValueError):
        # Of another version they are not here: they are needed for nothing else.
        yield from _messages(load_summary(subject.measured.directory)["messages"], subject)


def _path(entry: Mapping[str, Any], networks: Collection[str]) -> str:
    """The transport, and the network where the result has several."""
    several = len(networks) > 1
    return f"{entry['transport']} in {entry['network']}" if several else str(entry["transport"])


def _messages(messages: Mapping[str, Any], subject: Subject) -> Iterator[_Figure]:
    """There and back."""
    transports = {case.settings[TRANSPORT] for case in subject.cases}
    networks = {curve["network"] for curve in messages["curves"]}
    for curve in (curve for curve in messages["curves"] if curve["transport"] in transports):
        for point in curve["points"]:
            values = (point["latency_us"]["mean"], point["bandwidth_mbps"])
            for measure, value in zip(("pingpong_time", "pingpong_rate"), values, strict=True):
                if value is not None:
                    key = Key(measure, curve["ranks"], point["size"])
                    yield _path(curve, networks), key, float(value)


def _steps(subject: Subject, networks: Collection[str]) -> Iterator[_Figure]:
    """By IMB's definitions (doc/how-to/hpcc-imb.md): as that program's own."""
    steps = subject.measured.summary["steps"]
    mine = {(plan["trial"], plan["network"]) for case in subject.cases for plan in case.plans}
    # Whose messages differ in size, which IMB's do not, is none of its functions.
    functions = [one for one in steps["functions"] if one["parameters"].get("skew", "0%") == "0%"]
    for function in functions:
        name = function["pattern"]
        ranks = _PAIR if name in imb.OF_TWO else function["ranks"]  # the others only wait
        alike = [one for one in functions if one["pattern"] == name]
        voice = _voice(function, networks, _told(function, alike, ("batch", "compute")))
        for point in function["points"]:
            places = ((trial, function["network"]) for trial in point["trials"])
            if subject.chosen and mine.isdisjoint(places):
                continue
            time, rate = point["imb"]["t_avg_us"], point["imb"]["mbytes_s"]
            found = [
                imb.time_in_ours(name, ranks, point["size"], time) if time else None,
                imb.rate_in_ours(name, ranks, point["size"], rate * MEGA) if rate else None,
            ]
            yield from _voiced(voice, found)


def _told(
    entry: Mapping[str, Any], alike: Sequence[Mapping[str, Any]], names: Iterable[str]
) -> list[str]:
    """The parameters of these names that tell it apart from others: it is another figure."""
    settings = {name: entry["parameters"].get(name) for name in names}
    return [
        f"{name}={str(value).lower()}"
        for name, value in settings.items()
        if any(one["parameters"].get(name) != value for one in alike)
    ]


def _voice(entry: Mapping[str, Any], networks: Collection[str], told: Sequence[str]) -> str:
    """The path, and the algorithm where there are several."""
    algorithm = entry["parameters"].get("algorithm")
    return " ".join([_path(entry, networks), *([algorithm] if algorithm else []), *told])


def _voiced(voice: str, found: Sequence[ComparableFigure | None]) -> Iterator[_Figure]:
    for ours in found:
        if ours:
            yield voice, Key(ours.measure, ours.ranks, ours.size), ours.value


def _of_plan(plan: PlanEntry, measured: Measured) -> Iterator[tuple[str, int | None, float]]:
    """Measure, size and Mbit/s of one flow."""
    load = plan["intended_load"]
    if plan["traffic"] not in ("stream", "transfer") or (load is not None and load < FULL_LOAD):
        return
    if plan["pattern"] == "ring" and plan["ranks"] > 2:
        yield from _of_ring(plan, measured.records.flows(plan_key(plan)))
    elif plan["ranks"] == 2:
        known = plan["transport"] in transports.NAMES  # a summary may be of a later version
        joined = known and transports.of(plan["transport"]).byte_stream
        size = None if joined or isinstance(plan["size"], list) else plan["size"]
        phases = measured.phases_of(plan)
        for flows, measure in ((1, "one_way_rate"), (2, "both_ways_rate")):
            rate = m.mean(p["throughput"]["mean"] for p in phases if p["flows"] == flows)
            if rate is not None:
                yield measure, size, rate


def _of_ring(
    plan: Mapping[str, Any], flows: FlowColumns | None
) -> Iterator[tuple[str, int | None, float]]:
    """HPCC's rings: the natural one, and the geometric mean over random ones."""
    if flows is None:
        return
    natural = bool(plan["parameters"].get("natural", True))
    forward = plan["parameters"].get("directions") == "forward"
    rates: dict[str, list[float]] = {}
    for phase in np.unique(flows.phase).tolist():
        measure = "ring_rate" if natural and phase == 0 else "random_ring_rate"
        if forward:
            measure = "sendrecv_rate"
        rates.setdefault(measure, []).append(slowest_rank_mbps(flows, phase))
    for measure, values in rates.items():
        if all(value > 0 for value in values):  # false for NaN: HPCC leaves no ring out, either
            logarithms = [math.log(value) for value in values]
            yield measure, plan["size"], math.exp(sum(logarithms) / len(logarithms))


def slowest_rank_mbps(flows: FlowColumns, phase: int) -> float:
    """One flow of the process that is slowest to send or to receive, the mean over its flows of
    either side: HPCC and IMB divide by the time of the slowest process, in which it does both. NaN
    where a flow was not observed."""
    chosen = flows.phase == phase
    slowest = math.inf
    for ends in (flows.src[chosen], flows.dst[chosen]):
        counts = np.bincount(ends)
        totals = np.bincount(ends, weights=flows.mbps[chosen])
        means = totals[counts > 0] / counts[counts > 0]
        slowest = float(np.minimum(slowest, means.min()))  # NaN stays
    return slowest
