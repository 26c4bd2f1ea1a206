# SPDX-License-Identifier: BSD-3-Clause
"""Nodes on real hosts by ssh (doc/how-to/cluster.md): one OpenSSH client for each.

The client's pipes are the node's: heartbeats go into them as into a local node's. When the client
or this command ends, however it does, sshd closes the node's standard input, and the node stops
(doc/reference/node-protocol.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...base.errors import ConfigurationError
from ...base.model import Process, Site
from ...plan.documents import numeric_address
from .base import FarProcess, popen_options
from .fan import UNASKED, Answer, fan_out
from .muster import FarLauncher, Muster
from .nodesets import folded
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


def resolved(site: Site) -> Site:
    """Return the site with control addresses that are known here: a host's name that only ssh
    knows (an alias of ssh_config) gives way to the HostName that ssh has for it.

    ConfigurationError names all hosts without one, before anything is copied or started.
    """
    if not site.launcher.logs_in:
        return site
    unknown = [process for process in site.processes if not _is_known(process)]
    if not unknown:
        return site
    find_client()
    way = OpenSsh.of(site)
    asked = {one.name: ["ssh", "-G", *way.settings(one.name), "--", one.name] for one in unknown}
    answers = fan_out(asked, way.fanout, way.timeout_s)
    fixed = {}
    for process in unknown:
        lines = [line.split(None, 1) for line in answers[process.name].output]
        name = next((words[1] for words in lines if words[:1] == ["hostname"]), process.name)
        address = process.control["address"].replace(process.name, name)
        fixed[process.name] = replace(process, control=process.control | {"address": address})
    missing = [name for name, process in fixed.items() if not _is_known(process)]
    if missing:
        raise ConfigurationError(
            f"cannot resolve {folded(missing)}: use DNS, an IP address or an ssh alias with "
            "HostName, or set the site's control.addresses"
        )
    return replace(
        site, processes=tuple(fixed.get(process.name, process) for process in site.processes)
    )


def _is_known(process: Process) -> bool:
    try:
        numeric_address(process.name, process.control["address"])
    except ConfigurationError:
        return False
    return True


class SshLauncher(FarLauncher):
    """Starts nodes by ssh; there is nothing to make."""

    def __init__(self, site: Site) -> None:
        """Reads how hosts are reached."""
        self._way = OpenSsh.of(site)
        super().__init__(ssh_muster(self._way, lambda process: ["--name", process.name]))

    def gather(self, processes: Sequence[Process]) -> list[Unreached]:
        """Logs in at each host; refuses where there is no ssh."""
        find_client()
        return super().gather(processes)

    def port_binding(self, process: Process, words: Sequence[str]) -> SshProcess:
        """Starts the program that binds PCI ports in a login of its own."""
        line = self._way.port_binding(process.name, words)
        return SshProcess(process.name, line, env=os.environ | UNASKED, **popen_options())
