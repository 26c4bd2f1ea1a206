# SPDX-License-Identifier: BSD-3-Clause
"""The loads that a search may use: a range, cut into steps of equal relative width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .outcomes import Reached, SearchOutcome

PARTS_MAX = 32  # of the smallest width, to come near to all widths at once
GOOD_ENOUGH = 0.98  # of each width, that so many parts reach


@dataclass(frozen=True)
class LoadRange:
    """The min and max intended load (RFC 9971, Min Load and Max Load), in one unit of rate.

    Raises ValueError unless 0 < min < max.
    """

    min: float
    max: float
    unit: str = "frames/s"

    def __post_init__(self) -> None:
        if not 0 < self.min < self.max:
            raise ValueError("a range of loads has a min above 0 and a max above its min")


class LoadGrid:
    """Loads from min (number 0) to max (number `top`), each the same ratio above the last.

    Bounds of several goals then fall on the same loads, and trials there serve all goals.
    """

    def __init__(self, loads: LoadRange, widths: Sequence[float]) -> None:
        self.loads = loads
        self._whole = math.log(loads.max / loads.min)
        logs = [-math.log1p(-width) for width in widths]
        best = (0.0, 1)
        for parts in range(1, PARTS_MAX + 1):
            steps = max(1, math.ceil(self._whole / min(logs) * parts))
            step = self._whole / steps
            worst = min(min(1.0, math.floor(log / step) * step / log) for log in logs)
            best = max(best, (worst, steps), key=lambda found: found[0])
            if best[0] >= GOOD_ENOUGH:
                break
        self.top = best[1]
        """The number of the max load; as many steps are between min and max."""

    def load(self, number: int) -> float:
        """The load of a number from 0 to `top`, in the unit of the range."""
        if number == self.top:
            return self.loads.max
        return self.loads.min * math.exp(self._whole * number / self.top)

    def below(self, load: float) -> int:
        """The number of the highest load that is at most this one; 0 where none is."""
        if load <= self.loads.min:
            return 0
        return min(self.top, math.floor(math.log(load / self.loads.min) / self._whole * self.top))

    def steps(self, width: float) -> int:
        """How many steps a relative width (0 to 1) has, rounded down; at least 1."""
        return max(1, math.floor(-math.log1p(-width) / self._whole * self.top))


@dataclass(frozen=True)
class GoalResult:
    """RFC 9971, Goal Result; loads in the unit of the search's range, None where there is none."""

    relevant_lower_bound: float | None
    relevant_upper_bound: float | None
    conditional_throughput: float | None
    outcome: SearchOutcome

    @property
    def is_regular(self) -> bool:
        """Whether both bounds exist and are near enough (RFC 9971, Regular Goal Result)."""
        return isinstance(self.outcome, Reached)

    @property
    def relative_width(self) -> float | None:
        """(upper - lower) / upper, from 0 to 1 (RFC 9971, Goal Width)."""
        if self.relevant_lower_bound is None or self.relevant_upper_bound is None:
            return None
        return 1.0 - self.relevant_lower_bound / self.relevant_upper_bound
