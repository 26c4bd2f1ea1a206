# SPDX-License-Identifier: BSD-3-Clause
"""What was found of a network, and the topology file of `kind: site` that says it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import yaml
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ...base.errors import ConfigurationError
from ..file_form import File, Nodes, Override, TrunkEntry
from ..links import LinkEntry

_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 63
_LONGEST_KEY = 120


@dataclass(frozen=True)
class Cable:
    """One cable, seen from `a`; `b` is never a host where `a` is a switch."""

    a: str
    b: str
    rate_bps: int
    """Layer-1 rate each way."""
    b_port: str = ""
    """The port at `b`, as its device calls it."""


@dataclass(frozen=True)
class Cabling:
    """Everything that was found."""

    source: str
    """What said it, for the file's first lines."""
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    cables: tuple[Cable, ...]
    remarks: tuple[str, ...] = ()
    """What was left out, or what a name stands for: sentences for the file's first lines."""


def tidy(name: str) -> str:
    """Return a name as topologies may have it: others' characters become one `-`."""
    return _NO_NAME.sub("-", name).strip("-._")[:_LONGEST] or "unnamed"


def distinct(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Names by key, of (key, name); one that two have gets the end of the key."""
    pairs = list(names)
    wanted = [tidy(name) for _, name in pairs]
    return {
        key: name if wanted.count(name) == 1 else f"{name[:50]}-{tidy(key)[-12:]}"
        for (key, _), name in zip(pairs, wanted, strict=True)
    }


def document(cabling: Cabling) -> dict[str, object]:
    """Return the topology file's keys."""
    if not cabling.hosts:
        raise ConfigurationError(f"{cabling.source}: says of no host")
    switches = set(cabling.switches)
    access, trunks, links = _sorted(cabling, switches)
    main = {host: _main(cables) for host, cables in access.items()}
    file = File.model_construct(
        topology=1,
        kind="site",
        description=f"{len(cabling.hosts)} hosts and {len(cabling.switches)} switches",
        modules=list(cabling.switches) or None,
        nodes=_nodes(cabling, access, main),
        trunks=tuple(
            TrunkEntry(between=list(ends), links=len(cables), rate=_sum_bps(cables) // len(cables))
            for ends, cables in trunks.items()
        ),
        links=tuple(
            LinkEntry(between=list(ends), rate=_sum_bps(cables))
            for ends, cables in (*links.items(), *_further(access, main))
        ),
        overrides={
            host: Override(port=port)
            for host, switch in main.items()
            if (port := access[host][switch][0].b_port)
        },
    )
    return file.model_dump(mode="json", exclude_defaults=True)


def text(cabling: Cabling, keys: dict[str, object]) -> str:
    """Return the file."""
    head = [
        f"Made by `switchbench topology import` of {cabling.source}.",
        "Rates are of layer 1 as the devices say them; of InfiniBand, what its coding leaves.",
        *cabling.remarks,
    ]
    lines = "".join(f"# {line}\n" for line in head)
    return f"{lines}\n{''.join(_lines(keys))}"


def _lines(keys: dict[str, object]) -> Iterator[str]:
    """As people write topologies: one entry a line."""
    for key, value in keys.items():
        if isinstance(value, dict):
            yield f"\n{key}:\n"
            yield from (f"  {_flow({name: entry})[1:-1]}\n" for name, entry in value.items())
        elif isinstance(value, list) and isinstance(value[0], dict):
            yield f"\n{key}:\n"
            yield from (f"- {_flow(entry)}\n" for entry in value)
        else:
            yield f"{key}: {_flow(value)}\n"


def _flow(value: object) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, default_flow_style=True, width=2**31)
    return text.removesuffix("\n...\n").rstrip()


_ByPair = dict[tuple[str, str], list[Cable]]
_Access = dict[str, dict[str, list[Cable]]]


def _sorted(cabling: Cabling, switches: set[str]) -> tuple[_Access, _ByPair, _ByPair]:
    """Cables from hosts to switches, by these; between switches; and between hosts."""
    access: _Access = {host: {} for host in cabling.hosts}
    trunks: _ByPair = defaultdict(list)
    links: _ByPair = defaultdict(list)
    for cable in cabling.cables:
        if cable.a in switches:
            trunks[min(cable.a, cable.b), max(cable.a, cable.b)].append(cable)
        elif cable.b in switches:
            access[cable.a].setdefault(cable.b, []).append(cable)
        else:
            links[min(cable.a, cable.b), max(cable.a, cable.b)].append(cable)
    return access, trunks, links


def _main(by_switch: dict[str, list[Cable]]) -> str:
    """Return the switch that a host has most rate to, which the file names as its module.

    "" for none.
    """
    return max(by_switch, key=lambda switch: _sum_bps(by_switch[switch]), default="")


def _sum_bps(cables: Sequence[Cable]) -> int:
    return sum(cable.rate_bps for cable in cables)


def _nodes(cabling: Cabling, access: _Access, main: dict[str, str]) -> dict[str, Nodes]:
    """Hosts that are alike in one entry, by node sets."""
    alike: dict[tuple[str, int], list[str]] = defaultdict(list)
    for host in cabling.hosts:
        switch = main.get(host, "")
        if not switch:
            raise ConfigurationError(f"{cabling.source}: {host} has no cable to any switch")
        alike[switch, _sum_bps(access[host][switch])].append(host)
    return {
        names: Nodes(module=switch, rate=bps)
        for (switch, bps), hosts in alike.items()
        for names in _folded(NodeSet.fromlist(hosts, resolver=RESOLVER_NOGROUP))
    }


def _folded(hosts: NodeSet) -> list[str]:
    """Return node sets for these hosts that are short enough to be keys.

    YAML's emitter writes a key of more than 128 characters in another way.
    """
    text = str(hosts)
    if len(text) <= _LONGEST_KEY:
        return [text]
    return [names for half in hosts.split(2) for names in _folded(half)]


def _further(
    access: _Access, main: dict[str, str]
) -> Iterable[tuple[tuple[str, str], list[Cable]]]:
    """Of hosts on several switches, the cables to all but the one that is their module."""
    for host, by_switch in access.items():
        for switch, cables in by_switch.items():
            if switch != main[host]:
                yield (host, switch), cables
