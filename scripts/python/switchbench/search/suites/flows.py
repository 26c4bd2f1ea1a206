# SPDX-License-Identifier: BSD-3-Clause
"""The flows of the documents' tests, by numbers of ports: one phase each, all at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from .declaration import Flow, Variant

Variants = Callable[[int], Iterator[Variant]]


def both_ways(ports: int) -> Iterator[Variant]:
    """Pairs of neighbours, both directions (RFC 2544, 14)."""
    yield Variant("pairs", tuple((port, port ^ 1) for port in range(ports - ports % 2)))


def one_way_pairs(ports: int) -> Iterator[Variant]:
    """The first port of each pair of neighbours to the second (RFC 2889, 5.6.3.1)."""
    yield Variant("one-way pairs", tuple((port, port + 1) for port in range(0, ports - 1, 2)))


def pairs_and_mesh(ports: int) -> Iterator[Variant]:
    """RFC 8239, 2.2: port pairs, and a full mesh."""
    yield from both_ways(ports)
    yield from full_mesh(ports)


def many_to_one(ports: int) -> Iterator[Variant]:
    """All ports to the first."""
    yield Variant("many to one", tuple((port, 0) for port in range(1, ports)))


def one_to_one(_ports: int) -> Iterator[Variant]:
    """The test port to the learning port; all others listen (RFC 2889, 5.7)."""
    yield Variant("one to one", ((0, 1),))


def one_to_all(ports: int) -> Iterator[Variant]:
    """One port, whose frames are for all others (RFC 2889, 5.10)."""
    yield Variant("one to all", tuple((0, port) for port in range(1, ports)))


def full_mesh(ports: int) -> Iterator[Variant]:
    """All to all others, in the order of RFC 2889, 5.1.3."""
    flows = ((port, (port + step) % ports) for port in range(ports) for step in range(1, ports))
    yield Variant("full mesh", tuple(flows))


def one_to_many(ports: int) -> Iterator[Variant]:
    """RFC 2889, 5.2: to one, from one, and both."""
    to_one = tuple((port, 0) for port in range(1, ports))
    from_one = tuple((0, port) for port in range(1, ports))
    yield Variant("many to one", to_one)
    yield Variant("one to many", from_one)
    yield Variant("both directions", to_one + from_one)


def halves(ports: int) -> Iterator[Variant]:
    """Half of the ports to the other half, one direction and both (RFC 2889, 5.4)."""
    half = ports // 2
    forward = tuple(_across(range(half), range(half, 2 * half)))
    yield Variant("one direction", forward)
    yield Variant("both directions", forward + tuple(_across(range(half, 2 * half), range(half))))


def across_uplink(ports: int) -> Iterator[Variant]:
    """The ports of one device to those of the other, without local traffic (RFC 2889, 5.3)."""
    _, both = halves(ports)
    yield Variant("uplink", both.flows)


def groups_of_four(ports: int) -> Iterator[Variant]:
    """RFC 2889, 5.5.3: the first source to both receivers, the second to the congested one."""
    groups = range(0, ports - ports % 4, 4)
    yield Variant(
        "groups of four", tuple(flow for first in groups for flow in _group(first, ports))
    )


def shifted_groups(ports: int) -> Iterator[Variant]:
    """RFC 8239, 5.2: two groups of four, then all, each shifted port by port.

    In all groups the traffic of a first port is split across four egress ports: the text does not
    name them; here they are those of its own group and of the next.
    """
    for shift in range(ports):
        groups = (_group((shift + first) % ports, ports) for first in (0, 4))
        yield Variant(f"two groups, port {shift + 1} first", tuple(chain(*groups)))
    for shift in range(ports):
        every = [_group((shift + 4 * each) % ports, ports) for each in range(ports // 4)]
        following = every[1:] + every[:1]
        split = (
            (own[0][0], destination)
            for own, other in zip(every, following, strict=True)
            for _, destination in other[:2]
        )
        yield Variant(f"all groups, port {shift + 1} first", (*chain(*every), *split))


def to_fewer(ports: int) -> Iterator[Variant]:
    """RFC 8239, 4.2: N - 1 ports to one, N - 2 to two, ... two to N - 2."""
    for receivers in range(1, ports - 1):
        senders = ports - receivers
        flows = _across(range(senders), range(senders, ports))
        yield Variant(f"{senders} to {receivers}", tuple(flows))


def to_each(ports: int) -> Iterator[Variant]:
    """RFC 8239, 3.2: all others to one port, each port in turn."""
    for port in range(ports):
        flows = tuple((other, port) for other in range(ports) if other != port)
        yield Variant(f"to port {port + 1}", flows)


def incast(ports: int) -> Iterator[Variant]:
    """RFC 8239, 6.2: 1 to N - 2 stateful ports and a stateless one, then the reverse, to one."""
    more = [(stateful, 1) for stateful in range(1, ports - 1)]
    for stateful, stateless in more + [(1, stateless) for stateless in range(2, ports - 1)]:
        senders = stateful + stateless
        yield Variant(
            f"{_numbers(0, stateful)} TCP, {_numbers(stateful, senders)} UDP, to port {ports}",
            tuple((port, ports - 1) for port in range(senders)),
            stateful=tuple(range(stateful)),
        )


def _numbers(first: int, end: int) -> str:
    """The ports from the one to before the other, for people."""
    return f"port {end}" if end == first + 1 else f"ports {first + 1} to {end}"


def _across(sources: range, destinations: range) -> Iterator[Flow]:
    """Every source to every destination, each beginning with another one."""
    for number, source in enumerate(sources):
        for step in range(len(destinations)):
            yield source, destinations[(number + step) % len(destinations)]


def _group(first: int, ports: int) -> tuple[Flow, ...]:
    one, two, uncongested, congested = ((first + place) % ports for place in range(4))
    return (one, uncongested), (one, congested), (two, congested)
