# SPDX-License-Identifier: BSD-3-Clause
"""Flows of two results beside each other, from the tables: a thousand ranks have a million."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..analysis.data import FlowColumns, plan_key
from ..analysis.statistics import Floats
from ..base import format
from ..records.directory import SUMMARY
from .differences import Family, Tester, both_phases, phase_name, sampled
from .measures import FLOW_LOSS, FLOW_RATE
from .subjects import Case, Subject

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class FlowTable:
    """The flows that both results have of one pair: a column each, a row for each sample."""

    codes: Codes
    names: list[str]  # of ports, which codes are made of
    phases: dict[int, str]
    rates: Sequence[Floats]  # of either side
    losses: Sequence[Floats]
    sides: tuple[int, int]  # how many flows each result has, with those that it has alone

    def name(self, code: int) -> str:
        """`distance 3, node1:e0 -> node4:e0`."""
        phase, rest = divmod(code, len(self.names) ** 2)
        src, dst = divmod(rest, len(self.names))
        flow = format.flow({"src": self.names[src], "dst": self.names[dst]})
        return f"{self.phases[phase]}, {flow}" if len(self.phases) > 1 else flow

    def families(self, tester: Tester, most: int | None) -> Iterator[Family]:
        """Of the rate of each flow, and of its loss where any lost something."""
        for measure, sides in ((FLOW_RATE, self.rates), (FLOW_LOSS, self.losses)):
            if measure is FLOW_LOSS and not sum(np.nansum(side) for side in sides) > 0:
                continue
            yield tester.family(measure, lambda i: self.name(int(self.codes[i])), sides, most)


def flow_table(tester: Tester) -> FlowTable | None:
    """None where they have no flow in common, or none has left a record."""
    match = tester.match
    names = match.base.measured.ports
    sides = [
        [_repeats(run, of_run, match.base) for run, of_run in case.runs(subject)]
        for subject, case in tester.sides
    ]
    if any(not repeats for runs in sides for repeats in runs):
        return None
    unions = [_union([repeat for repeats in runs for repeat in repeats]) for runs in sides]
    codes = np.intersect1d(unions[0], unions[1])
    phases = {phase: phase_name(runs) for phase, runs in both_phases(tester)[0].items()}
    of_phase = codes // len(names) ** 2
    unknown = sorted(set(of_phase.tolist()) - phases.keys())
    if unknown:
        trial = tester.pair.base.plans[0]["trial"]
        match.base.measured.damage.append(
            f"{SUMMARY} lacks phase {unknown[0]} of trial {trial}, whose flows the tables have: "
            "these are omitted"
        )
        codes = codes[np.isin(of_phase, list(phases))]
    if not len(codes):
        return None
    rates, losses = (
        [
            sampled([np.array([_placed(codes, repeat, which) for repeat in repeats])
                     for repeats in runs])
            for runs in sides
        ]
        for which in (0, 1)
    )  # fmt: skip
    return FlowTable(codes, names, phases, rates, losses, (len(unions[0]), len(unions[1])))


def places_of(base: Subject, other: Subject) -> Codes | None:
    """Return which of the baseline's ports each of the other's is: by name.

    Else by place, where there are as many; else None.
    """
    names, others = base.measured.ports, other.measured.ports
    if set(names) == set(others):
        known = {name: place for place, name in enumerate(names)}
        return np.array([known[name] for name in others], dtype=np.int64)
    return np.arange(len(others)) if len(names) == len(others) else None


@dataclass(frozen=True)
class _Run:
    """One repeat: its flows' codes, ascending, and their figures."""

    codes: Codes
    figures: tuple[Floats, Floats]  # rate in Mbit/s, loss in percent


def _repeats(subject: Subject, case: Case, base: Subject) -> list[_Run]:
    """Return the repeats of one run, with the baseline's numbers of ports."""
    places = places_of(base, subject)
    if places is None:
        return []
    found = []
    for plan in case.plans:
        flows = subject.measured.records.flows(plan_key(plan))
        limited = [p["phase"] for p in subject.measured.phases_of(plan) if p["tester_limited"]]
        if flows is not None:
            found.append(_coded(flows, places, limited))
    return found


def _coded(flows: FlowColumns, places: Codes, limited: Sequence[int]) -> _Run:
    """Nothing is known of the phases that the tester limited."""
    ports = len(places)
    codes = (flows.phase.astype(np.int64) * ports + places[flows.src]) * ports + places[flows.dst]
    order = np.argsort(codes, kind="stable")
    valid = ~np.isin(flows.phase, limited)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = 100.0 * flows.lost / flows.offered
    rate, loss = (np.where(valid, figure, np.nan) for figure in (flows.mbps, loss))
    return _Run(codes[order], (rate[order], loss[order]))


def _union(runs: Sequence[_Run]) -> Codes:
    union: Codes = np.unique(np.concatenate([run.codes for run in runs]))
    return union


def _placed(codes: Codes, run: _Run, which: int) -> Floats:
    """Return the figures of these flows; NaN where the run has not this flow."""
    place = np.minimum(np.searchsorted(run.codes, codes), len(run.codes) - 1)
    return np.where(run.codes[place] == codes, run.figures[which][place], np.nan)
