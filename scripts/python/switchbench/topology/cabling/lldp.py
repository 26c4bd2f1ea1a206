# SPDX-License-Identifier: BSD-3-Clause
"""What LLDP tells several hosts, and switches that run lldpd, of their cables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ...base.errors import ConfigurationError
from .. import lldp_table
from ..lldp_table import Neighbour
from .site import Cable, Cabling, distinct

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


def outputs(said: str, name: str, source: str) -> dict[str, str]:
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


def read(texts: Mapping[str, str], source: str, choice: LldpOptions) -> Cabling:
    """Return the network that these outputs, by device, are of."""
    absent = sorted(set(choice.switches) - set(texts))
    if absent:
        raise ConfigurationError(f"{source}: there is no output of switch {absent[0]}")
    seen = {device: _seen(text, f"{source}: {device}") for device, text in texts.items()}
    hosts = [device for device in seen if device not in choice.switches]
    for host in hosts:
        seen[host] = {name: n for name, n in seen[host].items() if _counts(name, choice)}
    for device, neighbours in seen.items():
        where = f"{source}: {device}"
        seen[device] = {name: _only(n, texts, f"{where} {name}") for name, n in neighbours.items()}
    switches = _switches(seen, set(hosts))
    names = distinct((device, device) for device in (*hosts, *_silent_hosts(seen, switches, hosts)))
    names |= distinct((switch, switch) for switch in switches)
    cables = _cables(seen, [*hosts], switches, source, choice)
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
    if not lldp_table.is_json(text):
        raise ConfigurationError(f"{where}: {_no_output(text)}")
    found = lldp_table.neighbours(text)
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


def _counts(interface: str, choice: LldpOptions) -> bool:
    return any(fnmatchcase(interface, pattern) for pattern in choice.interfaces)


# --- devices and cables --------------------------------------------------------------------------


def _switches(seen: Mapping[str, Mapping[str, Neighbour]], hosts: set[str]) -> list[str]:
    """Return those that said so, whatever hosts hear, and what else forwards.

    In the order of finding.
    """
    found = dict.fromkeys(device for device in seen if device not in hosts)
    for device, neighbours in seen.items():
        for neighbour in neighbours.values():
            if neighbour.switch not in hosts and (device in hosts or neighbour.bridges):
                found[neighbour.switch] = None
    return list(found)


def _silent_hosts(
    seen: Mapping[str, Mapping[str, Neighbour]], switches: Sequence[str], hosts: Sequence[str]
) -> list[str]:
    """Hosts without an output, which only switches hear."""
    heard = (n.switch for neighbours in seen.values() for n in neighbours.values())
    known = {*switches, *hosts}
    return [name for name in dict.fromkeys(heard) if name not in known]


def _cables(
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
            bps = _bps(neighbour, f"{source}: {device} {interface}", choice.rate_bps)
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


def _bps(neighbour: Neighbour, where: str, rate_bps: int | None) -> int:
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
