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


@dataclass(frozen=True)
class _Need:
    what: str
    module: str
    """The kernel module that brings it, or the option where it can't be a module."""
    attempt: Callable[[IPRoute], None]


_VETH, _BRIDGE, _IFB = 101, 102, 103


def _veth(netlink: IPRoute) -> None:
    netlink.link("add", index=_VETH, ifname="v0", kind="veth", peer={"ifname": "v1"})


def _bridge(netlink: IPRoute) -> None:
    netlink.link("add", index=_BRIDGE, ifname="b0", kind="bridge")


def _ifb(netlink: IPRoute) -> None:
    netlink.link("add", index=_IFB, ifname="i0", kind="ifb")


def _tbf(netlink: IPRoute) -> None:
    # On the loopback interface, so that this asks for nothing but TBF itself.
    shaper.add(netlink, 1, Shaper(10_000_000, 131_072, 1500))


def _redirect(netlink: IPRoute) -> None:
    # From the loopback interface to itself: never up, so nothing passes.
    shaper.redirect(netlink, 1, 1)


_NEEDS = [
    _Need("virtual Ethernet pairs", "veth", _veth),
    _Need("bridges", "bridge", _bridge),
    _Need("IFB interfaces", "ifb", _ifb),
    _Need("the TBF queueing discipline", "sch_tbf", _tbf),
    _Need(
        "one of the ingress qdisc, the u32 filter and the mirred action",
        "sch_ingress cls_u32 act_mirred",
        _redirect,
    ),
]

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
        lines = rootless.try_in_namespace(_report)
    except OSError as error:
        return [_no_privilege(error)]
    return [Missing(*line.split("\t")) for line in lines]


def _report() -> list[str]:
    return [f"{lack.what}\t{lack.remedy}" for lack in _try_all()]


def _try_all() -> list[Missing]:
    try:
        namespaces.unshare(namespaces.CLONE_NEWNET)
    except OSError as error:
        return [Missing(f"network namespaces: {error.strerror}", "a kernel with CONFIG_NET_NS")]
    with IPRoute() as netlink:
        lacks = [_try(netlink, need) for need in _NEEDS]
    return [lack for lack in lacks if lack is not None]


def _try(netlink: IPRoute, need: _Need) -> Missing | None:
    try:
        need.attempt(netlink)
    except NetlinkError as error:
        reason = "the kernel has none" if error.code in _ABSENT else os.strerror(error.code)
        return Missing(f"{need.what}: {reason}", f"`modprobe -a {need.module}` as root")
    return None


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
