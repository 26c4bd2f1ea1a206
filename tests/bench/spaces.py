# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces on one bridge, nothing shaped, for benchmarks of the control plane."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

NETWORK = "10.77.0.0"
PREFIX_BITS = 24


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def _make(name: str, index: int, bridge: str) -> None:
    outside = f"{bridge}v{index}"
    _ip("netns", "add", name)
    _ip("link", "add", outside, "type", "veth", "peer", "name", "ctl0", "netns", name)
    _ip("link", "set", outside, "master", bridge, "up")
    host = NETWORK.rsplit(".", 1)[0] + f".{index + 1}"
    _ip("-n", name, "addr", "add", f"{host}/{PREFIX_BITS}", "dev", "ctl0")
    _ip("-n", name, "link", "set", "ctl0", "up")
    _ip("-n", name, "link", "set", "lo", "up")


@contextmanager
def spaces(count: int) -> Iterator[list[str]]:
    """The names of so many namespaces; number i has the address NETWORK + i + 1."""
    bridge = f"sbb{os.getpid()}"
    names = [f"{bridge}n{index}" for index in range(count)]
    made: list[str] = []
    _ip("link", "add", bridge, "type", "bridge")
    try:
        _ip("link", "set", bridge, "up")
        for index, name in enumerate(names):
            made.append(name)
            _make(name, index, bridge)
        yield names
    finally:
        for index, name in enumerate(made):
            # A namespace takes a while to go, and its interface with it: not so one that is named.
            for command in (["link", "del", f"{bridge}v{index}"], ["netns", "del", name]):
                subprocess.run(["ip", *command], check=False, stderr=subprocess.DEVNULL)
        _ip("link", "del", bridge)
