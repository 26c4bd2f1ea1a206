# SPDX-License-Identifier: BSD-3-Clause
"""Trials that measure phases again of which the tester limited all (`remeasure`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from ..base.model import Repeats, Trial


def trials_again(
    measured: Iterable[Trial], phases_of: Callable[[Trial], Sequence[int]], first: int
) -> Iterator[Trial]:
    """For each trial with phases to be measured again, one that has these phases alone.

    `measured`: in their order; `phases_of`: their numbers (`Summary.remeasurable`); `first`: the
    number of the first new trial.
    """
    for trial in measured:
        limited = list(phases_of(trial))
        if not (trial.has_single_phases and limited):
            continue
        yield replace(
            trial,
            id=first,
            again=trial.id if trial.again is None else trial.again,
            phases=len(limited),
            expected_s=trial.expected_s * len(limited) / trial.phases,
            repeats=Repeats(),
            chosen=tuple(limited),
            connectivity_check=False,
        )
        first += 1
