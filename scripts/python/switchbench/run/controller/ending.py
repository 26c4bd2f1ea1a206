# SPDX-License-Identifier: BSD-3-Clause
"""How node processes end: by themselves, then by a signal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from .node import Node
from .pump import Pump

STOP_TIMEOUT_S = 5.0  # for what was measured to be written

SIGNAL_TIMEOUT_S = 2.0

REAP_TIMEOUT_S = 1.0

END_TURN_S = 0.01  # a process's end wakes nobody


def abandon(nodes: Sequence[Node]) -> None:
    """Ends what was started when the rest can't be."""
    for node in nodes:
        node.popen.kill()
        node.popen.wait()


def end_nodes(nodes: Sequence[Node], pump: Pump) -> None:
    """Ends all nodes within bounds: end of input, then signals. Reads on to their last words."""
    for act, limit_s in (
        (pump.end_input, STOP_TIMEOUT_S),
        (_terminate, SIGNAL_TIMEOUT_S),
        (_kill, SIGNAL_TIMEOUT_S),
    ):
        running = [node for node in nodes if node.popen.poll() is None]
        for node in running:
            act(node)
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and (
            pump.speaking or any(node.popen.poll() is None for node in running)
        ):
            pump.turn()
    deadline = time.monotonic() + REAP_TIMEOUT_S
    while pump.turn(0) and time.monotonic() < deadline:
        pass


def _terminate(node: Node) -> None:
    node.signalled = True
    node.popen.terminate()


def _kill(node: Node) -> None:
    node.signalled = True
    node.popen.kill()
