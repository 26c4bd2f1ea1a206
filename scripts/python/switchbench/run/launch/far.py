# SPDX-License-Identifier: BSD-3-Clause
"""What a launcher is to the controller."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import subprocess
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, Self, TypedDict, runtime_checkable

from ClusterShell.Event import EventHandler
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolver, GroupResolverError, GroupSource
from ClusterShell.Task import task_self
from ClusterShell.Worker.Exec import ExecClient, ExecWorker

from ...base.errors import ConfigurationError, RunError
from ...base.model import Process, Site
from ...base.node_names import padded, refuse_many
from ...base.programs import ENGINE, port_binding_words
from ...base.words import meant, shown, some


class Launcher(Protocol):
    """Makes ready what the nodes need, starts them, and clears up whatever happens.

    Entering it makes the place (a lab, a job's allocation), leaving it gives it back.
    """

    def __enter__(self) -> Self:
        """ConfigurationError when the place can't be had: it is taken, or can't be made."""

    def __exit__(self, *_: object) -> None:
        """Give the place back; never raise for what is gone already."""

    def start(self, process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start one node with pipes for its standard streams, in a session of its own.

        A person's Ctrl-C must reach the controller alone, which ends the nodes in order.
        """


@runtime_checkable
class BindingLauncher(Launcher, Protocol):
    """One whose hosts may have PCI ports to bind."""

    def port_binding(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start the program that binds the ports of a node's host.

        Which comes on its standard input.
        """


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
    """Return what every launcher passes to Popen."""
    return {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "start_new_session": True,
        "bufsize": 0,
    }


# --- fan ------------------------------------------------------------------------------------------
# One short command for each of many hosts, so many at a time: ClusterShell's task and fan-out.


# For ssh, and for the ssh's that it starts to its gateways, which BatchMode doesn't reach: without
# a terminal they would ask by a window.
UNASKED = {"SSH_ASKPASS_REQUIRE": "never"}


@dataclass
class Answer:
    """How a host's command ended, and what it wrote."""

    status: int | None = None  # None: it was ended, having taken too long
    output: list[str] = field(default_factory=list)  # lines
    errors: list[str] = field(default_factory=list)


# A command whose standard input is a file: its name, then the command's words.
_FED = ("sh", "-c", 'exec "$@" <"$0"')


def fan_out(
    commands: Mapping[str, Sequence[str]],
    fanout: int,
    timeout_s: float,
    given: Path | None = None,
) -> dict[str, Answer]:
    """Run each host's command here (one that goes there, as `ssh`); all answers, by host.

    At most `fanout` run at a time, each at most `timeout_s`. Their standard input is the file
    `given`, or empty.
    """
    fed = [*_FED, str(given)] if given is not None else []
    task = task_self()
    task.set_info("fanout", fanout)
    answers = {host: Answer() for host in commands}
    for host, words in commands.items():
        worker = _Worker(host, _Ear(answers), timeout_s, command=[*fed, *words], stderr=True)
        task.schedule(worker)
        worker.set_write_eof()
    try:
        task.resume()
    except BaseException:
        task.abort()  # ends what still runs; the task can be used again
        raise
    return answers


class _Client(ExecClient):  # type: ignore[misc]
    """Starts the words as they are: no shell, no placeholders, no terminal to ask a person by.

    A child is nobody's group leader: setsid becomes the command, with the same process id.
    """

    def _build_cmd(self) -> tuple[list[str], dict[str, str]]:
        return ["setsid", *self.command], dict(UNASKED)


class _Worker(ExecWorker):  # type: ignore[misc]
    SHELL_CLASS = _Client


class _Ear(EventHandler):  # type: ignore[misc]
    """Keeps what hosts say."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self._answers = answers

    def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:
        answer = self._answers[node]
        lines = answer.output if sname == worker.SNAME_STDOUT else answer.errors
        lines.append(msg.decode(errors="replace"))

    def ev_hup(self, _worker: Any, node: str, rc: int) -> None:
        self._answers[node].status = rc


# --- nodesets -------------------------------------------------------------------------------------
# Which hosts of a site a person means by `--nodes`: ClusterShell's syntax, the site's groups.


def chosen(site: Site, text: str | None) -> list[Process]:
    """Return the processes on the hosts meant, in the site's order; all of them without a text.

    `@rack1` is a group of the site, `@*` every host, and `@rack1!node3` leaves node3 out.
    """
    if text is None:
        return list(site.processes)
    try:
        refuse_many(text)
        meant_hosts = NodeSet(padded(text), resolver=_resolver(site))
    except (ValueError, NodeSetException, GroupResolverError) as error:
        raise ConfigurationError(f"--nodes {text}: {error}") from None
    known = {process.name for process in site.processes}
    for host in meant_hosts:
        if host not in known:
            raise ConfigurationError(f"--nodes: there is no host {host}{meant(host, known)}")
    if not meant_hosts:
        groups = sorted(site.groups)
        where = f"; groups are {', '.join(groups)}" if "@" in text and groups else ""
        raise ConfigurationError(f"--nodes {shown(text)} names no host{where}")
    return [process for process in site.processes if process.name in meant_hosts]


def folded(hosts: Iterable[str]) -> str:
    """Hosts in ClusterShell's short form: `node[1-4]`."""
    return str(NodeSet.fromlist(list(hosts), resolver=RESOLVER_NOGROUP))


def _resolver(site: Site) -> GroupResolver:
    host_of = {port.name: port.host for port in site.ports}
    groups = {
        name: folded(dict.fromkeys(host_of[port] for port in ports))
        for name, ports in site.groups.items()
    }
    everyone = folded(process.name for process in site.processes)
    return GroupResolver(GroupSource("site", groups, everyone))


# --- survey ---------------------------------------------------------------------------------------
# Before a run: is every host reached, without a question, and has it this version's engine?.


GREETING = "switchbench-node "
_GREETING = re.compile(rf"{GREETING}(\d\S*)$")


@dataclass(frozen=True)
class Unreached:
    """A host that can't take part, and why."""

    host: str
    reason: str

    def __str__(self) -> str:
        """Return the host and why it was not reached."""
        return f"{self.host}: {self.reason}"


def refuse(unreached: Sequence[Unreached]) -> None:
    """Raise one sentence that names all of them, by what they have in common."""
    if not unreached:
        return
    if len(unreached) == 1:
        raise RunError(str(unreached[0]))
    names = some(host.host for host in unreached)
    kinds: dict[str, Unreached] = {}  # the first host of each: reasons of one kind begin alike
    for one in unreached:
        kinds.setdefault(one.reason.partition(" (")[0], one)
    reasons = "; ".join(map(str, kinds.values()))
    raise RunError(f"{len(unreached)} hosts can't take part ({names}): {reasons}")


def greeted(line: str) -> str | None:
    """Return the version that an engine says at the end of a line.

    What a login writes without ending its own stands before it.
    """
    found = _GREETING.search(line)
    return found[1] if found else None


# --- the engine there ----------------------------------------------------------------------------


# Where `push` leaves the engine, in the home folder of the one who logs in and for all.
HOME_FOLDER = ".local/lib/switchbench"
SHARED_FOLDER = "/opt/switchbench"
CURRENT = "current"  # the one that was pushed last

# For the engine that no site names: what was pushed, else the one in the path. What sudo runs is
# never in a folder that the user can write.
_FIND_SHARED = f'e={SHARED_FOLDER}/{CURRENT}/{ENGINE}; [ -x "$e" ] || e={ENGINE}; '
_FIND = f'e="$HOME/{HOME_FOLDER}/{CURRENT}/{ENGINE}"; [ -x "$e" ] || {{ {_FIND_SHARED}}}; '

# By privilege. The guard asks where the controller sits (doc/reference/safety.md); sudo would
# forget it. The engine is sudo's own command: what sudoers allows is the one program.
_RUN = {"none": '"$e" "$@"', "sudo": 'sudo -n "$e" "$@" --connection "$SSH_CONNECTION"'}
_ASK = {"none": '"$e" --version', "sudo": 'sudo -n "$e" --version'}


def engine_words(engine: str, privilege: str, words: Sequence[str], announced: bool) -> list[str]:
    """Return a command that runs the engine.

    `exec`: its status is the command's, and no shell stays beside it.
    """
    how = "sudo" if privilege == "sudo" else "none"
    if engine == ENGINE:
        find = _FIND if privilege == "none" else _FIND_SHARED
    else:
        find = f"e={shlex.quote(engine)}; "
    first = f"{_ASK[how]} && " if announced else ""
    return ["sh", "-c", f"{find}{first}exec {_RUN[how]}", "sh", *words]


# --- launcher ------------------------------------------------------------------------------------
# Nodes on real hosts are started before the run is planned to its end.


_CHUNK = 1 << 12
_LEAVE_S = 2.0  # for a connection to end, before it is killed


@dataclass
class _Arrival:
    """A node of which nothing is known yet."""

    process: Process
    popen: FarProcess
    limit_s: float  # until then it is waited for (monotonic)
    text: bytes = b""

    @property
    def lines(self) -> list[str]:
        return self.text.decode(errors="replace").splitlines()

    @property
    def has_greeted(self) -> bool:
        """Whether a whole line names a version; what comes before it is the login's own."""
        whole, _, _ = self.text.rpartition(b"\n")
        return any(greeted(line) for line in whole.decode(errors="replace").splitlines())


class FarLauncher(ABC):
    """A launcher whose hosts may be missing.

    Its nodes are started before the run is planned to its end, and stand ready until the controller
    takes them. There is nothing to enter; it can be entered again, after some of its hosts were
    lost.
    """

    fanout = 64  # nodes at a time that have not answered
    limit_s = 60.0  # for each of them

    def __init__(self, engine: str) -> None:
        """Take the engine that the site names; start nothing."""
        self.engine = engine
        self._ready: dict[str, FarProcess] = {}

    @abstractmethod
    def run(self, process: Process, words: Sequence[str]) -> FarProcess:
        """Start a program on the host of a node, by its words."""

    @abstractmethod
    def lack(self, host: str, answer: Answer) -> str | None:
        """Return what an answer to the start of a node lacks; None: nothing."""

    def node(self, process: Process) -> FarProcess:
        """Start a node, which says its version first."""
        words = engine_words(self.engine, "none", ["--name", process.name], announced=True)
        return self.run(process, words)

    def port_binding(self, process: Process, words: Sequence[str]) -> FarProcess:
        """Start the program that binds PCI ports, beside the node."""
        return self.run(process, port_binding_words(words))

    def __enter__(self) -> Self:
        """Nothing: the nodes stand ready."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the controller has ended the nodes, and another run may follow."""
        return

    def gather(self, processes: Sequence[Process]) -> list[Unreached]:
        """Start a node for each; return once of each is known whether it can take part."""
        waiting = deque(processes)
        arriving: dict[int, _Arrival] = {}
        reasons: dict[str, str] = {}
        with selectors.DefaultSelector() as selector:
            try:
                while waiting or arriving:
                    while waiting and len(arriving) < self.fanout:
                        self._begin(waiting.popleft(), arriving, selector)
                    for fd in self._turn(arriving, selector):
                        arrival = arriving.pop(fd)
                        selector.unregister(fd)
                        reason = self._judge(arrival)
                        if reason is not None:
                            reasons[arrival.process.name] = reason
            finally:
                end([arrival.popen for arrival in arriving.values()])
        names = [process.name for process in processes]
        return [Unreached(name, reasons[name]) for name in names if name in reasons]

    def start(self, process: Process, _command: Sequence[str]) -> FarProcess:
        """Hand out the node of a host that can take part; the engine there is the site's."""
        return self._ready.pop(process.name)

    def close(self) -> None:
        """Give back all that `gather` has made or started, and that was not taken."""
        end(list(self._ready.values()))
        self._ready.clear()

    def _begin(
        self, process: Process, arriving: dict[int, _Arrival], selector: selectors.BaseSelector
    ) -> None:
        popen = self.node(process)
        fd = output(popen).fileno()
        arriving[fd] = _Arrival(process, popen, time.monotonic() + self.limit_s)
        selector.register(fd, selectors.EVENT_READ)

    def _turn(self, arriving: dict[int, _Arrival], selector: selectors.BaseSelector) -> list[int]:
        """Wait for something to happen; of whom enough is known now."""
        first_s = min(arrival.limit_s for arrival in arriving.values())
        known = []
        for key, _ in selector.select(max(0.0, first_s - time.monotonic())):
            chunk = os.read(key.fd, _CHUNK)
            arriving[key.fd].text += chunk
            if not chunk or arriving[key.fd].has_greeted:
                known.append(key.fd)
        now_s = time.monotonic()
        late = [fd for fd, one in arriving.items() if one.limit_s <= now_s and fd not in known]
        return known + late

    def _judge(self, arrival: _Arrival) -> str | None:
        """Keep a node that can take part, or end it and say why."""
        name, popen = arrival.process.name, arrival.popen
        if arrival.has_greeted:
            reason = self.lack(name, Answer(0, arrival.lines))
            if reason is None:
                self._ready[name] = popen
                return None
            end([popen])
            return reason
        late = arrival.limit_s <= time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            popen.wait(0 if late else _LEAVE_S)
        answer = Answer(popen.poll(), arrival.lines, last_words(popen))
        end([popen])
        return self.lack(name, answer)


def output(popen: FarProcess) -> IO[bytes]:
    """Return its standard output."""
    if popen.stdout is None:
        raise ValueError("a node needs three pipes")
    return popen.stdout


def last_words(popen: FarProcess) -> list[str]:
    """Return what it has written on standard error until now."""
    if popen.stderr is None:
        return []
    os.set_blocking(popen.stderr.fileno(), False)
    text = popen.stderr.read() or b""
    return text.decode(errors="replace").splitlines()


def end(popens: Sequence[FarProcess]) -> None:
    """End connections, and what stands at their other ends: its input is closed."""
    for popen in popens:
        if popen.stdin is not None:
            popen.stdin.close()
        popen.terminate()
    deadline_s = time.monotonic() + _LEAVE_S
    for popen in popens:
        try:
            popen.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
        for pipe in (popen.stdout, popen.stderr):
            if pipe is not None:
                pipe.close()
