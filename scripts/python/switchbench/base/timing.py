# SPDX-License-Identifier: BSD-3-Clause
"""How long a trial should take: for `plan`, for `time_limit` and for the time left of a run."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Site

# What a phase takes besides its traffic: partners' addresses, sockets, two barriers. Seen on the
# lab of 8 nodes on 2 cores; a few ms for each further node process that shares those cores.
PHASE_S = 0.03
PHASE_PER_NODE_S = 0.005
PROBE_S = 0.25  # once for each trial that probes
QUEUE_PAIR_S = 0.005  # made, its partner's data fetched, connected: 1,000 in 5 s at most
# Phases that follow by the clock (engine/phase/phase_times.c): each is held for so long after its
# drain, and the next one begins so long after that.
CLOCK_HOLD_S = 0.15
CLOCK_GAP_S = 0.25
START_S = 1.5  # once: nodes started, ports opened, first barrier
START_PER_NODE_S = 0.1

UNKNOWN_LINE_BPS = 1e9  # taken for a transfer's time where nobody knows better


@dataclass(frozen=True)
class TrialTiming:
    """How a trial goes."""

    phases: int
    traffic_s: float  # of one phase, warm-up to stop
    drain_s: float
    by_clock_s: float | None  # the drain of each phase if they follow by the clock; None: barriers
    probe: bool
    setup_s: float = 0.0  # of one phase: what its connections take beyond PHASE_S


def trial_s(site: Site, course: TrialTiming) -> float:
    """Return what a trial should take, barriers and drains included."""
    sharing = len(site.processes) if site.launcher.in_lab else 0
    between_s = course.drain_s + course.setup_s + PHASE_S + PHASE_PER_NODE_S * sharing
    probe_s = PROBE_S if course.probe else 0.0
    if course.by_clock_s is None:
        pauses_s = course.phases * between_s
    else:
        step_s = course.by_clock_s + CLOCK_HOLD_S + CLOCK_GAP_S
        pauses_s = between_s - course.drain_s + course.phases * step_s - CLOCK_GAP_S
    return course.phases * course.traffic_s + pauses_s + probe_s


def start_s(site: Site) -> float:
    """Return what a run takes before its first trial."""
    return START_S + START_PER_NODE_S * len(site.processes)


def human(seconds: float) -> str:
    """`42 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
