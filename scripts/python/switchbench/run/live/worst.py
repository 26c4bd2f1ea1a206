# SPDX-License-Identifier: BSD-3-Clause
"""Which ports a person wants to see first: suspects, and those that lose or are behind the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from .state import PortState

_FINEST = 0.01  # of a rate: ports that differ by less keep the order of ranks
_FINEST_LOSS = 0.0001


def worst_first(ports: Iterable[PortState]) -> list[PortState]:
    """Suspects first, then by loss in the phase that ended last or by what a port is behind,
    whichever is the greater share; idle ones last."""
    ports = list(ports)
    usual_offered = _median_share(ports, lambda port: port.offered_bps)
    usual_delivered = _median_share(ports, lambda port: port.delivered_bps)

    def badness(port: PortState) -> tuple[bool, bool, float, int]:
        offered = _behind(port, port.offered_bps, usual_offered)
        delivered = _behind(port, port.delivered_bps, usual_delivered)
        idle = port.offered_bps is None and port.delivered_bps is None
        lost = (port.phase_lost_percent or 0.0) / 100.0
        share = max(_coarse(lost, _FINEST_LOSS), _coarse(max(offered, delivered), _FINEST))
        return not port.suspect, idle, -share, port.place

    return sorted(ports, key=badness)


def _coarse(share: float, finest: float) -> float:
    """Down to a multiple, so that ports that differ by nothing to speak of keep their places."""
    return int(share / finest) * finest


def _share(port: PortState, bps: float) -> float:
    """Of its line, so that ports of several rates compare."""
    return bps / port.line_bps if port.line_bps else bps


def _median_share(
    ports: Iterable[PortState], rate_of: Callable[[PortState], float | None]
) -> float:
    shares = [_share(port, bps) for port in ports if (bps := rate_of(port)) is not None]
    return median(shares) if shares else 0.0


def _behind(port: PortState, bps: float | None, usual: float) -> float:
    """How much less than the median port it has, 0 to 1."""
    if bps is None or usual <= 0:
        return 0.0
    return max(0.0, 1.0 - _share(port, bps) / usual)
