# SPDX-License-Identifier: BSD-3-Clause
"""Plan of a campaign: which host port is connected to which device port, round by round.

A device with more ports than hosts is tested in two ways. In a rotation, cables move until each
port was loaded, and each pair of port groups was in one round. In a chain (snake) all ports are
loaded at once, and the exit moves until the faulty part is found. This module only computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, pairwise

from ..base.errors import ConfigurationError
from ..base.model import Device
from ..topology.form import loop_cables

Places = dict[str, str]  # cabling: device port of each host port

# --- rotation -------------------------------------------------------------------------------------


def rotation(device: Device, at: Mapping[str, str]) -> list[Places]:
    """Return the cabling of each round of a rotation that begins with the present cabling.

    The first rounds load each port, group by group, in as few rounds as possible; further rounds
    mix groups. No round moves more cables than necessary.
    """
    if len(at) >= len(device.ports):
        raise ConfigurationError(
            f"{len(at)} host ports load all {len(device.ports)} ports of {device.name} at once: no "
            "cable has to be moved; use `switchbench run`"
        )
    found = [dict(at)]
    grouped = [port for ports in device.groups.values() for port in ports]
    left = [p for p in dict.fromkeys((*grouped, *device.ports)) if p not in at.values()]
    for first in range(0, len(left), len(at)):
        found.append(_moved(found[-1], left[first : first + len(at)]))
    # Few sets of groups, with at most a group for each host port, that together have each pair.
    every = list(device.groups)
    apart = {frozenset(pair) for pair in combinations(every, 2)}
    while apart and len(at) >= 2:
        mixed = sorted(min(apart, key=lambda pair: sorted(map(every.index, pair))))
        while len(mixed) < min(len(at), len(every)):
            others = [name for name in every if name not in mixed]
            news = {o: sum(frozenset((o, m)) in apart for m in mixed) for o in others}
            mixed.append(max(others, key=lambda name: news[name]))
        apart -= {frozenset(pair) for pair in combinations(mixed, 2)}
        here = set(found[-1].values())  # ports in use come first
        groups = {
            name: sorted(device.groups[name], key=here.__contains__, reverse=True)
            for name in every
            if name in mixed
        }
        # Host ports are divided evenly among the groups. A group with fewer ports than its share is
        # filled; surplus hosts go to the groups that already have the most hosts.
        shares = dict.fromkeys(groups, 0)
        surplus = {name: len(here.intersection(ports)) for name, ports in groups.items()}
        for _ in range(min(len(at), sum(map(len, groups.values())))):
            left = [name for name, ports in groups.items() if shares[name] < len(ports)]
            least = min(left, key=lambda name: (shares[name], -surplus[name]))
            shares[least] += 1
            surplus[least] -= 1
        wanted = [port for name, ports in groups.items() for port in ports[: shares[name]]]
        found.append(_moved(found[-1], wanted))
    return found


def _moved(before: Mapping[str, str], wanted: Sequence[str]) -> Places:
    """Return the cabling to all wanted device ports that moves as few cables as possible."""
    free = [port for port in wanted if port not in before.values()]
    movable = [tester for tester, port in before.items() if port not in wanted]
    return {**before, **dict(zip(movable, free, strict=False))}


# --- chain ----------------------------------------------------------------------------------------

SURE = 0.99  # min probability of a part that is named as faulty
MOST_ROUNDS = 40
UNEXPLAINED = 1e-3  # loss rate of a healthy part, per loss rate of the faulty part
ENOUGH = 0.1  # min probability on both sides of the exit, if only the exit moves


@dataclass(frozen=True)
class ChainResult:
    """Sent and lost frames of a round that loaded a chain's passes (VLANs) `first` to `last`.

    A pass is a VLAN of two ports; passes are numbered from 0.
    """

    first: int
    last: int
    sent: float
    lost: float


def chain_parts(device: Device) -> list[tuple[str, ...]]:
    """Return the parts of a chain, one of which may be faulty, as lists of their ports.

    Parts are alternately the two ports of a VLAN and the cable to the next VLAN.
    """
    passes: list[tuple[str, ...]] = list(zip(device.ports[::2], device.ports[1::2], strict=True))
    parts = passes[:1]
    for before, here in pairwise(passes):
        parts += [(f"{before[1]} - {here[0]}",), here]
    return parts


def probabilities(passes: int, seen: Iterable[ChainResult]) -> list[float]:
    """Return, for each part of a chain, the probability that this part is the only faulty one.

    Part 2 n is pass n, part 2 n + 1 the cable behind it. The fault loses frames at a constant,
    unknown rate (Poisson, Jeffreys' prior); all other parts lose UNEXPLAINED times this rate.
    """
    seen = list(seen)
    logs = []
    for part in range(2 * passes - 1):
        within = [one for one in seen if 2 * one.first <= part <= 2 * one.last]
        sent, lost = (sum(getattr(one, key) for one in within) for key in ("sent", "lost"))
        rate = (lost + 0.5) / (sent + 1)
        log = math.lgamma(lost + 0.5) - (lost + 0.5) * math.log(sent + 1)
        for one in seen:
            if one not in within:
                other = UNEXPLAINED * rate
                log += one.lost * math.log(other) - one.sent * other
        logs.append(log)
    weights = [math.exp(log - max(logs)) for log in logs]
    return [weight / sum(weights) for weight in weights]


def next_passes(passes: int, seen: Sequence[ChainResult]) -> tuple[int, int] | None:
    """Return the first and last pass (VLAN) to load in the next round; None if complete.

    The first round loads the whole chain. Each further round loads a part with half of the
    probability: first only the exit moves, and if this gains nothing, the entry too.
    """
    if not seen:
        return 0, passes - 1
    if not any(one.lost for one in seen) or len(seen) >= MOST_ROUNDS:
        return None
    likely = probabilities(passes, seen)
    if max(likely) >= SURE:
        return None

    def beside(span: tuple[int, int]) -> float:
        return abs(sum(likely[2 * span[0] : 2 * span[1] + 1]) - 0.5)

    best = min(((0, last) for last in range(passes)), key=beside)
    if beside(best) > 0.5 - ENOUGH:
        best = min(combinations_with_replacement(range(passes), 2), key=beside)
    return best


def chain_places(device: Device, testers: Sequence[str], span: tuple[int, int]) -> Places:
    """Return the cabling of both host ports that loads a chain's passes (VLANs) in `span`."""
    return {testers[0]: device.ports[2 * span[0]], testers[1]: device.ports[2 * span[1] + 1]}


# --- cable moves ----------------------------------------------------------------------------------


def moves(device: Device, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the cable moves between two rounds as sentences, in a feasible order."""

    def loops(places: Mapping[str, str]) -> set[str]:
        cables = loop_cables(device, places.values()).items()
        return {" - ".join(sorted(ends, key=device.ports.index)) for ends in cables}

    return [
        *(f"pull the loop cable {name}" for name in sorted(loops(before) - loops(after))),
        *(
            f"move {tester} from {before[tester]} to {port}"
            for tester, port in after.items()
            if port != before[tester]
        ),
        *(f"plug the loop cable {name} in again" for name in sorted(loops(after) - loops(before))),
    ]
