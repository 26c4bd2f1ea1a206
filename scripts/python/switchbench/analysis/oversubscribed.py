# SPDX-License-Identifier: BSD-3-Clause
"""Losses that no network can avoid: of frames for ports that were offered more than their lines."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..base.model import Trial
from ..records.flows import Pair, PhaseFlows
from . import measures as m

MORE = 1.005  # than the line: clocks differ, and senders catch up in a window
UNSURE = 0.02  # of what was sent for the port: rates are the window's, losses the whole phase's


def burst_line_bps(
    trial: Trial, network: str | None, flows: PhaseFlows, lines: Mapping[str, int]
) -> m.Floats | None:
    """Each flow's rate while a burst lasts; None where it sends all the time. Beside streams of
    bytes no rate fits: they fill the line."""
    if trial.own and network not in trial.own:
        return np.full(len(flows), np.inf)
    if trial.traffic != "burst" or trial.load.percent is None:
        return None
    sources, places = flows.ends("src"), flows.ends("dst").place
    rates = (m.lines_of(sources, lines) * trial.load.percent / 100)[sources.place]
    if trial.pattern.get("load_of") == "receivers":
        return np.asarray(rates / np.bincount(places)[places])
    sent = m.or_zero(flows.source.floats("frames"))
    by_port = np.bincount(sources.place, np.where(flows.source.copies, 0.0, sent))
    frames = trial.document["burst"]["frames"]
    return np.asarray(rates * sent / (frames * np.ceil(by_port.max(initial=1.0) / frames)))


def offered_shares(result: m.PhaseResult) -> dict[str, float]:
    """What was offered to each port that was offered more than its line, as a share of it."""
    rates = result.burst_bps
    if rates is None:
        rates = np.fmin(m.offered_line_bps(result.flows), m.intended_line_bps(result.flows))
    ports = result.flows.ends("dst")
    shares = np.bincount(ports.place, rates, len(ports.names)) / m.lines_of(ports, result.lines)
    return {ports.names[port]: float(shares[port]) for port in np.flatnonzero(shares > MORE)}


def expected_losses(result: m.PhaseResult, lost: Mapping[Pair, int]) -> dict[Pair, int]:
    """Of each flow's lost frames those that its port's line had no room for.

    Of `share` times a line one part in `share` fits. Where a port loses more than the rest, its
    flows' losses beyond it are left to the network.
    """
    shares = offered_shares(result)
    if not shares:
        return {}
    sent = m.sum_by_port(result.flows.ends("dst"), m.or_zero(result.flows.source.floats("frames")))
    gone = by_port(lost)
    room = {
        port: min(gone[port], int((1 - 1 / share + UNSURE) * (sent[port] or 0.0)))
        for port, share in shares.items()
        if port in gone
    }
    expected: dict[Pair, int] = {}
    before = dict.fromkeys(room, 0)  # losses of the port's flows so far: no frame is rounded away
    for pair, count in lost.items():
        port = pair[1]
        if port in room:
            until = before[port] + count
            each = room[port] * until // gone[port] - room[port] * before[port] // gone[port]
            before[port] = until
            expected[pair] = each
    return expected


def by_port(counts: Mapping[Pair, int]) -> dict[str, int]:
    """Sums by destination."""
    sums: dict[str, int] = {}
    for (_, port), count in counts.items():
        sums[port] = sums.get(port, 0) + count
    return sums
