# SPDX-License-Identifier: BSD-3-Clause
"""Frames of a flow at ports that are not its destination: were they sent there instead, or there
as well?

Sent there instead, each is lost to its flow. Flooded, each came to every port but the flow's own
two, and none is lost for that. The reading with the fewest events is taken; where none fits, none.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple


class Stray(NamedTuple):
    """Frames of a flow that left by one wrong port."""

    port: str
    frames: int


@dataclass(frozen=True)
class FlowOutcome:
    """What became of one flow's frames."""

    flooded: int = 0
    wrong: tuple[Stray, ...] = ()

    @property
    def misled(self) -> int:
        """Frames that the flow lacks because they went elsewhere."""
        return sum(stray.frames for stray in self.wrong)


def read_strays(at: Mapping[str, int], lost: int, others: Set[str]) -> FlowOutcome | None:
    """What one flow's strays say; `at`: how many came to each port, `others`: all ports of the
    phase but the flow's own two, `lost`: frames that its destination lacks."""
    if not at.keys() <= others:
        return None
    total, least = sum(at.values()), min(at.get(port, 0) for port in others)
    if total <= lost:
        return FlowOutcome(wrong=_wrong(at, 0))
    if total == least * len(others):
        return FlowOutcome(flooded=least)
    flooded = -((lost - total) // len(others))  # the rest was misled, and is lost for that
    return FlowOutcome(flooded, _wrong(at, flooded)) if flooded <= least else None


def _wrong(at: Mapping[str, int], flooded: int) -> tuple[Stray, ...]:
    return tuple(Stray(port, n - flooded) for port, n in sorted(at.items()) if n > flooded)
