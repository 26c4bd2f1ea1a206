# SPDX-License-Identifier: BSD-3-Clause
"""Nodes on real hosts by ssh (doc/how-to/cluster.md): one OpenSSH client for each.

The client's pipes are the node's: heartbeats go into them as into a local node's. When the client
or this command ends, however it does, sshd closes the node's standard input, and the node stops
(doc/reference/node-protocol.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ...base.model import Process, Site
from .base import FarProcess, popen_options
from .fan import UNASKED, Answer
from .muster import FarLauncher, Muster
from .openssh import FAILED, OpenSsh, failure, find_client
from .survey import Unreached, lack

# Beyond ConnectTimeout: logging in, and loading the program from a cold disk.
_LOGIN_S = 20.0


class SshProcess(FarProcess):
    """An ssh client with a node at its other end."""

    def __init__(self, host: str, command: Sequence[str], **options: Any) -> None:
        """Starts it."""
        super().__init__(command, **options)
        self._host = host

    def lost(self, log: Sequence[str]) -> str | None:
        """ssh ends with 255 for its own reasons, and in silence when a signal ended the node."""
        if self.returncode != FAILED:
            return None
        why = failure(self._host, log)
        return f"is out of reach: {why}" if why else "was ended by a signal there"


def ssh_muster(way: OpenSsh, words: Callable[[Process], Sequence[str]]) -> Muster:
    """Logs in at hosts and runs the engine there with these words; it says its version first."""

    def login(process: Process) -> SshProcess:
        line = way.node(process.name, words(process), announced=True)
        return SshProcess(process.name, line, env=os.environ | UNASKED, **popen_options())

    def lacking(host: str, answer: Answer) -> str | None:
        return lack(host, answer, way.engine)

    return Muster(login, lacking, way.fanout, way.timeout_s + _LOGIN_S)


class SshLauncher(FarLauncher):
    """Starts nodes by ssh; there is nothing to make."""

    def __init__(self, site: Site) -> None:
        """Reads how hosts are reached."""
        super().__init__(ssh_muster(OpenSsh.of(site), lambda process: ["--name", process.name]))

    def gather(self, processes: Sequence[Process]) -> list[Unreached]:
        """Logs in at each host; refuses where there is no ssh."""
        find_client()
        return super().gather(processes)
