# SPDX-License-Identifier: BSD-3-Clause
"""Interface of launchers, and common parts of launchers for real hosts."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from ClusterShell.NodeUtils import GroupResolver, GroupSource

from ...base.errors import ConfigurationError, RunError, meant, shown, some
from ...base.model import Process, Site
from ...base.node_names import node_set
from ...base.programs import ENGINE

# Environment of ssh. BatchMode does not apply to the ssh processes that ssh starts for jump hosts:
# without a terminal, these would open a window that asks for a password.
UNASKED = {"SSH_ASKPASS_REQUIRE": "never"}

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass
class Answer:
    """Result of a command on a host: its exit status and output."""

    status: int | None = None  # None: killed at its time limit
    output: list[str] = field(default_factory=list)  # lines of standard output
    errors: list[str] = field(default_factory=list)  # lines of standard error


def refuse(missing: Mapping[str, str]) -> None:
    """Raise RunError if any host is in `missing`; the message has their number and the reasons.

    Parameters
    ----------
    missing
        The reason for each host that cannot take part in the run.
    """
    kinds: dict[str, str] = {}  # per reason, up to its details in (): the first host with it
    for host, reason in missing.items():
        kinds.setdefault(reason.partition(" (")[0], f"{host}: {reason}")
    reasons = "; ".join(kinds.values())
    if len(missing) == 1:
        raise RunError(reasons)
    if missing:
        raise RunError(f"{len(missing)} hosts can't be used ({some(missing)}): {reasons}")


# --- processes ------------------------------------------------------------------------------------


def piped(
    words: Sequence[str],
    popen: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
    **more: Any,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, with pipes for its standard streams.

    Ctrl-C must reach only the controller, which ends the nodes in order.
    """
    pipe = subprocess.PIPE
    return popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, bufsize=0, **more
    )


