# SPDX-License-Identifier: BSD-3-Clause
"""What a search asks for and what it is told: a trial's inputs and its result (RFC 9971, Trial)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProposedTrial:
    """What a search wants measured next.

    `value` is what is searched: an intended load (in the unit of the search's range, such as
    frames/s), the length of a burst (frames), or the size of a table (addresses).
    `duration_s` is the intended duration in seconds, 0 where the value itself says how long.
    """

    value: float
    duration_s: float


@dataclass(frozen=True)
class TrialLoss:
    """The result of a trial (RFC 9971, Trial Output).

    `offered` and `lost` are frames of all ports together, as the senders and the receivers counted
    them; in a search of addresses, `lost` are flooded frames. `intended_s` is the duration asked
    for; `effective_s` is what the trial counts for in sums (RFC 9971, Trial Effective Duration),
    in seconds, and the intended one where it is None. `tester_limited`: the tester did not offer
    what was intended, so that the trial says nothing of the device.

    Raises ValueError where frames or durations cannot be.
    """

    offered: int
    lost: int
    intended_s: float
    effective_s: float | None = None
    tester_limited: bool = False
    offered_part: float = 1.0  # of what was intended, of the port that offered the least of it

    def __post_init__(self) -> None:
        if not 0 <= self.lost <= self.offered:
            raise ValueError("a trial loses at least 0 frames and at most those offered")
        if self.offered == 0 and not self.tester_limited:
            raise ValueError("a trial that offered no frame says nothing of the device")
        if self.intended_s < 0 or (self.effective_s is not None and self.effective_s < 0):
            raise ValueError("a trial's durations are at least 0 s")

    @property
    def loss_ratio(self) -> float:
        """Lost frames per offered one, from 0 to 1 (RFC 9971, Trial Loss Ratio)."""
        return self.lost / self.offered if self.offered else 0.0

    @property
    def counted_s(self) -> float:
        """Seconds that the trial adds to sums of durations."""
        return self.intended_s if self.effective_s is None else self.effective_s
