# SPDX-License-Identifier: BSD-3-Clause
"""Cabling read from device outputs such as LLDP: a topology file made from it, and comparisons."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import yaml
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from ..base.errors import ConfigurationError
from ..base.model import Port
from ..base.quantities import link_rate_text
from ..base.source import json_decoder

AS_SAID = "as the site says"
UNKNOWN = "no LLDP"


@dataclass(frozen=True)
class Neighbour:
    """Device at the other end of an interface's cable, as LLDP reports it."""

    switch: str
    ports: tuple[str, ...]  # its port by number and by description: sites use either
    medium: str = ""  # link medium in IEEE 802.3's names; "" where LLDP has none
    bridges: bool = False  # true where the neighbour advertises that it forwards frames
    # other devices on this interface, one of which may be the cable's end
    rivals: tuple[Neighbour, ...] = ()

    def __str__(self) -> str:
        """Return the neighbour's name and its port."""
        return " ".join((self.switch, *self.ports[:1]))


def lldp_neighbours(text: str) -> dict[str, Neighbour]:
    """Return the neighbour of each interface from `lldpctl -f json` output; {} for other texts.

    If an interface has several neighbours, the neighbour that forwards frames is returned: a BMC or
    a virtual machine may share a host's port.
    """
    found: dict[str, list[Neighbour]] = {}
    try:
        # lldpcli writes `interface` as a list or as a mapping
        interfaces = json_decoder().decode(text)["lldp"].get("interface", [])
        every = interfaces if isinstance(interfaces, list) else [interfaces]
        for name, seen in (item for one in every for item in one.items()):
            chassis, port = seen.get("chassis", {}), seen.get("port", {})
            # A chassis without a name is identified by its id alone.
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
                words.reverse()  # an address is less readable than a name
            medium = port.get("auto-negotiation", {}).get("current", "")
            ports = tuple(map(str, filter(None, words)))
            found.setdefault(name, []).append(Neighbour(switch, ports, medium, bridges))
    except (ValueError, AttributeError, TypeError, KeyError, IndexError, RecursionError):
        return {}
    texts = [text for some in found.values() for one in some for text in (one.switch, one.medium)]
    if not all(isinstance(text, str) for text in (*found, *texts)):
        return {}
    ends = {}
    for name, several in found.items():
        first, *rivals = dict.fromkeys([seen for seen in several if seen.bridges] or several)
        ends[name] = replace(first, rivals=tuple(rivals))
    return ends


def compared_cable(port: Port, seen: Mapping[str, Neighbour]) -> str | None:
    """Return a text that compares a port's cable in the site with the cable that LLDP reports.

    None if the site names no switch for the port.
    """
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


@dataclass(frozen=True)
class Cable:
    """Cable between two devices; where one of these is a host, `a` is a host."""

    a: str
    b: str
    rate_bps: int  # layer-1 rate each way
    b_port: str = ""  # name of the port at `b`, as its device gives it


@dataclass(frozen=True)
class Cabling:
    """Hosts, switches and cables read from device outputs."""

    source: str  # name of the program or file that was read, for the topology file's heading
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    cables: tuple[Cable, ...]
    # Omitted parts and replaced names, as sentences for the topology file's heading.
    remarks: tuple[str, ...] = ()


def tidy(name: str) -> str:
    """Return a name that topology files allow: `-` replaces invalid characters."""
    return _NO_NAME.sub("-", name).strip("-._")[:_LONGEST] or "unnamed"


