# SPDX-License-Identifier: BSD-3-Clause
"""The smallest test that tells suspects apart, or loads what was never loaded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .facts import Bools, Element, Ints, Observations, Paths
from .suspects import NextTest, Suspect, element_words

MOST_PAIRS = 20_000  # pairs that are looked at
MOST_FLOWS = 16

Rivals = Sequence[tuple[Suspect, Sequence[Sequence[Element]]]]


def next_test(
    found: Observations, paths: Paths, rivals: Rivals, untested: Sequence[Element]
) -> NextTest | None:
    """Return the test to run next; None where nothing is left to decide."""
    if not len(found) or not paths.elements:
        return None
    transport, load = _usual(found)
    src, dst = _possible_pairs(found, paths)
    indptr, members = paths.of_pairs(src, dst)
    pair = np.repeat(np.arange(len(src)), np.diff(indptr))
    number = {element: index for index, element in enumerate(paths.elements)}
    swap = ""
    for suspect, others in rivals:
        groups = [[x] for x in suspect.alike] + [list(group) for group in others]
        known = [[number[x] for x in group if x in number] for group in groups]
        known = [group for group in known if group]
        if len(known) < 2:
            continue
        uses = np.zeros((len(known), len(src)), np.bool_)
        for index, group in enumerate(known):
            uses[index, pair[np.isin(members, group)]] = True
        flows = _splitting(uses, paths, src, dst)
        if flows:
            why = f"decides whether {_listed(groups)} is at fault"
            return NextTest(flows, load, transport, why)
        if not swap and len(suspect.alike) > 1:
            swap = (
                f"no traffic tells {_listed([[x] for x in suspect.alike])} apart: swap the cable "
                f"of {suspect.element.name} and run again"
            )
    wanted = [number[x] for x in untested if x in number]
    flows = _covering(wanted, pair, members, paths, src, dst)
    if flows and not swap:
        return NextTest(flows, load, transport, f"loads {_listed([[x] for x in untested])}")
    return NextTest((), load, transport, swap) if swap else None


def _listed(groups: Sequence[Sequence[Element]]) -> str:
    names = [element_words(group[0]) for group in groups]
    shown = names[:4]
    more = [f"{len(names) - 4} more"] if len(names) > 4 else []
    if len(shown) + len(more) == 1:
        return shown[0]
    return " or ".join([", ".join((shown + more)[:-1]), (shown + more)[-1]])


def _usual(found: Observations) -> tuple[str, float]:
    """Return an open transport if one was used, and the largest load."""
    facts = max(found.phases, key=lambda x: (x.open_loop, np.nan_to_num(x.load)))
    return facts.transport, float(facts.load) if facts.load == facts.load else 0.95


def _possible_pairs(found: Observations, paths: Paths) -> tuple[Ints, Ints]:
    """Return ordered pairs of ports of one network: all, or every k-th where there are too many."""
    ports = len(paths.ports)
    step = max(1, ports * ports // MOST_PAIRS)
    if step > 1:
        step += 1 - step % 2  # odd: sources and destinations both vary
    key = np.arange(0, ports * ports, step)
    src, dst = key // ports, key % ports
    keep = src != dst
    if paths.networks:
        networks = np.unique(np.array(paths.networks), return_inverse=True)[1]
        keep &= networks[src] == networks[dst]
    return src[keep], dst[keep]


def _splitting(uses: Bools, paths: Paths, src: Ints, dst: Ints) -> tuple[tuple[str, str], ...]:
    """Return few pairs that pass some of the alternatives and not others; () where none does."""
    flows: list[tuple[str, str]] = []
    open_groups = [np.arange(len(uses))]
    while open_groups and len(flows) < MOST_FLOWS:
        group = open_groups.pop()
        inside = uses[group].sum(axis=0)
        balance = np.minimum(inside, len(group) - inside)
        best = int(np.argmax(balance))
        if balance[best] == 0:
            continue
        flows.append((paths.ports[int(src[best])], paths.ports[int(dst[best])]))
        for part in (group[uses[group, best]], group[~uses[group, best]]):
            if len(part) > 1:
                open_groups.append(part)
    return tuple(dict.fromkeys(flows))


def _covering(
    wanted: Sequence[int], pair: Ints, members: Ints, paths: Paths, src: Ints, dst: Ints
) -> tuple[tuple[str, str], ...]:
    """Return pairs that together pass the wanted elements."""
    flows: list[tuple[str, str]] = []
    left = set(wanted)
    while left and len(flows) < MOST_FLOWS:
        count = np.bincount(pair[np.isin(members, list(left))], minlength=len(src))
        best = int(np.argmax(count))
        if not count[best]:
            break
        left -= set(members[pair == best].tolist())
        flows.append((paths.ports[int(src[best])], paths.ports[int(dst[best])]))
    return tuple(flows)
