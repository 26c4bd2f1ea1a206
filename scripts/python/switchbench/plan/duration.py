# SPDX-License-Identifier: BSD-3-Clause
"""How long a trial should take."""

from __future__ import annotations

import math
import os
from typing import Self

import numpy as np
import numpy.typing as npt

from ..base import timing
from ..base.model import Part, Pattern, Site
from ..base.timing import UNKNOWN_LINE_BPS
from ..config.schema import BurstOptions, ScatterOptions
from ..topology import topology as topologies
from ..topology.fabric import Fabric, Routes
from ..topology.graph import from_topology
from .draft import NS, STEP_WARMUP, Draft
from .engine import plan_phases
from .shares import LAYER1_OVERHEAD

MOST_FLOWS = 20_000  # of a plan; beyond, it takes longer to find out than it is worth


class Busiest:
    """The links of a lab. A message goes over those of its flow, and its answer back."""

    def __init__(self, fabric: Fabric) -> None:
        self._rank = {host: rank for rank, host in enumerate(fabric.hosts)}
        self._routes = Routes(fabric)

    @classmethod
    def of(cls, site: Site) -> Self | None:
        """A lab's; None of any other site, whose links are not known here."""
        if site.lab is None:
            return None
        topology = topologies.load(site.lab, site.lab_overrides)
        return cls(from_topology(topology, unlimited_bps=round(UNKNOWN_LINE_BPS)))

    def byte_s(self, part: Part, pattern: Pattern, seed: int, a_flow: bool) -> float:
        """Seconds that the busiest link takes if each flow (else each rank, by one of its flows)
        sends a byte and gets it back: the mean over phases."""
        places = np.array([self._rank[port.host] for port in part.ranks])
        phases = [
            self._phase_byte_s(places, phase.flows, a_flow)
            for phase in plan_phases(len(part.ranks), pattern, seed)
            if len(phase.flows)
        ]
        return sum(phases) / len(phases)

    def _phase_byte_s(
        self, places: npt.NDArray[np.int64], ranks: npt.NDArray[np.int64], a_flow: bool
    ) -> float:
        sources = ranks[:, 0]
        weight = 1.0 if a_flow else 1 / np.bincount(sources)[sources]
        there = self._routes.paths(*places[ranks].T)
        load = np.zeros(self._routes.nothing + 1)
        for paths in (there, self._routes.opposite(there)):
            np.add.at(load, paths, np.broadcast_to(weight, len(ranks))[:, None])
        return float(np.max(8 * load[:-1] / self._routes.capacity_bps))


# Messages of drawn sizes that share links wait for each other: so much longer than the busiest
# link's own time, seen on labs of 8 nodes.
_CROWD = 1.25
_ALONE_S = 0.5  # of a scatter beside computing: its rate alone (engine/traffic/pingpong.c)
_LEARNED_S = 0.2  # behind the last learning frame (engine/transport/dpdk/addresses.c)
_COMPUTING_TURN_S = 2e-3  # by how much a turn is later for each other node that computes on a core


def expected_s(draft: Draft, phases: int, flows: int) -> float:
    """Seconds of a trial of so many phases and flows, with what comes before and behind them."""
    values = draft.values
    course = timing.TrialTiming(
        phases=phases,
        traffic_s=_traffic_s(draft, flows / phases),
        # Connections say when they are over; frames and datagrams only fall silent.
        drain_s=0.0 if _says_when_over(draft) else values.drain_timeout / NS,
        setup_s=_setup_s(draft, flows / phases),
        by_clock_s=values.drain_timeout / NS if values.sync == "none" else None,
        probe=values.connectivity_check,
    )
    return timing.trial_s(draft.site, course)


def _says_when_over(draft: Draft) -> bool:
    if draft.values.verbs is not None:
        return draft.values.verbs.service == "rc"
    return draft.of_messages()


