# SPDX-License-Identifier: BSD-3-Clause
"""What whole systems compute and communicate, by their number of processes: the values of Figures 1
to 5 of Saini et al. 2005 (HPCC and IMB).

Accumulated: what one process has times their number. The ring's is of HPCC's random rings: both
flows of every process. Each program or transport of a result is a system of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from .shared import STREAMED, Key, voices_of
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
    program: str | None = None  # whose figures these are, or over which transport
    several: tuple[str, ...] = ()  # programs of which none could be chosen

    def ratio(self, name: str) -> float | None:
        """One of them by HPL."""
        value: float | None = getattr(self, name)
        return None if value is None or not self.hpl else value / self.hpl


_WHOSE = ("ranks", "program", "several")


def systems_of(subject: Subject) -> list[Compute]:
    """One for each program or transport and number of processes that something is known of."""
    found = [
        replace(_system(voice.values, ranks), program=voice.program)
        for voice in voices_of(subject)
        for ranks in sorted({key.ranks for key in voice.values})
    ]
    names = [field.name for field in fields(Compute) if field.name not in _WHOSE]
    return [one for one in found if any(getattr(one, name) is not None for name in names)]


def _system(values: dict[Key, float], ranks: int) -> Compute:
    rate = values.get(Key("random_ring_rate", ranks, _RING_BYTES))

    def whole(measure: str) -> float | None:
        return values.get(Key(measure, ranks, None))

    return Compute(
        hpl=whole("hpl"),
        stream=whole("stream_copy"),
        dgemm=whole("dgemm"),
        fft=whole("fft"),
        ptrans=whole("ptrans"),
        random_access=whole("random_access"),
        ring=None if rate is None else 2 * rate * _BYTES_PER_MBIT * ranks,
        ring_us=values.get(Key("random_ring_time", ranks, _LATENCY_BYTES)),
        ranks=ranks,
    )


def greatest(systems: Sequence[Compute]) -> Compute:
    """The one with the largest HPL: a system is compared as a whole. Of several programs' or
    transports' only what they agree on, but HPCC's own rings before streamed ones."""
    most = max(((one.hpl or 0.0, one.ranks or 0) for one in systems), default=None)
    best = [one for one in systems if (one.hpl or 0.0, one.ranks or 0) == most]
    best = [one for one in best if not (one.program or "").endswith(STREAMED)] or best
    if len(best) < 2:
        return best[0] if best else Compute()
    apart = [
        field.name
        for field in fields(Compute)
        if field.name != "several" and len({getattr(one, field.name) for one in best}) > 1
    ]
    several = tuple(one.program or "" for one in best)
    return replace(best[0], **dict.fromkeys(apart), several=several)


def system_name(result: str, one: Compute, systems: Sequence[Compute]) -> str:
    """The result's, and the program or transport where it has several."""
    several = len({other.program for other in systems}) > 1
    return f"{result} {one.program}" if several else result


def completed(systems: Sequence[Compute], whole: Compute) -> list[Compute]:
    """With what was given of the whole system (HPL, STREAM) at the number of processes that it is
    of."""
    return [
        replace(one, hpl=whole.hpl, stream=whole.stream or one.stream)
        if one.ranks == whole.ranks
        else one
        for one in systems
    ]
