# SPDX-License-Identifier: BSD-3-Clause
"""Which CPU handles what an interface of a lab receives.

A frame that crosses a veth pair waits in the backlog of the CPU on which it was sent. When its
sender moves to another CPU, the next frames wait in that CPU's backlog and may overtake the first:
the lab itself would reorder. So each interface under test has one CPU (receive packet steering).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from . import namespaces

_INTERFACES = Path("/sys/class/net")
_CPUS = "queues/rx-0/rps_cpus"
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
