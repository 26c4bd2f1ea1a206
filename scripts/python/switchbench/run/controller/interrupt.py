# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C and its like, noted and acted upon where the run can end in order."""

from __future__ import annotations

import os
import signal
from types import FrameType

from ...base.signals import Handled


class Interrupt(Handled):
    """While entered, the signals only set `name` and make `fd` readable."""

    def __init__(self) -> None:
        """Nothing is changed before it is entered."""
        super().__init__(self._note)
        self.name: str | None = None
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        os.close(self.fd)
        os.close(self._write_fd)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        os.write(self._write_fd, b"!")
