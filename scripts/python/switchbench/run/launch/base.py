# SPDX-License-Identifier: BSD-3-Clause
"""What a launcher is to the controller."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from ...base.model import Process

if TYPE_CHECKING:
    from .survey import Unreached


class Launcher(Protocol):
    """Makes ready what the nodes need, starts them, and clears up whatever happens.

    Entering it makes the place (a lab, a job's allocation), leaving it gives it back.
    """

    def __enter__(self) -> Self:
        """ConfigurationError when the place can't be had: it is taken, or can't be made."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Gives the place back; never raises for what is gone already."""

    def start(self, process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts one node with pipes for its standard streams, in a session of its own: a
        person's Ctrl-C must reach the controller alone, which ends the nodes in order."""


@runtime_checkable
class WatchedLauncher(Launcher, Protocol):
    """One whose place may break while nodes run in it."""

    def check(self) -> None:
        """RunError when it has: what is measured then is no more of the network that was meant."""


@runtime_checkable
class FarLauncher(Launcher, Protocol):
    """One whose hosts may be missing: its nodes are started before the run is planned to its end.

    It can be entered again, after some of its hosts were lost.
    """

    def gather(self, processes: Sequence[Process]) -> list[Unreached]:
        """Starts the nodes of these, and says who can't take part; `start` hands out the others."""

    def close(self) -> None:
        """Gives back all that `gather` has made or started, and that was not taken."""


class FarProcess(subprocess.Popen[bytes]):
    """A process here that carries the streams and the status of one elsewhere."""

    def lost(self, log: Sequence[str]) -> str | None:
        """In words, once it has ended: why the way to the node ended; None: the node did itself.

        `log` is the last of what came on standard error.
        """


def popen_options() -> dict[str, Any]:
    """What every launcher passes to Popen."""
    return {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "start_new_session": True,
        "bufsize": 0,
    }
