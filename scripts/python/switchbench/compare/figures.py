# SPDX-License-Identifier: BSD-3-Clause
"""Figures of one definition as cases.

Of other programs' results and of ours beside them (importers/measures.py).

Ours are made of the summary: of two ranks' streams and transfers what the receivers verified, of
ping-pong messages half the round trip, of IMB's functions its times and rates. What is of another
definition, or at another number of ranks or another size, is beside nothing. A program is what a
transport is to us; values of the same figure are its repeats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from ..analysis import measures as m
from ..base import transports
from ..importers import imb
from ..importers.figure import GPU, MEGA, ComparableFigure
from ..importers.measures import COMMON
from ..records.document.trials import PlanEntry
from .measures import STEP_TIMES, ComparedMeasure
from .settings import ABSENT
from .subjects import Case, Subject

_PAIR = 2
FULL_LOAD = 100.0  # % of line: below, a rate says what was asked for


class _Figure(NamedTuple):
    program: str  # or our transport
    measure: str
    ranks: int
    size: int | None
    value: float


def cases_of(subject: Subject) -> list[Case]:
    """Return a case for each program and figure of a result."""
    found = [*_imported(subject), *_plans(subject), *_functions(subject), *_pingpongs(subject)]
    cases: dict[tuple[Any, ...], Case] = {}
    known = [one for one in found if one.value > 0 and one.measure in COMMON]
    for one in sorted(known, key=lambda one: (list(COMMON).index(one.measure), one.ranks)):
        common = COMMON[one.measure]
        words = {
            "pattern": common.title, "ranks": str(one.ranks), "size": str(one.size or ABSENT),
            "load": ABSENT, "network": ABSENT, "transport": one.program,
        }  # fmt: skip
        measure = ComparedMeasure(
            one.measure, common.title, common.unit, common.better,
            lambda entry: float(entry["value"]), *STEP_TIMES,
        )  # fmt: skip
        case = cases.setdefault(tuple(words.values()), Case(words, [], measure))
        case.plans.append(cast("PlanEntry", {
            "trial": 0, "repeat": len(case.plans), "network": ABSENT, "pattern": common.title,
            "parameters": {}, "ranks": one.ranks, "size": one.size, "size_unit": "message",
            "transport": one.program, "traffic": ABSENT, "intended_load": None, "value": one.value,
        }))  # fmt: skip
    return list(cases.values())


def _imported(subject: Subject) -> Iterator[_Figure]:
    for entry in subject.imported:
        if ours := entry["comparable"]:
            memory = " (GPU memory)" if entry.get("memory") == GPU else ""  # goes another way
            yield _Figure(
                entry["tool"] + memory, ours["measure"], ours["ranks"], ours["size"], ours["value"]
            )


def _path(subject: Subject, entry: Mapping[str, Any]) -> str:
    """Return the transport, the network where the result has several.

    And what its pattern was told.
    """
    networks = {plan["network"] for plan in subject.measured.summary["plans"]}
    told = entry.get("parameters", {})
    batch = told.get("batch", 1)
    words = (
        entry["transport"],
        f"in {entry['network']}" if len(networks) > 1 else "",
        told.get("algorithm") or "",
        f"batch={batch}" if batch != 1 else "",
        "compute" if told.get("compute") else "",
    )
    return " ".join(word for word in words if word)


def _plans(subject: Subject) -> Iterator[_Figure]:
    """Yield one flow between two, and one each way, at full load."""
    for plan in (plan for case in subject.cases for plan in case.plans):
        load = plan["intended_load"]
        full = plan["traffic"] in ("stream", "transfer") and (load is None or load >= FULL_LOAD)
        if not full or plan["ranks"] != _PAIR or plan["size_unit"] != "message":
            continue
        known = plan["transport"] in transports.NAMES  # a summary may be of a later version
        joined = known and transports.of(plan["transport"]).byte_stream
        size = None if joined or isinstance(plan["size"], list) else plan["size"]
        phases = subject.measured.phases_of(plan)
        for flows, measure in ((1, "one_way_rate"), (2, "both_ways_rate")):
            rate = m.mean(p["throughput"]["mean"] for p in phases if p["flows"] == flows)
            if rate is not None:
                yield _Figure(_path(subject, plan), measure, _PAIR, size, rate)


def _functions(subject: Subject) -> Iterator[_Figure]:
    """By IMB's definitions; messages that differ in size are none of its functions."""
    mine = {(plan["trial"], plan["network"]) for case in subject.cases for plan in case.plans}
    for function in subject.measured.summary["steps"]["functions"]:
        name = function["pattern"]
        if function["parameters"].get("skew", "0%") != "0%":
            continue
        ranks = _PAIR if name in imb.OF_TWO else function["ranks"]  # the others only wait
        for point in function["points"]:
            places = ((trial, function["network"]) for trial in point["trials"])
            if subject.chosen and mine.isdisjoint(places):
                continue
            time, rate = point["imb"]["t_avg_us"], point["imb"]["mbytes_s"]
            found: tuple[ComparableFigure | None, ...] = (
                imb.time_in_ours(name, ranks, point["size"], time) if time else None,
                imb.rate_in_ours(name, ranks, point["size"], rate * MEGA) if rate else None,
            )
            for one in filter(None, found):
                path = _path(subject, function)
                yield _Figure(path, one.measure, one.ranks, one.size, one.value)


def _pingpongs(subject: Subject) -> Iterator[_Figure]:
    mine = {plan["transport"] for case in subject.cases for plan in case.plans}
    for curve in subject.measured.summary["messages"]["curves"]:
        for point in curve["points"] if curve["transport"] in mine else ():
            values = (point["latency_us"]["mean"], point["bandwidth_mbps"])
            for name, value in zip(("pingpong_time", "pingpong_rate"), values, strict=True):
                if value is not None:
                    path = _path(subject, curve)
                    yield _Figure(path, name, curve["ranks"], point["size"], float(value))
