# SPDX-License-Identifier: BSD-3-Clause
"""A program on the network without the run's key that connects to a node."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import struct
import urllib.request
from pathlib import Path

import runs
from switchbench.labs import Lab, namespaces
from switchbench.topology import lab_addresses

CHALLENGE_BYTES = 20
_MAGIC_BYTES, _NONCE_BYTES, _MAC_BYTES = 4, 16, 16
_LISTEN = "0A"


def listener(lab: Lab, node: str) -> tuple[str, int]:
    """Where a node's tcp port listens, once it does."""
    namespace = lab_addresses.namespace_name(lab.name, node)
    places: list[tuple[str, int]] = []

    def listens() -> bool:
        for pid in namespaces.processes([namespace])[:1]:
            lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
            places.extend(filter(None, map(_listens_at, lines)))
        return bool(places)

    runs.wait_until(listens, f"{node} listens", 20)
    return places[0]


def _listens_at(line: str) -> tuple[str, int] | None:
    _, local, _, state, *_ = line.split()
    address, port = local.split(":")
    if state != _LISTEN:
        return None
    return socket.inet_ntoa(struct.pack("<I", int(address, 16))), int(port, 16)


def call(lab: Lab, node: str, place: tuple[str, int], count: int) -> list[socket.socket]:
    """So many connections from a node's own namespace, none of which says a word."""

    def work() -> list[socket.socket]:
        calls = []
        for _ in range(count):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(place)
            calls.append(connection)
        return calls

    return namespaces.inside(
        lab_addresses.NAMESPACES / lab_addresses.namespace_name(lab.name, node), work
    )


def main_thread_s(pid: int) -> float:
    """Return the CPU time of a process's main thread so far; 0 when it has gone."""
    try:
        fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


def free_port() -> int:
    """Return a free TCP port of this host."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return int(holder.getsockname()[1])


def run_id(metrics_port: int) -> str:
    """As whoever may look at the metrics reads it: it is no secret."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as page:
        found = re.search(r'run="([^"]+)"', page.read().decode())
    assert found
    return found[1]


def key_of_zeros(run: str) -> bytes:
    """Return what a node would derive if it did so before it knows the run's key."""
    text = b"switchbench tcp\0" + run.encode()
    return hashlib.blake2b(text, digest_size=32, key=bytes(32)).digest()


def claim(challenge: bytes, key: bytes) -> bytes:
    """Stream 0 of the flow from rank 0 to rank 1 in phase 0 of trial 0, proved with this key."""
    place = challenge[:_MAGIC_BYTES] + struct.pack(">IIIIHH", 0, 0, 0, 1, 0, 0)
    place += bytes(_NONCE_BYTES)
    mac = hashlib.blake2b(b"c" + challenge + place, digest_size=_MAC_BYTES, key=key).digest()
    return place + mac
