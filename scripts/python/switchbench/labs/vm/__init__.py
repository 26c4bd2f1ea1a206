# SPDX-License-Identifier: BSD-3-Clause
"""Guests: virtual machines with real RDMA devices (Soft-RoCE) and real PCI NICs, on a machine that
has neither, and without privilege (doc/how-to/guests.md).

    with guests.boot(guests.machines(2), guests.Job(programs=(binary,))) as rig:
        done = rig["node1"].run(["ibv_devinfo"])         # status, stdout, stderr
        rig["node2"].popen([binary.name, ...], stdin=PIPE, stdout=PIPE)
        rig.cut("node1/eth0", for_s=1.0)

`GuestsMissingError` says what this machine lacks, `GuestError` what went wrong.
"""

from .errors import GuestError, GuestsMissingError
from .image import Job, dpdk_drivers, uses_dpdk
from .machine import Machine, Nic, control_interface, interface, machine, machines
from .rig import Guest, Rig, boot, why_not

__all__ = [
    "Guest",
    "GuestError",
    "GuestsMissingError",
    "Job",
    "Machine",
    "Nic",
    "Rig",
    "boot",
    "control_interface",
    "dpdk_drivers",
    "interface",
    "machine",
    "machines",
    "uses_dpdk",
    "why_not",
]
