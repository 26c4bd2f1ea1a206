# SPDX-License-Identifier: BSD-3-Clause
"""Flows of two results beside each other, from the records: a thousand ranks have a million."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analysis.columns import FlowColumns
from ..analysis.data import plan_key
from ..base import format
from . import welch
from .differences import DifferenceRow, Family, phases_of
from .match import Match, Pair
from .measures import FLOW_LOSS, FLOW_RATE
from .subjects import Case, Subject
from .welch import Floats

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class FlowTable:
    """The flows that both results have of one pair: a column each, a row for each repeat."""

    codes: Codes
    names: list[str]  # of ports, which codes are made of
    phases: dict[int, str]
    rates: tuple[Floats, Floats]
    losses: tuple[Floats, Floats]
    sides: tuple[int, int]  # how many flows each result has, with those that it has alone

    def name(self, code: int) -> str:
        """`distance 3, node1:e0 -> node4:e0`."""
        phase, rest = divmod(code, len(self.names) ** 2)
        src, dst = divmod(rest, len(self.names))
        flow = format.flow({"src": self.names[src], "dst": self.names[dst]})
        return f"{self.phases[phase]}, {flow}" if len(self.phases) > 1 else flow

    def rows(self, number: int, confidence: float, most: int | None) -> Iterator[DifferenceRow]:
        """Of the rate of each flow, and of its loss where any lost something.

        `most`: so many of each, the surest differences and then the largest; None: all.
        """
        for measure, (base, other) in ((FLOW_RATE, self.rates), (FLOW_LOSS, self.losses)):
            if measure is FLOW_LOSS and not np.nansum(base) + np.nansum(other) > 0:
                continue
            tested = welch.test(base, other)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.nan_to_num(np.abs(tested.difference / tested.base.mean))
            order = np.lexsort((-share, np.where(np.isnan(tested.p), 1.0, tested.p)))
            chosen = order[:most]
            names = [self.name(int(code)) for code in self.codes[chosen]]
            yield from Family(number, measure, tested, confidence).rows(names, chosen.tolist())


def flow_table(match: Match, pair: Pair) -> FlowTable | None:
    """None where they have no flow in common, or none has left a record."""
    names = match.base.measured.ports
    places = places_of(match)
    if places is None:
        return None
    base = _runs(match.base, pair.base, np.arange(len(names)))
    other = _runs(match.other, pair.other, places)
    if not base or not other:
        return None
    sides = _union(base), _union(other)
    codes = np.intersect1d(*sides)
    if not len(codes):
        return None
    phases = {
        phase: str(entries[0]["phase_name"] or phase)
        for phase, entries in phases_of(match.base, pair.base).items()
    }
    return FlowTable(
        codes,
        names,
        phases,
        (_placed(codes, base, 0), _placed(codes, other, 0)),
        (_placed(codes, base, 1), _placed(codes, other, 1)),
        (len(sides[0]), len(sides[1])),
    )


def places_of(match: Match) -> NDArray[np.int64] | None:
    """Which of the baseline's ports each of the other's is: by name; else by place, where there
    are as many; else None."""
    base, other = match.base.measured.ports, match.other.measured.ports
    if set(base) == set(other):
        known = {name: place for place, name in enumerate(base)}
        return np.array([known[name] for name in other], dtype=np.int64)
    return np.arange(len(other)) if len(base) == len(other) else None


@dataclass(frozen=True)
class _Run:
    """One repeat: its flows' codes, ascending, and their figures."""

    codes: Codes
    figures: tuple[Floats, Floats]  # rate in Mbit/s, loss in percent


def _runs(subject: Subject, case: Case, places: NDArray[np.int64]) -> list[_Run]:
    plans = case.plans if case.suite is None else ()
    found = (subject.measured.records.flows(plan_key(plan)) for plan in plans)
    return [_coded(flows, places) for flows in found if flows is not None]


def _coded(flows: FlowColumns, places: NDArray[np.int64]) -> _Run:
    ports = len(places)
    codes = (flows.phase.astype(np.int64) * ports + places[flows.src]) * ports + places[flows.dst]
    order = np.argsort(codes, kind="stable")
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = 100.0 * flows.lost / flows.offered
    return _Run(codes[order], (flows.mbps[order], loss[order]))


def _union(runs: Sequence[_Run]) -> Codes:
    union: Codes = np.unique(np.concatenate([run.codes for run in runs]))
    return union


def _placed(codes: Codes, runs: Sequence[_Run], which: int) -> Any:
    """A row for each repeat; NaN where it has not this flow."""
    table = np.full((len(runs), len(codes)), np.nan)
    for row, run in zip(table, runs, strict=True):
        place = np.minimum(np.searchsorted(run.codes, codes), len(run.codes) - 1)
        row[:] = np.where(run.codes[place] == codes, run.figures[which][place], np.nan)
    return table
