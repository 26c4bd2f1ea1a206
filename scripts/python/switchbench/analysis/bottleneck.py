# SPDX-License-Identifier: BSD-3-Clause
"""Where in the network a load found its limit: in one group of ports, or between two.

A lab's groups are its modules. What a group or a pair of them lost in one phase does not say that
it is the limit; that needs other phases of the run: more got through the rest of the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..records.flows import PhaseFlows
from .measures import delivered_line_bps

MORE = 1.05  # carries more: by this factor
LOSING = 0.02  # a share of the load that loses more met a limit

Groups = tuple[str, ...]  # one: flows among its ports; two: flows between them, either way


@dataclass
class GroupFlows:
    """The flows of a phase that begin and end in the same groups."""

    delivered_bps: float = 0.0
    sent: int = 0
    lost: int = 0

    @property
    def loses(self) -> bool:
        """Whether they met a limit."""
        return self.lost > LOSING * self.sent


@dataclass
class Shares:
    """A phase by groups; empty where a port is in no group, or in several."""

    of: dict[Groups, GroupFlows] = field(default_factory=dict)

    @property
    def delivered_bps(self) -> float:
        """Of all flows."""
        return sum(share.delivered_bps for share in self.of.values())

    def within(self, group: str) -> float:
        """What came through among a group's own ports."""
        share = self.of.get((group,))
        return share.delivered_bps if share else 0.0


def group_of_port(groups: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The group of each port that is in exactly one."""
    times = Counter(port for ports in groups.values() for port in ports)
    return {port: name for name, ports in groups.items() for port in ports if times[port] == 1}


def shares_of(
    flows: PhaseFlows, lost: Mapping[tuple[str, str], int], groups: Mapping[str, str]
) -> Shares:
    """A phase by the groups of its flows' ends."""
    shares = Shares()
    if not all(src in groups and dst in groups for src, dst in flows.pairs):
        return shares
    rates = np.nan_to_num(delivered_line_bps(flows)).tolist()
    sent = np.nan_to_num(flows.source.floats("frames")).tolist()
    for (src, dst), rate, frames in zip(flows.pairs, rates, sent, strict=True):
        one, other = groups[src], groups[dst]
        ends = (one,) if one == other else (one, other) if one < other else (other, one)
        share = shares.of.get(ends)
        if share is None:
            share = shares.of[ends] = GroupFlows()
        share.delivered_bps += rate
        share.sent += int(frames)
        share.lost += lost.get((src, dst), 0)
    return shares


def locate(phase: Shares, run: list[Shares]) -> dict[Groups, int]:
    """The groups that are the limit of a phase, with what each lost; {}: the network as a whole, as
    far as the run's phases tell."""
    losing = {groups: share for groups, share in phase.of.items() if share.lost}
    if not losing or not all(share.loses for share in losing.values()):
        return {}
    for groups, share in losing.items():
        limit = _one_is if len(groups) == 1 else _between_are
        if not limit(groups, share.delivered_bps, run):
            return {}
    return {groups: share.lost for groups, share in losing.items()}


def _one_is(groups: Groups, rate_bps: float, run: list[Shares]) -> bool:
    """Alone it gets no more, and the network carries more."""
    alone = [phase.of[groups] for phase in run if phase.of.keys() == {groups}]
    return any(share.loses and share.delivered_bps < MORE * rate_bps for share in alone) and any(
        phase.delivered_bps > MORE * rate_bps for phase in run
    )


def _between_are(groups: Groups, rate_bps: float, run: list[Shares]) -> bool:
    """Each of the two has carried more among its own ports."""
    return all(any(phase.within(group) > MORE * rate_bps for phase in run) for group in groups)
