# SPDX-License-Identifier: BSD-3-Clause
"""Nodes on real hosts by ssh (doc/cluster.md): one OpenSSH client for each.

The client's pipes are the node's: heartbeats go into them as into a local node's. When the client
or this command ends, however it does, sshd closes the node's standard input, and the node stops
(doc/node-protocol.md).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from ..model import Process, Site
from .base import FarProcess, popen_options
from .fan import UNASKED
from .openssh import FAILED, OpenSsh, failure, find_client


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


class SshLauncher:
    """Starts nodes by ssh; there is nothing to make, and nothing to give back."""

    def __init__(self, site: Site) -> None:
        """Reads how hosts are reached."""
        self._way = OpenSsh.of(site)

    def __enter__(self) -> Self:
        """Refuses where there is no ssh."""
        find_client()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing: the controller has ended the nodes."""

    def start(self, process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts the node on its host; the engine there is the site's."""
        words = self._way.node(process.name, command[1:])
        environment = os.environ | UNASKED
        return SshProcess(process.name, words, env=environment, **popen_options())