def pipe_of(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a process's standard stream that is a pipe; raise ValueError for None."""
    if stream is None:
        raise ValueError("a node needs three pipes")
    return stream


_LEAVE_S = 2.0  # for a connection to end before it is killed


def end(popens: Iterable[subprocess.Popen[bytes]]) -> None:
    """Close the inputs of connection processes, such as ssh, and terminate them.

    The programs on the hosts end because their input is closed. A process that does not end in time
    is killed.
    """
    popens = list(popens)
    for popen in popens:
        pipe_of(popen.stdin).close()
        popen.terminate()
    deadline_s = time.monotonic() + _LEAVE_S
    for popen in popens:
        try:
            popen.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
        pipe_of(popen.stdout).close()
        pipe_of(popen.stderr).close()


def at_once(
    act: Callable[[_Item], _Result],
    items: Sequence[_Item],
    fanout: int,
    started: Sequence[subprocess.Popen[bytes]],
) -> list[_Result]:
    """Call `act` for each item, in at most `fanout` threads; return the results in order.

    After an interruption, processes in `started` are killed, so that no thread waits for them.
    """
    with ThreadPoolExecutor(max(1, fanout)) as pool:
        try:
            return list(pool.map(act, items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for popen in started:
                _kill_session(popen)
            raise


def _kill_session(popen: subprocess.Popen[bytes]) -> None:
    if popen.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(popen.pid, signal.SIGKILL)


def fan_out(
    commands: Mapping[str, Sequence[str]],
    fanout: int,
    timeout_s: float,
    given: Path = Path(os.devnull),
) -> dict[str, Answer]:
    """Run a local command for each host (such as `ssh`); return all answers by host.

    At most `fanout` commands run at once, each for at most `timeout_s`. Each reads the file `given`
    as its standard input, and has no terminal for prompts.
    """
    started: list[subprocess.Popen[bytes]] = []

    def answer(words: Sequence[str]) -> Answer:
        with given.open("rb") as file:
            popen = subprocess.Popen(
                words,
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=os.environ | UNASKED,
            )
        started.append(popen)
        is_late = False
        try:
            streams = popen.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            is_late = True
            _kill_session(popen)
            streams = popen.communicate()
        output, errors = (text.decode(errors="replace").splitlines() for text in streams)
        return Answer(None if is_late else popen.returncode, output, errors)

    answers = at_once(answer, list(commands.values()), fanout, started)
    return dict(zip(commands, answers, strict=True))


# --- nodesets -------------------------------------------------------------------------------------
# Hosts that `--nodes` selects: ClusterShell's syntax with the site's groups.


def chosen(site: Site, text: str | None) -> list[Process]:
    """Return the node processes on the hosts that `text` selects, in the site's order.

    All node processes are returned for None.

    `@rack1` is a group of the site, `@*` every host, and `@rack1!node3` excludes node3.
    """
    if text is None:
        return list(site.processes)
    host_of = {port.name: port.host for port in site.ports}
    members = {
        name: folded(dict.fromkeys(host_of[port] for port in ports))
        for name, ports in site.groups.items()
    }
    everyone = folded(process.name for process in site.processes)
    try:
        resolver = GroupResolver(GroupSource("site", members, everyone))
        meant_hosts = node_set(text, resolver=resolver)
    except ValueError as error:
        raise ConfigurationError(f"--nodes {text}: {error}") from None
    known = {process.name for process in site.processes}
    for host in meant_hosts:
        if host not in known:
            raise ConfigurationError(f"--nodes: there is no host {host}{meant(host, known)}")
    if not meant_hosts:
        groups = sorted(site.groups)
        where = f"; groups are {', '.join(groups)}" if "@" in text and groups else ""
        raise ConfigurationError(f"--nodes {shown(text)} contains no host{where}")
    return [process for process in site.processes if process.name in meant_hosts]


def folded(hosts: Iterable[str]) -> str:
    """Return hosts in ClusterShell's short form: `node[1-4]`."""
    return str(NodeSet.fromlist(list(hosts), resolver=RESOLVER_NOGROUP))


# --- the engine on a host ------------------------------------------------------------------------


GREETING = "switchbench-node "
_GREETING = re.compile(rf"{GREETING}(\d\S*)$")


def greeted(line: str) -> str | None:
    """Return the engine's version at the end of an output line; None without a version.

    Text that a login prints without a newline may precede the version on this line.
    """
    found = _GREETING.search(line)
    return found[1] if found else None


# Folders into which `push` installs the engine, in the user's home and for all users.
HOME_FOLDER = ".local/lib/switchbench"
SHARED_FOLDER = "/opt/switchbench"
CURRENT = "current"  # link to the last pushed version

# Shell code that sets $e to the engine's path, for sites that set no path: the engine that `push`
# installed, else the engine in PATH. sudo must not run a program from the user's home folder, so
# for sudo only the shared folder is searched.
_FIND_SHARED = f'e={SHARED_FOLDER}/{CURRENT}/{ENGINE}; [ -x "$e" ] || e={ENGINE}; '
_FIND = f'e="$HOME/{HOME_FOLDER}/{CURRENT}/{ENGINE}"; [ -x "$e" ] || {{ {_FIND_SHARED}}}; '

# Shell code that runs the engine, by privilege. The engine's safety guard needs the controller's
# address (doc/reference/safety.md), which sudo removes from the environment. sudo runs the engine
# without a shell between, so that sudoers can allow this one program.
_RUN = {"none": '"$e" "$@"', "sudo": 'sudo -n "$e" "$@" --connection "$SSH_CONNECTION"'}
_ASK = {"none": '"$e" --version', "sudo": 'sudo -n "$e" --version'}


def engine_words(engine: str, privilege: str, words: Sequence[str], announced: bool) -> list[str]:
    """Return the shell command that finds the engine on a host and runs it with arguments `words`.

    With `announced`, the engine first prints its version. By `exec`, no shell remains, and the
    engine's exit status is the command's.
    """
    if engine == ENGINE:
        find = _FIND if privilege == "none" else _FIND_SHARED
    else:
        find = f"e={shlex.quote(engine)}; "
    first = f"{_ASK[privilege]} && " if announced else ""
    return ["sh", "-c", f"{find}{first}exec {_RUN[privilege]}", "sh", *words]


# --- launchers ------------------------------------------------------------------------------------


class Launcher:
    """Base class of launchers, which start the node processes of a run.

    As a context manager, a launcher prepares the network on entry (a lab) and releases it on exit.
    `gather` is called before, because nodes on real hosts are started before the run is fully
    planned. `close` is called last.
    """

    def gather(self, _processes: Sequence[Process]) -> dict[str, str]:
        """Return the hosts that cannot take part in a run, with the reason of each."""
        return {}

    def close(self) -> None:
        """End the node processes that `gather` started and the run did not use."""

    def __enter__(self) -> Self:
        """Prepare the run's network (a lab); ConfigurationError if in use or impossible to make."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the run's network, such as a lab; another run may follow."""

    @abstractmethod
    def start(self, process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start one node process, with pipes as its standard streams (see `piped`)."""

    def lost(self, _host: str, _status: int | None, _log: Sequence[str]) -> str | None:
        """Return in words why the connection to a node ended; None where the node itself ended.

        `_status` is the local process's status, `_log` the last lines of its standard error.
        """
        return None

    def check(self) -> None:
        """Raise RunError if a part of the network has failed, such as a modelled switch."""

    def keep_truth(self, folder: Path) -> None:
        """Write the counters of a lab's modelled switch into a folder; other sites have none."""


class FarLauncher(Launcher):
    """Base class of launchers for real hosts, some of which may not be usable.

    `gather` starts the nodes, which wait until the controller calls `start`.
    """

    fanout = 64  # number of nodes started at once
    limit_s = 60.0  # time limit of each start, in seconds

    def __init__(self, engine: str) -> None:
        """Store the site's engine without starting anything."""
        self.engine = engine
        self._ready: dict[str, subprocess.Popen[bytes]] = {}

    @abstractmethod
    def run(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a program, given with its arguments by `words`, on the host of a node."""

    @abstractmethod
    def lack(self, host: str, answer: Answer) -> str | None:
        """Return the reason why a host could not start its node; None for success."""

    def node(self, process: Process) -> subprocess.Popen[bytes]:
        """Start a node process on its host; the node first prints its version."""
        words = engine_words(self.engine, "none", ["--name", process.name], announced=True)
        return self.run(process, words)

    def gather(self, processes: Sequence[Process]) -> dict[str, str]:
        """Start a node for each process; return the hosts that cannot take part, with reasons."""
        started: list[subprocess.Popen[bytes]] = []

        def arrive(process: Process) -> str | None:
            popen = self.node(process)
            started.append(popen)
            reason = self._await_greeting(process.name, popen)
            if reason is None:
                self._ready[process.name] = popen
            else:
                end([popen])
            return reason

        reasons = at_once(arrive, processes, self.fanout, started)
        found = zip((process.name for process in processes), reasons, strict=True)
        return {host: reason for host, reason in found if reason is not None}

    def _await_greeting(self, host: str, popen: subprocess.Popen[bytes]) -> str | None:
        """Wait until a node prints its version; return the reason for a failure, else None."""
        output, text, is_over = pipe_of(popen.stdout), b"", False
        deadline_s = time.monotonic() + self.limit_s
        poll = select.poll()
        poll.register(output, select.POLLIN)
        while not is_over and poll.poll(1000 * max(0.0, deadline_s - time.monotonic())):
            chunk = os.read(output.fileno(), 1 << 16)
            text, is_over = text + chunk, not chunk
            whole = text[: text.rfind(b"\n") + 1].decode(errors="replace").splitlines()
            if any(map(greeted, whole)):
                return self.lack(host, Answer(0, text.decode(errors="replace").splitlines()))
        with suppress(subprocess.TimeoutExpired):
            popen.wait(_LEAVE_S if is_over else 0)
        status, lines = popen.poll(), text.decode(errors="replace").splitlines()
        log = pipe_of(popen.stderr)
        os.set_blocking(log.fileno(), False)  # for the lines so far
        errors = (log.read() or b"").decode(errors="replace").splitlines()
        return self.lack(host, Answer(status, lines, errors))

    def start(self, process: Process, _command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Return the node process that `gather` started for a process of the site."""
        return self._ready.pop(process.name)

    def close(self) -> None:
        """End the nodes that `gather` started and that `start` did not return."""
        end(self._ready.values())
        self._ready.clear()
