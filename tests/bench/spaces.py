# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces whose interfaces meet on bridges in another one; nothing is shaped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

NETWORK = "10.77.0.0"  # of the first interfaces
PREFIX_BITS = 24


def address(index: int, place: int = 0) -> str:
    """Return the address of a namespace's interface, both counted from 0."""
    return f"10.77.{place}.{index + 1}"


def inside(name: str, *command: str) -> list[str]:
    """Return the command, run in a namespace."""
    return ["ip", "netns", "exec", name, *command]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def spaces(count: int, *ifaces: str) -> Iterator[list[str]]:
    """Yield the names of so many namespaces, each with these interfaces (`ctl0`), without IPv6.

    The switch's end of interface `place` of namespace `index` is `p{place}-{index}`.
    """
    names = [f"sbb{os.getpid()}n{index}" for index in range(count)]
    switch = f"sbb{os.getpid()}s"
    try:
        for name in (switch, *names):
            _ip("netns", "add", name)
            for which in ("default", "all"):
                key = f"net.ipv6.conf.{which}.disable_ipv6=1"
                subprocess.run(inside(name, "sysctl", "-qw", key), check=True)
            _ip("-n", name, "link", "set", "lo", "up")
        for place, iface in enumerate(ifaces or ("ctl0",)):
            bridge = f"br{place}"
            _ip("-n", switch, "link", "add", bridge, "type", "bridge", "mcast_snooping", "0")
            _ip("-n", switch, "link", "set", bridge, "up")
            for index, name in enumerate(names):
                port = f"p{place}-{index}"
                words = ["add", port, "type", "veth", "peer", "name", iface, "netns", name]
                _ip("-n", switch, "link", *words)
                _ip("-n", switch, "link", "set", port, "master", bridge, "up")
                subnet = f"{address(index, place)}/{PREFIX_BITS}"
                _ip("-n", name, "address", "add", subnet, "dev", iface)
                _ip("-n", name, "link", "set", iface, "up")
        yield names
    finally:
        for name in (*names, switch):
            command = ["ip", "netns", "del", name]
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
