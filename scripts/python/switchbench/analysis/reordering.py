# SPDX-License-Identifier: BSD-3-Clause
"""How frames were out of order: RFC 4737's ratio and extent."""

from __future__ import annotations

from collections.abc import Mapping

from ..base import transports
from ..records.document.parts import MostDisordered, ReorderingEntry
from ..records.flows import Pair, PhaseFlows
from ..records.record_forms import Record
from . import measures as m


def disorder_entry(
    flows: PhaseFlows, disorders: Mapping[Pair, Record], transport: str
) -> ReorderingEntry:
    """The `reordering` of a phase's entry in the summary, of its `reorder` records; nulls where
    frames are not seen."""
    frames = flows.destination.floats("frames")
    delivered = m.total_int(frames) if transports.of(transport).frames else None
    if not delivered:
        return {
            "reordered_percent": None,
            "three_reordered_percent": None,
            "extent_mean": None,
            "extent_max": None,
            "worst": None,
        }
    came = dict(zip(flows.pairs, m.observed(frames), strict=True)) if disorders else {}
    found = [disorder for pair, disorder in disorders.items() if pair in came]
    reordered = sum(disorder["reordered"] for disorder in found)
    extents = sum(disorder["extent_sum"] for disorder in found)
    three = sum(disorder["three_reordered"] for disorder in found)
    return {
        "reordered_percent": 100.0 * reordered / delivered,
        "three_reordered_percent": 100.0 * three / delivered,
        "extent_mean": extents / reordered if reordered else None,
        "extent_max": max((disorder["extent_max"] for disorder in found), default=0),
        "worst": _worst(came, disorders),
    }


def _worst(
    came: Mapping[Pair, float | None], disorders: Mapping[Pair, Record]
) -> MostDisordered | None:
    shares = {
        pair: 100.0 * disorder["reordered"] / frames
        for pair, disorder in disorders.items()
        if (frames := came.get(pair)) and disorder["reordered"]
    }
    if not shares:
        return None
    pair = max(shares, key=lambda pair: shares[pair])
    return {
        "src": pair[0],
        "dst": pair[1],
        "reordered_percent": shares[pair],
        "extent_max": disorders[pair]["extent_max"],
    }
