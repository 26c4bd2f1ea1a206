# SPDX-License-Identifier: BSD-3-Clause
"""One node process as the controller sees it: three pipes, none of which ever blocks it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from threading import Lock

from ...base.model import Process
from ...records.record_forms import LONGEST_LINE, TYPES, Record
from ..launch.base import FarProcess

_CHUNK = 1 << 16
_LAST_WORDS = 5  # lines of its log that are shown when it dies


class Node:
    """A running node. Documents are queued and written as its pipe takes them.

    `send` and `beat` may be called by different threads; all else by the controller's.
    """

    def __init__(self, process: Process, popen: subprocess.Popen[bytes]) -> None:
        """Takes over the process's pipes."""
        if popen.stdin is None or popen.stdout is None or popen.stderr is None:
            raise ValueError("a node needs three pipes")
        self.process = process
        self.name = process.name  # in the job
        self.popen = popen
        self.input = popen.stdin
        self.output = popen.stdout
        self.log = popen.stderr
        for pipe in (self.input, self.output, self.log):
            os.set_blocking(pipe.fileno(), False)
        self.said: dict[str, Record] = {}  # the last record of each known type
        self.trials_ended = 0
        self.heard_s = 0.0  # when it last wrote a record (monotonic)
        self.signalled = False  # by us: how it ended then says nothing of why
        self.last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._lock = Lock()
        self._queue: deque[bytes] = deque()
        self._current = b""
        self._beat = b""
        self._parts = {self.output.fileno(): b"", self.log.fileno(): b""}

    @property
    def place(self) -> str:
        """Its name for people, with switch and switch port where the wiring is known."""
        wired = [
            " ".join(word for word in (port.switch, port.switch_port) if word)
            for port in self.process.ports
        ]
        words = ", ".join(word for word in wired if word)
        return f"{self.name} ({words})" if words else self.name

    def send(self, text: bytes) -> None:
        """Queues a document and writes what the pipe takes now."""
        with self._lock:
            self._queue.append(text)
            self._write()

    def beat(self, text: bytes) -> None:
        """Sends a heartbeat, before any document that waits but never inside one.

        A beat that the pipe did not take yet is replaced: an old one says nothing.
        """
        with self._lock:
            self._beat = text
            self._write()

    def hear(self, record: Record) -> None:
        """Takes a record of it. Of types that nobody knows it may write any number."""
        self.heard_s = time.monotonic()
        if record["type"] in TYPES:
            self.said[record["type"]] = record

    def flush(self) -> None:
        """Writes what the pipe takes now."""
        with self._lock:
            self._write()

    @property
    def waiting(self) -> bool:
        """Whether something is left to be written."""
        return bool(self._current or self._queue or self._beat)

    def end_input(self) -> None:
        """End of file: the node stops its traffic at once and ends."""
        with self._lock:
            self._forget()
            if not self.input.closed:
                self.input.close()

    def read(self, fd: int) -> list[bytes] | None:
        """The whole lines that came on one of its pipes, ends included; None at its end."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return []
        if not chunk:
            rest, self._parts[fd] = self._parts[fd], b""
            return [rest + b"\n"] if rest and fd == self.log.fileno() else None
        *lines, rest = (self._parts[fd] + chunk).split(b"\n")
        if len(rest) > LONGEST_LINE:  # no record, and no log: what is there is said to be none
            lines, rest = [*lines, rest], b""
        self._parts[fd] = rest
        return [line + b"\n" for line in lines]

    def ended_how(self) -> str:
        """In words, once it has ended: its status or signal, and its log's last lines."""
        status = self.popen.returncode
        lost = self.popen.lost(self.last_words) if isinstance(self.popen, FarProcess) else None
        if lost is not None:
            return lost
        if status is None:
            words = "closed its output"
        elif status < 0:
            number = -status
            words = f"was ended by signal {number} ({signal.strsignal(number)})"
        else:
            words = f"ended with status {status}"
        tail = " | ".join(self.last_words)
        return f"{words}; its last words: {tail}" if tail else words

    def _write(self) -> None:
        if self.input.closed:
            self._forget()
            return
        while True:
            if not self._current:
                if self._beat:
                    self._current, self._beat = self._beat, b""
                elif self._queue:
                    self._current = self._queue.popleft()
                else:
                    return
            try:
                done = os.write(self.input.fileno(), self._current)
            except BlockingIOError:
                return
            except BrokenPipeError:  # it has ended: its output says how
                self._forget()
                return
            self._current = self._current[done:]

    def _forget(self) -> None:
        self._queue.clear()
        self._current = self._beat = b""
