# SPDX-License-Identifier: BSD-3-Clause
"""What whole systems compute and communicate, by their number of processes: the values of Figures 1
to 5 of Saini et al. 2005 (HPCC and IMB).

Accumulated: what one process has times their number. The ring's is of HPCC's random rings: both
flows of every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from .shared import Key, voices_of
from .subjects import Subject

_RING_BYTES, _LATENCY_BYTES = 2_000_000, 8  # HPCC's messages
_BYTES_PER_MBIT = 1e6 / 8


@dataclass(frozen=True)
class Compute:
    """A whole system: all its nodes together; None: not known."""

    hpl: float | None = None  # Flop/s
    stream: float | None = None  # STREAM Copy, B/s
    dgemm: float | None = None  # Flop/s
    fft: float | None = None  # Flop/s
    ptrans: float | None = None  # B/s
    random_access: float | None = None  # Update/s
    ring: float | None = None  # accumulated random ring, B/s
    ring_us: float | None = None  # latency of random rings
    ranks: int | None = None  # of which this is known

    def ratio(self, name: str) -> float | None:
        """One of them by HPL."""
        value: float | None = getattr(self, name)
        return None if value is None or not self.hpl else value / self.hpl


# Of each field but HPL's own measure: with which size, and what makes it the system's.
_MEASURES = {
    "hpl": "hpl",
    "stream": "stream_copy",
    "dgemm": "dgemm",
    "fft": "fft",
    "ptrans": "ptrans",
    "random_access": "random_access",
}


def systems_of(subject: Subject) -> list[Compute]:
    """One for each number of processes that something of it is known of, ascending."""
    values: dict[Key, float] = {}
    for voice in voices_of(subject):
        for key, value in voice.values.items():
            values.setdefault(key, value)
    found = [_system(values, ranks) for ranks in sorted({key.ranks for key in values})]
    return [one for one in found if _known(one)]


def _system(values: dict[Key, float], ranks: int) -> Compute:
    given = {name: values.get(Key(measure, ranks, None)) for name, measure in _MEASURES.items()}
    rate = values.get(Key("random_ring_rate", ranks, _RING_BYTES))
    return Compute(
        **given,
        ring=None if rate is None else 2 * rate * _BYTES_PER_MBIT * ranks,
        ring_us=values.get(Key("random_ring_time", ranks, _LATENCY_BYTES)),
        ranks=ranks,
    )


def _known(one: Compute) -> bool:
    return any(
        getattr(one, field.name) is not None for field in fields(one) if field.name != "ranks"
    )


def greatest(systems: Sequence[Compute]) -> Compute:
    """The one with the largest HPL: a system is compared as a whole."""
    return max(systems, key=lambda one: (one.hpl or 0.0, one.ranks or 0), default=Compute())
