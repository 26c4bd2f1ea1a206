# SPDX-License-Identifier: BSD-3-Clause
"""The command line of OpenSSH to a host of a site, and what its failures mean.

Host keys, identities, ports and jump hosts are the user's own configuration's (ssh_config(5)),
unless the site says otherwise. Nothing is ever asked: `BatchMode`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ... import __version__
from ...base import quantities
from ...base.errors import ConfigurationError
from ...base.model import Process, Site
from ...base.programs import ENGINE, PORT_BINDING, port_binding_words
from ...plan.documents import numeric_address
from .far import (
    GREETING,
    UNASKED,
    Answer,
    FarLauncher,
    Unreached,
    engine_words,
    fan_out,
    folded,
    greeted,
    piped,
)

FAILED = 255  # ssh's own status, and that of a command that a signal has ended

# What the streams of a node need, whatever the user's configuration has for people.
_OURS = (
    "BatchMode=yes", "RequestTTY=no", "ForwardAgent=no", "ForwardX11=no",
    "ClearAllForwardings=yes", "ControlMaster=no", "PermitLocalCommand=no", "EscapeChar=none",
    "LogLevel=INFO",  # less hides why a connection ended, more hides it among other lines
)  # fmt: skip
# A host that has died is noticed within this.
_ALIVE = ("ServerAliveInterval=5", "ServerAliveCountMax=3")


@dataclass(frozen=True)
class OpenSsh:
    """How the hosts of a site are reached."""

    engine: str
    user: str | None = None
    config: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    privilege: str = "none"
    fanout: int = 64
    timeout_s: float = 10.0

    @classmethod
    def of(cls, site: Site) -> OpenSsh:
        """As the site says."""
        keys: dict[str, Any] = dict(site.effective["ssh"])
        timeout_ns = quantities.DURATION.whole(keys.pop("timeout"))
        return cls(**keys, timeout_s=timeout_ns / 1e9)

    def settings(self) -> list[str]:
        """Return the options that ssh, scp and sftp have in common."""
        words = ["-F", self.config] if self.config else []
        user = [f"User={self.user}"] if self.user else []
        own = [f"{name}={value}" for name, value in self.options.items()]
        patience = f"ConnectTimeout={max(1, round(self.timeout_s))}"
        for option in (*_OURS, *user, *own, patience, *_ALIVE):
            words += ["-o", option]
        return words

    def command(self, host: str, remote: str) -> list[str]:
        """Run a line there, as the user's login shell reads it."""
        return ["ssh", *self.settings(), "--", host, remote]

    def node(self, host: str, words: Sequence[str], announced: bool = False) -> list[str]:
        """Run the engine there; `announced`: it says its version first, on a line of its own."""
        line = shlex.join(engine_words(self.engine, self.privilege, words, announced))
        return self.command(host, f"exec {line}")

    def port_binding(self, host: str, words: Sequence[str]) -> list[str]:
        """Run the program that binds PCI ports there, which comes on standard input."""
        script = 'exec "$@"'
        if self.privilege == "sudo":
            script = 'exec sudo -n "$@" --connection "$SSH_CONNECTION"'
        line = shlex.join(["sh", "-c", script, "sh", *port_binding_words(words)])
        return self.command(host, f"exec {line}")


def find_client() -> None:
    """Refuse where there is no ssh."""
    if shutil.which("ssh") is None:
        raise ConfigurationError("launch: ssh: there is no ssh here: install OpenSSH's client")


# --- what failures mean --------------------------------------------------------------------------


@cache
def _meanings(kind: str) -> Sequence[tuple[int, re.Pattern[str], str]]:
    """Return the status, the pattern and the sentence of what ssh (`ssh`) or a `host` says."""
    known = tomllib.loads(Path(__file__).with_name("failures.toml").read_text("utf-8"))[kind]
    return [(one.get("status", FAILED), re.compile(one["pattern"]), one["says"]) for one in known]


def failure(host: str, errors: Sequence[str]) -> str | None:
    """In words, why ssh itself failed; None where it says nothing of it.

    The engine's own lines, which come the same way, are not ssh's words.
    """
    own = [line for line in errors if not line.startswith(ENGINE)]
    for _, pattern, sentence in _meanings("ssh"):
        for line in own:
            if pattern.search(line):
                return sentence.format(line.strip().strip("@ ").removeprefix("ssh: "), host=host)
    return None


def refusal(host: str, answer: Answer, engine: str) -> str | None:
    """Return why a host could not run the engine.

    None where it did, and failed for reasons of its own.
    """
    if answer.status is None:
        return "it did not answer in time: its login hangs, or its disks"
    last = answer.errors[-1].strip() if answer.errors else ""
    if answer.status == FAILED:
        return failure(host, answer.errors) or f"ssh failed ({last or 'without a word'})"
    for status, pattern, sentence in _meanings("host"):
        if answer.status == status and pattern.search(last):
            return sentence.format(engine=engine, last=last)
    return None


