# SPDX-License-Identifier: BSD-3-Clause
"""Named network namespaces, and work inside them.

A namespace belongs to a thread, so work inside one is done by a thread of its own: the caller's
namespace never changes, nothing has to be restored after an error, and a process that such a
thread starts is born inside. Namespaces are named under /run/netns as `ip netns` names them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..topology.lab_addresses import NAMESPACES

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
    """unshare(2) for the calling thread."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int) -> None:
    """setns(2) for the calling thread."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    arguments = (source.encode(), target.encode(), kind.encode())
    status = _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode())
    _check(status, f"mount {target}")


def leave_mounts() -> None:
    """From now on what the calling thread mounts is its own."""
    unshare(CLONE_NEWNS)
    mount("none", "/", "none", MS_REC | MS_SLAVE)


def in_thread(function: Callable[[], _Result]) -> _Result:
    """Return what `function` returns or raises.

    Run in a thread of its own that may change namespaces.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="namespace")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def inside(path: Path, function: Callable[[], _Result]) -> _Result:
    """Return what `function` returns or raises, run in a thread inside the namespace at `path`."""

    def work() -> _Result:
        enter(path)
        return function()

    return in_thread(work)


def enter(path: Path) -> None:
    """Move the calling thread into the namespace at `path`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        setns(fd, CLONE_NEWNET)
    finally:
        os.close(fd)


def create(name: str) -> int:
    """Move the calling thread into a new namespace called `name`; its file descriptor.

    `FileExistsError` if the name is taken.
    """
    from pyroute2 import netns  # a sixth of a second, and most commands make no lab

    unshare(CLONE_NEWNET)
    netns.attach(name, "thread-self")
    return os.open(NAMESPACES / name, os.O_RDONLY | os.O_CLOEXEC)


def remove(name: str) -> None:
    """Take the name away, and with it the namespace as soon as no process is in it.

    A name that is not there is no error; nor is the empty file that a crash between making it
    and mounting the namespace on it leaves.
    """
    from pyroute2 import netns

    with contextlib.suppress(FileNotFoundError):
        # pyroute2's own removal ignores that nothing is mounted, and so unlinks such a file too.
        netns.remove(name)


def exists(name: str) -> bool:
    """Return whether there is a namespace of that name, or what a crash left of one."""
    return (NAMESPACES / name).exists()


def processes(names: Iterable[str]) -> list[int]:
    """Return the processes whose main thread is in one of these namespaces."""
    wanted = set()
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            wanted.add((NAMESPACES / name).stat().st_ino)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # It ended meanwhile, or is another user's.
                if (entry / "ns" / "net").stat().st_ino in wanted:
                    found.append(int(entry.name))
    return found


def popen(path: Path, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process in the namespace at `path`; `options` are those of `subprocess.Popen`.

    It sees that namespace's interfaces in /sys too, where this user may mount it.
    """

    def work() -> subprocess.Popen[Any]:
        leave_mounts()
        with contextlib.suppress(OSError):
            mount("sysfs", "/sys", "sysfs")
        return subprocess.Popen(command, **options)

    return inside(path, work)


def write_sysctl(key: str, value: int) -> None:
    """Set a network parameter of the calling thread's namespace (`ipv6/conf/all/forwarding`)."""
    # By descriptor: buffered files cost four times as much, and a lab writes hundreds.
    fd = os.open(f"/proc/sys/net/{key}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)
