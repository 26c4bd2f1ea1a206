# SPDX-License-Identifier: BSD-3-Clause
"""One loop over the pipes of all nodes."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

from .node import Node

LineTaker = Callable[[Node, bytes], None]

_TURN_S = 0.25  # at most, so that limits of time are looked at


class Pump:
    """Moves lines from the nodes to their takers, and queued documents to the nodes."""

    def __init__(self, nodes: Sequence[Node], record: LineTaker, log: LineTaker) -> None:
        """`record` and `log` take each whole line of standard output and standard error."""
        self._selector = selectors.DefaultSelector()
        self._nodes = nodes
        self._takers = {"output": record, "log": log}
        self.speaking: set[str] = set()  # nodes whose standard output is open
        for node in nodes:
            self._watch(node, node.output, "output")
            self._watch(node, node.log, "log")
            self.speaking.add(node.name)

    def wake_on(self, fd: int) -> None:
        """Ends a turn when this is readable."""
        self._selector.register(fd, selectors.EVENT_READ, None)

    def turn(self, limit_s: float = _TURN_S) -> bool:
        """Waits, `limit_s` at most, for something to move, and moves it; whether anything did."""
        for node in self._nodes:
            self._want_to_write(node)
        moves = [key for key, _ in self._selector.select(limit_s) if key.data is not None]
        for key in moves:
            node, what = key.data
            if what == "input":
                node.flush()
            else:
                self._read(node, what, key.fileobj)
        return bool(moves)

    def close(self) -> None:
        """Lets go of the pipes."""
        self._selector.close()
        for node in self._nodes:
            for pipe in (node.output, node.log):
                pipe.close()
            node.end_input()

    def _watch(self, node: Node, pipe: IO[bytes], what: str) -> None:
        self._selector.register(pipe, selectors.EVENT_READ, (node, what))

    def _want_to_write(self, node: Node) -> None:
        """Watches a node's input only while something waits for it."""
        with suppress(KeyError, ValueError):  # not watched; closed
            self._selector.unregister(node.input)
        if node.waiting and not node.input.closed:
            self._selector.register(node.input, selectors.EVENT_WRITE, (node, "input"))

    def _read(self, node: Node, what: str, pipe: object) -> None:
        stream = node.output if what == "output" else node.log
        lines = node.read(stream.fileno())
        if lines is None:
            self._selector.unregister(stream)
            if what == "output":
                self.speaking.discard(node.name)
            return
        for line in lines:
            self._takers[what](node, line)
