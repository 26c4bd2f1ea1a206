# SPDX-License-Identifier: BSD-3-Clause
"""How frames were out of order: RFC 4737's ratio and extent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..base import transports
from ..records.records import Flow, PhaseRecords, Record
from . import measures as m


@dataclass(frozen=True, slots=True)
class FlowReordering:
    """What a `reorder` record says of one flow."""

    reordered: int
    extent_sum: int
    extent_max: int
    three_reordered: int  # 3-reordered


def add_disorder(phase: PhaseRecords, record: Record) -> None:
    """Takes a `reorder` record."""
    phase.disorders[record["src"], record["dst"]] = FlowReordering(
        record["reordered"],
        record["extent_sum"],
        record["extent_max"],
        record["three_reordered"],
    )


def disorder_entry(
    flows: Iterable[Flow], disorders: dict[tuple[str, str], FlowReordering], transport: str
) -> dict[str, Any]:
    """The `disorder` of a phase's entry in the summary; nulls where frames are not seen."""
    came = {(flow.src, flow.dst): _delivered(flow) for flow in flows}
    delivered = m.total_int(came.values()) if transports.of(transport).frames else None
    if not delivered:
        return dict.fromkeys(
            ("reordered_percent", "three_reordered_percent", "extent_mean", "extent_max", "worst")
        )
    found = [disorder for ends, disorder in disorders.items() if ends in came]
    reordered = sum(disorder.reordered for disorder in found)
    extents = sum(disorder.extent_sum for disorder in found)
    return {
        "reordered_percent": 100.0 * reordered / delivered,
        "three_reordered_percent": 100.0
        * sum(disorder.three_reordered for disorder in found)
        / delivered,
        "extent_mean": extents / reordered if reordered else None,
        "extent_max": max((disorder.extent_max for disorder in found), default=0),
        "worst": _worst(came, disorders),
    }


def _delivered(flow: Flow) -> int | None:
    return None if flow.destination is None else flow.destination.whole.frames


def _worst(
    came: dict[tuple[str, str], int | None], disorders: dict[tuple[str, str], FlowReordering]
) -> dict[str, Any] | None:
    shares = {
        ends: 100.0 * disorder.reordered / (came.get(ends) or 0)
        for ends, disorder in disorders.items()
        if came.get(ends) and disorder.reordered
    }
    if not shares:
        return None
    ends = max(shares, key=lambda pair: shares[pair])
    return {
        "src": ends[0],
        "dst": ends[1],
        "reordered_percent": shares[ends],
        "extent_max": disorders[ends].extent_max,
    }
