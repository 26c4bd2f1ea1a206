# SPDX-License-Identifier: BSD-3-Clause
"""Resolution of names to ports: groups, and the rank order of a network's ports."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ..base.errors import ConfigurationError, listed, meant, shown, some
from ..base.model import Port, Site
from ..base.source import Document, Key, KeyPath
from .fields import Flow, NamedGroups, NamedPairs, first_double, written_order
from .schema import RankOrder

Networks = dict[str, tuple[Port, ...]]
Groups = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class SitePlace:
    """Position of a site's keys: in a site file, or below `site` in a configuration."""

    document: Document
    path: KeyPath = ()

    def problem(self, keys: KeyPath, text: str) -> ConfigurationError:
        """Return a ConfigurationError that names one of the site's keys and its source line."""
        return self.document.problem((*self.path, *keys), text)

    def at(self, *keys: Key) -> AbstractContextManager[None]:
        """Turn a ValueError of the enclosed code into a ConfigurationError at a key of the site."""
        return self.document.at((*self.path, *keys))

    def hosts(self, text: str, known: Collection[str], *keys: Key) -> list[str]:
        """Return the hosts in the node set of one of the site's keys; all hosts must exist."""
        with self.at(*keys):
            named = written_order(text)
        for host in named:
            if host not in known:
                raise self.problem(keys, f"there is no host {shown(host)}{meant(host, known)}")
        return named

    def file(self, keys: KeyPath, name: str) -> Path:
        """Return the path of the file that one of the site's keys names.

        A relative path starts at the site's own folder.
        """
        path = (self.document.folder / Path(name).expanduser()).resolve()
        if not path.is_file():
            near = meant(path.name, (file.name for file in path.parent.glob("*")))
            raise self.problem(keys, f"there is no file {path}{near}")
        return path


class Names:
    """Lookup of ports by port name, by host name, or by a node set of these names."""

    def __init__(self, ports: Sequence[Port]) -> None:
        self.by_name: dict[str, tuple[Port, ...]] = {}
        hosts = list(dict.fromkeys(port.host for port in ports))
        self.hosts = str(NodeSet.fromlist(hosts, resolver=RESOLVER_NOGROUP))
        for port in ports:
            self.by_name[port.name] = (port,)
            self.by_name[port.host] = (*self.by_name.get(port.host, ()), port)

    def ports(self, names: str) -> tuple[Port, ...]:
        """Return the ports with the given names, in written order.

        Raise ValueError for an unknown name.
        """
        if names in self.by_name:
            return self.by_name[names]
        found: list[Port] = []
        for name in written_order(names):
            if name not in self.by_name:
                raise ValueError(f"there is no host or port {shown(name)} (hosts are {self.hosts})")
            found += self.by_name[name]
        return tuple(found)


def make_groups(model: RankOrder, names: Names, place: SitePlace) -> Groups:
    """Return a site's groups by name, each a list of port names in written order."""
    groups: Groups = {}
    for group, texts in (model.groups or {}).items():
        with place.at("groups", group):
            ports = [port.name for text in texts for port in names.ports(text)]
        groups[group] = tuple(dict.fromkeys(ports))
    return groups


def make_networks(
    model: RankOrder, ports: Sequence[Port], names: Names, place: SitePlace
) -> Networks:
    """Return the ports of each network of a site, in rank order."""
    order, found = model.rank_order, list[Port]()
    if order == "port":
        own = {port.name: port.name.removeprefix(f"{port.host}:") for port in ports}
        kinds = list(dict.fromkeys(own.values()))
        ports = sorted(ports, key=lambda port: kinds.index(own[port.name]))
    elif isinstance(order, list):
        for i, text in enumerate(order):
            with place.at("rank_order", i):
                found += names.ports(text)
        named = [port.name for port in found]
        if (twice := first_double(named)) is not None:
            raise place.problem(("rank_order",), f"duplicate port {twice}")
        known = set(named)
        if missing := [port.name for port in ports if port.name not in known]:
            text = f"leaves out {some(missing)}, but every port needs a rank"
            raise place.problem(("rank_order",), text)
        ports = found
    networks: dict[str, list[Port]] = {}
    for port in ports:
        networks.setdefault(port.network, []).append(port)
    return {network: tuple(members) for network, members in networks.items()}


# --- members --------------------------------------------------------------------------------------
# Groups and pairs of one trial's network as rank numbers.


@dataclass(frozen=True)
class Members:
    """Ranks of one network in a trial, found by name; an invalid name raises ValueError."""

    site: Site
    network: str
    ranks: tuple[Port, ...]

    @cached_property
    def _names(self) -> Names:
        return Names(self.site.ports)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Return the rank number of each port name."""
        return {port.name: i for i, port in enumerate(self.ranks)}

    def pairs(self, pairs: NamedPairs) -> list[int]:
        """Return the rank numbers of pairs of names as a flat list: a0 b0 a1 b1 ..."""
        found = [self._rank(name) for pair in pairs for name in pair]
        if (twice := first_double(found)) is not None:
            raise ValueError(f"duplicate rank {self.ranks[twice].name}")
        return found

    def flow(self, flow: Flow) -> tuple[int, int]:
        """Return the rank numbers of a flow's source and destination."""
        source, destination = self._end(flow.source), self._end(flow.destination)
        if source == destination:
            raise ValueError(
                f"{self.words(source, destination)} is not a flow: source and destination are "
                "the same rank"
            )
        return source, destination

    def words(self, source: int, destination: int) -> str:
        """Return a flow between two rank numbers as text: `node1:e0 to node2:e0`."""
        return f"{self.ranks[source].name} to {self.ranks[destination].name}"

    def _end(self, end: str | int) -> int:
        if isinstance(end, str):
            return self._rank(end)
        if 0 <= end < len(self.ranks):
            return end
        raise ValueError(f"there is no rank {end}: ranks are 0 to {len(self.ranks) - 1}")

    def groups(self, groups: NamedGroups) -> list[list[int]]:
        """Return the rank numbers of each group; ports that are not in the trial are skipped."""
        found = []
        for group in groups:
            ports = [port for name in group for port in self._ports(name)]
            members = [self._numbers[port.name] for port in ports if port.name in self._numbers]
            if not members:
                raise ValueError(
                    f"group {some(group)} contains none of the {len(self.ranks)} ranks of this "
                    "trial"
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
        if ports[0].name in self._numbers:
            return self._numbers[ports[0].name]
        raise ValueError(
            f"{ports[0].name} is not among the {len(self.ranks)} ranks of this trial "
            f"({self.ranks[0].name} to {self.ranks[-1].name})"
        )

    def _ports(self, name: str) -> list[Port]:
        """Return the network's ports that the name of a group, host or port stands for."""
        names, groups = self._names, self.site.groups
        try:
            ports = [port for text in groups.get(name, (name,)) for port in names.ports(text)]
        except ValueError as error:
            if "[" in name:
                raise
            known = f", groups {listed(groups)}" if groups else ""
            raise ValueError(
                f"there is no group, host or port {shown(name)} (hosts are {names.hosts}{known})"
                f"{meant(name, groups)}"
            ) from error
        here = [port for port in ports if port.network == self.network]
        if not here:
            elsewhere = ", ".join(dict.fromkeys(port.network for port in ports))
            raise ValueError(
                f"{name} is in network {elsewhere}, not in {self.network}: no flow crosses networks"
            )
        return here
