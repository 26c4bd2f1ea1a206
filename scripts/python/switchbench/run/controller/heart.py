# SPDX-License-Identifier: BSD-3-Clause
"""Heartbeats: a thread that does nothing else, so that nothing else can delay them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from .node import Node

BEATS_PER_TIMEOUT = 5


class Heart:
    """Sends `heartbeat: N` to every node five times in the time after which they would give up."""

    def __init__(self, nodes: Sequence[Node], heartbeat_timeout_ms: int) -> None:
        """Does nothing before `start`."""
        self._nodes = nodes
        self._interval_s = heartbeat_timeout_ms / 1000 / BEATS_PER_TIMEOUT
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)

    def start(self) -> None:
        """Begins to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the beat; returns when it has ended."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _beat(self) -> None:
        number = 0
        while not self._stopped.is_set():
            text = b"heartbeat: %d\n...\n" % number
            for node in self._nodes:
                node.beat(text)
            number += 1
            self._stopped.wait(self._interval_s)
