# SPDX-License-Identifier: BSD-3-Clause
"""Named network namespaces: making and removing them, working in them, and the privilege for this.

A network namespace belongs to a thread. So work in a namespace is done by a new thread: the
caller's namespace never changes, and nothing has to be restored after an error. A process that the
new thread starts is in the namespace, too. Names are in /run/netns, as for `ip netns`.

For users without privilege, where unprivileged user namespaces are allowed, the process moves into
a user, a mount and a network namespace of its own. There it is root over network namespaces and has
a /run of its own, so that everything else works as it does for root. The namespaces, the lab in
them and its names end with the process, in every case. So a lab that stays (`lab up`) needs root.
Nothing that needs privilege outside of the namespaces is possible: no AF_XDP (which loads BPF
programs), no hugepages, no PCI devices, no real interface.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from ..topology.lab_addresses import NAMESPACES
from .state import LabError

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
MS_REC = 0x4000
MS_SLAVE = 0x80000

_libc = ctypes.CDLL(None, use_errno=True)
_Result = TypeVar("_Result")


def _check(status: int, what: str) -> None:
    if status != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


def unshare(flags: int) -> None:
    """Call unshare(2) for the calling thread."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int) -> None:
    """Call setns(2) for the calling thread."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Call mount(2)."""
    arguments = (source.encode(), target.encode(), kind.encode())
    status = _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode())
    _check(status, f"mount {target}")


def leave_mounts() -> None:
    """Give the calling thread a mount namespace of its own, whose mounts others do not see."""
    unshare(CLONE_NEWNS)
    mount("none", "/", "none", MS_REC | MS_SLAVE)


def in_thread(function: Callable[[], _Result]) -> _Result:
    """Run a function in a new thread, whose namespaces it may change; return its result."""
    with ThreadPoolExecutor(1, "namespace") as pool:
        return pool.submit(function).result()


def inside(path: Path, function: Callable[[], _Result]) -> _Result:
    """Run a function in a thread inside the namespace at `path`; return or raise its result."""

    def work() -> _Result:
        with path.open("rb") as file:
            setns(file.fileno(), CLONE_NEWNET)
        return function()

    return in_thread(work)


def create(name: str) -> int:
    """Move the calling thread into a new namespace with a given name; return its descriptor.

    Raise `FileExistsError` if the name is in use.
    """
    from pyroute2 import netns  # a sixth of a second, and most commands make no lab

    unshare(CLONE_NEWNET)
    netns.attach(name, "thread-self")
    return os.open(NAMESPACES / name, os.O_RDONLY | os.O_CLOEXEC)


def remove(name: str) -> None:
    """Remove a namespace's name; the namespace ends when no process is in it.

    A missing name is no error, nor is the empty file that a crash leaves between making the file
    and mounting the namespace on it.
    """
    from pyroute2 import netns

    with contextlib.suppress(FileNotFoundError):
        # pyroute2's own removal ignores an unmounted file, and so unlinks such a file too.
        netns.remove(name)


def processes(names: Iterable[str]) -> list[int]:
    """Return the ids of the processes whose main thread is in one of the named namespaces."""
    wanted = set()
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            wanted.add((NAMESPACES / name).stat().st_ino)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # The process has ended, or belongs to another user.
                if (entry / "ns" / "net").stat().st_ino in wanted:
                    found.append(int(entry.name))
    return found


def popen(path: Path, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process in the namespace at `path`; `options` are those of `subprocess.Popen`.

    The process also sees the namespace's interfaces in /sys, where this user may mount it.
    """

    def work() -> subprocess.Popen[Any]:
        leave_mounts()
        with contextlib.suppress(OSError):
            mount("sysfs", "/sys", "sysfs")
        return subprocess.Popen(command, **options)

    return inside(path, work)


def write_sysctl(key: str, value: int) -> None:
    """Set a network parameter (`ipv6/conf/all/forwarding`) in the calling thread's namespace."""
    # os.write on a descriptor: buffered files cost four times as much, and a lab writes hundreds.
    fd = os.open(f"/proc/sys/net/{key}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)


_CAP_NET_ADMIN = 12
_CAP_SYS_ADMIN = 21


def has_capability(number: int) -> bool:
    """Return true where this process has the capability `number` of linux/capability.h."""
    found = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.M)
    return found is not None and bool(int(found[1], 16) >> number & 1)


def is_privileged() -> bool:
    """Return true where this process has the capabilities to make namespaces and interfaces."""
    return has_capability(_CAP_NET_ADMIN) and has_capability(_CAP_SYS_ADMIN)


def need_root(command: str) -> None:
    """Raise `LabError` if this user is not privileged; `command` is the command that needs root."""
    if not is_privileged():
        raise LabError(
            f"{command} needs root; `switchbench run` without root makes a lab for each run, and "
            "removes it afterwards"
        )


def enter_user_namespace() -> None:
    """Move this process into namespaces in which it can make labs; do nothing as root.

    Call this before the process has a second thread: a user namespace cannot be left again.
    """
    if is_privileged():
        return
    try:
        _become_root()
        leave_mounts()
        mount("tmpfs", "/run", "tmpfs", options="mode=755")
    except OSError as error:
        raise LabError(
            f"labs need root here: this user can't make a user namespace ({error.strerror}); "
            "`switchbench doctor` has the remedy"
        ) from None


def _become_root() -> None:
    """Move this process into a user and a network namespace in which it is root."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | CLONE_NEWNET)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def try_in_namespace(function: Callable[[], _Result]) -> _Result:
    """Run a function in a child process that is root of a user namespace; return its result.

    The function is one of a module, not a local one. Raise OSError where no user namespace can be
    made.
    """
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        return pool.submit(_as_root, function).result()


def _as_root(function: Callable[[], _Result]) -> _Result:
    _become_root()
    return function()
