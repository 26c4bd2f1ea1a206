# SPDX-License-Identifier: BSD-3-Clause
"""A real network's cables, as its devices say them: its topology file, and comparisons."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import yaml
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ..base.errors import ConfigurationError
from ..base.model import Port
from ..base.source import json_decoder
from .form import File, LinkEntry, Nodes, Override, TrunkEntry

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


def is_lldp(text: str) -> bool:
    """Return whether it is what `lldpctl -f json` writes."""
    try:
        return isinstance(json_decoder().decode(text)["lldp"], dict)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def lldp_neighbours(text: str) -> dict[str, Neighbour]:
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
    ends = {}
    for name, several in found.items():
        first, *rivals = dict.fromkeys([seen for seen in several if seen.bridges] or several)
        ends[name] = replace(first, rivals=tuple(rivals))
    return ends


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
            able = facts.get("capability", [])
            bridges = any(
                one.get("type") in ("Bridge", "Router") and one.get("enabled")
                for one in (able if isinstance(able, list) else [able])
            )
            identity = port.get("id", {})
            words = [identity.get("value"), port.get("descr")]
            if identity.get("type") == "mac":
                words.reverse()  # an address says less
            medium = port.get("auto-negotiation", {}).get("current", "")
            yield name, Neighbour(switch, tuple(map(str, filter(None, words))), medium, bridges)


def compared_cable(port: Port, seen: Mapping[str, Neighbour]) -> str | None:
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


def cabling_document(cabling: Cabling) -> dict[str, object]:
    """Return the topology file's keys."""
    if not cabling.hosts:
        raise ConfigurationError(f"{cabling.source}: says of no host")
    switches = set(cabling.switches)
    access, trunks, links = _sorted(cabling, switches)
    # The switch that a host has most rate to, which the file names as its module; "" for none.
    main = {
        host: max(cables, key=lambda switch: _sum_bps(cables[switch]), default="")
        for host, cables in access.items()
    }
    # Of hosts on several switches, the cables to all but that one.
    further = {
        (host, switch): cables
        for host, by_switch in access.items()
        for switch, cables in by_switch.items()
        if switch != main[host]
    }
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
            for ends, cables in (*links.items(), *further.items())
        ),
        overrides={
            host: Override(port=port)
            for host, switch in main.items()
            if (port := access[host][switch][0].b_port)
        },
    )
    return file.model_dump(mode="json", exclude_defaults=True)


def cabling_text(cabling: Cabling, keys: dict[str, object]) -> str:
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


_HEADER = re.compile(r"==> (\S+) <==\s*")
_PREFIXED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*): ?(.*)")

# IEEE 802.3's names of media as lldpcli has them: 1000BaseTFD, 2p5GigT, 10GigBaseLR, 100GbaseSR4.
_MEDIUM = re.compile(r"(\d{1,9})(?:p(\d{1,9}))?(G(?:ig)?)?(?:-?[Bb]ase|T\b)", re.ASCII)


@dataclass(frozen=True)
class LldpOptions:
    """What a person says beside the outputs."""

    switches: Collection[str] = ()
    """Which outputs are of switches."""
    interfaces: Sequence[str] = ("*",)
    """Patterns of the hosts' interfaces that count."""
    rate_bps: int | None = None
    """Of links whose rate LLDP does not say."""


def lldp_outputs(said: str, name: str, source: str) -> dict[str, str]:
    """Return one device's output.

    Or that of several by `==> HOST <==` lines or `HOST: ` before each line.

    `name` is the device of an output that has neither; "" where it is not known.
    """
    lines = said.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if _HEADER.fullmatch(first):
        return _below_headers(lines)
    if _is_plain(first):
        if not name:
            raise ConfigurationError(
                f"{source}: does not say whose output it is: put `==> HOST <==` before it"
            )
        return {name: said}
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        prefixed = _PREFIXED.fullmatch(line)
        if prefixed is None and line.strip():
            raise ConfigurationError(f"{source}:{number}: {_no_output(line)}")
        if prefixed is not None:
            found.setdefault(prefixed[1], []).append(prefixed[2])
    return {host: "\n".join(text) for host, text in found.items()}


def read_lldp(texts: Mapping[str, str], source: str, choice: LldpOptions) -> Cabling:
    """Return the network that these outputs, by device, are of."""
    absent = sorted(set(choice.switches) - set(texts))
    if absent:
        raise ConfigurationError(f"{source}: there is no output of switch {absent[0]}")
    seen = {device: _seen(text, f"{source}: {device}") for device, text in texts.items()}
    hosts = [device for device in seen if device not in choice.switches]
    for host in hosts:
        seen[host] = {
            name: neighbour
            for name, neighbour in seen[host].items()
            if any(fnmatchcase(name, pattern) for pattern in choice.interfaces)
        }
    for device, neighbours in seen.items():
        where = f"{source}: {device}"
        seen[device] = {name: _only(n, texts, f"{where} {name}") for name, n in neighbours.items()}
    switches = _lldp_switches(seen, set(hosts))
    # Hosts without an output, which only switches hear.
    heard = (one.switch for neighbours in seen.values() for one in neighbours.values())
    known = dict.fromkeys((*hosts, *(name for name in heard if name not in switches)))
    names = distinct((device, device) for device in known)
    names |= distinct((switch, switch) for switch in switches)
    cables = _lldp_cables(seen, [*hosts], switches, source, choice)
    renamed = tuple(Cable(names[c.a], names[c.b], c.rate_bps, c.b_port) for c in cables)
    inside = tuple(name for device, name in names.items() if device not in switches)
    return Cabling(source, inside, tuple(names[switch] for switch in switches), renamed)


