# SPDX-License-Identifier: BSD-3-Clause
"""A rig: guests on a switch, from their boot to their end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import image, kernel
from .attach import Session, SessionError
from .errors import GuestError, GuestsMissingError
from .image import Job
from .keeper import CONTROL, PLAN, RigPlan, RigPort
from .machine import QEMU, SESSIONS, Boot, Machine, command, guest_end, switch_end
from .monitor import Monitor

BOOT_TIMEOUT_S = 180.0  # 3 s on an idle machine; 90 were not enough at a load of 34 on two cores
END_TIMEOUT_S = 15.0
CONSOLE_LINES = 40  # a panic has some 25
FOLDER_PREFIX = "sb-guests-"

_ATTACH = Path(__file__).with_name("attach.py")
_PATH_MAX = 100  # sun_path of unix(7) is 108 bytes
_PACKAGE_FOLDER = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Guest:
    """A running guest."""

    name: str
    folder: Path
    machine: Machine

    def command(self, words: Sequence[str], **environment: str) -> list[str]:
        """The command that runs `words` in the guest, as if it ran here: its standard streams,
        signals and exit status are the program's."""
        assigned = [f"{name}={value}" for name, value in environment.items()]
        attach = [sys.executable, "-I", str(_ATTACH), str(self.folder)]
        return [*attach, *assigned, "--", *words]

    def popen(self, words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Starts a program in the guest; `options` as for `subprocess.Popen`."""
        return subprocess.Popen(self.command(words), **options)

    def run(
        self, words: Sequence[str], timeout_s: float = 60.0, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program in the guest to its end; its output as text. After `timeout_s` it is
        ended and subprocess.TimeoutExpired raised."""
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
        """What a program writes; GuestError when it fails."""
        done = self.run(words, timeout_s)
        if done.returncode != 0:
            text = (done.stderr or done.stdout).strip()
            raise GuestError(
                f"{self.name}: {words[0]} ended with status {done.returncode}: {text[-500:]}"
            )
        return done.stdout

    def monitor(self) -> Monitor:
        """Its QEMU's monitor, to be used as a context."""
        return Monitor(self.folder / "qmp")

    def set_link(self, nic: str, up: bool) -> None:
        """Pulls or plugs the cable of a NIC, so that the guest sees its carrier go or come."""
        with self.monitor() as monitor:
            monitor.set_link(nic, up)

    def console(self, lines: int = CONSOLE_LINES) -> str:
        """The last lines of its console, and what QEMU itself said."""
        text = ""
        for name in ("qemu", "console"):
            with contextlib.suppress(FileNotFoundError):
                text += (self.folder / name).read_text(errors="replace")
        found = [line for line in text.replace("\r", "\n").splitlines() if line]
        return "\n".join(found[-lines:])


@dataclass(frozen=True)
class Rig:
    """Guests that are up."""

    folder: Path
    guests: tuple[Guest, ...]
    boot_s: float
    """From the start of the QEMUs to the last guest's first answer."""

    def __getitem__(self, name: str) -> Guest:
        """The guest of that name."""
        for guest in self.guests:
            if guest.name == name:
                return guest
        raise GuestError(f"there is no guest {name}")

    def counters(self) -> Mapping[str, Mapping[str, int]]:
        """The switch's counters by port (`node1/eth0`); switch.Counters says which."""
        counters: Mapping[str, Mapping[str, int]] = self._ask(do="counters")
        return counters

    def lose(self, port: str, share: float) -> None:
        """From now on, so many of the frames that come from a port vanish, by chance."""
        self._ask(do="loss", port=port, share=share)

    def cut(self, port: str, for_s: float) -> None:
        """For a time nothing passes a port in either direction; its carrier stays."""
        self._ask(do="cut", port=port, for_s=for_s)

    def status(self) -> Mapping[str, int | None]:
        """How each guest's QEMU has ended; None while it runs."""
        status: Mapping[str, int | None] = self._ask(do="status")
        return status

    def end(self) -> None:
        """Ends the guests and removes the rig's folder."""
        with contextlib.suppress(GuestError):
            self._ask(do="end")
        limit_s = time.monotonic() + END_TIMEOUT_S
        while self.folder.exists() and time.monotonic() < limit_s:
            time.sleep(0.01)

    def _ask(self, **what: Any) -> Any:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(END_TIMEOUT_S)
                connection.connect(str(self.folder / CONTROL))
                connection.sendall(json.dumps(what).encode() + b"\n")
                with connection.makefile() as lines:
                    return json.loads(lines.readline())
        except (OSError, ValueError) as error:
            raise GuestError(f"the guests in {self.folder} are gone ({error})") from None


@contextmanager
def boot(machines: Sequence[Machine], job: Job | None = None, seed: int = 1) -> Iterator[Rig]:
    """Guests for the time of a block; whatever happens, none is left afterwards.

    GuestsMissingError says what this machine lacks; GuestError has the tail of the console of a
    guest that did not come up.
    """
    folder = _lay_out(machines, job or Job(), seed)
    keeper = _start_keeper(folder)
    try:
        yield _wait(folder, machines, keeper)
    finally:
        if keeper.stdin is not None:
            keeper.stdin.close()
        try:
            keeper.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            keeper.kill()  # its guests die with it
            keeper.wait()
        shutil.rmtree(folder, ignore_errors=True)


def why_not() -> str | None:
    """What guests lack on this machine, in one sentence; None when they can be had."""
    try:
        _check_qemu()
        image.base(kernel.prepare())
    except GuestsMissingError as error:
        return str(error)
    return None


def _check_qemu() -> None:
    if shutil.which(QEMU) is None:
        raise GuestsMissingError(
            f"{QEMU} is not installed: guests need the package qemu-system-x86 (scripts/setup)"
        )


def _lay_out(machines: Sequence[Machine], job: Job, seed: int) -> Path:
    """The rig's folder with all that the keeper needs."""
    _check_qemu()
    unpacked = kernel.prepare()
    base = image.base(unpacked)
    # Named after whoever booted it, so that a stray folder can be told from one in use.
    folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
    try:
        if len(str(folder)) > _PATH_MAX - max(len(machine.name) for machine in machines) - 15:
            raise GuestError(f"{folder} is too long a path for sockets: set TMPDIR to a short one")
        initrd = folder / "initrd"
        with initrd.open("wb") as out:
            with base.open("rb") as shared:
                shutil.copyfileobj(shared, out, 1 << 20)
            out.write(image.job(job, unpacked))
        plan: RigPlan = {"seed": seed, "guests": {}, "ports": []}
        for machine in machines:
            own = folder / machine.name
            own.mkdir()
            for number in range(SESSIONS):
                (own / f"s{number}.lock").touch()
            plan["guests"][machine.name] = command(machine, Boot(unpacked.vmlinux, initrd, own))
            plan["ports"] += _ports(machine, own)
        (folder / PLAN).write_text(json.dumps(plan, indent=1))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _ports(machine: Machine, folder: Path) -> list[RigPort]:
    return [
        {
            "name": f"{machine.name}/{nic.name}",
            "network": nic.network,
            "own": str(switch_end(folder, nic.name)),
            "guest": str(guest_end(folder, nic.name)),
        }
        for nic in machine.nics
    ]


def _start_keeper(folder: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", f"{__package__}.keeper", str(folder)]
    environment = dict(os.environ, PYTHONPATH=str(_PACKAGE_FOLDER))
    with (folder / "keeper").open("wb") as log:
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,  # a person's Ctrl-C is the command's alone
        )


def _wait(folder: Path, machines: Sequence[Machine], keeper: subprocess.Popen[bytes]) -> Rig:
    """The rig once all guests have answered."""
    start_s = time.monotonic()
    guests = tuple(Guest(machine.name, folder / machine.name, machine) for machine in machines)
    rig = Rig(folder, guests, 0.0)
    for guest in guests:
        while not _answers(guest):
            if keeper.poll() is not None:
                text = (folder / "keeper").read_text(errors="replace") if folder.exists() else ""
                raise GuestError(f"the guests' keeper has ended: {text.strip()[-500:]}")
            _check_alive(rig, guest)
            if time.monotonic() - start_s > BOOT_TIMEOUT_S:
                raise _boot_error(guest, f"did not answer within {BOOT_TIMEOUT_S:.0f} s")
            time.sleep(0.05)
    return Rig(folder, guests, time.monotonic() - start_s)


def _answers(guest: Guest) -> bool:
    try:
        Session(guest.folder, patience_s=0.0).close()
    except SessionError:
        return False
    return True


def _check_alive(rig: Rig, guest: Guest) -> None:
    if not (rig.folder / CONTROL).exists():
        return  # the keeper has only begun
    status = rig.status()[guest.name]
    if status is not None:
        raise _boot_error(guest, f"did not come up: QEMU ended with status {status}")


def _boot_error(guest: Guest, what: str) -> GuestError:
    return GuestError(f"{guest.name} {what}; the end of its console:\n{guest.console()}")
