# SPDX-License-Identifier: BSD-3-Clause
"""What a launcher is to the controller."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Protocol, Self, TypedDict, runtime_checkable

from ...base.model import Process


class Launcher(Protocol):
    """Makes ready what the nodes need, starts them, and clears up whatever happens.

    Entering it makes the place (a lab, a job's allocation), leaving it gives it back.
    """

    def __enter__(self) -> Self:
        """ConfigurationError when the place can't be had: it is taken, or can't be made."""

    def __exit__(self, *_: object) -> None:
        """Gives the place back; never raises for what is gone already."""

    def start(self, process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts one node with pipes for its standard streams, in a session of its own: a
        person's Ctrl-C must reach the controller alone, which ends the nodes in order."""


@runtime_checkable
class BindingLauncher(Launcher, Protocol):
    """One whose hosts may have PCI ports to bind."""

    def port_binding(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts the program that binds the ports of a node's host, which comes on its standard
        input."""


@runtime_checkable
class WatchedLauncher(Launcher, Protocol):
    """One whose place may break while nodes run in it."""

    def check(self) -> None:
        """RunError when it has: what is measured then is no more of the network that was meant."""


class FarProcess(subprocess.Popen[bytes]):
    """A process here that carries the streams and the status of one elsewhere."""

    def lost(self, log: Sequence[str]) -> str | None:
        """In words, once it has ended: why the way to the node ended; None: the node did itself.

        `log` is the last of what came on standard error.
        """


class PopenOptions(TypedDict):
    """Keyword arguments of Popen."""

    stdin: int
    stdout: int
    stderr: int
    start_new_session: bool
    bufsize: int


def popen_options() -> PopenOptions:
    """What every launcher passes to Popen."""
    return {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "start_new_session": True,
        "bufsize": 0,
    }
