# SPDX-License-Identifier: BSD-3-Clause
"""Commands that run programs on a site's hosts by OpenSSH, and explanations of ssh's failures.

Host keys, identities, ports and jump hosts come from the user's configuration (ssh_config(5)),
unless the site sets them. ssh never prompts: `BatchMode`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ... import __version__
from ...base import quantities
from ...base.errors import ConfigurationError
from ...base.model import Process, Site
from ...base.programs import ENGINE
from ...plan.documents import numeric_address
from .far import (
    GREETING,
    UNASKED,
    Answer,
    FarLauncher,
    engine_words,
    fan_out,
    folded,
    greeted,
    piped,
)

FAILED = 255  # status of ssh's own failures, and of a command that a signal ended
NOT_ASKED = 3  # status for a host that could not be reached, equal to an incomplete run's

# Settings that a node's standard streams need; they override the user's configuration of ssh.
_OURS = (
    "BatchMode=yes", "RequestTTY=no", "ForwardAgent=no", "ForwardX11=no",
    "ClearAllForwardings=yes", "ControlMaster=no", "PermitLocalCommand=no", "EscapeChar=none",
    "LogLevel=INFO",  # a lower level hides the reason of a failure, a higher one adds many lines
)  # fmt: skip
# ssh ends 15 s after a host stopped answering.
_ALIVE = ("ServerAliveInterval=5", "ServerAliveCountMax=3")


@dataclass(frozen=True)
class OpenSsh:
    """Settings of OpenSSH for the hosts of a site."""

    engine: str
    user: str | None = None
    config: str | None = None
    privilege: str = "none"
    fanout: int = 64
    timeout_s: float = 10.0

    @classmethod
    def of(cls, site: Site) -> OpenSsh:
        """Return the ssh settings of a site; ConfigurationError for a site without ssh."""
        if not site.launcher.logs_in:
            raise ConfigurationError(
                f"this command needs ssh, and the site has launch: {site.launch}: set "
                "`launch: ssh` if its hosts have ssh"
            )
        keys: dict[str, Any] = dict(site.effective["ssh"])
        timeout_ns = quantities.DURATION.whole(keys.pop("timeout"))
        return cls(**keys, timeout_s=timeout_ns / 1e9)

    def settings(self) -> list[str]:
        """Return the common options of ssh, scp and sftp."""
        words = ["-F", self.config] if self.config else []
        user = [f"User={self.user}"] if self.user else []
        patience = f"ConnectTimeout={max(1, round(self.timeout_s))}"
        for option in (*_OURS, *user, patience, *_ALIVE):
            words += ["-o", option]
        return words

    def command(self, host: str, remote: str) -> list[str]:
        """Return the local ssh command that runs the shell line `remote` on a host."""
        return ["ssh", *self.settings(), "--", host, remote]

    def node(self, host: str, words: Sequence[str], announced: bool = False) -> list[str]:
        """Return the local ssh command that runs the engine on a host with arguments `words`.

        `announced`: the engine first prints its version.
        """
        line = shlex.join(engine_words(self.engine, self.privilege, words, announced))
        return self.command(host, f"exec {line}")

    def port_binding(self, host: str, words: Sequence[str]) -> list[str]:
        """Return the local ssh command that runs port_binding.py on a host.

        The host's Python reads the program from the command's standard input.
        """
        script = 'exec "$@"'
        if self.privilege == "sudo":
            script = 'exec sudo -n "$@" --connection "$SSH_CONNECTION"'
        line = shlex.join(["sh", "-c", script, "sh", "python3", "-", *words])
        return self.command(host, f"exec {line}")

    def run_on_hosts(
        self, commands: Mapping[str, Sequence[str]], limit_s: float = 0.0, *given: Path
    ) -> dict[str, Answer]:
        """Run one local ssh command per host, at most `fanout` at once; return answers by host.

        Each command may take `limit_s` beyond the time limit of connecting. `given` is a file that
        each command reads as its standard input.
        """
        find_client()
        return fan_out(commands, self.fanout, self.timeout_s + limit_s, *given)


def find_client() -> None:
    """Raise ConfigurationError where ssh is not installed."""
    if shutil.which("ssh") is None:
        raise ConfigurationError(
            "launch: ssh: there is no ssh on this machine: install OpenSSH's client"
        )


# --- what failures mean --------------------------------------------------------------------------


@cache
def _meanings(kind: str) -> Sequence[tuple[int, re.Pattern[str], str]]:
    """Return the exit status, message pattern and explanation of each known failure.

    `kind` is `ssh` for failures of ssh itself, or `host` for those of the command on the host.
    """
    known = tomllib.loads(Path(__file__).with_name("failures.toml").read_text("utf-8"))[kind]
    return [(one.get("status", FAILED), re.compile(one["pattern"]), one["says"]) for one in known]


def failure(host: str, errors: Sequence[str]) -> str | None:
    """Return an explanation why ssh itself failed, from its error lines; None if unknown.

    Lines that the engine wrote to standard error are ignored.
    """
    own = [line for line in errors if not line.startswith(ENGINE)]
    for _, pattern, sentence in _meanings("ssh"):
        for line in own:
            if pattern.search(line):
                return sentence.format(line.strip().strip("@ ").removeprefix("ssh: "), host=host)
    return None


def refusal(host: str, answer: Answer, engine: str) -> str | None:
    """Return the reason why a host could not run the engine.

    None where the engine ran and failed by itself.
    """
    if answer.status is None:
        return "it did not answer in time: its login or its disks hang"
    last = answer.errors[-1].strip() if answer.errors else ""
    if answer.status == FAILED:
        return failure(host, answer.errors) or f"ssh failed ({last or 'without a message'})"
    for status, pattern, sentence in _meanings("host"):
        if answer.status == status and pattern.search(last):
            return sentence.format(engine=engine, last=last)
    return None


def lack(host: str, answer: Answer, engine: str) -> str | None:
    """Return the reason why a host cannot take part, from the engine's answer to `--version`.

    None where the host has this version.
    """
    reason = refusal(host, answer, engine)
    if reason is not None:
        return reason
    if answer.output == [f"{GREETING}{__version__}"]:
        return None
    versions = [version for line in answer.output if (version := greeted(line))]
    if __version__ in versions:
        said = answer.output[0].removesuffix(f"{GREETING}{__version__}")
        return (
            f"its login prints {said[:60]!r}, which would be mixed with a node's records: "
            "shell start files must be silent without a terminal"
        )
    if versions:
        return (
            f"it has version {versions[0]} (its {engine}), this command {__version__}: "
            "install this version on all hosts by `switchbench push`"
        )
    last = (answer.errors or answer.output or ["no output"])[-1]
    return f"{engine} --version ended with status {answer.status} ({last.strip()})"


# --- ssh ------------------------------------------------------------------------------------------
# Nodes on real hosts by ssh (doc/how-to/cluster.md): one OpenSSH client each.


# Time beyond ConnectTimeout for a login, and for loading the program from a cold disk.
_LOGIN_S = 20.0


def resolved(site: Site) -> Site:
    """Return the site with control addresses that this machine can resolve.

    An alias of ssh_config is replaced by its HostName. Raise ConfigurationError with all unresolved
    hosts, before anything is copied or started.
    """
    if not site.launcher.logs_in:
        return site
    unknown = [process for process in site.processes if not _is_known(process)]
    if not unknown:
        return site
    way = OpenSsh.of(site)
    settings = ["ssh", "-G", *way.settings(), "--"]
    answers = way.run_on_hosts({one.name: [*settings, one.name] for one in unknown})
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
    """Launcher that starts each node by one ssh client."""

    def __init__(self, site: Site) -> None:
        """Read the site's ssh settings, without starting anything."""
        find_client()
        self._way = OpenSsh.of(site)
        super().__init__(self._way.engine)
        self.fanout, self.limit_s = self._way.fanout, self._way.timeout_s + _LOGIN_S

    def run(self, _process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a local ssh command, given by its words."""
        return piped(words, env=os.environ | UNASKED)

    def lost(self, host: str, status: int | None, log: Sequence[str]) -> str | None:
        """Return why the connection to a node ended; None where ssh's status is the node's own.

        ssh ends with 255 for its own failures, and where a signal ended the program on the host.
        """
        if status != FAILED:
            return None
        why = failure(host, log)
        return f"is out of reach: {why}" if why else "was ended by a signal on its host"

    def node(self, process: Process) -> subprocess.Popen[bytes]:
        """Log in at a node's host by ssh, and start the engine there."""
        name = process.name
        return self.run(process, self._way.node(name, ["--name", name], announced=True))

    def lack(self, host: str, answer: Answer) -> str | None:
        """Return the failure of ssh, the host or its engine in words; None for success."""
        return lack(host, answer, self.engine)


# --- answers of many hosts ------------------------------------------------------------------------


def side_by_side(answers: Mapping[str, Answer]) -> Iterator[str]:
    """Yield the lines of all hosts' answers; equal answers share their lines: `node[1-4]: done`.

    A host's own name in its answer is ignored; the lines are those of the first host.
    """
    alike: dict[tuple[int | None, tuple[str, ...]], list[str]] = {}
    for host, answer in answers.items():
        own = re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])")
        lines = tuple(own.sub("HOST", line) for line in (*answer.output, *answer.errors))
        alike.setdefault((answer.status, lines), []).append(host)
    for hosts in alike.values():
        first = answers[hosts[0]]
        ending = f"failed with status {first.status}, without a message" if first.status else "done"
        for line in (*first.output, *first.errors) or (ending,):
            yield f"{folded(hosts)}: {line}"
