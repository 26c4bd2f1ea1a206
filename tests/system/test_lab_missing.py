# SPDX-License-Identifier: BSD-3-Clause
"""What a machine lacks for labs is named, with the remedy."""

from __future__ import annotations

import subprocess

import pytest
from pyroute2 import IPRoute

from labkit import needs_lab, python
from switchbench.labs import devices

PRINT = "from switchbench.labs import devices\nprint(*devices.missing().items())"


@needs_lab
def test_nothing_is_missing_here() -> None:
    assert devices.missing() == {}


@needs_lab
def test_a_missing_kernel_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(netlink: IPRoute) -> None:
        netlink.link("add", ifname="x0", kind="no-such-kind")

    monkeypatch.setattr(devices, "_NEEDS", [("frobnicators", "frob", attempt)])
    assert devices.missing() == {"frobnicators: the kernel has none": "`modprobe -a frob` as root"}


@needs_lab
def test_forbidden_user_namespaces_are_named() -> None:
    """In a user namespace of this test's own, so that the machine's limit stays as it is."""
    forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all "
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", f'{forbid} "$@"', "sh", *python(PRINT)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.stdout == (
        "('CAP_SYS_ADMIN and CAP_NET_ADMIN, and user namespaces (user.max_user_namespaces is 0)', "
        "'run as root, or change the sysctl user.max_user_namespaces')\n"
    ), done.stderr
