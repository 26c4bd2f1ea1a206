# SPDX-License-Identifier: BSD-3-Clause
"""What the tests on labs share: senders, names of their own, and what a lab leaves behind."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from switchbench.labs import (
    Lab,
    LabError,
    LabNode,
    devices,
    namespaces,
    switches,
)
from switchbench.topology.topology import PROJECT_LABS

PREFIX = f"test{os.getpid()}"
"""Of every lab's name in this run, so that two runs of the tests don't meet."""

_FOLDER = TemporaryDirectory(prefix="sb-tests-")  # gone with this process


def own(name: str) -> str:
    """One of the project's labs under a name of this run of the tests; what else is named is left
    as it is."""
    topology = PROJECT_LABS / f"{name}.yaml"
    if not topology.is_file():
        return name
    copy = Path(_FOLDER.name) / f"{PREFIX}-{name}.yaml"
    copy.write_bytes(topology.read_bytes())
    return str(copy)


SO_SNDBUFFORCE = 32  # asm-generic/socket.h

ETHERTYPE = 0x88B5  # IEEE 802 local experimental: no kernel answers it.


def _why_no_lab() -> str:
    if not namespaces.is_privileged():
        return "needs root (the tests of labs without root run all the same)"
    return "; ".join(str(lack) for lack in devices.missing())


def _why_no_switch() -> str:
    try:
        switches.find_binary()
    except LabError as error:
        return str(error)
    return ""


needs_lab = pytest.mark.skipif(bool(_why_no_lab()), reason=_why_no_lab() or "-")
needs_ovs = pytest.mark.skipif(bool(switches.ovs_missing()), reason=switches.ovs_missing() or "-")
needs_switch = pytest.mark.skipif(bool(_why_no_switch()), reason=_why_no_switch() or "-")


def leftovers() -> list[str]:
    """All that labs of this run of the tests have left on the machine."""
    folders = [Path("/run/netns"), Path("/run/switchbench"), Path("/sys/class/net")]
    names = [f"sb-{PREFIX}", PREFIX]
    found = [
        str(path)
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if path.name.startswith(tuple(names))
    ]
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if PREFIX.encode() in words:
                found.append(words.decode(errors="replace"))
    return found


def packet_socket(node: LabNode) -> socket.socket:
    """A packet socket for every frame on the node's interface under test."""

    def make() -> socket.socket:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sock.bind((node.iface, 3))
        # Frames in the switch's queues still count against their sender's socket.
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
        return sock

    return namespaces.inside(node.namespace, make)


def frame(source: LabNode, destination_mac: str, size: int) -> bytes:
    """A frame of `size` bytes as Linux counts them (without FCS)."""
    addresses = b"".join(
        bytes.fromhex(mac.replace(":", "")) for mac in (destination_mac, source.mac)
    )
    return (addresses + struct.pack("!H", ETHERTYPE)).ljust(size, b"\0")


def learn(nodes: list[LabNode]) -> None:
    """Let every module learn where the nodes are, so that nothing is flooded."""
    for node in nodes:
        with packet_socket(node) as sock:
            sock.send(frame(node, "ff:ff:ff:ff:ff:ff", 60))
    time.sleep(0.1)


def send_at_once(source: LabNode, destination: LabNode, size: int, count: int) -> None:
    """Put frames into the source's queue as quickly as the machine can."""
    content = frame(source, destination.mac, size)
    with packet_socket(source) as sock:
        for _ in range(count):
            sock.send(content)


class Sender:
    """Sends frames at a steady rate from a thread, until it is stopped."""

    def __init__(self, source: LabNode, destination: LabNode, size: int, layer1_bps: float):
        self.sent = 0
        self._socket = packet_socket(source)
        self._frame = frame(source, destination.mac, size)
        self._interval_s = max(size + 24, 84) * 8 / layer1_bps
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        start = time.monotonic()
        while not self._stop.wait(max(0.002, self._interval_s)):
            due = int((time.monotonic() - start) / self._interval_s)
            while self.sent < due and not self._stop.is_set():
                self._socket.send(self._frame)
                self.sent += 1

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()


@contextmanager
def sending(senders: list[Sender]) -> Iterator[None]:
    """All of them send during the block."""
    for sender in senders:
        sender.start()
    try:
        yield
    finally:
        for sender in senders:
            sender.stop()


def python(code: str, *arguments: str) -> list[str]:
    """The command that runs `code` in an interpreter like this one."""
    return [sys.executable, "-c", code, *arguments]


HOLD = """
import sys
from switchbench.labs import load, session
with session(load(sys.argv[1], {"kind": sys.argv[3]}), sys.argv[2]):
    print("up", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(topology: str, name: str, kind: str = "bridges") -> Iterator[subprocess.Popen[bytes]]:
    """Another process, with a lab of a topology under a name until its input ends."""
    words = python(HOLD, topology, name, kind)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        yield holder


def heard(lab: Lab, a: str, b: str, attribute: str) -> bool:
    """Whether a datagram gets from node to node between their addresses of that kind."""
    family = socket.AF_INET6 if attribute == "ipv6" else socket.AF_INET

    def bound(name: str) -> socket.socket:
        node = lab.node(name)

        def make() -> socket.socket:
            sock = socket.socket(family, socket.SOCK_DGRAM)
            sock.bind((getattr(node, attribute), 7600))
            sock.settimeout(3)
            return sock

        return namespaces.inside(node.namespace, make)

    with bound(a) as source, bound(b) as destination:
        source.sendto(b"ping", (getattr(lab.node(b), attribute), 7600))
        return destination.recv(64) == b"ping"
