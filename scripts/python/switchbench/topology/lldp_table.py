# SPDX-License-Identifier: BSD-3-Clause
"""Cabling as switches tell it by LLDP, against what the site's `wiring` says.

Groups against both, and against the order of ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ..base.model import Port, Site
from ..base.source import json_decoder

AS_SAID = "as the site says"
UNKNOWN = "no LLDP"


@dataclass(frozen=True)
class Neighbour:
    """What is at the other end of an interface's cable."""

    switch: str
    ports: tuple[str, ...]  # its port by number and in words: sites name either
    medium: str = ""  # of the link, by IEEE 802.3's names; "": LLDP does not say
    bridges: bool = False  # whether it says that it forwards frames
    rivals: tuple[Neighbour, ...] = ()  # others on the same interface that may be its cable's end

    def __str__(self) -> str:
        """Return switch and port."""
        return " ".join((self.switch, *self.ports[:1]))


def is_json(text: str) -> bool:
    """Return whether it is what `lldpctl -f json` writes."""
    try:
        return isinstance(json_decoder().decode(text)["lldp"], dict)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def neighbours(text: str) -> dict[str, Neighbour]:
    """Return the neighbour of each interface, from `lldpctl -f json`; none of anything else.

    Of several on one interface it is the one that forwards: a BMC or a virtual machine shares it.
    """
    found: dict[str, list[Neighbour]] = {}
    try:
        for name, seen in _of_json(text):
            found.setdefault(name, []).append(seen)
    except (ValueError, AttributeError, TypeError, KeyError, IndexError, RecursionError):
        return {}
    every = [(name, seen) for name, several in found.items() for seen in several]
    words = [word for name, seen in every for word in (name, seen.switch, seen.medium)]
    if not all(isinstance(word, str) for word in words):
        return {}
    return {name: _cable_end(several) for name, several in found.items()}


def _cable_end(several: Sequence[Neighbour]) -> Neighbour:
    first, *rivals = dict.fromkeys([seen for seen in several if seen.bridges] or several)
    return replace(first, rivals=tuple(rivals))


def _of_json(text: str) -> Iterator[tuple[str, Neighbour]]:
    """Yield the neighbours in lldpcli's JSON, where one interface is a mapping, several a list."""
    interfaces = json_decoder().decode(text)["lldp"].get("interface", [])
    for one in interfaces if isinstance(interfaces, list) else [interfaces]:
        for name, seen in one.items():
            chassis, port = seen.get("chassis", {}), seen.get("port", {})
            # Without a name of its own it is known by its id alone.
            switch = next(iter(chassis), "")
            facts = chassis if switch == "id" else chassis.get(switch, {})
            if switch == "id":
                switch = chassis["id"].get("value", "")
            capabilities = facts.get("capability", [])
            yield (
                name,
                Neighbour(
                    switch,
                    _words(port.get("id", {}), port.get("descr")),
                    port.get("auto-negotiation", {}).get("current", ""),
                    _bridges(capabilities if isinstance(capabilities, list) else [capabilities]),
                ),
            )


_FORWARDERS = ("Bridge", "Router")


def _words(identity: Mapping[str, Any], description: str | None) -> tuple[str, ...]:
    words = [identity.get("value"), description]
    if identity.get("type") == "mac":
        words.reverse()  # an address says less
    return tuple(str(word) for word in words if word)


def _bridges(capabilities: Sequence[Mapping[str, Any]]) -> bool:
    return any(one.get("type") in _FORWARDERS and one.get("enabled") for one in capabilities)


def compared(port: Port, seen: Mapping[str, Neighbour]) -> str | None:
    """Return a port's cable in words; None where the site does not say where it should be."""
    if port.switch is None:
        return None
    found = seen.get(str(port.engine.get("iface", "")))
    if found is None:
        return UNKNOWN
    for seen_end in (found, *found.rivals):
        if seen_end.switch == port.switch and port.switch_port in (None, *seen_end.ports):
            return AS_SAID
    wanted = " ".join(word for word in (port.switch, port.switch_port) if word)
    return f"at {found}, the site says {wanted}"


# --- ranks and groups ----------------------------------------------------------------------------


def doubts(site: Site, seen: Mapping[str, Mapping[str, Neighbour]]) -> list[str]:
    """Return what a person may not have meant: of ranks, groups and switches; `seen` is by host."""
    return [*_order(site), *_groups(site, seen)]


def _order(site: Site) -> Iterator[str]:
    """`neighbours`, `halves` and shifts go by rank: groups should follow each other whole."""
    if site.effective.get("rank_order") in ("shuffled", "listed"):
        return  # meant
    group_of = {port: name for name, ports in site.groups.items() for port in ports}
    for network, ports in site.networks.items():
        runs = [name for name, _ in groupby(group_of.get(port.name) for port in ports)]
        for name, count in Counter(runs).items():
            if name is not None and count > 1:
                yield (
                    f"rank order: group {name} is in {count} pieces of network {network}'s ranks: "
                    "neighbours, halves and shifts by rank do not follow groups"
                )


def _groups(site: Site, seen: Mapping[str, Mapping[str, Neighbour]]) -> Iterator[str]:
    """Yield the ports that are on another switch than most of their group."""
    ports = {port.name: port for port in site.ports}
    for name, members in site.groups.items():
        switches = {
            member: switch
            for member in members
            if (switch := _switch(ports[member], seen.get(ports[member].host, {}))) is not None
        }
        if len(switches) < 3:
            continue
        ((most, count),) = Counter(switches.values()).most_common(1)
        if 2 * count <= len(switches):
            continue  # a group of another kind
        for member, switch in switches.items():
            if switch != most:
                yield f"group {name}: {member} is on {switch}, most of the group on {most}"


def _switch(port: Port, seen: Mapping[str, Neighbour]) -> str | None:
    found = seen.get(str(port.engine.get("iface", "")))
    return found.switch if found is not None else port.switch
