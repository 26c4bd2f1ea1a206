# SPDX-License-Identifier: BSD-3-Clause
"""HPCC's network measurements as trials (bench_lat_bw of HPCC 1.5; doc/how-to/hpcc-imb.md).

Ping-pong, one pair at a time: eight loops of 8 bytes, the shortest of five; one loop of 2,000,000
bytes, the shortest of two. Rings, the natural one and random ones: eight loops of 8 bytes, five
times, 30 random rings; three loops of 2,000,000 bytes, twice, 10 random rings. Both methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from ..base.model import Repeats
from .schema import Pattern, Settings

HpccSize = Literal["latency", "bandwidth"]
HpccMethod = Literal["sendrecv", "nonblocking"]
LATENCY: Final = "latency"
BANDWIDTH: Final = "bandwidth"
SIZES: dict[HpccSize, int] = {LATENCY: 8, BANDWIDTH: 2_000_000}  # bytes of a message
# Two exchanges one after the other, or both at once.
METHODS: tuple[HpccMethod, ...] = ("sendrecv", "nonblocking")
PAIRS_MOST = 28  # all pairs of 8 ranks; HPCC bounds their time instead

# Loops that are timed together, and how often that is done: of the ping-pong, and of a ring.
_PINGPONG = {LATENCY: (8, 5), BANDWIDTH: (1, 2)}
_RING = {LATENCY: (8, 5), BANDWIDTH: (3, 2)}
_RANDOM_RINGS = {LATENCY: 30, BANDWIDTH: 10}
LEAD = 1  # loops before them that are not timed
# Of a ring, before its first measurement: connections and caches are as warm as HPCC's, whose
# ranks never stop, and nodes have told of the ring before. Too few made 13 us 21.
_UNMEASURED = {LATENCY: 50, BANDWIDTH: 1}


@dataclass(frozen=True)
class HpccMeasurement:
    """One of the suite's measurements: a pair's ping-pong, or all rings by one method."""

    measure: HpccSize
    pattern: Pattern  # pingpong | ring
    values: Settings  # that are HPCC's
    unmeasured: int | None = None  # batches before the first that is measured; None: as always
    pair: tuple[int, int] | None = None  # ranks of the network's, of a ping-pong
    method: HpccMethod | None = None  # of rings

    @property
    def size(self) -> int:
        """Bytes of a message."""
        return SIZES[self.measure]


def shares(ranks: int, rings: int | None = None) -> Iterator[HpccMeasurement]:
    """All of the suite's measurements in their order; `rings`: so many random ones, not HPCC's."""
    for measure in SIZES:
        count = _RANDOM_RINGS[measure] if rings is None else rings
        yield from (_rings(measure, method, count) for method in METHODS)
    for measure in SIZES:
        yield from (_pingpong(measure, pair) for pair in pairs(ranks))


def pairs(ranks: int) -> list[tuple[int, int]]:
    """All pairs of ranks, or as many of them, evenly chosen, as take little time."""
    every = list(combinations(range(ranks), 2))
    count = min(len(every), PAIRS_MOST)
    return [every[i * len(every) // count] for i in range(count)]


def _pingpong(measure: HpccSize, pair: tuple[int, int]) -> HpccMeasurement:
    loops, times = _PINGPONG[measure]
    # So many short trials: that all reach each other the rings' probes have shown before.
    counted = _counted(loops, loops * times, 1)
    values = counted.model_copy(update={"connectivity_check": False})
    return HpccMeasurement(measure, "pingpong", values, pair=pair)


def _rings(measure: HpccSize, method: HpccMethod, count: int) -> HpccMeasurement:
    """Each repeat is one of HPCC's measurements: all rings, one after the other."""
    loops, times = _RING[measure]
    rings = {"natural": True, "count": count, "directions": "both"}
    values = _counted(loops, loops, times).model_copy(update=rings)
    return HpccMeasurement(measure, "ring", values, _UNMEASURED[measure], method=method)


def _counted(batch: int, repetitions: int, times: int) -> Settings:
    return Settings.model_construct(
        batch=batch,
        repetitions=repetitions,
        repeat=Repeats(times, times),
        compute=False,
        interval=0,
    )
