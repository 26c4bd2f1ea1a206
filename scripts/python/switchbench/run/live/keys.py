# SPDX-License-Identifier: BSD-3-Clause
"""Keys pressed while the screen is shown; the terminal is given back as it was."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_CHUNK = 64


class Keys:
    """While entered, keys come without Enter and are not shown. Ctrl-C is a signal as ever.

    Where standard input is no terminal of ours (a pipe, a job in the background) there are none.
    """

    def __init__(self) -> None:
        """Changes nothing yet."""
        self._fd = -1
        self._before: list[Any] = []

    def __enter__(self) -> Keys:
        try:
            fd = sys.stdin.fileno()
            if os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp():
                self._before = termios.tcgetattr(fd)
                tty.setcbreak(fd, termios.TCSADRAIN)
                self._fd = fd
        except (OSError, ValueError, termios.error):
            self._fd = -1  # closed, or not what it seems
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            with suppress(termios.error):  # the terminal has gone
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
            self._fd = -1

    def pressed(self) -> Iterator[str]:
        """The keys since the last time; never waits."""
        if self._fd < 0 or not select.select([self._fd], [], [], 0)[0]:
            return
        try:
            text = os.read(self._fd, _CHUNK)
        except OSError:
            text = b""
        if not text:
            self._fd = -1  # hung up
        yield from text.decode("ascii", "ignore")
