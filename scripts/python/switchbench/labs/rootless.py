# SPDX-License-Identifier: BSD-3-Clause
"""Labs for users without privilege, where unprivileged user namespaces are allowed.

The process moves into a user, a mount and a network namespace of its own. There it is root over
network namespaces and has a /run of its own, so that everything else works as it does for root. The
namespaces, the lab in them and its names end with the process, however that ends. So a lab that
stays (`lab up`) needs root.

Whatever needs privilege outside of the namespaces is impossible: no AF_XDP (it loads BPF programs),
no hugepages, no PCI devices, no real interface.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from switchbench.labs import namespaces
from switchbench.labs.namespaces import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUSER
from switchbench.labs.state import LabError

_CAP_NET_ADMIN = 12
_CAP_SYS_ADMIN = 21


def is_privileged() -> bool:
    """Return whether this process may make namespaces and interfaces as it is."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
            needed = 1 << _CAP_NET_ADMIN | 1 << _CAP_SYS_ADMIN
            return effective & needed == needed
    return False


def need_root(command: str) -> None:
    """Refuse a command on labs that stay, of a user without privilege."""
    if not is_privileged():
        raise LabError(
            f"{command} needs root; `switchbench run` makes a lab of its own without, and removes "
            "it again"
        )


def join() -> None:
    """Be able to make labs from now on: nothing to do for root.

    To be called before the process has a second thread: there is no way back out of a user
    namespace.
    """
    if is_privileged():
        return
    try:
        _become_root(CLONE_NEWNS)
        namespaces.mount("none", "/", "none", namespaces.MS_REC | namespaces.MS_SLAVE)
        namespaces.mount("tmpfs", "/run", "tmpfs", options="mode=755")
    except OSError as error:
        raise LabError(
            f"labs need root here: no user namespace for you ({error.strerror}); "
            "`switchbench doctor` says more"
        ) from None


def _become_root(more: int = 0) -> None:
    """Move this process into a user and a network namespace in which it is root."""
    uid, gid = os.geteuid(), os.getegid()
    namespaces.unshare(CLONE_NEWUSER | CLONE_NEWNET | more)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def try_in_namespace(function: Callable[[], list[str]]) -> list[str]:
    """Return the lines that `function` returns as root of a user namespace.

    In a process of its own; OSError if there can't be such a namespace.
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
        _become_root()
        lines = function()
    except OSError as error:
        code = error.errno or errno.EIO
    with os.fdopen(write_end, "w") as answer:
        json.dump([code, lines], answer)
    os._exit(0)
