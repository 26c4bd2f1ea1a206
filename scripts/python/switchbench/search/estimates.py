# SPDX-License-Identifier: BSD-3-Clause
"""How long a search takes, before it begins: it is run against a device that behaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .drive import Search
from .goals import SearchGoal
from .loads import LoadRange
from .multiple import LoadSearch
from .outcomes import CannotBeMet
from .trials import TrialLoss

FRAMES = 10**9  # of an imagined trial: enough for every loss ratio
TRUTHS = (0.03, 0.21, 0.39, 0.57, 0.75, 0.93)  # of the range, on the scale of the search


def estimate_s(goals: Sequence[SearchGoal], loads: LoadRange, overhead_s: float = 0.0) -> float:
    """Seconds that a search for these goals takes where loss begins at one load and grows.

    The longest of some loads across the range; a device that loses at random, or forwards less
    when it is overloaded, takes longer. `overhead_s`: seconds of each trial besides its duration.
    Raises ValueError where there is no goal.
    """
    longest = 0.0
    for part in TRUTHS:
        truth = loads.min * (loads.max / loads.min) ** part
        search = Search(LoadSearch(goals, loads), overhead_s=overhead_s)
        while (trial := search.trial) is not None:
            lost = round(FRAMES * max(0.0, 1.0 - truth / trial.value))
            search.answer(TrialLoss(FRAMES, lost, trial.duration_s))
        longest = max(longest, search.used_s)
    return longest


def check_time(
    goals: Sequence[SearchGoal],
    sizes: Mapping[str, LoadRange],
    time_limit_s: float,
    overhead_s: float = 0.0,
) -> CannotBeMet | None:
    """None, or why the goals cannot be met in `time_limit_s` seconds for each size.

    `sizes`: name of the frame size, such as "64 B" -> the range of its loads. All sizes are in the
    answer where one takes too long. Raises ValueError where there is no goal.
    """
    estimates = {name: estimate_s(goals, loads, overhead_s) for name, loads in sizes.items()}
    if all(seconds <= time_limit_s for seconds in estimates.values()):
        return None
    return CannotBeMet(time_limit_s, estimates)
