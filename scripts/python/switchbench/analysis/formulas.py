# SPDX-License-Identifier: BSD-3-Clause
"""How measures are computed: of a phase, of a flow and of a port, for each of `base.measures`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..base.measures import LATENCY_MEASURES, MEASURES
from ..records.latency import figure
from ..records.records import Flow
from .measures import (
    MEGA,
    PhaseResult,
    greatest,
    least,
    loss_percent,
    lost_frames,
    median,
    payload_bps,
    total,
)

Values = dict[str, float | None]  # by port
Reducer = Callable[[Iterable[float | None]], float | None]


@dataclass(frozen=True)
class Formula:
    """How a measure is read from a phase, and how several phases are put together."""

    phase: Callable[[PhaseResult], float | None]
    reduce: Reducer
    flow: Callable[[Flow], float | None] | None = None
    port: Callable[[PhaseResult], Values] | None = None
    of_network: bool = True  # worthless where a host was the limit
    of_repeats: bool = False  # the rate whose mean over the repeats has to be sure


def _entry(*names: str) -> Callable[[PhaseResult], float | None]:
    """What stands there in the phase's entry of the summary."""

    def value(result: PhaseResult) -> float | None:
        found = result.entry
        for name in names:
            if found is None:
                return None
            found = found[name]
        known: float | None = found  # type: ignore[assignment]
        return known

    return value


# --- of a flow -----------------------------------------------------------------------------------


def _judged(name: str) -> Callable[[Flow], float | None]:
    """A count that the destination keeps of frames; tcp sees none."""

    def value(flow: Flow) -> float | None:
        side = flow.destination
        if side is None or side.whole.frames is None:
            return None
        count: int | None = getattr(side, name)
        return count

    return value


def _retransmitted(flow: Flow) -> float | None:
    return None if flow.source is None else flow.source.measures.get("retransmitted_segments")


def _throughput(flow: Flow) -> float | None:
    rate = None if flow.window_off else payload_bps(flow)
    return None if rate is None else rate / MEGA


def _offered(flow: Flow) -> float | None:
    return None if flow.source is None else flow.source.whole.frames


def _delivered(flow: Flow) -> float | None:
    return None if flow.destination is None else flow.destination.whole.frames


def _lost_probes(flow: Flow) -> float | None:
    times = flow.times.get("round_trip")
    return None if times is None else times.lost


# --- of a port -----------------------------------------------------------------------------------


def _lesser(source: Values, destination: Values) -> Values:
    """Of each port the lesser of what came from it and what came to it."""
    both = dict(source)
    for port, value in destination.items():
        both[port] = value if both.get(port) is None else least((both[port], value))
    return both


def _port_shares(result: PhaseResult) -> Values:
    return _lesser(result.shares.source, result.shares.destination)


def _relative(shares: Values) -> Values:
    """Percent of the median port's share."""
    middle = median(shares.values())
    if not middle:
        return dict.fromkeys(shares)
    return {port: None if v is None else 100.0 * v / middle for port, v in shares.items()}


def _port_uniformity(result: PhaseResult) -> Values:
    return _lesser(_relative(result.shares.source), _relative(result.shares.destination))


def _uniformity(result: PhaseResult) -> float | None:
    values = list(_port_uniformity(result).values())
    return None if None in values else least(values)


def _by_port(
    result: PhaseResult, of: Callable[[Flow], float | None]
) -> dict[str, list[float | None]]:
    """A flow's value, at both its ports."""
    found: dict[str, list[float | None]] = {}
    for flow in result.flows:
        for port in (flow.src, flow.dst):
            found.setdefault(port, []).append(of(flow))
    return found


def _port_loss(result: PhaseResult) -> Values:
    return {port: total(values) for port, values in _by_port(result, lost_frames).items()}


def _port_loss_percent(result: PhaseResult) -> Values:
    lost = _port_loss(result)
    offered = {port: total(values) for port, values in _by_port(result, _offered).items()}
    return {
        port: None if (count := lost[port]) is None or not (sent := offered[port]) else
        100.0 * count / sent
        for port in lost
    }  # fmt: skip


# --- by measure ----------------------------------------------------------------------------------

_REDUCERS: dict[str, Reducer] = {"min": least, "max": greatest, "sum": total}

_OF_FLOW: dict[str, Callable[[Flow], float | None]] = {
    "throughput": _throughput,
    "offered_frames": _offered,
    "delivered_frames": _delivered,
    "lost_frames": lost_frames,
    "loss_percent": loss_percent,
    "duplicated_frames": _judged("duplicated"),
    "reordered_frames": _judged("reordered"),
    "late_frames": _judged("late"),
    "corrupted_frames": _judged("corrupted"),
    "retransmitted_segments": _retransmitted,
    "lost_probes": _lost_probes,
}
_OF_PORT: dict[str, Callable[[PhaseResult], Values]] = {
    "percent_of_line": _port_shares,
    "uniformity_percent": _port_uniformity,
    "lost_frames": _port_loss,
    "loss_percent": _port_loss_percent,
}


def _latency(kind: str, name: str) -> Callable[[Flow], float | None]:
    return lambda flow: figure(kind, name, flow.times.get(kind))


_OF_FLOW |= {key: _latency(kind, name) for key, (kind, name) in LATENCY_MEASURES.items()}

FORMULAS = {
    measure.key: Formula(
        _entry(*measure.entry.split(".")) if measure.entry else _uniformity,
        _REDUCERS[measure.over_phases],
        flow=_OF_FLOW.get(measure.key),
        port=_OF_PORT.get(measure.key),
        of_network=measure.of_network,
        of_repeats=measure.of_repeats,
    )
    for measure in MEASURES.values()
}
