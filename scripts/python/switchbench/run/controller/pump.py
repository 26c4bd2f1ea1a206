# SPDX-License-Identifier: BSD-3-Clause
"""One loop over the pipes of all nodes."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Sequence

from .node import Node

LineTaker = Callable[[Node, bytes], None]

_TURN_S = 0.25  # at most, so that limits of time are looked at

# What many nodes say is gathered for a moment: to wake for each record of 1,024 nodes, which come
# at any time, costs more than to read it.
_GATHER_S = 20e-6  # for each node
_GATHER_MAX_S = 0.02


class Pump:
    """Moves lines from the nodes to their takers, and queued documents to the nodes."""

    def __init__(self, nodes: Sequence[Node], record: LineTaker, log: LineTaker) -> None:
        """`record` and `log` take each whole line of standard output and standard error."""
        self._selector = selectors.DefaultSelector()
        self._gather_s = min(len(nodes) * _GATHER_S, _GATHER_MAX_S)
        self._nodes = nodes
        self._unsent: set[str] = set()  # nodes whose pipe did not take a document yet
        self._takers = {"output": record, "log": log}
        self.speaking: set[str] = set()  # nodes whose standard output is open
        for node in nodes:
            self._selector.register(node.output, selectors.EVENT_READ, (node, "output"))
            self._selector.register(node.log, selectors.EVENT_READ, (node, "log"))
            self.speaking.add(node.name)

    def wake_on(self, fd: int) -> None:
        """Ends a turn when this is readable."""
        self._selector.register(fd, selectors.EVENT_READ, None)

    def tell(self, node: Node, text: bytes) -> None:
        """Sends a document; what the pipe does not take now follows in later turns."""
        node.send(text)
        if node.waiting and node.name not in self._unsent:
            self._unsent.add(node.name)
            self._selector.register(node.input, selectors.EVENT_WRITE, (node, "input"))

    def turn(self, limit_s: float = _TURN_S) -> bool:
        """Waits, `limit_s` at most, for something to move, and moves it; whether anything did."""
        if limit_s > self._gather_s:
            time.sleep(self._gather_s)
            limit_s -= self._gather_s
        moves = [key for key, _ in self._selector.select(limit_s) if key.data is not None]
        for key in moves:
            node, what = key.data
            if what == "input":
                self._flush(node)
            else:
                self._read(node, what)
        return bool(moves)

    def end_input(self, node: Node) -> None:
        """No more for this node: it stops its traffic at once and ends."""
        self._forget(node)
        node.end_input()

    def close(self) -> None:
        """Lets go of the pipes."""
        self._selector.close()
        for node in self._nodes:
            for pipe in (node.output, node.log):
                pipe.close()
            node.end_input()

    def _flush(self, node: Node) -> None:
        node.flush()
        if not node.waiting:
            self._forget(node)

    def _forget(self, node: Node) -> None:
        if node.name in self._unsent:
            self._unsent.remove(node.name)
            self._selector.unregister(node.input)

    def _read(self, node: Node, what: str) -> None:
        stream = node.output if what == "output" else node.log
        lines = node.read(stream.fileno())
        if lines is None:
            self._selector.unregister(stream)
            if what == "output":
                self.speaking.discard(node.name)
            return
        for line in lines:
            self._takers[what](node, line)
