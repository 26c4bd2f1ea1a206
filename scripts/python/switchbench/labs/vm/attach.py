# SPDX-License-Identifier: BSD-3-Clause
"""One program in a guest, as if it ran here: its standard streams, signals and exit status.

    attach.py FOLDER [NAME=VALUE ...] -- COMMAND [ARGUMENT ...]

FOLDER is the guest's, with the sockets of its sessions `s0`, `s1`, ...; guests/wire.h says what
goes over them. Run as a program of its own (no package is imported, so that it starts quickly), so
that whoever drives nodes has a process with three pipes, as everywhere else. When its standard
input ends, the program's does; when it is killed, the guest ends the program.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

GREETING = b"H\0" + struct.pack("<H", 19) + b"switchbench-agent 1"
PAYLOAD = 16384
GREETING_TIMEOUT_S = 5.0
FREE_TIMEOUT_S = 10.0
STATUS_LOST = 255
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)


class SessionError(Exception):
    """The guest is gone, or does not answer."""


class Session:
    """A connection to a guest's agent, alone on its port while it lasts."""

    def __init__(self, folder: Path, patience_s: float = FREE_TIMEOUT_S) -> None:
        self._lock = threading.Lock()
        self._held = -1
        self._left = b""
        self._socket = self._take(folder, time.monotonic() + patience_s)

    def _take(self, folder: Path, limit_s: float) -> socket.socket:
        """The port that was free longest: what a killed session left in it has gone by then."""
        while True:
            ports = sorted(folder.glob("s[0-9]*.lock"), key=lambda path: path.stat().st_mtime_ns)
            if not ports:
                raise SessionError("there is no such guest")
            for lock in ports:
                taken = self._try(lock)
                if taken is not None:
                    return taken
            if time.monotonic() > limit_s:
                raise SessionError("no session is free, or the guest does not answer")
            time.sleep(0.05)

    def _try(self, lock: Path) -> socket.socket | None:
        held = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return None
        os.utime(lock)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(lock.with_suffix("")))
            self._greet(connection)
        except OSError as error:
            connection.close()
            os.close(held)
            if isinstance(error, ConnectionRefusedError | FileNotFoundError):
                raise SessionError("the guest is not running") from None
            return None
        connection.settimeout(None)
        self._held = held
        return connection

    def _greet(self, connection: socket.socket) -> None:
        limit_s = time.monotonic() + GREETING_TIMEOUT_S
        heard = b""
        while GREETING not in heard:
            connection.settimeout(max(0.01, limit_s - time.monotonic()))
            chunk = connection.recv(PAYLOAD)
            if not chunk:
                raise ConnectionResetError
            heard += chunk
        self._left = heard.partition(GREETING)[2]

    def close(self) -> None:
        """Hangs up, and leaves the port to others."""
        self._socket.close()
        os.close(self._held)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """One frame."""
        with self._lock:
            self._socket.sendall(kind + b"\0" + struct.pack("<H", len(payload)) + payload)

    def receive(self) -> tuple[bytes, bytes]:
        """The next frame; SessionError when the guest is gone."""
        header = self._exactly(4)
        (length,) = struct.unpack("<H", header[2:])
        return header[:1], self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        while len(self._left) < count:
            try:
                chunk = self._socket.recv(1 << 16)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise SessionError("the guest has ended")
            self._left += chunk
        found, self._left = self._left[:count], self._left[count:]
        return found


def _relay_input(session: Session) -> None:
    with contextlib.suppress(OSError):
        while chunk := os.read(0, PAYLOAD):
            session.send(b"I", chunk)
        session.send(b"E")


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _run(session: Session, environment: Sequence[str], command: Sequence[str]) -> int:
    """The program's exit status, or minus the signal that ended it."""

    def forward(number: int, _frame: FrameType | None) -> None:
        threading.Thread(target=session.send, args=(b"K", bytes([number])), daemon=True).start()

    words = [*environment, "", *command]
    session.send(b"S", b"".join(word.encode() + b"\0" for word in words))
    for number in _FORWARDED:
        signal.signal(number, forward)
    threading.Thread(target=_relay_input, args=(session,), daemon=True).start()
    streams = {b"O": 1, b"L": 2}
    while True:
        kind, payload = session.receive()
        if kind in streams:
            with contextlib.suppress(BrokenPipeError):
                _write_all(streams[kind], payload)
        elif kind == b"F":
            raise SessionError(f"{command[0]} can't be started: {payload.decode()}")
        elif kind == b"X":
            return payload[0] if len(payload) == 1 else -payload[1]


def main(arguments: Sequence[str]) -> int:
    """Exit status as the program's; 255 with a sentence when the guest is lost."""
    folder, words = Path(arguments[0]), list(arguments[1:])
    at = words.index("--")
    try:
        status = _run(Session(folder), words[:at], words[at + 1 :])
    except SessionError as error:
        print(f"{folder.name}: {error}", file=sys.stderr)
        return STATUS_LOST
    if status < 0:  # as it ended: whoever waits for this process sees the same
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    _status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(_status)  # a thread may be reading standard input
