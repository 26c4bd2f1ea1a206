# SPDX-License-Identifier: BSD-3-Clause
"""One finding: its kind, where, and its sentence."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ..records.document.findings import FindingEntry, Kind
from ..records.flows import Pair
from ..records.rows import PhaseKey
from .bottleneck import Groups, Shares

STEP = 1.1  # a load is larger than another, and not the same one with noise, by this factor

MOST_FLOWS = 100  # named in a phase, for each kind; the rest is one finding without a flow

Lowest = tuple[float, float]  # seconds after the window's opening

# In the order in which they are told: what explains others comes first.
SENTENCES = {
    "dead-port": "nothing came through it, {count} frames of its flows lost",
    "slow-port": "slow both ways, {count} frames for it lost",
    "collapse": "a larger load gets less through than a smaller one, {count} frames lost",
    "trunk": "no more gets through than a smaller load did, {count} frames lost",
    "module-capacity": "no more gets through than a smaller load did, {count} frames lost",
    "saturation": "no more gets through than a smaller load did, {count} frames lost",
    "unfinished": "{count} bytes of its transfer had not come when nothing moved any more",
    "flood": "{count} frames flooded to all ports",
    "wrong-port": "{count} frames arrived at {port} instead",
    "misdelivered": "{count} frames arrived that are another port's",
    "oversubscribed": "offered more than its line, {count} frames lost as expected",
    "loss": "{count} frames lost",
    "duplicate": "{count} frames duplicated",
    "reorder": "{count} frames reordered",
    "corrupt": "{count} frames corrupted",
    "forged": "{count} frames with numbers that their sender can't have reached: not counted",
}

ORDER = {kind: place for place, kind in enumerate(SENTENCES)}


@dataclass(frozen=True)
class Finding:
    """One thing that went wrong in one phase, or (`key` None) in the whole run."""

    kind: str
    count: int
    pair: Pair | None = None
    port: str | None = None  # with a pair: where its frames came to instead
    groups: Groups = ()  # one, or the two between which it is
    key: PhaseKey | None = None
    where: str = ""  # the phase, as people are shown it
    started: str | None = None  # the phase, UTC
    lowest: Lowest | None = None  # of the flow: where its interval results fell the furthest
    transport: str = ""

    def entry(self) -> FindingEntry:
        """As the summary has it."""
        src, dst = self.pair or (None, None)
        words = SENTENCES[self.kind]
        if self.count == 1:
            words = words.replace(" frames", " frame", 1).replace(" bytes", " byte", 1)
        what = words.format(count=f"{self.count:,}", port=self.port)
        return {
            "trial": None if self.key is None else self.key.trial,
            "repeat": None if self.key is None else self.key.repeat,
            "network": None if self.key is None else self.key.network,
            "phase": None if self.key is None else self.key.phase,
            "kind": cast(Kind, self.kind),
            "transport": self.transport,
            "src": src,
            "dst": dst,
            "port": self.port,
            "groups": list(self.groups) or None,
            "started": self.started,
            "lowest_from_s": None if self.lowest is None else self.lowest[0],
            "lowest_to_s": None if self.lowest is None else self.lowest[1],
            "count": self.count,
            "sentence": f"{self._whose}: {what}{self._when}",
        }

    @property
    def _when(self) -> str:
        """In which phase, and when, for people."""
        words = f", in {self.where}" if self.where else ""
        if self.started:
            words += f", which began {self.started}"
        if self.lowest:
            words += f"; lowest from {self.lowest[0]:.2f} to {self.lowest[1]:.2f} s into its window"
        return words

    @property
    def _whose(self) -> str:
        """Whose it is, for people."""
        if self.groups:
            return f"{'between' if len(self.groups) > 1 else 'within'} {' and '.join(self.groups)}"
        if self.pair:
            return " -> ".join(self.pair)
        return self.port or "the network"


@dataclass
class LoadPoint:
    """One phase as a load on the network: what was offered, what came through."""

    key: PhaseKey
    transport: str
    setting: tuple[Any, ...]  # phases are compared where this is the same
    where: str
    started: str | None  # UTC
    lowest: dict[Pair, Lowest]  # of flows that lost
    flows: array[int]  # which ones, by the numbers of their ports
    intended_bps: float
    offered_bps: float
    delivered_bps: float
    shares: Shares
    lost: dict[Pair, int]  # but for those that came to another port
    lost_share: float
    overloaded: bool  # most flows lose, though no port was offered more than its line
    suspects: dict[str, int]  # slow ports and what was lost to them, unless the network was slow
    found: list[Finding] = field(default_factory=list)

    def is_larger_than(self, other: LoadPoint) -> bool:
        """Whether this load is the other's flows, perhaps with more of them, at a larger rate."""
        return (
            0 < STEP * other.intended_bps <= self.intended_bps
            and self.setting == other.setting
            and len(self.flows) >= len(other.flows)
            and STEP * other.offered_bps <= self.offered_bps
            and set(self.flows).issuperset(other.flows)
        )


def by_flow(point: LoadPoint, kind: str, counts: Mapping[Any, int]) -> list[Finding]:
    """A finding for each flow (and port, where one is named), the greatest first; what is beyond
    the limit is one."""
    ranked = sorted(((n, whose) for whose, n in counts.items() if n), key=lambda item: -item[0])
    found = [
        finding(point, kind, n, pair=whose[:2], port=whose[2] if len(whose) > 2 else None)
        for n, whose in ranked[:MOST_FLOWS]
    ]
    rest = sum(n for n, _ in ranked[MOST_FLOWS:])
    return found + ([finding(point, kind, rest)] if rest else [])


def finding(
    point: LoadPoint,
    kind: str,
    count: int,
    pair: Pair | None = None,
    port: str | None = None,
    groups: Groups = (),
) -> Finding:
    """Of a phase."""
    lowest = point.lowest.get(pair) if pair and kind == "loss" else None
    where = (point.key, point.where, point.started, lowest, point.transport)
    return Finding(kind, count, pair, port, groups, *where)
