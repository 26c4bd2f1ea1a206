# SPDX-License-Identifier: BSD-3-Clause
"""How measures are computed: of a phase, of a flow and of a port, for each of `base.measures`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.measures import LATENCY_MEASURES, MEASURES, Measure
from ..records.flows import PhaseFlows, Places, Times
from ..records.latency import figure
from .loss_location import beyond_hosts, lost_in_network
from .measures import (
    MEGA,
    ByPort,
    Floats,
    PhaseResult,
    greatest,
    least,
    loss_percent,
    lost_frames,
    median,
    payload_bps,
    sum_by_port,
    total,
)

Reducer = Callable[[Iterable[float | None]], float | None]


@dataclass(frozen=True)
class LowerBound:
    """How a measure of a tester-limited phase is read, where that is not as in other phases."""

    phase: Callable[[PhaseResult], float | None]
    flow: Callable[[PhaseResult], Floats]
    port: Callable[[PhaseResult], ByPort]


@dataclass(frozen=True)
class Formula:
    """How a measure is read from a phase, and how several phases are put together."""

    phase: Callable[[PhaseResult], float | None]
    reduce: Reducer
    flow: Callable[[PhaseFlows], Floats] | None = None
    port: Callable[[PhaseResult], ByPort] | None = None
    at_least: LowerBound | None = None


def _entry(*names: str) -> Callable[[PhaseResult], float | None]:
    """What stands there in the phase's entry of the summary."""

    def value(result: PhaseResult) -> float | None:
        found: Any = result.entry
        for name in names:
            if found is None:
                return None
            found = found[name]
        known: float | None = found
        return known

    return value


# --- of a flow -----------------------------------------------------------------------------------


def _judged(name: str) -> Callable[[PhaseFlows], Floats]:
    """A count that the destination keeps of frames; tcp sees none."""

    def values(flows: PhaseFlows) -> Floats:
        end = flows.destination
        found: Floats = np.where(np.isnan(end.floats("frames")), np.nan, end.floats(name))
        return found

    return values


def _throughput(flows: PhaseFlows) -> Floats:
    found: Floats = np.where(flows.window_off, np.nan, payload_bps(flows) / MEGA)
    return found


def _offered(flows: PhaseFlows) -> Floats:
    return flows.source.floats("frames")


def _of_times(value: Callable[[Times], float | None]) -> Callable[[PhaseFlows], Floats]:
    """What is read from the histograms of each flow."""
    return lambda flows: np.array(
        [value(flows.times.get(pair, {})) for pair in flows.pairs], dtype=np.float64
    )


def _lost_probes(times: Times) -> float | None:
    found = times.get("round_trip")
    return None if found is None else found.lost


# --- of a port -----------------------------------------------------------------------------------


def _lesser(source: ByPort, destination: ByPort) -> ByPort:
    """Of each port the lesser of what came from it and what came to it."""
    both = dict(source)
    for port, value in destination.items():
        both[port] = value if both.get(port) is None else least((both[port], value))
    return both


def _relative(shares: ByPort) -> ByPort:
    """Percent of the median port's share."""
    middle = median(shares.values())
    if not middle:
        return dict.fromkeys(shares)
    return {port: None if v is None else 100.0 * v / middle for port, v in shares.items()}


def _port_uniformity(result: PhaseResult) -> ByPort:
    return _lesser(_relative(result.shares.source), _relative(result.shares.destination))


def _uniformity(result: PhaseResult) -> float | None:
    values = list(_port_uniformity(result).values())
    return None if None in values else least(values)


def _sum_of_port(flows: PhaseFlows, values: Floats) -> ByPort:
    """A flow's value, at both its ports."""
    ends = Places.of([port for pair in flows.pairs for port in pair])
    return sum_by_port(ends, np.repeat(values, 2))


def _port_loss(result: PhaseResult) -> ByPort:
    return _sum_of_port(result.flows, lost_frames(result.flows))


def _port_loss_percent(result: PhaseResult) -> ByPort:
    return _percents(_port_loss(result), _sum_of_port(result.flows, _offered(result.flows)))


def _percents(parts: ByPort, wholes: ByPort) -> ByPort:
    return {
        port: None if part is None or not (whole := wholes[port]) else 100.0 * part / whole
        for port, part in parts.items()
    }


# --- of a tester-limited phase -------------------------------------------------------------------


def _share_at_least(result: PhaseResult) -> Floats:
    with np.errstate(invalid="ignore"):
        found: Floats = 100.0 * beyond_hosts(result) / _offered(result.flows)
    return found


def _port_share_at_least(result: PhaseResult) -> ByPort:
    return _percents(
        _sum_of_port(result.flows, beyond_hosts(result)),
        _sum_of_port(result.flows, _offered(result.flows)),
    )


def _phase_share_at_least(result: PhaseResult) -> float | None:
    lost, offered = lost_in_network(result), result.entry["offered_frames"]
    return None if lost is None or not offered else 100.0 * lost / offered


_AT_LEAST = {
    "lost_frames": LowerBound(
        lost_in_network,
        beyond_hosts,
        lambda result: _sum_of_port(result.flows, beyond_hosts(result)),
    ),
    "loss_percent": LowerBound(_phase_share_at_least, _share_at_least, _port_share_at_least),
}


# --- by measure ----------------------------------------------------------------------------------

_REDUCERS: dict[str, Reducer] = {"min": least, "max": greatest, "sum": total}

_OF_FLOW: dict[str, Callable[[PhaseFlows], Floats]] = {
    "throughput": _throughput,
    "offered_frames": _offered,
    "delivered_frames": lambda flows: flows.destination.floats("frames"),
    "lost_frames": lost_frames,
    "loss_percent": loss_percent,
    "duplicated_frames": _judged("duplicated"),
    "reordered_frames": _judged("reordered"),
    "late_frames": _judged("late"),
    "corrupted_frames": _judged("corrupted"),
    "retransmitted_segments": lambda flows: flows.source.floats("retransmitted_segments"),
    "lost_probes": _of_times(_lost_probes),
}
_OF_PORT: dict[str, Callable[[PhaseResult], ByPort]] = {
    "percent_of_line": lambda result: _lesser(result.shares.source, result.shares.destination),
    "uniformity_percent": _port_uniformity,
    "lost_frames": _port_loss,
    "loss_percent": _port_loss_percent,
}


def _latency(kind: str, name: str) -> Callable[[PhaseFlows], Floats]:
    return _of_times(lambda times: figure(kind, name, times.get(kind)))


_OF_FLOW |= {key: _latency(kind, name) for key, (kind, name) in LATENCY_MEASURES.items()}

_OF_PHASE: dict[str, Callable[[PhaseResult], float | None]] = {"uniformity_percent": _uniformity}


def formula_of(measure: Measure) -> Formula:
    """The formula of a measure; KeyError for one that neither the summary nor a function here
    gives for a phase."""
    return Formula(
        _entry(*measure.entry.split(".")) if measure.entry else _OF_PHASE[measure.key],
        _REDUCERS[measure.over_phases],
        flow=_OF_FLOW.get(measure.key),
        port=_OF_PORT.get(measure.key),
        at_least=_AT_LEAST.get(measure.key),
    )


FORMULAS = {measure.key: formula_of(measure) for measure in MEASURES.values()}
