# SPDX-License-Identifier: BSD-3-Clause
"""What several programs measure, by one definition and in one unit each.

What can be put side by side. Times are of one call or message; rates are payload, of one flow, one
way.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Common:
    """One measure; `better`: +1 when more of it is better, -1 when less is."""

    title: str
    unit: str
    better: int


_COLLECTIVES = (
    *("allreduce", "reduce", "reduce_scatter", "allgather", "allgatherv", "gather", "gatherv"),
    *("scatter", "scatterv", "alltoall", "alltoallv", "bcast", "barrier"),
)
RATE, TIME = "Mbit/s", "us"

COMMON: dict[str, Common] = {
    "pingpong_time": Common("half the round trip of a message", TIME, -1),
    "pingpong_rate": Common("message / half its round trip", RATE, +1),
    "one_way_rate": Common("one way between two", RATE, +1),
    "both_ways_rate": Common("each way between two, both at once", RATE, +1),
    "sendrecv_rate": Common("ring, one direction, each flow", RATE, +1),
    "ring_rate": Common("naturally ordered ring, each of a rank's two flows", RATE, +1),
    "random_ring_rate": Common("randomly ordered rings, each of a rank's two flows", RATE, +1),
    "ring_time": Common("naturally ordered ring, half the time for both neighbours", TIME, -1),
    "random_ring_time": Common("randomly ordered rings, half the time for both", TIME, -1),
    "hpl": Common("HPL, whole system", "Flop/s", +1),
    "dgemm": Common("DGEMM on all processes at once, whole system", "Flop/s", +1),
    "fft": Common("global FFT", "Flop/s", +1),
    "ptrans": Common("global matrix transpose", "B/s", +1),
    "stream_copy": Common("STREAM Copy on all processes at once, whole system", "B/s", +1),
    "random_access": Common("global RandomAccess", "Update/s", +1),
} | {f"{name}_time": Common(f"{name}, mean over ranks", TIME, -1) for name in _COLLECTIVES}


def collective(name: str) -> str | None:
    """Return the measure of a collective's time, by MPI's name for it."""
    return f"{name}_time" if name in _COLLECTIVES else None