def _setup_s(draft: Draft, flows: float) -> float:
    """What a phase's learning frames take, or its queue pairs: each rank makes those of its own
    flows."""
    dpdk, verbs = draft.values.dpdk, draft.values.verbs
    if dpdk is not None and dpdk.learning_rate is not None:
        return (dpdk.addresses or 1) / dpdk.learning_rate + _LEARNED_S
    if verbs is None:
        return 0.0
    ranks = sum(len(part.ranks) for part in draft.parts)
    each_rank = 2 * flows / ranks  # sent and received
    return timing.QUEUE_PAIR_S * each_rank * verbs.queue_pairs


def _traffic_s(draft: Draft, flows: float) -> float:
    """How long one phase of so many flows sends."""
    values = draft.values
    if values.scatter is not None:
        return _scatter_s(draft, values.scatter, flows)
    if values.repetitions is not None:
        batch = values.batch or 1
        batches = STEP_WARMUP + math.ceil(values.repetitions / batch)
        return batches * batch * draft.repetition_s()
    if values.window is not None:
        return ((values.warmup or 0) + draft.window_ns() + (values.cooldown or 0)) / NS
    if values.burst is not None:
        return _bursts_s(draft, values.burst)
    ports = [port for part in draft.parts for port in part.ranks]
    bits = 8 * (values.transfer_size or 0) * max(1.0, flows / len(ports))
    return bits / _load_bps(draft)


def _load_bps(draft: Draft) -> float:
    """What the slowest port sends in a second."""
    ports = [port for part in draft.parts for port in part.ranks]
    share = draft.point.load.percent or 100.0
    return min(port.line_rate_bps or timing.UNKNOWN_LINE_BPS for port in ports) * share / 100


def _bursts_s(draft: Draft, burst: BurstOptions) -> float:
    load = draft.point.load
    bits = 8 * (sum(draft.point.sizes) / len(draft.point.sizes) + LAYER1_OVERHEAD)
    frame_s = 1 / load.fps if load.fps else bits / (load.bps or _load_bps(draft))
    gaps_s = (burst.count - 1) * burst.gap / NS
    return burst.count * burst.frames * frame_s + gaps_s


def _scatter_s(draft: Draft, scatter: ScatterOptions, flows: float) -> float:
    """How long its messages take: of sizes that are uniform in their logarithm."""
    least, most = scatter.sizes
    mean, spread = _log_uniform(least, most)
    # Of all flows the one that draws the largest messages ends last.
    last = 1 + spread * math.sqrt(2 * math.log(max(1.0, flows)) / scatter.count)
    each = draft.round_s(round(last * mean)) + 2 * _computing_turn_s(draft, scatter.compute)
    alone = _ALONE_S if scatter.compute else 0.0
    shared = max(_shared_byte_s(draft, part, flows) for part in draft.parts) * mean
    return alone + scatter.count * max(each, shared)


def _computing_turn_s(draft: Draft, compute: float) -> float:
    """What computing adds to a turn where nodes share the cores of one machine."""
    if draft.site.lab is None:
        return 0.0
    nodes = len(draft.site.processes) / (os.cpu_count() or 1)
    return _COMPUTING_TURN_S * compute * nodes


def _shared_byte_s(draft: Draft, part: Part, flows: float) -> float:
    """What a byte there and back takes where the messages under way share links."""
    ranks = len(part.ranks)
    crowd = 2 - 1 / ranks if draft.draws_partners() else _CROWD
    size = draft.size(part)
    busiest = Busiest.of(draft.site) if size.flows <= MOST_FLOWS else None
    if busiest is not None:
        return crowd * busiest.byte_s(
            part, draft.pattern, draft.values.seed, not draft.draws_partners()
        )
    ports = sum(len(each.ranks) for each in draft.parts)
    under_way = 2.0 if draft.draws_partners() else 2 * flows / ports
    rates_bps = [port.line_rate_bps for port in part.ranks]
    return crowd * 8 * under_way / (min(rates_bps) or timing.UNKNOWN_LINE_BPS)


def _log_uniform(least: float, most: float) -> tuple[float, float]:
    """The mean of numbers that are uniform in their logarithm, and their deviation by it."""
    if most <= least:
        return most, 0.0
    width = math.log(most / least)
    mean = (most - least) / width
    square = (most**2 - least**2) / (2 * width)
    return mean, math.sqrt(square - mean**2) / mean
