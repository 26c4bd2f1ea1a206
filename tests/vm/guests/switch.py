# SPDX-License-Identifier: BSD-3-Clause
"""The guests' switch: learns MAC addresses and forwards frames between datagram sockets.

One frame is one datagram (QEMU's `-netdev dgram`), and a thread reads each port. It waits while the
frame's destination has no room, and reads no more: the sender's QEMU waits, as behind a PAUSE
frame, and nothing is lost between guests whose speed is that of an emulator. A port that takes
nothing for a while (its guest has stopped) loses that protection: its frames are dropped.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
from dataclasses import dataclass
from pathlib import Path

_FRAME_MAX = 1 << 17
_STUCK_S = 3


@dataclass(eq=False)
class CableEnd:
    """One end of a cable: a guest's NIC."""

    name: str
    """`node1/eth0`"""
    network: str
    socket: socket.socket
    guest: str
    loss: float = 0.0
    """The share of received frames that vanish."""
    received: int = 0
    """Frames from the guest; `lost` of them have vanished."""
    lost: int = 0
    stuck: bool = False


class Switch:
    """All ports of all networks."""

    def __init__(self, seed: int = 1) -> None:
        self.ports: dict[str, CableEnd] = {}
        self._tables: dict[str, dict[bytes, CableEnd]] = {}
        self._threads: list[threading.Thread] = []
        self._random = random.Random(seed)

    def add(self, name: str, network: str, own: Path, guest: Path) -> None:
        """A port with its socket `own`, for the NIC whose QEMU listens at `guest`."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(str(own))
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _STUCK_S, 0))
        self.ports[name] = CableEnd(name, network, sock, str(guest))
        self._tables[network] = {}

    def start(self) -> None:
        """Serve the ports that were added."""
        for port in self.ports.values():
            self._threads.append(threading.Thread(target=self._serve, args=(port,), daemon=True))
            self._threads[-1].start()

    def _serve(self, port: CableEnd) -> None:
        table = self._tables[port.network]
        others = [
            other
            for other in self.ports.values()
            if other.network == port.network and other is not port
        ]
        while frame := port.socket.recv(_FRAME_MAX):
            port.received += 1
            if port.loss and self._random.random() < port.loss:
                port.lost += 1
                continue
            table[frame[6:12]] = port
            known = table.get(frame[:6])
            for other in others if known is None else [known] * (known is not port):
                try:
                    port.socket.sendto(frame, socket.MSG_DONTWAIT * other.stuck, other.guest)
                    other.stuck = False
                except BlockingIOError:
                    other.stuck = True
                except OSError:
                    pass  # its guest has gone, or has not come yet

    def close(self) -> None:
        """End and remove all."""
        for port in self.ports.values():
            port.socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for port in self.ports.values():
            port.socket.close()
