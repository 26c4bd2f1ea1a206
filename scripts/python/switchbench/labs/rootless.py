# SPDX-License-Identifier: BSD-3-Clause
"""Labs for users without privilege, where unprivileged user namespaces are allowed.

A process that waits and does nothing else, the holder, keeps a user, a mount and a network
namespace in being, one set for each user. In them the user is root over network namespaces and
has a /run of its own, so that everything else works as it does for root. Each command joins them
at its start; the command that leaves when no lab is up ends the holder. If the holder dies, all
its labs and their names vanish with it.

What it can't do: whatever needs privilege outside of the namespaces. So no AF_XDP (it loads BPF
programs), no hugepages, no PCI devices, no real interface. The labs' names are not seen by
`ip netns` outside, and a command that has joined doesn't see the machine's /run.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from switchbench.labs import namespaces, state
from switchbench.labs.namespaces import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUSER
from switchbench.labs.state import LabError

_CAP_NET_ADMIN = 12
_CAP_SYS_ADMIN = 21
_HOLDER_FILE = "holder"
_END_TIMEOUT_S = 5.0


def is_privileged() -> bool:
    """Whether this process may make namespaces and interfaces as it is."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
            needed = 1 << _CAP_NET_ADMIN | 1 << _CAP_SYS_ADMIN
            return effective & needed == needed
    return False


@contextmanager
def joined() -> Iterator[None]:
    """Be able to make labs in this block: nothing to do for root; else join the holder.

    To be entered before the process has a second thread, and once: there is no way back out of a
    user namespace, so what follows the block is still inside.
    """
    if is_privileged():
        yield
        return
    holder = _join()
    try:
        yield
    finally:
        holder.leave()


@dataclass(frozen=True)
class _Holder:
    """The holder as one process that has joined it knows it."""

    pid: int
    parent: int
    """File descriptor of the folder above the holder's: its path may be hidden by now."""
    folder: Path
    """The holder's folder, seen from there."""
    file: int
    """File descriptor of the holder's file: locked shared by each process that has joined."""

    def leave(self) -> None:
        """End the holder if there are neither labs nor other processes that have joined."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not state.labs():
            os.kill(self.pid, signal.SIGTERM)
            _wait_end(self.pid)
            os.unlink(self.folder / _HOLDER_FILE, dir_fd=self.parent)
            with contextlib.suppress(OSError):  # Another command is about to start a holder.
                os.rmdir(self.folder, dir_fd=self.parent)
        os.close(self.file)
        os.close(self.parent)


def _join() -> _Holder:
    """Become a process of the holder's namespaces; the holder is started if there is none."""
    path = _folder_path()
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    folder = Path(path.name)
    file, pid = _find_or_start(parent, folder)
    kinds = {"user": CLONE_NEWUSER, "mnt": CLONE_NEWNS, "net": CLONE_NEWNET}
    here = os.getcwd()
    # Opened before the first is joined: /proc/<pid> may not be readable from between them.
    fds = {kind: os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds}
    for kind, flag in kinds.items():
        namespaces.setns(fds[kind], flag)
        os.close(fds[kind])
    with contextlib.suppress(OSError):
        os.chdir(here)  # A mount namespace is joined at its root.
    return _Holder(pid, parent, folder, file)


def _folder_path() -> Path:
    """Where this user's holder is found: in the folder of its login session, if it has one."""
    user = os.geteuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir() and os.stat(runtime).st_uid == user:
        return Path(runtime) / "switchbench"
    return Path(f"/tmp/switchbench-{user}")


def _open_file(parent: int, folder: Path) -> int:
    """The holder's file, in a folder that nobody else can write to."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode=0o700, dir_fd=parent)
    found = os.stat(folder, dir_fd=parent, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise LabError(f"{_folder_path()} has to be a folder that belongs to you alone")
    return os.open(
        folder / _HOLDER_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=parent
    )


def _find_or_start(parent: int, folder: Path) -> tuple[int, int]:
    """The holder's file, locked shared, and its process."""
    while True:
        try:
            file = _open_file(parent, folder)
        except FileNotFoundError:
            continue  # The last to leave removed the folder in between.
        fcntl.flock(file, fcntl.LOCK_SH)
        if _is_current(file, parent, folder) and (pid := _living_holder(file)):
            return file, pid
        fcntl.flock(file, fcntl.LOCK_EX)
        if _is_current(file, parent, folder) and not _living_holder(file):
            pid = _start_holder()
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps([pid, _start_time(pid)]).encode(), 0)
        # Changing a lock lets others in between: what is true now is seen from the beginning.
        os.close(file)


def _is_current(file: int, parent: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(folder / _HOLDER_FILE, dir_fd=parent))
    except FileNotFoundError:
        return False


def _living_holder(file: int) -> int | None:
    try:
        pid, start_time = json.loads(os.pread(file, 100, 0))
    except ValueError:
        return None
    return int(pid) if _start_time(pid) == start_time else None


def _start_time(pid: int) -> str:
    """What tells this process from a later one of the same number; empty if there is none."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if after_name[0] == "Z" else after_name[19]  # proc(5): fields 3 and 22


def _wait_end(pid: int) -> None:
    deadline = time.monotonic() + _END_TIMEOUT_S
    while _start_time(pid) and time.monotonic() < deadline:
        time.sleep(0.005)


def _start_holder() -> int:
    """Start a holder; it is nobody's child, so nobody has to wait for it."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        if os.fork() == 0:
            _hold(write_end)
        os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    with os.fdopen(read_end) as answer:
        word, _, value = answer.read().partition(" ")
    if word == "ready":
        return int(value)
    code = int(value) if word == "error" else errno.EIO
    raise LabError(
        f"labs need root here: no user namespace for you ({os.strerror(code)}); "
        "`switchbench doctor` says more"
    )


def _hold(answer: int) -> NoReturn:
    try:
        os.setsid()
        become_root(CLONE_NEWNS)
        namespaces.mount("none", "/", "none", namespaces.MS_REC | namespaces.MS_SLAVE)
        namespaces.mount("tmpfs", "/run", "tmpfs", options="mode=755")
        os.write(answer, f"ready {os.getpid()}".encode())
    except OSError as error:
        os.write(answer, f"error {error.errno}".encode())
        os._exit(1)
    # The starter's files have to be free: its reader waits for the end of its output.
    os.chdir("/")
    nowhere = os.open("/dev/null", os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        signal.pause()


def become_root(more: int = 0) -> None:
    """Move this process into a user and a network namespace in which it is root."""
    uid, gid = os.geteuid(), os.getegid()
    namespaces.unshare(CLONE_NEWUSER | CLONE_NEWNET | more)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def try_in_namespace(function: Callable[[], list[str]]) -> list[str]:
    """The lines that `function` returns as root of a user namespace, in a process of its own.

    `OSError` if there can't be such a namespace.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _answer_from_namespace(write_end, function)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        code, lines = json.loads(answer.read() or f"[{errno.EIO}, []]")
    os.waitpid(child, 0)
    if code != 0:
        raise OSError(code, os.strerror(code))
    return [str(line) for line in lines]


def _answer_from_namespace(write_end: int, function: Callable[[], list[str]]) -> NoReturn:
    code = 0
    lines: list[str] = []
    try:
        become_root()
        lines = function()
    except OSError as error:
        code = error.errno or errno.EIO
    with os.fdopen(write_end, "w") as answer:
        json.dump([code, lines], answer)
    os._exit(0)
