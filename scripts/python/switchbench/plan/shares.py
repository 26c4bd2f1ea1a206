# SPDX-License-Identifier: BSD-3-Clause
"""What of its port's load each flow has, and what that offers to its receiver.

A flow's part is the engine's (patterns/pattern.h): of a list with shares its own; of a load of the
receivers what its receiver's senders divide; else the flows of a port divide its load evenly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base import transports
from ..base.model import Load, Part, Pattern, Trial
from .engine import Flows, plan_phases

LAYER1_OVERHEAD = 20  # preamble, start delimiter and gap of a frame (IEEE 802.3)
MOST_FLOWS = 200_000  # of a plan; beyond, nobody reads what each phase offers
_SLACK = 1.0005  # clocks' differences are no oversubscription (RFC 8239 allows 0.02 %)

Parts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Oversubscribed:
    """A port that a phase offers more than its line carries: what is beyond is lost, or held up
    where the network can tell the senders."""

    phase: int
    port: str
    percent: float  # of its line


def divided(pattern: Pattern) -> bool:
    """Whether ports may have another part of the load than all of it."""
    return "shares" in pattern or pattern.get("load_of") == "receivers"


def flow_parts(pattern: Pattern, flows: Flows) -> Parts:
    """The part of its source's load that each of a phase's flows has, in their order."""
    sources, destinations = flows.T
    if pattern.get("load_of") == "receivers":
        return np.asarray(1 / np.bincount(destinations)[destinations])
    given = np.zeros(len(flows))
    if "shares" in pattern:
        by_source = np.argsort(pattern["list"][::2], kind="stable")
        given = np.asarray(pattern["shares"])[by_source] / 1e9
    left = 1 - np.bincount(sources, weights=given)
    without = np.maximum(1, np.bincount(sources, weights=given == 0))
    return np.asarray(np.where(given > 0, given, (left / without)[sources]))


def port_parts(pattern: Pattern, ranks: int, seed: int) -> Parts:
    """The largest part of the load that each rank sends in a phase; of one that never sends 0."""
    if not divided(pattern):
        return np.ones(ranks)
    largest = np.zeros(ranks)
    for phase in plan_phases(ranks, pattern, seed):
        flows = phase.flows
        sent = np.bincount(flows[:, 0], weights=flow_parts(pattern, flows), minlength=ranks)
        largest = np.maximum(largest, sent)
    return largest


def oversubscribed(trial: Trial, part: Part, load: Load) -> Iterator[Oversubscribed]:
    """The ports of known line rate that are offered more than it, by phase."""
    lines = np.array([float(port.line_rate_bps) for port in part.ranks])
    percent = load.percent
    loads = lines * percent / 100 if percent is not None else layer1_bps(trial, load) + 0 * lines
    for phase in plan_phases(len(lines), trial.pattern, trial.seed):
        sources, destinations = phase.flows.T
        offered = np.bincount(
            destinations,
            weights=flow_parts(trial.pattern, phase.flows) * loads[sources],
            minlength=len(lines),
        )
        for rank in np.flatnonzero((offered > lines * _SLACK) & (lines > 0)):
            percent = float(100 * offered[rank] / lines[rank])
            yield Oversubscribed(phase.number, part.ranks[rank].name, percent)


def layer1_bps(trial: Trial, load: Load) -> float:
    """Return a load of bit/s or frames/s as bit/s at layer 1."""
    if load.bps is not None:
        return load.bps
    each_bytes = sum(trial.sizes) / len(trial.sizes)
    if transports.of(trial.transport).frames:
        each_bytes += LAYER1_OVERHEAD
    return 8 * each_bytes * (load.fps or 0.0)
