# SPDX-License-Identifier: BSD-3-Clause
"""Buffers that one port at line rate and one at 1 % fill together (RFC 8239, 3.2, procedures 1 to
3). The burst of the second port, the extra frames, is searched; the first sends meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ...base.measures import LESS, NEITHER
from ..loads import LoadRange
from . import flows
from .bursts import RepeatedBursts, burst_row, largest_burst
from .declaration import (
    Earlier,
    Flow,
    Method,
    Rows,
    SubtestTrials,
    SuitePoint,
    Value,
    Variant,
)

LINE_RATE_PERCENT = 99.98
OVERSUBSCRIPTION_PERCENT = 1.0  # recommended
SHARE = OVERSUBSCRIPTION_PERCENT / LINE_RATE_PERCENT
UNIT = "extra frames"
LATE_FRAMES_MAX = 1  # of a sender: results are exact to one frame

ITERATIONS = Value(
    "iterations", "iterations", "", "Of the same test", "count", NEITHER, of_setting=True
)


def variation_percent(values: Sequence[float]) -> float | None:
    """The percentage of variation (3.3): the largest change from one iteration to the next; None
    where one of them began from 0."""
    pairs = list(pairwise(values))
    if not all(before for before, _ in pairs):
        return None
    return max((abs(now - before) / before * 100 for before, now in pairs), default=None)


def variation(key: str, title: str = "variation") -> Value:
    """The column of it."""
    return Value(
        key, title, "%", "The largest change from one iteration to the next; none: there was "
        "only one, or one of them was 0", better=LESS,
    )  # fmt: skip


def first_ports(_ports: int) -> Iterator[Variant]:
    """Procedure 1: port 1 at line rate and port 3 at 1 % to port 2."""
    yield _oversubscribed([(0, 1)], [(2, 1)])


def each_port(ports: int) -> Iterator[Variant]:
    """Procedure 2: port 2 as in procedure 1, then port 3 with its neighbours, and so on."""
    for first in range(ports - 2):
        yield _oversubscribed([(first, first + 1)], [(first + 2, first + 1)])


def port_pairs(ports: int) -> Iterator[Variant]:
    """Procedure 3: pairs at line rate; the last two ports oversubscribe those of two pairs."""
    [pairs] = flows.one_way_pairs(ports - 2)
    for (_, one), (_, two) in pairwise(pairs.flows):
        yield _oversubscribed(pairs.flows, [(ports - 2, one), (ports - 1, two)])


def _oversubscribed(full: Sequence[Flow], extra: Sequence[Flow]) -> Variant:
    egress = " and ".join(str(destination + 1) for _, destination in extra)
    shares = (100.0,) * len(full) + (100.0 * SHARE,) * len(extra)
    return Variant(f"to port {egress}", (*full, *extra), shares)


def line_frames(extra: float) -> int:
    """What a port at line rate sends while one at 1 % sends so many extra frames."""
    return round(extra / SHARE)


def extra_range(point: SuitePoint) -> LoadRange:
    """Of the extra frames that are tried."""
    return LoadRange(1, largest_burst(point, OVERSUBSCRIPTION_PERCENT), UNIT)


def search_extra(point: SuitePoint, _earlier: Earlier) -> Method:
    """The searches of one procedure."""
    rate = point.fps(OVERSUBSCRIPTION_PERCENT) or 1e6
    repeats = int(point.parameters.burst_repeats)
    most = round(extra_range(point).max)
    return RepeatedBursts(most, repeats, 1.0 / rate, UNIT, verifications=0)


def held_frames(extra: float) -> float:
    """Of so many extra frames those that wait: the line carried some beside the other port's."""
    return extra - line_frames(extra) * (100.0 / LINE_RATE_PERCENT - 1)


def buffer_values(prefix: str) -> tuple[Value, ...]:
    """The columns of one procedure."""
    return (
        Value(f"{prefix}_frames", "buffer", "frames",
              "Of an egress port: extra frames less those that its line carried meanwhile, exact "
              "to one per ingress"),
        Value(f"{prefix}_bytes", "buffer size", "bytes", "The same x frame size"),
        Value(f"{prefix}_bytes_min", "min", "bytes", "Of the iterations"),
        Value(f"{prefix}_bytes_max", "max", "bytes", "Of the iterations"),
        variation(f"{prefix}_variation"),
        ITERATIONS,
    )  # fmt: skip


class BufferRows:
    """The formulas of one procedure."""

    def __init__(self, prefix: str) -> None:
        """Its columns begin with that."""
        self._prefix = prefix

    def __call__(self, point: SuitePoint, _earlier: Earlier, measured: SubtestTrials) -> Rows:
        """One row."""
        row = burst_row(measured)
        if row["back_to_back"] is None:
            return [{}]
        figures = {
            "frames": held_frames(row["back_to_back"]),
            "bytes": held_frames(row["back_to_back"]) * point.size,
            "bytes_min": held_frames(row["back_to_back_min"]) * point.size,
            "bytes_max": held_frames(row["back_to_back_max"]) * point.size,
            "variation": variation_percent(measured.result.longest),
        }
        named = {f"{self._prefix}_{key}": value for key, value in figures.items()}
        return [named | {"iterations": row["searches"]}]