# --- outputs -------------------------------------------------------------------------------------


def _is_plain(first: str) -> bool:
    """Return whether an output begins with this line, right or wrong, rather than a host's name."""
    return first.lstrip().startswith(("{", "[", "<", "LINK", "---")) or not _PREFIXED.match(first)


def _below_headers(lines: Sequence[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header:
            current = found.setdefault(header[1], [])
        else:
            current.append(line)
    return {host: "\n".join(text) for host, text in found.items()}


def _no_output(text: str) -> str:
    """Return why a text is not what lldpcli writes for programs."""
    start = text.lstrip()
    if start.startswith("<"):
        return "is XML: `lldpcli -f json show neighbors details` is wanted"
    if start.startswith(("---", "LLDP neighbors")):
        return "is lldpcli's text for people: `lldpcli -f json show neighbors details` is wanted"
    return f"{start[:30]!r} is not what `lldpcli -f json show neighbors details` writes"


def _seen(text: str, where: str) -> dict[str, Neighbour]:
    """Return a device's neighbours by interface."""
    if not is_lldp(text):
        raise ConfigurationError(f"{where}: {_no_output(text)}")
    found = lldp_neighbours(text)
    if not found:
        raise ConfigurationError(f"{where}: names no neighbour: does the switch speak LLDP?")
    nameless = [name for name, neighbour in found.items() if not neighbour.switch]
    if nameless:
        raise ConfigurationError(f"{where}: {nameless[0]}: its neighbour has no name")
    return found


def _only(neighbour: Neighbour, known: Collection[str], where: str) -> Neighbour:
    """Return the end of an interface's cable; refuse where several may be it."""
    ends = (neighbour, *neighbour.rivals)
    likely = [end for end in ends if end.switch in known] if len(ends) > 1 else ends
    if len(likely) != 1:
        raise ConfigurationError(
            f"{where}: has {len(ends)} neighbours, {' and '.join(map(str, ends))}: one cable has "
            "one; leave out the entry that is not its end, or the interface by --interface"
        )
    return likely[0]


# --- devices and cables --------------------------------------------------------------------------


def _lldp_switches(seen: Mapping[str, Mapping[str, Neighbour]], hosts: set[str]) -> list[str]:
    """Return those that said so, whatever hosts hear, and what else forwards.

    In the order of finding.
    """
    found = dict.fromkeys(device for device in seen if device not in hosts)
    for device, neighbours in seen.items():
        for neighbour in neighbours.values():
            if neighbour.switch not in hosts and (device in hosts or neighbour.bridges):
                found[neighbour.switch] = None
    return list(found)


def _lldp_cables(
    seen: Mapping[str, Mapping[str, Neighbour]],
    hosts: Sequence[str],
    switches: Sequence[str],
    source: str,
    choice: LldpOptions,
) -> Iterator[Cable]:
    """Each once, where both ends may have told of it: from the side that told of more."""
    told: dict[tuple[str, str], list[Cable]] = defaultdict(list)
    for device, neighbours in seen.items():
        for interface, neighbour in neighbours.items():
            bps = _medium_bps(neighbour, f"{source}: {device} {interface}", choice.rate_bps)
            port = neighbour.ports[0] if neighbour.ports else ""
            told[device, neighbour.switch].append(Cable(device, neighbour.switch, bps, port))
    surveyed = set(hosts)
    for (device, other), cables in told.items():
        back = told.get((other, device), [])
        if device in surveyed and other in switches:
            yield from cables
        elif device in switches and other not in switches:
            if other not in surveyed:
                yield from (Cable(other, device, c.rate_bps) for c in cables)
        elif (len(cables), device) > (len(back), other):
            yield from cables


def _medium_bps(neighbour: Neighbour, where: str, rate_bps: int | None) -> int:
    found = _MEDIUM.match(neighbour.medium)
    if found is None and rate_bps is not None:
        return rate_bps
    if found is None:
        raise ConfigurationError(
            f"{where}: LLDP does not say its rate (`lldpcli ... details` does, where the switch "
            "tells): give it by --rate"
        )
    bps = round(float(f"{found[1]}.{found[2] or 0}") * (1e9 if found[3] else 1e6))
    if not bps:
        raise ConfigurationError(f"{where}: {neighbour.medium}: a rate of zero carries nothing")
    return bps
