# SPDX-License-Identifier: BSD-3-Clause
"""The process that keeps a rig: runs its QEMUs and its switch, and ends with all of them.

    python -m switchbench.labs.vm.keeper FOLDER

FOLDER holds `rig.json` (written by rig.py): the guests' command lines and the switch's ports. The
keeper ends the guests, by their process ids, and removes FOLDER when its standard input ends (so
when whoever started it dies in any way), on SIGTERM, and when told so over `FOLDER/control`; each
guest ends when the keeper is killed.

`control` takes one JSON object a line and answers each with one:
    {"do": "counters"}                                      all ports' counters, by name
    {"do": "loss", "port": "node1/eth0", "share": 0.02}     of the frames from that port
    {"do": "cut", "port": "node1/eth0", "for_s": 1.5}       both directions
    {"do": "status"}                                        guests: null, or how QEMU ended
    {"do": "end"}
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict

from .switch import Switch

CONTROL = "control"
PLAN = "rig.json"
CHECK_S = 0.1
_PR_SET_PDEATHSIG = 1
_END_TIMEOUT_S = 5.0
_LINE_MAX = 1 << 16


class RigPort(TypedDict):
    """A port of the rig's switch: its own socket, and the guest's."""

    name: str
    network: str
    own: str
    guest: str


class RigPlan(TypedDict):
    """The file PLAN."""

    seed: int
    guests: dict[str, list[str]]
    ports: list[RigPort]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Keeper:
    """One rig from its start to its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plan: RigPlan = json.loads((folder / PLAN).read_text())
        self._poller = select.epoll()
        self._switch = Switch(self._poller, seed=self._plan["seed"])
        self._guests: dict[str, subprocess.Popen[bytes]] = {}
        self._clients: dict[int, socket.socket] = {}
        self._ending = False

    def run(self) -> None:
        """Until the end."""
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)
        try:
            for port in self._plan["ports"]:
                own, guest = Path(port["own"]), Path(port["guest"])
                self._switch.add(port["name"], port["network"], own, guest)
            self._listen()
            for name, command in self._plan["guests"].items():
                self._guests[name] = self._start(name, command)
            self._loop()
        finally:
            self._end_guests()
            self._switch.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        # This process has one thread, so that a function may run in the child before the program.
        with (self._folder / name / "qemu").open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
            )

    def _listen(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._folder / CONTROL))
        self._listener.listen()
        self._poller.register(self._listener, select.EPOLLIN)
        self._poller.register(sys.stdin.fileno(), select.EPOLLIN)

    def _loop(self) -> None:
        switch, poll = self._switch, self._poller.poll
        checked_s = 0.0
        while not self._ending:
            for fd, events in poll(CHECK_S):
                if switch.owns(fd):
                    switch.serve(fd, events)
                elif fd == sys.stdin.fileno():
                    self._ending = not os.read(fd, _LINE_MAX)
                elif fd == self._listener.fileno():
                    self._accept()
                else:
                    self._answer(self._clients[fd])
            now_s = time.monotonic()
            if now_s - checked_s > CHECK_S:
                switch.check()
                checked_s = now_s

    def _end(self, *_: object) -> None:
        self._ending = True

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        self._clients[client.fileno()] = client
        self._poller.register(client, select.EPOLLIN)

    def _answer(self, client: socket.socket) -> None:
        """One line in one piece: the socket is local and its other end writes so."""
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            line = client.recv(_LINE_MAX)
            if line:
                client.sendall(json.dumps(self._do(json.loads(line))).encode() + b"\n")
                return
        self._poller.unregister(client)
        del self._clients[client.fileno()]
        client.close()

    def _do(self, asked: dict[str, Any]) -> object:
        what = asked["do"]
        if what == "counters":
            return {name: asdict(port.counters) for name, port in self._switch.ports.items()}
        if what == "status":
            return {name: guest.poll() for name, guest in self._guests.items()}
        if what == "loss":
            self._switch.ports[asked["port"]].loss = asked["share"]
        elif what == "cut":
            self._switch.ports[asked["port"]].cut_until_s = time.monotonic() + asked["for_s"]
        elif what == "end":
            self._ending = True
        return {}

    def _end_guests(self) -> None:
        for guest in self._guests.values():
            guest.kill()
        for guest in self._guests.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                guest.wait(_END_TIMEOUT_S)


if __name__ == "__main__":
    Keeper(Path(sys.argv[1])).run()
