# SPDX-License-Identifier: BSD-3-Clause
"""How long a trial should take."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

from ..base import transports
from ..base.model import Burst, Port, Scatter, Site, Trial

# What a phase takes besides its traffic: partners' addresses, sockets, two barriers. Seen on the
# lab of 8 nodes on 2 cores; a few ms for each further node process that shares those cores.
PHASE_S = 0.03
PHASE_PER_NODE_S = 0.005
PROBE_S = 0.25  # once for each trial that probes
QUEUE_PAIR_S = 0.005  # made, its partner's data fetched, connected: 1,000 in 5 s at most
# Phases that follow by the clock (engine/trial/phase_times.c): each is held for so long after its
# drain, and the next one begins so long after that.
CLOCK_HOLD_S = 0.15
CLOCK_GAP_S = 0.25
START_S = 1.5  # once: nodes started, ports opened, first barrier
START_PER_NODE_S = 0.1

UNKNOWN_LINE_BPS = 1e9  # taken for a transfer's time where nobody knows better


def start_s(site: Site) -> float:
    """Return what a run takes before its first trial."""
    return START_S + START_PER_NODE_S * len(site.processes)


STEP_WARMUP = 1  # of what goes by steps: batches before those that count
_TURN_S = 200e-6  # of a message besides its bytes
# Messages of random sizes that share a line wait for each other: so much longer than the line's own
# time, seen on labs of 8 nodes; and of all flows the one with the largest messages ends last.
_CROWD, _LARGEST = 1.25, 1.22
_ALONE_S = 0.5  # of a scatter beside computing: its rate alone (engine/trial/lanes.c)
_LEARNED_S = 0.2  # behind the last learning frame (engine/transport/dpdk/addresses.c)
_COMPUTING_TURN_S = 2e-3  # by how much a turn is later for each other node that computes on a core


def expected_s(site: Site, trial: Trial) -> float:
    """Return the seconds of a trial, barriers and drains included."""
    flows = trial.flows / trial.phases
    if transports.of(trial.transport).rdma:
        says_when_over = trial.options["service"] == "rc"
    else:  # frames and datagrams only fall silent
        says_when_over = trial.size_unit == "message"
    sharing = len(site.processes) if site.launcher.in_lab else 0
    between_s = _setup_s(trial, flows) + PHASE_S + PHASE_PER_NODE_S * sharing
    probe_s = PROBE_S if trial.connectivity_check else 0.0
    whole_s = trial.phases * _traffic_s(site, trial, flows) + probe_s
    if trial.sync == "none":
        step_s = trial.drain_s + CLOCK_HOLD_S + CLOCK_GAP_S
        return whole_s + between_s + trial.phases * step_s - CLOCK_GAP_S
    return whole_s + trial.phases * (between_s + (0.0 if says_when_over else trial.drain_s))


def _setup_s(trial: Trial, flows: float) -> float:
    """Return what a phase's learning frames take, or its queue pairs.

    Each rank makes those of its own flows.
    """
    options = trial.options
    if "learning_rate" in options:
        return float(options.get("addresses", 1) / options["learning_rate"] + _LEARNED_S)
    ranks = sum(len(part.ranks) for part in trial.parts)
    each_rank = 2 * flows / ranks  # sent and received
    return float(QUEUE_PAIR_S * each_rank * options.get("queue_pairs", 0))


def _traffic_s(site: Site, trial: Trial, flows: float) -> float:
    """Return how long one phase of so many flows sends."""
    if trial.scatter is not None:
        return _scatter_s(site, trial, trial.scatter, flows)
    if trial.schedule is not None and trial.schedule.count:
        repetitions = STEP_WARMUP * trial.schedule.batch + trial.schedule.count
        return repetitions * _repetition_s(trial)
    if trial.window_s:
        return trial.warmup_s + trial.window_s + trial.cooldown_s
    if trial.burst is not None:
        return _bursts_s(trial, trial.burst)
    bits = 8 * (trial.transfer_bytes or 0) * max(1.0, flows / len(_ports(trial)))
    return bits / _line_bps(trial) * 100 / (trial.load.percent or 100.0)


def _ports(trial: Trial) -> list[Port]:
    return [port for part in trial.parts for port in part.ranks]


def _line_bps(trial: Trial) -> float:
    return min(port.line_rate_bps or UNKNOWN_LINE_BPS for port in _ports(trial))


def round_trip_s(ports: Iterable[Port], size: int) -> float:
    """Return the seconds of a round trip, at line rate and alone."""
    line_bps = min(port.line_rate_bps for port in ports) or UNKNOWN_LINE_BPS
    return 2 * 8 * size / line_bps + 2 * _TURN_S


def _repetition_s(trial: Trial) -> float:
    """Return one repetition by steps, at line rate and without computing: about so long."""
    if trial.steps is None:
        return 0.0
    each_bytes = trial.steps.payload_bytes // (trial.phases * len(trial.parts[0].ranks))
    return trial.steps.steps * _TURN_S + round_trip_s(_ports(trial), each_bytes) / 2


def _bursts_s(trial: Trial, burst: Burst) -> float:
    frame_s = 1 / trial.frames_per_s(_line_bps(trial))
    return burst.count * burst.frames * frame_s + (burst.count - 1) * burst.gap_ns / 1e9


def _scatter_s(site: Site, trial: Trial, scatter: Scatter, flows: float) -> float:
    """Return how long its messages take: of sizes that are uniform in their logarithm."""
    least, most = scatter.min_size, scatter.max_size
    mean = (most - least) / math.log(most / least) if most > least else most
    ports, random = _ports(trial), scatter.partners == "random"
    each = round_trip_s(ports, round(_LARGEST * mean))
    if site.launcher.in_lab:  # computing nodes share the cores of one machine
        each += (
            2 * _COMPUTING_TURN_S * scatter.compute * len(site.processes) / (os.cpu_count() or 1)
        )
    # What a port has in flight at once shares its line.
    in_flight = 2 - 1 / len(ports) if random else _CROWD * flows / len(ports)
    shared = 2 * 8 * in_flight * mean / _line_bps(trial)
    return (_ALONE_S if scatter.compute else 0.0) + scatter.count * max(each, shared)
