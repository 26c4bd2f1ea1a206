# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C and its like, noted and acted upon where the run can end in order."""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType

from ...base.signals import Handled


class Interrupt:
    """While entered, the signals only set `name` and make `fd` readable."""

    def __init__(self) -> None:
        """Nothing is changed before it is entered."""
        self.name: str | None = None
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._handled = Handled(self._note)

    def __enter__(self) -> Interrupt:
        self._handled.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handled.__exit__(kind, error, trace)
        os.close(self.fd)
        os.close(self._write_fd)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        os.write(self._write_fd, b"!")
