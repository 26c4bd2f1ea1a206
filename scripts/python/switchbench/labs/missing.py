# SPDX-License-Identifier: BSD-3-Clause
"""What this machine and this user lack to make a lab, found by trying.

Everything is tried in a namespace that has no name and vanishes with the thread that made it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from switchbench.labs import namespaces, rootless, shaper
from switchbench.topology.direction import Shaper


@dataclass(frozen=True)
class Missing:
    """One thing that a lab needs and that isn't there."""

    what: str
    remedy: str

    def __str__(self) -> str:
        """Return the sentence for people."""
        return f"{self.what} (remedy: {self.remedy})"


# What a lab needs, the kernel modules that bring it, and how it is tried: the interfaces stay down,
# and the loopback interface, which is 1, asks for nothing but the discipline itself.
_NEEDS: tuple[tuple[str, str, Callable[[IPRoute], object]], ...] = (
    ("virtual Ethernet pairs", "veth",
     lambda to: to.link("add", index=101, ifname="v0", kind="veth", peer={"ifname": "v1"})),
    ("bridges", "bridge", lambda to: to.link("add", index=102, ifname="b0", kind="bridge")),
    ("IFB interfaces", "ifb", lambda to: to.link("add", index=103, ifname="i0", kind="ifb")),
    ("the TBF queueing discipline", "sch_tbf",
     lambda to: shaper.add(to, 1, Shaper(10_000_000, 131_072, 1500))),
    ("one of the ingress qdisc, the u32 filter and the mirred action",
     "sch_ingress cls_u32 act_mirred", lambda to: shaper.redirect(to, 1, 1)),
)  # fmt: skip

_ABSENT = {errno.EOPNOTSUPP, errno.ENOENT, errno.ENODEV, errno.EINVAL}
_SYSCTLS_THAT_FORBID = {
    "kernel/unprivileged_userns_clone": "0",
    "user/max_user_namespaces": "0",
    "kernel/apparmor_restrict_unprivileged_userns": "1",
}


def missing() -> list[Missing]:
    """Return what a lab needs and can't have here.

    Empty if labs can be made, as root or without.
    """
    if rootless.is_privileged():
        return namespaces.in_thread(_try_all)
    try:
        lines = rootless.try_in_namespace(
            lambda: [f"{lack.what}\t{lack.remedy}" for lack in _try_all()]
        )
    except OSError as error:
        return [_no_privilege(error)]
    return [Missing(*line.split("\t")) for line in lines]


def _try_all() -> list[Missing]:
    try:
        namespaces.unshare(namespaces.CLONE_NEWNET)
    except OSError as error:
        return [Missing(f"network namespaces: {error.strerror}", "a kernel with CONFIG_NET_NS")]
    found = []
    with IPRoute() as netlink:
        for what, modules, attempt in _NEEDS:
            try:
                attempt(netlink)
            except NetlinkError as error:
                reason = "the kernel has none" if error.code in _ABSENT else os.strerror(error.code)
                found.append(Missing(f"{what}: {reason}", f"`modprobe -a {modules}` as root"))
    return found


def _no_privilege(error: OSError) -> Missing:
    """Return why this user can have no namespaces.

    It lacks the capabilities, and user namespaces too.
    """
    for key, forbidding in _SYSCTLS_THAT_FORBID.items():
        path = Path("/proc/sys") / key
        if path.exists() and path.read_text().strip() == forbidding:
            name = key.replace("/", ".")
            return Missing(
                f"CAP_SYS_ADMIN and CAP_NET_ADMIN, and user namespaces ({name} is {forbidding})",
                f"run as root, or change the sysctl {name}",
            )
    return Missing(
        f"CAP_SYS_ADMIN and CAP_NET_ADMIN, and user namespaces ({error.strerror})", "run as root"
    )