def distinct(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a unique name per key from (key, name) pairs.

    A name of several keys gets the end of the key appended.
    """
    pairs = list(names)
    wanted = [tidy(name) for _, name in pairs]
    return {
        key: name if wanted.count(name) == 1 else f"{name[:50]}-{tidy(key)[-12:]}"
        for (key, _), name in zip(pairs, wanted, strict=True)
    }


def cabling_document(cabling: Cabling) -> dict[str, object]:
    """Return the keys of a topology file that describes a cabling."""
    if not cabling.hosts:
        raise ConfigurationError(f"{cabling.source}: the file has no host")
    switches = set(cabling.switches)
    access: dict[str, dict[str, list[Cable]]] = {host: {} for host in cabling.hosts}
    trunks: dict[tuple[str, str], list[Cable]] = defaultdict(list)
    links: dict[tuple[str, str], list[Cable]] = defaultdict(list)
    for cable in cabling.cables:
        if cable.b in switches and cable.a not in switches:
            access[cable.a].setdefault(cable.b, []).append(cable)
        else:
            between = trunks if cable.a in switches else links
            between[min(cable.a, cable.b), max(cable.a, cable.b)].append(cable)
    # The switch to which a host has the highest rate is its module in the file; "" for none.
    main = {
        host: max(cables, key=lambda switch: _sum_bps(cables[switch]), default="")
        for host, cables in access.items()
    }
    # Cables of a host to switches other than its module.
    further = {
        (host, switch): cables
        for host, by_switch in access.items()
        for switch, cables in by_switch.items()
        if switch != main[host]
    }
    alike: dict[tuple[str, int], list[str]] = defaultdict(list)
    for host in cabling.hosts:
        if not main[host]:
            raise ConfigurationError(f"{cabling.source}: {host} has no cable to any switch")
        alike[main[host], _sum_bps(access[host][main[host]])].append(host)
    keys = {
        "topology": 1,
        "kind": "site",
        "description": f"{len(cabling.hosts)} hosts and {len(cabling.switches)} switches",
        "modules": list(cabling.switches),
        "nodes": {  # hosts with equal attributes share one node set
            str(NodeSet.fromlist(hosts, resolver=RESOLVER_NOGROUP)): {
                "module": switch,
                "rate": link_rate_text(bps),
            }
            for (switch, bps), hosts in alike.items()
        },
        "trunks": [
            _entry(ends, _sum_bps(cables) // len(cables))
            | ({"links": len(cables)} if len(cables) > 1 else {})
            for ends, cables in trunks.items()
        ],
        "links": [
            _entry(ends, _sum_bps(cables)) for ends, cables in (*links.items(), *further.items())
        ],
        "overrides": {
            host: {"port": port}
            for host, switch in main.items()
            if (port := access[host][switch][0].b_port)
        },
    }
    return {key: value for key, value in keys.items() if value}


def _entry(ends: tuple[str, str], rate_bps: int) -> dict[str, object]:
    return {"between": list(ends), "rate": link_rate_text(rate_bps)}


def cabling_text(cabling: Cabling, keys: dict[str, object]) -> str:
    """Return the text of a topology file: a heading of comments, then its keys."""
    head = [
        f"Made by `switchbench topology import` of {cabling.source}.",
        "Rates are at layer 1 as devices report them; for InfiniBand, after line coding.",
        *cabling.remarks,
    ]
    lines = "".join(f"# {line}\n" for line in head)
    # None: one line for each innermost list or mapping
    return f"{lines}\n{yaml.safe_dump(keys, sort_keys=False, default_flow_style=None, width=2**31)}"


def _sum_bps(cables: Sequence[Cable]) -> int:
    return sum(cable.rate_bps for cable in cables)


_HEADER = re.compile(r"==> (\S+) <==\s*")

# Names of IEEE 802.3 media as lldpcli writes them: 1000BaseTFD, 2p5GigT, 10GigBaseLR, 100GbaseSR4.
_MEDIUM = re.compile(r"(\d{1,9})(?:p(\d{1,9}))?(G(?:ig)?)?(?:-?[Bb]ase|T\b)", re.ASCII)


def lldp_outputs(said: str, name: str, source: str) -> dict[str, str]:
    """Return the LLDP output of each device in a text.

    Several outputs have a line `==> HOST <==` before each. `name` is the device of an output
    without such a line; "" if the device is unknown.
    """
    lines = said.splitlines()
    if _HEADER.fullmatch(next((line for line in lines if line.strip()), "")):
        return below_headers(lines)
    if not name:
        raise ConfigurationError(
            f"{source}: an output of LLDP does not name its host: put `==> HOST <==` before it"
        )
    return {name: said}


def read_lldp(
    texts: Mapping[str, str],
    source: str,
    switch_outputs: Collection[str] = (),
    interfaces: Sequence[str] = ("*",),
    rate_bps: int | None = None,
) -> Cabling:
    """Return the hosts, switches and cables that the LLDP outputs of devices describe.

    `switch_outputs` names the devices that are switches. `interfaces` has name patterns of the host
    interfaces to include. `rate_bps` is the rate of links for which LLDP reports no rate.
    """
    absent = sorted(set(switch_outputs) - set(texts))
    if absent:
        raise ConfigurationError(
            f"{source}: there is no LLDP output of switch {absent[0]}, which --switches names"
        )
    seen: dict[str, dict[str, Neighbour]] = {}
    told: dict[tuple[str, str], list[Cable]] = defaultdict(list)
    for device, text in texts.items():
        patterns = ("*",) if device in switch_outputs else interfaces
        seen[device] = {}
        found = lldp_neighbours(text)
        if not found:
            raise ConfigurationError(
                f"{source}: {device}: {text.lstrip()[:30]!r} has no LLDP neighbour: give what "
                "`lldpcli -f json show neighbors details` writes, and check that the switch "
                "sends LLDP"
            )
        for name, neighbour in found.items():
            if not neighbour.switch:
                raise ConfigurationError(
                    f"{source}: {device}: {name}: the LLDP neighbour of this interface has no name"
                )
        for name, neighbour in found.items():
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                where, ends = f"{source}: {device} {name}", (neighbour, *neighbour.rivals)
                # If several devices may be at the cable's end, the device that has an output is.
                likely = [end for end in ends if end.switch in texts] if len(ends) > 1 else ends
                if len(likely) != 1:
                    raise ConfigurationError(
                        f"{where}: has {len(ends)} neighbours, {' and '.join(map(str, ends))}, but "
                        "its cable leads to one: remove the wrong entry from the file, or leave "
                        "out the interface with --interface"
                    )
                one = seen[device][name] = likely[0]
                bps = _medium_bps(one, where, rate_bps)
                port = one.ports[0] if one.ports else ""
                told[device, one.switch].append(Cable(device, one.switch, bps, port))
    hosts = [device for device in seen if device not in switch_outputs]
    # Devices given as switches, neighbours of hosts, and neighbours that advertise bridging.
    switches = dict.fromkeys(device for device in seen if device not in hosts)
    for device, by_name in seen.items():
        for one in by_name.values():
            if one.switch not in hosts and (device in hosts or one.bridges):
                switches[one.switch] = None
    # Hosts without an output of their own, which only switches report.
    heard = (one.switch for by_name in seen.values() for one in by_name.values())
    known = dict.fromkeys((*hosts, *(name for name in heard if name not in switches)))
    names = distinct((device, device) for device in known)
    names |= distinct((switch, switch) for switch in switches)
    # Each cable once; where both ends report cables, from the end that reports more.
    cables: list[Cable] = []
    for (device, other), some in told.items():
        if device in hosts and other in switches:
            cables += some
        elif device in switches and other not in switches:
            if other not in hosts:
                cables += [Cable(other, device, c.rate_bps) for c in some]
        elif (len(some), device) > (len(told.get((other, device), [])), other):
            cables += some
    renamed = tuple(Cable(names[c.a], names[c.b], c.rate_bps, c.b_port) for c in cables)
    inside = tuple(name for device, name in names.items() if device not in switches)
    return Cabling(source, inside, tuple(names[switch] for switch in switches), renamed)


# --- outputs -------------------------------------------------------------------------------------


def below_headers(lines: Iterable[str]) -> dict[str, str]:
    """Return, by name, the text below each line `==> NAME <==`, as `head -v` writes it."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header:
            current = found.setdefault(header[1], [])
        else:
            current.append(line)
    return {name: "\n".join(text).strip() for name, text in found.items()}


def _medium_bps(neighbour: Neighbour, where: str, rate_bps: int | None) -> int:
    found = _MEDIUM.match(neighbour.medium)
    if found is None and rate_bps is not None:
        return rate_bps
    if found is None:
        raise ConfigurationError(
            f"{where}: LLDP has no rate for this link: give --rate, or an output of `lldpcli ... "
            "details` if the switch sends rates"
        )
    bps = round(float(f"{found[1]}.{found[2] or 0}") * (1e9 if found[3] else 1e6))
    if not bps:
        raise ConfigurationError(
            f"{where}: LLDP reports {neighbour.medium}: a rate above 0 is needed"
        )
    return bps
