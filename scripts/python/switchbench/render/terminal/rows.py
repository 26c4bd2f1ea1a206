# SPDX-License-Identifier: BSD-3-Clause
"""Which rows of a table the terminal shows, and what a plan's row has of its phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...analysis import measures as m
from ...analysis.ports import BELOW_MEDIAN
from ...base import format

WORST_PHASES = 5

Entry = dict[str, Any]


def plan_key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return entry["trial"], entry["repeat"], entry["network"]


def worst(phases: Sequence[Entry]) -> list[Entry]:
    """The slowest, and the one that lost the most where it is not among them."""
    worst = sorted(phases, key=_least)[:WORST_PHASES]
    leakiest = max(phases, key=lambda entry: entry["lost_frames"] or 0)
    if leakiest["lost_frames"] and leakiest not in worst:
        worst.append(leakiest)
    return worst


def ended(entry: Entry) -> str:
    """How the phase ended, where that was not as it should; T: the tester was the limit."""
    state = "" if entry["state"] == "complete" else str(entry["state"])
    return " ".join(filter(None, (state, "T" if entry["tester_limited"] else "")))


def _least(entry: Entry) -> float:
    rate = entry["throughput"]["min"]
    return float("inf") if rate is None else rate


def longest(entry: Entry) -> float:
    """The greatest of a phase's times, of whatever kind."""
    kinds = (entry.get("latency") or {}).values()
    return max((times["max"] or 0.0 for times in kinds if times), default=0.0)


def is_behind(port: Entry) -> bool:
    ends = (port["as_source"], port["as_destination"])
    return any((end["relative_to_median"] or 1.0) < BELOW_MEDIAN for end in ends)


def widest(plan: Entry, phases: Sequence[Entry]) -> Entry:
    """A plan's line has the sums and worst figures of its phases where the plan has none."""
    sums = ("reordered_frames", "duplicated_frames", "corrupted_frames", "misdelivered_frames",
            "retransmitted_segments", "retransmitted_packets", "lost_messages")  # fmt: skip
    loads = [entry["offered_load"] for entry in phases if entry["offered_load"] is not None]
    skews = [entry["start_skew_us"] for entry in phases if entry["start_skew_us"] is not None]
    cpu = sum_of_known(entry["cpu_s"] for entry in phases)
    delivered = plan["delivered_bytes"]
    return (
        plan
        | {name: sum_of_known(entry.get(name) for entry in phases) for name in sums}
        | {
            "offered_load": sum(loads) / len(loads) if loads else None,
            "start_skew_us": max(skews, default=None),
            "intervals": {"lowest": _lowest_of(phases)},
            "cpu_s_per_gb": cpu / (delivered / 1e9) if cpu is not None and delivered else None,
        }
    )


def _lowest_of(phases: Sequence[Entry]) -> list[Entry]:
    lows: list[Entry] = [low for entry in phases for low in entry["intervals"]["lowest"]]
    return sorted(lows, key=lambda low: float(low["percent_of_mean"]))[:1]


def sum_of_known(values: Any) -> Any:
    parts = list(values)
    return None if None in parts else sum(parts)


def limit_sentences(trials: Sequence[Entry]) -> list[str]:
    """A sentence for each port whose host is doubted, over all phases."""
    limits: dict[str, list[Entry]] = {}
    for entry in trials:
        for limit in entry["tester_limited"]:
            limits.setdefault(limit["port"], []).append(limit)
    sentences = []
    for port, found in sorted(limits.items()):
        words = []
        short = [limit["shortfall_percent"] for limit in found if limit["shortfall_percent"]]
        if short:
            words.append(f"offered up to {max(short):.1f} % less than intended")
        drops = sum(limit["dropped_frames"] or 0 for limit in found)
        if drops:
            words.append(f"{format.of(drops, 'frame')} dropped in the host")
        late = m.greatest(limit.get("start_delay_ms") for limit in found)
        if late:
            words.append(f"started up to {late:.1f} ms late")
        off = m.greatest(limit.get("window_error_percent") for limit in found)
        if off:
            words.append(f"its window was up to {off:.1f} % off its length")
        sentences.append(f"{port}: {', '.join(words)}, in {format.of(len(found), 'phase')}")
    return sentences
