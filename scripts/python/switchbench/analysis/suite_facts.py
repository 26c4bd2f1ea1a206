# SPDX-License-Identifier: BSD-3-Clause
"""What a suite's formulas are given of each trial: its senders' and receivers' counts together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..search.loads import TrialLoss
from ..search.suites.declaration import PortFacts, TrialFacts
from . import measures as m
from .measures import PhaseResult

LATE_SHARE = 0.01  # of the learning frames


def trial_facts(results: Iterable[PhaseResult]) -> TrialFacts:
    """Of all phases and networks of one trial. One that was not measured whole says nothing.

    Where some ports send streams of bytes, these say their goodput, and all else is the frames'.
    """
    told = list(results)
    every = [result for result in told if result.entry["size_unit"] == "frame"]
    streams = [result.entry for result in told if result.entry["size_unit"] != "frame"]
    entries = [result.entry for result in every]
    sent_fps = m.total([m.total(m.frames_per_second(result.flows, "sent")) for result in every])
    came_fps = m.total([m.total(m.frames_per_second(result.flows, "received")) for result in every])
    offered = m.total_int(entry["offered_frames"] for entry in entries)
    lost = [entry["lost_frames"] for entry in entries if entry["lost_frames"] is not None]
    whole = all(result.entry["state"] == "complete" for result in told)
    if not every or not whole or len(lost) < len(entries) or not offered:
        return TrialFacts()
    late_frames = _late_frames(every)
    return TrialFacts(
        offered=offered,
        lost=min(offered, sum(max(0, count) for count in lost)),
        flooded=sum(entry["misdelivered_frames"] or 0 for entry in entries),
        offered_part=_offered_part(every),
        tester_limited=any(result.entry["tester_limited"] for result in told),
        offered_fps=sent_fps,
        # What came beyond was sent before the window opened, and held until then.
        delivered_fps=None if came_fps is None else m.least((came_fps, sent_fps)),
        goodput=m.total(entry["throughput"]["total"] for entry in streams),
        latency_us=_latency(entries, "one_way"),
        rtt_us=_latency(entries, "round_trip"),
        ports=_ports(every),
        late_frames=max(late_frames, default=0),
        late_total=sum(late_frames),
        learned_late=_learned_late(every),
        last_gap_s=_last_gap_s(every),
        silent_s=_silent_s(every),
        duration_s=max(entry["window_s"] or 0.0 for entry in entries),
    )


def trial_loss(intended_s: float, facts: TrialFacts, bad: int) -> TrialLoss:
    """Return the same as a search is told it; `bad`: frames that fail the trial."""
    if not facts.offered:
        return TrialLoss(0, 0, intended_s, tester_limited=True)
    return TrialLoss(
        facts.offered,
        min(facts.offered, bad),
        intended_s,
        tester_limited=facts.tester_limited,
        offered_part=facts.offered_part,
    )


def _ports(results: Iterable[PhaseResult]) -> dict[str, PortFacts]:
    """Return the facts of each port that frames were for.

    A suite's trial has one phase in each network.
    """
    found = {}
    for result in results:
        flows = result.flows
        places = flows.ends("dst")
        sent = m.sum_by_port(places, m.or_zero(flows["sent_frames"]))
        lost = m.sum_by_port(places, m.or_zero(m.lost_frames(flows)))
        rates = m.sum_by_port(places, m.frames_per_second(flows, "received"))
        offered = m.sum_by_port(places, m.frames_per_second(flows, "sent"))
        for port, rate in rates.items():
            came = None if rate is None else m.least((rate, offered.get(port)))
            found[port] = PortFacts(
                int(sent[port] or 0), int(lost[port] or 0), came, offered.get(port)
            )
    return found


def _offered_part(results: Iterable[PhaseResult]) -> float:
    parts = []
    for result in results:
        flows, places = result.flows, result.flows.ends("src")
        sent = m.sum_by_port(places, m.or_zero(flows["sent_frames"]))
        asked = m.sum_by_port(places, m.or_zero(flows["intended"]))
        parts += [(sent[port] or 0.0) / count for port, count in asked.items() if count]
    return min([1.0, *parts])


def _late_frames(results: Iterable[PhaseResult]) -> list[int]:
    """Of each sending port; each of its flows has those of all."""
    found: dict[tuple[int, str], float] = {}
    for network, result in enumerate(results):
        places = result.flows.ends("src")
        late = m.or_zero(result.flows["late_frames"])
        for number, frames in zip(places.place.tolist(), late.tolist(), strict=True):
            port = network, places.names[number]
            found[port] = max(found.get(port, 0.0), frames)
    return [int(frames) for frames in found.values()]


def _learned_late(results: Iterable[PhaseResult]) -> bool:
    """Return whether addresses were announced at a lower rate than asked for.

    More than one of a hundred was late.
    """
    for result in results:
        announced = np.nansum(result.flows["sent_frames"])
        late = np.nansum(result.flows["learning_late"])
        if late > LATE_SHARE * announced:
            return True
    return False


def _last_gap_s(results: Iterable[PhaseResult]) -> float | None:
    """Return the latest of all flows.

    None where frames behind the last arrival are lost, or reordered ones may have filled a gap, or
    no load fell.
    """
    gaps_ns = []
    for result in results:
        flows = result.flows
        unclear = flows["sent_frames"] - flows["numbers"] + flows["reordered"]
        if not len(unclear) or not (unclear == 0).all():
            return None
        gaps_ns.append(float(flows["gap_ns"].max()))
    return max(gaps_ns) / 1e9


def _silent_s(results: Iterable[PhaseResult]) -> float | None:
    """For how long at the end of its traffic nothing came of a flow, the longest."""
    every = [result.flows for result in results]
    times = [flows["sent_last_run_ns"] - flows["received_last_run_ns"] for flows in every]
    longest = max((float(each.max(initial=0.0)) for each in times), default=0.0)
    return None if any(np.isnan(each).any() for each in times) else longest / 1e9


def _latency(entries: Iterable[Mapping[str, object]], kind: str) -> Mapping[str, float | None]:
    """Return times of a suite's only phase."""
    [latency, *more] = [entry["latency"] for entry in entries]
    if more or not isinstance(latency, Mapping):
        return {}
    found: Mapping[str, float | None] = latency.get(kind) or {}
    return found
