# SPDX-License-Identifier: BSD-3-Clause
"""A rig: guests on a switch, from their boot to their end."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import image, kernel
from .kernel import GuestError, GuestsMissingError
from .machine import Boot, Machine, command, guest_end, switch_end
from .switch import CableEnd, Switch

BOOT_TIMEOUT_S = 180.0  # 3 s on an idle machine; 90 were not enough at a load of 34 on two cores
CONSOLE_LINES = 40  # a panic has some 25
FOLDER_PREFIX = "sb-guests-"


@dataclass(frozen=True)
class Guest:
    """A running guest."""

    name: str
    folder: Path
    qemu: subprocess.Popen[bytes]

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the command that runs `words` in the guest with this process's streams."""
        config = self.folder.parent / "ssh_config"
        return ["ssh", "-F", str(config), self.name, "--", shlex.join(words)]

    def popen(self, words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a program in the guest; `options` as for `subprocess.Popen`."""
        return subprocess.Popen(self.command(words), **options)

    def run(
        self, words: Sequence[str], timeout_s: float = 60.0, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the guest to its end; its output as text."""
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            self.command(words),
            timeout=timeout_s,
            text=True,
            errors="replace",
            check=False,
            capture_output=True,
            **options,
        )

    def output(self, words: Sequence[str], timeout_s: float = 60.0) -> str:
        """Return what a program writes; GuestError when it fails."""
        done = self.run(words, timeout_s)
        if done.returncode != 0:
            text = (done.stderr or done.stdout).strip()
            raise GuestError(
                f"{self.name}: {words[0]} ended with status {done.returncode}: {text[-500:]}"
            )
        return done.stdout

    def monitor(self, command: str, **arguments: Any) -> None:
        """Send a command to QEMU's monitor (QMP)."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self.folder / "qmp"))
            with connection.makefile("rw", encoding="utf-8") as lines:
                lines.readline()  # the greeting
                for words in ({"execute": "qmp_capabilities"}, {"execute": command}):
                    more = {"arguments": arguments} if words["execute"] == command else {}
                    lines.write(json.dumps({**words, **more}) + "\n")
                    lines.flush()
                    answer = json.loads(lines.readline())
                    if "error" in answer:
                        raise GuestError(f"QEMU rejects {command}: {answer['error']['desc']}")

    def set_link(self, nic: str, up: bool) -> None:
        """Pull or plug the cable of a NIC, so that the guest sees its carrier go or come."""
        self.monitor("set_link", name=nic, up=up)

    def console(self) -> str:
        """Return the last lines of its console, and what QEMU itself wrote."""
        text = ""
        for name in ("qemu", "console"):
            with contextlib.suppress(FileNotFoundError):
                text += (self.folder / name).read_text(errors="replace")
        found = [line for line in text.replace("\r", "\n").splitlines() if line]
        return "\n".join(found[-CONSOLE_LINES:])


@dataclass(frozen=True)
class Rig:
    """Guests that are up. `ssh_config` names them for every ssh."""

    folder: Path
    guests: tuple[Guest, ...]
    ports: Mapping[str, CableEnd]
    """The switch's, by name: `node1/eth0`."""

    @property
    def ssh_config(self) -> Path:
        """Return the file for `ssh -F`."""
        return self.folder / "ssh_config"

    def __getitem__(self, name: str) -> Guest:
        """Return the guest of that name."""
        return next(guest for guest in self.guests if guest.name == name)


@contextmanager
def boot(machines: Sequence[Machine]) -> Iterator[Rig]:
    """Boot guests for the time of a block.

    GuestsMissingError says what this machine lacks; GuestError has the end of the console of a
    guest that did not come up.
    """
    image.check_programs()
    unpacked = kernel.prepare()
    with ExitStack() as stack:
        # Named after the process that booted it, so that a stray folder can be told from others.
        name = tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-")
        stack.callback(shutil.rmtree, name, ignore_errors=True)
        folder = Path(name)
        _make_key(folder / "key")
        initrd = image.write_first_archive(unpacked, folder)
        switch = stack.enter_context(contextlib.closing(Switch()))
        for machine in machines:
            own = folder / machine.name
            own.mkdir()
            for nic in machine.nics:
                ends = switch_end(own, nic.name), guest_end(own, nic.name)
                switch.add(f"{machine.name}/{nic.name}", nic.network, *ends)
        switch.start()
        ports = _free_ports(len(machines))
        _write_ssh_config(folder, machines, ports)
        guests = []
        for machine, port in zip(machines, ports, strict=True):
            own = folder / machine.name
            start = Boot(unpacked, initrd, own, port)
            words = command(machine, start)
            guests.append(Guest(machine.name, own, _start(stack, words, own / "qemu")))
        for guest in guests:
            _wait(guest)
            stack.callback(guest.qemu.kill)
            stack.callback(
                subprocess.run,
                ["ssh", "-F", str(folder / "ssh_config"), "-O", "exit", guest.name],
                capture_output=True,
                check=False,
            )
        yield Rig(folder, tuple(guests), switch.ports)


def why_not() -> str | None:
    """Return in one sentence what guests lack on this machine; None when they can be booted."""
    try:
        image.check_programs()
        kernel.prepare()
    except GuestsMissingError as error:
        return str(error)
    return None


def _make_key(path: Path) -> None:
    """Make the key of the guests, and of those that log in to them."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "guests", "-f", str(path)]
    subprocess.run(words, check=True)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _write_ssh_config(folder: Path, machines: Sequence[Machine], ports: Sequence[int]) -> None:
    """Write how ssh reaches the guests: one connection each, shared by all its sessions."""
    common = f"""\
HostName 127.0.0.1
User root
IdentityFile {folder}/key
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
ControlMaster auto
ControlPath {folder}/%n.mux
ControlPersist yes
"""
    text = "".join(
        f"Host {machine.name}\nPort {port}\n{common}"
        for machine, port in zip(machines, ports, strict=True)
    )
    (folder / "ssh_config").write_text(text)


def _start(stack: ExitStack, words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start QEMU, which ends with this process in whatever way that ends."""
    with log.open("wb") as out:
        qemu = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    stack.callback(qemu.wait)
    stack.callback(qemu.kill)
    return qemu


def _wait(guest: Guest) -> None:
    limit_s = time.monotonic() + BOOT_TIMEOUT_S
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            if "up" in guest.run(["echo", "up"], timeout_s=30).stdout:
                return
        status = guest.qemu.poll()
        if status is not None:
            what = f"did not come up: QEMU ended with status {status}"
        elif time.monotonic() > limit_s:
            what = f"did not answer within {BOOT_TIMEOUT_S:.0f} s"
        else:
            time.sleep(0.1)
            continue
        raise GuestError(f"{guest.name} {what}; the end of its console:\n{guest.console()}")
