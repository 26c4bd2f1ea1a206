# SPDX-License-Identifier: BSD-3-Clause
"""What nodes say while a trial goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from ...base.errors import RunError, SwitchbenchError
from ...base.model import Trial
from ...records.record_forms import Record
from .ending import END_TURN_S, REAP_TIMEOUT_S
from .interrupt import Interrupt
from .node import Node
from .pump import Pump

LOOK_S = 0.1  # so often, at most, each node is looked at


class Watcher(Protocol):
    """Whoever shows the run's progress."""

    def stage(self, text: str) -> None:
        """A new stage begins: in words."""

    def record(self, record: Record) -> None:
        """A node has said something."""

    def grow(self, trial: Trial) -> None:
        """One more trial, which a search chose."""

    def turn(self) -> None:
        """Called some times a second."""


class Checked(Protocol):
    """What may break while nodes run."""

    def check(self) -> None:
        """RunError when it has."""


class LostError(RunError):
    """Nodes that are not there any more, or don't answer."""

    def __init__(self, text: str, nodes: Mapping[str, str]) -> None:
        """What a person is told, and of each node what has become of it."""
        super().__init__(text)
        self.nodes = dict(nodes)


class MissedError(LostError):
    """A node that another one waited for in vain."""


class Talk:
    """Waiting for all nodes, with the ways in which waiting can end badly."""

    def __init__(
        self,
        nodes: Sequence[Node],
        pump: Pump,
        interrupt: Interrupt,
        watcher: Watcher,
        places: Sequence[Checked],
    ) -> None:
        self.pump = pump
        self._places = places
        self._nodes = nodes
        self._interrupt = interrupt
        self._watcher = watcher

    def tell_all(self, texts: Iterable[str]) -> None:
        for document in [text.encode() for text in texts]:
            for node in self._nodes:
                self.pump.tell(node, document)

    def wait_for(self, kind: str, limit_s: float) -> None:
        self.wait(lambda node: kind in node.said, f"to say {kind}", limit_s)

    def wait(self, done: Callable[[Node], bool], what: str, limit_s: float) -> None:
        """Until it is done at all nodes; none of them may be silent for `limit_s`."""
        begin_s = looked_s = time.monotonic()
        while not all(map(done, self._nodes)):
            self._heed_interrupt()
            self._check_places()
            if len(self.pump.speaking) < len(self._nodes):
                self._check_ends(done)
            if time.monotonic() - looked_s > LOOK_S:
                looked_s = time.monotonic()
                left = [node for node in self._nodes if not done(node)]
                _check_silence(left, what, begin_s, limit_s)
            self.pump.turn()
            self._watcher.turn()

    def wait_for_ends(self, limit_s: float) -> None:
        """Until all processes have ended; reads on: a log that nobody reads would keep one."""
        deadline = time.monotonic() + limit_s
        while left := [node for node in self._nodes if node.popen.poll() is None]:
            self._heed_interrupt()
            if time.monotonic() > deadline:
                raise RunError(_late(left, "to end (its output is closed)", limit_s))
            self.pump.turn(END_TURN_S)

    def _check_ends(self, done: Callable[[Node], bool]) -> None:
        """LostError where a node has ended before it was done."""
        for gone in self._nodes:
            if gone.name in self.pump.speaking or done(gone):
                continue
            for node in self._nodes:
                self.pump.end_input(node)  # traffic stops before anybody asks why
            why = self._reap(gone)
            self._check_places()  # a node may end because its switch did
            raise LostError(f"{gone.place} {why}", {gone.name: why})

    def _check_places(self) -> None:
        for place in self._places:
            place.check()

    def _heed_interrupt(self) -> None:
        if self._interrupt.name is not None:
            raise RunError(f"interrupted ({self._interrupt.name})")

    def _reap(self, node: Node) -> str:
        """How a node that closed its output ended; it is given a moment for its last words."""
        deadline = time.monotonic() + REAP_TIMEOUT_S
        while node.popen.poll() is None and time.monotonic() < deadline:
            with suppress(SwitchbenchError):  # what others say of it: this one knows better
                self.pump.turn()
        with suppress(SwitchbenchError):
            self.pump.turn()
        return node.ended_how()


def _check_silence(nodes: Sequence[Node], what: str, begin_s: float, limit_s: float) -> None:
    oldest_s = time.monotonic() - limit_s
    late = [node for node in nodes if max(begin_s, node.heard_s) < oldest_s]
    if late:
        silent = f"was silent for {limit_s:.0f} s"
        raise LostError(_late(late, what, limit_s), {node.name: silent for node in late})


def _late(nodes: Sequence[Node], what: str, limit_s: float) -> str:
    names = ", ".join(node.place for node in nodes)
    words = next((node.last_words[-1] for node in nodes if node.last_words), None)
    tail = f"; last words: {words}" if words else ""
    return f"waited {limit_s:.0f} s for {names} {what}{tail}"
