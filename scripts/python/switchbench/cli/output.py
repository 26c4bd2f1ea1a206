# SPDX-License-Identifier: BSD-3-Clause
"""Standard output and standard error of a command.

A reader that goes, a full disk or a closed descriptor ends no run and changes nothing but what is
shown.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any


class _Output(io.FileIO):
    """A descriptor to write to. What cannot be written is dropped, and the reason is kept."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """Return the bytes that were written; all of them after an error."""
        if self.error is None:
            try:
                return super().write(data)
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


class Streams:
    """Standard output and standard error while a command runs."""

    def __init__(self) -> None:
        """Open what is closed, so that no file of a command takes a descriptor of theirs.

        Replace the two streams unless another program (a test) already did.
        """
        for descriptor in (0, 1, 2):
            try:
                os.fstat(descriptor)
            except OSError:
                os.open(os.devnull, os.O_RDWR)
        self._output: _Output | None = None
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        if sys.stdout is sys.__stdout__:
            self._output, sys.stdout = _stream(1, sys.__stdout__)
        if sys.stderr is sys.__stderr__:
            _, sys.stderr = _stream(2, sys.__stderr__)

    def lost(self) -> str | None:
        """Return the reason why output was lost; None if all was written or its reader went."""
        with suppress(OSError):
            sys.stdout.flush()
        error = self._output.error if self._output else None
        if error is None or error.errno in (errno.EPIPE, errno.EIO):  # EIO: a terminal was closed
            return None
        return f"standard output can't be written: {error.strerror}"


def _stream(descriptor: int, old: io.TextIOWrapper | Any) -> tuple[_Output, io.TextIOWrapper]:
    """Characters that the encoding lacks are shown as `?`."""
    raw = _Output(descriptor)
    buffered = io.BufferedWriter(raw)
    lines = descriptor == 2 or os.isatty(descriptor)
    encoding = getattr(old, "encoding", None) or "utf-8"
    return raw, io.TextIOWrapper(buffered, encoding, "replace", line_buffering=lines)
