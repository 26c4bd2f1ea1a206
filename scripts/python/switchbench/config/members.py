# SPDX-License-Identifier: BSD-3-Clause
"""From names to rank numbers: the groups and pairs of one trial's network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..base.model import Port, Site
from ..base.words import listed, meant, shown, some
from .order import Names
from .sets import Flow, NamedGroups, NamedPairs


class FlowError(ValueError):
    """What is wrong with a flow of a list: its number there, from 0, and a sentence."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


@dataclass(frozen=True)
class Members:
    """The ranks of one network in a trial. ValueError says which name is wrong, and why."""

    site: Site
    network: str
    ranks: tuple[Port, ...]

    @cached_property
    def names(self) -> Names:
        """All ports of the site by name."""
        return Names(self.site.ports)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Rank numbers by port name."""
        return {port.name: i for i, port in enumerate(self.ranks)}

    def pairs(self, pairs: NamedPairs) -> list[int]:
        """Rank numbers, flat: a0 b0 a1 b1 ..."""
        found: dict[int, None] = {}
        for pair in pairs:
            for name in pair:
                rank = self._rank(name)
                if rank in found:
                    raise ValueError(f"duplicate rank {self.ranks[rank].name}")
                found[rank] = None
        return list(found)

    def flows(self, flows: Sequence[Flow]) -> dict[tuple[int, int], float | None]:
        """The share in percent by source and destination; FlowError says which is wrong."""
        found: dict[tuple[int, int], float | None] = {}
        for number, (*ends, share) in enumerate(flows):
            try:
                source, destination = (self._end(end) for end in ends)
            except ValueError as error:
                raise FlowError(number, str(error)) from None
            words = f"{self.ranks[source].name} to {self.ranks[destination].name}"
            if source == destination:
                raise FlowError(number, f"{words} is no flow")
            if (source, destination) in found:
                raise FlowError(number, f"duplicate flow {words}")
            found[source, destination] = share
        return found

    def _end(self, end: str | int) -> int:
        if isinstance(end, str):
            return self._rank(end)
        if 0 <= end < len(self.ranks):
            return end
        raise ValueError(f"there is no rank {end}: ranks are 0 to {len(self.ranks) - 1}")

    def groups(self, groups: NamedGroups) -> list[list[int]]:
        """Rank numbers of each group, in the order written; ports that are no ranks are left."""
        found = []
        for group in groups:
            ports = [port for name in group for port in self._ports(name)]
            members = [self.numbers[port.name] for port in ports if port.name in self.numbers]
            if not members:
                raise ValueError(
                    f"group {some(group)} has none of the {len(self.ranks)} ranks of this trial"
                )
            found.append(list(dict.fromkeys(members)))
        return found

    def _rank(self, name: str) -> int:
        ports = self._ports(name)
        if len(ports) > 1:
            raise ValueError(
                f"{name} has several ports in network {self.network}: "
                f"name one of {some(port.name for port in ports)}"
            )
        if ports[0].name in self.numbers:
            return self.numbers[ports[0].name]
        raise ValueError(
            f"{ports[0].name} is not among the {len(self.ranks)} ranks of this trial "
            f"({self.ranks[0].name} to {self.ranks[-1].name})"
        )

    def _ports(self, name: str) -> list[Port]:
        """The ports of this network that a group's, host's or port's name means."""
        names = self.names
        if name in self.site.groups:
            ports = [port for text in self.site.groups[name] for port in names.ports(text)]
        else:
            ports = list(self._known(name, names))
        here = [port for port in ports if port.network == self.network]
        if not here:
            elsewhere = ", ".join(dict.fromkeys(port.network for port in ports))
            raise ValueError(
                f"{name} is in network {elsewhere}, not in {self.network}: no flow crosses networks"
            )
        return here

    def _known(self, name: str, names: Names) -> tuple[Port, ...]:
        try:
            return names.ports(name)
        except ValueError as error:
            if "[" in name:
                raise
            groups = f", groups {listed(self.site.groups)}" if self.site.groups else ""
            raise ValueError(
                f"there is no group, host or port {shown(name)} (hosts are {names.hosts}{groups})"
                f"{meant(name, self.site.groups)}"
            ) from error
