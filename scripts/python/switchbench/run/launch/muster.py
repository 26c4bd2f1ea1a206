# SPDX-License-Identifier: BSD-3-Clause
"""Nodes on real hosts are started before the run is planned to its end.

Each says its version, in the one login that it then runs in, and waits for its job. Who can't be
reached, asks for a password, lacks the engine or has another one is known then, by name, and the
run can be planned without.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Self

from ...base.model import Process
from .base import FarProcess
from .fan import Answer
from .survey import Unreached, greeted

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


class Muster:
    """The nodes of a run's hosts, from their start until the controller takes them."""

    def __init__(
        self,
        start: Callable[[Process], FarProcess],
        lack: Callable[[str, Answer], str | None],
        fanout: int,
        limit_s: float,
    ) -> None:
        """`start` begins a login that ends in a node, `lack` says what an answer to it lacks. As
        many logins as `fanout` go on at a time, each for `limit_s` at most."""
        self._start = start
        self._lack = lack
        self._fanout = fanout
        self._limit_s = limit_s
        self._ready: dict[str, FarProcess] = {}

    def gather(self, processes: Sequence[Process]) -> list[Unreached]:
        """Starts a node for each; returns once of each is known whether it can take part."""
        waiting = deque(processes)
        arriving: dict[int, _Arrival] = {}
        reasons: dict[str, str] = {}
        with selectors.DefaultSelector() as selector:
            try:
                while waiting or arriving:
                    while waiting and len(arriving) < self._fanout:
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

    def take(self, process: Process) -> FarProcess:
        """The node of a host that can take part."""
        return self._ready.pop(process.name)

    def dismiss(self) -> None:
        """Ends the nodes that nobody has taken."""
        end(list(self._ready.values()))
        self._ready.clear()

    def _begin(
        self, process: Process, arriving: dict[int, _Arrival], selector: selectors.BaseSelector
    ) -> None:
        popen = self._start(process)
        fd = output(popen).fileno()
        arriving[fd] = _Arrival(process, popen, time.monotonic() + self._limit_s)
        selector.register(fd, selectors.EVENT_READ)

    def _turn(self, arriving: dict[int, _Arrival], selector: selectors.BaseSelector) -> list[int]:
        """Waits for something to happen; of whom enough is known now."""
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
        """Keeps a node that can take part, or ends it and says why."""
        name, popen = arrival.process.name, arrival.popen
        if arrival.has_greeted:
            reason = self._lack(name, Answer(0, arrival.lines))
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
        return self._lack(name, answer)


class FarLauncher:
    """A launcher whose hosts may be missing: its nodes are started before the run is planned to its
    end. There is nothing to enter; it can be entered again, after some of its hosts were lost."""

    def __init__(self, muster: Muster) -> None:
        """The muster knows how a node is started."""
        self._muster = muster

    def __enter__(self) -> Self:
        """Nothing: the nodes stand ready."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing: the controller has ended the nodes, and another run may follow."""

    def gather(self, processes: Sequence[Process]) -> list[Unreached]:
        """Starts the nodes of these, and says who can't take part; `start` hands out the others."""
        return self._muster.gather(processes)

    def start(self, process: Process, _command: Sequence[str]) -> FarProcess:
        """Hands out the node of a host; the engine there is the site's."""
        return self._muster.take(process)

    def close(self) -> None:
        """Gives back all that `gather` has made or started, and that was not taken."""
        self._muster.dismiss()


def output(popen: FarProcess) -> IO[bytes]:
    """Its standard output."""
    if popen.stdout is None:
        raise ValueError("a node needs three pipes")
    return popen.stdout


def last_words(popen: FarProcess) -> list[str]:
    """What it has written on standard error until now."""
    if popen.stderr is None:
        return []
    os.set_blocking(popen.stderr.fileno(), False)
    text = popen.stderr.read() or b""
    return text.decode(errors="replace").splitlines()


def end(popens: Sequence[FarProcess]) -> None:
    """Ends connections, and what stands at their other ends: its input is closed."""
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
