# SPDX-License-Identifier: BSD-3-Clause
"""Buffers by bursts that oversubscribe an egress port a little (RFC 8239, section 3).

In procedures 1 to 3 one port sends at line rate, and a second one sends the extra frames, whose
number is searched. In procedure 4 all ports but one send alike, and their burst is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from ...base.measures import NEITHER, PERCENT
from ..counts import CountSearch
from ..loads import LoadRange
from . import flows
from .bursts import UNIT, capped, largest_burst
from .declaration import (
    LINE_RATE_PERCENT,
    Earlier,
    Flow,
    Method,
    Row,
    Rows,
    Subtest,
    SubtestTrials,
    SuiteParameters,
    SuitePoint,
    Value,
    Variant,
)
from .flows import Variants
from .throughput import load_value, spread, spread_values

EXTRA_UNIT = "extra frames"

ITERATIONS = Value(
    "iterations", "iterations", "", "Of the same test", "count", NEITHER, of_setting=True
)


# --- who sends to whom ---


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
    return Variant(f"to port {egress}", (*full, *extra), extra=len(extra))


def extra_share(parameters: SuiteParameters) -> float:
    """What a port that oversubscribes sends of one at line rate (0 to 1)."""
    return parameters.oversubscription_percent / LINE_RATE_PERCENT


# --- how many frames wait ---


def line_percent(_point: SuitePoint) -> float:
    """Of a port at line rate."""
    return LINE_RATE_PERCENT


def line_frames(point: SuitePoint, extra: float) -> int:
    """What a port at line rate sends while another sends so many extra frames."""
    return round(extra / extra_share(point.parameters))


def _extra_percent(point: SuitePoint) -> float:
    return point.parameters.oversubscription_percent


def _extra_held(point: SuitePoint, frames: float) -> float:
    """The egress line carries some of them beside those of the port at line rate."""
    return frames - frames * (100 - LINE_RATE_PERCENT) / _extra_percent(point)


def many_percent(point: SuitePoint) -> float:
    """Of each of the ports that send to one (procedure 4), in percent of line rate."""
    return (LINE_RATE_PERCENT + _extra_percent(point)) / point.sources


def _many_held(point: SuitePoint, frames: float) -> float:
    """All ports send at the same times, and the egress line carries some until the last ones."""
    interval = 100 / many_percent(point)  # from one frame of a port to the next, in frames
    return point.sources * frames - interval * (frames - 1) - 1


# --- subtests ---


@dataclass(frozen=True)
class _Buffer:
    """The search and the formulas of one procedure, whose columns begin with `prefix`."""

    prefix: str
    load: Value
    unit: str
    percent: Callable[[SuitePoint], float]  # load of a port whose burst is searched
    held: Callable[[SuitePoint, float], float]  # frames that wait in the end, by its length
    verifications: int

    def range(self, point: SuitePoint) -> LoadRange:
        """Of the bursts that are tried."""
        return LoadRange(1, largest_burst(point, self.percent(point)), self.unit)

    def search(self, point: SuitePoint, earlier: Earlier) -> Method:
        """Begins at what the first port of it held, else that of the procedure before."""
        found = [row[key] for row in earlier.values() for key in _FRAMES if row.get(key)]
        return CountSearch(
            largest_burst(point, self.percent(point)),
            self.unit,
            repeats=int(point.parameters.burst_repeats),
            seconds_each=1.0 / (point.fps(self.percent(point)) or 1e6),
            verifications=self.verifications,
            near=self._length(point, found[-1]) if found else None,
        )

    def near(self, point: SuitePoint, frames: float) -> Row:
        """The row of which another search takes where it begins: such a burst was held."""
        return {f"{self.prefix}_frames": self.held(point, frames)}

    def _length(self, point: SuitePoint, held: float) -> int:
        """Of the burst of which so many frames wait."""
        none = self.held(point, 0)
        return round((held - none) / (self.held(point, 1) - none))

    def rows(self, measured: SubtestTrials) -> Rows:
        """One row."""
        if capped(measured):
            return [{}]
        point = measured.point
        held = [self.held(point, burst) for burst in measured.result.longest]
        return [
            spread(f"{self.prefix}_bytes", [point.size * frames for frames in held])
            | {
                f"{self.prefix}_frames": fmean(held) if held else None,
                self.load.key: self.percent(point),
                "iterations": len(held),
            }
        ]

    def values(self, definition: str) -> tuple[Value, ...]:
        """Its columns."""
        key = f"{self.prefix}_bytes"
        return (
            self.load,
            Value(f"{self.prefix}_frames", "buffer", "frames",
                  f"{definition}, exact to one per ingress"),
            *spread_values(key, "buffer size", "bytes", "The same x frame size"),
            ITERATIONS,
        )  # fmt: skip


_EXTRA = ("efficiency_buffer", "port_buffer", "pair_buffer")  # columns of procedures 1 to 3
_MANY = "buffer"
_OVERSUBSCRIPTION = Value(
    "oversubscription", "extra", "%", "Load of a port with extra frames, percent of line rate",
    PERCENT, NEITHER, of_setting=True,
)  # fmt: skip
_FRAMES = tuple(f"{prefix}_frames" for prefix in (*_EXTRA, _MANY))
_BURST: dict[str, Any] = {
    "quantity": "burst", "keys": {"traffic": "burst"}, "no_result": capped,
}  # fmt: skip


def by_extra_frames(
    procedure: int, name: str, title: str, about: str, variants: Variants, ports: int, step: int = 1
) -> Subtest:
    """One of procedures 1 to 3, on at least so many ports."""
    buffer = _Buffer(
        _EXTRA[procedure - 1], _OVERSUBSCRIPTION, EXTRA_UNIT, _extra_percent, _extra_held, 0
    )
    return Subtest(
        name, f"3, procedure {procedure}", title, about, variants, buffer.search, buffer.rows,
        buffer.values("Of an egress port: extra frames less those that its line carried meanwhile"),
        burst_percent=line_percent, burst_frames=line_frames,
        range=buffer.range, near=buffer.near, ports_min=ports, ports_step=step, **_BURST,
    )  # fmt: skip


def by_many_ports(name: str, title: str, about: str) -> Subtest:
    """Procedure 4."""
    buffer = _Buffer(_MANY, load_value(), UNIT, many_percent, _many_held, 1)
    return Subtest(
        name, "3, procedure 4", title, about, flows.to_each, buffer.search, buffer.rows,
        buffer.values("Frames beyond what the egress port carried meanwhile"),
        burst_percent=many_percent, range=buffer.range, near=buffer.near, ports_min=3,
        **_BURST,
    )  # fmt: skip
