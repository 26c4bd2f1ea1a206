# SPDX-License-Identifier: BSD-3-Clause
"""Virtual machines with RDMA devices (Soft-RoCE) and PCI NICs, for tests on a machine that has
neither. QEMU boots Debian's kernel without KVM and without root; ssh runs programs in them.

    with guests.boot(guests.machines(2)) as rig:
        done = rig["node1"].run(["ibv_devinfo"])         # status, stdout, stderr
        rig["node2"].popen([binary, ...], stdin=PIPE, stdout=PIPE)  # any program of this machine
        rig.ports["node1/eth0"].loss = 0.02

`python tests/vm/guests` fetches the kernel; status 77 says that guests can't be booted here.
"""

from .kernel import GuestError, GuestsMissingError
from .machine import Machine, Nic, machine, machines
from .rig import Guest, Rig, boot, why_not

__all__ = [
    "Guest",
    "GuestError",
    "GuestsMissingError",
    "Machine",
    "Nic",
    "Rig",
    "boot",
    "machine",
    "machines",
    "why_not",
]
