# SPDX-License-Identifier: BSD-3-Clause
"""Root file systems of other machines, entered without network and without the rest of this one."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

APPLETS = (
    *("sh", "cat", "cp", "env", "grep", "ls", "mkdir", "mv", "readlink", "rm", "sed"),
    *("sha256sum", "tar", "gzip", "uname"),
)
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_LIMIT_S = 400

# The root becomes a mount of its own, as it is on a machine. $1 is the root, the rest a command.
_ENTER = """
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount --rbind /dev "$root/dev"
exec chroot "$root" "$@"
"""


@dataclass(frozen=True)
class Root:
    """One of them. Mounts are in a namespace that ends with each command."""

    path: Path

    def run(
        self, *command: str, folder: str = "/root", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """A command in it, with a network namespace that has nothing but a loopback."""
        spaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--ipc"]
        settings = [f"{key}={value}" for key, value in variables.items()]
        inner = ["env", "-i", f"PATH={_PATH}", "HOME=/root", *settings]
        words = ["sh", "-c", f'cd {folder} && exec "$@"', "sh", *command]
        return subprocess.run(
            [*spaces, "sh", "-ec", _ENTER, "sh", str(self.path), *inner, *words],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )


def need_root() -> None:
    """Skips without the right to mount and to chroot."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")


def bare(path: Path) -> Root:
    """A static shell and its tools: no loader, no C library."""
    need_root()
    busybox = shutil.which("busybox")
    if busybox is None or subprocess.run(["ldd", busybox], capture_output=True).returncode == 0:
        pytest.skip("no static busybox (Debian: busybox-static)")
    for folder in ("bin", "dev", "proc", "root", "run", "sys", "tmp"):
        (path / folder).mkdir(parents=True)
    (path / "var").mkdir()
    (path / "var" / "run").symlink_to("/run")
    shutil.copy(busybox, path / "bin" / "busybox")
    for applet in APPLETS:
        (path / "bin" / applet).symlink_to("busybox")
    return Root(path)


def debian(path: Path, release: str) -> Root:
    """A release of Debian with what no system is without, from its archive."""
    need_root()
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed")
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", release, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        last = made.stdout.strip().splitlines()[-1:] or [""]
        pytest.skip(f"Debian {release} can't be had: {last[0]}")
    return Root(path)
