# SPDX-License-Identifier: BSD-3-Clause
"""What a guest boots into: the files of this machine, over 9p.

Programs, libraries and drivers have the same paths in a guest, so that it runs exactly what was
built here; what a guest writes stays in its memory (overlay). A small archive comes first, with
what mounts them: busybox, kernel modules, and a script.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .kernel import MODULES, GuestsMissingError, Kernel, module_files

INIT = Path(__file__).with_name("init")
FIRST = Path(__file__).with_name("first")

ROOT_TAG = "root"

# Programs that guests need of this machine, and their packages.
_NEEDED = {
    "busybox": "busybox-static",
    "ip": "iproute2",
    "modprobe": "kmod",
    "qemu-system-x86_64": "qemu-system-x86",
    "rdma": "iproute2",
    "ssh": "openssh-client",
    "sshd": "openssh-server",
}
_PATH = "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin"

_MODULES = ("virtio_pci", *MODULES["root"])


def check_programs() -> None:
    """Raise GuestsMissingError where a program that guests need is not installed."""
    for program, package in _NEEDED.items():
        if shutil.which(program, path=_PATH) is None:
            raise GuestsMissingError(
                f"{program} is not installed: guests need it (package {package}; scripts/setup)"
            )
    said = subprocess.run(["ldd", _busybox()], capture_output=True, check=False)
    if said.returncode == 0:
        raise GuestsMissingError("busybox is not static: guests need the package busybox-static")


def write_first_archive(kernel: Kernel, folder: Path) -> Path:
    """Write `folder`/initrd, the first file system of all guests of a rig; return its path."""
    content = folder / "first"
    modules = content / "modules"
    modules.mkdir(parents=True)
    (content / "bin").mkdir()
    shutil.copy(_busybox(), content / "bin/busybox")
    for number, path in enumerate(module_files(kernel.modules, kernel.version, _MODULES)):
        shutil.copy(path, modules / f"{number:02}-{path.name}")
    (content / "init").write_text(FIRST.read_text().replace("ROOT_TAG", ROOT_TAG))
    (content / "init").chmod(0o755)
    names = [path.relative_to(content) for path in sorted(content.rglob("*"))]
    with (folder / "initrd").open("wb") as out:
        subprocess.run(
            [_busybox(), "cpio", "-o", "-H", "newc"],
            input="".join(f"{name}\n" for name in names).encode(),
            stdout=out,
            stderr=subprocess.DEVNULL,
            cwd=content,
            check=True,
        )
    return folder / "initrd"


def _busybox() -> str:
    return shutil.which("busybox", path=_PATH) or "busybox"
