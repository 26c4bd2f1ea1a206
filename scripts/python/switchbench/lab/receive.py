# SPDX-License-Identifier: BSD-3-Clause
"""Which CPU handles what an interface of a lab receives.

A frame that crosses a veth pair waits in the backlog of the CPU on which it was sent. When its
sender moves to another CPU, the next frames wait in that CPU's backlog and may overtake the first:
the lab itself would reorder. So each interface under test has one CPU (receive packet steering).

That CPU drops what does not fit in its backlog, which is short: senders that catch up together fill
it. So the machine's limit is raised while there is a lab.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from . import namespaces, state

_INTERFACES = Path("/sys/class/net")
_CPUS = "queues/rx-0/rps_cpus"
_BACKLOG = Path("/proc/sys/net/core/netdev_max_backlog")
_BACKLOG_FRAMES = 16384  # usually 1,000
_BACKLOG_BEFORE = "backlog"  # in the labs' folder: what it was
_UNDER_TEST = ("eth", "p", "t", "o-")  # of nodes; of the switch: ports, trunks, Open vSwitch's taps


def pin(opened: Sequence[int]) -> None:
    """Give each interface under test in these namespaces one CPU, in turn.

    Where this user may not mount /sys, or the kernel has no such steering, frames are handled where
    they were sent.
    """
    with contextlib.suppress(OSError):
        namespaces.in_thread(lambda: _pin_all(opened))


def _pin_all(opened: Sequence[int]) -> None:
    namespaces.leave_mounts()
    cpus = sorted(os.sched_getaffinity(0))
    for i, namespace in enumerate(opened):
        namespaces.setns(namespace, namespaces.CLONE_NEWNET)
        # /sys shows the interfaces of the namespace in which it is mounted.
        namespaces.mount("sysfs", "/sys", "sysfs")
        found = sorted(name for name in os.listdir(_INTERFACES) if name.startswith(_UNDER_TEST))
        for j, name in enumerate(found):
            (_INTERFACES / name / _CPUS).write_text(_mask(cpus[(i + j) % len(cpus)]))
        namespaces.unmount("/sys")


def _mask(cpu: int) -> str:
    """As /sys wants it: words of 32 bits in hexadecimal digits, the highest first."""
    words = [f"{1 << cpu % 32:x}", *["0" * 8] * (cpu // 32)]
    return ",".join(words)


def raise_backlog() -> None:
    """For a lab that is on record; nothing where this user may not, as without root."""
    with contextlib.suppress(OSError):
        before = int(_BACKLOG.read_text())
        if before < _BACKLOG_FRAMES:
            (state.RUN_DIR / _BACKLOG_BEFORE).write_text(str(before))
            _BACKLOG.write_text(str(_BACKLOG_FRAMES))


def restore_backlog() -> None:
    """As it was before the first lab, once there is none; a value of somebody else's stays."""
    file = state.RUN_DIR / _BACKLOG_BEFORE
    if state.labs() or not file.exists():
        return
    with contextlib.suppress(OSError):
        if int(_BACKLOG.read_text()) == _BACKLOG_FRAMES:
            _BACKLOG.write_text(file.read_text())
        file.unlink()
