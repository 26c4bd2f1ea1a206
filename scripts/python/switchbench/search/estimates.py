# SPDX-License-Identifier: BSD-3-Clause
"""How long a search takes, before it begins: it is run against a device that behaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from .drive import Search, SearchMethod
from .loads import LoadRange
from .trials import TrialLoss

FRAMES = 10**9  # of an imagined trial: enough for every loss ratio
TRUTHS = (0.03, 0.21, 0.39, 0.57, 0.75, 0.93)  # of the range, on the scale of the search


def method_s(
    make: Callable[[float], SearchMethod[Any]],
    values: LoadRange,
    overhead_s: float = 0.0,
    of: Callable[[Sequence[float]], float] = fmean,
) -> float:
    """Return the seconds that a method takes where trials above one value fail: `of` some values.

    A device that loses at random, or forwards less when it is overloaded, takes longer. `make`: the
    method at its beginning, of that value; `values`: the range that the limit may lie in;
    `overhead_s`: seconds of each trial besides its duration.
    """
    found = []
    for part in TRUTHS:
        truth = values.min * (values.max / values.min) ** part
        search = Search(make(truth), overhead_s=overhead_s)
        while (trial := search.trial) is not None:
            lost = round(FRAMES * max(0.0, 1.0 - truth / trial.value))
            search.answer(TrialLoss(FRAMES, lost, trial.duration_s))
        found.append(search.used_s)
    return of(found)
