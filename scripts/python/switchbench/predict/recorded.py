# SPDX-License-Identifier: BSD-3-Clause
"""The flows of a trial's phases as a run's records have them, so that the engine, which made the
plan, is not asked for it again.

A run that was cut short has not recorded all of them, and a part of a phase's flows is another
phase: it has to be all of a trial or none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """Those of one trial, of all flows by their ports' names."""
    found: dict[str, dict[int, Ranks]] = {}
    for part in trial.parts:
        rank = {port.name: number for number, port in enumerate(part.ranks)}
        rows = [
            (phase, rank[source], rank[destination])
            for (point, network, phase), some in pairs.items()
            if (point, network) == (trial.point, part.network)
            for source, destination in some
            if source in rank and destination in rank
        ]
        found[part.network] = by_phase(np.array(rows, dtype=np.int64).reshape(-1, 3))
    return found


def by_phase(rows: NDArray[Any]) -> dict[int, Ranks]:
    """Of rows of phase, source and destination, each flow once; the connectivity check is none."""
    rows = np.unique(rows[rows[:, 0] >= 0], axis=0)
    if not len(rows):  # a trial that was stopped before its first flow
        return {}
    phases, first = np.unique(rows[:, 0], return_index=True)
    return dict(zip(phases.tolist(), np.split(rows[:, 1:], first[1:]), strict=True))


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
