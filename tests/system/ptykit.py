# SPDX-License-Identifier: BSD-3-Clause
"""A command on a terminal, as a person has it: the screen, keys, Ctrl-C, another size."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pyte

SECOND_PAGE = (b"\x1b[?1049h", b"\x1b[?1049l")
CURSOR_SHOWN, CURSOR_HIDDEN = b"\x1b[?25h", b"\x1b[?25l"

_CHUNK = 1 << 16
_TURN_S = 0.05


class Terminal:
    """A terminal of some size with a command on it."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, slave: int) -> None:
        self.process = process
        self.raw = b""  # all that was written to it
        self.modes = termios.tcgetattr(slave)  # as they were when the command began
        self._master = master
        self._slave = slave
        self._screen = pyte.Screen(1, 1)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def lines(self) -> list[str]:
        """Return what a person sees now, without the blanks at the ends."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def modes_now(self) -> list[object]:
        """As the command has left them."""
        modes: list[object] = termios.tcgetattr(self._slave)
        return modes

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal, as a dragged window does."""
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._screen.resize(rows, columns)

    def press(self, keys: str) -> None:
        """Types them; "\x03" is Ctrl-C."""
        os.write(self._master, keys.encode())

    def turn(self, limit_s: float = _TURN_S) -> bool:
        """Show what was written meanwhile; return whether anything was."""
        if not select.select([self._master], [], [], limit_s)[0]:
            return False
        text = os.read(self._master, _CHUNK)
        self.raw += text
        self._stream.feed(text)
        return bool(text)

    def until(self, seen: Callable[[], object], what: str, limit_s: float = 60) -> None:
        """Looks on until something is seen."""
        deadline_s = time.monotonic() + limit_s
        while not seen():
            assert time.monotonic() < deadline_s, (what, self.lines)
            assert self.turn() or self.process.poll() is None, (what, self.lines)

    def shows(self, text: str) -> bool:
        """Return whether it is on the screen now."""
        return any(text in line for line in self.lines)

    def end(self, limit_s: float = 60) -> int:
        """Looks on to the command's end; its status."""
        deadline_s = time.monotonic() + limit_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline_s, self.lines
            self.turn()
        while self.turn(0):
            pass
        return self.process.returncode


def _own_terminal() -> None:
    """In the child: the terminal on its standard input is its own, so that Ctrl-C reaches it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def on_terminal(words: Sequence[str], columns: int = 100, rows: int = 30) -> Iterator[Terminal]:
    """Starts a command on a new terminal; whatever the block leaves of it is killed."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        words,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=os.environ | {"TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=_own_terminal,
    )
    terminal = Terminal(process, master, slave)
    terminal.resize(columns, rows)
    try:
        yield terminal
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)
        os.close(slave)
