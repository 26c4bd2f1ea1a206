# SPDX-License-Identifier: BSD-3-Clause
"""Rates of flows while a burst lasts: ports may then be offered more than their lines."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..base.model import Trial
from ..records.flows import PhaseFlows
from . import measures as m

MORE = 1.005  # than the line: clocks differ, and senders catch up in a window


def burst_line_bps(
    trial: Trial, network: str | None, flows: PhaseFlows, lines: Mapping[str, int]
) -> m.Floats | None:
    """Each flow's rate while a burst lasts; None where it sends all the time.

    Beside streams of bytes no rate fits: they fill the line.
    """
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
    frames = trial.burst.frames if trial.burst else 1
    return np.asarray(rates * sent / (frames * np.ceil(by_port.max(initial=1.0) / frames)))
