# SPDX-License-Identifier: BSD-3-Clause
"""The flows of a trial's phases as a run's records have them, so that the engine, which made the
plan, is not asked for it again.

A run that was cut short has not recorded all of them, and a part of a phase's flows is another
phase: it has to be all of a trial or none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from ..base.errors import ConfigurationError
from ..base.model import Trial
from ..base.programs import find_engine
from ..topology.fabric.routes import Ranks

Pair = tuple[str, str]
Place = tuple[int, str, int]
"""A trial's point, the network, the phase."""
Recorded = Mapping[str, Mapping[int, Ranks]]
"""By network and phase a row for each flow: its source and destination in the network's part."""


def recorded_flows(trial: Trial, pairs: Mapping[Place, Collection[Pair]]) -> Recorded:
    """Those of one trial, of all flows by their ports' names; the connectivity check is none."""
    found: dict[str, dict[int, Ranks]] = {}
    for part in trial.parts:
        rank = {port.name: number for number, port in enumerate(part.ranks)}
        found[part.network] = {
            phase: _rows((rank[a], rank[b]) for a, b in some if a in rank and b in rank)
            for (point, network, phase), some in sorted(pairs.items())
            if (point, network) == (trial.point, part.network) and phase >= 0
        }
    return found


def _rows(flows: Iterable[tuple[int, int]]) -> Ranks:
    return np.array(sorted(flows), dtype=np.int64).reshape(-1, 2)


def is_whole(trial: Trial, recorded: Recorded | None) -> bool:
    """Whether these are all flows of the trial; where they are not, whether there is an engine to
    be asked is found out."""
    if recorded is None:
        return False
    count = sum(len(ranks) for phases in recorded.values() for ranks in phases.values())
    if count == trial.flows:
        return True
    try:
        find_engine()
    except ConfigurationError as error:
        raise ConfigurationError(
            f"the records have {count:,} of the {trial.flows:,} flows of trial {trial.id}, and "
            f"only the engine knows the others: {error}"
        ) from None
    return False
