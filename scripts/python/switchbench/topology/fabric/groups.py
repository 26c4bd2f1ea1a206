# SPDX-License-Identifier: BSD-3-Clause
"""Groups of hosts around a switch each, joined by cables between hosts (Salmon et al. 1998).

Section 2.1 of the paper: L switches of P hosts, each with C cables to hosts of other groups, every
two groups joined by as many cables. Its formulas, and the same counted in a graph of that form.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

from .graph import Fabric


@dataclass(frozen=True)
class Groups:
    """A network of that form."""

    groups: int
    """L."""
    ports: int
    """P, hosts of a group."""
    cables: int
    """C, a host's cables to other hosts."""
    across: int | None
    """Cables between half of the groups and the others, counted; None of an odd number."""
    formula_per_node: float
    """(C/4)(L/(L-1)), bisection bandwidth in links a node; the paper has it of even L."""
    most_nodes: int
    """P(PC+1)."""


def salmon_per_node(cables: int, groups: int) -> float:
    """(C/4)(L/(L-1)): cables between two halves of the groups, by the number of all nodes."""
    return cables / 4 * (groups / (groups - 1))


def salmon_largest(ports: int, cables: int) -> int:
    """P(PC+1), the most nodes: then one cable joins each two groups."""
    return ports * (ports * cables + 1)


def groups(fabric: Fabric) -> Groups | None:
    """What the graph is in the paper's words; None if it has another form."""
    switches, hosts = frozenset(fabric.switches), frozenset(fabric.hosts)
    switch_of: dict[str, str] = {}
    between: Counter[frozenset[str]] = Counter()
    cables: Counter[str] = Counter()
    for link in fabric.links:
        ends = {link.a, link.b}
        if ends <= switches:
            return None
        if switch := ends & switches:
            (host,) = ends & hosts
            if host in switch_of:
                return None
            (switch_of[host],) = switch
    for link in fabric.links:
        if link.a in hosts and link.b in hosts:
            if link.a not in switch_of or link.b not in switch_of:
                return None
            between[frozenset((switch_of[link.a], switch_of[link.b]))] += link.cables
            cables.update({link.a: link.cables, link.b: link.cables})
    ports = set(Counter(switch_of.values()).values())
    each = {cables[host] for host in fabric.hosts}
    joined = {between[frozenset(two)] for two in combinations(fabric.switches, 2)}
    count = len(switches)
    if count < 2 or len(switch_of) < len(hosts) or any(len(s) != 1 for s in (ports, each, joined)):
        return None
    if len(between) != count * (count - 1) // 2:  # a cable inside a group
        return None
    (p,), (c,), (weight,) = ports, each, joined
    across = (count // 2) ** 2 * weight if count % 2 == 0 else None
    return Groups(count, p, c, across, salmon_per_node(c, count), salmon_largest(p, c))
