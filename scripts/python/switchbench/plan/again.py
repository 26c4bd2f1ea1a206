# SPDX-License-Identifier: BSD-3-Clause
"""Trials that measure phases again which the tester limited (`remeasure`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..base.model import Repeats, Trial

Entries = Sequence[Mapping[str, Any]]  # a trial's phases, as the summary has them


def trials_again(
    measured: Iterable[Trial], phases_of: Callable[[Trial], Entries], first: int
) -> Iterator[Trial]:
    """For each trial with phases that the tester limited, one that has these phases alone.

    `measured`: in their order; `first`: the number of the first new trial.
    """
    for trial in measured:
        limited = sorted({e["phase"] for e in phases_of(trial) if e["tester_limited"]})
        if not (trial.has_single_phases and limited):
            continue
        yield replace(
            trial,
            id=first,
            again=trial.id if trial.again is None else trial.again,
            phases=len(limited),
            expected_s=trial.expected_s * len(limited) / trial.phases,
            repeats=Repeats(),
            document={
                **trial.document,
                "id": first,
                "phases": limited,
                "connectivity_check": False,
            },
        )
        first += 1
