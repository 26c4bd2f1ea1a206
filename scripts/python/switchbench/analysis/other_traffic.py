# SPDX-License-Identifier: BSD-3-Clause
"""Frames at our ports that are none of the run's: said for each port, because they take line rate
from the load (doc/reference/measures.md, "Loss by location")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..base import format
from .measures import PhaseResult, or_zero

# A switch's own frames (LLDP, spanning tree) and neighbours' discovery stay below these.
NOTABLE_FRAMES = 100
NOTABLE_SHARE = 0.001  # of the port's own


@dataclass
class _Port:
    """One port, over the phases in which other traffic was notable or may have cost frames."""

    first: str  # the first of these phases
    frames: int = 0
    displaced: int = 0
    phases: int = 0

    def sentence(self, name: str) -> str:
        more = f" and {format.of(self.phases - 1, 'more phase')}" if self.phases > 1 else ""
        cost = (
            f"; {format.of(self.displaced, 'frame')} for it may be lost because of that, and not "
            "count as the network's"
            if self.displaced
            else ""
        )
        came = "arrived that is" if self.frames == 1 else "arrived that are"
        frames = format.of(self.frames, "frame")
        return f"{name}: {frames} {came} none of this run's, in {self.first}{more}{cost}"


class OtherTraffic:
    """Gathers, phase by phase, what other senders sent to our ports."""

    def __init__(self) -> None:
        """None yet."""
        self._ports: dict[str, _Port] = {}

    def add(self, result: PhaseResult) -> None:
        """Takes one measured phase."""
        came = or_zero(result.ports.floats("unexpected"))
        own = or_zero(result.ports.floats("received_frames"))
        notable = came >= np.maximum(NOTABLE_FRAMES, NOTABLE_SHARE * own)
        names = result.ports.texts("port")
        told = {*(names[port] for port in np.flatnonzero(notable)), *result.displaced}
        for name, frames in zip(names, came.tolist(), strict=True) if told else ():
            if name in told:
                found = self._ports.setdefault(name, _Port(result.label))
                found.frames += int(frames)
                found.displaced += result.displaced.get(name, 0)
                found.phases += 1

    def sentences(self) -> Iterator[str]:
        """For people, a port each."""
        return (port.sentence(name) for name, port in self._ports.items())
