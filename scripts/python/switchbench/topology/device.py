# SPDX-License-Identifier: BSD-3-Clause
"""Device under test: its port names, and the ports to which host ports are cabled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.model import Device
from ..base.node_names import node_set
from .form import DeviceKeys

MOST_PORTS = 4096


def device_of(keys: DeviceKeys, name: str) -> Device:
    """Return the device that a topology's `device` keys describe; ValueError names the bad key."""
    ports = _names(keys.ports, "ports")
    groups = {group: _names(texts, f"groups.{group}") for group, texts in keys.groups.items()}
    for group, members in groups.items():
        strange = [port for port in members if port not in ports]
        if strange:
            raise ValueError(f"groups.{group}: the device has no port {strange[0]!r}")
    if keys.chain and len(ports) % 2:
        raise ValueError(
            f"chain: {len(ports)} ports can't be chained: frames go in by one port and out by the "
            "next, so that their number has to be even"
        )
    return Device(keys.name or name, ports, groups, keys.chain)


def _names(texts: str | list[str], key: str) -> tuple[str, ...]:
    """Return the port names in a list of node sets, in the order of the list."""
    names: list[str] = []
    for text in [texts] if isinstance(texts, str) else texts:
        try:
            names += map(str, node_set(text, MOST_PORTS))
        except ValueError as error:
            raise ValueError(f"{key}: {text!r} names no ports: {error}") from None
    twice = [name for name in names if names.count(name) > 1]
    if twice or not names:
        raise ValueError(f"{key}: " + (f"duplicate port {twice[0]}" if twice else "names no port"))
    return tuple(names)


def default_port(device: Device, place: int) -> str:
    """Return the default device port of host port number `place`, from 0.

    For a chain the first host port is at its beginning, the second at its end.
    """
    return device.ports[-1 if device.chain and place == 1 else place % len(device.ports)]


def check_places(device: Device, places: Mapping[str, str]) -> None:
    """Raise ValueError where host ports cannot be cabled to the given ports of the device.

    Parameters
    ----------
    device
        The device under test.
    places
        By host port, the device's port that it is cabled to.
    """
    if len(places) > len(device.ports):
        raise ValueError(
            f"ports: {len(places)} host ports are more than the {len(device.ports)} ports of "
            f"{device.name}: leave hosts out, or name all ports of the device"
        )
    users: dict[str, str] = {}
    for tester, port in places.items():
        if port not in device.ports:
            raise ValueError(f"ports: {tester} is in {port}, and {device.name} has no such port")
        if port in users:
            raise ValueError(f"ports: {users[port]} and {tester} are both in {port}")
        users[port] = tester
    if device.chain:
        first, *last = sorted(device.ports.index(port) for port in places.values())
        if len(last) != 1 or first % 2 or not last[0] % 2:
            raise ValueError(
                "chain: two host ports are needed, one in the first port of a VLAN and the other "
                f"in the second port of the same or a later one, not {', '.join(places.values())}"
            )


def loop_cables(device: Device, places: Iterable[str]) -> dict[str, str]:
    """Map each port of a chain that has a loop cable to the port at the cable's other end.

    A loop cable joins the second port of a VLAN with the first port of the next VLAN. A port that a
    host is plugged into has no loop cable.
    """
    taken = set(places)
    pairs = zip(device.ports[1::2], device.ports[2::2], strict=False) if device.chain else ()
    free = [pair for pair in pairs if not taken.intersection(pair)]
    return dict(free) | {b: a for a, b in free}