def lack(host: str, answer: Answer, engine: str) -> str | None:
    """Return what a host lacks that was asked for its engine's version; None: nothing."""
    reason = refusal(host, answer, engine)
    if reason is not None:
        return reason
    if answer.output == [f"{GREETING}{__version__}"]:
        return None
    versions = [version for line in answer.output if (version := greeted(line))]
    if __version__ in versions:
        said = answer.output[0].removesuffix(f"{GREETING}{__version__}")
        return (
            f"its login writes text of its own ({said[:60]!r}), which a node's records "
            "would be mixed with: shell start files must be silent without a terminal"
        )
    if versions:
        return (
            f"it has version {versions[0]} (its {engine}), this command {__version__}: "
            "bring the same one to all hosts, by `switchbench push`"
        )
    last = (answer.errors or answer.output or ["no word"])[-1]
    return f"{engine} --version ended with status {answer.status} ({last.strip()})"


# --- ssh ------------------------------------------------------------------------------------------
# Nodes on real hosts by ssh (doc/how-to/cluster.md): one OpenSSH client for each.


# Beyond ConnectTimeout: logging in, and loading the program from a cold disk.
_LOGIN_S = 20.0


def resolved(site: Site) -> Site:
    """Return the site with control addresses that are known here.

    A host's name that only ssh knows (an alias of ssh_config) gives way to the HostName that ssh
    has for it.

    ConfigurationError names all hosts without one, before anything is copied or started.
    """
    if not site.launcher.logs_in:
        return site
    unknown = [process for process in site.processes if not _is_known(process)]
    if not unknown:
        return site
    find_client()
    way = OpenSsh.of(site)
    asked = {one.name: ["ssh", "-G", *way.settings(), "--", one.name] for one in unknown}
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

    def __init__(
        self,
        site: Site,
        words: Callable[[Process], Sequence[str]] = lambda one: ["--name", one.name],
    ) -> None:
        """Read how hosts are reached; `words`: of the engine's command line there."""
        self._way, self._words = OpenSsh.of(site), words
        super().__init__(self._way.engine)
        self.fanout, self.limit_s = self._way.fanout, self._way.timeout_s + _LOGIN_S

    def gather(self, processes: Sequence[Process]) -> list[Unreached]:
        """Log in at each host; refuse where there is no ssh."""
        find_client()
        return super().gather(processes)

    def run(self, _process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Run the client, whose own words these are."""
        return piped(words, env=os.environ | UNASKED)

    def lost(self, host: str, status: int | None, log: Sequence[str]) -> str | None:
        """Ssh ends with 255 for its own reasons, and in silence when a signal ended the node."""
        if status != FAILED:
            return None
        why = failure(host, log)
        return f"is out of reach: {why}" if why else "was ended by a signal there"

    def node(self, process: Process) -> subprocess.Popen[bytes]:
        """Log in, and start the engine."""
        name = process.name
        return self.run(process, self._way.node(name, self._words(process), announced=True))

    def port_binding(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start the program that binds PCI ports in a login of its own."""
        return self.run(process, self._way.port_binding(process.name, words))

    def lack(self, host: str, answer: Answer) -> str | None:
        """Return what ssh, the host or its engine lack."""
        return lack(host, answer, self.engine)


# --- errand ---------------------------------------------------------------------------------------
# PCI ports bound on many hosts at once, and what came of it, side by side.


NOT_ASKED = 3  # a host that could not be asked: as a run that could not be completed


@dataclass(frozen=True)
class HostResult:
    """What a host did: the exit status, and what it said."""

    host: str
    status: int
    lines: tuple[str, ...]


def errands(site: Site, words: Mapping[str, Sequence[str]], timeout_s: float) -> list[HostResult]:
    """Run the program that binds ports with each host's words.

    As many at a time as the site's fan-out says.
    """
    find_client()
    way = OpenSsh.of(site)
    commands = {host: way.port_binding(host, arguments) for host, arguments in words.items()}
    answers = fan_out(commands, way.fanout, way.timeout_s + timeout_s, PORT_BINDING)
    results = []
    for host, answer in answers.items():
        reason = refusal(host, answer, "python3")
        status = answer.status
        if status is None:
            reason = "it took too long: it is not known what it did; ask again"
        if status is None or reason is not None:
            results.append(HostResult(host, NOT_ASKED, (str(reason),)))
        else:
            results.append(HostResult(host, status, (*answer.output, *answer.errors)))
    return results


def side_by_side(results: Iterable[HostResult]) -> Iterator[str]:
    """Yield the results in lines; hosts that say the same share them: `node[1-4]: done`.

    But for the names of hosts in it.
    """
    alike: dict[tuple[int, tuple[str, ...]], list[HostResult]] = {}
    for one in results:
        own = re.compile(rf"(?<![\w.-]){re.escape(one.host)}(?![\w-])")
        lines = tuple(own.sub("HOST", line) for line in one.lines)
        alike.setdefault((one.status, lines), []).append(one)
    for (status, lines), some in alike.items():
        ending = "done" if status == 0 else f"failed with status {status}, without a word"
        for line in (lines if len(some) > 1 else some[0].lines) or (ending,):
            yield f"{folded(one.host for one in some)}: {line}"
