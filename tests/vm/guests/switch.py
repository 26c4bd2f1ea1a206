# SPDX-License-Identifier: BSD-3-Clause
"""The guests' switch: learns MAC addresses and forwards frames between datagram sockets.

One frame is one datagram (QEMU's `-netdev dgram`). A port that can't take a frame at once gets a
queue. While a queue is long, whoever sends to it is not read: the sender's QEMU waits, as
behind a PAUSE frame, and nothing is lost between guests whose speed is that of an emulator. A port
that takes nothing for a while (its guest has stopped) loses that protection: its frames are
dropped.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

_FRAME_MAX = 1 << 17
_BURST = 64
_HIGH_BYTES = 256 * 1024
_LOW_BYTES = 64 * 1024
_STUCK_S = 3.0


@dataclass(eq=False)
class CableEnd:
    """One end of a cable: a guest's NIC."""

    name: str
    """`node1/eth0`"""
    network: str
    socket: socket.socket
    guest: Path
    connected: bool = False
    loss: float = 0.0
    """The share of received frames that vanish."""
    received: int = 0
    """Frames from the guest; `lost` of them have vanished."""
    lost: int = 0
    queue: deque[bytes] = field(default_factory=deque)
    queued_bytes: int = 0
    stuck_since_s: float = 0.0
    waiting: list[CableEnd] = field(default_factory=list)
    """Ports that are not read until this one's queue is short again."""


class Switch:
    """All ports of all networks. `serve` does what a poll of the sockets has found."""

    def __init__(self, poller: select.epoll, seed: int = 1) -> None:
        self.ports: dict[str, CableEnd] = {}
        self._by_fd: dict[int, CableEnd] = {}
        self._tables: dict[str, dict[bytes, CableEnd]] = {}
        self._members: dict[str, list[CableEnd]] = {}
        self._poller = poller
        self._random = random.Random(seed)

    def add(self, name: str, network: str, own: Path, guest: Path) -> None:
        """A port with its socket `own`, for the NIC whose QEMU listens at `guest`."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(str(own))
        sock.setblocking(False)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
        port = CableEnd(name, network, sock, guest)
        self.ports[name] = port
        self._by_fd[sock.fileno()] = port
        self._tables.setdefault(network, {})
        self._members.setdefault(network, []).append(port)
        self._poller.register(sock, select.EPOLLIN)

    def serve(self, fd: int, events: int) -> None:
        """Forwards what came, sends what waited."""
        port = self._by_fd[fd]
        if events & select.EPOLLOUT:
            self._drain(port)
        if events & select.EPOLLIN:
            self._receive(port)

    def check(self) -> None:
        """Called some times a second: gives up ports that take nothing any more."""
        limit_s = time.monotonic() - _STUCK_S
        for port in self.ports.values():
            if port.queue and port.stuck_since_s < limit_s:
                port.queue.clear()
                port.queued_bytes = 0
                self._resume(port)

    def _receive(self, port: CableEnd) -> None:
        if not port.connected:
            self._connect(port)
        table = self._tables[port.network]
        receive = port.socket.recv
        for _ in range(_BURST):
            try:
                frame = receive(_FRAME_MAX)
            except OSError:
                return
            port.received += 1
            if port.loss and self._random.random() < port.loss:
                port.lost += 1
                continue
            table[frame[6:12]] = port
            target = table.get(frame[:6])
            if target is None:
                for other in self._members[port.network]:
                    if other is not port:
                        self._send(other, frame)
            elif target is not port:
                self._send(target, frame)
                if target.queued_bytes > _HIGH_BYTES and port not in target.waiting:
                    target.waiting.append(port)
                    self._poller.modify(port.socket, self._events(port, paused=True))
                    return

    def _connect(self, port: CableEnd) -> bool:
        """Once its QEMU is there; a connected socket can be polled for room at the other end."""
        with contextlib.suppress(OSError):
            port.socket.connect(str(port.guest))
            port.connected = True
        return port.connected

    def _send(self, port: CableEnd, frame: bytes) -> None:
        if port.queue:
            self._enqueue(port, frame)
            return
        if not port.connected and not self._connect(port):
            return
        try:
            port.socket.send(frame)
        except BlockingIOError:
            port.stuck_since_s = time.monotonic()
            self._enqueue(port, frame)
            self._poller.modify(port.socket, self._events(port))
        except OSError:
            pass  # its guest has gone

    def _enqueue(self, port: CableEnd, frame: bytes) -> None:
        port.queue.append(frame)
        port.queued_bytes += len(frame)

    def _drain(self, port: CableEnd) -> None:
        queue = port.queue
        while queue:
            try:
                port.socket.send(queue[0])
            except BlockingIOError:
                break
            except OSError:
                queue.clear()
                port.queued_bytes = 0
                break
            port.queued_bytes -= len(queue.popleft())
            port.stuck_since_s = time.monotonic()
        if port.queued_bytes < _LOW_BYTES:
            self._resume(port)

    def _resume(self, port: CableEnd) -> None:
        waiting, port.waiting = port.waiting, []
        for other in (*waiting, port):
            self._poller.modify(other.socket, self._events(other))

    def _events(self, port: CableEnd, paused: bool = False) -> int:
        paused = paused or any(port in other.waiting for other in self._members[port.network])
        reads = 0 if paused else select.EPOLLIN
        return reads | (select.EPOLLOUT if port.queue else 0)

    def close(self) -> None:
        """Closes and removes the sockets."""
        for port in self.ports.values():
            path = port.socket.getsockname()
            port.socket.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
