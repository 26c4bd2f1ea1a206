# SPDX-License-Identifier: BSD-3-Clause
"""Root file systems of other machines, entered without network and without the rest of this one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from switchbench import __version__

APPLETS = (
    *("sh", "cat", "cp", "cut", "env", "find", "grep", "ls", "mkdir", "mv", "readlink", "rm"),
    *("sed", "sha256sum", "sort", "tar", "gzip", "uname", "uniq"),
)
CONFIGURATION = """\
switchbench: 1
site: {lab: one-switch, nodes: 4}
transports: [dpdk, tcp]
window: 300ms
tests:
- {pattern: pairs, partners: neighbours}
"""
"""A short run over both transports that need no device."""

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_LIMIT_S = 580

# What a root has of the machine's kernel.
_MOUNTS = """
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount --rbind /dev "$root/dev"
"""

# The root becomes a mount of its own, as it is on a machine. $1 is the root, the rest a command.
_ENTER = f"""
root=$1; shift
mount --bind "$root" "$root"
{_MOUNTS}
exec chroot "$root" "$@"
"""


# This machine's files with a layer above them that is gone at the end: $1 is an empty folder, $2
# is copied into root's home, $3 runs there, and the folder `out` that it leaves is copied back.
_OVERLAY = f"""
root=$1/root
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$root"
{_MOUNTS}
cp -r "$2/." "$root/root"
env -i PATH="$PATH" HOME=/root chroot "$root" sh -c "cd /root; $3"
cp -r "$root/root/out" "$2"
"""


def overlaid(place: Path, folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command where this machine's files are, and can be changed without changing them.

    In root's home, with the folder's files there, and without network. What it leaves in `out` is
    in the folder then.
    """
    need_root()
    if "\toverlay\n" not in Path("/proc/filesystems").read_text():
        pytest.skip("this kernel has no overlay file system")
    place.mkdir()
    spaces = ["unshare", "--mount", "--pid", "--fork", "--ipc", "--net"]
    return subprocess.run(
        [*spaces, "sh", "-ec", _OVERLAY, "sh", str(place), str(folder), command],
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )


@dataclass(frozen=True)
class Root:
    """One of them. Mounts are in a namespace that ends with each command."""

    path: Path

    def run(
        self, *command: str, network: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """A command in it; unless it is given this machine's network, in a network namespace that
        has nothing but a loopback."""
        spaces = ["unshare", "--mount", "--pid", "--fork", "--ipc"]
        spaces += [] if network else ["--net"]
        settings = [f"{key}={value}" for key, value in variables.items()]
        inner = ["env", "-i", f"PATH={_PATH}", "HOME=/root", *settings]
        words = ["sh", "-c", 'cd /root && exec "$@"', "sh", *command]
        return subprocess.run(
            [*spaces, "sh", "-ec", _ENTER, "sh", str(self.path), *inner, *words],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )


def prove(root: Root, command: str) -> None:
    """The installed command says its version, finds its drivers, and runs."""
    assert root.run(command, "--version").stdout == f"switchbench {__version__}\n"
    checks = json.loads(root.run(command, "doctor", "--json").stdout)["checks"]
    found = {(check["part"], check["what"]): check for check in checks}
    assert "tcp, dpdk" in found["engine", "libraries"]["detail"]
    assert found["dpdk", "drivers"]["state"] == "ok"
    (root.path / "root" / "conf.yaml").write_text(CONFIGURATION)
    run = root.run(command, "run", "conf.yaml", "--out", "out")
    assert run.returncode == 0, run.stderr
    measured(root.path / "root" / "out")


def measured(results: Path) -> None:
    """What that run leaves."""
    summary = json.loads((results / "summary.json").read_text())
    assert {trial["transport"] for trial in summary["trials"]} == {"dpdk", "tcp"}
    assert summary["errors"] == []


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
